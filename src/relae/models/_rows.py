"""The rows that a model is fitted to: rows of users and of features, and items that have nothing but features."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae import algebra
from relae._common.checks import check_finite
from relae.algebra import Fit
from relae.data import Interactions, as_features
from relae.distributed import Partitions
from relae.errors import ApproximationWarning, DataError, Option, ParameterError, PlanError
from relae.linalg import Csr, as_csr, gram_diagonal, transpose
from relae.solvers import Dual, DualInverse, Inverse, NewItems, Rows, solve


@dataclass(frozen=True)
class TrainingRows:
    """The rows of a fit, a row per feature and then one per user, and what is counted in them."""

    rows: Rows
    item_counts: NDArray[np.int64]
    total: float
    """The sum of the users' squared values, each times the user's weight."""
    squares: NDArray[np.float64]
    """The sum of the users' squared values of each item : (items,)."""
    diagonal: NDArray[np.float64]
    """diag(XᵀX) : (items,), features with their weight. Norms of users leave it, and so the penalty, as it is."""

    @classmethod
    def of(cls, data: Interactions, fit: Fit, features: Csr | None, feature_weight: float) -> "TrainingRows":
        """Return the rows of interactions that are in memory."""
        users = data.matrix
        x, weights = stacked(users, fit, features, feature_weight)
        counts = np.bincount(users.indices, minlength=data.n_items)
        diagonal = squares = gram_diagonal(users)
        total = (squares if weights is None else gram_diagonal(users, weights[-data.n_users :])).sum()
        if features is not None:
            diagonal = squares + gram_diagonal(transpose(features), np.full(features.shape[1], float(feature_weight)))
        return cls(Rows(x, weights), counts, float(total), squares, diagonal)

    @classmethod
    def of_partitions(cls, data: Partitions, fit: Fit) -> "TrainingRows":
        """Return the rows of partitions, which only a cluster reads."""
        if fit.user_norm != 0:
            raise DataError(
                Option("user_norm", fit.user_norm), " needs interactions in memory; partitions count users as 1"
            )
        return cls(Rows(data), data.item_counts, float(data.squares.sum()), data.squares, data.squares)


def stacked(
    x: Csr, fit: Fit, features: Csr | None = None, feature_weight: float = 1.0
) -> tuple[Csr, NDArray[np.float64] | None]:
    """Return rows of features and then of users, and the weights of the rows; None where all count as 1."""
    weights = algebra.row_weights(np.diff(x.indptr), fit)
    if features is None:
        return x, weights
    weights = np.ones(x.shape[0]) if weights is None else weights
    whole = as_csr(sp.vstack([features.T, x]), x.dtype)
    return whole, np.concatenate([np.full(features.shape[1], float(feature_weight)), weights])


def features_of(item_features: Any, weight: float, data: Interactions | Partitions) -> Csr | None:
    """Return the features of the items : (items, features), if there are any and they count."""
    check_finite("feature_weight", weight)
    if isinstance(data, Partitions):
        if item_features is not None:
            raise DataError("item features need interactions in memory, not partitions")
        return None
    features = data.features if item_features is None else item_features
    if features is None or weight == 0:
        return None
    matrix = as_features(features, data.n_items).matrix
    return matrix if matrix.nnz else None


def new_items(item_counts: NDArray[np.int64], features: Csr) -> NDArray[np.int64]:
    """Return the items that have features and no users."""
    return np.flatnonzero((item_counts == 0) & (np.diff(features.indptr) > 0))


def check_new_items(item_counts: NDArray[np.int64], features: Csr, l2: float) -> None:
    """Raise a ValueError if there are new items, and some item would have no penalty in the inverse of features."""
    new, bare = len(new_items(item_counts, features)), int(np.count_nonzero(np.diff(features.indptr) == 0))
    if l2 == 0 and new and bare:
        raise ParameterError(
            f"{new:,} items have no users and are fitted to the features alone, where {bare:,} of "
            f"{len(item_counts):,} items have no features, and with ",
            Option("l2", l2),
            " no penalty: new items need an l2 above 0",
        )


def with_new_items(inverse: Inverse, item_counts: NDArray[np.int64], features: Csr, weight: float, fit: Fit) -> Inverse:
    """Return the inverse with the columns of items without users fitted to the features alone.

    The penalty of such an item is the same in both: its part of the Gram is that of its features.
    """
    new = new_items(item_counts, features)
    if len(new) == 0:
        return inverse
    rows = transpose(features)  # (features, items)
    row_weights = np.full(rows.shape[0], float(weight))
    penalty = algebra.penalty_of(gram_diagonal(rows, row_weights), fit)
    try:
        solution = solve(Rows(rows, row_weights), penalty, solver=Dual(dtype=inverse.dtype.name))
    except PlanError as error:
        warnings.warn(
            ApproximationWarning(
                f"{len(new):,} items have no users, and {rows.shape[0]:,} features are too many for a square of them: "
                "these items are fitted as if every user had refused them (",
                error,
                ")",
            ),
            stacklevel=4,
        )
        return inverse
    assert isinstance(solution.inverse, DualInverse)
    return NewItems(inverse, solution.inverse, new)
