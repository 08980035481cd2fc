"""What a fit needs on each worker, before it begins."""

from dataclasses import dataclass

import numpy as np

from relae._common.checks import check_whole
from relae._common.words import in_bytes
from relae.distributed._cluster import Cluster
from relae.errors import PlanError
from relae.linalg import SQUARE_BYTES
from relae.solvers import NEIGHBOURS, Forecast, Plan

_PROCESS_BYTES = 260e6  # a worker with NumPy, SciPy and the compiled kernels
_COPIES = 2.0  # of each tile: its own place, and where it is just used
_HANDS = 6  # tiles that a task works with: those it is given, what it makes, and what is on its way to the next one
_USABLE = 0.8  # of a worker's memory: beyond, Dask pauses it
_LARGEST_TILE = 4096
_SMALLEST_TILE = 1024  # below, the scheduler takes longer than the product
_ITEMS_AT_ONCE = 2048  # of a local task: seconds


@dataclass(frozen=True)
class ClusterForecast:
    """Bytes that each worker needs, of what it has, and the size of the pieces: rows of a tile, or items of a task."""

    solver: str
    dtype: str
    workers: int
    piece: int
    needed: int
    memory: int | None

    @property
    def fits(self) -> bool:
        """Whether it can be done."""
        return self.memory is None or self.needed <= _USABLE * self.memory


def forecast(
    solver: str,
    users: int,
    items: int,
    nonzeros: int,
    cluster: Cluster,
    *,
    dtype: str = "float32",
    neighbours: int = NEIGHBOURS,
    tile: int | None = None,
) -> ClusterForecast:
    """Forecast the memory per worker of the primal or the local solver.

    primal: copies · 4·n²/2 / workers + 6 tiles per thread + the matrix twice, shared + the process itself.
    local: the matrix, twice, on each worker + a block of items + the process itself.
    """
    itemsize = np.dtype(dtype).itemsize
    matrix = nonzeros * (itemsize + 4) + 8 * (users + items)
    if solver == "primal":
        rows = _tile(items, cluster, itemsize) if tile is None else min(tile, items)
        count = -(-items // rows)
        triangle = count * (count + 1) // 2 * rows * rows * itemsize
        shared = (_COPIES * triangle + 2 * matrix) / cluster.workers
        hands = _HANDS * cluster.threads * rows * rows * itemsize
        needed = int(shared + hands + _PROCESS_BYTES)
        return ClusterForecast("primal", dtype, cluster.workers, rows, needed, cluster.memory)
    rows = max(1, min(_ITEMS_AT_ONCE, -(-items // (4 * cluster.workers))))
    kept = min(neighbours, items)
    each = 3 * rows * kept * (itemsize + 4) + 4 * users + items * (itemsize + 4) + kept * kept * itemsize
    square = items * items * itemsize if keeps_square(items, itemsize, cluster) else 0
    needed = int(3 * matrix + cluster.threads * each + 2 * square + _PROCESS_BYTES)
    return ClusterForecast("local", dtype, cluster.workers, rows, needed, cluster.memory)


def keeps_square(items: int, itemsize: int, cluster: Cluster) -> bool:
    """Whether the local solver looks the Gram up in a square of all items, which each worker has then."""
    most = SQUARE_BYTES if cluster.memory is None else min(SQUARE_BYTES, cluster.memory / 8)
    return items * items * itemsize <= most


def _tile(items: int, cluster: Cluster, itemsize: int) -> int:
    """Rows of a tile: large ones need less network, small ones less memory and leave all workers something to do."""
    memory = np.inf if cluster.memory is None else cluster.memory
    by_memory = np.sqrt(0.15 * memory / (_HANDS * cluster.threads * itemsize))
    by_workers = max(items / (4 * np.sqrt(cluster.workers * cluster.threads)), _SMALLEST_TILE)
    rows = int(min(_LARGEST_TILE, by_memory, by_workers)) // 64 * 64
    return min(max(rows, 64), items)


def plan(
    users: int,
    items: int,
    nonzeros: int,
    cluster: Cluster,
    *,
    solver: str,
    dtype: str,
    neighbours: int,
    tile: int | None = None,
) -> tuple[Plan, ClusterForecast]:
    """Choose between the exact and the local solver, or refuse."""
    if solver not in ("auto", "exact", "primal", "local"):
        raise ValueError(f"solver must be 'auto', 'exact', 'primal' or 'local' on a cluster, got {solver!r}")
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
    for name, value in (("neighbours", neighbours), ("tile", 1 if tile is None else tile)):
        check_whole(name, value)
    if min(users, items) < 1:
        raise ValueError(f"a fit needs at least one user and one item, got {users} users and {items} items")
    found = {
        name: forecast(name, users, items, nonzeros, cluster, dtype=dtype, neighbours=neighbours, tile=tile)
        for name in ("primal", "local")
    }
    asked = {"auto": ("primal", "local"), "exact": ("primal",)}.get(solver, (solver,))
    chosen = next((found[name] for name in asked if found[name].fits), None)
    if chosen is None:
        raise PlanError(_refusal(found, asked, users, items, cluster))
    kept = min(neighbours, items)
    costs = (
        Forecast("primal", dtype, items, float(items) ** 3, found["primal"].needed * cluster.workers),
        Forecast("local", dtype, kept, items * kept**3 / 3, found["local"].needed * cluster.workers),
    )
    [own] = [cost for cost in costs if cost.solver == chosen.solver]
    total = int(_USABLE * cluster.memory) * cluster.workers if cluster.memory is not None else 2**62
    return Plan(users, items, nonzeros, own, costs, 0, total), chosen


def _refusal(
    found: dict[str, ClusterForecast], asked: tuple[str, ...], users: int, items: int, cluster: Cluster
) -> str:
    usable = _USABLE * (cluster.memory or 0)
    needs = " and ".join(
        f"{in_bytes(each.needed)} on each of {each.workers} workers in the {each.solver} form ({each.dtype})"
        for each in map(found.__getitem__, asked)
    )
    ways = [f"use solver={name!r} ({in_bytes(each.needed)})" for name, each in found.items() if each.fits]
    primal = found["primal"]
    if "primal" in asked:
        itemsize = np.dtype(primal.dtype).itemsize
        fixed = _PROCESS_BYTES + _HANDS * cluster.threads * primal.piece**2 * itemsize
        if usable > fixed:
            more = int(np.ceil((primal.needed - fixed) * cluster.workers / (usable - fixed)))
            ways.append(f"use at least {more:,} such workers")
    if primal.dtype == "float64":
        ways.append("use dtype='float32' (half of it)")
    ways.append("give each worker more memory")
    return (
        f"{users:,} users × {items:,} items need {needs}, and {in_bytes(usable)} of each can be used "
        f"({_USABLE:.0%} of {in_bytes(cluster.memory or 0)}): {', or '.join(ways)}"
    )
