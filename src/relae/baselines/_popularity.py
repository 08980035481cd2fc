"""The same list for everybody: what most users have."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from relae._common.progress import Progress
from relae.data import InteractionsLike
from relae.linalg import Csr, Dense
from relae.recommender import HistoryRecommender


class Popularity(HistoryRecommender):
    """Recommend the items with the most users, without those that a user has: what every other model has to beat."""

    def __init__(self) -> None:
        pass

    def fit(self, data: InteractionsLike, *, progress: Progress | None = None) -> Self:
        """Count the users of each item."""
        self.remember(self.to_interactions(data))
        return self

    def project(self, batch: Csr) -> Dense:
        return np.repeat(self.demand()[None].astype(self.score_dtype), batch.shape[0], axis=0)

    def demand(self) -> NDArray[Any]:
        """Return the scores of all items, whatever the history : (items,)."""
        return self.item_counts_

    def users_at_once(self) -> int:
        return int(24e6 / (self.score_dtype.itemsize * len(self.items_)))

    @property
    def score_dtype(self) -> np.dtype[np.floating]:
        return np.dtype(np.float64)  # counts beyond 2²⁴ would tie in float32
