"""Nearest neighbours: what is similar to what a user has, by its users or by its features."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae._common.checks import check_finite
from relae._common.progress import Progress
from relae.baselines._parameters import NEIGHBOURS
from relae.data import Features, InteractionsLike, as_features
from relae.errors import DataError, Option, Text
from relae.linalg import (
    Arrays,
    Csr,
    Dense,
    Layout,
    csr_from_parts,
    csr_layout,
    csr_parts,
    most_similar,
    sparse_sparse,
    transpose,
)
from relae.ranking import rank
from relae.recommender import (
    HistoryRecommender,
    Parameter,
    Range,
    State,
    latest_ranks,
    weighted,
    without_faded,
)
from relae.solvers import closeness, ensure_memory

_BATCH_BYTES = 64e6
_DENSE = 0.1  # of all cells: from here on a dense product is quicker
_NOTHING = 1e-6  # a cosine of 0, after rounding
_FALLBACK = 1e-6  # the score of the most popular item without a vote


class Similarity(HistoryRecommender):
    """A history x gets the scores x S, with a sparse S that is kept with the model.

    Attributes
    ----------
    similarity_ : (items, items) sparse
        S.
    """

    similarity_: Csr

    def state(self, form: str) -> State:
        state = super().state(form)
        return State(state.facts, {**state.arrays, **csr_parts("similarity", self.similarity_)})

    @classmethod
    def layout(cls, facts: Mapping[str, Any], names: Collection[str]) -> Layout:
        return {**super().layout(facts, names), **csr_layout("similarity", "items", mapped=True)}

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        self.similarity_ = csr_from_parts("similarity", arrays, (len(self.items_), len(self.items_)), copy=False)

    def project(self, batch: Csr) -> Dense:
        return sparse_sparse(batch, self.similarity_)

    def users_at_once(self) -> int:
        return int(_BATCH_BYTES / (self.score_dtype.itemsize * len(self.items_)))

    @property
    def score_dtype(self) -> np.dtype[np.floating]:
        return cast("np.dtype[np.floating]", self.similarity_.dtype)


class Neighbours(Similarity):
    """Column j of S has the similarities of item j to its nearest items."""

    neighbours: int

    def _count(self, n_items: int) -> int:
        """Return the number of neighbours that an item can have; a PlanError if they do not fit into memory."""
        count = min(int(self.neighbours), n_items - 1)
        what = f"{count:,} neighbours of each of {n_items:,} items"
        ensure_memory(2.0 * 8 * n_items * count, what, Text("fit with fewer ", Option("neighbours")))
        return count


class ItemKNN(Neighbours):
    """Item-based nearest neighbours: an item is scored by its similarity to the items of the history.

    With G = XᵀX, the similarity of two items is

        s_ij = G_ij / √((G_ii + shrink) (G_jj + shrink))

    and a history x gets the scores x S. Column j of S has the `neighbours` largest s_ij of other items i, and zeros:
    each item is judged by those of its own neighbours that are in the history. With rows in place of columns, where
    each item of the history votes for its own neighbours, less is found: an NDCG@100 of 0.32 for 0.35 on ML-1M.

    Parameters
    ----------
    neighbours : int
        Others that an item is judged by; ties go to the lower column.
    nearest_by : "cosine" or "count"
        "count" takes G_ij itself for the similarity.
    shrink : float
        Similarity that rests on few users is made smaller, as if each item had so many more users, each with nothing
        else. 0 is the plain cosine. Counts are not shrunk.

    Attributes
    ----------
    similarity_ : (items, items) sparse
        S.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        NEIGHBOURS,
        Parameter("nearest_by", "cosine", "the measure of similarity", choices=("cosine", "count")),
        Parameter(
            "shrink",
            0.0,
            "the number of users added to each item, which reduces similarities based on few users",
            low=0,
            search=Range(0.1, 1000, log=True),
        ),
    )

    def __init__(self, neighbours: int = 50, nearest_by: str = "cosine", shrink: float = 0.0) -> None:
        self.neighbours, self.nearest_by, self.shrink = neighbours, nearest_by, shrink

    def fit(self, data: InteractionsLike, *, progress: Progress | None = None) -> Self:
        """Fit to interactions, or to a sparse matrix (users × items); an earlier fit is kept until this one is done."""
        self.check_params()
        interactions = self.to_interactions(data)
        x = interactions.matrix
        count = self._count(x.shape[1])
        weights = closeness(x, self.nearest_by)
        if self.nearest_by == "cosine":
            weights /= np.sqrt(1.0 + self.shrink * weights**2)  # from 1/√G_ii to 1/√(G_ii + shrink)
        self.similarity_ = transpose(most_similar(x, weights, count, _report(progress)))  # from rows to columns
        self.remember(interactions)
        return self


