"""Mask, filter and top-k: the only place where items are ranked."""

import numpy as np
from numpy.typing import NDArray

from relae._common.checks import check_whole
from relae.linalg import Csr, Dense, top_k


def barred_columns(
    n_items: int, allow: NDArray[np.int64] | None = None, deny: NDArray[np.int64] | None = None
) -> NDArray[np.bool_] | None:
    """Return the mask of columns that may not be recommended : (items,); None if all may. `deny` wins over `allow`."""
    if allow is None and deny is None:
        return None
    barred = np.zeros(n_items, bool) if allow is None else np.ones(n_items, bool)
    if allow is not None:
        barred[allow] = False
    if deny is not None:
        barred[deny] = True
    return barred


def check_k(k: int) -> int:
    """Return how many items to rank, if that is a whole number of at least 1."""
    return check_whole("k", k)


def rank(
    values: Dense,
    k: int,
    *,
    scale: NDArray[np.floating] | None = None,
    seen: Csr | None = None,
    barred: NDArray[np.bool_] | None = None,
    hints: NDArray[np.int64] | None = None,
    offset: NDArray[np.floating] | None = None,
) -> tuple[NDArray[np.int64], Dense]:
    """Return the k columns of each row with the largest values · scale + offset, without those seen or barred.

    A row has seen the columns where `seen` has a stored entry, whatever its value. `values` is left as it is, so that
    it can be ranked again with another `scale`. Ties go to the lower column; where fewer than k columns are left, −1
    and −inf fill up. The columns that another `scale` gave for the same seen and barred are good `hints`: they save
    sorting, and change nothing.
    """
    k = check_k(k)
    if barred is not None:
        scale = np.ones(values.shape[1], values.dtype) if scale is None else scale.astype(values.dtype)
        scale[barred] = np.nan  # NaN is never chosen
    return top_k(values, k, scale, seen, hints, offset)
