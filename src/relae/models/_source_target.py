"""Linear models whose input and target are not the same matrix.

With S (rows × inputs) what is given, T (rows × items) what is to be found, weights D of the rows and the penalty Λ,

    P = (SᵀDS + Λ)⁻¹        C = SᵀDT        B = P·C − P·diag(μ),    μ_j = max(0, ((PC)_jj − ξ) / P_jj)

With S = T this is the family of `LinearAutoencoder`: PC = I − PΛ, and w = Λ + μ. Scores of a history q are q B. In the
primal form B is stored, a dense array whose rows a history adds up. In the other forms P is stored as its solver made
it beside a sparse C, and q B = (q P) C − (q P)·μ.
"""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from relae import algebra
from relae._common.progress import Progress
from relae.linalg import (
    FLOAT64,
    FLOATS,
    Arrays,
    Blocks,
    Csr,
    Dense,
    Expected,
    Layout,
    Sequences,
    as_csr,
    csr_from_parts,
    csr_layout,
    csr_parts,
    dense_sparse,
    gram_diagonal,
    sparse_dense,
    sparse_sparse,
    transpose,
)
from relae.models._explanation import Explainer
from relae.models._linear import read_plan, warn_of_local
from relae.ranking import barred_columns, rank
from relae.recommender import State, number, text
from relae.solvers import FORMS, Inverse, Plan, PrimalInverse, Rows, Shape, Solver, as_solver, ensure_memory, solve

_STRIP = 512  # columns of a product that are made at a time, in the place of what they are made from
_EXPLICIT = 60  # bytes of an entry of S, and of what it is made from


class SourceRows(Rows):
    """The rows S of a fit, and what is to be found from them.

    `x` is S : (rows, inputs). The first inputs are the items, in the order of the columns of T.
    """

    @property
    @abstractmethod
    def diagonal(self) -> NDArray[np.float64]:
        """diag(SᵀDS) : (inputs,)."""

    @abstractmethod
    def take_cross(self, dtype: np.dtype[np.floating]) -> Dense:
        """Return C as a dense array that the caller may overwrite : (inputs, items)."""

    @abstractmethod
    def sparse_cross(self, dtype: np.dtype[np.floating]) -> Csr:
        """Return Cᵀ : (items, inputs)."""


class MatrixRows(SourceRows):
    """S and T as two matrices of the same rows."""

    def __init__(self, sources: Csr, targets: Csr, weights: NDArray[np.float64] | None = None) -> None:
        super().__init__(sources, weights)
        object.__setattr__(self, "targets", targets)

    targets: Csr

    @cached_property
    def diagonal(self) -> NDArray[np.float64]:
        """diag(SᵀDS) : (inputs,)."""
        return gram_diagonal(self.x, self.weights)

    def take_cross(self, dtype: np.dtype[np.floating]) -> Dense:
        """Return C : (inputs, items)."""
        sources, targets = (self.scaled(as_csr(each, dtype)) for each in (self.x, self.targets))
        return sparse_sparse(transpose(sources), targets)

    def sparse_cross(self, dtype: np.dtype[np.floating]) -> Csr:
        """Return Cᵀ : (items, inputs)."""
        sources, targets = (self.scaled(as_csr(each, dtype)) for each in (self.x, self.targets))
        return as_csr(targets.T @ sources, dtype)

    def bytes_beside(self, solver: str, itemsize: int) -> int:
        """Return the bytes of C, with a strip of the product in the primal form."""
        inputs, items = self.x.shape[1], self.targets.shape[1]
        if solver == PrimalInverse.solver:
            return int(itemsize * inputs * (items + _STRIP))
        pairs = float((np.diff(self.x.indptr).astype(np.float64) * np.diff(self.targets.indptr)).sum())
        return int(2 * (itemsize + 4) * min(pairs, inputs * items))


