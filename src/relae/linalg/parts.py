"""Matrices as plain arrays, for whoever saves them."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.linalg.sparse import Csr, Dense

_BLOCK_BYTES = 256e6


@dataclass(frozen=True)
class Blocks:
    """A matrix that is made in blocks of rows, one after the other, and is never there as a whole."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    rows: Callable[[NDArray[np.int64]], Dense]

    def __iter__(self) -> Iterator[Dense]:
        height = max(1, int(_BLOCK_BYTES / max(1, self.shape[1] * self.dtype.itemsize)))
        for start in range(0, self.shape[0], height):
            yield self.rows(np.arange(start, min(start + height, self.shape[0])))


Arrays = Mapping[str, NDArray[Any]]


def csr_parts(name: str, matrix: Csr) -> dict[str, NDArray[Any]]:
    """Return a sparse matrix as three arrays, whose names begin with `name`."""
    return {
        f"{name}_values": matrix.data,
        f"{name}_columns": matrix.indices.astype(np.int32, copy=False),
        f"{name}_starts": matrix.indptr.astype(np.int64, copy=False),
    }


def csr_from_parts(name: str, arrays: Arrays, shape: tuple[int, int], *, copy: bool = True) -> Csr:
    """Return the matrix that `csr_parts` took apart; raise a ValueError if it is not valid.

    The arrays are as `csr_layout` expects them. Compiled code trusts what it is given, so that the positions are always
    checked: no row and no column lies outside of the matrix. A copy is in memory, and its order and values are
    checked too; without it values are not read, so that a large matrix can stay on disk.
    """
    values, columns, starts = (arrays[f"{name}_{part}"] for part in ("values", "columns", "starts"))
    starts = np.array(starts)
    # compared and not subtracted, because a difference can overflow
    if starts[0] != 0 or starts[-1] != len(columns) or (starts[1:] < starts[:-1]).any():
        raise ValueError(f"the rows of the matrix {name} do not follow each other from 0 to {len(columns):,}")
    if copy:
        values, columns = np.array(values), np.array(columns)
    if len(columns) and not 0 <= columns.min() <= columns.max() < shape[1]:
        raise ValueError(f"the matrix {name} has columns beyond its {shape[1]:,}")
    index = np.int32 if len(columns) < 2**31 else np.int64
    matrix = sp.csr_array((values, columns, starts.astype(index)), shape=shape)
    if not copy:
        return matrix
    if not matrix.has_canonical_format or not np.isfinite(values).all():
        raise ValueError(f"the matrix {name} has columns out of order, or values that are not finite")
    return matrix


def fingerprint(*matrices: Csr | NDArray[Any]) -> str:
    """Return a checksum of shapes and entries, to tell matrices and arrays apart."""
    digest = hashlib.sha256()
    for matrix in matrices:
        digest.update(repr(matrix.shape).encode())
        if isinstance(matrix, np.ndarray):
            parts = [matrix]
        else:
            parts = [matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data]
        for part in parts:
            digest.update(np.ascontiguousarray(part))
    return digest.hexdigest()
