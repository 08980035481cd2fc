"""Two exact ways from X and Λ to P = (XᵀX + Λ)⁻¹, a local one, and the plan that chooses between them."""

from relae.solvers._dual import DualInverse
from relae.solvers._inverse import Inverse
from relae.solvers._local import (
    LocalInverse,
    Supports,
    by_closeness,
    check_nearest_by,
    closeness,
    local_error,
    local_solutions,
    solve_local,
)
from relae.solvers._new_items import NewItems, without_new_items
from relae.solvers._plan import (
    DTYPES,
    NEIGHBOURS,
    SOLVERS,
    Forecast,
    Plan,
    available_memory,
    ensure_memory,
    forecast,
    plan,
)
from relae.solvers._primal import PrimalInverse
from relae.solvers._solve import FORMS, TOLERANCE, Solution, failed_check, residual, saved_form, solve

__all__ = [
    "DTYPES",
    "FORMS",
    "NEIGHBOURS",
    "SOLVERS",
    "TOLERANCE",
    "DualInverse",
    "Forecast",
    "Inverse",
    "LocalInverse",
    "NewItems",
    "Plan",
    "PrimalInverse",
    "Solution",
    "Supports",
    "available_memory",
    "by_closeness",
    "check_nearest_by",
    "closeness",
    "ensure_memory",
    "failed_check",
    "forecast",
    "local_error",
    "local_solutions",
    "plan",
    "residual",
    "saved_form",
    "solve",
    "solve_local",
    "without_new_items",
]
