"""The inverse of a positive definite matrix after a change of low rank, at the speed of matrix multiplication.

    (A + UᵀU)⁻¹ = P − WᵀW,    W = L⁻¹UP,    LLᵀ = I + UPUᵀ
    (A − UᵀU)⁻¹ = P + WᵀW,    W = L⁻¹UP,    LLᵀ = I − UPUᵀ

with P = A⁻¹. Rows are added before others are taken away: then every matrix on the way is at least the last one.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from relae.linalg.sparse import Csr, Dense, dense_sparse, sparse_dense
from relae.linalg.spd import add_gram

_BLOCK = 512  # rows at a time: a square of them is little beside the matrix, and P is read seldom enough


def change_rows(square: Dense, added: Csr, removed: Csr, progress: Callable[[float], None] | None = None) -> None:
    """Replace A⁻¹ by (A + addedᵀ added − removedᵀ removed)⁻¹, in place, block by block.

    square : (n, n) C-contiguous and symmetric, added and removed : (rows, n).

    Raises
    ------
    numpy.linalg.LinAlgError
        If the result would not be positive definite. The content of the square is lost then.
    """
    total, done = max(added.shape[0] + removed.shape[0], 1), 0
    for rows, sign in ((added, 1), (removed, -1)):
        for start in range(0, rows.shape[0], _BLOCK):
            block = rows[start : start + _BLOCK]
            _change_block(square, block, sign)
            done += block.shape[0]
            if progress is not None:
                progress(done / total)


def _change_block(square: Dense, rows: Csr, sign: int) -> None:
    projected = sparse_dense(rows, square)  # U P : (rows, n)
    inner = sign * dense_sparse(projected, rows).astype(np.float64)
    inner.flat[:: len(inner) + 1] += 1.0
    factor = np.linalg.cholesky((inner + inner.T) / 2)
    w = solve_triangular(factor, projected, lower=True).astype(square.dtype, copy=False)
    add_gram(square, np.ascontiguousarray(w), sign=-sign)


def without_rows(square: Dense, gone: NDArray[np.int64]) -> Dense:
    """Return the inverse of A without some rows and columns, from A⁻¹, in a new array: P_rr − P_rg P_gg⁻¹ P_gr."""
    kept = np.setdiff1d(np.arange(len(square)), gone)
    out = np.empty((len(kept), len(kept)), square.dtype)
    for start in range(0, len(kept), _BLOCK):
        out[start : start + _BLOCK] = square[kept[start : start + _BLOCK]][:, kept]
    if len(gone) == 0:
        return out
    border = square[gone]
    factor = np.linalg.cholesky(border[:, gone].astype(np.float64))
    w = solve_triangular(factor, border[:, kept], lower=True).astype(square.dtype, copy=False)
    for start in range(0, len(gone), _BLOCK):
        add_gram(out, np.ascontiguousarray(w[start : start + _BLOCK]), sign=-1)
    return out
