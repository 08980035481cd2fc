"""What a model is fitted to beside users: features of items, and items that have nothing else."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae import algebra
from relae.data import Interactions, as_features
from relae.distributed import Partitions
from relae.errors import ApproximationWarning, DataError, PlanError
from relae.linalg import Csr, gram_diagonal, transpose
from relae.solvers import DualInverse, Inverse, NewItems, solve


def features_of(given: Any, weight: float, data: Interactions | Partitions) -> Csr | None:
    """Return the features of the items : (items, features), if there are any and they count."""
    if isinstance(weight, bool) or not isinstance(weight, (int, float, np.number)) or not 0 <= weight < np.inf:
        raise ValueError(f"feature_weight must be a finite number of at least 0, got {weight!r}")
    if isinstance(data, Partitions):
        if given is not None:
            raise DataError("item features need interactions in memory, not partitions")
        return None
    found = data.features if given is None else given
    if found is None or weight == 0:
        return None
    matrix = as_features(found, data.n_items).matrix
    return matrix if matrix.nnz else None


def with_new_items(
    inverse: Inverse, item_counts: NDArray[np.int64], features: Csr, weight: float, l2: float, dropout: float
) -> Inverse:
    """Return the inverse with the columns of items without users fitted to the features alone.

    The penalty of such an item is the same in both: its part of the Gram is that of its features.
    """
    new = np.flatnonzero((item_counts == 0) & (np.diff(features.indptr) > 0))
    if len(new) == 0:
        return inverse
    rows = transpose(features)  # (features, items)
    row_weights = np.full(rows.shape[0], float(weight))
    penalty = algebra.penalty(gram_diagonal(rows, row_weights), l2, dropout)
    try:
        found = solve(rows, penalty, row_weights=row_weights, solver="dual", dtype=inverse.dtype.name)
    except PlanError as error:
        warnings.warn(
            f"{len(new):,} items have no users, and {rows.shape[0]:,} features are too many for a square of them: "
            f"these items are fitted as if every user had refused them ({error})",
            ApproximationWarning,
            stacklevel=4,
        )
        return inverse
    assert isinstance(found.inverse, DualInverse)
    return NewItems(inverse, found.inverse, new)
