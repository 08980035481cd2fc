"""Recommendations to a few test users, and items that go together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from relae.catalog import Catalog, Item
from relae.evaluation import Split
from relae.recommender import HistoryRecommender

_SHOWN_HISTORY = 10


@dataclass(frozen=True)
class Pick:
    """A recommended item: whether it was in the hidden truth, and which items of the history are its reasons."""

    item: Item
    score: float
    hit: bool
    because: Sequence[tuple[Item, float]]  # with its share of all reasons


@dataclass(frozen=True)
class Sample:
    """A test user, and what is recommended to them."""

    label: str
    history: Sequence[Item]  # the strongest reasons first; not all of a long history
    history_size: int
    hidden: int
    picks: Sequence[Pick]


@dataclass(frozen=True)
class Neighbours:
    """An item and those most similar to it, by partial correlation."""

    item: Item
    similar: Sequence[tuple[Item, float]]


def make_samples(
    model: HistoryRecommender, split: Split, count: int = 5, k: int = 8, *, ids: bool = False
) -> list[Sample]:
    """Recommend to some users of a split, chosen by the length of their histories and never by the result.

    With `ids` they are called by their raw ids, otherwise by a number. Only a model that `explains` has reasons.
    """
    sizes = np.diff(split.histories.indptr)
    able = np.flatnonzero((sizes > 0) & (np.diff(split.truth.indptr) > 0))
    order = able[np.argsort(sizes[able], kind="stable")]
    quantiles = (np.arange(count) + 0.5) / max(count, 1)
    users = list(dict.fromkeys(int(order[int(q * len(order))]) for q in quantiles)) if len(order) else []
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
    columns, scores = model.recommend(history, k, seen=seen, allow=cast(Any, split.candidates))
    weight: dict[int, float] = dict.fromkeys(history.indices.tolist(), 0.0)
    picks = []
    for column, score in zip(columns[0].tolist(), scores[0].tolist(), strict=True):
        if column < 0:
            break
        because = _explain(model, history, column) if model.explains else []
        for other, share in because:
            weight[other] += max(share, 0.0)
        reasons = [(catalog.record(other), share) for other, share in because[:2] if share > 0]
        picks.append(Pick(catalog.record(column), float(score), column in truth, reasons))
    heaviest = sorted(weight, key=lambda column: (-weight[column], column))[:_SHOWN_HISTORY]
    return Sample(label, [catalog.record(column) for column in heaviest], len(weight), len(truth), picks)


def _explain(model: Any, history: Any, column: int) -> list[tuple[int, float]]:
    """Return the columns of a history with their shares in the score of an item, the largest first."""
    [name] = model.items_.take(np.array([column]))
    explanation = model.explain(history, name)
    columns = model.items_.positions(explanation.items)
    return [(int(c), float(share)) for c, share in zip(columns, explanation.shares, strict=True)]


def find_neighbours(model: HistoryRecommender, k: int = 5) -> list[Neighbours]:
    """Return the items similar to four others: the most popular, one of the head, and two of the tail."""
    counts = model.item_counts_
    catalog = Catalog(model)
    order = catalog.popular[counts[catalog.popular] > 0]
    if len(order) < 2:
        return []
    ranks = dict.fromkeys(int(share * (len(order) - 1)) for share in (0.0, 0.05, 0.3, 0.6))
    return [
        Neighbours(
            catalog.record(column),
            [
                (cast(Item, other), other["similarity"])
                for other in catalog.similar(column, min(k, len(counts) - 1))
                if other["similarity"] > 0
            ],
        )
        for column in (int(order[rank]) for rank in ranks)
    ]
