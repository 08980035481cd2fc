"""Work off the event loop, in turns on one thread; a turn that nobody waits for any more is dropped."""

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


class _Turn:
    """Some work for a client."""

    def __init__(self, receive: Receive) -> None:
        self.arrived, self.begun = monotonic(), False
        self.future: asyncio.Future[Any]
        self.given_up: Exception | None = None
        self._receive = receive
        self._watch: asyncio.Task[None] | None = None

    def watch(self) -> None:
        """Give up as soon as the client leaves. It costs a task, and so only turns that take a while are watched."""
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
        """End the wait for this turn; if it has not begun, it never does."""
        self.given_up = reason
        self.future.cancel()

    def end(self) -> None:
        """Stop to watch."""
        if self._watch is not None:
            self._watch.cancel()


class Turns:
    """One thread that works for all clients.

    The compiled kernels use the cores themselves and run one at a time, so that more threads would only wait for each
    other; with one, the memory in use is that of one request, and the event loop stays free.
    """

    def __init__(self, settings: Settings) -> None:
        self._most, self._wait_seconds = settings.max_waiting, settings.wait_seconds
        self._hang_seconds = settings.hang_seconds
        self._longest_preparation = _LONGER * settings.hang_seconds
        # how many threads the kernels use is a matter of the thread that calls them
        start = self._longest_preparation, limit_threads, settings.threads
        self._pool = ThreadPoolExecutor(1, "relae", initializer=self._timed, initargs=start)
        self._turns: set[_Turn] = set()
        self._due = inf  # when the work that is under way should have ended

    @property
    def hangs(self) -> bool:
        """Tell whether the work that is under way takes longer than any should."""
        return monotonic() > self._due

    @property
    def under_way(self) -> bool:
        """Tell whether some work has begun and not ended."""
        return self._due < inf

    async def take(self, receive: Receive, work: Callable[..., _T], *args: Any) -> _T:
        """Do some work for a client, in the order in which it came, as long as the client is there."""
        if len(self._turns) >= self._most:
            raise Problem(
                503,
                f"{len(self._turns):,} requests are waiting already: try again in a moment",
                headers={"Retry-After": "1"},
            )
        turn = _Turn(receive)

        def begin() -> _T:
            turn.begun = True
            return self._timed(self._hang_seconds, work, *args)

        turn.future = asyncio.get_running_loop().run_in_executor(self._pool, begin)
        self._turns.add(turn)
        try:
            result: _T = await turn.future
            return result
        except asyncio.CancelledError:
            if turn.given_up is None:  # it is the request that was cancelled
                raise
            raise turn.given_up from None
        finally:
            self._turns.discard(turn)
            turn.end()

    async def take_for_all(self, work: Callable[..., _T], *args: Any) -> _T:
        """Do some work that is no client's."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._timed, self._longest_preparation, work, *args)

    def _timed(self, seconds: float, work: Callable[..., _T], *args: Any) -> _T:
        self._due = monotonic() + seconds
        try:
            return work(*args)
        finally:
            self._due = inf

    async def look_after(self) -> None:
        """Drop turns whose clients have left, or have waited for too long, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            latest = monotonic() - self._wait_seconds
            for turn in list(self._turns):
                if turn.begun or turn.arrived > latest:
                    turn.watch()
                else:
                    turn.give_up(_too_busy(self._wait_seconds))

    async def end(self) -> None:
        """End after the work that is under way, or without it if it goes on for long."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        latest = monotonic() + _END
        while self.under_way and monotonic() < latest:
            await asyncio.sleep(0.02)


def _too_busy(seconds: int) -> Problem:
    return Problem(
        503, f"the request waited for {seconds} seconds and is given up: try again later", headers={"Retry-After": "5"}
    )
