"""From data and Λ to P on a cluster: plan, solve, and let the result check itself."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae._common.progress import Progress
from relae._common.words import in_bytes
from relae.distributed._blocks import row_blocks
from relae.distributed._cluster import Cluster, Job
from relae.distributed._forecast import ClusterForecast, keeps_square, plan
from relae.distributed._local import solve_blocks
from relae.distributed._partitions import Partitions
from relae.distributed._tiles import edges, gram_tiles, invert
from relae.errors import PlanError, PrecisionError
from relae.linalg import Csr, Dense, as_csr
from relae.solvers import (
    NEIGHBOURS,
    TOLERANCE,
    Inverse,
    LocalInverse,
    PrimalInverse,
    Solution,
    available_memory,
    ensure_memory,
    failed_check,
)

_PROBES = 4


def solve(
    x: Csr | Partitions,
    penalty: NDArray[np.float64],
    *,
    client: Any,
    solver: str = "auto",
    dtype: str = "float32",
    neighbours: int = NEIGHBOURS,
    nearest_by: str = "cosine",
    progress: Progress | None = None,
    scratch: str | os.PathLike[str] | None = None,
    tile: int | None = None,
    rng: np.random.Generator | None = None,
) -> Solution:
    """P = (XᵀX + Λ)⁻¹ by the workers of a cluster, checked; what `relae.solvers.solve` finds on one machine.

    A float32 result that fails its check is thrown away and made again in float64.

    Parameters
    ----------
    x : (users, items) CSR, or Partitions
    penalty : (items,), positive
    client
        A Dask client. Workers with one thread each serve best.
    solver : "primal" or "exact", "local", or "auto"
        "auto" takes the exact one if it fits the workers, and the local one, an approximation, if not.
    neighbours, nearest_by : of the local solver
    scratch
        A folder for the exact P as a file, where it is larger than this process should hold.
    tile : int, optional
        Rows of a tile; chosen by the workers' memory if not given.
    rng : of the probes of the check; the same ones each time if not given

    Raises
    ------
    PlanError
        If it does not fit the memory of the workers, or the result that of the client.
    DataError
        If a file of the partitions changed under way.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    cluster = Cluster.of(client)
    if not isinstance(x, Partitions):
        x = as_csr(x, x.dtype)
    users, items = x.shape
    failures: list[str] = []
    for precision in dict.fromkeys([np.dtype(dtype).name, "float64"]):
        try:
            chosen, pieces = plan(
                users, items, x.nnz, cluster, solver=solver, dtype=precision, neighbours=neighbours, tile=tile
            )
        except PlanError as error:
            if not failures:
                raise
            raise PrecisionError(
                f"{failed_check(failures)}; the repair in {precision} does not fit: {error}"
            ) from error
        job = Job(client)
        stage = "inverse" if not failures else f"inverse again, {chosen.solver} in {precision}"
        report = (lambda fraction: None) if progress is None else partial(progress, stage)
        try:
            blocks = row_blocks(job, x, precision)
            inverse: Inverse
            if chosen.solver == "local":
                inverse, found = _local(job, blocks, penalty, pieces, cluster, neighbours, nearest_by, report)
            else:
                inverse, found = _primal(job, blocks, penalty, pieces, scratch, report, rng)
        except np.linalg.LinAlgError:
            failures.append(f"the {chosen.solver} matrix is not positive definite in {precision}")
            continue
        if isinstance(x, Partitions):
            x.check_unchanged(job)  # what was read is the data of the start; that of now would be another
        if found <= TOLERANCE:
            return Solution(inverse, chosen, found)
        failures.append(f"‖(G+Λ)Pv − v‖/‖v‖ is {found:.1e} in {precision} ({chosen.solver})")
        del inverse  # its square goes before the next one comes
    raise PrecisionError(failed_check(failures))


def _local(
    job: Job,
    blocks: list[Any],
    penalty: NDArray[np.float64],
    pieces: ClusterForecast,
    cluster: Cluster,
    neighbours: int,
    nearest_by: str,
    report: Any,
) -> tuple[LocalInverse, float]:
    n, itemsize = len(penalty), np.dtype(pieces.dtype).itemsize
    ensure_memory(
        2 * n * min(neighbours, n) * (itemsize + 4),
        f"the local form of {n:,} items",
        "use fewer neighbours, or a client with more memory",
    )
    return solve_blocks(
        job,
        blocks,
        penalty,
        report,
        neighbours=neighbours,
        nearest_by=nearest_by,
        dtype=pieces.dtype,
        at_once=pieces.piece,
        workers=cluster.workers,
        keep_square=keeps_square(n, itemsize, cluster),
    )


def _primal(
    job: Job,
    blocks: list[Any],
    penalty: NDArray[np.float64],
    pieces: ClusterForecast,
    scratch: str | os.PathLike[str] | None,
    report: Any,
    rng: np.random.Generator,
) -> tuple[PrimalInverse, float]:
    n = len(penalty)
    out = _room(n, pieces.dtype, scratch)  # before anything is computed
    tiles = gram_tiles(job, blocks, penalty, pieces.piece, pieces.dtype)
    invert(job, tiles, edges(n, pieces.piece), out, report)
    inverse = PrimalInverse(out)
    return inverse, _residual(job, inverse, blocks, penalty, rng)


def _room(n: int, dtype: str, scratch: str | os.PathLike[str] | None) -> Dense:
    """Return the array that takes the result: in memory, or a file of the scratch folder."""
    needed = n * n * np.dtype(dtype).itemsize
    if scratch is None:
        if needed > 0.8 * available_memory():
            raise PlanError(
                f"P of {n:,} items has {in_bytes(needed)}, and {in_bytes(available_memory())} are available here: "
                "set scratch to a folder that has this much room, or use solver='local'"
            )
        return np.empty((n, n), dtype)
    folder = Path(scratch)
    folder.mkdir(parents=True, exist_ok=True)
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    if needed > free:
        raise PlanError(f"P of {n:,} items has {in_bytes(needed)}, and {folder} has {in_bytes(free)} free")
    return np.lib.format.open_memmap(folder / "inverse.npy", mode="w+", dtype=np.dtype(dtype), shape=(n, n))


def _residual(
    job: Job, inverse: Inverse, blocks: list[Any], penalty: NDArray[np.float64], rng: np.random.Generator
) -> float:
    """The largest ‖(G + Λ) P v − v‖ / ‖v‖ over a few random v, with G applied by the workers in float64."""
    vectors = rng.standard_normal((inverse.n_items, _PROBES)).astype(inverse.dtype)
    projected = inverse.apply(vectors).astype(np.float64)
    if not np.isfinite(projected).all():
        return float(np.inf)
    shared = [job.submit("probe", (at,), np.asarray, column) for at, column in enumerate(projected.T)]
    applied = [job.submit("apply", (at,), _apply, block, shared) for at, block in enumerate(blocks)]
    back = job.reduce("total", sum, applied).result() + penalty[:, None] * projected
    errors = np.linalg.norm(back - vectors, axis=0) / np.linalg.norm(vectors, axis=0)
    return float(errors.max()) if np.isfinite(errors).all() else float(np.inf)


def _apply(block: Csr, columns: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Xᵀ(X v) of some rows."""
    return np.asarray(block.T @ (block @ np.stack(columns, axis=1)))
