"""Matrix factorization for implicit feedback by alternating least squares (Hu, Koren and Volinsky, ICDM 2008)."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from relae._common.progress import Progress
from relae.baselines._parameters import DIM, EPOCHS, SEED
from relae.data import InteractionsLike
from relae.errors import PrecisionError
from relae.linalg import (
    FLOAT32,
    FLOAT64,
    Arrays,
    Csr,
    Dense,
    Expected,
    Layout,
    aligned,
    als_rows,
    as_csr,
    one_blas_thread,
    transpose,
)
from relae.recommender import HistoryRecommender, Parameter, Range, State, number
from relae.solvers import ensure_memory

_BATCH_BYTES = 64e6


class IALS(HistoryRecommender):
    """Implicit alternating least squares: a factor per user and per item, whose product is near 1 where there is x_ui.

    The factors minimize, with a the unobserved weight and λ the l2 (Rendle et al., RecSys 2022),

        Σ_ui x_ui (1 − u·v)² + a Σ_ui (u·v)² + λ Σ_u (|u| + a n)^ν ‖u‖² + λ Σ_i (|i| + a m)^ν ‖v‖²

    where the first sum is over the interactions, the second over all m users × n items, and |u|, |i| are the sums of x
    over a user's and an item's interactions. In turn, all u and all v are set to the best for the others, each by its
    closed form. Only the v are kept: the scores of a history are u·v, with the u that is best for the history.

    λ follows from a `penalty` p that means about the same on all data, for all a and all ν:

        λ = p · (mean x of the interactions) / mean (|u| + a n)^ν over the users

    so that the mean penalty on a user's factors is p, where interactions weigh 1. The best λ changes by orders of
    magnitude from data to data and with a; the best p mostly lies between 1 and 8, and a search over it wastes few
    trials.

    Parameters
    ----------
    dim : int
        Length of a factor.
    penalty : float
        p. Tuning finds a better one.
    unobserved_weight : float
        a, the weight of a pair without an interaction, relative to one with it.
    epochs : int
        How often all factors are set.
    frequency_exponent : float
        ν, how much more the factors of frequent users and items are penalized; 0 for all alike.
    l2 : float, optional
        λ itself, as publications give it; then `penalty` does not count.
    seed : int
        Of the factors that the fit begins with; the same seed gives the same model.

    Attributes
    ----------
    l2_, unobserved_weight_, frequency_exponent_ : float
        λ, a and ν of the fit, by which histories fold in.
    item_factors_ : (items, dim)
        The v, in the basis where VᵀV is diagonal.
    spectrum_ : (dim,)
        That diagonal, falling.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        DIM.with_default(256, search=Range(64, 512, log=True, whole=True)),
        Parameter(
            "penalty",
            4.0,
            "the mean penalty on a user's factors",
            "p",
            low=0,
            above=True,
            search=Range(0.7, 10.0, log=True),
        ),
        Parameter(
            "unobserved_weight",
            0.1,
            "the weight of a pair without an interaction, relative to one with it",
            "a",
            low=0,
            above=True,
            search=Range(0.01, 0.5, log=True),
        ),
        EPOCHS.with_default(16, help="the number of updates of all factors"),
        Parameter(
            "frequency_exponent", 1.0, "how much more the factors of frequent users and items are penalized", "ν", low=0
        ),
        Parameter("l2", None, "λ itself, instead of `penalty`", "λ", low=0, above=True, option=True),
        SEED,
    )

    l2_: float
    unobserved_weight_: float
    frequency_exponent_: float
    item_factors_: Dense
    spectrum_: NDArray[np.float64]

    def __init__(
        self,
        dim: int = 256,
        penalty: float = 4.0,
        unobserved_weight: float = 0.1,
        epochs: int = 16,
        frequency_exponent: float = 1.0,
        l2: float | None = None,
        seed: int = 0,
    ) -> None:
        self.dim, self.penalty, self.unobserved_weight = dim, penalty, unobserved_weight
        self.epochs, self.frequency_exponent, self.l2, self.seed = epochs, frequency_exponent, l2, seed

    def search_space(self) -> Mapping[str, Range]:
        """Return the ranges to search, without the penalty where λ is given."""
        return {name: ranged for name, ranged in self.SPACE.items() if self.l2 is None or name != "penalty"}

    def fit(self, data: InteractionsLike, *, progress: Progress | None = None) -> Self:
        """Fit to interactions, or to a sparse matrix (users × items); an earlier fit is kept until this one is done."""
        self.check_params()
        interactions = self.to_interactions(data)
        users, items = interactions.matrix.shape
        what = f"{self.dim:,} factors of each of {users:,} users and {items:,} items"
        needed = 8.0 * self.dim * (users + items) + 40.0 * self.dim**2  # factors, and the spectrum of their square
        ensure_memory(needed, what, f"fit with a dim below {self.dim:,}")
        x = as_csr(interactions.matrix, np.float32)
        l2 = self._l2_for(x) if self.l2 is None else float(self.l2)
        with one_blas_thread():
            self.item_factors_, self.spectrum_ = self._alternate(x, l2, progress)
        self.l2_, self.unobserved_weight_ = l2, float(self.unobserved_weight)
        self.frequency_exponent_ = float(self.frequency_exponent)
        self.remember(interactions)
        return self

    def _alternate(self, x: Csr, l2: float, progress: Progress | None) -> tuple[Dense, NDArray[np.float64]]:
        """Return the factors of the items after all epochs, in their own basis, and their spectrum."""
        a = self.unobserved_weight
        sides = [(side, l2 * _frequencies(side, a, self.frequency_exponent)) for side in (x, transpose(x))]
        start = np.random.default_rng(self.seed).standard_normal((x.shape[1], self.dim), np.float32)
        factors, spectrum = aligned(start / np.float32(np.sqrt(self.dim)))
        for step in range(2 * self.epochs):
            side, penalty = sides[step % 2]
            solved = als_rows(side, factors, spectrum, a, penalty)
            if not np.isfinite(solved).all():
                raise PrecisionError(
                    f"the factors overflowed in epoch {step // 2 + 1}: raise the penalty, now λ = {l2:g}"
                )
            factors, spectrum = aligned(solved)
            if progress is not None:
                progress("least squares", (step + 1) / (2 * self.epochs))
        return factors, spectrum

    def _l2_for(self, x: Csr) -> float:
        """Return the λ with which the mean penalty of a user is `penalty`, times the mean weight of an interaction."""
        frequencies = _frequencies(x, self.unobserved_weight, self.frequency_exponent)
        return float(self.penalty * x.data.mean(dtype=np.float64) / frequencies.mean())

    def state(self, form: str) -> State:
        state = super().state(form)
        own = {"item_factors": self.item_factors_, "spectrum": self.spectrum_}
        used = {name: getattr(self, f"{name}_") for name in ("l2", "unobserved_weight", "frequency_exponent")}
        return State({**state.facts, **used}, {**state.arrays, **own})

    @classmethod
    def layout(cls, facts: Mapping[str, Any], names: Collection[str]) -> Layout:
        own = {"item_factors": Expected(FLOAT32, ("items", "dim")), "spectrum": Expected(FLOAT64, ("dim",))}
        return {**super().layout(facts, names), **own}

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        factors, spectrum = np.array(arrays["item_factors"]), np.array(arrays["spectrum"])
        if not np.isfinite(factors).all():
            raise ValueError("the factors are not finite")
        if not (np.isfinite(spectrum) & (spectrum >= 0)).all():
            raise ValueError("the spectrum is below 0 or not finite")
        self.item_factors_, self.spectrum_, self.l2_ = factors, spectrum, number(facts, "l2", 0)
        known = {**self.get_params(), **facts}  # folders once had these as parameters alone
        self.unobserved_weight_ = number(known, "unobserved_weight", 0)
        self.frequency_exponent_ = number(known, "frequency_exponent", 0)

    def facts(self) -> dict[str, str]:
        return super().facts() | {"l2 used": f"{self.l2_:g}"}

    def _fold_in(self, batch: Csr) -> Dense:
        """Return the best factors of some histories : (users, dim)."""
        own = as_csr(batch, np.float32)
        penalty = self.l2_ * _frequencies(own, self.unobserved_weight_, self.frequency_exponent_)
        return als_rows(own, self.item_factors_, self.spectrum_, self.unobserved_weight_, penalty)

    def project(self, batch: Csr) -> Dense:
        return self._fold_in(batch) @ self.item_factors_.T

    def users_at_once(self) -> int:
        return int(_BATCH_BYTES / (4 * sum(self.item_factors_.shape)))

    @property
    def score_dtype(self) -> np.dtype[np.floating]:
        return self.item_factors_.dtype


def _frequencies(x: Csr, unobserved_weight: float, exponent: float) -> NDArray[np.float64]:
    """Return (|r| + a · columns)^ν of each row r : (rows,)."""
    sums = np.asarray(x.sum(axis=1, dtype=np.float64))
    return np.asarray((sums + unobserved_weight * x.shape[1]) ** exponent)
