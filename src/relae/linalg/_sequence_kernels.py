"""Compiled loops over sequences. Private to `relae.linalg`; imported late, as `_kernels` is.

The entries of all users stand in one row: those of a user from `starts[u]` to `starts[u + 1]`, in the order of time.
Entry p has the item `items[p]` and the value `values[p]`. A step is an entry that has others before it: its source is
what came before, the entry d places before it times `fade[d − 1]`, and its target is the entry itself.
"""

import numpy as np
from numba import prange

from relae.linalg._compile import compiled


@compiled(parallel=True)
def step_products(starts, items, owners, order, firsts, values, fade, table, gram, cross, threads):
    """Rows of SᵀT, and of SᵀS as far as the item of a row came first; `fold_upper` makes the triangle of that.

    Each row is made by one thread, and stays in the cache while the entries of its item are done: `order` has the
    entries by item, from `firsts[i]` to `firsts[i + 1]`. table[m, d] = Σ_{u ≤ m} fade(u) · fade(u + d), what two
    entries d places apart have in common where m entries follow the later one.
    """
    n, window = gram.shape[0], len(fade)
    for thread in prange(threads):
        for i in range(thread, n, threads):  # interleaved: long and short rows meet every thread
            row, targets = gram[i], cross[i]
            row[:] = 0.0
            targets[:] = 0.0
            for at in range(firsts[i], firsts[i + 1]):
                p = order[at]
                value, last = values[p], starts[owners[p] + 1]
                row[i] += value * value * table[min(last - 1 - p, window), 0]
                far, end = min(last - window, p + window), min(last, p + window + 1)
                for q in range(p + 1, far):  # so many entries follow that their number does not matter
                    both = value * values[q]
                    row[items[q]] += both * table[window, q - p]
                    targets[items[q]] += both * fade[q - p - 1]
                for q in range(max(p + 1, far), end):
                    both = value * values[q]
                    row[items[q]] += both * table[min(last - 1 - q, window), q - p]
                    targets[items[q]] += both * fade[q - p - 1]


_TILE = 64


@compiled(parallel=True)
def fold_upper(square):
    """Add what is above the diagonal to the mirror image of it below."""
    n = square.shape[0]
    for block in prange((n + _TILE - 1) // _TILE):
        low, high = block * _TILE, min(n, (block + 1) * _TILE)
        for left in range(0, high, _TILE):
            for i in range(low, high):
                for j in range(left, min(i, left + _TILE)):
                    square[i, j] += square[j, i]


@compiled(parallel=True)
def step_gram_times(starts, items, values, fade, vectors, out):
    """out (columns, entries): the rows of SᵀS @ vectors, still by entry; vectors : (columns, items)."""
    for user in prange(len(starts) - 1):
        first, length = starts[user], starts[user + 1] - starts[user]
        own, weights = items[first : first + length], values[first : first + length]
        seen, sources = np.empty(length), np.empty(length)
        for column in range(len(vectors)):
            vector, target = vectors[column], out[column, first : first + length]
            for p in range(length):
                seen[p] = weights[p] * vector[own[p]]
            sources[:] = 0.0
            for d in range(1, min(len(fade), length - 1) + 1):  # long runs, which are vectorized
                weight = fade[d - 1]
                for p in range(length - d):
                    sources[p + d] += weight * seen[p]
            target[:] = 0.0
            for d in range(1, min(len(fade), length - 1) + 1):
                weight = fade[d - 1]
                for p in range(length - d):
                    target[p] += weight * sources[p + d]
            for p in range(length):
                target[p] *= weights[p]
