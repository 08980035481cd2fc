"""The workers of a Dask cluster as a solver: what a fit needs on each of them, and the fit itself."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae._common.checks import check_whole
from relae._common.progress import Fraction
from relae._common.words import in_bytes
from relae.distributed._blocks import row_blocks
from relae.distributed._cluster import Cluster, Job
from relae.distributed._local import solve_blocks
from relae.distributed._partitions import Partitions
from relae.distributed._tiles import edges, gram_tiles, invert
from relae.errors import Option, ParameterError, PlanError, Text
from relae.linalg import SQUARE_BYTES, Csr, Dense
from relae.solvers import (
    NEIGHBOURS,
    Choice,
    Forecast,
    LocalInverse,
    Memory,
    PrimalInverse,
    Rows,
    Shape,
    Solver,
    available_memory,
    check_neighbours,
    ensure_memory,
    residual,
)

_PROCESS_BYTES = 260e6  # a worker with NumPy, SciPy and the compiled kernels
_COPIES = 2.0  # of each tile: its own place, and where it is just used
_HANDS = 6  # tiles that a task works with: its arguments, its result, and what is on its way to the next task
_USABLE = 0.8  # of a worker's memory: beyond, Dask pauses it
_UNLIMITED = 2**62  # bytes of workers without a limit
_LARGEST_TILE = 4096
_SMALLEST_TILE = 1024  # below, the scheduler takes longer than the product
_ITEMS_AT_ONCE = 2048  # of a local task: seconds


@dataclass(frozen=True)
class ClusterForecast(Forecast):
    """Cost of one solver on a cluster: `added_bytes` are those of all workers.

    Attributes
    ----------
    workers : int
    piece : int
        Rows of a tile, or items of a task.
    worker_bytes : int
        Bytes that each worker needs.
    worker_memory : int or None
        Bytes that each worker has; None if it has no limit.
    """

    workers: int
    piece: int
    worker_bytes: int
    worker_memory: int | None

    def fits(self, available: int) -> bool:
        """Return whether each worker has enough; how much there is in all does not matter."""
        return self.worker_memory is None or self.worker_bytes <= _USABLE * self.worker_memory


@dataclass(frozen=True)
class Dask(Choice):
    """The workers of a Dask cluster do the work: the exact inverse by tiles, or local solves by blocks of items.

    Parameters
    ----------
    client
        A Dask client. Workers with one thread each serve best.
    solver : "auto", "exact", "primal" or "local"
        "auto" takes the exact form if it fits the workers, and the local one, an approximation, if not. "exact" and
        "primal" are the same: there is no dual form on a cluster.
    neighbours, nearest_by
        Of the local form; see `relae.solvers.Local`.
    scratch
        A folder for the exact P as a file, where it is larger than this process should hold.
    tile : int, optional
        Rows of a tile; chosen by the workers' memory if not given.
    """

    client: Any
    solver: str = "auto"
    neighbours: int = NEIGHBOURS
    nearest_by: str = "cosine"
    scratch: str | os.PathLike[str] | None = None
    tile: int | None = None

    name = "dask"
    reads_files = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.solver not in ("auto", "exact", "primal", "local"):
            raise ParameterError(
                Option("solver"),
                f" must be 'auto', 'exact', 'primal' or 'local' on a cluster, got {self.solver!r}",
                field="solver",
                value=self.solver,
            )
        check_neighbours(self.neighbours, self.nearest_by)
        check_whole("tile", 1 if self.tile is None else self.tile)

    @property
    def exact(self) -> bool:
        """True if it never takes the local form."""
        return self.solver in ("exact", "primal")

    def members(self) -> Sequence[Solver]:
        """Return the exact and the local form on the workers that there are now."""
        cluster = Cluster.of(self.client)
        return (
            _Tiles(self.client, cluster, self.tile, self.scratch, dtype=self.dtype),
            _Blocks(self.client, cluster, self.neighbours, self.nearest_by, dtype=self.dtype),
        )

    def preference(self, shape: Shape) -> Sequence[str]:
        """Return the exact form, and the local one if an approximation is allowed."""
        return {"auto": ("primal", "local"), "exact": ("primal",)}.get(self.solver, (self.solver,))

    def memory(self) -> Memory:
        """Return what all workers have; nothing of it is this process's own."""
        cluster = Cluster.of(self.client)
        if cluster.memory is None:
            return Memory(0, _UNLIMITED)
        return Memory(0, int(_USABLE * cluster.memory) * cluster.workers)

    def refusal(self, shape: Shape, members: Sequence[Solver], forecasts: Sequence[Forecast], memory: Memory) -> Text:
        """Say what does not fit the workers, and what can be done."""
        cluster = Cluster.of(self.client)
        usable, preferred = _USABLE * (cluster.memory or 0), self.preference(shape)
        costs = {each.solver: each for each in forecasts if isinstance(each, ClusterForecast)}
        needs = " and ".join(
            f"{in_bytes(costs[name].worker_bytes)} on each of {costs[name].workers} workers in the {name} form "
            f"({self.dtype})"
            for name in preferred
        )
        ways = [
            Text("use ", Option("solver", name), f" ({in_bytes(each.worker_bytes)})")
            for name, each in costs.items()
            if each.fits(memory.available)
        ]
        if "primal" in preferred:
            ways += map(Text, _more_workers(costs["primal"], cluster, usable))
        if self.dtype == "float64":
            ways.append(Text("use ", Option("dtype", "float32"), " (half of it)"))
        ways.append(Text("give each worker more memory"))
        return Text(
            f"{shape.users:,} users × {shape.items:,} items need {needs}, and {in_bytes(usable)} of each can be used "
            f"({_USABLE:.0%} of {in_bytes(cluster.memory or 0)}): ",
            Text.join(", or ", ways),
        )


