"""Any matrix in the one form that the rest of the package relies on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.errors import DataError

if TYPE_CHECKING:
    SparseMatrix: TypeAlias = sp.sparray[Any, Any] | sp.spmatrix[Any]
else:  # these are generic for type checkers alone
    SparseMatrix = sp.sparray | sp.spmatrix

MatrixLike: TypeAlias = SparseMatrix | NDArray[Any]
"""A SciPy sparse matrix or array of any format, or a two-dimensional NumPy array."""


def canonical_matrix(matrix: Any, *, features: bool = False) -> sp.csr_array:
    """Return a matrix as CSR: float32, 32-bit indices where they suffice, sorted, no duplicates or zeros.

    The arrays of the argument are shared where they have that form already, and never changed. Users × items must
    not be negative; `features` tells that these are items × features, which may be.
    """
    _check_kind(matrix, features)
    is_csr = getattr(matrix, "format", None) == "csr"
    single = _single(_wrapped(matrix) if is_csr else sp.coo_array(matrix))
    _check_values(single, features)
    csr = _merged(_small_indices(single.tocsr()))
    _check_values(csr, features)  # a sum may have overflowed
    return _without_zeros(csr)


def entries_of_rows(indptr: NDArray[np.integer[Any]], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of the entries of some rows of a CSR, row after row."""
    starts, counts = indptr[rows].astype(np.int64), np.diff(indptr)[rows]
    offsets = np.cumsum(counts) - counts  # where a row begins among the chosen entries
    entries: NDArray[np.int64] = np.arange(counts.sum()) + np.repeat(starts - offsets, counts)
    return entries


def _check_kind(matrix: Any, features: bool) -> None:
    is_matrix = sp.issparse(matrix) or isinstance(matrix, np.ndarray)
    if not is_matrix:
        raise DataError(
            f"a {type(matrix).__name__} is not a matrix: give a SciPy sparse matrix or a two-dimensional "
            f"NumPy array, or use Interactions.{'with_features' if features else 'from_frame'} for a table"
        )
    if matrix.ndim != 2:
        axes = "items × features" if features else "users × items"
        raise DataError(f"the matrix must have two dimensions, {axes}, got the shape {matrix.shape}")
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"the matrix must have real numbers, got {matrix.dtype}")


def _wrapped(matrix: Any) -> Any:
    """Return a CSR that shares the arrays but not the flags, which the methods below set."""
    try:
        csr = sp.csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
        csr.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"the matrix is not a valid CSR: {error}") from error
    return csr


def _check_values(matrix: Any, signed: bool) -> None:
    data = matrix.data
    bad = ~np.isfinite(data) if signed else (data < 0) | ~np.isfinite(data)
    if bad.any():
        first, cells = int(bad.argmax()), matrix.tocoo()
        raise DataError(
            f"the matrix has {data[first]} in row {cells.row[first]}, column {cells.col[first]} "
            f"(counted from 0): values must be finite in float32{'' if signed else ' and not negative'}"
        )


def _single(matrix: Any) -> Any:
    with np.errstate(over="ignore"):  # what overflows is found as infinite
        return matrix.astype(np.float32, copy=False)


def _small_indices(csr: Any) -> Any:
    if csr.indices.dtype == np.int32 or max(csr.nnz, *csr.shape) > np.iinfo(np.int32).max:
        return csr
    indices, indptr = csr.indices.astype(np.int32), csr.indptr.astype(np.int32)
    return sp.csr_array((csr.data, indices, indptr), shape=csr.shape)


def _merged(csr: Any) -> Any:
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _without_zeros(csr: sp.csr_array) -> sp.csr_array:
    if np.count_nonzero(csr.data) < csr.nnz:
        csr = csr.copy()
        csr.eliminate_zeros()
    return csr
