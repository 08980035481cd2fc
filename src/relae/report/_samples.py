"""Examples for the report: recommendations to a few test users, and similar items."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from relae.catalog import Catalog, Item
from relae.evaluation import Split
from relae.recommender import HistoryRecommender

_SHOWN_HISTORY = 10  # items of a history that the report shows


@dataclass(frozen=True)
class Pick:
    """A recommended item: whether the user really has it (`hit`), and the items of the history that explain it.

    `demand_share` is the part of the score that the recent demand for the item adds.
    """

    item: Item
    score: float
    hit: bool
    because: Sequence[tuple[Item, float]]  # items of the history, each with its share of the score
    demand_share: float = 0.0


@dataclass(frozen=True)
class Sample:
    """A test user with history and recommendations."""

    label: str
    history: Sequence[Item]  # at most `_SHOWN_HISTORY` items, those that explain most first
    history_size: int  # of the whole history
    hidden: int  # number of held-out items of the user
    picks: Sequence[Pick]


@dataclass(frozen=True)
class Neighbours:
    """An item and the items most similar to it, by partial correlation."""

    item: Item
    similar: Sequence[tuple[Item, float]]


def make_samples(
    model: HistoryRecommender, split: Split, count: int = 5, k: int = 8, *, ids: bool = False
) -> list[Sample]:
    """Return recommendations for some users of a split, from short to long histories.

    The choice of users does not depend on how good the recommendations are. With `ids` a label has the raw id of the
    user, otherwise a number. Without `model.explains` there are no reasons (`Pick.because`).
    """
    sizes = np.diff(split.histories.indptr)
    candidates = np.flatnonzero((sizes > 0) & (np.diff(split.truth.indptr) > 0))
    by_size = candidates[np.argsort(sizes[candidates], kind="stable")]
    quantiles = (np.arange(count) + 0.5) / max(count, 1)
    users = list(dict.fromkeys(int(by_size[int(q * len(by_size))]) for q in quantiles)) if len(by_size) else []
    catalog = Catalog(model)
    samples = []
    for number, user in enumerate(users, start=1):
        label = f"User {split.users.take(np.array([user]))[0]}" if ids else f"User {number}"
        samples.append(_make_sample(catalog, split, user, label, min(k, split.n_candidates)))
    return samples


def _make_sample(catalog: Catalog, split: Split, user: int, label: str, k: int) -> Sample:
    model, history = catalog.model, split.histories[[user]]
    truth = set(split.truth.indices[slice(*split.truth.indptr[user : user + 2])].tolist())
    seen = None if split.seen is None else split.seen[[user]]
    own = slice(*split.histories.indptr[user : user + 2])
    times = None if split.history_times is None else split.history_times[own]
    columns, scores = model.recommend(history, k, seen=seen, times=times, allow=cast(Any, split.candidates))
    # From an item of the history to the sum of its shares in all recommendations.
    explained: dict[int, float] = dict.fromkeys(history.indices.tolist(), 0.0)
    picks = []
    for column, score in zip(columns[0].tolist(), scores[0].tolist(), strict=True):
        if column < 0:  # fewer than k items can be recommended
            break
        shares, demand = _explain(model, history, times, column) if model.explains else ([], 0.0)
        for other, share in shares:
            explained[other] += max(share, 0.0)
        reasons = [(catalog.record(other), share) for other, share in shares[:2] if share > 0]
        picks.append(Pick(catalog.record(column), float(score), column in truth, reasons, demand))
    shown = sorted(explained, key=lambda column: (-explained[column], column))[:_SHOWN_HISTORY]
    return Sample(label, [catalog.record(column) for column in shown], len(explained), len(truth), picks)


def _explain(model: Any, history: Any, times: Any, column: int) -> tuple[list[tuple[int, float]], float]:
    """Return a history's columns with their shares in an item's score, the largest first, and the demand's share."""
    [item] = model.items_.take(np.array([column]))
    [explanation] = model.explain_all(history, [item], times=times)
    columns = model.items_.positions(explanation.items)
    shares = [(int(c), float(share)) for c, share in zip(columns, explanation.shares, strict=True)]
    return shares, float(explanation.demand_share)


def find_neighbours(model: HistoryRecommender, k: int = 5) -> list[Neighbours]:
    """Return the similar items of four items: the most popular, one more of the head, and two of the tail."""
    counts = model.item_counts_
    catalog = Catalog(model)
    by_popularity = catalog.popular[counts[catalog.popular] > 0]
    if len(by_popularity) < 2:
        return []
    ranks = dict.fromkeys(int(share * (len(by_popularity) - 1)) for share in (0.0, 0.05, 0.3, 0.6))
    return [
        Neighbours(
            catalog.record(column),
            [
                (cast(Item, other), other["similarity"])
                for other in catalog.similar(column, min(k, len(counts) - 1))
                if other["similarity"] > 0
            ],
        )
        for column in (int(by_popularity[rank]) for rank in ranks)
    ]
