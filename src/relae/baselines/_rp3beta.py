"""RP3β (Paudel et al., TiiS 2017): random walks of three steps, popular items held back."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np

from relae._common.progress import Progress
from relae.baselines._graph_filter import inverse_power
from relae.data import InteractionsLike
from relae.linalg import (
    FLOAT32,
    Arrays,
    Csr,
    Dense,
    Expected,
    Layout,
    as_csr,
    csr_from_parts,
    csr_layout,
    csr_parts,
    dense_sparse,
    scaled_columns,
    scaled_rows,
    sparse_sparse,
    transpose,
)
from relae.recommender import HistoryRecommender, Parameter, Range, State

_BATCH_BYTES = 256e6


class RP3Beta(HistoryRecommender):
    """Walk from the items of a history to their users and on to the items of these, and divide by popularity.

    With the probabilities of a step x_ui/d_i from item i to user u and x_ui/d_u from user u to item i, where d_i and
    d_u are the sums of the column and of the row of X, a history x gets the scores

        s_j = Σ_i x_i Σ_u (x_ui / d_i)^α (x_uj / d_u)^α / d_j^β

    That is P3α for β = 0, and RP3β for α = 1. Nothing is pruned: two sparse products per history, and no items × items
    matrix. A walk that begins at the user would divide all scores of a history by the same number.

    Parameters
    ----------
    alpha : float
        The power of the probabilities.
    beta : float
        The power of the popularity of items that scores are divided by.

    Attributes
    ----------
    steps_ : (users, items) sparse
        x_ui^α / d_u^(α/2).
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("alpha", 1.0, "the power of the probabilities", "α", low=0, search=Range(0.3, 2.0), option=True),
        Parameter("beta", 0.6, "the power of popularity that is divided out", "β", low=0, search=Range(0.0, 1.2)),
    )

    steps_: Csr

    def __init__(self, alpha: float = 1.0, beta: float = 0.6) -> None:
        self.alpha, self.beta = alpha, beta

    def fit(self, data: InteractionsLike, *, progress: Progress | None = None) -> Self:
        """Fit to interactions, or to a sparse matrix (users × items); an earlier fit is kept until this one is done."""
        self.check_params()
        interactions = self.to_interactions(data)
        x = as_csr(interactions.matrix, np.float64)
        powered = x.copy()
        powered.data **= self.alpha
        self.steps_ = as_csr(scaled_rows(powered, inverse_power(x.sum(axis=1), self.alpha)), np.float32)
        self._steps_t_ = transpose(self.steps_)
        degrees = x.sum(axis=0)
        self._leave_scale_ = inverse_power(degrees, self.alpha).astype(np.float32)
        self._arrive_scale_ = inverse_power(degrees, self.beta).astype(np.float32)
        self.remember(interactions)
        return self

    @property
    def holds_histories(self) -> bool:
        """True: the steps have an element wherever X has one."""
        return True

    def project(self, batch: Csr) -> Dense:
        at_users = sparse_sparse(scaled_columns(batch, self._leave_scale_), self._steps_t_)
        scores = dense_sparse(at_users, self._steps_t_)
        scores *= self._arrive_scale_
        return scores

    def state(self, form: str) -> State:
        state = super().state(form)
        scales = {"leave_scale": self._leave_scale_, "arrive_scale": self._arrive_scale_}
        return State(state.facts, {**state.arrays, **csr_parts("steps", self.steps_), **scales})

    @classmethod
    def layout(cls, facts: Mapping[str, Any], names: Collection[str]) -> Layout:
        scale = Expected(FLOAT32, ("items",))
        own = {**csr_layout("steps", "users"), "leave_scale": scale, "arrive_scale": scale}
        return {**super().layout(facts, names), **own}

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        self.steps_ = csr_from_parts("steps", arrays, (self.n_users_, len(self.items_)))
        self._steps_t_ = transpose(self.steps_)
        self._leave_scale_, self._arrive_scale_ = np.array(arrays["leave_scale"]), np.array(arrays["arrive_scale"])
        for scale in (self._leave_scale_, self._arrive_scale_):
            if not (np.isfinite(scale) & (scale >= 0)).all():
                raise ValueError("the scales are not numbers of at least 0 per item")

    def users_at_once(self) -> int:
        users, items = self.steps_.shape
        return int(_BATCH_BYTES / (4 * (users + 2 * items)))

    @property
    def score_dtype(self) -> np.dtype[np.floating]:
        return cast("np.dtype[np.floating]", self.steps_.dtype)
