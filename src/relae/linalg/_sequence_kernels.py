"""Compiled loops over sequences. Private to `relae.linalg`; imported late, as `_kernels` is.

The entries of all users stand in one row: those of a user from `starts[u]` to `starts[u + 1]`, in the order of time.
Entry p has the item `items[p]` and the value `values[p]`. A step is an entry that has others before it: its source is
what came before, faded by ρ with each entry in between, and its target is the entry itself.
"""

import numpy as np
from numba import prange

from relae.linalg._compile import compiled


@compiled(parallel=True)
def later_weights(starts, weights, fading, out):
    """out[p] = R_p = Σ_{t > p} w_t ρ^(2 (t − 1 − p)) over the later entries t of the same user."""
    for user in prange(len(starts) - 1):
        total = 0.0
        for p in range(starts[user + 1] - 1, starts[user] - 1, -1):
            out[p] = total
            total = weights[p] + fading * fading * total


@compiled(parallel=True)
def step_products(starts, items, owners, order, firsts, values, by_later, by_step, powers, gram, cross, threads):
    """Rows of SᵀS and of SᵀT, each by one thread; `order` has the entries by item, from `firsts[i]` to `firsts[i + 1]`.

    by_later = values · R and by_step = values · w of each entry; powers[d] = ρ^d, and entries further apart than
    len(powers) − 1 are left out. A row of both squares stays in the cache while the entries of its item are done.
    """
    n, window = gram.shape[0], len(powers) - 1
    for thread in prange(threads):
        for i in range(thread, n, threads):  # interleaved: long and short rows meet every thread
            row, targets = gram[i], cross[i]
            row[:] = 0.0
            targets[:] = 0.0
            for at in range(firsts[i], firsts[i + 1]):
                p = order[at]
                first, last = starts[owners[p]], starts[owners[p] + 1]
                value, later = values[p], by_later[p]
                row[i] += value * later
                for q in range(max(first, p - window), p):
                    row[items[q]] += powers[p - q] * values[q] * later
                for q in range(p + 1, min(last, p + window + 1)):
                    row[items[q]] += value * powers[q - p] * by_later[q]
                    targets[items[q]] += value * powers[q - p - 1] * by_step[q]


@compiled()
def step_gram_times(starts, items, values, weights, fading, vectors, out):
    """out (items, columns) = SᵀS @ vectors, by a pass forward (S @ vectors) and one back through each user."""
    columns = vectors.shape[1]
    out[:] = 0.0
    for user in range(len(starts) - 1):
        first, last = starts[user], starts[user + 1]
        sources = np.empty((last - first, columns))
        for c in range(columns):
            total = 0.0
            for p in range(first, last):
                sources[p - first, c] = total * weights[p]
                total = fading * total + values[p] * vectors[items[p], c]
            total = 0.0
            for p in range(last - 1, first - 1, -1):
                out[items[p], c] += values[p] * total
                total = fading * total + sources[p - first, c]
