"""From the rows of a fit and Λ to P: plan, solve, check, and repair. One loop for every solver."""

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
    """P, the plan it was made by and how exact it is."""

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
    """Return P = (XᵀDX + Λ)⁻¹ by a solver, or by the one that a choice of them plans, checked.

    A float32 result that fails its check is thrown away and made again in float64.

    Parameters
    ----------
    rows : X : (users, items), with D as `Rows`
    penalty : (items,), positive
    solver : a Solver, or "auto", "exact", "primal", "dual", "local"
    rng : of the probes of the check; the same ones each time if not given
    """
    rng = np.random.default_rng(0) if rng is None else rng
    rows = rows if isinstance(rows, Rows) else Rows(rows)
    solver = as_solver(solver)
    failures: list[str] = []
    tried: set[tuple[str, str]] = set()
    for attempt in (solver, *solver.repairs()):
        try:
            own, planned = choose(attempt, rows.shape)
        except PlanError as error:
            if not failures:
                raise
            raise PrecisionError(
                f"{_failed_check(failures)}; the repair in {attempt.dtype} does not fit: ", error
            ) from error
        if (own.name, own.dtype) in tried:
            continue
        tried.add((own.name, own.dtype))
        stage = "inverse" if not failures else f"inverse again, {own.name} in {own.dtype}"
        try:
            with np.errstate(all="ignore"):  # what overflows is found by the check
                inverse, error_found = own.solve(rows, penalty, of_stage(progress, stage), rng)
        except np.linalg.LinAlgError:
            failures.append(f"the {own.name} matrix is not positive definite in {own.dtype}")
            continue
        except MemoryError as error:
            needed = in_bytes(planned.chosen.added_bytes)
            raise PlanError(f"the {own.name} solver could not get its {needed}: ", error) from error
        if error_found <= TOLERANCE:
            return Solution(inverse, planned, error_found)
        failures.append(f"‖(G+Λ)Pv − v‖/‖v‖ is {error_found:.1e} in {own.dtype} ({own.name})")
        del inverse  # its square goes before the next one comes
    raise PrecisionError(_failed_check(failures))


def _failed_check(failures: list[str]) -> str:
    """Say what was tried and how it failed."""
    return (
        f"the inverse failed its check: {', '.join(failures)} ({TOLERANCE:g} is allowed). "
        "The penalty is too small for this data: raise l2"
    )
