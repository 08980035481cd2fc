"""The largest entries of each row, in an order that never depends on chance."""

import numpy as np
from numpy.typing import NDArray

from relae.linalg._run import run
from relae.linalg.sparse import Csr, Dense, Vector


def top_k(
    values: Dense,
    k: int,
    scale: Vector | None = None,
    skip: Csr | None = None,
    hints: NDArray[np.int64] | None = None,
    offset: Vector | None = None,
) -> tuple[NDArray[np.int64], Dense]:
    """Return columns and values of the k largest entries of each row of values · scale + offset, largest first.

    Ties go to the lower column. NaN and −inf are never chosen, nor are the stored entries of `skip` (same shape as
    `values`, sorted indices). Where fewer than k are left, the column is −1 and the value −inf.

    hints : (rows, k), k different columns of each row that may be chosen, such as the best of another scale. The nearer
    they are to the best of this one, the less has to be sorted; the result is the same.
    """
    rows, n = values.shape
    scale = np.ones(n, values.dtype) if scale is None else np.ascontiguousarray(scale, values.dtype)
    offset = np.empty(0, values.dtype) if offset is None else np.ascontiguousarray(offset, values.dtype)
    if skip is None:
        skip_indptr, skip_indices = np.zeros(rows + 1, np.int64), np.zeros(0, np.int32)
    else:
        skip_indptr, skip_indices = skip.indptr.astype(np.int64), skip.indices.astype(np.int32, copy=False)
    columns = np.empty((rows, k), np.int64)
    best = np.empty((rows, k), values.dtype)
    if k > 0:
        hints = np.empty((rows, 0), np.int64) if hints is None else np.ascontiguousarray(hints, np.int64)
        run("top_k", values, scale, offset, skip_indptr, skip_indices, hints, columns, best)
    return columns, best


def load_kernels() -> None:
    """Load the compiler and the kernels, which takes most of a second at their first use in a process."""
    top_k(np.zeros((1, 1), np.float32), 1)
