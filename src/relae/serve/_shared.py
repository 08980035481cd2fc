"""Work that many ask for at once, and that is done once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Shared(Generic[_T]):
    """Some work, done one at a time. All who ask while it is under way share the next one, which begins after it."""

    def __init__(self, work: Callable[[], Awaitable[_T]]) -> None:
        self._work = work
        self._one = asyncio.Lock()
        self._next: asyncio.Task[_T] | None = None

    async def __call__(self) -> _T:
        """Return a result that was begun after this call."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._run())
            self._next.add_done_callback(lambda done: done.cancelled() or done.exception())  # someone was told, or left
        return await asyncio.shield(self._next)  # one who leaves does not end it for the others

    async def _run(self) -> _T:
        async with self._one:
            self._next = None
            return await self._work()
