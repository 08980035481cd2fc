"""The first singular vectors of a sparse matrix: subspace iteration with Chebyshev polynomials, on all cores."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from relae.linalg.sparse import Csr, Dense, as_csr, sparse_dense, transpose

_TOLERANCE = 1e-4  # of the largest eigenvalue of AᵀA: how exact a vector has to be
_NOTHING = 1e-6  # of the largest singular value: below, it is 0
_GROWTH = 1e6  # of the largest eigenvalue beside those of the cut: more, and float32 loses the small ones
_DEGREE = 16  # at most
_ROUNDS = 40


def right_singular_vectors(a: Csr, rank: int, progress: Callable[[float], None] | None = None) -> Dense:
    """Return the right singular vectors of the largest singular values, these falling : (columns, rank), float32.

    A vector whose singular value is 0 is returned as zeros, as any other would do. The start is fixed, so that the
    same matrix gives the same vectors; their signs have no meaning.

    Raises
    ------
    numpy.linalg.LinAlgError
        If they are not exact enough after many rounds.
    """
    if progress is not None:
        progress(0.05)
    exact = min(a.shape) <= 4 * rank + 64
    values, vectors = _of_all(a, rank) if exact else _by_rounds(as_csr(a, np.float32), rank, progress)
    vectors[:, values <= _NOTHING * values[0]] = 0.0
    if progress is not None:
        progress(1.0)
    return np.ascontiguousarray(vectors, np.float32)


def _of_all(a: Csr, rank: int) -> tuple[Dense, Dense]:
    """Decompose the smaller of AᵀA and AAᵀ as a dense matrix; return singular values and right vectors."""
    a = as_csr(a, np.float64)
    a_t, wide = transpose(a), a.shape[0] < a.shape[1]
    squares, vectors = np.linalg.eigh((a @ a_t if wide else a_t @ a).toarray())
    values: NDArray[np.float64] = np.sqrt(np.maximum(squares[::-1][:rank], 0.0))
    vectors = np.ascontiguousarray(vectors[:, ::-1][:, :rank])
    if wide:
        vectors = sparse_dense(a_t, vectors) / np.where(values > _NOTHING * values[0], values, 1.0)
    return values, vectors


def _by_rounds(a: Csr, rank: int, progress: Callable[[float], None] | None) -> tuple[Dense, Dense]:
    """Return singular values and right vectors of a large A.

    Each round multiplies a block of vectors by a Chebyshev polynomial of AᵀA, which is small for the eigenvalues below
    those of the block and grows fast above; then the block is made orthonormal and rotated to the best vectors in it.
    A quarter more vectors than asked for keep the last ones apart from the rest.
    """
    from scipy.linalg import eigh, qr

    a_t = transpose(a)

    def squared(block: Dense) -> Dense:
        return sparse_dense(a_t, sparse_dense(a, block))

    width = min(rank + max(16, rank // 4), *a.shape)
    block: Dense = np.random.default_rng(0).standard_normal((a.shape[1], width), np.float32)
    block, cut, worst, done = squared(squared(block)), 0.0, np.inf, 0.05
    for _ in range(_ROUNDS):
        block = np.ascontiguousarray(qr(block, mode="economic", overwrite_a=True, check_finite=False)[0])
        image = squared(block)
        squares, mixed = eigh(block.T @ image, check_finite=False)
        squares, mixed = squares[::-1], np.ascontiguousarray(mixed[:, ::-1])
        block, image = block @ mixed, image @ mixed
        worst = float(np.linalg.norm(image[:, :rank] - block[:, :rank] * squares[:rank], axis=0).max() / squares[0])
        if worst <= _TOLERANCE:
            return np.sqrt(np.maximum(squares[:rank], 0.0)), block[:, :rank].copy()
        if progress is not None:
            done = max(done, min(0.99, float(np.log(worst) / np.log(_TOLERANCE))))
            progress(done)
        cut = max(cut, float(squares[-1]), float(np.finfo(np.float32).tiny))
        block = _chebyshev(squared, block, image, cut, squares[0])
    raise np.linalg.LinAlgError(f"{rank} singular vectors were found to {worst:.0e}, not to {_TOLERANCE:.0e}")


def _chebyshev(squared: Callable[[Dense], Dense], block: Dense, image: Dense, cut: float, largest: float) -> Dense:
    """Return T(S) block for S = AᵀA, with T the Chebyshev polynomial of [0, cut], 1 at the largest eigenvalue.

    image is S times the block. The scale keeps numbers from growing without bound: σ_k = T_k−1(top)/T_k(top).
    """
    top = 2.0 * float(largest) / cut - 1.0
    sigma = 1.0 / top
    before: Dense = block
    last: Dense = (image * np.float32(2.0 / cut) - block) * np.float32(sigma)
    degree = int(np.clip(np.log(2.0 * _GROWTH) / np.arccosh(max(top, 1.0 + 1e-6)), 2, _DEGREE))
    for _ in range(1, degree):
        following = 1.0 / (2.0 * top - sigma)
        step = squared(last)
        step *= np.float32(2.0 / cut)
        step -= last
        step *= np.float32(2.0 * following)
        step -= np.float32(sigma * following) * before
        before, last, sigma = last, step, following
    # columns of eigenvalues near the cut are small beside the others: alike in length they are told apart better
    last /= np.maximum(np.linalg.norm(last, axis=0), np.finfo(np.float32).tiny)
    return last
