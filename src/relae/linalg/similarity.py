"""The most similar items of each item, as a sparse matrix, on all cores."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from relae.linalg.local import BLOCK, labelled, nearest
from relae.linalg.sparse import Csr, Vector, transpose


def most_similar(x: Csr, weights: Vector, count: int, progress: Callable[[float], None] | None = None) -> Csr:
    """Return the `count` largest G_ij · weights_i · weights_j of each item i with others, in row i : (items, items).

    x : (users, items), G = XᵀX, weights : (items,). Only what is above 0 is taken; ties go to the lower column. Items
    are done in blocks, and G is never formed.
    """
    by_item, others, n = transpose(x), labelled(x, weights), x.shape[1]
    columns, values, counts = [np.empty(0, np.int32)], [np.empty(0, x.dtype)], [np.zeros(1, np.int64)]
    for start in range(0, n, BLOCK):
        items = np.arange(start, min(start + BLOCK, n))
        members, sizes, close = nearest(by_item, others, items, count + 1)
        taken = (np.arange(count + 1) < sizes[:, None]) & (members != items[:, None])
        columns.append(members[taken])
        values.append((close[taken] * np.repeat(weights[items], sizes - 1)).astype(x.dtype))
        counts.append(sizes - 1)
        if progress is not None:
            progress((start + len(items)) / n)
    rows = (np.concatenate(values), np.concatenate(columns), np.cumsum(np.concatenate(counts)))
    return sp.csr_array(rows, shape=(n, n))
