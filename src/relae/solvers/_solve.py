"""Compute P from the rows of a fit and Λ: plan, solve, check the result, and try again in float64 if it fails."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relae._common.progress import Progress, of_stage
from relae._common.words import in_bytes
from relae.errors import PlanError, PrecisionError
from relae.linalg import Csr
from relae.solvers._inverse import Inverse
from relae.solvers._plan import Plan, as_solver, choose
from relae.solvers._solver import Rows, Solver
from relae.solvers._update import TOLERANCE


@dataclass(frozen=True)
class Solution:
    """P, the plan that it was computed by, and `residual`, the relative error that the check measured."""

    inverse: Inverse
    plan: Plan
    residual: float


def solve(
    rows: Rows | Csr,
    penalty: NDArray[np.float64],
    *,
    solver: Solver | str = "auto",
    progress: Progress | None = None,
    rng: np.random.Generator | None = None,
) -> Solution:
    """Return P = (XᵀDX + Λ)⁻¹ after a check of its residual.

    "auto" and "exact" choose a solver that fits into memory. A result that fails the check is thrown away, and the
    solver's `repairs()` are tried in order, such as the same solver in float64.

    Parameters
    ----------
    rows : X : (users, items), with D as `Rows`
    penalty : (items,), positive
    solver : a Solver, or "auto", "exact", "primal", "dual", "local"
    rng : draws the random vectors of the check; without it, they are the same each time

    Raises
    ------
    PlanError
        No solver fits into memory.
    PrecisionError
        The result and all repairs failed the check, or a repair does not fit into memory.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    rows = rows if isinstance(rows, Rows) else Rows(rows)
    solver = as_solver(solver)
    failures: list[str] = []
    tried: set[tuple[str, str]] = set()
    for attempt in (solver, *solver.repairs()):
        try:
            chosen, plan = choose(attempt, rows.shape, rows=rows)
        except PlanError as error:
            if not failures:
                raise
            raise PrecisionError(
                f"{_failed_check(failures)}; the repair in {attempt.dtype} does not fit: ", error
            ) from error
        if (chosen.name, chosen.dtype) in tried:
            continue
        tried.add((chosen.name, chosen.dtype))
        stage = "inverse" if not failures else f"inverse again, {chosen.name} in {chosen.dtype}"
        try:
            with np.errstate(all="ignore"):  # the check below finds an overflow
                inverse, residual = chosen.solve(rows, penalty, of_stage(progress, stage), rng)
        except np.linalg.LinAlgError:
            failures.append(f"the {chosen.name} matrix is not positive definite in {chosen.dtype}")
            continue
        except MemoryError as error:
            needed = in_bytes(plan.chosen.added_bytes)
            raise PlanError(f"the {chosen.name} solver could not get its {needed}: ", error) from error
        if residual <= TOLERANCE:
            return Solution(inverse, plan, residual)
        failures.append(f"‖(G+Λ)Pv − v‖/‖v‖ is {residual:.1e} in {chosen.dtype} ({chosen.name})")
        del inverse  # free its memory before the next attempt
    raise PrecisionError(_failed_check(failures))


def _failed_check(failures: list[str]) -> str:
    """Return the message that lists what was tried and how it failed."""
    return (
        f"the inverse failed its check: {', '.join(failures)} ({TOLERANCE:g} is allowed). "
        "The penalty is too small for this data: raise l2"
    )
