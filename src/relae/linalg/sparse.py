"""Gram matrices and products of sparse with dense matrices, on all cores.

SciPy's own product of a sparse and a dense matrix runs on one core and copies an operand that is not contiguous.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.linalg._run import run, threads

Csr = sp.csr_array[Any, Any]
Dense = NDArray[np.floating]
Vector = NDArray[np.floating]

_CROWDED = 0.9  # share of entries above which a column of a Gram matrix counts as dense, as those of embeddings are
_STRIP = 1024


def as_csr(matrix: Any, dtype: np.dtype[Any] | type) -> Csr:
    """Return a CSR with sorted 32-bit column indices and no duplicates; the argument itself if it is one."""
    csr = sp.csr_array(matrix, dtype=dtype)
    if csr.indices.dtype != np.int32 and max(csr.nnz, *csr.shape) < 2**31:
        parts = (csr.data, csr.indices.astype(np.int32), csr.indptr.astype(np.int32))
        csr = sp.csr_array(parts, shape=csr.shape)
    if not csr.has_canonical_format:
        csr = csr.copy()  # never sort the caller's arrays
        csr.sum_duplicates()
    return csr


def scaled_rows(a: Csr, weights: Vector | None) -> Csr:
    """Return diag(√weights) A; A itself without weights."""
    if weights is None:
        return a
    factors = np.repeat(np.sqrt(weights), np.diff(a.indptr)).astype(a.dtype)
    return sp.csr_array((a.data * factors, a.indices, a.indptr), shape=a.shape)


def scaled_columns(a: Csr, factors: Vector) -> Csr:
    """Return A diag(factors)."""
    return sp.csr_array((a.data * factors[a.indices].astype(a.dtype), a.indices, a.indptr), shape=a.shape)


def transpose(a: Csr) -> Csr:
    """Return Aᵀ as CSR, again with sorted indices."""
    return as_csr(sp.csr_array(a.T), a.dtype)


def parts(a: Csr) -> tuple[NDArray[np.int64], NDArray[np.int32], Dense]:
    """Return a CSR matrix as the kernels take it."""
    return a.indptr.astype(np.int64), a.indices.astype(np.int32, copy=False), a.data


def gram(a: Csr, a_t: Csr, out: Dense, weights: Vector | None = None) -> Dense:
    """Lower triangle of A diag(weights) Aᵀ into the square `out`; the rest of `out` is not touched.

    a : (n, inner), a_t its transpose, weights : (inner,), out : (n, n).
    For row i and each of its entries, the column of that entry is added up to the diagonal: Σ_t d_t²/2 updates,
    with d_t the stored entries of column t, and no two threads meet. Columns that are nearly full, such as those
    of embeddings, are multiplied as dense ones.
    """
    if weights is not None:
        a = scaled_columns(a, weights)
    crowded = np.flatnonzero(np.diff(a_t.indptr) > _CROWDED * len(out))
    if len(crowded) == 0:
        return _gram(a, a_t, out)
    left, right = a[:, crowded].toarray(), a_t[crowded].toarray()
    others = np.ones(a.shape[1], bool)
    others[crowded] = False
    _gram(as_csr(a[:, others], a.dtype), as_csr(a_t[others], a_t.dtype), out)
    for start in range(0, len(out), _STRIP):
        stop = min(start + _STRIP, len(out))
        out[start:stop, :start] += left[start:stop] @ right[:, :start]
        corner = out[start:stop, start:stop]
        np.add(corner, left[start:stop] @ right[:, start:stop], out=corner, where=np.tri(len(corner), dtype=bool))
    return out


def _gram(a: Csr, a_t: Csr, out: Dense) -> Dense:
    indptr, indices, values = parts(a)
    run("gram_lower", indptr, indices, values.astype(out.dtype, copy=False), *parts(a_t), out, threads())
    return out


def gram_diagonal(x: Csr, row_weights: Vector | None = None) -> NDArray[np.float64]:
    """Return Σ_u d_u x_uj² : (items,)."""
    squares = x.data.astype(np.float64) ** 2
    if row_weights is not None:
        squares *= np.repeat(row_weights, np.diff(x.indptr))
    return np.bincount(x.indices, weights=squares, minlength=x.shape[1]).astype(np.float64, copy=False)


def sparse_dense(a: Csr, dense: Dense, out: Dense | None = None) -> Dense:
    """Return A @ dense : (rows, n), streaming the rows of `dense` that A names."""
    rows, n = a.shape[0], dense.shape[1]
    out = np.empty((rows, n), dense.dtype) if out is None else out
    spare = 2 * threads() // max(rows, 1)  # few rows: several threads share one
    width = n if spare <= 1 else max(1024, -(-n // spare))
    indptr, indices, values = parts(a)
    bounds = _alike(indptr, min(rows, 8 * threads()))
    run("csr_dense", indptr, indices, values.astype(dense.dtype, copy=False), dense, out, bounds, width)
    return out


def _alike(indptr: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return bounds of runs of rows with about the same work each : (count + 1,)."""
    work = indptr + np.arange(len(indptr))
    return np.searchsorted(work, np.linspace(0, work[-1], count + 1))


def sparse_sparse(a: Csr, b: Csr) -> Dense:
    """Return A @ B as a dense array : (rows, n)."""
    out = np.empty((a.shape[0], b.shape[1]), np.result_type(a.dtype, b.dtype))
    run("csr_csr", *parts(a), *parts(b), out)
    return out


def dense_sparse(dense: Dense, b_t: Csr, out: Dense | None = None) -> Dense:
    """Return dense @ B : (rows, n), with B given as its transpose (n, m)."""
    out = np.empty((dense.shape[0], b_t.shape[0]), dense.dtype) if out is None else out
    run("dense_csr", dense, *parts(b_t), out)
    return out


def csr_block(a: Csr, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Dense:
    """Return A[rows][:, columns] as a dense array : (rows, columns)."""
    out = np.empty((len(rows), len(columns)), a.dtype)
    run("csr_block", *parts(a), rows, columns, out)
    return out


def quadratic_forms(a: Csr, square: Dense) -> NDArray[np.float64]:
    """Return aᵣ square aᵣᵀ for every row aᵣ of A : (rows,), with `square` symmetric."""
    out = np.empty(a.shape[0], np.float64)
    run("quadratic_forms", *parts(a), square, out, threads())
    return out
