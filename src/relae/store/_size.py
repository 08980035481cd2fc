"""Forecast the size of the folder of a linear autoencoder before it is fitted."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.data import FRESH_DAYS, Interactions, encode_texts
from relae.linalg import Csr, as_csr
from relae.solvers import Solver, as_solver, by_closeness

_HEADER = 128  # bytes before the numbers of an .npy file
_SAMPLE = 1000  # items by which the neighbours of all are estimated

Shape = tuple[int, np.dtype[Any]]
"""How many numbers an array has, and of which type."""


def forecast_size(
    data: Interactions,
    solver: Solver | str,
    *,
    form: str = "auto",
    histories: bool = True,
) -> int:
    """Return the bytes that `save` will write for a linear autoencoder fitted to `data`.

    The arrays of the primal and the dual form are counted one by one. For the local form the number of neighbours that
    items have is estimated from 1,000 of them.

    Parameters
    ----------
    data
        What will be fitted to, features included.
    solver
        The solver of the fit: "primal", "dual" or "local", or such an object.
    form, histories
        How it will be saved; see `save`.
    """
    solver = as_solver(solver)
    kept = solver.makes.saved_form(form)
    precision = np.dtype(solver.dtype)
    arrays = [*_items(data), *_inverse(data, kept, solver), *_features(data, precision)]
    if histories:
        arrays += [_flat(data.users.encode())]
        if kept != "dual" or data.features is not None:  # otherwise the inverse has them already
            arrays += _sparse(data.n_interactions, data.n_users, np.dtype(np.float32))
        if data.times is not None:
            arrays += [(data.n_interactions, np.dtype(np.int64))]
        if data.seen is not None:
            arrays += _sparse(data.seen.nnz, data.n_users, np.dtype(bool))[1:]  # it has no values
        if data.dropped is not None:
            arrays += [_flat(data.dropped.users.encode()), _flat(data.dropped.reasons)]
    return sum(_HEADER + count * kind.itemsize for count, kind in arrays)


def _items(data: Interactions) -> Iterator[Shape]:
    """Return the bytes of ids, titles, counts, and of the penalty, the diagonal and the squares of X of an inverse."""
    yield _flat(data.items.encode())
    if data.titles is not None:
        yield _flat(encode_texts(data.titles))
    yield data.n_items, np.dtype(np.int64)
    for _ in range(3):
        yield data.n_items, np.dtype(np.float64)
    if data.times is not None:  # the recent demand
        yield data.n_items * len(FRESH_DAYS), np.dtype(np.float64)


def _inverse(data: Interactions, form: str, solver: Solver) -> Iterator[Shape]:
    x, dtype = _rows(data), np.dtype(solver.dtype)
    if form == "primal":
        yield data.n_items**2, dtype
    elif form == "dual":
        yield from _dual(x.shape[0], x.nnz, dtype, weighted=data.features is not None)
    else:
        yield from _sparse(_local_entries(x, solver), data.n_items, dtype)


def _features(data: Interactions, dtype: np.dtype[Any]) -> Iterator[Shape]:
    """Return the bytes of the features, and of their inverse where some items have nothing else."""
    if data.features is None:
        return
    matrix = data.features.matrix
    yield from _sparse(matrix.nnz, data.n_items, matrix.dtype)
    counts = np.bincount(data.matrix.indices, minlength=data.n_items)
    new = int(np.count_nonzero((counts == 0) & (np.diff(matrix.indptr) > 0)))
    if new:
        yield new, np.dtype(np.int64)
        yield from [(data.n_items, np.dtype(np.float64))] * 2
        yield from _dual(matrix.shape[1], matrix.nnz, dtype, weighted=True)


def _dual(rows: int, entries: int, dtype: np.dtype[Any], *, weighted: bool) -> Iterator[Shape]:
    yield rows**2, dtype
    yield from _sparse(entries, rows, dtype)
    if weighted:
        yield rows, np.dtype(np.float64)


def _sparse(entries: int, rows: int, dtype: np.dtype[Any]) -> list[Shape]:
    return [(entries, dtype), (entries, np.dtype(np.int32)), (rows + 1, np.dtype(np.int64))]


def _rows(data: Interactions) -> Csr:
    """Return the rows of the fit: one per feature and one per user."""
    if data.features is None:
        return data.matrix
    return as_csr(sp.vstack([data.features.matrix.T, data.matrix]), data.matrix.dtype)


def _local_entries(x: Csr, solver: Solver) -> int:
    """Estimate the number of neighbours of all items, themselves included, from a sample of items."""
    items = x.shape[1]
    sample = np.random.default_rng(0).choice(items, min(_SAMPLE, items), replace=False)
    _, sizes = by_closeness(x, solver.neighbours, solver.nearest_by)(np.sort(sample))
    return int(np.rint(sizes.mean() * items))


def _flat(array: NDArray[Any]) -> Shape:
    return len(array), array.dtype
