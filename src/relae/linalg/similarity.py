"""The most similar items of each item, as a sparse matrix, on all cores."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from relae.linalg.local import BLOCK
from relae.linalg.sparse import Csr, Vector, parts, run, threads, transpose


def most_similar(x: Csr, weights: Vector, count: int, progress: Callable[[float], None] | None = None) -> Csr:
    """G_ij · weights_i · weights_j in row i, for the `count` other items j of which it is largest : (items, items).

    x : (users, items), G = XᵀX, weights : (items,). Only what is above 0 is taken; ties go to the lower column. Items
    are done in blocks, and G is never formed.
    """
    by_item, scale, n = transpose(x), weights.astype(x.dtype), x.shape[1]
    columns, values, counts = [np.empty(0, np.int32)], [np.empty(0, x.dtype)], [np.zeros(1, np.int64)]
    for start in range(0, n, BLOCK):
        items = np.arange(start, min(start + BLOCK, n))
        others, close = np.empty((len(items), count), np.int32), np.zeros((len(items), count))
        sizes = np.empty(len(items), np.int64)
        run("nearest_others", items, *parts(by_item), *parts(x), scale, threads(), others, close, sizes)
        taken = np.arange(count) < sizes[:, None]
        columns.append(others[taken])
        values.append((close * weights[items, None])[taken].astype(x.dtype))
        counts.append(sizes)
        if progress is not None:
            progress((start + len(items)) / n)
    rows = (np.concatenate(values), np.concatenate(columns), np.cumsum(np.concatenate(counts)))
    return sp.csr_array(rows, shape=(n, n))
