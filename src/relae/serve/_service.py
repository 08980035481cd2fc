"""The state of a running service: the model in use, the queue of work, and reloads."""

import asyncio
import gc
import hmac
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from logging import ERROR, WARNING
from pathlib import Path
from time import perf_counter
from typing import Any

from relae.errors import RelaeError
from relae.serve import _handlers
from relae.serve._log import log_event
from relae.serve._metrics import Metrics
from relae.serve._problem import Problem
from relae.serve._requests import PATHS, BatchRequest, ExplainRequest, PathRequest, RecommendRequest
from relae.serve._responses import encode
from relae.serve._settings import Settings
from relae.serve._shared import SharedCall
from relae.serve._snapshot import Snapshot
from relae.serve._work import WorkQueue

_UNKNOWN = "an id that no item has"
_WATCH_EVERY = 1.0  # seconds between looks at the files of the model


class Service:
    """One model folder, and the queue of work for its clients.

    Parameters
    ----------
    snapshot
        The model, if it is open already; otherwise it is opened at the start.
    reloaded
        Called after a reload over HTTP, to have other workers reload, too.
    failed
        Called with the error of the first recommendation, should it fail.
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
        self._lost: Path | None = None  # a file that was overwritten
        self.queue = WorkQueue(settings)
        self._reload = SharedCall(self._open_again)
        self._tasks: set[asyncio.Task[Any]] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open the model if it is not open yet, make ready in the background, and end after the last answer."""
        if self.snapshot is None:
            self.snapshot = await asyncio.to_thread(Snapshot.open, self.settings)
        self.background(self._make_ready(self.snapshot))
        watching = [asyncio.create_task(work) for work in (self.queue.watch(), self._watch_files())]
        try:
            yield
        finally:
            self.ready = False
            for task in watching:
                task.cancel()
            await self.queue.end()

    async def _watch_files(self) -> None:
        """Give the model up if its files are overwritten in place: it is no longer the one that was saved.

        Where a file became shorter, the first read beyond its end ends the process before this can notice.
        """
        while True:
            await asyncio.sleep(_WATCH_EVERY)
            snapshot = self.snapshot
            if snapshot is None:
                continue
            try:
                file = await asyncio.to_thread(snapshot.saved.overwritten)
            except OSError:  # the disk does not answer: the mapping may still
                continue
            if file is not None and snapshot is self.snapshot:
                log_event(
                    "a file of the model was overwritten while it was served; nothing is answered",
                    ERROR,
                    file=str(file),
                )
                self.snapshot, self.ready, self._lost = None, False, file

    async def _make_ready(self, snapshot: Snapshot) -> None:
        started = perf_counter()
        try:
            await self.queue.run_internal(_warm_up, snapshot)
        except Exception as error:
            log_event("the first recommendation failed", ERROR, error=error, path=str(self.settings.path))
            if self._failed is not None:
                self._failed(error)
            return
        # the objects of now stay: collecting garbage among them, again and again, would take longer than most answers
        gc.collect()
        gc.freeze()
        self.ready = True
        about = snapshot.description
        if about["fitted"].get("form") == "dual":
            log_event("the model is in the dual form; the primal form, which `relae fit` saves, serves faster", WARNING)
        seconds = round(perf_counter() - started, 3)
        log_event("ready", pid=os.getpid(), model=about["model"], title=about["title"], warm_up_seconds=seconds)

    # --- requests ----------------------------------------------------------------------------------------------

    @property
    def current(self) -> Snapshot:
        """The model in use; to be taken once per request."""
        if self._lost is not None:
            raise Problem(
                503,
                f"{self._lost.name} of the model was overwritten while it was served: save the model again, and reload",
                headers={"Retry-After": "5"},
            )
        if self.snapshot is None:
            raise Problem(503, "the model is not open yet: try again in a moment", headers={"Retry-After": "1"})
        return self.snapshot

    def check_key(self, authorization: str | None, api_key: str | None) -> None:
        """Raise a problem unless the key is right; the comparison takes the same time for every key."""
        if self._key is None:
            return
        scheme, _, token = (authorization or "").partition(" ")
        key = token.strip() if scheme.lower() == "bearer" else api_key
        # headers are decoded as Latin-1; this gives back the bytes that were sent
        if key is None or not hmac.compare_digest(key.encode("latin-1", "replace"), self._key):
            message = "the API key is missing" if key is None else "the API key is wrong"
            raise Problem(
                401,
                f"{message}: send it as `Authorization: Bearer KEY` or `X-API-Key: KEY`",
                headers={"WWW-Authenticate": "Bearer"},
            )

    # --- reloads -----------------------------------------------------------------------------------------------

    def background(self, work: Any) -> None:
        """Start a task, and keep a reference to it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def reload_quietly(self) -> None:
        """Reload after a signal: a failure is only logged."""
        with suppress(Problem):
            await self.reload()

    async def reload_for_all(self) -> Snapshot:
        """Reload after a request: first here, then in the other workers."""
        if self._key is None:
            raise Problem(403, "a reload over HTTP needs an API key, and this service has none: send it SIGHUP instead")
        snapshot = await self.reload()
        if self._reloaded is not None:
            self._reloaded()
        return snapshot

    async def reload(self) -> Snapshot:
        """Open the folder anew and swap the model in; one that cannot be used leaves the old one in place.

        All calls during a reload share the next one.
        """
        return await self._reload()

    async def _open_again(self) -> Snapshot:
        started = perf_counter()
        try:
            snapshot = await asyncio.to_thread(Snapshot.open, self.settings)
            await self.queue.run_internal(_warm_up, snapshot)
        except (RelaeError, OSError) as error:
            self.metrics.reload(good=False)
            log_event("reload failed, the old model stays", ERROR, reason=str(error), path=str(self.settings.path))
            raise Problem(409, f"the old model stays in use, because the new one cannot be: {error}") from error
        except Exception as error:
            self.metrics.reload(good=False)
            log_event("reload failed, the old model stays", ERROR, error=error, path=str(self.settings.path))
            raise Problem(409, f"the old model stays in use, because the new one failed: {error!r}") from error
        if self._lost is not None:
            self.ready, self._lost = True, None
        self.snapshot = snapshot  # requests under way finish on the old one
        self.metrics.reload(good=True)
        about, seconds = snapshot.description, round(perf_counter() - started, 3)
        log_event("reloaded", pid=os.getpid(), model=about["model"], created=about["created"], seconds=seconds)
        return snapshot


def _warm_up(snapshot: Snapshot) -> None:
    """Answer every kind of request once.

    Afterwards no kernel is left to compile or to load, and a model that cannot answer is detected.
    """
    model, catalog, limits = snapshot.model, snapshot.catalog, snapshot.description["limits"]
    # a model that does not fold in knows no history of these two
    liked = [catalog.ids[column] for column in catalog.popular[:2].tolist()] if model.folds_in else []
    # a history without known items is a case of its own; the first unknown id takes longer than those after it
    sources: list[dict[str, Any]] = [{"history": liked}, {"history": [_UNKNOWN]}]
    if snapshot.histories is not None and len(snapshot.histories.users):
        sources.append({"user": snapshot.histories.users.values[:1].tolist()[0]})
    k = min(10, limits["k"], limits["results"], limits["explained"])
    options: dict[str, Any] = {"k": k, "allow": catalog.ids[:100], "deny": liked[:1]}
    for source in sources:
        encode(_handlers.recommend(snapshot, RecommendRequest(**source, **options, explain=model.explains)))
        for field, dial in PATHS.items():
            if dial in model.dials:
                path = PathRequest(**source | options | {field: [0.5]})
                [points, *_], history, resolved = _handlers.split_path(snapshot, path)
                _handlers.path_part(snapshot, points, history, resolved)
    batch = BatchRequest(histories=[liked, [_UNKNOWN]], **options)
    [histories, *_], resolved = _handlers.split_batch(snapshot, batch)
    _handlers.recommend_part(snapshot, histories, resolved)
    if model.explains:
        item = catalog.ids[catalog.popular[0]]
        fields: dict[str, Any] = {"history": liked, "item": item, **dict.fromkeys(model.dials, 0.5)}
        _handlers.explain(snapshot, ExplainRequest(**fields))
        _handlers.find_similar(snapshot, item, k)
