"""Calls that concurrent callers share."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class SharedCall(Generic[_T]):
    """A function that runs once at a time. Callers that arrive during a run share the next run."""

    def __init__(self, work: Callable[[], Awaitable[_T]]) -> None:
        self._work = work
        self._one = asyncio.Lock()
        self._next: asyncio.Task[_T] | None = None

    async def __call__(self) -> _T:
        """Return the result of a run that started after this call."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._run())
            self._next.add_done_callback(
                lambda done: done.cancelled() or done.exception()
            )  # a caller has it, or all have left
        return await asyncio.shield(self._next)  # a caller that leaves does not end it for the others

    async def _run(self) -> _T:
        async with self._one:
            self._next = None
            return await self._work()
