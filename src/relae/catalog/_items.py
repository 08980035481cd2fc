"""The items of a fitted model: look-ups, records and suggestions."""

from collections.abc import Sequence
from functools import cached_property
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from relae.catalog._records import Id, Item, Reason, RecommendedItem, SimilarItem, Suggestion
from relae.catalog._search import MAX_QUERY, TitleIndex
from relae.evaluation import head_items
from relae.linalg import Csr
from relae.models import Explanation
from relae.recommender import HistoryRecommender

_SUGGESTED_ITEMS = 3  # for one unknown id
_SUGGESTED_IDS = 3  # of a history: each costs a search
_REASONS = 3  # of a recommended item
_EXPLAINED_AT_ONCE = 100


class Catalog:
    """The items of a fitted model, by column.

    Tables of all items are made when they are first used; `prepare` makes them all.

    Attributes
    ----------
    model : HistoryRecommender
    items : Ids
        Raw ids of the columns.
    """

    def __init__(self, model: HistoryRecommender) -> None:
        self.model, self.items = model, model.items_
        self.has_titles = model.titles_ is not None

    @cached_property
    def ids(self) -> list[Id]:
        """The id of each column."""
        ids: list[Id] = self.items.values.tolist()
        return ids

    @cached_property
    def titles(self) -> list[str | None]:
        """The title of each column, None where there is none."""
        titles = self.model.titles_
        return [None] * len(self.items) if titles is None else titles.tolist()

    @cached_property
    def popularity(self) -> list[int]:
        """The number of users of each column in the training data."""
        counts: list[int] = self.model.item_counts_.tolist()
        return counts

    @cached_property
    def popular(self) -> NDArray[np.int64]:
        """All columns, the most popular first."""
        counts = self.model.item_counts_
        return np.lexsort((np.arange(len(counts)), -counts))

    @cached_property
    def in_head(self) -> list[bool]:
        """Flags of the columns that are among the most popular fifth."""
        flags: list[bool] = head_items(self.model.item_counts_, order=self.popular).tolist()
        return flags

    @cached_property
    def _index(self) -> TitleIndex:
        # an item without a title is found by its id
        names = [str(item) if title is None else title for item, title in zip(self.ids, self.titles, strict=True)]
        return TitleIndex(names, self.popular)

    def prepare(self) -> None:
        """Make all tables now, so that no later call has to."""
        _ = self.popularity, self.in_head, self._index

    # --- records -----------------------------------------------------------------------------------------------

    def record(self, column: int) -> Item:
        """Return the record of an item."""
        return {
            "item": self.ids[column],
            "title": self.titles[column],
            "popularity": self.popularity[column],
            "group": "head" if self.in_head[column] else "tail",
        }

    def recommended(self, columns: Sequence[int], scores: Sequence[float]) -> list[RecommendedItem]:
        """Return the records of one list of recommendations, up to the first column of -1."""
        return [
            cast(RecommendedItem, {**self.record(column), "score": score})
            for column, score in zip(columns, scores, strict=True)
            if column >= 0
        ]

    def add_reasons(
        self,
        items: Sequence[RecommendedItem],
        history: Csr,
        model: HistoryRecommender,
        times: NDArray[np.int64] | None = None,
    ) -> None:
        """Add to each recommended item the few items of the history that it is recommended for.

        `history` has one row, whose entries happened at `times`, and `model`, which has to explain, made the list.
        """
        for start in range(0, len(items), _EXPLAINED_AT_ONCE):
            some = items[start : start + _EXPLAINED_AT_ONCE]
            explanations = cast(Any, model).explain_all(history, [entry["item"] for entry in some], times=times)
            for entry, explanation, reasons in zip(
                some, explanations, self.reasons(explanations, _REASONS), strict=True
            ):
                entry["because"] = reasons
                if explanation.demand:
                    entry["demand_share"] = explanation.demand_share

    def reasons(self, explanations: Sequence[Explanation], limit: int | None = None) -> list[list[Reason]]:
        """Return the reasons of each explanation, the largest first: all, or up to `limit` that are positive."""
        names = [explanation.items[:limit] for explanation in explanations]
        columns = iter(self.items.positions(list(chain.from_iterable(names))).tolist())
        return [
            [
                {"item": item, "title": self.titles[column], "share": share, "contribution": contribution}
                for item, column, share, contribution in zip(
                    items,
                    columns,  # each list takes as many as it has names, which must come first for that
                    explanation.shares[:limit].tolist(),
                    explanation.contributions[:limit].tolist(),
                    strict=False,
                )
                if limit is None or contribution > 0
            ]
            for items, explanation in zip(names, explanations, strict=True)
        ]

    def similar(self, column: int, k: int) -> list[SimilarItem]:
        """Return the k items most similar to one; the model has to explain."""
        ids, scores = cast(Any, self.model).similar_items(self.ids[column], k)
        columns = self.items.positions([item for item in ids if item is not None]).tolist()
        return [
            {**self.record(other), "similarity": score}
            for other, score in zip(columns, scores[: len(columns)].tolist(), strict=True)
        ]

    # --- search ------------------------------------------------------------------------------------------------

    def search(self, query: str) -> NDArray[np.int64]:
        """Return the columns that match a query, the best first: an id before all titles; all columns for no words."""
        if not (query := query.strip()):
            return self.popular
        columns = self._index.find(query)
        [column] = self.items.positions([query]).tolist()
        return columns if column < 0 else np.append(column, columns[columns != column])

    def suggest(self, unknown: Any) -> list[int]:
        """Return up to three columns that may be meant by an unknown id: ids like it, then titles with its words."""
        text = str(unknown)
        if not text.strip() or len(text) > MAX_QUERY:
            return []
        by_id = self.items.positions(self.items.alike(text)).tolist()
        by_title = self._index.find_whole(text)[:_SUGGESTED_ITEMS].tolist()
        return list(dict.fromkeys(by_id + by_title))[:_SUGGESTED_ITEMS]

    def suggestions(self, unknown: Sequence[Id]) -> list[Suggestion]:
        """Return suggestions for the first few unknown ids, without those for which there are none."""
        meant = ((item, self.suggest(item)) for item in unknown[:_SUGGESTED_IDS])
        return [{"unknown": item, "items": list(map(self.record, columns))} for item, columns in meant if columns]
