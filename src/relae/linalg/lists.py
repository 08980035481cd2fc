"""Sums along ranked lists, at several cut-offs in one pass, on all cores."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae.linalg._run import run
from relae.linalg.sparse import Csr

Floats = NDArray[np.float64]


def ranked_sums(
    ranked: NDArray[np.int64], stored: Csr, gains: Floats, discounts: Floats, cutoffs: NDArray[np.int64]
) -> Floats:
    """Sum over the columns of each ranked row that the same row of `stored` has, up to each cut-off.

    Parameters
    ----------
    ranked : (rows, length)
        Columns; what is not a column of `stored`, such as −1, is never found.
    stored : (rows, columns)
    gains : (columns, groups)
        What a column adds to a group; 0 if it is not in the group.
    discounts : (length,)
    cutoffs : rising

    Returns
    -------
    (rows, groups, cut-offs, 4) : Σ gain; Σ gain · discount; Σ (found so far)/place; 1/place of the first found
    """
    out = np.empty((ranked.shape[0], gains.shape[1], len(cutoffs), 4))
    indptr, indices = stored.indptr.astype(np.int64), stored.indices.astype(np.int32, copy=False)
    run("ranked_sums", np.ascontiguousarray(ranked, np.int64), indptr, indices, gains, discounts, cutoffs, out)
    return out


def best_sums(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    gains: Floats,
    discounts: Floats,
    cutoffs: NDArray[np.int64],
    by_gain: NDArray[np.bool_],
) -> tuple[Floats, NDArray[np.int64]]:
    """Sum over the first columns of each row, up to each cut-off, by falling gain or (`by_gain` False) as they stand.

    Returns
    -------
    sums : (rows, groups, cut-offs, 2)
        Σ gain and Σ gain · discount.
    sizes : (rows, groups)
        Columns with a gain.
    """
    rows = len(indptr) - 1
    out = np.empty((rows, gains.shape[1], len(cutoffs), 2))
    sizes = np.empty((rows, gains.shape[1]), np.int64)
    parts = indptr.astype(np.int64), indices.astype(np.int32, copy=False)
    run("best_sums", *parts, gains, discounts, cutoffs, by_gain, out, sizes)
    return out, sizes