def _more_workers(primal: ClusterForecast, cluster: Cluster, usable: float) -> list[str]:
    """Return the advice to use more workers, if they would help."""
    itemsize = np.dtype(primal.dtype).itemsize
    fixed = _PROCESS_BYTES + _HANDS * cluster.threads * primal.piece**2 * itemsize
    if usable <= fixed:
        return []
    more = int(np.ceil((primal.worker_bytes - fixed) * cluster.workers / (usable - fixed)))
    return [f"use at least {more:,} such workers"]


@dataclass(frozen=True)
class _Tiles(Solver):
    """The exact inverse over tiles that stay on the workers."""

    client: Any
    cluster: Cluster
    tile: int | None
    scratch: str | os.PathLike[str] | None

    name = "primal"
    exact = True
    reads_files = True

    def forecast(self, shape: Shape) -> ClusterForecast:
        """Forecast copies · 4·n²/2 / workers + 6 tiles per thread + the matrix twice, shared + the process itself."""
        itemsize, items = np.dtype(self.dtype).itemsize, shape.items
        rows = _tile(items, self.cluster, itemsize) if self.tile is None else min(self.tile, items)
        count = -(-items // rows)
        triangle = count * (count + 1) // 2 * rows * rows * itemsize
        shared = (_COPIES * triangle + 2 * _matrix_bytes(shape, itemsize)) / self.cluster.workers
        hands = _HANDS * self.cluster.threads * rows * rows * itemsize
        each = int(shared + hands + _PROCESS_BYTES)
        return _forecast(self, items, float(items) ** 3, self.cluster, rows, each)

    def solve(
        self, rows: Rows, penalty: NDArray[np.float64], progress: Fraction | None, rng: np.random.Generator
    ) -> tuple[PrimalInverse, float]:
        """Return P as a dense array, in memory or in the scratch folder, and its error."""
        job = Job(self.client)
        blocks = row_blocks(job, rows.scaled(), self.dtype)
        out = _room(len(penalty), self.dtype, self.scratch)  # before anything is computed
        tile = self.forecast(rows.shape).piece
        tiles = gram_tiles(job, blocks, penalty, tile, self.dtype)
        invert(job, tiles, edges(len(penalty), tile), out, progress or _nobody)
        inverse = PrimalInverse(out)
        error = residual(inverse, lambda vectors: _gram_times(job, blocks, vectors), penalty, rng)
        _check_unchanged(job, rows)
        return inverse, error


@dataclass(frozen=True)
class _Blocks(Solver):
    """Local solves, one task per block of items."""

    client: Any
    cluster: Cluster
    neighbours: int
    nearest_by: str

    name = "local"
    exact = False
    reads_files = True

    def forecast(self, shape: Shape) -> ClusterForecast:
        """Forecast the matrix, three times, on each worker + a block of items + the process itself."""
        itemsize, items = np.dtype(self.dtype).itemsize, shape.items
        rows = max(1, min(_ITEMS_AT_ONCE, -(-items // (4 * self.cluster.workers))))
        kept = min(self.neighbours, items)
        task = 3 * rows * kept * (itemsize + 4) + 4 * shape.users + items * (itemsize + 4) + kept * kept * itemsize
        square = items * items * itemsize if self._keeps_square(items) else 0
        each = int(3 * _matrix_bytes(shape, itemsize) + self.cluster.threads * task + 2 * square + _PROCESS_BYTES)
        return _forecast(self, kept, items * kept**3 / 3, self.cluster, rows, each)

    def _keeps_square(self, items: int) -> bool:
        """Return whether the Gram is looked up in a square of all items, which each worker has then."""
        memory = self.cluster.memory
        most = SQUARE_BYTES if memory is None else min(SQUARE_BYTES, memory / 8)
        return bool(items * items * np.dtype(self.dtype).itemsize <= most)

    def solve(
        self, rows: Rows, penalty: NDArray[np.float64], progress: Fraction | None, rng: np.random.Generator
    ) -> tuple[LocalInverse, float]:
        """Return P̂ as a sparse matrix, and the error of a few of its columns."""
        job = Job(self.client)
        blocks = row_blocks(job, rows.scaled(), self.dtype)
        n, itemsize = len(penalty), np.dtype(self.dtype).itemsize
        ensure_memory(
            2 * n * min(self.neighbours, n) * (itemsize + 4),
            f"the local form of {n:,} items",
            "use fewer neighbours, or a client with more memory",
        )
        solved = solve_blocks(
            job,
            blocks,
            penalty,
            progress or _nobody,
            neighbours=self.neighbours,
            nearest_by=self.nearest_by,
            dtype=self.dtype,
            at_once=self.forecast(rows.shape).piece,
            workers=self.cluster.workers,
            keep_square=self._keeps_square(n),
        )
        _check_unchanged(job, rows)
        return solved


# --- helpers -----------------------------------------------------------------------------------------------------


def _nobody(fraction: float) -> None:
    """Ignore progress."""


def _forecast(
    solver: Solver, square: int, flops: float, cluster: Cluster, piece: int, worker_bytes: int
) -> ClusterForecast:
    total = worker_bytes * cluster.workers
    return ClusterForecast(
        solver.name, solver.dtype, square, flops, total, cluster.workers, piece, worker_bytes, cluster.memory
    )


def _matrix_bytes(shape: Shape, itemsize: int) -> int:
    return shape.nonzeros * (itemsize + 4) + 8 * (shape.users + shape.items)


def _tile(items: int, cluster: Cluster, itemsize: int) -> int:
    """Return the rows of a tile: large ones need less network, small ones less memory and keep all workers busy."""
    memory = np.inf if cluster.memory is None else cluster.memory
    by_memory = np.sqrt(0.15 * memory / (_HANDS * cluster.threads * itemsize))
    by_workers = max(items / (4 * np.sqrt(cluster.workers * cluster.threads)), _SMALLEST_TILE)
    rows = int(min(_LARGEST_TILE, by_memory, by_workers)) // 64 * 64
    return min(max(rows, 64), items)


def _room(n: int, dtype: str, scratch: str | os.PathLike[str] | None) -> Dense:
    """Return the array for the result: in memory, or a file of the scratch folder."""
    needed = n * n * np.dtype(dtype).itemsize
    if scratch is None:
        if needed > 0.8 * available_memory():
            raise PlanError(
                f"P of {n:,} items has {in_bytes(needed)}, and {in_bytes(available_memory())} are available here: set ",
                Option("scratch"),
                " to a folder that has this much room, or use ",
                Option("solver", "local"),
                field="scratch",
            )
        return np.empty((n, n), dtype)
    folder = Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    if needed > free:
        raise PlanError(f"P of {n:,} items has {in_bytes(needed)}, and {folder} has {in_bytes(free)} free")
    return np.lib.format.open_memmap(folder / "inverse.npy", mode="w+", dtype=np.dtype(dtype), shape=(n, n))


def _check_unchanged(job: Job, rows: Rows) -> None:
    """Raise a DataError if files were written meanwhile: what was read is the data of the start."""
    if isinstance(rows.x, Partitions):
        rows.x.check_unchanged(job)


def _gram_times(job: Job, blocks: list[Any], vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return XᵀX v, applied by the workers in float64."""
    shared = [job.submit("probe", (at,), np.asarray, column) for at, column in enumerate(vectors.T)]
    applied = [job.submit("apply", (at,), _apply, block, shared) for at, block in enumerate(blocks)]
    return np.asarray(job.reduce("total", sum, applied).result())


def _apply(block: Csr, columns: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return Xᵀ(X v) of some rows."""
    return np.asarray(block.T @ (block @ np.stack(columns, axis=1)))
