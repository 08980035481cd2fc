"""From data and a fitted model to the plain values of a report."""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from relae import algebra
from relae.analysis.report._data import DataFacts, Fit, Item, Neighbours, Sample, Suggestion
from relae.data import Interactions
from relae.evaluation import Split, head_items
from relae.models import LinearAutoencoder
from relae.recommender import HistoryRecommender

_VERTICES = 200  # of a curve: more cannot be seen
_SHOWN_HISTORY = 10


def data_facts(data: Interactions) -> DataFacts:
    """Return a data set in numbers, its popularity curve and how long histories are."""
    found = data.statistics()
    per_item = -np.sort(-np.bincount(data.matrix.indices, minlength=data.n_items))
    shares = np.concatenate([[0.0], np.cumsum(per_item) / max(int(per_item.sum()), 1)])
    at = np.unique(np.linspace(0, data.n_items, _VERTICES + 1).round().astype(int))
    return DataFacts(
        users=found.users,
        items=found.items,
        interactions=found.interactions,
        density=found.density,
        gini=found.gini,
        per_user=(found.per_user.min, found.per_user.median, found.per_user.max),
        per_item=(found.per_item.min, found.per_item.median, found.per_item.max),
        popularity=[(float(i / max(data.n_items, 1)), float(shares[i])) for i in at],
        top_share=float(shares[int(np.ceil(round(0.2 * data.n_items, 9)))]),
        histories=_histogram(np.diff(data.matrix.indptr)),
        features=0 if data.features is None else data.features.n_features,
    )


def _histogram(sizes: NDArray[np.integer[Any]]) -> list[tuple[int, int, int]]:
    """Count users by the number of their items, in bins that grow by half octaves."""
    present = sizes[sizes > 0]
    if len(present) == 0:
        return []
    low, high = int(present.min()), int(present.max())
    edges = np.unique(np.geomspace(low, high + 1, min(16, high - low + 2)).round().astype(int))
    counts, _ = np.histogram(present, bins=edges)
    pairs = zip(edges[:-1], edges[1:], counts, strict=True)
    return [(int(start), int(stop) - 1, int(count)) for start, stop, count in pairs]


def fit_facts(model: LinearAutoencoder, here: float, ends: tuple[str, str]) -> Fit:
    """Return how a model was fitted, and how many items each ξ sets free; `ends` name the models at ξ = 0 and ξ = 1."""
    xis = np.linspace(0.0, 1.0, 101)
    return Fit(
        solver=model.plan_.solver,
        dtype=model.plan_.dtype,
        residual=float(model.residual_),
        users=model.n_users_,
        items=len(model.items_),
        ends=ends,
        unconstrained=[
            (float(xi), algebra.unconstrained_share(model.penalty_, model.inverse_diagonal_, xi)) for xi in xis
        ],
        unconstrained_here=algebra.unconstrained_share(model.penalty_, model.inverse_diagonal_, here),
    )


class _Items:
    """Items of a fitted model as a reader sees them."""

    def __init__(self, model: HistoryRecommender) -> None:
        self.model = model
        self.head = head_items(model.item_counts_)

    def __call__(self, column: int) -> Item:
        identity = str(self.model.items_.take(np.array([column]))[0])
        title = None if self.model.titles_ is None else self.model.titles_[column]
        return Item(
            name=identity if title is None or not str(title).strip() else str(title),
            id=identity,
            users=int(self.model.item_counts_[column]),
            is_tail=not bool(self.head[column]),
        )


def samples(model: HistoryRecommender, split: Split, count: int = 5, k: int = 8, *, ids: bool = False) -> list[Sample]:
    """Recommend to some users of a split, chosen by the length of their histories and never by the result.

    With `ids` they are called by their raw ids, otherwise by a number: a report is mailed around. Only a linear model
    has reasons.
    """
    sizes = np.diff(split.histories.indptr)
    able = np.flatnonzero((sizes > 0) & (np.diff(split.truth.indptr) > 0))
    order = able[np.argsort(sizes[able], kind="stable")]
    quantiles = (np.arange(count) + 0.5) / max(count, 1)
    chosen = list(dict.fromkeys(int(order[int(q * len(order))]) for q in quantiles)) if len(order) else []
    item = _Items(model)
    k = min(k, split.n_candidates)
    found = []
    for number, user in enumerate(chosen, start=1):
        history = split.histories[[user]]
        truth = set(split.truth.indices[slice(*split.truth.indptr[user : user + 2])].tolist())
        seen = None if split.seen is None else split.seen[[user]]
        columns, scores = model.recommend(history, k, seen=seen, allow=cast(Any, split.candidates))
        weight: dict[int, float] = dict.fromkeys(history.indices.tolist(), 0.0)
        suggestions = []
        for column, score in zip(columns[0].tolist(), scores[0].tolist(), strict=True):
            if column < 0:
                break
            because = _because(model, history, column) if isinstance(model, LinearAutoencoder) else []
            for other, share in because:
                weight[other] += max(share, 0.0)
            reasons = [(item(other), share) for other, share in because[:2] if share > 0]
            suggestions.append(Suggestion(item(column), float(score), column in truth, reasons))
        heaviest = sorted(weight, key=lambda column: (-weight[column], column))[:_SHOWN_HISTORY]
        label = f"User {split.users.take(np.array([user]))[0]}" if ids else f"User {number}"
        found.append(Sample(label, [item(c) for c in heaviest], len(weight), len(truth), suggestions))
    return found


def _because(model: LinearAutoencoder, history: Any, column: int) -> list[tuple[int, float]]:
    """Return the columns of a history with their shares in the score of an item, the largest first."""
    [name] = model.items_.take(np.array([column]))
    explanation = model.explain(history, name)
    columns = model.items_.positions(explanation.items)
    return [(int(c), float(share)) for c, share in zip(columns, explanation.shares, strict=True)]


def neighbours(model: LinearAutoencoder, k: int = 5) -> list[Neighbours]:
    """Return what is similar to four items: the most popular, one of the head, and two of the tail."""
    counts = model.item_counts_
    order = np.lexsort((np.arange(len(counts)), -counts))
    order = order[counts[order] > 0]
    if len(order) < 2:
        return []
    places = dict.fromkeys(int(share * (len(order) - 1)) for share in (0.0, 0.05, 0.3, 0.6))
    item = _Items(model)
    found = []
    for place in places:
        column = int(order[place])
        [name] = model.items_.take(np.array([column]))
        ids, scores = model.similar_items(name, min(k, len(counts) - 1))
        columns = model.items_.positions(ids)
        pairs = [(item(int(c)), float(s)) for c, s in zip(columns, scores, strict=True) if c >= 0 and s > 0]
        found.append(Neighbours(item(column), pairs))
    return found
