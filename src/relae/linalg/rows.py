"""Rows of a sparse matrix, found by their content."""

import numpy as np
from numpy.typing import NDArray

from relae.linalg.sparse import Csr


def is_same(x: Csr, y: Csr) -> bool:
    """Return whether two sparse matrices of one shape have the same values everywhere."""
    return bool((x - y).count_nonzero() == 0)


class RowIndex:
    """Finds rows of a sparse matrix by their content."""

    def __init__(self, x: Csr) -> None:
        self.matrix = x
        # the sum of a random code per item, times the value, is a row's fingerprint; equality is checked afterwards
        self._codes = np.random.default_rng(0).random(x.shape[1])
        fingerprints = self._fingerprints(x)
        self._order = np.argsort(fingerprints, kind="stable")
        self._sorted = fingerprints[self._order]

    def _fingerprints(self, rows: Csr) -> NDArray[np.float64]:
        filled = np.diff(rows.indptr) > 0
        result = np.zeros(rows.shape[0])
        if filled.any():
            terms = self._codes[rows.indices] * rows.data
            result[filled] = np.add.reduceat(terms, rows.indptr[:-1][filled])
        return result

    def find(self, rows: Csr) -> NDArray[np.int64]:
        """Return the position of an equal row of the matrix for each row, −1 where there is none."""
        at = np.searchsorted(self._sorted, self._fingerprints(rows))
        twins = self._order[np.minimum(at, len(self._order) - 1)]
        lengths = np.diff(rows.indptr)
        twins = np.where(lengths == np.diff(self.matrix.indptr)[twins], twins, -1)
        candidates = np.flatnonzero(twins >= 0)
        if len(candidates):
            # the stored elements of the candidates and of their supposed twins, one below the other
            ours, theirs = rows[candidates], self.matrix[twins[candidates]]
            differs = (ours.indices != theirs.indices) | (ours.data != theirs.data)
            owner = np.repeat(np.arange(len(candidates)), lengths[candidates])
            twins[candidates[np.unique(owner[differs])]] = -1
        return twins

    def all(self, row: Csr) -> NDArray[np.int64]:
        """Return the positions of all rows of the matrix that are equal to one row, in rising order."""
        [fingerprint] = self._fingerprints(row)
        first, last = (np.searchsorted(self._sorted, fingerprint, side=side) for side in ("left", "right"))
        near = self._order[first:last]
        return np.sort([at for at in near.tolist() if is_same(self.matrix[[at]], row)]).astype(np.int64)
