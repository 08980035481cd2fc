"""Features of items: categories, tags, numbers, embeddings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from relae.data._matrix import canonical_matrix
from relae.errors import DataError
from relae.linalg import Csr


@dataclass(frozen=True, eq=False)
class Features:
    """The features of items: a row per item, a column per feature.

    Parameters
    ----------
    matrix
        Items by features, sparse or dense, finite; it may have negative values.
    names
        What the features are called, one name per column; "feature 0", "feature 1", … if not given.

    Attributes
    ----------
    matrix : csr_array of float32
        Items by features, indices sorted, no duplicates, no stored zeros.
    names : ndarray of object
        One string per column, such as "genre=Drama" or "year".
    """

    matrix: Csr
    names: NDArray[np.object_]

    def __init__(self, matrix: Any, names: Iterable[Any] | None = None) -> None:
        csr = canonical_matrix(matrix, features=True)
        listed = [f"feature {j}" for j in range(csr.shape[1])] if names is None else [str(name) for name in names]
        if len(listed) != csr.shape[1]:
            raise DataError(f"{len(listed):,} names for a matrix with {csr.shape[1]:,} features: give one per feature")
        object.__setattr__(self, "matrix", csr)
        object.__setattr__(self, "names", np.array(listed, dtype=object))

    @property
    def n_items(self) -> int:
        """The number of rows."""
        return int(self.matrix.shape[0])

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.matrix.shape[1])

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.names[:3]))
        dots = ", …" if self.n_features > 3 else ""
        return f"Features({self.n_items:,} items × {self.n_features:,} features: {shown}{dots})"

    def take(self, columns: ArrayLike) -> Features:
        """Return the rows of some items, in that order; the position -1 gives an empty row."""
        rows = np.asarray(columns, dtype=np.int64)
        if rows.size and (rows.min() < -1 or rows.max() >= self.n_items):
            raise IndexError(f"positions must lie in [-1, {self.n_items}), got {rows.min()} to {rows.max()}")
        indptr = self.matrix.indptr
        # With one more row at the end, which is empty, -1 means that row.
        longer = (self.matrix.data, self.matrix.indices, np.append(indptr, indptr[-1]))
        return Features(sp.csr_array(longer, shape=(self.n_items + 1, self.n_features))[rows], self.names)

    def beside(self, other: Features) -> Features:
        """Return these features and others of the same items, side by side."""
        twice = sorted(set(self.names) & set(other.names))
        if twice:
            raise DataError(f"the items have the feature {twice[0]!r} already: rename the column, or leave it out")
        return Features(sp.hstack([self.matrix, other.matrix], format="csr"), [*self.names, *other.names])


def as_features(matrix: Any, n_items: int) -> Features:
    """Return features, or a matrix of them, after a check that they are of that many items."""
    features = matrix if isinstance(matrix, Features) else Features(matrix)
    if features.n_items != n_items:
        raise DataError(f"{features.n_items:,} rows of features for {n_items:,} items: give one row per item")
    return features
