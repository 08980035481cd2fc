"""Compiled least squares, a small system per row. Private to `relae.linalg`; imported late, like the other kernels.

Each row is solved by one thread in a fixed order, so results depend neither on timing nor on the number of threads.
"""

import numpy as np
from numba import prange

from relae.linalg._compile import compiled
from relae.linalg._local_kernels import _cholesky

_PANEL = 240  # columns gathered at a time; a power of two would send a column of the panel to a few cache lines only


@compiled(fastmath={"reassoc", "contract"})
def _add_gram(rows, width, out):
    """Add the products of the rows, over their first `width` entries, to the lower triangle of `out`.

    Four rows against two, as in `_cholesky`; len(rows) is a multiple of four. Some of the upper triangle is written to.
    """
    for i0 in range(0, len(rows), 4):
        r0, r1, r2, r3 = rows[i0], rows[i0 + 1], rows[i0 + 2], rows[i0 + 3]
        for j0 in range(0, i0 + 4, 2):
            q0, q1 = rows[j0], rows[j0 + 1]
            s00 = s01 = s10 = s11 = s20 = s21 = s30 = s31 = rows.dtype.type(0)
            for t in range(width):
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
            out[i0, j0] += s00
            out[i0, j0 + 1] += s01
            out[i0 + 1, j0] += s10
            out[i0 + 1, j0 + 1] += s11
            out[i0 + 2, j0] += s20
            out[i0 + 2, j0 + 1] += s21
            out[i0 + 3, j0] += s30
            out[i0 + 3, j0 + 1] += s31


@compiled(fastmath={"reassoc", "contract"})
def _solve(a, b):
    """Turn b into A⁻¹ b, with A given by its lower triangle, which is overwritten; NaN if A is not definite."""
    if not _cholesky(a):
        for i in range(len(b)):
            b[i] = np.nan
        return
    for i in range(len(b)):
        row, total = a[i], a.dtype.type(0)
        for t in range(i):
            total += row[t] * b[t]
        b[i] = (b[i] - total) * row[i]
    for i in range(len(b) - 1, -1, -1):
        row, value = a[i], b[i] * a[i, i]
        b[i] = value
        for t in range(i):
            b[t] -= row[t] * value


@compiled()
def _entries(indices, roots, factors, scale, out, right):
    """W : (entries, dim) into the first rows of `out`, and √x into `right`."""
    for p in range(len(indices)):
        right[p] = roots[p]
        target, source, root = out[p], factors[indices[p]], roots[p]
        for t in range(len(scale)):
            target[t] = root * source[t] * scale[t]


@compiled()
def _entries_across(indices, roots, factors, scale, out, right):
    """Wᵀ : (dim, entries) into the first columns of `out`, and Wᵀ√x added to `right`."""
    for p in range(len(indices)):
        source, root = factors[indices[p]], roots[p]
        for t in range(len(scale)):
            value = root * source[t] * scale[t]
            out[t, p] = value
            right[t] += root * value


@compiled(error_model="numpy")
def _row(indices, roots, factors, spectrum, penalty, out):
    """D^−½ (I + WᵀW)⁻¹ Wᵀ√x = D^−½ Wᵀ (I + W Wᵀ)⁻¹ √x into `out`, by the smaller of the two systems."""
    dim, entries = len(out), len(indices)
    few = entries < dim
    size = -(-min(entries, dim) // 4) * 4  # filled up by rows of the identity
    step = dim if few else _PANEL
    w = np.zeros((size, step), factors.dtype)
    system, right = np.zeros((size, size), factors.dtype), np.zeros(size, factors.dtype)
    for i in range(size):
        system[i, i] = 1.0
    scale = np.empty(dim, factors.dtype)
    for t in range(dim):
        scale[t] = 1.0 / np.sqrt(spectrum[t] + penalty)
    for start in range(0, entries, step):
        end = min(start + step, entries)
        if few:
            _entries(indices, roots, factors, scale, w, right)
        else:
            _entries_across(indices[start:end], roots[start:end], factors, scale, w, right)
        _add_gram(w, dim if few else end - start, system)
    _solve(system, right)
    for t in range(dim):
        out[t] = 0.0 if few else right[t] * scale[t]
    if few:
        for p in range(entries):
            source, weight = w[p], right[p]
            for t in range(dim):
                out[t] += weight * source[t] * scale[t]


@compiled(parallel=True)
def als_rows(order, indptr, indices, roots, factors, spectrum, penalty, threads, out):
    """Least squares for each row, with D = spectrum + its penalty and W = √x · factors · D^−½ on its entries.

    roots are √x; spectrum (dim,) is that of the unobserved; rows are dealt out to the threads in `order`.
    """
    for thread in prange(threads):
        for at in range(thread, len(order), threads):
            row = order[at]
            start, end = indptr[row], indptr[row + 1]
            _row(indices[start:end], roots[start:end], factors, spectrum, penalty[row], out[row])
