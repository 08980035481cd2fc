"""The paper on one page: penalty, column weights and the interval of ξ that changes anything.

With X (users × items), G = XᵀX, the penalty Λ and P = (G + Λ)⁻¹, all six models are

    B = I − P · diag(w),    w_j = max(Λ_j, (1 − ξ) / P_jj)

where the maximum is the case split of `eq:model_lagrangian` and `eq:RDLAE_lagrangian`: w = Λ + μ.
"""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def penalty(gram_diagonal: NDArray[np.floating], l2: float, dropout: float = 0.0) -> Vector:
    """Λ = dropout / (1 − dropout) · diag(G) + l2 : (items,), `eq:RDLAE_objective`."""
    if not (_is_number(l2) and np.isfinite(l2) and l2 >= 0):
        raise ValueError(f"l2 must be a finite number of at least 0, got {l2!r}")
    if not (_is_number(dropout) and 0 <= dropout < 1):
        raise ValueError(f"dropout must lie in [0, 1), got {dropout!r}")
    result = dropout / (1.0 - dropout) * gram_diagonal.astype(np.float64) + l2
    if not (result > 0).all():
        bare = int(np.count_nonzero(result <= 0))
        raise ValueError(
            f"{bare:,} of {len(result):,} items have no penalty with l2={l2!r}, dropout={dropout!r}: set l2 above 0"
        )
    return result


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def check_xi(xi: float) -> float:
    """Return ξ if it lies in [0, 1]; above 1 nothing changes any more (`theorem:1`)."""
    if not (_is_number(xi) and 0 <= xi <= 1):
        raise ValueError(f"xi must lie in [0, 1], got {xi!r}")
    return float(xi)


def column_weights(penalty: Vector, inverse_diagonal: Vector, xi: float) -> Vector:
    """w = max(Λ, (1 − ξ) / diag P) : (items,), `eq:RDLAE_lagrangian`."""
    return np.maximum(penalty, (1.0 - check_xi(xi)) / inverse_diagonal)


def free_diagonal(penalty: Vector, inverse_diagonal: Vector) -> Vector:
    """1 − Λ_j P_jj : (items,), the diagonal of B without constraints; item j is constrained while ξ is below it."""
    return np.asarray(1.0 - penalty * inverse_diagonal)


def xi_interval(penalty: Vector, inverse_diagonal: Vector) -> tuple[float, float]:
    """The ξ between which B changes: below it is EASE's or EDLAE's ranking, above it is LAE's or DLAE's."""
    diagonal = free_diagonal(penalty, inverse_diagonal)
    return float(np.clip(diagonal.min(), 0, 1)), float(np.clip(diagonal.max(), 0, 1))


def unconstrained_share(penalty: Vector, inverse_diagonal: Vector, xi: float) -> float:
    """Share of the items whose diagonal constraint is not active at ξ."""
    return float(np.mean(free_diagonal(penalty, inverse_diagonal) <= check_xi(xi)))


def model_name(dropout: Any, xi: Any) -> str:
    """The paper's name for a pair (dropout, ξ)."""
    denoising = "D" if dropout > 0 else ""
    if xi == 1:
        return f"{denoising}LAE"
    if xi == 0:
        return f"E{denoising}LAE" if denoising else "EASE"
    return f"R{denoising}LAE"
