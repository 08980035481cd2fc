"""P by Woodbury, through a square of users × users: for data with fewer users than items.

    K = I + X Λ⁻¹ Xᵀ        P = Λ⁻¹ − Λ⁻¹ Xᵀ K⁻¹ X Λ⁻¹

Only V = Λ⁻¹Xᵀ (items × users, sparse) and K⁻¹ are kept: P = Λ⁻¹ − V K⁻¹ Vᵀ. With weights D of the users, √D X stands in
the place of X.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from relae._common.memory import available_memory
from relae._common.progress import Fraction
from relae.linalg import (
    FLOAT64,
    FLOATS,
    Arrays,
    Blocks,
    Csr,
    Dense,
    Expected,
    Layout,
    RowIndex,
    as_csr,
    change_rows,
    csr_from_parts,
    csr_layout,
    csr_parts,
    dense_sparse,
    gram,
    invert_spd,
    is_same,
    quadratic_forms,
    scaled_rows,
    sparse_dense,
    sparse_sparse,
    transpose,
    without_rows,
)
from relae.solvers._check import residual
from relae.solvers._inverse import Inverse
from relae.solvers._primal import PrimalInverse
from relae.solvers._solver import Forecast, Rows, Shape, Solver, square_forecast
from relae.solvers._update import Change, check_updated, not_of_the_fit, step_error

_STRIP = 2048
_UNFOLD = 0.25  # histories per item from which making P itself costs less than projecting them


class DualInverse(Inverse):
    """P as K⁻¹, the training matrix, the penalty and, if they differ, the weights of users."""

    LAYOUT: ClassVar[Layout] = {
        "kernel_inverse": Expected(FLOATS, ("rows", "rows"), mapped=True),
        "row_weights": Expected(FLOAT64, ("rows",), optional=True),
        **csr_layout("x", "rows"),
    }
    saved_as = ("primal", "dual")
    solver = "dual"
    batch_bytes = 256e6  # large enough for matrix products, small beside any model

    def __init__(
        self,
        kernel_inverse: Dense,
        x: Csr,
        penalty: NDArray[np.float64],
        row_weights: NDArray[np.float64] | None = None,
        scaled: Csr | None = None,
    ) -> None:
        self.kernel_inverse = kernel_inverse  # (users, users)
        self.x = x  # (users, items)
        self.penalty = penalty  # (items,)
        self.row_weights = row_weights  # (users,)
        # V : (items, users)
        self._scaled = scaled_transpose(scaled_rows(x, row_weights), penalty) if scaled is None else scaled
        self._training = RowIndex(x)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.penalty)

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of K⁻¹."""
        return self.kernel_inverse.dtype

    @property
    def bytes_per_user(self) -> int:
        """One row of the result, and two rows of users on the way."""
        return (self.n_items + 2 * len(self.kernel_inverse)) * self.dtype.itemsize

    def diagonal(self) -> NDArray[np.float64]:
        """Return P_jj = 1/Λ_j − v_j K⁻¹ v_jᵀ, with v_j the row of item j in V : (items,)."""
        return 1.0 / self.penalty - quadratic_forms(self._scaled, self.kernel_inverse)

    def project(self, histories: Csr) -> Dense:
        """Return histories @ P : (users, items).

        A history that is a training user's own goes the short way, √D X P = K⁻¹ Vᵀ; any other one the long way.
        """
        known = self._training.find(histories)
        if (known >= 0).all():
            return self._project_training(known)
        if (known < 0).all():
            return self._project_new(histories)
        out = np.empty(histories.shape, self.dtype)
        new = np.flatnonzero(known < 0)
        out[new] = self._project_new(histories[new])
        out[known >= 0] = self._project_training(known[known >= 0])
        return out

    def _project_training(self, users: NDArray[np.int64]) -> Dense:
        in_order = len(users) > 0 and bool((np.diff(users) == 1).all())
        rows = self.kernel_inverse[users[0] : users[-1] + 1] if in_order else self.kernel_inverse[users]
        out = dense_sparse(rows, self._scaled)
        if self.row_weights is not None:
            out /= np.sqrt(self.row_weights[users])[:, None].astype(self.dtype)
        return out

    def _project_new(self, histories: Csr) -> Dense:
        out = self._mixed(histories, self._scaled)
        rows = np.repeat(np.arange(histories.shape[0]), np.diff(histories.indptr))
        out[rows, histories.indices] += (histories.data / self.penalty[histories.indices]).astype(self.dtype)
        return out

    def project_onto(self, histories: Csr, columns: NDArray[np.int64]) -> Dense:
        """Return histories @ P[:, columns] : (users, columns), without the others."""
        out = self._mixed(histories, self._scaled[columns])
        out += (histories[:, columns] / self.penalty[columns]).astype(self.dtype).toarray()
        return out

    def _mixed(self, histories: Csr, scaled: Csr) -> Dense:
        """Return −(H V) K⁻¹ Vᵀ for some rows of the last V: H P is H Λ⁻¹ more."""
        mixed = sparse_sparse(as_csr(histories, self.dtype), self._scaled) @ self.kernel_inverse  # (histories, users)
        out = dense_sparse(mixed, scaled)
        return np.negative(out, out=out)

    def rows(self, items: NDArray[np.int64]) -> Dense:
        """Return P[items] : (len(items), items)."""
        out = self._outside_diagonal(items, self._scaled)
        out[np.arange(len(items)), items] += (1.0 / self.penalty[items]).astype(self.dtype)
        return out

    def block(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Dense:
        """Return P[rows][:, columns] : (rows, columns)."""
        out = self._outside_diagonal(rows, self._scaled[columns])
        out += ((rows[:, None] == columns) / self.penalty[columns]).astype(self.dtype)
        return out

    def _outside_diagonal(self, items: NDArray[np.int64], scaled: Csr) -> Dense:
        """Return −V K⁻¹ Vᵀ for some rows of V, reading only the rows of K⁻¹ whose users have one of the items."""
        out = dense_sparse(sparse_dense(self._scaled[items], self.kernel_inverse), scaled)
        return np.negative(out, out=out)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return K⁻¹, X and D."""
        weights = {} if self.row_weights is None else {"row_weights": self.row_weights}
        return {"kernel_inverse": self.kernel_inverse, **weights, **csr_parts("x", self.x)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, penalty: NDArray[np.float64]) -> Self:
        """Return the inverse with this K⁻¹, which is not copied, and this X, which is."""
        square = arrays["kernel_inverse"]
        weights = np.array(arrays["row_weights"]) if "row_weights" in arrays else None
        if weights is not None and not (np.isfinite(weights) & (weights > 0)).all():
            raise ValueError("row_weights is not a positive number per user")
        return cls(square, csr_from_parts("x", arrays, (len(square), len(penalty))), penalty, weights)

    @property
    def held_rows(self) -> Csr:
        """X, which goes with K⁻¹."""
        return self.x

    def saved_arrays(self, form: str) -> Mapping[str, NDArray[Any] | Blocks]:
        """Return K⁻¹, X and D, or P itself, which is made row by row."""
        if form == "primal":
            return {"inverse": Blocks((self.n_items, self.n_items), self.dtype, self.rows)}
        return self.arrays()

    def for_many(self, histories: int) -> Inverse:
        """Return P itself where so many histories cost less with it and there is memory for it.

        A history that is not a training user's own costs a product with the square of users.
        """
        n = self.n_items
        if histories < _UNFOLD * n or 1.1 * self.dtype.itemsize * n * n > available_memory():
            return self
        return self.unfolded()

    def changed(
        self, change: Change, residual: float, progress: Fraction | None, rng: np.random.Generator
    ) -> tuple["DualInverse", float]:
        """Return P after a change of rows: K loses rows, takes other penalties, and grows by a border."""
        old = self.with_items(change.penalty[self.n_items :])
        rank = change.gone.shape[0] + change.come.shape[0] + np.count_nonzero(change.growth)
        change.check_worthwhile(int(rank), len(old.kernel_inverse))
        at = old._find_rows(change)
        inverse = old.without_rows(at).with_penalty(change.penalty + change.growth, progress)
        inverse = inverse.with_rows(change.come, change.come_weights)
        if change.returning:  # they keep their places
            m = len(old.kernel_inverse)
            new = m + np.arange(change.come.shape[0] - change.returning)
            positions = np.concatenate([np.delete(np.arange(m), at), at[: change.returning], new])
            inverse = inverse.in_order(np.argsort(positions, kind="stable"))
        error = residual + step_error(old, inverse, change, rng)
        check_updated(error)
        return inverse, error

    def _find_rows(self, change: Change) -> NDArray[np.int64]:
        """Return where the rows that leave are : (rows that leave,); where they are thought to be, or by content."""
        features = len(self.kernel_inverse) - change.users_before
        at = features + change.gone_at
        thought = (at >= features) & (at < len(self.kernel_inverse))
        is_there = np.array(
            [
                known and is_same(self.x[[position]], change.gone[[row]])
                for row, (position, known) in enumerate(zip(at.tolist(), thought.tolist(), strict=True))
            ],
            dtype=bool,
        )
        taken = set(at[is_there].tolist())
        for row in np.flatnonzero(~is_there).tolist():
            twins = self._training.all(change.gone[[row]]).tolist()
            at[row] = next((twin for twin in twins if twin >= features and twin not in taken), -1)
            taken.add(int(at[row]))
        if (at < 0).any():
            raise not_of_the_fit()
        return at

    def without_rows(self, at: NDArray[np.int64]) -> "DualInverse":
        """Return P without the rows at some places: K⁻¹_rest − K⁻¹_·u K⁻¹_u· / K⁻¹_uu."""
        if len(at) == 0:
            return self
        kept = np.setdiff1d(np.arange(len(self.kernel_inverse)), at)
        weights = None if self.row_weights is None else self.row_weights[kept]
        return DualInverse(
            without_rows(self.kernel_inverse, at), as_csr(self.x[kept], self.dtype), self.penalty, weights
        )

    def with_penalty(self, penalty: NDArray[np.float64], progress: Fraction | None = None) -> "DualInverse":
        """Return P with other penalties: Σ_j (1/Λ'_j − 1/Λ_j) x_j x_jᵀ is added to K, with x_j the column of item j."""
        growth = 1.0 / penalty - 1.0 / self.penalty
        changed = np.flatnonzero(growth)
        if len(changed) == 0:
            return self
        columns = transpose(as_csr(scaled_rows(self.x, self.row_weights)[:, changed], self.dtype))
        columns = scaled_rows(columns, np.abs(growth[changed]))
        added, removed = (columns[np.flatnonzero(which)] for which in (growth[changed] > 0, growth[changed] < 0))
        square = np.array(self.kernel_inverse)
        change_rows(square, added, removed, progress)
        return DualInverse(square, self.x, penalty, self.row_weights)

    def in_order(self, order: NDArray[np.int64]) -> "DualInverse":
        """Return the same P with its rows in another order."""
        weights = None if self.row_weights is None else self.row_weights[order]
        square = self.kernel_inverse[np.ix_(order, order)]
        return DualInverse(square, as_csr(self.x[order], self.dtype), self.penalty, weights)

    def without_items(
        self,
        items: NDArray[np.int64],
        change: Change,
        residual: float,
        progress: Fraction | None,
        rng: np.random.Generator,
    ) -> tuple["DualInverse", float]:
        """Return P without some items: K loses x_j x_jᵀ / Λ_j of each; and then the change of rows."""
        change.check_worthwhile(len(items), len(self.kernel_inverse))
        kept = np.setdiff1d(np.arange(self.n_items), items)
        columns = transpose(as_csr(scaled_rows(self.x, self.row_weights)[:, items], self.dtype))
        square = np.array(self.kernel_inverse)
        change_rows(square, columns[:0], scaled_rows(columns, 1.0 / self.penalty[items]), progress)
        x = as_csr(self.x[:, kept], self.dtype)
        fewer = DualInverse(square, x, self.penalty[kept], self.row_weights)
        if change.come.shape[0] == 0:
            return fewer, residual
        return fewer.changed(change, residual, progress, rng)

    def with_rows(self, rows: Csr, row_weights: NDArray[np.float64] | None = None) -> "DualInverse":
        """Return P with new users U, in new arrays: K grows by a border, and so does its inverse.

        With C = XΛ⁻¹Uᵀ, T = K⁻¹C and S = I + UΛ⁻¹Uᵀ − CᵀT, the new corner is S⁻¹, the border −TS⁻¹, and TS⁻¹Tᵀ is
        added to K⁻¹. New users weigh 1 if nothing is said.
        """
        m, more = len(self.kernel_inverse), rows.shape[0]
        if more == 0:
            return self
        if self.row_weights is not None and row_weights is None:
            row_weights = np.ones(more)
        weighted = scaled_rows(rows, row_weights)
        new = scaled_transpose(weighted, self.penalty)
        border = sparse_sparse(scaled_rows(self.x, self.row_weights), new)  # C : (users, new)
        t = self.kernel_inverse @ border
        corner = sparse_sparse(weighted, new).astype(np.float64)
        corner -= border.T.astype(np.float64) @ t
        corner.flat[:: more + 1] += 1.0
        factor = np.linalg.cholesky((corner + corner.T) / 2)
        w = solve_triangular(factor, t.T, lower=True).astype(self.dtype)  # L⁻¹Tᵀ : (new, users)
        inverse_factor = solve_triangular(factor, np.eye(more), lower=True)
        out = np.empty((m + more, m + more), self.dtype)
        for start in range(0, m, _STRIP):
            strip = slice(start, min(start + _STRIP, m))
            out[strip, :m] = w[:, strip].T @ w
            out[strip, :m] += self.kernel_inverse[strip]
        out[m:, :m] = -(inverse_factor.T @ w)
        out[:m, m:] = out[m:, :m].T
        out[m:, m:] = inverse_factor.T @ inverse_factor
        whole = as_csr(sp.vstack([self.x, rows]), self.dtype)
        if row_weights is None:
            return DualInverse(out, whole, self.penalty)
        before = np.ones(m) if self.row_weights is None else self.row_weights
        return DualInverse(out, whole, self.penalty, np.concatenate([before, row_weights]))

    def with_items(self, penalty: NDArray[np.float64]) -> "DualInverse":
        """Return P for further items that nobody has yet."""
        if len(penalty) == 0:
            return self
        whole = np.concatenate([self.penalty, penalty])
        x = sp.csr_array((self.x.data, self.x.indices, self.x.indptr), (self.x.shape[0], len(whole)))
        return DualInverse(self.kernel_inverse, x, whole, self.row_weights)

    def unfolded(self) -> PrimalInverse:
        """Return P as a dense array, where a history costs a row of it per item and no square of users.

        P = Λ⁻¹ − V K⁻¹ Vᵀ is symmetric, and made by strips of items.
        """
        n = self.n_items
        square = np.empty((n, n), self.dtype)
        for start in range(0, n, _STRIP):
            strip = np.arange(start, min(start + _STRIP, n))
            square[strip[0] : strip[-1] + 1] = self.rows(strip)
        return PrimalInverse(square)

    def apply(self, vectors: Dense) -> Dense:
        """Return P @ vectors : (items, columns)."""
        mixed = self.kernel_inverse @ (self._scaled.T @ vectors)
        return np.asarray(vectors / self.penalty[:, None] - self._scaled @ mixed, dtype=self.dtype)


def scaled_transpose(x: Csr, penalty: NDArray[np.float64]) -> Csr:
    """Return V = Λ⁻¹ Xᵀ : (items, users)."""
    scaled = transpose(x)
    scaled.data /= np.repeat(penalty, np.diff(scaled.indptr)).astype(x.dtype)
    return scaled


@dataclass(frozen=True)
class Dual(Solver):
    """K⁻¹ = (I + √D X Λ⁻¹ Xᵀ √D)⁻¹, built and inverted in one square array of users × users."""

    name = "dual"
    exact = True
    makes = DualInverse
    grows_with = "users"

    def forecast(self, shape: Shape) -> Forecast:
        """Return the cost of a square of users."""
        return square_forecast(self, shape)

    def solve(
        self, rows: Rows, penalty: NDArray[np.float64], progress: Fraction | None, rng: np.random.Generator
    ) -> tuple[DualInverse, float]:
        """Return P as K⁻¹ and X, and its error."""
        x = as_csr(rows.x, np.dtype(self.dtype))
        m = x.shape[0]
        weighted = rows.scaled(x)
        scaled = scaled_transpose(weighted, penalty)
        square = np.empty((m, m), x.dtype)
        gram(weighted, scaled, square)
        del weighted
        square.flat[:: m + 1] += 1
        inverse = DualInverse(invert_spd(square, progress), x, penalty, rows.weights, scaled)
        return inverse, residual(inverse, rows, penalty, rng)
