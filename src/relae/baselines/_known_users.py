"""Models that know the users they were fitted to, and nobody else."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import numpy as np

from relae.data import Interactions
from relae.errors import DataError
from relae.linalg import (
    FLOAT32,
    Arrays,
    Csr,
    Dense,
    Expected,
    Layout,
    RowIndex,
    csr_from_parts,
    csr_layout,
    csr_parts,
)
from relae.recommender import HistoryRecommender, State

_BATCH_BYTES = 128e6


class KnownUsers(HistoryRecommender):
    """A vector per user and a vector per item; the score is their product.

    A user is found by the whole history that the fit has seen: of two users with the same history, the first one.
    Any other history is an error, because there is no vector for it.

    Attributes
    ----------
    user_factors_ : (users, dim)
    item_factors_ : (items, dim)
    """

    folds_in: ClassVar[bool] = False

    user_factors_: Dense
    item_factors_: Dense

    @property
    def holds_histories(self) -> bool:
        """True: a user is found by the history."""
        return True

    def _know(self, users: Dense, items: Dense, interactions: Interactions) -> None:
        """Take up the vectors of a fit."""
        self.remember(interactions)
        self.user_factors_, self.item_factors_ = users, items
        self._rows_ = RowIndex(interactions.matrix)

    def project(self, batch: Csr) -> Dense:
        some = np.diff(batch.indptr) > 0
        rows = np.where(some, self._rows_.find(batch), -1)  # a user of the fit may have nothing, too
        strangers = np.count_nonzero(some & (rows < 0))
        if strangers:
            raise DataError(
                f"{type(self).__name__} knows the {self.n_users_:,} users that it was fitted to, by their whole "
                f"history with its weights, and {strangers:,} of {batch.shape[0]:,} histories are none of theirs: fit "
                "it again with them, or take a model that folds in new users, such as RDLAE, MultVAE, IALS or ItemKNN"
            )
        scores = np.asarray(self.user_factors_[rows] @ self.item_factors_.T)
        scores[rows < 0] = 0  # users without a history
        return scores

    def users_at_once(self) -> int:
        return int(_BATCH_BYTES / (4 * len(self.items_)))

    @property
    def score_dtype(self) -> np.dtype[np.floating]:
        return np.dtype(np.float32)

    def state(self, form: str) -> State:
        state = super().state(form)
        factors = {"user_factors": self.user_factors_, "item_factors": self.item_factors_}
        return State(state.facts, {**state.arrays, **factors, **csr_parts("x", self._rows_.matrix)})

    @classmethod
    def layout(cls, facts: Mapping[str, Any], names: Collection[str]) -> Layout:
        return {
            **super().layout(facts, names),
            "user_factors": Expected(FLOAT32, ("users", "dim"), mapped=True),
            "item_factors": Expected(FLOAT32, ("items", "dim"), mapped=True),
            **csr_layout("x", "users"),
        }

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        self.user_factors_, self.item_factors_ = arrays["user_factors"], arrays["item_factors"]
        self._rows_ = RowIndex(csr_from_parts("x", arrays, (self.n_users_, len(self.items_))))
