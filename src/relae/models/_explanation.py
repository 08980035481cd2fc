"""Explanations: the part of a score that each item of a history adds."""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from relae.errors import DataError
from relae.recommender import History, HistoryRecommender


@dataclass(frozen=True)
class Explanation:
    """The explanation of a score: what each item of the history adds to it, the largest first.

    `score` is the sum of `contributions`, which can be negative, and of `demand`: what is added because the item is in
    demand now (`freshness`).
    """

    item: Any
    score: float
    items: list[Any]
    contributions: NDArray[np.float64]
    demand: float = 0.0

    @property
    def shares(self) -> NDArray[np.float64]:
        """Each contribution as a part of what all positive ones and the demand add up to."""
        return self.contributions / self._positive if self._positive > 0 else np.zeros_like(self.contributions)

    @property
    def demand_share(self) -> float:
        """The demand as a part of the same sum."""
        return self.demand / self._positive if self._positive > 0 else 0.0

    @property
    def _positive(self) -> float:
        return float(self.contributions.clip(min=0).sum() + self.demand)


class Explainer(HistoryRecommender):
    """A model whose scores are sums over the items of a history, plus an offset per item."""

    explains: ClassVar[bool] = True

    @abstractmethod
    def contributions(
        self, seen: NDArray[np.int64], values: NDArray[np.float64], columns: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return what each item of a history adds to the scores of some columns : (columns, seen).

        Parameters
        ----------
        seen, values
            The columns of the history, and their weights as `weigh` has made them.
        columns
            The columns to explain.
        """

    def explain(self, history: History, item: Any, *, times: NDArray[np.int64] | None = None) -> Explanation:
        """Return what each item of one history adds to the score of `item`.

        They and the demand sum to the score. `times` is that of `recommend`.
        """
        [explanation] = self.explain_all(history, [item], times=times)
        return explanation

    def explain_all(
        self, history: History, items: Iterable[Any], *, times: NDArray[np.int64] | None = None
    ) -> list[Explanation]:
        """Return an explanation of each of several items for one history, in one pass over the weights."""
        encoded = self.encode(history, times=times)
        if encoded.matrix.shape[0] != 1:
            raise DataError(f"an explanation is of one history, got {encoded.matrix.shape[0]:,}")
        columns = np.array([self.column_of(item) for item in items], np.int64)
        weighed = self.weigh(encoded.matrix, encoded.times)
        seen, values = weighed.indices.astype(np.int64), weighed.data.astype(np.float64)
        contributions, offset = self.contributions(seen, values, columns), self.score_offset()
        demands = np.zeros(len(columns)) if offset is None else offset[columns]
        names = self.items_.take(seen)
        orders = np.argsort(-contributions, axis=1, kind="stable")
        return [
            Explanation(name, float(row.sum() + demand), list(names[order]), row[order], float(demand))
            for name, row, order, demand in zip(self.items_.take(columns), contributions, orders, demands, strict=True)
        ]
