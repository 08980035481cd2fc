"""Explanations: the part of a score that each item of a history adds."""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae._common.checks import check_whole
from relae.errors import DataError
from relae.models._counterfactual import Counterfactual, smallest_set
from relae.recommender import HistoriesLike, History, HistoryRecommender


@dataclass(frozen=True)
class Explanation:
    """The explanation of a score: what each item of the history adds to it, the largest first.

    `score` is the sum of `contributions`, which can be negative, and of `demand`: what is added because the item is in
    demand now (`freshness`). `counterfactual` is what a place in the list rests on, where that was asked for.
    """

    item: Any
    score: float
    items: list[Any]
    contributions: NDArray[np.float64]
    demand: float = 0.0
    counterfactual: Counterfactual | None = None

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

    def explain(
        self,
        history: History,
        item: Any,
        *,
        times: NDArray[np.int64] | None = None,
        counterfactual: bool = False,
        k: int = 10,
        seen: HistoriesLike | None = None,
    ) -> Explanation:
        """Return what each item of one history adds to the score of `item`.

        They and the demand sum to the score.

        Parameters
        ----------
        times
            That of `recommend`.
        counterfactual
            Also search for the smallest set of items of the history without which `item` would not have been among the
            first `k` of the list: exactly for sets of up to four items, as far as that is affordable, and beyond that
            item by item. The items that are left out are not recommended themselves.
        k, seen
            The length of that list, and what the user has had beside the history, as of `recommend`.
        """
        [explanation] = self.explain_all(history, [item], times=times)
        if not counterfactual:
            return explanation
        return replace(explanation, counterfactual=self._counterfactual(history, item, times, k, seen))

    def _counterfactual(
        self, history: History, item: Any, times: NDArray[np.int64] | None, k: int, seen: HistoriesLike | None
    ) -> Counterfactual:
        check_whole("k", k)
        encoded, column = self.encode(history, seen, times=times), self.column_of(item)
        row, weighed = encoded.matrix, self.weigh(encoded.matrix, encoded.times)
        had, size = row.indices.astype(np.int64), row.nnz
        if column in had:
            raise DataError(f"item {item!r} is in the history, so that it is not recommended")
        barred = np.zeros(len(self.items_), bool)
        barred[had] = True
        if encoded.seen is not None:
            barred[encoded.seen.indices] = True
        barred[column] = True
        others = np.flatnonzero(~barred)
        parts = self.contributions(had, np.ones(size), np.append(column, others))  # (items, history)
        offset = self.score_offset()
        offsets = np.zeros(len(others)) if offset is None else float(offset[column]) - offset[others]
        is_fixed = bool(np.array_equal(weighed.data, row.data))

        def weigh(masks: NDArray[np.bool_]) -> NDArray[np.float64]:
            if is_fixed:
                return np.where(masks, weighed.data.astype(np.float64), 0.0)
            lists, at = np.nonzero(masks)
            starts = np.searchsorted(lists, np.arange(len(masks) + 1))
            histories = sp.csr_array((row.data[at], row.indices[at], starts), shape=(len(masks), row.shape[1]))
            when = None if encoded.times is None else encoded.times[at]
            weights = np.zeros(masks.shape)
            weights[lists, at] = self.weigh(histories, when).data
            return weights

        leads = (parts[0] - parts[1:]).T
        at, rank, exact = smallest_set(leads, np.asarray(offsets), others < column, k, weigh, is_fixed)
        left_out = None if at is None else list(self.items_.take(had[at]))
        return Counterfactual(left_out, k, rank, exact)

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
