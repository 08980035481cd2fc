"""P by inverting G + Λ itself: a square of items × items."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from relae._common.memory import ensure_memory
from relae._common.progress import Fraction
from relae.linalg import (
    FLOATS,
    Arrays,
    Csr,
    Dense,
    Expected,
    Layout,
    as_csr,
    change_rows,
    invert_spd,
    quadratic_forms,
    sparse_dense,
    without_rows,
)
from relae.solvers._check import residual
from relae.solvers._inverse import Inverse
from relae.solvers._solver import Forecast, Rows, Shape, Solver, square_forecast
from relae.solvers._update import Change, check_updated, not_of_the_fit, step_error


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

    def leverages(self, rows: Csr) -> NDArray[np.float64]:
        """Return x P xᵀ of each row x : (rows,), reading only its own block of P."""
        return quadratic_forms(as_csr(rows, self.dtype), self.square)

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

    def changed(
        self, change: Change, residual: float, progress: Fraction | None, rng: np.random.Generator
    ) -> tuple["PrimalInverse", float]:
        """Return P after a change of low rank: a row for each user, and for each penalty that changes."""
        added, removed = change.signed
        old = self.with_items(change.penalty[self.n_items :])
        change.check_worthwhile(added.shape[0] + removed.shape[0], old.n_items)
        ensure_memory(old.square.nbytes, f"another square of {old.n_items:,} items", "free some, or fit again")
        square = np.array(old.square)
        try:
            change_rows(square, added, removed, progress)
        except np.linalg.LinAlgError:
            raise not_of_the_fit() from None
        inverse = PrimalInverse(square)
        error = residual + step_error(old, inverse, change, rng)
        check_updated(error)
        return inverse, error

    def without_items(
        self,
        items: NDArray[np.int64],
        change: Change,
        residual: float,
        progress: Fraction | None,
        rng: np.random.Generator,
    ) -> tuple["PrimalInverse", float]:
        """Return P_rest − P_·j P_j· / P_jj, and then the change of rows."""
        change.check_worthwhile(len(items), self.n_items)
        ensure_memory(self.square.nbytes, f"another square of {self.n_items:,} items", "free some, or fit again")
        fewer = PrimalInverse(without_rows(self.square, items))
        if change.come.shape[0] == 0:
            return fewer, residual
        return fewer.changed(change, residual, progress, rng)

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
