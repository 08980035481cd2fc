"""Compiled loops over pairs of items. Private to `relae.linalg`; imported late, like the other kernels."""

import numpy as np
from numba import njit, prange

from relae.linalg._local_kernels import _nearest_of


@njit(parallel=True, cache=True, nogil=True)
def nearest_others(items, indptr, indices, values, t_indptr, t_indices, t_values, weights, threads, out, close, sizes):
    """Neighbours of some items and how close they are : out, close (items, count), by rising column; sizes count."""
    block, count = out.shape
    n = len(indptr) - 1
    for thread in prange(threads):
        sums = np.zeros(n, values.dtype)
        touched = np.empty(n, np.int32)
        scores = np.empty(count + 1, np.float64)
        ids = np.empty(count + 1, np.int32)
        for row in range(thread, block, threads):
            size = _nearest_of(
                items[row], indptr, indices, values, t_indptr, t_indices, t_values, weights, sums, touched, scores, ids
            )
            at = 0
            for place in np.argsort(ids[:size]):
                if ids[place] != items[row]:
                    out[row, at], close[row, at] = ids[place], scores[place]
                    at += 1
            sizes[row] = at
