"""Ways from X and Λ to P = (XᵀX + Λ)⁻¹: two exact ones, a local one, and the plan that chooses between them."""

from relae._common.memory import available_memory, ensure_memory
from relae.solvers._check import residual
from relae.solvers._dual import Dual, DualInverse
from relae.solvers._inverse import Inverse, Supports
from relae.solvers._local import (
    Local,
    LocalInverse,
    by_closeness,
    check_nearest_by,
    check_neighbours,
    closeness,
    local_error,
    local_solutions,
    solve_local,
)
from relae.solvers._new_items import NewItems
from relae.solvers._plan import NAMES, SOLVERS, Auto, Choice, Exact, Plan, as_solver, plan
from relae.solvers._primal import Primal, PrimalInverse
from relae.solvers._solve import Solution, solve
from relae.solvers._solver import DTYPES, NEIGHBOURS, Forecast, Memory, Rows, Shape, Solver
from relae.solvers._update import TOLERANCE, Change, check_updated

FORMS: dict[str, type[Inverse]] = {kind.solver: kind for kind in (PrimalInverse, DualInverse, LocalInverse)}
"""The forms that an inverse can be kept in."""

__all__ = [
    "DTYPES",
    "FORMS",
    "NAMES",
    "NEIGHBOURS",
    "SOLVERS",
    "TOLERANCE",
    "Auto",
    "Change",
    "Choice",
    "Dual",
    "DualInverse",
    "Exact",
    "Forecast",
    "Inverse",
    "Local",
    "LocalInverse",
    "Memory",
    "NewItems",
    "Plan",
    "Primal",
    "PrimalInverse",
    "Rows",
    "Shape",
    "Solution",
    "Solver",
    "Supports",
    "as_solver",
    "available_memory",
    "by_closeness",
    "check_nearest_by",
    "check_neighbours",
    "check_updated",
    "closeness",
    "ensure_memory",
    "local_error",
    "local_solutions",
    "plan",
    "residual",
    "solve",
    "solve_local",
]
