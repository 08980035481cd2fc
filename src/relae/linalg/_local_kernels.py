"""Compiled loops over small neighbourhoods. Private to `relae.linalg`; imported late, like the other kernels.

A is given by its columns: for item j, indptr/indices/values list its users; t_* list the items of each user.
"""

import numpy as np
from numba import prange

from relae.linalg._compile import compiled
from relae.linalg._kernels import rise, sink, worse


@compiled()
def _keep(scores, ids, size, score, index):
    """Put a neighbour into a heap whose root is the furthest, if it is nearer than that; return the new size."""
    if size == len(ids):
        if worse(scores[0], ids[0], score, index):
            sink(scores, ids, size, score, index)
        return size
    rise(scores, ids, size, score, index)
    return size + 1


@compiled()
def _nearest_of(
    item, indptr, indices, values, t_indptr, labels, t_values, weights, names, sums, touched, met, scores, ids
):
    """Fill `ids` with the item itself and those of the largest Σ_u x_uj x_ui · weights_i; return how many.

    sums and met (labels,) are zero, before and after. Sums of signed or tiny values can be 0 on the way, so that
    `met` has the last word; where a sum is not 0 it need not be asked.
    """
    count, weighted = 0, len(t_values) > 0
    for p in range(indptr[item], indptr[item + 1]):
        user, value = indices[p], values[p]
        for q in range(t_indptr[user], t_indptr[user + 1]):
            label = labels[q]
            if sums[label] == 0.0 and not met[label]:
                met[label] = True
                touched[count] = label
                count += 1
            sums[label] += value * t_values[q] if weighted else value
    size = _keep(scores, ids, 0, np.inf, item)
    for at in range(count):
        label = touched[at]
        score = np.float64(sums[label] * weights[label])
        if sums[label] > 0.0 and not (size == len(ids) and score < scores[0]) and names[label] != item:
            size = _keep(scores, ids, size, score, names[label])
        sums[label], met[label] = 0.0, False
    return size


@compiled(parallel=True)
def nearest(items, indptr, indices, values, t_indptr, labels, t_values, weights, names, threads, out, sizes, close):
    """Neighbours of some items and how close they are : out, close (items, count), by rising column; sizes count.

    The items of a user are given by labels: weights and names are those of labels. No t_values are ones.
    """
    block, count = out.shape
    n = len(indptr) - 1
    for thread in prange(threads):
        sums = np.zeros(n, values.dtype)
        touched = np.empty(n, np.int32)
        met = np.zeros(n, np.bool_)
        scores = np.empty(count, np.float64)
        ids = np.empty(count, np.int32)
        for row in range(thread, block, threads):
            size = _nearest_of(
                items[row],
                indptr,
                indices,
                values,
                t_indptr,
                labels,
                t_values,
                weights,
                names,
                sums,
                touched,
                met,
                scores,
                ids,
            )
            rising = np.argsort(ids[:size])
            out[row, :size], close[row, :size] = ids[:size][rising], scores[:size][rising]
            sizes[row] = size


@compiled()
def _gram_of_lists(members, indptr, indices, values, slots, out):
    """Lower triangle of the Gram of some items, from the users that each of them has.

    slots (users,) is −1 everywhere, before and after.
    """
    total = 0
    for item in members:
        total += indptr[item + 1] - indptr[item]
    users = np.empty(total, np.int32)
    starts = np.zeros(total + 1, np.int64)
    matches = 0
    for item in members:  # how many of the items each user has
        for p in range(indptr[item], indptr[item + 1]):
            slot = slots[indices[p]]
            if slot < 0:
                slot = np.int32(matches)
                slots[indices[p]] = slot
                users[matches] = indices[p]
                matches += 1
            starts[slot + 1] += 1
    for slot in range(matches):
        starts[slot + 1] += starts[slot]
    ends = starts[:matches].copy()
    positions = np.empty(total, np.int32)
    entries = np.empty(total, values.dtype)
    for member in range(len(members)):  # the items of each user, in rising order
        for p in range(indptr[members[member]], indptr[members[member] + 1]):
            slot = slots[indices[p]]
            positions[ends[slot]], entries[ends[slot]] = member, values[p]
            ends[slot] += 1
    out[:] = 0.0
    for slot in range(matches):
        slots[users[slot]] = -1
        for a in range(starts[slot], starts[slot + 1]):
            row, entry = out[positions[a]], entries[a]
            for b in range(starts[slot], a + 1):
                row[positions[b]] += entry * entries[b]


@compiled()
def _gram_of_square(members, square, out):
    """Lower triangle of the Gram of some items, from that of all."""
    for a in range(len(members)):
        row, source = out[a], square[members[a]]
        for b in range(a + 1):
            row[b] = source[members[b]]


