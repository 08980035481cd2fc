"""Functions of a Gram matrix that is too large to decompose: the largest eigenpairs exactly, the rest by a polynomial.

With A : (side, other) sparse and side ≤ other, the matrix is A Aᵀ. Its few largest eigenvalues lie far above all others
and are found by Lanczos (`Top`). On what is left, the spectrum is moved to [−1, 1] and functions of the matrix are
Chebyshev series (the kernel polynomial method, Weiße et al. 2006):

    f(A Aᵀ) ≈ Σ_k g_k c_k T_k      c_k the coefficients of f,  g_k Jackson's damping, which keeps steps from rippling

A step in such a series is blurred by about π/degree in the angle, hence by π/degree · √(s·(bound − s)) in an eigenvalue
s: least at the lower end, where most eigenvalues of interaction data are.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct
from scipy.sparse.linalg import LinearOperator, eigsh

from relae._common.progress import Progress, of_stage
from relae.errors import Option, Text
from relae.linalg import Csr, Dense, as_csr, gram, one_blas_thread, sparse_dense, transpose
from relae.solvers import ensure_memory

Values = NDArray[np.float64]

EXACT_LIMIT = 6_000
"""Up to this side the whole decomposition is made: about 20 s for the values and 45 s with the vectors on one core."""

_ALWAYS_EXACT = 64
_TOP = 64
_DEGREE = 400
_SAMPLES = 2**15  # of a function, for its coefficients: many more than the degree, because it may have steps
_MARGIN = 1.0001  # above the last of the top eigenvalues: no other one may be outside of [−1, 1]


class Sides(NamedTuple):
    """The non-empty part of a matrix with its shorter side as rows."""

    a: Csr  # (side, other)
    a_t: Csr  # (other, side)
    users_are_rows: bool
    items: NDArray[np.int64]  # the column of the matrix of each item that is left

    @property
    def side(self) -> int:
        """The order of the Gram matrix."""
        return int(self.a.shape[0])


def sides(x: Csr) -> Sides:
    """Leave out users and items without interactions, which only add zeros, and put the shorter side first."""
    users = np.flatnonzero(np.diff(x.indptr) > 0)
    items = np.flatnonzero(np.bincount(x.indices, minlength=x.shape[1]) > 0)
    if len(items) == 0:
        raise ValueError(f"there is nothing to decompose: {x.shape[0]:,} users × {x.shape[1]:,} items, no interactions")
    full = as_csr(x[users][:, items], np.float64)
    users_are_rows = len(users) <= len(items)
    a = full if users_are_rows else transpose(full)
    return Sides(a, transpose(a), users_are_rows, items)


def is_exact(side: int, exact_limit: int) -> bool:
    """Return whether a Gram matrix of this order is decomposed as a whole."""
    return side <= max(exact_limit, _ALWAYS_EXACT)


# --- exactly -----------------------------------------------------------------------------------------------------


def exact_values(grams: Sides) -> Values:
    """Return the eigenvalues of A Aᵀ that are not 0, falling : (rank,)."""
    square = _dense_gram(grams)
    with one_blas_thread():
        values: Values = np.linalg.eigvalsh(square)[::-1].astype(np.float64, copy=False)
    return values[: _rank(values)]


def exact_pairs(grams: Sides) -> tuple[Values, Values]:
    """Return the eigenvalues that are not 0, falling : (rank,), and their vectors : (side, rank)."""
    square = _dense_gram(grams)
    with one_blas_thread():
        values, vectors = np.linalg.eigh(square)
    rank = _rank(values[::-1])
    return values[::-1][:rank], vectors[:, ::-1][:, :rank]


def _dense_gram(grams: Sides) -> Values:
    n = grams.side
    ensure_memory(
        3.0 * 8 * n * n,
        f"the decomposition of {n:,} × {n:,}",
        Text("set ", Option("exact_limit"), " below it for an estimate"),
    )
    square = np.zeros((n, n))
    gram(grams.a, grams.a_t, square)
    return square  # NumPy's eigenvalue routines read the lower triangle


def _rank(falling: Values) -> int:
    """Return the number of eigenvalues above the rounding error of the largest."""
    return int(np.count_nonzero(falling > len(falling) * np.finfo(np.float64).eps * falling[0]))


# --- estimated ---------------------------------------------------------------------------------------------------


class Top(NamedTuple):
    """The largest eigenvalues, falling, and their vectors : (side, count)."""

    values: Values
    vectors: Values


def top_pairs(grams: Sides, rng: np.random.Generator, count: int = _TOP) -> Top:
    """Return the largest eigenpairs of A Aᵀ, by Lanczos to machine precision."""
    side = grams.side
    count = min(count, side // 10)
    operator = LinearOperator(
        (side, side), matvec=lambda vector: grams.a @ (grams.a_t @ vector.ravel()), dtype=np.dtype(np.float64)
    )
    with one_blas_thread():
        values, vectors = eigsh(operator, k=count, v0=rng.standard_normal(side))
    order = np.argsort(-values)
    return Top(values[order], np.ascontiguousarray(vectors[:, order]))


class Series(NamedTuple):
    """Chebyshev moments of a block b of vectors without the top eigenvectors: bᵀ T_k b : (degree + 1, block, block)."""

    moments: Values
    bound: float  # eigenvalues from 0 to here are mapped to [−1, 1]

    def apply(self, function: Callable[[Values], Values]) -> Values:
        """Return bᵀ f(A Aᵀ) b : (block, block)."""
        degree = len(self.moments) - 1
        angles = (np.arange(_SAMPLES) + 0.5) * np.pi / _SAMPLES
        coefficients = dct(function(self.bound * (1.0 + np.cos(angles)) / 2.0))[: degree + 1] / _SAMPLES
        coefficients[0] /= 2.0
        return np.asarray(np.tensordot(_jackson(degree) * coefficients, self.moments, 1))

    def above(self) -> tuple[Values, Values]:
        """Return falling eigenvalues, and the share of the spectrum above each of them (traces of the moments).

        Σ over k of the coefficients of the step 1[φ < θ] = θ/π + Σ 2 sin(kθ)/(kπ) · cos kφ; it never falls, because
        Jackson's kernel is positive.
        """
        traces = np.trace(self.moments, axis1=1, axis2=2)
        degree = len(traces) - 1
        k = np.arange(1, degree + 1)
        weights = _jackson(degree) * traces / traces[0]
        angles = np.linspace(0.0, np.pi, 20 * degree + 1)
        shares = angles / np.pi + np.sin(angles[:, None] * k) @ (weights[1:] * 2.0 / (k * np.pi))
        return self.bound * (1.0 + np.cos(angles)) / 2.0, np.maximum.accumulate(shares)

    @property
    def resolution(self) -> float:
        """The eigenvalue below which nothing can be told from 0."""
        return float(self.bound * np.sin(np.pi / (2 * len(self.moments))) ** 2)


def chebyshev_series(
    grams: Sides, block: Dense, top: Top, *, degree: int = _DEGREE, progress: Callable[[float], None] | None = None
) -> Series:
    """Return the moments of a block : (side, columns), from degree/2 products with A and Aᵀ.

    T_2k = 2 T_k T_k − T_0 and T_2k+1 = 2 T_k+1 T_k − T_1 give two moments for each product.
    """
    bound = float(top.values[-1]) * _MARGIN
    a, a_t = as_csr(grams.a, np.float32), as_csr(grams.a_t, np.float32)
    vectors = top.vectors.astype(np.float32)

    def without_top(columns: Dense) -> Dense:
        # after every product: what rounding leaves of the top would grow with each one
        columns -= vectors @ (vectors.T @ columns)
        return columns

    def times(columns: Dense) -> Dense:
        product = without_top(sparse_dense(a, sparse_dense(a_t, columns)))
        product *= 2.0 / bound
        product -= columns
        return product

    half = degree // 2
    moments = np.empty((2 * half + 1, block.shape[1], block.shape[1]))
    with one_blas_thread():
        previous = without_top(np.array(block, np.float32, order="C"))
        current = times(previous)
        moments[0], moments[1] = _symmetric(previous.T @ previous), _symmetric(current.T @ previous)
        for k in range(1, half + 1):
            moments[2 * k] = 2.0 * _symmetric(current.T @ current) - moments[0]
            if k < half:
                following = times(current)
                following *= 2.0
                following -= previous
                previous, current = current, following
                moments[2 * k + 1] = 2.0 * _symmetric(current.T @ previous) - moments[1]
            if progress is not None:
                progress(k / half)
    return Series(moments, bound)


def _symmetric(square: Dense) -> Values:
    return np.asarray((square + square.T) / 2.0, np.float64)


def _jackson(degree: int) -> Values:
    """Return the damping factors of a Chebyshev series : (degree + 1,)."""
    n = degree + 2
    k = np.arange(degree + 1)
    return np.asarray(((n - k) * np.cos(np.pi * k / n) + np.sin(np.pi * k / n) / np.tan(np.pi / n)) / n)


def estimated_values(
    grams: Sides, top: Top, rng: np.random.Generator, *, probes: int = 16, progress: Progress | None = None
) -> Values:
    """Return eigenvalues, falling: the largest exactly, then quantiles of a density that random vectors estimate."""
    block = rng.choice([-1.0, 1.0], (grams.side, probes))
    report = of_stage(progress, "spectrum")
    series = chebyshev_series(grams, block, top, progress=report)
    eigenvalues, shares = series.above()
    rest = grams.side - len(top.values)
    eigenvalues_between = np.interp((np.arange(rest) + 0.5) / rest, shares, eigenvalues)
    eigenvalues_between = eigenvalues_between[eigenvalues_between > series.resolution]
    return np.concatenate([top.values, np.minimum(eigenvalues_between, top.values[-1])])
