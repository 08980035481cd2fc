"""Facts about a data set and a fit, as plain values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae import algebra
from relae.data import Interactions

_VERTICES = 200  # of a curve: more cannot be seen


@dataclass(frozen=True)
class DataFacts:
    """A data set in numbers, and two curves."""

    users: int
    items: int
    interactions: int
    density: float
    gini: float
    per_user: tuple[int, float, int]  # least, middle, largest
    per_item: tuple[int, float, int]
    popularity: Sequence[tuple[float, float]]  # share of items, most popular first; their share of interactions
    top_share: float  # of interactions with the most popular fifth of the items
    histories: Sequence[tuple[int, int, int]]  # from, up to and including, users with so many items
    features: int = 0  # of the items


@dataclass(frozen=True)
class FitFacts:
    """The last fit of a linear autoencoder, to train and validation."""

    solver: str
    dtype: str
    residual: float
    users: int
    items: int
    ends: tuple[str, str]  # the models at ξ = 0 and ξ = 1
    unconstrained: Sequence[tuple[float, float]]  # ξ; share of the items without a constraint there
    unconstrained_here: float  # at the chosen ξ


def describe_data(data: Interactions) -> DataFacts:
    """Return a data set in numbers, its popularity curve and how long histories are."""
    counts = data.statistics()
    per_item = -np.sort(-np.bincount(data.matrix.indices, minlength=data.n_items))
    shares = np.concatenate([[0.0], np.cumsum(per_item) / max(int(per_item.sum()), 1)])
    at = np.unique(np.linspace(0, data.n_items, _VERTICES + 1).round().astype(int))
    return DataFacts(
        users=counts.users,
        items=counts.items,
        interactions=counts.interactions,
        density=counts.density,
        gini=counts.gini,
        per_user=(counts.per_user.min, counts.per_user.median, counts.per_user.max),
        per_item=(counts.per_item.min, counts.per_item.median, counts.per_item.max),
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


def describe_fit(model: Any, here: float, ends: tuple[str, str]) -> FitFacts:
    """Return how a linear autoencoder was fitted, and how many items are without a constraint at each ξ.

    `here` is the chosen ξ, and `ends` are the names of the models at ξ = 0 and ξ = 1.
    """
    xis = np.linspace(0.0, 1.0, 101)
    return FitFacts(
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
