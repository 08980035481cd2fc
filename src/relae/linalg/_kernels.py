"""Compiled loops. Private to `relae.linalg`; importing this module imports numba, so it is done late.

All take plain arrays: CSR parts as (indptr int64, indices int32 sorted, values). Each output element is written by one
thread in a fixed order, so results do not depend on timing.
"""

import numpy as np
from numba import prange

from relae.linalg._compile import compiled


@compiled(parallel=True)
def gram_lower(indptr, indices, values, t_indptr, t_indices, t_values, out, threads):
    """Lower triangle of A @ B with A (n, inner) as CSR rows and B (inner, n) as CSR rows; each row by one thread."""
    n = out.shape[0]
    for thread in prange(threads):
        for i in range(thread, n, threads):  # interleaved: long and short rows meet every thread
            row = out[i]
            row[: i + 1] = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                inner, value = indices[p], values[p]
                for q in range(t_indptr[inner], t_indptr[inner + 1]):
                    j = t_indices[q]
                    if j > i:
                        break
                    row[j] += value * t_values[q]


@compiled(parallel=True)
def csr_dense(indptr, indices, values, dense, out, bounds, width):
    """out (rows, n) = A @ dense; a task is the rows from one of `bounds` to the next, and `width` columns.

    Long runs of `dense` stream best, and four at a time read and write `out` a quarter as often.
    """
    n = out.shape[1]
    panels = (n + width - 1) // width
    for task in prange((len(bounds) - 1) * panels):
        part, lo = task // panels, task % panels * width
        hi = min(n, lo + width)
        for r in range(bounds[part], bounds[part + 1]):
            target = out[r, lo:hi]
            target[:] = 0.0
            p, end = indptr[r], indptr[r + 1]
            while p + 4 <= end:
                a, b, c, d = values[p], values[p + 1], values[p + 2], values[p + 3]
                of_a, of_b = dense[indices[p], lo:hi], dense[indices[p + 1], lo:hi]
                of_c, of_d = dense[indices[p + 2], lo:hi], dense[indices[p + 3], lo:hi]
                for j in range(len(target)):
                    target[j] += (a * of_a[j] + b * of_b[j]) + (c * of_c[j] + d * of_d[j])
                p += 4
            for q in range(p, end):
                value, source = values[q], dense[indices[q], lo:hi]
                for j in range(len(target)):
                    target[j] += value * source[j]


@compiled(parallel=True)
def csr_csr(indptr, indices, values, b_indptr, b_indices, b_values, out):
    """out (rows, n) = A @ B, both CSR, the result dense."""
    for r in prange(out.shape[0]):
        target = out[r]
        target[:] = 0.0
        for p in range(indptr[r], indptr[r + 1]):
            inner, value = indices[p], values[p]
            for q in range(b_indptr[inner], b_indptr[inner + 1]):
                target[b_indices[q]] += value * b_values[q]


@compiled()
def csr_block(indptr, indices, values, rows, columns, out):
    """out (rows, columns) = A[rows][:, columns]."""
    for r in range(len(rows)):
        start, end = indptr[rows[r]], indptr[rows[r] + 1]
        for c in range(len(columns)):
            at = start + np.searchsorted(indices[start:end], columns[c])
            out[r, c] = values[at] if at < end and indices[at] == columns[c] else 0.0


_LANES = 32  # rows done together: 32 float32 are two cache lines, read once for all of them
_COLUMNS = 16


@compiled()
def _turn_panel(dense, lo, lanes, block):
    """Write some rows as columns : (m, _LANES)."""
    m = dense.shape[1]
    for i0 in range(0, m, 64):
        for lane in range(lanes):
            for i in range(i0, min(m, i0 + 64)):
                block[i, lane] = dense[lo + lane, i]


