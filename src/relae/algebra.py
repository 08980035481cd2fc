"""The paper on one page: penalty, column weights and the interval of ξ that changes anything.

With X (users × items), G = XᵀX, the penalty Λ and P = (G + Λ)⁻¹, all six models are

    B = I − P · diag(w),    w_j = max(Λ_j, (1 − ξ) / P_jj)

where the maximum is the case split of `eq:model_lagrangian` and `eq:RDLAE_lagrangian`: w = Λ + μ.

Beyond the paper, the Gram has weights of users, and items are scaled by their popularity on both sides of B:

    G = Xᵀ diag(d^−β) X        score_j = Σ_i x_i n_i^α B_ij n_j^−α · p_j^−γ

with d the items of a user, n the users of an item and p its propensity; Λ stays that of XᵀX. β needs an inverse of its
own; α, γ and ξ are dials of one inverse.

With times, the r-th latest item of a history counts r^−φ (fading), and scores grow with what is wanted now:

    score_j + τ · √(e_j / max e)

where e_j are the interactions of an item, each counted 0.5^(age / half-life). Fading φ and freshness τ are dials too.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relae._common.checks import check_between, check_finite, check_share, is_number, refuse
from relae.errors import Option, ParameterError

Vector = NDArray[np.float64]

XIS = (0.0, 1.0)
"""The limits of ξ."""

NORMS = (-1.0, 2.0)
"""The limits of β, α and γ."""


FADING = (0.0, 4.0)
"""The limits of the power by which the items of a history fade."""

FRESHNESS = (0.0, 10.0)
"""The limits of τ."""

FRESH_DAYS = (0.01, 10_000.0)
"""The limits of the half-life of the demand, in days."""


class Dial(NamedTuple):
    """The parameters that can be changed on a fitted model without another inverse: ξ, α, γ, fading and freshness τ.

    All but ξ are neutral at 0, and the half-life of the demand, in days, has no effect without freshness.
    `input_scaling`, `column_weights`, `score_scaling` and `score_offset` say what they do.
    """

    xi: float
    item_norm: float = 0.0
    propensity: float = 0.0
    fading: float = 0.0
    freshness: float = 0.0
    fresh_days: float = 7.0

    @property
    def input(self) -> tuple[float, float]:
        """The parameters that change histories: dials that are equal in them have the same projections."""
        return self.item_norm, self.fading


class Fit(NamedTuple):
    """The parameters that an inverse depends on: λ, dropout, β, and the half-life of interactions in days.

    `penalty_of` and `row_weights` say what the first three do; `Interactions.weighted` ages interactions.
    """

    l2: float
    dropout: float = 0.0
    user_norm: float = 0.0
    half_life: float | None = None


def penalty_of(gram_diagonal: NDArray[np.floating], fit: Fit) -> Vector:
    """Return Λ : (items,), of a fit."""
    return penalty(gram_diagonal, fit.l2, fit.dropout)


def row_weights(items_per_user: NDArray[np.integer], fit: Fit) -> Vector | None:
    """Return d^−β : (users,), what each user counts in the Gram of a fit; None if that is 1."""
    return None if fit.user_norm == 0 else user_weights(items_per_user, fit.user_norm)


def penalty(gram_diagonal: NDArray[np.floating], l2: float, dropout: float = 0.0) -> Vector:
    """Return Λ = dropout / (1 − dropout) · diag(G) + l2 : (items,), `eq:RDLAE_objective`."""
    check_finite("l2", l2)
    check_share("dropout", dropout)
    result = dropout / (1.0 - dropout) * gram_diagonal.astype(np.float64) + l2
    if not (result > 0).all():
        bare = int(np.count_nonzero(result <= 0))
        raise ParameterError(
            f"{bare:,} of {len(result):,} items have no penalty with ",
            Option("l2", l2),
            ", ",
            Option("dropout", dropout),
            ": set ",
            Option("l2"),
            " above 0",
        )
    return result


def suggested_l2(users_per_item: NDArray[np.integer], total: float) -> float:
    """Return λ = 20·√(mean users per item) · mean square of the values: where to start when nothing was tuned.

    `total` is the sum of all squares. Items that nobody has do not count. The best λ is flat over a factor of two, and
    grows with the square root of the counts: this one lies within a factor of about two of the authors' tuned λ on most
    of their data sets. Tuning may do better.
    """
    interactions = int(users_per_item.sum())
    mean_users = interactions / int(np.count_nonzero(users_per_item))
    return float(20.0 * np.sqrt(mean_users) * total / interactions)


def check_xi(xi: float) -> float:
    """Return ξ if it lies in [0, 1]; above 1 nothing changes any more (`theorem:1`)."""
    return check_between("xi", xi, *XIS)


def column_weights(penalty: Vector, inverse_diagonal: Vector, xi: float) -> Vector:
    """Return w = max(Λ, (1 − ξ) / diag P) : (items,), `eq:RDLAE_lagrangian`."""
    return np.maximum(penalty, (1.0 - check_xi(xi)) / inverse_diagonal)


def emphasis_weights(penalty: Vector, inverse_diagonal: Vector, l2: float, dropout: float, kept: float) -> Vector:
    """Return w of the model whose loss weights kept entries `kept` times as much as dropped ones : (items,).

    The expected loss of column j is quadratic, and differs from that of DLAE in row and column j of its matrix alone.
    With ρ = kept/(dropout + (1 − dropout)·kept), A = G + Λ and s = A_jj − 1/P_jj, block elimination gives

        w_j = (1 − ρ t_j) / P_jj,    t_j = ρ (G_jj − s) / (ρ G_jj/(1 − dropout) + l2 − ρ² s)

    where t_j/(1 − dropout) is the diagonal of the optimum, which no unseen item is ranked by. `kept` 0 gives EDLAE's
    weights, 1 gives DLAE's.
    """
    check_emphasis(dropout, kept)
    gram = (penalty - l2) * (1.0 - dropout) / dropout
    share = kept / (dropout + (1.0 - dropout) * kept)
    explained = gram + penalty - 1.0 / inverse_diagonal
    curvature = share * gram / (1.0 - dropout) + l2 - share**2 * explained
    bent = share * (gram - explained)
    diagonal = np.divide(bent, curvature, out=np.zeros_like(bent), where=bent != 0)
    return np.asarray((1.0 - share * diagonal) / inverse_diagonal)


def check_emphasis(dropout: float, kept: float) -> None:
    """Raise a ParameterError unless 0 < dropout < 1 and `kept` is a finite number of at least 0."""
    check_finite("kept", kept)
    if not (is_number(dropout) and 0 < dropout < 1):
        refuse("dropout", dropout, "lie between 0 and 1 where dropped entries count more")


def user_weights(items_per_user: NDArray[np.integer], user_norm: float) -> Vector:
    """Return d^−β : (users,), what each user counts in the Gram."""
    return np.asarray(np.maximum(items_per_user, 1.0) ** -_check_norm("user_norm", user_norm))


def item_scaling(users_per_item: NDArray[np.integer], item_norm: float) -> Vector:
    """Return n^α : (items,); an item that nobody has counts as one that a single user has."""
    return np.asarray(np.maximum(users_per_item, 1.0) ** _check_norm("item_norm", item_norm))


def input_scaling(users_per_item: NDArray[np.integer], dial: Dial) -> Vector | None:
    """Return n^α : (items,), what histories are multiplied by before the projection; None if that is 1."""
    return item_scaling(users_per_item, dial.item_norm) if dial.item_norm else None


def score_scaling(users_per_item: NDArray[np.integer], dial: Dial) -> Vector | None:
    """Return n^−α p^−γ : (items,), what scores are multiplied by; None if that is 1."""
    if not (dial.item_norm or dial.propensity):
        return None
    return propensity_scaling(users_per_item, dial.propensity) / item_scaling(users_per_item, dial.item_norm)


def score_offset(demand: NDArray[np.floating], dial: Dial) -> Vector | None:
    """Return τ·√(e / max e) : (items,), what recent demand adds to scores; None if that is 0.

    The most wanted item gains τ, and one with a quarter of its demand half of that.
    """
    if not dial.freshness:
        return None
    return np.asarray(dial.freshness * np.sqrt(demand / max(float(demand.max(initial=0.0)), 1e-300)))


def propensities(
    users_per_item: NDArray[np.integer], exponent: float = 0.5, floor: float = 0.01
) -> NDArray[np.float64]:
    """Return max((count/largest count)^exponent, floor) : (items,), the probability that an interaction is observed.

    Yang et al. (2018) write the exponent as (γ + 1)/2 on counts; the paper calls an exponent of ½ "γ = 2".
    """
    if not exponent >= 0 or not 0 < floor <= 1:
        raise ValueError(f"the exponent must be at least 0 and the floor in (0, 1], got {exponent!r} and {floor!r}")
    return np.asarray(np.maximum((users_per_item / max(int(users_per_item.max(initial=0)), 1)) ** exponent, floor))


def propensity_scaling(users_per_item: NDArray[np.integer], propensity: float) -> Vector:
    """Return p^−γ : (items,), with the propensities that unbiased metrics weight by."""
    return np.asarray(propensities(users_per_item) ** -_check_norm("propensity", propensity))


def _check_norm(name: str, value: float) -> float:
    return check_between(name, value, *NORMS)


def check_dial(dial: Dial) -> Dial:
    """Return dials if each has a value that it can have."""
    norms = _check_norm("item_norm", dial.item_norm), _check_norm("propensity", dial.propensity)
    fading = check_between("fading", dial.fading, *FADING)
    freshness = check_between("freshness", dial.freshness, *FRESHNESS)
    days = check_between("fresh_days", dial.fresh_days, *FRESH_DAYS)
    return Dial(check_xi(dial.xi), *norms, fading, freshness, days)


def left_out_diagonal(diagonal: Vector, projected: NDArray[np.floating], factors: Vector) -> NDArray[np.floating]:
    """Return diag P₋ = diag P + (xP)² · d/(1 − d h) : (users, items), without each user, where there is no dropout.

    projected : (users, items) is x P, `factors` : (users,) are d/(1 − d h) with the weight d of a user in the Gram and
    the leverage h = x P xᵀ. In the same way q P₋ = q P + (q P xᵀ) · d/(1 − d h) · x P.
    """
    out = projected * projected
    out *= factors.astype(out.dtype)[:, None]
    out += diagonal.astype(out.dtype)
    return out


def left_out_factor(block: NDArray[np.floating], values: Vector, weight: float, share: float) -> Vector:
    """Return F : (s, s) with P₋ = P + P_S Fᵀ F P_Sᵀ, without a user who has s items, where there is dropout.

    The user adds C = d x xᵀ + c diag(x²) to A on the items S alone (c = dropout/(1 − dropout)). With the root R Rᵀ = C
    and L Lᵀ = I − Rᵀ P_SS R, F = L⁻¹ Rᵀ. `block` is P_SS, `values` are x_S, `weight` is d and `share` is c.
    """
    core = weight * np.outer(values, values)
    core.flat[:: len(core) + 1] += share * values**2
    root = np.linalg.cholesky(core)
    inner = -(root.T @ block.astype(np.float64) @ root)
    inner.flat[:: len(inner) + 1] += 1.0
    factor = np.linalg.cholesky((inner + inner.T) / 2)
    return np.asarray(np.linalg.solve(factor, root.T))


def left_out_diagonal_of_rank(diagonal: Vector, strip: NDArray[np.floating], factor: Vector) -> Vector:
    """Return diag P₋ = diag P + Σ (F P_S)² : (items,), with `strip` P_S : (s, items) and F of `left_out_factor`."""
    change = factor.astype(strip.dtype) @ strip
    return np.asarray(diagonal + np.einsum("ij,ij->j", change, change))


def left_out_correction(projected: Vector, factor: Vector) -> Vector:
    """Return z : (s,) with q P₋ = (q + z) P, where `projected` is (q P)_S and z = Fᵀ F (q P)_S."""
    return np.asarray(factor.T @ (factor @ projected))


def free_diagonal(penalty: Vector, inverse_diagonal: Vector) -> Vector:
    """Return 1 − Λ_j P_jj : (items,), the diagonal of B without constraints; ξ constrains items where it is below."""
    return np.asarray(1.0 - penalty * inverse_diagonal)


def xi_interval(penalty: Vector, inverse_diagonal: Vector) -> tuple[float, float]:
    """Return the ξ between which B changes: below it is EASE's or EDLAE's ranking, above it is LAE's or DLAE's."""
    diagonal = free_diagonal(penalty, inverse_diagonal)
    return float(np.clip(diagonal.min(), 0, 1)), float(np.clip(diagonal.max(), 0, 1))


def unconstrained_share(penalty: Vector, inverse_diagonal: Vector, xi: float) -> float:
    """Return the share of the items whose diagonal constraint is not active at ξ."""
    return float(np.mean(free_diagonal(penalty, inverse_diagonal) <= check_xi(xi)))


def model_name(dropout: Any, xi: Any) -> str:
    """Return the paper's name for a pair (dropout, ξ)."""
    denoising = "D" if dropout > 0 else ""
    if xi == 1:
        return f"{denoising}LAE"
    if xi == 0:
        return f"E{denoising}LAE" if denoising else "EASE"
    return f"R{denoising}LAE"
