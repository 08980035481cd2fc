"""A queue of work off the event loop, on one thread; work that no client waits for any more is dropped."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from time import monotonic
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from relae.linalg import limit_threads
from relae.serve._problem import Problem
from relae.serve._settings import Settings

_T = TypeVar("_T")
_LOOK_EVERY = 0.25  # seconds between looks at who still waits
_END = 3.0  # seconds that work under way may take at the end, when nobody waits for it any more
_LONGER = 10  # times as long as an answer a model may take to get ready, which can include compiling


class _Task:
    """Some work for a client."""

    def __init__(self, receive: Receive) -> None:
        self.arrived, self.started = monotonic(), False
        self.future: asyncio.Future[Any]
        self.error: Exception | None = None  # why the wait has ended
        self._receive = receive
        self._watch: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Give up as soon as the client leaves. It costs an asyncio task, so only slow work is watched."""
        if self._watch is None:
            self._watch = asyncio.get_running_loop().create_task(self._until_left())

    async def _until_left(self) -> None:
        try:
            while (await self._receive())["type"] != "http.disconnect":
                pass  # a body where none was read
            self.give_up(ClientDisconnect())
        except Problem as problem:  # such a body is too large
            self.give_up(problem)

    def give_up(self, reason: Exception) -> None:
        """End the wait for this work; if it has not started, it never does."""
        self.error = reason
        self.future.cancel()

    def end(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.cancel()


class WorkQueue:
    """One thread that works for all clients, in the order of their requests.

    The compiled kernels use the cores themselves and run one at a time, so that more threads would only wait for each
    other; with one, the memory in use is that of one request, and the event loop stays free.
    """

    def __init__(self, settings: Settings) -> None:
        self._max_waiting, self._wait_seconds = settings.max_waiting, settings.wait_seconds
        self._hang_seconds = settings.hang_seconds
        self._longest_preparation = _LONGER * settings.hang_seconds
        # how many threads the kernels use is a matter of the thread that calls them
        start = self._longest_preparation, limit_threads, settings.threads
        self._pool = ThreadPoolExecutor(1, "relae", initializer=self._timed, initargs=start)
        self._tasks: set[_Task] = set()
        self._due = inf  # when the current work should have ended

    @property
    def hangs(self) -> bool:
        """Tell whether the current work takes longer than the limit."""
        return monotonic() > self._due

    @property
    def is_busy(self) -> bool:
        """Tell whether some work has started and not ended."""
        return self._due < inf

    async def run(self, receive: Receive, work: Callable[..., _T], *args: Any) -> _T:
        """Do some work for a client, unless the client leaves before it starts."""
        if len(self._tasks) >= self._max_waiting:
            raise Problem(
                503,
                f"{len(self._tasks):,} requests are waiting already: try again in a moment",
                headers={"Retry-After": "1"},
            )
        task = _Task(receive)

        def begin() -> _T:
            task.started = True
            return self._timed(self._hang_seconds, work, *args)

        task.future = asyncio.get_running_loop().run_in_executor(self._pool, begin)
        self._tasks.add(task)
        try:
            result: _T = await task.future
            return result
        except asyncio.CancelledError:
            if task.error is None:  # it is the request that was cancelled
                raise
            raise task.error from None
        finally:
            self._tasks.discard(task)
            task.end()

    async def run_internal(self, work: Callable[..., _T], *args: Any) -> _T:
        """Do some work of the service itself, such as a warm-up."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._timed, self._longest_preparation, work, *args)

    def _timed(self, seconds: float, work: Callable[..., _T], *args: Any) -> _T:
        self._due = monotonic() + seconds
        try:
            return work(*args)
        finally:
            self._due = inf

    async def watch(self) -> None:
        """Drop work whose clients have left, or have waited for too long, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            latest = monotonic() - self._wait_seconds
            for task in list(self._tasks):
                if task.started or task.arrived > latest:
                    task.watch()
                else:
                    task.give_up(_too_busy(self._wait_seconds))

    async def end(self) -> None:
        """End after the current work, or without it if it takes too long."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        latest = monotonic() + _END
        while self.is_busy and monotonic() < latest:
            await asyncio.sleep(0.02)


def _too_busy(seconds: int) -> Problem:
    return Problem(
        503, f"the request waited for {seconds} seconds and is given up: try again later", headers={"Retry-After": "5"}
    )