class StepRows(SourceRows):
    """A row per step of each user: what came before it, and what came next. S is made only where it is asked for."""

    def __init__(self, sequences: Sequences) -> None:
        object.__setattr__(self, "sequences", sequences)

    sequences: Sequences

    @cached_property
    def _steps(self) -> tuple[Csr, Csr]:
        return self.sequences.steps(np.dtype(np.float64))

    @property
    def x(self) -> Csr:
        """S : (steps, items)."""
        return self._steps[0]

    @property
    def shape(self) -> Shape:
        """Steps, items and interactions: S itself is not counted, see `bytes_beside`."""
        return Shape(self.sequences.n_steps, self.sequences.n_items, len(self.sequences.items))

    @cached_property
    def diagonal(self) -> NDArray[np.float64]:
        """diag(SᵀDS) : (items,)."""
        return self.sequences.gram_diagonal()

    def fill_gram(self, square: Dense) -> None:
        """Write SᵀDS into a square of items, and keep C, which is made on the way."""
        cross = np.empty_like(square)
        self.sequences.products(square, cross)
        self.__dict__["_cross"] = cross

    def gram_times(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return SᵀDS @ vectors : (items, columns)."""
        return self.sequences.gram_times(vectors)

    def take_cross(self, dtype: np.dtype[np.floating]) -> Dense:
        """Return the C of the last `fill_gram` : (items, items)."""
        cross: Dense = self.__dict__.pop("_cross")
        return cross.astype(dtype, copy=False)

    def sparse_cross(self, dtype: np.dtype[np.floating]) -> Csr:
        """Return Cᵀ : (items, items)."""
        sources, targets = self._steps
        return as_csr(targets.T @ sources, dtype)

    def bytes_beside(self, solver: str, itemsize: int) -> int:
        """Return the bytes of C in the primal form, of S and C in the others."""
        n = self.sequences.n_items
        if solver == PrimalInverse.solver:
            return itemsize * n * (n + _STRIP) + 40 * len(self.sequences.items)
        entries = self.sequences.n_sources
        return int(_EXPLICIT * entries + 2 * (itemsize + 4) * min(float(entries), n * n))


# --- the forms of B --------------------------------------------------------------------------------------------------


class DenseWeights:
    """B as a dense array : (inputs, items)."""

    form = PrimalInverse.solver
    batch_bytes = PrimalInverse.batch_bytes
    held_rows = None

    def __init__(self, square: Dense) -> None:
        self.square = square

    @classmethod
    def of(cls, inverse: PrimalInverse, cross: Dense, xi: float) -> Self:
        """Return B = P·C − P·diag(μ), made in the place of C."""
        items = cross.shape[1]
        for start in range(0, items, _STRIP):
            strip = cross[:, start : start + _STRIP]
            strip[:] = inverse.square @ strip
        multipliers = multipliers_of(cross.diagonal().astype(np.float64), inverse.diagonal()[:items], xi)
        for j in np.flatnonzero(multipliers):
            cross[:, j] -= inverse.square[:, j] * multipliers[j].astype(cross.dtype)
        return cls(cross)

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of B."""
        return self.square.dtype

    @property
    def bytes_per_user(self) -> int:
        """One row of the result."""
        return int(self.square.shape[1] * self.dtype.itemsize)

    def project(self, histories: Csr) -> Dense:
        """Return histories @ B : (users, items), reading only the rows of B that a history names."""
        return sparse_dense(histories, self.square)

    def rows(self, inputs: NDArray[np.int64]) -> Dense:
        """Return B[inputs] : (len(inputs), items)."""
        return self.square[inputs]

    def block(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Dense:
        """Return B[rows][:, columns] : (rows, columns)."""
        return self.square[np.ix_(rows, columns)]

    def saved(self, form: str) -> tuple[str, Mapping[str, NDArray[Any] | Blocks]]:
        """Return the form to save B in, and its arrays."""
        return self.form, {"weights": self.square}


class FactoredWeights:
    """B as P in the form of its solver, C, and μ where it is not 0."""

    def __init__(
        self,
        inverse: Inverse,
        cross: Csr,
        penalty: NDArray[np.float64],
        multipliers: NDArray[np.float64] | None = None,
    ) -> None:
        self.inverse, self.cross, self.penalty, self.multipliers = inverse, cross, penalty, multipliers
        self.form, self.batch_bytes, self.held_rows = inverse.solver, inverse.batch_bytes, inverse.held_rows

    @classmethod
    def of(cls, inverse: Inverse, cross: Csr, penalty: NDArray[np.float64], xi: float) -> Self:
        """Return B of P and of Cᵀ : (items, inputs)."""
        items = cross.shape[0]
        free = np.empty(items)
        for start in range(0, items, _STRIP):
            block = np.arange(start, min(start + _STRIP, items))
            free[block] = cross[block].multiply(inverse.rows(block)).sum(axis=1)
        multipliers = multipliers_of(free, inverse.diagonal()[:items], xi)
        return cls(inverse, cross, penalty, multipliers if multipliers.any() else None)

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of P."""
        return self.inverse.dtype

    @property
    def bytes_per_user(self) -> int:
        """Memory of a projection, and one row of the result."""
        return int(self.inverse.bytes_per_user + self.cross.shape[0] * self.dtype.itemsize)

    def project(self, histories: Csr) -> Dense:
        """Return histories @ B : (users, items)."""
        return self._times_cross(self.inverse.project(histories))

    def rows(self, inputs: NDArray[np.int64]) -> Dense:
        """Return B[inputs] : (len(inputs), items)."""
        return self._times_cross(self.inverse.rows(inputs))

    def block(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Dense:
        """Return B[rows][:, columns] : (rows, columns)."""
        return self.rows(rows)[:, columns]

    def _times_cross(self, projected: Dense) -> Dense:
        out = dense_sparse(projected, self.cross)
        if self.multipliers is not None:
            out -= projected[:, : out.shape[1]] * self.multipliers.astype(self.dtype)
        return out

    def saved(self, form: str) -> tuple[str, Mapping[str, NDArray[Any] | Blocks]]:
        """Return the form to save B in, and its arrays: B itself, made row by row, if that serves faster."""
        if self.inverse.saved_form(form) == PrimalInverse.solver:
            shape = self.cross.shape[1], self.cross.shape[0]
            return PrimalInverse.solver, {"weights": Blocks(shape, self.dtype, self.rows)}
        parts: dict[str, Any] = {**self.inverse.arrays(), **csr_parts("cross", self.cross), "penalty": self.penalty}
        if self.multipliers is not None:
            parts["multipliers"] = self.multipliers
        return self.form, parts


Weights = DenseWeights | FactoredWeights


def multipliers_of(
    free_diagonal: NDArray[np.float64], inverse_diagonal: NDArray[np.float64], xi: float
) -> NDArray[np.float64]:
    """Return μ = max(0, (diag(PC) − ξ) / diag P) : (items,)."""
    return np.maximum(0.0, (free_diagonal - algebra.check_xi(xi)) / inverse_diagonal)


@dataclass(frozen=True)
class Regression:
    """B, the plan that it was computed by, and the error of the inverse."""

    weights: Weights
    plan: Plan
    residual: float


def regress(
    rows: SourceRows,
    penalty: NDArray[np.float64],
    *,
    xi: float = 1.0,
    solver: Solver | str = "auto",
    progress: Progress | None = None,
) -> Regression:
    """Return B of what is given and what is to be found, with a diagonal of at most ξ; penalty : (inputs,).

    Errors are those of `relae.solvers.solve`.
    """
    solver = as_solver(solver)
    solution = solve(rows, penalty, solver=solver, progress=progress)
    if not solution.plan.exact and len(solver.preference(rows.shape)) > 1:
        warn_of_local(solution.plan)
    inverse = solution.inverse
    weights: Weights
    if isinstance(inverse, PrimalInverse):
        weights = DenseWeights.of(inverse, rows.take_cross(inverse.dtype), xi)
    else:
        weights = FactoredWeights.of(inverse, rows.sparse_cross(inverse.dtype), penalty, xi)
    return Regression(weights, solution.plan, solution.residual)


# --- the models ------------------------------------------------------------------------------------------------------


class SourceTargetModel(Explainer):
    """Scores q B with B from sources and targets; a subclass fits it by `regress` and calls `keep`.

    Attributes
    ----------
    weights_ : DenseWeights or FactoredWeights
        B : (items, items).
    l2_, dropout_ : float
        The penalty of the fit: l2, given or suggested, and dropout.
    residual_ : float
        ‖(SᵀS+Λ)Pv − v‖/‖v‖ of random probes: how exact the inverse is.
    plan_ : Plan
        The solver that was chosen, and what it was forecast to cost.
    """

    closed_form: ClassVar[bool] = True

    weights_: Weights
    l2_: float
    dropout_: float
    residual_: float
    plan_: Plan

    def keep(self, regression: Regression, l2: float, dropout: float) -> None:
        """Keep what a fit has found."""
        self.weights_, self.plan_, self.residual_ = regression.weights, regression.plan, regression.residual
        self.l2_, self.dropout_ = float(l2), float(dropout)

    def project(self, batch: Csr) -> Dense:
        """Return q B."""
        return self.weights_.project(batch)

    def users_at_once(self) -> int:
        return int(self.weights_.batch_bytes / self.weights_.bytes_per_user)

    @property
    def holds_histories(self) -> bool:
        """True in the dual form, which holds S beside K⁻¹."""
        return self.weights_.held_rows is not None

    @property
    def score_dtype(self) -> np.dtype[np.floating]:
        return self.weights_.dtype

    def weights(self) -> Dense:
        """Return the dense B : (items, items), where it fits into memory."""
        self.check_fitted()
        n = len(self.items_)
        ensure_memory(
            n * n * self.score_dtype.itemsize, f"the dense B of {n:,} items", "use weight_rows, a few items at a time"
        )
        return np.concatenate([self.weight_rows(np.arange(start, stop)) for start, stop in self.batches(n)])

    def weight_rows(self, items: NDArray[np.int64]) -> Dense:
        """Return some rows of B : (len(items), items)."""
        self.check_fitted()
        return self.weights_.rows(items)

    def similar_items(self, item: Any, k: int = 10) -> tuple[NDArray[Any], Dense]:
        """Return the k items that one item leads to most, by B_ij. It is not symmetric."""
        column = self.column_of(item)
        row = self.weight_rows(np.array([column]))
        ids, scores = rank(row, k, barred=barred_columns(len(self.items_), deny=np.array([column])))
        return self.items_.take(ids[0]), scores[0]

    def contributions(
        self, seen: NDArray[np.int64], values: NDArray[np.float64], columns: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return q_i·B_ij, with q as in scores : (columns, seen)."""
        return np.asarray(values * self.weights_.block(seen, columns).T.astype(np.float64))

    def state(self, form: str) -> State:
        """Add B, in the form asked for, and what was found on the way to it."""
        state = super().state(form)
        kept, parts = self.weights_.saved(form)
        facts = {
            "l2": self.l2_,
            "dropout": self.dropout_,
            "residual": self.residual_,
            "solver": self.plan_.solver,
            "form": kept,
            "dtype": self.score_dtype.name,
            "plan": asdict(self.plan_),
        }
        return State({**state.facts, **facts}, {**state.arrays, **parts})

    @classmethod
    def layout(cls, facts: Mapping[str, Any], names: Collection[str]) -> Layout:
        form = text(facts, "form", *FORMS)
        if form == PrimalInverse.solver:
            own: Layout = {"weights": Expected(FLOATS, ("items", "items"), mapped=True)}
        else:
            own = {
                **FORMS[form].LAYOUT,
                **csr_layout("cross", "items"),
                "penalty": Expected(FLOAT64, ("items",)),
                "multipliers": Expected(FLOAT64, ("items",), optional=True),
            }
        return {**super().layout(facts, names), **own}

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        if facts["form"] == PrimalInverse.solver:
            self.weights_ = DenseWeights(arrays["weights"])
        else:
            self.weights_ = _restored(facts["form"], arrays)
        self.l2_, self.dropout_ = number(facts, "l2", 0), number(facts, "dropout", 0, 1)
        self.residual_, self.plan_ = number(facts, "residual", 0), read_plan(facts["plan"])

    def facts(self) -> dict[str, str]:
        solver = f"{self.plan_.solver}, residual {self.residual_:.0e}"
        return super().facts() | {"l2 used": f"{self.l2_:g}", "solver": solver}


def _restored(form: str, arrays: Arrays) -> FactoredWeights:
    """Return B of saved arrays; a ValueError if they are not valid."""
    penalty = np.array(arrays["penalty"])
    if not (np.isfinite(penalty) & (penalty > 0)).all():
        raise ValueError("penalty is not a positive number per item")
    multipliers = np.array(arrays["multipliers"]) if "multipliers" in arrays else None
    if multipliers is not None and not (np.isfinite(multipliers) & (multipliers >= 0)).all():
        raise ValueError("multipliers is not a number of at least 0 per item")
    inverse = FORMS[form].from_arrays(arrays, penalty)
    return FactoredWeights(inverse, csr_from_parts("cross", arrays, (len(penalty),) * 2), penalty, multipliers)
