"""The inverse of a symmetric positive definite matrix, in place, at the speed of matrix multiplication.

With A split in two by two blocks and S = A₂₂ − A₂₁A₁₁⁻¹A₁₂ the Schur complement,

    Yᵀ = A₁₁⁻¹A₁₂        A⁻¹ = [[A₁₁⁻¹ + YᵀS⁻¹Y,  ·  ],
                               [     −S⁻¹Y,    S⁻¹]]

Two inverses of half the size and four products: n³ flops in all when the symmetric ones are done by half. Only the
lower triangle is read and kept up to date; A₁₂, redundant by symmetry, is the workspace that holds Yᵀ.

It is all `numpy.matmul`, on purpose. LAPACK through SciPy has 32-bit indices and dies of a segmentation fault near
n = 27,000, and each further thread pool (SciPy's BLAS, numba's) would have to share the cores with the
workers of NumPy's BLAS, which spin for a while after every product.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Square = NDArray[np.floating]

_LEAF = 128  # below this a Cholesky factor and its inverse are as quick as more recursion
_TILE = 256  # of the transposed copy: both the read and the written tile stay in the cache
_WORKSPACE_ROWS = 512


def inverse_workspace_bytes(n: int, itemsize: int) -> int:
    """Bytes that `invert_spd` takes beside its argument."""
    return _WORKSPACE_ROWS * ((n + 1) // 2 + _TILE) * itemsize


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
    n = len(a)
    if a.shape != (n, n) or not a.flags.c_contiguous or a.dtype not in (np.float32, np.float64):
        raise ValueError(f"a must be a square C-contiguous float32 or float64 array, got {a.dtype} {a.shape}")
    if n == 0:
        return a
    work = np.empty(inverse_workspace_bytes(n, 1), dtype=a.dtype)
    total, done = max(float(n) ** 3, 1.0), 0.0

    def step(flops: float) -> None:
        nonlocal done
        done += flops
        if progress is not None:
            progress(min(done / total, 1.0))

    _invert_lower(a, work, step)
    _mirror(a)
    step(total)
    return a


def _invert_lower(a: Square, work: Square, step: Callable[[float], None]) -> None:
    n = len(a)
    if n <= _LEAF:
        factor_inverse = np.linalg.inv(np.linalg.cholesky(a))
        np.matmul(factor_inverse.T, factor_inverse, out=a)
        return
    half = (n // 2 + 63) // 64 * 64
    a11, a12, a21, a22 = a[:half, :half], a[:half, half:], a[half:, :half], a[half:, half:]
    _invert_lower(a11, work, step)
    _mirror(a11)
    _product(a11, a21.T, a12, 1, step)  # Yᵀ
    _subtract_product_lower(a22, a21, a12, work, step)  # S
    _invert_lower(a22, work, step)
    _mirror(a22)
    _product(a22, a12.T, a21, -1, step)  # −S⁻¹Y
    _subtract_product_lower(a11, a12, a21, work, step)  # A₁₁⁻¹ + YᵀS⁻¹Y


def _product(left: Square, right: Square, out: Square, sign: int, step: Callable[[float], None]) -> None:
    """out ← sign · left @ right, by strips, so that progress is seen on large matrices."""
    rows = 4096
    for start in range(0, len(left), rows):
        strip = out[start : start + rows]
        np.matmul(left[start : start + rows], right, out=strip)
        if sign < 0:
            np.negative(strip, out=strip)
        step(2.0 * strip.size * left.shape[1])


def _subtract_product_lower(
    target: Square, left: Square, right: Square, work: Square, step: Callable[[float], None]
) -> None:
    """Lower triangle of target ← target − left @ right, by row strips that end at the diagonal."""
    n = len(target)
    rows = min(max(256, n // 16 // 64 * 64), _WORKSPACE_ROWS)
    for start in range(0, n, rows):
        stop = min(start + rows, n)
        strip = work[: (stop - start) * stop].reshape(stop - start, stop)
        np.matmul(left[start:stop], right[:, :stop], out=strip)
        target[start:stop, :stop] -= strip
        step(2.0 * strip.size * left.shape[1])


def _mirror(a: Square) -> None:
    """Copy the lower triangle onto the upper one, tile by tile."""
    n = len(a)
    for i in range(0, n, _TILE):
        for j in range(0, i, _TILE):
            a[j : j + _TILE, i : i + _TILE] = a[i : i + _TILE, j : j + _TILE].T
        tile = a[i : i + _TILE, i : i + _TILE]
        upper = np.triu_indices(len(tile), 1)
        tile[upper] = tile.T[upper]
