"""The base of models that learn from the order of interactions."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from relae.data import Interactions, InteractionsLike
from relae.errors import DataError, Option
from relae.linalg import Csr, Vector, time_ranks
from relae.recommender._base import HistoryRecommender


class SequenceRecommender(HistoryRecommender):
    """A model that needs times to be fitted, and the order of a history to score it.

    Interactions have times, the items of a list are in the order of time with the latest last, and a sparse matrix
    comes with `times`. Of items with equal times, the one in the later column is later. Sets, mappings and matrices
    without times have no order: what a model makes of them is its own.
    """

    uses_times: ClassVar[bool] = True

    def to_interactions(self, data: InteractionsLike) -> Interactions:
        """Return data as Interactions; a DataError if there are none, or if they have no times."""
        interactions = super().to_interactions(data)
        if interactions.times is None:
            raise DataError(
                f"{type(self).__name__} learns from the order of interactions, and these have no times: name their "
                "column, as in ",
                Option("timestamp", "ts", python="Interactions.read(…, timestamp='ts')"),
            )
        return interactions


LEAST = 1e-30
"""What an item of a history weighs at least: what a user has had stays seen."""

_NOTHING = 1e-8  # of the largest weight of a history: what adds less than the rounding of a score is not read


def weighted(batch: Csr, weights: Vector) -> Csr:
    """Return histories whose entries count so much more or less; none of them becomes 0."""
    values = np.maximum(batch.data * weights, LEAST).astype(np.float32)
    return type(batch)((values, batch.indices, batch.indptr), shape=batch.shape)


def without_faded(batch: Csr) -> Csr:
    """Return histories without the items whose weight is next to nothing beside the largest of the same history."""
    sizes = np.diff(batch.indptr)
    filled = sizes > 0
    largest = np.zeros(len(sizes), batch.dtype)
    if filled.any():
        largest[filled] = np.maximum.reduceat(batch.data, batch.indptr[:-1][filled])
    kept = batch.data > _NOTHING * np.repeat(largest, sizes)
    if kept.all():
        return batch
    indptr = np.concatenate([[0], np.cumsum(kept)])[batch.indptr]
    return type(batch)((batch.data[kept], batch.indices[kept], indptr), shape=batch.shape)


def latest_ranks(batch: Csr, times: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the place of each stored entry in its history : 1 for the latest; 1 for all if there are no times."""
    return np.ones(batch.nnz, np.int64) if times is None else time_ranks(batch, times)
