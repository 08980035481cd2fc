"""Choose the solver of a fit and forecast its cost, before anything is allocated.

An exact fit is one dense square: items × items (primal) or users × users (dual). Where neither fits into memory, each
item is explained by its nearest items only (local). Every solver forecasts the bytes that its code really takes, and a
fit that cannot fit is refused with the figures and the way out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae._common.progress import Fraction
from relae.errors import Option, ParameterError, PlanError
from relae.solvers._dual import Dual
from relae.solvers._inverse import Inverse
from relae.solvers._local import Local, check_neighbours
from relae.solvers._primal import Primal
from relae.solvers._solver import NEIGHBOURS, Forecast, Memory, Rows, Shape, Solver

SOLVERS: dict[str, type[Solver]] = {"primal": Primal, "dual": Dual, "local": Local}
"""The solvers of one machine, by name."""

_DUAL_ADVANTAGE = 0.9  # new users cost the dual form more, so it has to be clearly smaller to be chosen


@dataclass(frozen=True)
class Plan:
    """The chosen solver beside the alternatives, and the memory that they have to share."""

    users: int
    items: int
    nonzeros: int
    chosen: Forecast
    forecasts: tuple[Forecast, ...]
    process_bytes: int
    available_bytes: int

    @property
    def solver(self) -> str:
        """Name of the chosen solver."""
        return self.chosen.solver

    @property
    def dtype(self) -> str:
        """Precision of the chosen solver."""
        return self.chosen.dtype

    @property
    def exact(self) -> bool:
        """True if every item can be explained by every other one."""
        return self.solver != Local.name

    @property
    def peak_bytes(self) -> int:
        """Memory of the whole process at the peak of the fit."""
        return self.process_bytes + self.chosen.added_bytes


class Choice(Solver):
    """Several solvers, of which the most preferred one that fits into memory does the work."""

    def forecast(self, shape: Shape) -> Forecast:
        """Return the forecast of the one that would do it."""
        return choose(self, shape)[1].chosen

    def solve(
        self, rows: Rows, penalty: NDArray[np.float64], progress: Fraction | None, rng: np.random.Generator
    ) -> tuple[Inverse, float]:
        """Return P and its error by the one that is chosen for these rows."""
        return choose(self, rows.shape)[0].solve(rows, penalty, progress, rng)


@dataclass(frozen=True)
class Auto(Choice):
    """The smaller exact square that fits, and where none fits the local form, which is an approximation."""

    neighbours: int = NEIGHBOURS
    nearest_by: str = "cosine"

    name = "auto"
    exact = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_neighbours(self.neighbours, self.nearest_by)

    def members(self) -> Sequence[Solver]:
        """Return primal, dual and local."""
        local = Local(self.neighbours, self.nearest_by, dtype=self.dtype)
        return (Primal(dtype=self.dtype), Dual(dtype=self.dtype), local)

    def preference(self, shape: Shape) -> Sequence[str]:
        """Return the exact solvers, the dual one first only if it is clearly smaller, and the local one."""
        return (*_exact_order(shape), Local.name)

    def repairs(self) -> Sequence[Solver]:
        """Return the same in float64, and the primal form: on hard data the dual form loses more digits."""
        return (self.in_float64(), Primal(dtype="float64"))


@dataclass(frozen=True)
class Exact(Choice):
    """The smaller exact square that fits."""

    name = "exact"
    exact = True

    def members(self) -> Sequence[Solver]:
        """Return primal, dual and local; the last one for advice only."""
        return Auto(dtype=self.dtype).members()

    def preference(self, shape: Shape) -> Sequence[str]:
        """Return the exact solvers, the dual one first only if it is clearly smaller."""
        return _exact_order(shape)

    def repairs(self) -> Sequence[Solver]:
        """Return the same in float64, and the primal form: on hard data the dual form loses more digits."""
        return (self.in_float64(), Primal(dtype="float64"))


def _exact_order(shape: Shape) -> tuple[str, str]:
    if shape.users < _DUAL_ADVANTAGE * shape.items:
        return Dual.name, Primal.name
    return Primal.name, Dual.name


NAMES: dict[str, type[Solver]] = {"auto": Auto, "exact": Exact, **SOLVERS}
"""What a solver can be called, and what that stands for."""


def as_solver(solver: Solver | str, **settings: Any) -> Solver:
    """Return the solver of a name, with its defaults or those of the settings that it has; an object as it is.

    Parameters
    ----------
    solver : "auto", "exact", "primal", "dual", "local", or a Solver
    settings
        dtype, neighbours, nearest_by; None is a default, and what a solver does not have is left out.
    """
    if isinstance(solver, Solver):
        return solver
    if solver not in NAMES:
        *names, last = map(repr, NAMES)
        raise ParameterError(
            Option("solver"),
            f" must be {', '.join(names)} or {last}, got {solver!r} (or a Solver object)",
            field="solver",
            value=solver,
        )
    kind = NAMES[solver]
    return kind(**{k: v for k, v in settings.items() if v is not None and k in kind.__dataclass_fields__})


def plan(
    users: int,
    items: int,
    nonzeros: int,
    *,
    solver: Solver | str = "auto",
    available_bytes: int | None = None,
) -> Plan:
    """Choose a solver for a matrix of this size, or refuse.

    Parameters
    ----------
    solver : "auto", "exact", "primal", "dual", "local", or a Solver
        "exact" takes the smaller square that fits; the dual one only if it is clearly smaller. "auto" does the same,
        and where none fits takes "local", which is an approximation. A name is short for the object with its defaults:
        `Local(neighbours=100)` and `Primal(dtype="float64")` have others.
    available_bytes : int, optional
        Memory the fit may add to this process; measured if not given.

    Raises
    ------
    PlanError
        If the solver asked for, or every one, needs more memory than there is.
    """
    return choose(as_solver(solver), Shape(users, items, nonzeros), available_bytes)[1]


def choose(
    solver: Solver, shape: Shape, available_bytes: int | None = None, rows: Rows | None = None
) -> tuple[Solver, Plan]:
    """Return the solver that does the work, and the plan; a PlanError if none fits.

    With `rows`, forecasts count the bytes that these need beside each solver.
    """
    if min(shape.users, shape.items) < 1:
        raise ValueError(f"a fit needs at least one user and one item, got {shape.users} users and {shape.items} items")
    memory = solver.memory() if available_bytes is None else Memory(solver.memory().process, available_bytes)
    members = _alternatives(solver)
    forecasts = tuple(_forecast(each, shape, rows) for each in members)
    fitting = {each.name: (each, cost) for each, cost in zip(members, forecasts, strict=True) if cost.fits(memory[1])}
    name = next((name for name in solver.preference(shape) if name in fitting), None)
    if name is None:
        raise PlanError(solver.refusal(shape, members, forecasts, memory))
    member, cost = fitting[name]
    return member, Plan(*shape, cost, forecasts, *memory)


def _forecast(solver: Solver, shape: Shape, rows: Rows | None) -> Forecast:
    cost = solver.forecast(shape)
    beside = 0 if rows is None else rows.bytes_beside(solver.name, np.dtype(solver.dtype).itemsize)
    return replace(cost, added_bytes=cost.added_bytes + beside) if beside else cost


def _alternatives(solver: Solver) -> Sequence[Solver]:
    """Return the members of a choice, or a solver beside the others of this machine in the same precision."""
    members = solver.members()
    if members:
        return members
    beside = [solver if each.name == solver.name else each for each in Auto(dtype=solver.dtype).members()]
    return beside if solver in beside else [*beside, solver]
