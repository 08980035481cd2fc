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
    """Return the matrix that `csr_parts` took apart; one which is none is a ValueError.

    A copy is in memory, and checked whole. Without it only where rows start is checked, so that a large matrix can stay
    on disk; it is then for kernels that check its columns themselves.
    """
    values, columns, starts = (arrays[f"{name}_{part}"] for part in ("values", "columns", "starts"))
    sound = values.shape == columns.shape and starts.shape == (shape[0] + 1,) and columns.dtype.kind == "i"
    if not sound or starts[0] != 0 or starts[-1] != len(columns) or (np.diff(starts) < 0).any():
        raise ValueError(f"the matrix {name} is not of shape {shape}")
    if copy:
        values, columns = np.array(values), np.array(columns)
    index = np.int32 if len(columns) < 2**31 else np.int64
    matrix = sp.csr_array((values, columns, starts.astype(index)), shape=shape)
    if not copy:
        return matrix
    matrix.check_format(full_check=True)
    if not matrix.has_canonical_format or not np.isfinite(values).all():
        raise ValueError(f"the matrix {name} has columns out of order, or values that are not finite")
    return matrix


def fingerprint(*matrices: Csr | NDArray[Any]) -> str:
    """A sum of shapes and entries, by which other matrices and arrays are told apart."""
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
