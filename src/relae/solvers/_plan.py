"""What a fit would cost here, before anything is allocated.

An exact fit is one dense square: items × items (primal) or users × users (dual). Where neither fits into memory, each
item is explained by its nearest items only (local). The forecast counts the bytes that the code really takes, and a fit
that cannot fit is refused with the figures and the way out.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from relae._common.checks import check_whole
from relae._common.limits import free_address_space
from relae._common.words import in_bytes
from relae.errors import PlanError
from relae.linalg import inverse_workspace_bytes, local_workspace_bytes

Solver = Literal["primal", "dual", "local"]
EXACT: tuple[Solver, ...] = ("primal", "dual")
SOLVERS: tuple[Solver, ...] = (*EXACT, "local")
NEIGHBOURS = 200
DTYPES = ("float32", "float64")

_RUNTIME_BYTES = 130e6  # what the compiler and the compiled kernels add to a process that has not used them yet
_DUAL_ADVANTAGE = 0.9  # new users cost the dual form more, so it has to be clearly smaller to be chosen


@dataclass(frozen=True)
class Forecast:
    """Cost of one solver: rows of its square (or squares, if local), flops, bytes added to the process at the peak."""

    solver: Solver
    dtype: str
    square: int
    flops: float
    added_bytes: int


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
    def solver(self) -> Solver:
        """Name of the chosen solver."""
        return self.chosen.solver

    @property
    def dtype(self) -> str:
        """Precision of the chosen solver."""
        return self.chosen.dtype

    @property
    def exact(self) -> bool:
        """Whether every item can be explained by every other one."""
        return self.solver in EXACT

    @property
    def peak_bytes(self) -> int:
        """Memory of the whole process at the peak of the fit."""
        return self.process_bytes + self.chosen.added_bytes


def plan(
    users: int,
    items: int,
    nonzeros: int,
    *,
    solver: str = "auto",
    dtype: str = "float32",
    neighbours: int = NEIGHBOURS,
    available_bytes: int | None = None,
) -> Plan:
    """Choose a solver for a matrix of this size, or refuse.

    Parameters
    ----------
    solver : "auto", "exact", "primal", "dual" or "local"
        "exact" takes the smaller square that fits; the dual one only if it is clearly smaller. "auto" does the same,
        and where none fits takes "local", which is an approximation.
    dtype : "float32" or "float64"
    neighbours : int
        Items that explain an item, itself included, in the local form.
    available_bytes : int, optional
        Memory the fit may add to this process; measured if not given.

    Raises
    ------
    PlanError
        If the solver asked for, or every one, needs more memory than there is.
    """
    if solver not in ("auto", "exact", *SOLVERS):
        raise ValueError(f"solver must be 'auto', 'exact', 'primal', 'dual' or 'local', got {solver!r}")
    check_whole("neighbours", neighbours)
    precision = check_dtype(dtype)
    if min(users, items) < 1:
        raise ValueError(f"a fit needs at least one user and one item, got {users} users and {items} items")
    available = available_memory() if available_bytes is None else available_bytes
    forecasts = tuple(forecast(name, users, items, nonzeros, precision, int(neighbours)) for name in SOLVERS)
    fitting = {f.solver: f for f in forecasts if f.added_bytes <= available}
    if solver in ("auto", "exact"):
        order = EXACT[::-1] if users < _DUAL_ADVANTAGE * items else EXACT
        name = next((name for name in (*order, *(["local"] if solver == "auto" else [])) if name in fitting), None)
    else:
        name = next((name for name in fitting if name == solver), None)
    if name is None:
        raise PlanError(_refusal(forecasts, solver, available, users, items))
    return Plan(users, items, nonzeros, fitting[name], forecasts, process_memory(), available)


def check_dtype(dtype: Any) -> str:
    """Return the name of a precision that is supported."""
    try:
        name = "" if dtype is None else str(np.dtype(dtype).name)
    except TypeError:
        name = ""
    if name not in DTYPES:
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
    return name


def forecast(
    solver: Solver, users: int, items: int, nonzeros: int, dtype: str, neighbours: int = NEIGHBOURS
) -> Forecast:
    """Flops and bytes of one solver, from what its code allocates."""
    itemsize = np.dtype(dtype).itemsize
    if solver == "local":
        return _local_forecast(users, items, nonzeros, dtype, min(neighbours, items))
    square = items if solver == "primal" else users
    csr = nonzeros * (itemsize + 4) + 8 * (users + items)
    sparse = 2 * csr  # the matrix in the solver's own precision, and its transpose
    inverse = inverse_workspace_bytes(square, itemsize)
    probes = 8 * nonzeros + 16 * 8 * (users + items)  # the check at the end, in float64
    runtime = 0 if "numba" in sys.modules else int(_RUNTIME_BYTES)
    added = itemsize * square * square + sparse + max(inverse, probes) + runtime
    return Forecast(solver, dtype, square, float(square) ** 3, added)


def _local_forecast(users: int, items: int, nonzeros: int, dtype: str, neighbours: int) -> Forecast:
    """A small square per item; the result is there twice when it is turned from columns into rows."""
    itemsize = np.dtype(dtype).itemsize
    sparse = 2 * (nonzeros * (itemsize + 4) + 8 * (users + items))
    result = 2 * (items * neighbours * (itemsize + 4) + 8 * items)
    runtime = 0 if "numba" in sys.modules else int(_RUNTIME_BYTES)
    added = sparse + result + local_workspace_bytes(users, items, neighbours, itemsize) + runtime
    return Forecast("local", dtype, neighbours, items * neighbours**3 / 3, added)


def _refusal(forecasts: tuple[Forecast, ...], solver: str, available: int, users: int, items: int) -> str:
    counted = {"primal": f"{items:,} items", "dual": f"{users:,} users", "local": f"{items:,} items"}
    asked = [f for f in forecasts if solver in ("auto", f.solver) or (solver == "exact" and f.solver in EXACT)]
    needs = " and ".join(
        f"{counted[f.solver]} need {in_bytes(f.added_bytes)} in the {f.solver} form ({f.dtype})" for f in asked
    )
    ways = [
        f"use solver={f.solver!r} ({in_bytes(f.added_bytes)})"
        for f in forecasts
        if f not in asked and f.added_bytes <= available
    ]
    if any(f.dtype == "float64" for f in asked):
        ways.append("use dtype='float32' (half of it)")
    ways.append("drop rare items or inactive users (min_item_count, min_user_count), or use a machine with more memory")
    return f"{needs}, and {in_bytes(available)} are available: {', or '.join(ways)}"


def ensure_memory(needed: float, what: str, way_out: str) -> None:
    """Raise a PlanError if `needed` bytes are not available."""
    available = available_memory()
    if needed > available:
        raise PlanError(f"{what} needs {in_bytes(needed)}, and {in_bytes(available)} are available: {way_out}")


def process_memory() -> int:
    """Resident bytes of this process."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def available_memory() -> int:
    """Bytes this process can still take: the machine's, its control groups' and its own limit, the least of them."""
    import psutil

    free = [int(psutil.virtual_memory().available), *_control_group_memory()]
    within_limit = free_address_space()
    return max(min([*free, *([] if within_limit is None else [within_limit])]), 0)


def _control_group_memory(
    membership: str = "/proc/self/cgroup", mount: str | os.PathLike[str] = "/sys/fs/cgroup"
) -> Iterator[int]:
    """Free bytes of each control group of this process that has a memory limit (cgroup v1 and v2, parents too)."""
    try:
        lines = Path(membership).read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = Path(mount), ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = Path(mount, "memory")
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = root / path.lstrip("/")
        for folder in (group, *group.parents):
            free = _group_free(folder, *names)
            if free is not None:
                yield free
            if folder == root:
                break


def _group_free(folder: Path, limit_name: str, usage_name: str, cache_name: str) -> int | None:
    try:
        limit = (folder / limit_name).read_text().strip()
        if limit == "max" or int(limit) > 1 << 60:  # v1 writes "no limit" as a huge number
            return None
        usage = int((folder / usage_name).read_text())
    except (OSError, ValueError):
        return None
    try:
        statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        cache = int(statistics.get(cache_name, 0))
    except (OSError, ValueError):
        cache = 0
    return int(limit) - usage + cache  # file cache is given back on demand
