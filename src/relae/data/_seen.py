"""Items that users have had beside their histories, and the users whom filters dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from relae.data._matrix import canonical_matrix, entries_of_rows
from relae.data.ids import Ids
from relae.errors import DataError
from relae.linalg import as_csr


@dataclass(frozen=True)
class Seen:
    """Pairs of users and items that a user has had and that are no part of the history.

    Its items need not be those of the interactions: an item that filters dropped there may be known to a model.

    Attributes
    ----------
    pairs : (users, items) csr_array of bool
        Indices sorted, no duplicates.
    items : Ids
        The raw ids of the columns of `pairs`.
    times : (stored entries of pairs,) of int64, optional
        The first time of each pair.
    """

    pairs: sp.csr_array
    items: Ids
    times: NDArray[np.int64] | None = None

    def of_users(self, rows: NDArray[np.int64]) -> Seen:
        """Return the pairs of some users, in the order of the rows."""
        times = None if self.times is None else self.times[entries_of_rows(self.pairs.indptr, rows)]
        return Seen(self.pairs[rows], self.items, times)

    def on(self, items: Ids) -> Seen | None:
        """Return the pairs with columns as `items` has them; None if there are none. Other items are left out."""
        if self.items is items or self.items == items:
            return self if self.pairs.nnz else None
        columns = items.positions(self.items.values)[self.pairs.indices]
        known = columns >= 0
        if not known.any():
            return None
        rows, columns = self._rows()[known], columns[known]
        times = None if self.times is None else self.times[known][np.lexsort((columns, rows))]
        return Seen(pattern(rows, columns, (self.pairs.shape[0], len(items))), items, times)

    def before(self, moments: ArrayLike) -> Seen | None:
        """Return the pairs of an earlier time than a moment, or than the moment of their user; None without times."""
        if self.times is None:
            return None
        n_users = self.pairs.shape[0]
        kept = self.times < np.broadcast_to(np.asarray(moments), (n_users,))[self._rows()]
        columns = self.pairs.indices[kept]
        return Seen(pattern(self._rows()[kept], columns, (n_users, len(self.items))), self.items, self.times[kept])

    def without(self, matrix: sp.csr_array) -> Seen:
        """Return the pairs that are not among the cells of a matrix with the same columns."""
        left = without_cells(self.pairs, matrix)
        if self.times is None or left.nnz == self.pairs.nnz:
            return Seen(left, self.items, self.times)
        positions = sp.csr_array((np.arange(1, self.pairs.nnz + 1), self.pairs.indices, self.pairs.indptr), left.shape)
        return Seen(left, self.items, self.times[positions.multiply(left).tocsr().data - 1])

    def _rows(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.pairs.shape[0]), np.diff(self.pairs.indptr))


@dataclass(frozen=True)
class Dropped:
    """Users who are in the source of the data and were dropped by a filter.

    Attributes
    ----------
    users : Ids
    reasons : (users,) of uint8
        For each user the place in `filters` of the filter that took the last of the user's interactions.
    filters : tuple of str
        Such as "min_user_count=5".
    """

    users: Ids
    reasons: NDArray[np.uint8]
    filters: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.reasons.shape != (len(self.users),) or self.reasons.dtype != np.uint8:
            raise DataError(f"there are {len(self.users):,} dropped users, and {self.reasons.shape} reasons")
        if int(self.reasons.max(initial=0)) >= max(len(self.filters), 1):
            raise DataError(f"a dropped user has the reason {self.reasons.max()}, of {len(self.filters)} filters")

    def why(self, user: Any) -> str | None:
        """Return the filter that dropped a user, None if none has."""
        [row] = self.users.positions([user])
        return None if row < 0 else self.filters[self.reasons[row]]

    def without(self, users: Any) -> Dropped:
        """Return those who are not among some users."""
        rows = self.users.positions(users)
        kept = np.setdiff1d(np.arange(len(self.users)), rows[rows >= 0])
        return Dropped(Ids(self.users.values[kept]), self.reasons[kept], self.filters)

    def counts(self) -> dict[str, int]:
        """Return how many users each filter dropped."""
        counts = np.bincount(self.reasons, minlength=len(self.filters)).tolist()
        return dict(zip(self.filters, counts, strict=True))


def pattern(rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int]) -> sp.csr_array:
    """Return the matrix that is True at some cells."""
    cells = sp.coo_array((np.ones(len(rows), dtype=bool), (rows, columns)), shape=shape)
    return as_csr(cells, bool)


def pattern_of(matrix: Any) -> sp.csr_array:
    """Return where a matrix is not zero."""
    csr = canonical_matrix(matrix)
    return sp.csr_array((np.ones(csr.nnz, dtype=bool), csr.indices, csr.indptr), shape=csr.shape)


def without_cells(pairs: sp.csr_array, matrix: sp.csr_array) -> sp.csr_array:
    """Return the pairs that are not among the cells of a matrix of the same shape."""
    left = sp.csr_array((np.ones(pairs.nnz, np.int8), pairs.indices, pairs.indptr), shape=pairs.shape)
    right = sp.csr_array((np.ones(matrix.nnz, np.int8), matrix.indices, matrix.indptr), shape=matrix.shape)
    return as_csr(left > right, bool)