@compiled(parallel=True)
def dense_csr(dense, t_indptr, t_indices, t_values, out):
    """out (rows, n) = dense (rows, m) @ B with Bᵀ (n, m) as CSR rows.

    A panel of rows is transposed first, so that one stored element of B updates all of them with one contiguous run;
    four elements at a time, because the vectorized inner loop is short and its entry is what costs.
    """
    rows, m = dense.shape
    n = out.shape[1]
    for panel in prange((rows + _LANES - 1) // _LANES):
        lo = panel * _LANES
        lanes = min(_LANES, rows - lo)
        block = np.zeros((m, _LANES), dense.dtype)
        _turn_panel(dense, lo, lanes, block)
        tile = np.empty((_COLUMNS, _LANES), dense.dtype)
        for j0 in range(0, n, _COLUMNS):
            columns = min(_COLUMNS, n - j0)
            for c in range(columns):
                total = tile[c]
                total[:] = 0.0
                p, end = t_indptr[j0 + c], t_indptr[j0 + c + 1]
                while p + 4 <= end:
                    v0, v1, v2, v3 = t_values[p], t_values[p + 1], t_values[p + 2], t_values[p + 3]
                    b0, b1 = block[t_indices[p]], block[t_indices[p + 1]]
                    b2, b3 = block[t_indices[p + 2]], block[t_indices[p + 3]]
                    for lane in range(_LANES):
                        total[lane] += (v0 * b0[lane] + v1 * b1[lane]) + (v2 * b2[lane] + v3 * b3[lane])
                    p += 4
                while p < end:
                    v0 = t_values[p]
                    b0 = block[t_indices[p]]
                    for lane in range(_LANES):
                        total[lane] += v0 * b0[lane]
                    p += 1
            for lane in range(lanes):
                for c in range(columns):
                    out[lo + lane, j0 + c] = tile[c, lane]


@compiled(parallel=True)
def quadratic_forms(indptr, indices, values, square, out, threads):
    """out[r] = a_r square a_rᵀ for every row a_r of A, with a symmetric `square`, summed in float64."""
    rows = out.shape[0]
    for thread in prange(threads):
        for r in range(thread, rows, threads):
            total = 0.0
            for p in range(indptr[r], indptr[r + 1]):
                line = square[indices[p]]
                partial = 0.0
                for q in range(indptr[r], p):
                    partial += values[q] * line[indices[q]]
                total += values[p] * (2.0 * partial + values[p] * line[indices[p]])
            out[r] = total


@compiled(inline="always")
def worse(score_a, id_a, score_b, id_b):
    """Return whether an entry comes after another one: smaller, or equal with a larger index."""
    return score_a < score_b or (score_a == score_b and id_a > id_b)


@compiled()
def rise(scores, ids, size, score, index):
    """Put an entry at the end of a heap of `size` whose root is the worst, and let it rise."""
    at = size
    while at > 0:
        parent = (at - 1) // 2
        if not worse(score, index, scores[parent], ids[parent]):
            break
        scores[at], ids[at] = scores[parent], ids[parent]
        at = parent
    scores[at], ids[at] = score, index


@compiled()
def sink(scores, ids, size, score, index):
    """Put an entry in place of the root (the worst) of a heap of `size`, and let it sink."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        other = child + 1
        if other < size and worse(scores[other], ids[other], scores[child], ids[child]):
            child = other
        if not worse(scores[child], ids[child], score, index):
            break
        scores[at], ids[at] = scores[child], ids[child]
        at = child
    scores[at], ids[at] = score, index


_BLOCK = 32  # columns that are compared with the bar at once


@compiled(inline="always")
def _any_above(row, scale, offset, low, bar):
    """Return whether any value of a block exceeds the bar; a fixed number of steps without branches is vectorized."""
    values, factors = row[low : low + _BLOCK], scale[low : low + _BLOCK]
    above = np.int32(0)
    if len(offset):
        added = offset[low : low + _BLOCK]
        for j in range(_BLOCK):
            above = np.int32(above + np.int32(values[j] * factors[j] + added[j] > bar))
    else:
        for j in range(_BLOCK):
            above = np.int32(above + np.int32(values[j] * factors[j] > bar))
    return above > 0


@compiled(inline="always")
def _score(row, scale, offset, j):
    return row[j] * scale[j] + offset[j] if len(offset) else row[j] * scale[j]


@compiled()
def _least(row, scale, offset, hints, lowest):
    """Return a lower bound of the best values: at least len(hints) different columns exceed it.

    lowest (−inf, in the type of the values) if the hints do not tell.
    """
    least = -lowest
    for index in hints:
        if index < 0:
            return lowest
        score = _score(row, scale, offset, index)
        if not score > lowest:  # NaN as well
            return lowest
        least = min(least, score)
    return np.nextafter(least, lowest) if len(hints) else lowest


@compiled(parallel=True)
def top_k(values, scale, offset, skip_indptr, skip_indices, hints, ids, scores):
    """Best k of values[r] * scale + offset for every row, without the skipped columns; −1 and −inf where fewer.

    A heap of the k best, whose root is the worst: smaller, or equal with a larger index. NaN and −inf never enter.
    hints (rows, k) are columns that may be recommended and are probably among the best, or (rows, 0); offset (n,) or
    (0,) for none.
    """
    rows, n = values.shape
    k = ids.shape[1]
    for r in prange(rows):
        row_ids, row_scores, row = ids[r], scores[r], values[r]
        size = 0
        row_scores[0] = -np.inf
        bar = _least(row, scale, offset, hints[r], row_scores[0])
        skip, skips = skip_indptr[r], skip_indptr[r + 1]
        for low in range(0, n, _BLOCK):
            if low + _BLOCK <= n and not _any_above(row, scale, offset, low, bar):
                continue
            for j in range(low, min(low + _BLOCK, n)):
                score = _score(row, scale, offset, j)
                if score > bar:
                    while skip < skips and skip_indices[skip] < j:
                        skip += 1
                    if skip < skips and skip_indices[skip] == j:
                        continue
                    if size == k:
                        sink(row_scores, row_ids, k, score, j)
                        bar = row_scores[0]
                    else:
                        rise(row_scores, row_ids, size, score, j)
                        size += 1
                        if size == k:
                            bar = row_scores[0]
        for last in range(size - 1, 0, -1):  # heap sort: the worst goes to the end
            score, index = row_scores[last], row_ids[last]
            row_scores[last], row_ids[last] = row_scores[0], row_ids[0]
            sink(row_scores, row_ids, last, score, index)
        for at in range(size, k):
            row_ids[at] = -1
            row_scores[at] = -np.inf


@compiled(parallel=True)
def ranked_sums(ranked, indptr, indices, gains, discounts, cutoffs, out):
    """Sums over the entries of a ranked row that row r of a CSR matrix stores, up to each of the rising cut-offs.

    gains (columns, groups); an entry whose gain is 0 is none of the group's. out (rows, groups, cut-offs, 4): the
    gains; the gains · discount; (entries of the group so far)/place; 1/place of the first.
    """
    rows, length = ranked.shape
    groups = gains.shape[1]
    for r in prange(rows):
        state = np.zeros((groups, 4))
        sums = np.zeros(groups)
        start, end = indptr[r], indptr[r + 1]
        counted = np.zeros(end - start, np.bool_)  # a column that the row repeats counts once
        at = 0
        for c in range(len(cutoffs)):
            while at < cutoffs[c] and at < length:
                column = ranked[r, at]
                lo, hi = start, end
                while lo < hi:
                    middle = (lo + hi) // 2
                    if indices[middle] < column:
                        lo = middle + 1
                    else:
                        hi = middle
                if lo < end and indices[lo] == column and not counted[lo - start]:
                    counted[lo - start] = True
                    for g in range(groups):
                        gain = gains[column, g]
                        if gain > 0.0:
                            if sums[g] == 0.0:
                                state[g, 3] = 1.0 / (at + 1)
                            sums[g] += 1.0
                            state[g, 0] += gain
                            state[g, 1] += gain * discounts[at]
                            state[g, 2] += sums[g] / (at + 1)
                at += 1
            out[r, :, c] = state


@compiled(parallel=True)
def best_sums(indptr, indices, gains, discounts, cutoffs, by_gain, out, sizes):
    """Sums of gains, and of gains · discount, over the first entries of each CSR row up to each cut-off.

    by_gain (groups,): whether a group takes the entries by falling gain or as they stand. Entries whose gain is 0 are
    left out. out (rows, groups, cut-offs, 2); sizes (rows, groups): the entries of the group.
    """
    for r in prange(len(indptr) - 1):
        row = indices[indptr[r] : indptr[r + 1]]
        for g in range(gains.shape[1]):
            line = np.empty(len(row))
            size = 0
            for column in row:
                if gains[column, g] > 0.0:
                    line[size] = gains[column, g]
                    size += 1
            sizes[r, g] = size
            if by_gain[g]:
                line[:size] = -np.sort(-line[:size])
            total, discounted, at = 0.0, 0.0, 0
            for c in range(len(cutoffs)):
                while at < cutoffs[c] and at < size:
                    total += line[at]
                    discounted += line[at] * discounts[at]
                    at += 1
                out[r, g, c, 0] = total
                out[r, g, c, 1] = discounted
