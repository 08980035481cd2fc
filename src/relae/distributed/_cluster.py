"""The workers at hand, and tasks with names that a reader of the dashboard understands."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from relae.errors import PlanError
from relae.linalg import limit_threads

FAN_IN = 8  # parts that one task of a tree brings together


@dataclass(frozen=True)
class Cluster:
    """The number of workers, and the memory and threads of the smallest of them."""

    workers: int
    threads: int  # of one worker
    memory: int | None  # bytes of one worker, None if it has no limit

    @classmethod
    def of(cls, client: Any) -> "Cluster":
        """Ask the scheduler."""
        # not client.scheduler_info: what it returns can be overwritten, without workers, by the client's own heartbeat
        workers = list(client.sync(client.scheduler.identity, n_workers=-1)["workers"].values())
        if not workers:
            raise PlanError(f"the scheduler {client.scheduler.address} has no workers: start some, then try again")
        limits = [int(each["memory_limit"]) for each in workers if each.get("memory_limit")]
        return cls(len(workers), max(int(each["nthreads"]) for each in workers), min(limits) if limits else None)


class Job:
    """The tasks of one piece of work, with a mark that tells them from those of another."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self._mark = uuid.uuid4().hex[:8]

    def submit(self, name: str, indices: Sequence[int], function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the future of a pure task, called for instance update-5-3-1-1f0c44aa."""
        key = "-".join([name, *map(str, indices), self._mark])
        return self.client.submit(function, *arguments, key=key)

    def reduce(self, name: str, function: Callable[[list[Any]], Any], parts: Sequence[Any]) -> Any:
        """Bring futures together by a tree of tasks, in their order."""
        level = 0
        while len(parts) > 1 or level == 0:
            groups = [list(parts[at : at + FAN_IN]) for at in range(0, len(parts), FAN_IN)]
            parts = [self.submit(name, (level, at), function, group) for at, group in enumerate(groups)]
            level += 1
        return parts[0]


def finish(futures: Sequence[Any]) -> None:
    """Wait for tasks without fetching what they made; the error of one of them is raised here."""
    from distributed import wait

    wait(list(futures))  # type: ignore[no-untyped-call]
    for future in futures:
        if future.status != "finished":
            future.result()


@contextmanager
def one_core(*, kernels: bool = False) -> Iterator[None]:
    """Leave the other cores to the other workers; `kernels` says that compiled ones are used."""
    with _libraries().limit(limits=1, user_api="blas"):
        if kernels:
            limit_threads(1)
        yield


@cache
def _libraries() -> Any:
    """Return the libraries of this process that have threads; to look for them takes longer than a small product."""
    import scipy.linalg  # noqa: F401  has a BLAS of its own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