class ContentKNN(Neighbours):
    """Nearest neighbours by content: an item is scored by the cosine of its features with those of the history's items.

    With f_i the features of item i, the similarity of two items is

        s_ij = f_i·f_j / (|f_i| |f_j|)

    and a history x gets the scores x S. Column j of S has the `neighbours` largest s_ij of other items i, as far as
    they are above 0. Interactions are not asked: an item that nobody has is scored like any other.

    Parameters
    ----------
    neighbours : int
        Others that an item is judged by; ties go to the lower column.

    Attributes
    ----------
    similarity_ : (items, items) sparse
        S.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (NEIGHBOURS.with_default(100),)

    uses_features: ClassVar[bool] = True

    def __init__(self, neighbours: int = 100) -> None:
        self.neighbours = neighbours

    def fit(
        self,
        data: InteractionsLike,
        *,
        item_features: Features | Any = None,
        feature_weight: float = 1.0,
        progress: Progress | None = None,
    ) -> Self:
        """Fit to the features of items; an earlier fit is kept until this one is done.

        Parameters
        ----------
        data
            Interactions, or a sparse matrix (users × items), for the items and how many users each has.
        item_features
            Features, or a matrix (items × features), sparse or dense; those of `data` if not given.
        feature_weight
            As of the linear models; cosines are the same for every weight above 0.
        progress
            Called with the name of a stage and the fraction of it that is done.
        """
        interactions = self.to_interactions(data)
        self.check_params()
        check_finite("feature_weight", feature_weight)
        source = interactions.features if item_features is None else item_features
        if source is None or feature_weight == 0:
            raise DataError(
                "there are no features of items to compare: give ",
                Option(
                    "features",
                    "FILE",
                    python="item_features to fit, or interactions that have them, by Interactions.with_features(table)",
                ),
            )
        features = as_features(source, interactions.n_items).matrix
        count = self._count(interactions.n_items)
        self.similarity_ = transpose(_nearest_by_cosine(features, count, _report(progress)))  # from rows to columns
        self.remember(interactions)
        return self


class LastItemKNN(Neighbours):
    """Nearest neighbours of the last items of a history: what comes next is alike what came last.

    The similarity of two items is that of `ItemKNN` by cosine, and each of the latest `last` items of a history votes
    for its own nearest items, the r-th latest with 1/r. Items that get no vote follow by their number of users. In a
    history without an order all items vote alike.

    Parameters
    ----------
    neighbours : int
        Others that an item votes for; ties go to the lower column.
    last : int
        Items of a history that vote.
    shrink : float
        As of `ItemKNN`.

    Attributes
    ----------
    similarity_ : (items, items) sparse
        Row i has the nearest items of item i.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        NEIGHBOURS.with_default(200),
        Parameter(
            "last",
            1,
            "the number of latest items of a history that count",
            low=1,
            whole=True,
            search=Range(1, 20, log=True, whole=True),
        ),
        ItemKNN.PARAMETERS[2],
    )
    uses_times: ClassVar[bool] = True

    def __init__(self, neighbours: int = 200, last: int = 1, shrink: float = 0.0) -> None:
        self.neighbours, self.last, self.shrink = neighbours, last, shrink

    def fit(self, data: InteractionsLike, *, progress: Progress | None = None) -> Self:
        """Fit to interactions, or to a sparse matrix (users × items); only histories need an order."""
        self.check_params()
        interactions = self.to_interactions(data)
        x = interactions.matrix
        weights = closeness(x, "cosine")
        weights /= np.sqrt(1.0 + self.shrink * weights**2)  # from 1/√G_ii to 1/√(G_ii + shrink)
        self.similarity_ = most_similar(x, weights, self._count(x.shape[1]), _report(progress))
        self.remember(interactions)
        return self

    def weigh(self, batch: Csr, times: NDArray[np.int64] | None) -> Csr:
        """Return the r-th latest item with 1/r, and those that do not vote with next to nothing."""
        ranks = latest_ranks(batch, times)
        return weighted(batch, np.where(ranks <= self.last, 1.0 / ranks, 0.0))

    def project(self, batch: Csr) -> Dense:
        popularity = _FALLBACK * self.item_counts_ / max(int(self.item_counts_.max()), 1)
        scores = super().project(without_faded(batch))
        return np.add(scores, popularity.astype(scores.dtype), out=scores)


def _report(progress: Progress | None) -> Callable[[float], None] | None:
    return None if progress is None else lambda done: progress("neighbours", done)


def _nearest_by_cosine(features: Csr, count: int, report: Callable[[float], None] | None) -> Csr:
    """Return the largest positive cosines of each item, in its row : (items, items); features : (items, features).

    Features below 0 are those of numbers and embeddings, which most pairs share: then it is quicker to multiply a few
    rows with all.
    """
    by_feature = transpose(features)
    scale = closeness(by_feature, "cosine")
    if features.data.min(initial=0) >= 0:
        return most_similar(by_feature, scale, count, report)
    n, cosines = len(scale), _cosines(sp.csr_array(sp.diags_array(scale.astype(np.float32)) @ features))
    ids, values, sizes = [np.empty(0, np.int32)], [np.empty(0, np.float32)], [np.zeros(1, np.int64)]
    step = max(1, int(_BATCH_BYTES / (4 * n)))
    for start in range(0, n, step):
        stop = min(start + step, n)
        itself = sp.eye_array(stop - start, n, k=start, dtype=np.float32, format="csr")
        nearest, close = rank(cosines(start, stop), max(count, 1), seen=itself)
        taken = close > _NOTHING
        ids.append(nearest[taken].astype(np.int32))
        values.append(close[taken])
        sizes.append(taken.sum(axis=1))
        if report is not None:
            report(stop / n)
    rows = (np.concatenate(values), np.concatenate(ids), np.cumsum(np.concatenate(sizes)))
    return sp.csr_array(rows, shape=(n, n))


def _cosines(unit: Csr) -> Callable[[int, int], Dense]:
    """Return a function that multiplies some rows with all : (rows, items)."""
    if unit.nnz > _DENSE * unit.shape[0] * unit.shape[1]:
        dense = unit.toarray()
        return lambda start, stop: dense[start:stop] @ dense.T
    others = transpose(unit)
    return lambda start, stop: sparse_sparse(unit[start:stop], others)
