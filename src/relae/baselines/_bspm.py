"""BSPM (Choi et al., SIGIR 2023): histories are blurred along the graph, and then sharpened."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from relae._common.progress import Progress
from relae.baselines._graph_filter import RANK, GraphFilter
from relae.data import InteractionsLike
from relae.linalg import Arrays, Csr, Dense, dense_sparse, scaled_columns, sparse_sparse
from relae.recommender import Parameter, Range, State, text


class BSPM(GraphFilter):
    """Blurring by the graph and by a low-pass filter, then sharpening, which runs the blurring backwards in time.

    With R̃ = D_U^−½ X D_I^−½, P = R̃ᵀR̃ and V the first right singular vectors of R̃, a history x is blurred to

        y(0) = x P + β · x D_I^−½ V Vᵀ D_I^½

    and sharpened by dy/dt = −y P from 0 to `sharpening` in one step of a Runge–Kutta method of the given order, which
    for a linear equation is y(t) = y(0) Σ_k (−t P)^k / k!, k up to the order: 1 is Euler's method, 4 the classical one.
    The scores are y at the end. With merge="late" x P alone is sharpened, and the low-pass filter is added at the end.

    Parameters
    ----------
    beta : float
        The weight of the low-pass filter; 0 needs no singular vectors.
    rank : int
        Singular vectors of the low-pass filter.
    sharpening : float
        The time of sharpening; 0 is GF-CF.
    order : int
        The order of the method that solves the equation.
    merge : "early" or "late"
        Whether the low-pass filter is added before or after sharpening.

    Attributes
    ----------
    filter_ : (users, items) sparse
        R̃.
    vectors_ : (items, rank), or None if beta is 0
        V, in the order of falling singular values.
    beta_, sharpening_, order_ : float
        Those of the fit.
    early_ : bool
        Whether the low-pass filter was added before sharpening.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("beta", 0.2, "the weight of the low-pass filter", "β", low=0, search=Range(0.0, 1.0)),
        RANK.with_default(448),
        Parameter("sharpening", 2.5, "the time of sharpening", low=0, search=Range(0.0, 4.0)),
        Parameter("order", 4, "the order of the Runge–Kutta method", low=1, high=5, below=True, whole=True),
        Parameter("merge", "early", "when the low-pass filter is added", choices=("early", "late")),
    )
    LOW_PASS: ClassVar[str] = "beta"
    SCORES_BY: ClassVar[tuple[str, ...]] = ("beta", "sharpening", "order")

    beta_: float
    sharpening_: float
    order_: float
    early_: bool

    def __init__(
        self,
        beta: float = 0.2,
        rank: int = 448,
        sharpening: float = 2.5,
        order: int = 4,
        merge: str = "early",
    ) -> None:
        self.beta, self.rank, self.sharpening, self.order, self.merge = beta, rank, sharpening, order, merge

    def fit(self, data: InteractionsLike, *, progress: Progress | None = None) -> Self:
        """Fit to interactions, or to a sparse matrix (users × items); an earlier fit is kept until this one is done."""
        super().fit(data, progress=progress)
        self.early_ = self.merge == "early"
        return self

    def state(self, form: str) -> State:
        state = super().state(form)
        return State({**state.facts, "merge": "early" if self.early_ else "late"}, state.arrays)

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        self.early_ = text(facts, "merge", "early", "late") == "early"

    def project(self, batch: Csr) -> Dense:
        term = dense_sparse(sparse_sparse(batch, self._filter_t_), self._filter_t_)
        low = None
        if self.vectors_ is not None:
            low = self.low_pass(scaled_columns(batch, self.degree_power(-0.5)))
            low *= self.beta_ * self.degree_power(0.5)
        if low is not None and self.early_:
            term += low
        scores = term.copy()
        for k in range(1, int(self.order_) + 1) if self.sharpening_ > 0 else ():
            term = self.smooth(term)
            term *= np.float32(-self.sharpening_ / k)
            scores += term
        if low is not None and not self.early_:
            scores += low
        return scores

    def users_at_once(self) -> int:
        return super().users_at_once() // 2  # more signals at a time