@compiled(fastmath={"reassoc", "contract"})
def _cholesky(a):
    """Lower triangle of a small A into that of L, in place, with the diagonal as 1/L_ii; False if A is not definite.

    Four rows at a time against two earlier ones: eight sums per pass over six rows keep the vector units busy, and the
    call of a library, which takes as long as the work on matrices of this size, falls away.
    """
    k, one = len(a), a.dtype.type(1)
    for i0 in range(0, k, 4):
        j0 = 0
        if i0 + 4 <= k:
            r0, r1, r2, r3 = a[i0], a[i0 + 1], a[i0 + 2], a[i0 + 3]
            while j0 + 2 <= i0:
                q0, q1 = a[j0], a[j0 + 1]
                s00 = s01 = s10 = s11 = s20 = s21 = s30 = s31 = a.dtype.type(0)
                for t in range(j0):
                    y0, y1 = q0[t], q1[t]
                    x0, x1, x2, x3 = r0[t], r1[t], r2[t], r3[t]
                    s00 += x0 * y0
                    s01 += x0 * y1
                    s10 += x1 * y0
                    s11 += x1 * y1
                    s20 += x2 * y0
                    s21 += x2 * y1
                    s30 += x3 * y0
                    s31 += x3 * y1
                d0, d1, c = q0[j0], q1[j0 + 1], q1[j0]
                r0[j0] = (r0[j0] - s00) * d0
                r1[j0] = (r1[j0] - s10) * d0
                r2[j0] = (r2[j0] - s20) * d0
                r3[j0] = (r3[j0] - s30) * d0
                r0[j0 + 1] = (r0[j0 + 1] - s01 - r0[j0] * c) * d1
                r1[j0 + 1] = (r1[j0 + 1] - s11 - r1[j0] * c) * d1
                r2[j0 + 1] = (r2[j0 + 1] - s21 - r2[j0] * c) * d1
                r3[j0 + 1] = (r3[j0 + 1] - s31 - r3[j0] * c) * d1
                j0 += 2
        for i in range(i0, min(i0 + 4, k)):
            row = a[i]
            for j in range(j0, i + 1):
                other, total = a[j], a.dtype.type(0)
                for t in range(j):
                    total += row[t] * other[t]
                if j < i:
                    row[j] = (row[j] - total) * other[j]
                else:
                    pivot = row[i] - total
                    if not pivot > 0.0:
                        return False
                    row[i] = one / np.sqrt(pivot)
    return True


@compiled()
def _inverse_column(a, column, out):
    """One column of the inverse of a positive definite A, given by its lower triangle; NaN if A is not definite."""
    k = len(a)
    if not _cholesky(a):
        out[:] = np.nan
        return
    out[:] = 0.0
    out[column] = a[column, column]
    for i in range(column + 1, k):
        total = a.dtype.type(0)
        for t in range(column, i):
            total += a[i, t] * out[t]
        out[i] = -total * a[i, i]
    for i in range(k - 1, -1, -1):
        value = out[i] * a[i, i]
        out[i] = value
        row = a[i]
        for t in range(i):
            out[t] -= row[t] * value


@compiled(parallel=True)
def local_columns(items, members, sizes, indptr, indices, values, n_users, square, penalty, threads, out):
    """Column j of (G_SS + Λ_S)⁻¹ on the support S of each of some items j : out (items, largest support).

    square (items, items) has the Gram in its lower triangle, or (0, 0): then it is added up from the lists.
    """
    for thread in prange(threads):
        slots = np.full(n_users, -1, np.int32)
        for row in range(thread, len(members), threads):
            support = members[row, : sizes[row]]
            local = np.empty((len(support), len(support)), out.dtype)
            if len(square):
                _gram_of_square(support, square, local)
            else:
                _gram_of_lists(support, indptr, indices, values, slots, local)
            for at in range(len(support)):
                local[at, at] += penalty[support[at]]
            _inverse_column(local, np.searchsorted(support, items[row]), out[row, : sizes[row]])


@compiled()
def _elastic_net(a, column, l1, l2, tolerance, most, out):
    """Minimize ½ bᵀAb − A_column·b + l1 Σb + l2/2 bᵀb over b ≥ 0 with b_column = 0, one coordinate after the other.

    a is symmetric. Ends when no coordinate moves by more than `tolerance`, or after `most` passes.
    """
    k = len(a)
    out[:] = 0.0
    product = np.zeros(k, np.float64)  # A b
    for _ in range(most):
        largest = 0.0
        for i in range(k):
            scale = a[i, i] + l2
            if i == column or scale <= 0.0:
                continue
            value = max(0.0, (a[column, i] - product[i] + a[i, i] * out[i] - l1) / scale)
            step = value - out[i]
            if step != 0.0:
                out[i] = value
                row = a[i]
                for t in range(k):
                    product[t] += step * row[t]
                largest = max(largest, abs(step))
        if largest <= tolerance:
            return


@compiled(parallel=True)
def elastic_columns(
    items, members, sizes, indptr, indices, values, n_users, square, l1, l2, tolerance, most, threads, out
):
    """The elastic net of each of some items j on the rest of its support : out (items, largest support)."""
    for thread in prange(threads):
        slots = np.full(n_users, -1, np.int32)
        for row in range(thread, len(members), threads):
            support = members[row, : sizes[row]]
            local = np.empty((len(support), len(support)), out.dtype)
            if len(square):
                _gram_of_square(support, square, local)
            else:
                _gram_of_lists(support, indptr, indices, values, slots, local)
            for a in range(len(support)):
                for b in range(a):
                    local[b, a] = local[a, b]
            column = np.searchsorted(support, items[row])
            _elastic_net(local, column, l1, l2, tolerance, most, out[row, : sizes[row]])
