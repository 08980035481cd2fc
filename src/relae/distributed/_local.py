"""Local solves, one task per block of items; every worker that takes part has the whole matrix."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.distributed._blocks import own
from relae.distributed._cluster import FAN_IN, Job, one_core
from relae.linalg import Csr, Dense, Labelled, as_csr, gram, labelled, local_columns, nearest, transpose
from relae.solvers import LocalInverse, closeness, local_error

_AHEAD = 4  # blocks per worker that wait at the scheduler or for the client


def solve_blocks(
    job: Job,
    blocks: Sequence[Any],
    penalty: NDArray[np.float64],
    report: Callable[[float], None],
    *,
    neighbours: int,
    nearest_by: str,
    dtype: str,
    at_once: int,
    workers: int,
    keep_square: bool,
) -> tuple[LocalInverse, float]:
    """Return P̂ as `solve_local` makes it, and the error of a few of its columns."""
    n = len(penalty)
    count = min(neighbours, n)
    x = job.reduce("stack", _stack, blocks) if len(blocks) > FAN_IN else job.submit("stack", (), _stack, list(blocks))
    by_item = job.submit("turn", (), transpose, x)
    others = job.submit("label", (), _labelled, x, nearest_by)
    square = job.submit("gram", (), _square, by_item, x) if keep_square else None
    shared = job.submit("penalty", (), np.asarray, penalty)
    members, values = np.empty(n * count, np.int32), np.empty(n * count, dtype)
    starts = np.zeros(n + 1, np.int64)
    error = 0.0
    waiting = deque[tuple[int, int, Any]]()
    for start in range(0, n, at_once):
        stop = min(start + at_once, n)
        task = job.submit("local", (start,), _solve, start, stop, count, by_item, others, shared, square)
        waiting.append((start, stop, task))
        while len(waiting) > (_AHEAD * workers if stop < n else 0):
            first, last, future = waiting.popleft()
            sizes, supports, solved, worst = future.result()
            starts[first + 1 : last + 1] = starts[first] + np.cumsum(sizes)
            span = slice(starts[first], starts[last])
            members[span], values[span], error = supports, solved, max(error, worst)
            report(last / n)
    by_column = sp.csc_array((values[: starts[-1]], members[: starts[-1]], starts), shape=(n, n))
    return LocalInverse(as_csr(by_column.tocsr(), np.dtype(dtype))), error


def _stack(blocks: list[Csr]) -> Csr:
    return as_csr(sp.vstack(blocks, format="csr"), blocks[0].dtype)


def _labelled(x: Csr, nearest_by: str) -> Labelled:
    return labelled(x, closeness(x, nearest_by))


def _square(by_item: Csr, x: Csr) -> Dense:
    n = x.shape[1]
    with one_core(kernels=True):
        return gram(own(by_item), own(x), np.empty((n, n), x.dtype))


def _solve(
    start: int,
    stop: int,
    count: int,
    by_item: Csr,
    others: Labelled,
    penalty: NDArray[np.float64],
    square: Dense | None,
) -> tuple[NDArray[np.int64], NDArray[np.int32], Dense, float]:
    """Return how large the supports of some items are, their members, the values on them, and the largest error."""
    by_item, items = own(by_item), np.arange(start, stop)
    others = others._replace(
        by_user=own(others.by_user), weights=np.array(others.weights), names=np.array(others.names)
    )
    if square is not None and not square.flags.writeable:
        square = square.copy()
    with one_core(kernels=True), np.errstate(all="ignore"):
        members, sizes, _ = nearest(by_item, others, items, count)
        solved = local_columns(items, members, sizes, by_item, penalty, square)
        error = local_error(items, members, sizes, solved, by_item, penalty, np.random.default_rng(start))
    taken = np.arange(count) < sizes[:, None]
    return sizes, members[taken], solved[taken], error
