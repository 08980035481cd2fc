"""From X and Λ to P: plan, solve, and let the result check itself."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relae._common.progress import Progress, of_stage
from relae._common.words import in_bytes
from relae.errors import PlanError, PrecisionError
from relae.linalg import Csr, as_csr, scaled_rows
from relae.solvers._dual import DualInverse, solve_dual
from relae.solvers._inverse import Inverse
from relae.solvers._local import LocalInverse, busiest_first, by_closeness, solve_local
from relae.solvers._plan import NEIGHBOURS, Plan, check_dtype, plan
from relae.solvers._primal import PrimalInverse, solve_primal

FORMS: dict[str, type[Inverse]] = {"primal": PrimalInverse, "dual": DualInverse, "local": LocalInverse}
"""The forms that an inverse can be kept in."""

TOLERANCE = 1e-3
_PROBES = 4


def saved_form(solver: str, form: str) -> str:
    """Return the form that an inverse of a solver is saved in: "auto" is the one that serves fastest.

    A ValueError if there is no way from the solver to the form.
    """
    if form == "auto":
        return "primal" if solver == "dual" else solver
    if form in ("fitted", solver):
        return solver
    if form == "primal" and solver == "dual":
        return form
    raise ValueError(f"this model has the {solver} form, and cannot be saved in the {form} form")


@dataclass(frozen=True)
class Solution:
    """P, the plan it was made by and how exact it is."""

    inverse: Inverse
    plan: Plan
    residual: float


def solve(
    x: Csr,
    penalty: NDArray[np.float64],
    *,
    row_weights: NDArray[np.float64] | None = None,
    solver: str = "auto",
    dtype: str = "float32",
    neighbours: int = NEIGHBOURS,
    nearest_by: str = "cosine",
    progress: Progress | None = None,
    rng: np.random.Generator | None = None,
) -> Solution:
    """P = (XᵀDX + Λ)⁻¹ by the solver that the plan chooses, checked.

    A float32 result that fails its check is thrown away and made again in float64.

    Parameters
    ----------
    x : (users, items) CSR
    penalty : (items,), positive
    row_weights : (users,), positive; D, which is 1 if not given
    neighbours, nearest_by : of the local solver
    rng : of the probes of the check; the same ones each time if not given
    """
    rng = np.random.default_rng(0) if rng is None else rng
    users, items = x.shape
    failures: list[str] = []
    tried: set[tuple[str, str]] = set()
    for method, precision in _attempts(solver, check_dtype(dtype)):
        try:
            chosen = plan(users, items, x.nnz, solver=method, dtype=precision, neighbours=neighbours)
        except PlanError as error:
            if not failures:
                raise
            raise PrecisionError(
                f"{failed_check(failures)}; the repair in {precision} does not fit: {error}"
            ) from error
        if (chosen.solver, precision) in tried:
            continue
        tried.add((chosen.solver, precision))
        stage = "inverse" if not failures else f"inverse again, {chosen.solver} in {precision}"
        with np.errstate(all="ignore"):  # what overflows is found by the check
            try:
                report = of_stage(progress, stage)
                inverse, error_found = _invert(x, penalty, row_weights, chosen, report, nearest_by, rng)
            except np.linalg.LinAlgError:
                failures.append(f"the {chosen.solver} matrix is not positive definite in {precision}")
                continue
        if error_found <= TOLERANCE:
            return Solution(inverse, chosen, error_found)
        failures.append(f"‖(G+Λ)Pv − v‖/‖v‖ is {error_found:.1e} in {precision} ({chosen.solver})")
        del inverse  # its square goes before the next one comes
    raise PrecisionError(failed_check(failures))


def _attempts(solver: str, dtype: str) -> list[tuple[str, str]]:
    """What to try, one after the other. On hard data the dual form loses more digits than the primal one."""
    attempts = [(solver, dtype), (solver, "float64")]
    return [*attempts, ("primal", "float64")] if solver in ("auto", "exact") else attempts


def failed_check(failures: list[str]) -> str:
    """Say what was tried and how it failed."""
    return (
        f"the inverse failed its check: {', '.join(failures)} ({TOLERANCE:g} is allowed). "
        "The penalty is too small for this data: raise l2"
    )


def _invert(
    x: Csr,
    penalty: NDArray[np.float64],
    row_weights: NDArray[np.float64] | None,
    chosen: Plan,
    progress: Callable[[float], None] | None,
    nearest_by: str,
    rng: np.random.Generator,
) -> tuple[Inverse, float]:
    """Return P and its error."""
    own = as_csr(x, np.dtype(chosen.dtype))
    inverse: Inverse
    try:
        if chosen.solver == "dual":
            inverse = solve_dual(own, penalty, row_weights, progress)
        elif chosen.solver == "primal":
            inverse = solve_primal(scaled_rows(own, row_weights), penalty, progress)
        else:
            own = busiest_first(scaled_rows(own, row_weights))
            return solve_local(own, penalty, progress, by_closeness(own, chosen.chosen.square, nearest_by), rng)
        return inverse, residual(inverse, x, penalty, rng, row_weights)
    except MemoryError as error:
        needed = in_bytes(chosen.chosen.added_bytes)
        raise PlanError(f"the {chosen.solver} solver could not get its {needed}: {error}") from error


def residual(
    inverse: Inverse,
    x: Csr,
    penalty: NDArray[np.float64],
    rng: np.random.Generator,
    row_weights: NDArray[np.float64] | None = None,
) -> float:
    """The largest ‖(G + Λ) P v − v‖ / ‖v‖ over a few random v, with G + Λ applied in float64 through the sparse X."""
    vectors = rng.standard_normal((inverse.n_items, _PROBES)).astype(inverse.dtype)
    projected = inverse.apply(vectors).astype(np.float64)
    by_row = x @ projected
    if row_weights is not None:
        by_row *= row_weights[:, None]
    back = x.T @ by_row + penalty[:, None] * projected
    errors = np.linalg.norm(back - vectors, axis=0) / np.linalg.norm(vectors, axis=0)
    return float(errors.max()) if np.isfinite(errors).all() else np.inf
