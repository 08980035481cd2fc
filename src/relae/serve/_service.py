"""The state of a running service: the model in use, whose turn it is, and how a new model takes over."""

import asyncio
import hmac
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from logging import ERROR, WARNING
from time import perf_counter
from typing import Any, ParamSpec, TypeVar

from relae.errors import RelaeError
from relae.linalg import limit_threads
from relae.serve import _replies
from relae.serve._log import note
from relae.serve._metrics import Metrics
from relae.serve._problem import Problem
from relae.serve._questions import Dials, ExplainQuestion, History, RecommendQuestion, Wish
from relae.serve._settings import Settings
from relae.serve._snapshot import Snapshot

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Service:
    """One model folder, answered from by one thread.

    The compiled kernels use the cores themselves and run one at a time, so that more threads would only wait for each
    other; with one, the memory in use is that of one request, and the event loop stays free.

    Parameters
    ----------
    snapshot
        The model, if it is open already; otherwise it is opened at the start.
    reloaded
        Called after a reload that was asked for over HTTP, to tell other workers.
    failed
        Called with what made the first recommendation fail.
    """

    def __init__(
        self,
        settings: Settings,
        snapshot: Snapshot | None = None,
        *,
        reloaded: Callable[[], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        self.settings = settings
        self.snapshot = snapshot
        self.ready = False
        self.metrics = Metrics(lambda: self.snapshot)
        self._reloaded, self._failed = reloaded, failed
        self._key = None if settings.api_key is None else settings.api_key.encode()
        # how many threads the kernels use is a matter of the thread that calls them
        self._pool = ThreadPoolExecutor(1, "relae", initializer=limit_threads, initargs=(settings.threads,))
        self._waiting = 0
        self._one_reload = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open the model if it is not open yet, make ready in the background, and end after the last answer."""
        async with self._one_reload:  # a reload that is asked for meanwhile comes after it
            if self.snapshot is None:
                self.snapshot = await asyncio.to_thread(Snapshot.open, self.settings)
            self.background(self._make_ready(self.snapshot))
        try:
            yield
        finally:
            self.ready = False
            await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)

    async def _make_ready(self, snapshot: Snapshot) -> None:
        started = perf_counter()
        try:
            await self._compute(_warm_up, snapshot)
        except Exception as error:
            note("the first recommendation failed", ERROR, error=error, path=str(self.settings.path))
            if self._failed is not None:
                self._failed(error)
            return
        self.ready = True
        about = snapshot.description
        if about["fitted"].get("form") == "dual":
            note("the model is in the dual form; the primal form, which `relae fit` saves, serves faster", WARNING)
        seconds = round(perf_counter() - started, 3)
        note("ready", pid=os.getpid(), model=about["model"], title=about["title"], warm_up_seconds=seconds)

    # --- questions ---------------------------------------------------------------------------------------------

    @property
    def current(self) -> Snapshot:
        """The model in use; to be taken once per request."""
        if self.snapshot is None:
            raise Problem(503, "the model is not open yet: try again in a moment", headers={"Retry-After": "1"})
        return self.snapshot

    async def turn(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Do some work off the event loop, in the order in which it came."""
        if self._waiting >= self.settings.max_waiting:
            raise Problem(
                503,
                f"{self._waiting:,} requests are waiting already: try again in a moment",
                headers={"Retry-After": "1"},
            )
        self._waiting += 1
        try:
            return await self._compute(work, *args, **kwargs)
        finally:
            self._waiting -= 1

    async def _compute(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: work(*args, **kwargs))

    def check_key(self, authorization: str | None, api_key: str | None) -> None:
        """Raise a problem unless the key is right, in a time that tells nothing of it."""
        if self._key is None:
            return
        scheme, _, token = (authorization or "").partition(" ")
        shown = token.strip() if scheme.lower() == "bearer" else api_key
        # headers are decoded as Latin-1; this gives back the bytes that were sent
        if shown is None or not hmac.compare_digest(shown.encode("latin-1", "replace"), self._key):
            message = "the API key is missing" if shown is None else "the API key is wrong"
            raise Problem(
                401,
                f"{message}: send it as `Authorization: Bearer KEY` or `X-API-Key: KEY`",
                headers={"WWW-Authenticate": "Bearer"},
            )

    # --- reloads -----------------------------------------------------------------------------------------------

    def background(self, work: Any) -> None:
        """Start a task, and keep hold of it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def reload_quietly(self) -> None:
        """Reload as a signal asks for it: what fails is in the log."""
        with suppress(Problem):
            await self.reload()

    async def reload_for_all(self) -> Snapshot:
        """Reload as a request asks for it: check here, then tell the others."""
        if self._key is None:
            raise Problem(403, "a reload over HTTP needs an API key, and this service has none: send it SIGHUP instead")
        snapshot = await self.reload()
        if self._reloaded is not None:
            self._reloaded()
        return snapshot

    async def reload(self) -> Snapshot:
        """Open the folder anew and swap the model in; one that cannot be used leaves the old one in place."""
        async with self._one_reload:
            started = perf_counter()
            try:
                snapshot = await asyncio.to_thread(Snapshot.open, self.settings)
                await self._compute(_warm_up, snapshot)
            except (RelaeError, OSError) as error:
                self.metrics.reload(good=False)
                note("reload failed, the old model stays", ERROR, reason=str(error), path=str(self.settings.path))
                raise Problem(409, f"the old model stays in use, because the new one cannot be: {error}") from error
            except Exception as error:
                self.metrics.reload(good=False)
                note("reload failed, the old model stays", ERROR, error=error, path=str(self.settings.path))
                raise Problem(409, f"the old model stays in use, because the new one failed: {error!r}") from error
            self.snapshot = snapshot  # requests under way finish on the old one
            self.metrics.reload(good=True)
            about, seconds = snapshot.description, round(perf_counter() - started, 3)
            note("reloaded", pid=os.getpid(), model=about["model"], created=about["created"], seconds=seconds)
            return snapshot


def _warm_up(snapshot: Snapshot) -> None:
    """Ask what will be asked: kernels are compiled or loaded, and a model that cannot answer is found out."""
    liked = snapshot.popular[:2].tolist() if snapshot.model.folds_in else []  # whoever has these two may be unknown
    history = History([snapshot.ids[column] for column in liked])
    explained = snapshot.linear is not None
    wish = Wish(k=10, dials=Dials(), allow=None, deny=None, exclude_seen=True, explain=explained)
    _replies.encode(_replies.recommend(snapshot, RecommendQuestion(history, wish)))
    if explained:
        item = snapshot.ids[snapshot.popular[0]]
        _replies.explain(snapshot, ExplainQuestion(history, item, Dials()))
        _replies.similar(snapshot, item, 10)
