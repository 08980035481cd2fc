"""The inverse of a symmetric positive definite matrix, in place, at the speed of matrix multiplication.

With A = L Lᵀ the Cholesky factorization and W = L⁻¹, the inverse is A⁻¹ = WᵀW. W comes from a recursion over blocks:

    L₂₁ = A₂₁W₁₁ᵀ        S = A₂₂ − L₂₁L₂₁ᵀ        W = [[      W₁₁,        ·  ],
                                                      [−W₂₂L₂₁W₁₁,   W₂₂]]

with W₁₁ from A₁₁ and W₂₂ from S: n³ flops in all when zeros and symmetric halves are left out. Only the lower
triangle is read and kept up to date; the block A₁₂, redundant by symmetry, is the workspace that holds L₂₁ᵀ.

It is all `numpy.matmul`, on purpose. LAPACK through SciPy has 32-bit indices and dies of a segmentation fault near
n = 27,000, and each further thread pool (SciPy's BLAS, numba's) would have to share the cores with the workers of
NumPy's BLAS, which spin for a while after every product. A recursion on A⁻¹ itself is as quick but loses digits: its
error grows with the square of the condition number.

Small matrices have products that are too small for the speed of large ones. Up to `_LAPACK` rows, where 32-bit indices
are safe, SciPy's LAPACK makes the whole inverse (`potrf`, `potri`), also in place.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Square = NDArray[np.floating]
Step = Callable[[float], None]

_LAPACK = 10_000  # up to this LAPACK is quicker than the recursion; 800 MB in float64 are far from its 32-bit limit
_LEAF = 128  # below this NumPy's Cholesky is as quick as more recursion
_STRIP = 1024  # rows of a large product: enough for the BLAS, little beside the matrix
_FINE = 256  # rows of a product along the diagonal, where half of a strip would be zeros or a mirror image
_TILE = 256  # of copies: both the read and the written tile stay in the cache


def inverse_workspace_bytes(n: int, itemsize: int) -> int:
    """Bytes that `invert_spd` takes beside its argument."""
    return _STRIP // 2 * (n + 128) * itemsize


def invert_spd(a: Square, progress: Callable[[float], None] | None = None) -> Square:
    """Replace a symmetric positive definite matrix by its inverse and return it.

    Parameters
    ----------
    a : (n, n) C-contiguous float32 or float64
        Overwritten. Only its lower triangle is read; the result is the full symmetric matrix.
    progress : callable, optional
        Called with the fraction done, from 0 to 1.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix is not positive definite in this precision. Its content is lost then.
    """
    shape = getattr(a, "shape", None)
    if shape is None or len(shape) != 2 or shape[0] != shape[1] or a.dtype not in (np.float32, np.float64):
        raise ValueError(f"a must be a square float32 or float64 array, got {getattr(a, 'dtype', type(a))} {shape}")
    if not a.flags.c_contiguous:
        raise ValueError("a must be C-contiguous: the inverse is made in place")
    n = len(a)
    if 0 < n <= _LAPACK:
        return _invert_by_lapack(a, progress)
    work = np.empty(inverse_workspace_bytes(n, 1), dtype=a.dtype)
    total, done = max(float(n) ** 3, 1.0), 0.0

    def step(flops: float) -> None:
        nonlocal done
        done += flops
        if progress is not None:
            progress(min(done / total, 1.0))

    clear_above_diagonal(a)
    invert_factor(a, work, step)
    _square_factor(a, work, step)
    step(total)
    return a


def _invert_by_lapack(a: Square, progress: Callable[[float], None] | None) -> Square:
    """Replace the lower triangle by that of A = LLᵀ, then of A⁻¹; LAPACK sees the transposed array, by columns."""
    factorize, invert = (lapack.spotrf, lapack.spotri) if a.dtype == np.float32 else (lapack.dpotrf, lapack.dpotri)
    factor, failed = factorize(a.T, lower=0, clean=0, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError(f"the matrix is not positive definite: see row {failed - 1}")
    if progress is not None:
        progress(1 / 3)
    invert(factor, lower=0, overwrite_c=1)
    mirror(a)
    if progress is not None:
        progress(1.0)
    return a


def _strips(n: int, size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + size, n)) for start in range(0, n, size))


def invert_factor(a: Square, work: Square, step: Step) -> None:
    """Lower triangle of a ← W. Above it, `_STRIP` columns wide, are zeros before and after; beyond is workspace."""
    n = len(a)
    if n <= _LEAF:
        if n:
            a[:] = np.tril(np.linalg.inv(np.linalg.cholesky(a)))
        return
    half = (n // 2 + 63) // 64 * 64
    a11, a12, a21, a22 = a[:half, :half], a[:half, half:], a[half:, :half], a[half:, half:]
    invert_factor(a11, work, step)
    _multiply_left(a11, a21.T, a12, work, step)  # L₂₁ᵀ = W₁₁A₁₂
    _subtract_gram(a22, a12, work, step)  # S
    invert_factor(a22, work, step)
    _multiply_right(a12.T, a11, a21, work, step)  # L₂₁W₁₁
    _multiply_left(a22, a21, a21, work, step)
    np.negative(a21, out=a21)
    a12[-_STRIP:, :_STRIP] = 0


def _multiply_left(lower: Square, right: Square, out: Square, work: Square, step: Step) -> None:
    """out ← lower @ right, the last strip first, so that `out` may be `right`."""
    columns = right.shape[1]
    for start, stop in reversed(list(_strips(len(lower), _STRIP))):
        corner = work[: (stop - start) * columns].reshape(stop - start, columns)
        for i, j in _strips(stop - start, _FINE):
            np.matmul(lower[start + i : start + j, start : start + j], right[start : start + j], out=corner[i:j])
        strip = out[start:stop]
        np.matmul(lower[start:stop, :start], right[:start], out=strip)
        strip += corner
        step((stop - start) * (stop + start) * columns)


def _multiply_right(left: Square, lower: Square, out: Square, work: Square, step: Step) -> None:
    """out ← left @ lower, by column strips."""
    rows, n = left.shape
    for start, stop in _strips(n, _STRIP):
        corner = work[: rows * (stop - start)].reshape(rows, stop - start)
        for i, j in _strips(stop - start, _FINE):
            np.matmul(left[:, start + i : stop], lower[start + i : stop, start + i : start + j], out=corner[:, i:j])
        strip = out[:, start:stop]
        np.matmul(left[:, stop:], lower[stop:, start:stop], out=strip)
        strip += corner
        step((stop - start) * (2 * n - stop - start) * rows)


def _subtract_gram(target: Square, factor: Square, work: Square, step: Step, combine: np.ufunc = np.subtract) -> None:
    """Lower triangle of target ← target − factorᵀ @ factor; with `combine` np.add, target + factorᵀ @ factor."""
    inner, n = factor.shape
    for start, stop in _strips(n, _STRIP):
        _combine(target[start:stop, :start], factor[:, start:stop].T, factor[:, :start], work, combine)
        for i, j in _strips(stop - start, _FINE):
            i, j = start + i, start + j
            _combine(target[i:j, start:j], factor[:, i:j].T, factor[:, start:j], work, combine)
        step((stop - start) * (stop + start) * inner)


def _combine(target: Square, left: Square, right: Square, work: Square, combine: np.ufunc) -> None:
    product = work[: target.size].reshape(target.shape)
    np.matmul(left, right, out=product)
    combine(target, product, out=target)


def _square_factor(a: Square, work: Square, step: Step) -> None:
    """a ← WᵀW, with W its lower triangle: a row of the result needs no row of W above it."""
    n = len(a)
    for start, stop in _strips(n, _STRIP // 2):
        product = work[: (stop - start) * stop].reshape(stop - start, stop)
        np.matmul(a[start:, start:stop].T, a[start:, :start], out=product[:, :start])
        for i, j in _strips(stop - start, _FINE):
            rows = slice(start + i, start + j)
            np.matmul(a[rows.start :, rows].T, a[rows.start :, start : rows.stop], out=product[i:j, start : rows.stop])
            a[rows, start : rows.stop] = product[i:j, start : rows.stop]
        a[start:stop, :start] = product[:, :start]
        for i, j in _strips(start, _TILE):  # the mirror image, while the strip is in the cache
            a[i:j, start:stop] = product[:, i:j].T
        for i in range(start, stop):
            a[i, i + 1 : stop] = a[i + 1 : stop, i]
        step((stop - start) * (stop + start) * (n - start))


def add_gram(target: Square, factor: Square, *, sign: int) -> None:
    """Add ±factorᵀ @ factor to a symmetric matrix, in place: half of the flops, and the result is symmetric bit by bit.

    target : (n, n) C-contiguous, factor : (rank, n) of the same type.
    """
    n = len(target)
    work = np.empty(min(_STRIP, n) * n, target.dtype)
    _subtract_gram(target, factor, work, lambda _: None, np.add if sign > 0 else np.subtract)
    mirror(target)


def mirror(a: Square) -> None:
    """Copy the lower triangle of a square onto the upper one."""
    n = len(a)
    for start, stop in _strips(n, _TILE):
        for i, j in _strips(start, _TILE):
            a[i:j, start:stop] = a[start:stop, i:j].T
        corner = a[start:stop, start:stop]
        corner[:] = np.tril(corner) + np.tril(corner, -1).T


def clear_above_diagonal(a: Square) -> None:
    """Put zeros where products along the diagonal look: what was there, even NaN, must not meet the arithmetic."""
    for i, row in enumerate(a):
        row[i + 1 : i + 1 + _STRIP] = 0
