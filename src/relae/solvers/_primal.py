"""P by inverting G + Λ itself: a square of items × items."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from relae._common.progress import Fraction
from relae.linalg import (
    FLOATS,
    Arrays,
    Csr,
    Dense,
    Expected,
    Layout,
    dense_sparse,
    invert_spd,
    sparse_dense,
)
from relae.solvers._check import residual
from relae.solvers._inverse import Inverse
from relae.solvers._solver import Forecast, Rows, Shape, Solver, square_forecast
from relae.solvers._update import NewRows, check_updated, step_error

_STRIP = 2048


class PrimalInverse(Inverse):
    """P as a dense array."""

    LAYOUT: ClassVar[Layout] = {"inverse": Expected(FLOATS, ("items", "items"), mapped=True)}
    saved_as = ("primal",)
    solver = "primal"
    batch_bytes = 24e6  # the scores are still in the cache when they are ranked, and their memory is used again

    def __init__(self, square: Dense) -> None:
        self.square = square  # (items, items)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.square)

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of P."""
        return self.square.dtype

    @property
    def bytes_per_user(self) -> int:
        """One row of the result."""
        return self.n_items * self.dtype.itemsize

    def diagonal(self) -> NDArray[np.float64]:
        """Return the diagonal of P : (items,)."""
        return self.square.diagonal().astype(np.float64)

    def project(self, histories: Csr) -> Dense:
        """Return histories @ P : (users, items), reading only the rows of P that a history names."""
        return sparse_dense(histories, self.square)

    def rows(self, items: NDArray[np.int64]) -> Dense:
        """Return P[items] : (len(items), items)."""
        return self.square[items]

    def block(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Dense:
        """Return P[rows][:, columns] : (rows, columns)."""
        return self.square[np.ix_(rows, columns)]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return P itself."""
        return {"inverse": self.square}

    @classmethod
    def from_arrays(cls, arrays: Arrays, penalty: NDArray[np.float64]) -> Self:
        """Return the inverse with this P; nothing is copied."""
        return cls(arrays["inverse"])

    def updated(
        self, new: NewRows, residual: float, progress: Fraction | None, rng: np.random.Generator
    ) -> tuple["PrimalInverse", float]:
        """Return P with new rows by a change of low rank: a row for each user, and for each penalty that grows."""
        old, rows = self.with_items(new.penalty[self.n_items :]), new.with_growth()
        new.check_worthwhile(rows.shape[0], old.n_items)
        inverse = old.with_rows(rows)
        error = residual + step_error(old, inverse, rows, rng)
        check_updated(error)
        return inverse, error

    def with_rows(self, rows: Csr) -> "PrimalInverse":
        """Return (A + UᵀU)⁻¹ = P − WᵀW of A = P⁻¹ and new rows U, with W = L⁻¹UP and LLᵀ = I + UPUᵀ, in a new array.

        rows : (new rows, items or more); columns beyond those of P must have been added with `with_items`.
        """
        projected = self.project(rows)  # U P : (rows, items)
        inner = dense_sparse(projected, rows).astype(np.float64)
        inner.flat[:: len(inner) + 1] += 1.0
        factor = np.linalg.cholesky((inner + inner.T) / 2)
        w = solve_triangular(factor, projected, lower=True).astype(self.dtype)
        out = np.empty_like(self.square)
        for start in range(0, self.n_items, _STRIP):
            strip = slice(start, start + _STRIP)
            np.matmul(w[:, strip].T, w, out=out[strip])
            np.subtract(self.square[strip], out[strip], out=out[strip])
        return PrimalInverse(out)

    def with_items(self, penalty: NDArray[np.float64]) -> "PrimalInverse":
        """Return P for further items that nobody has yet: their penalties, inverted, on the diagonal."""
        if len(penalty) == 0:
            return self
        n, more = self.n_items, len(penalty)
        out = np.zeros((n + more, n + more), self.dtype)
        out[:n, :n] = self.square
        out.flat[n * (n + more + 1) :: n + more + 1] = (1.0 / penalty).astype(self.dtype)
        return PrimalInverse(out)

    def apply(self, vectors: Dense) -> Dense:
        """Return P @ vectors : (items, columns)."""
        return np.asarray(self.square @ vectors)


@dataclass(frozen=True)
class Primal(Solver):
    """P = (XᵀDX + Λ)⁻¹, built and inverted in one square array of items × items."""

    name = "primal"
    exact = True
    makes = PrimalInverse

    def forecast(self, shape: Shape) -> Forecast:
        """Return the cost of a square of items."""
        return square_forecast(self, shape)

    def solve(
        self, rows: Rows, penalty: NDArray[np.float64], progress: Fraction | None, rng: np.random.Generator
    ) -> tuple[PrimalInverse, float]:
        """Return P as a dense array, and its error."""
        n = len(penalty)
        square = np.empty((n, n), self.dtype)
        rows.fill_gram(square)
        square.flat[:: n + 1] += penalty.astype(self.dtype)
        inverse = PrimalInverse(invert_spd(square, progress))
        return inverse, residual(inverse, rows, penalty, rng)
