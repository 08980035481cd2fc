"""Processes, signals and sockets: one worker here, or several that this one looks after."""

import asyncio
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from ipaddress import ip_address
from logging import ERROR, WARNING
from time import monotonic
from types import FrameType

import uvicorn
from prometheus_client import disable_created_metrics

from relae.errors import RelaeError
from relae.serve._log import configure, flush, note
from relae.serve._metrics import SHARED
from relae.serve._settings import Settings

_HANG_UP = getattr(signal, "SIGHUP", None)  # Windows has none
_STOP = (signal.SIGINT, signal.SIGTERM)
_KEEP_ALIVE = 75  # seconds, longer than a reverse proxy keeps its connections
_SHORT_LIFE = 10.0  # seconds; a worker that ends earlier did not really start
_PATIENCE = 3  # such ends of each worker before giving up, if none has ever started
_LONGEST_DELAY = 30.0  # seconds before the next try otherwise


def serve(settings: Settings) -> None:
    """Serve until told to stop."""
    configure()
    if settings.workers == 1:
        with _bound(settings) as sock:
            work(settings, sock, listening=lambda: _say_where(settings, sock))
    else:
        if sys.platform == "win32":
            raise RelaeError("several workers need a system with signals and shared sockets: use workers=1 on Windows")
        from relae.store import open_model

        open_model(settings.path, verify=settings.verify)
        with _bound(settings) as sock, tempfile.TemporaryDirectory(prefix="relae-metrics-") as metrics:
            Supervisor(settings, sock, metrics).run()


def _bound(settings: Settings) -> socket.socket:
    sock = None
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        sock = socket.socket(family, kind, protocol)
        if os.name == "posix":  # elsewhere it would let two servers have one port
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError as error:
        if sock is not None:
            sock.close()
        reason = error.strerror or error
        raise RelaeError(f"cannot listen on {settings.host} port {settings.port}: {reason}; choose another") from error
    return sock


def _say_where(settings: Settings, sock: socket.socket) -> None:
    host, port = sock.getsockname()[:2]
    url = f"http://{f'[{host}]' if sock.family == socket.AF_INET6 else host}:{port}/"
    note("listening", url=url, workers=settings.workers, pid=os.getpid(), path=str(settings.path))
    if settings.api_key is None and not ip_address(host.partition("%")[0]).is_loopback:
        note("anyone who can reach this address may ask: set an API key to prevent that", WARNING, url=url)


# --- a worker ------------------------------------------------------------------------------------------------------


class _Server(uvicorn.Server):
    """uvicorn with signals of our own: a graceful stop is no failure, and SIGHUP reloads."""

    def __init__(
        self, config: uvicorn.Config, listening: Callable[[], None] | None, reload: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._listening, self._reload = listening, reload
        self._loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to stop."""
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started and self._listening is not None:
            self._listening()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while serving."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {sig: signal.signal(sig, self._told_to_stop) for sig in _STOP}
        if _HANG_UP is not None:
            before[_HANG_UP] = signal.signal(_HANG_UP, self._told_to_reload)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {*_STOP, _HANG_UP})  # blocked until they could be handled
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)

    def _told_to_stop(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True  # Ctrl-C for the second time
        self.should_exit = True

    def _told_to_reload(self, sig: int, frame: FrameType | None) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._reload)  # also wakes the loop up


def work(
    settings: Settings,
    sock: socket.socket,
    *,
    listening: Callable[[], None] | None = None,
    parent: int | None = None,
) -> None:
    """Answer on a socket until told to stop; `parent` is told when a request made this worker reload."""
    from relae.serve._app import build
    from relae.serve._service import Service
    from relae.serve._snapshot import Snapshot

    failures: list[Exception] = []

    def failed(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    def tell_parent() -> None:
        if parent is not None and _HANG_UP is not None:
            os.kill(parent, _HANG_UP)

    # when a counter was made is another series for each, and nobody looks at it
    disable_created_metrics()  # type: ignore[no-untyped-call]
    # opened before anything listens, and held by nobody else, so that it goes when another one comes
    opened = Snapshot.open(settings, verify=settings.verify and parent is None)  # the parent has verified it
    service = Service(settings, opened, reloaded=tell_parent, failed=failed)
    del opened
    config = uvicorn.Config(
        build(settings, service),
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=settings.stop_seconds,
    )
    server = _Server(config, listening, lambda: service.background(service.reload_quietly()))
    if parent is not None:
        threading.Thread(target=_stop_with_parent, args=(server,), daemon=True).start()
    server.run(sockets=[sock])
    flush()
    note("stopped", pid=os.getpid())
    if failures:
        raise RelaeError(f"{settings.path} cannot be served: {failures[0]}") from failures[0]


def _stop_with_parent(server: uvicorn.Server) -> None:
    """Stop when the other end of stdin is closed, which is when the parent has ended, in whatever way."""
    # not through sys.stdin, whose lock would be held when the interpreter ends
    while os.read(0, 1024):
        pass
    server.should_exit = True


def be_worker() -> None:
    """Be a worker of a supervisor: settings come on stdin, which stays open as long as it lives."""
    with open(0, "rb", buffering=0, closefd=False) as stdin:
        told = json.loads(stdin.readline())
    configure()
    settings = Settings(**told["settings"])
    try:
        work(settings, socket.socket(fileno=told["socket"]), parent=told["parent"])
    except RelaeError as error:
        note("the worker cannot start", ERROR, reason=str(error))
        sys.exit(1)


# --- several workers -----------------------------------------------------------------------------------------------


@dataclass
class _Worker:
    process: "subprocess.Popen[bytes]"
    started: float
    due: float | None = None  # when it is replaced, once it has ended


class Supervisor:
    """Starts workers on one socket, passes signals on to them, and replaces those that die."""

    def __init__(self, settings: Settings, sock: socket.socket, metrics: str) -> None:
        self._settings, self._sock, self._metrics = settings, sock, metrics
        self._signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self._early_ends = 0

    def run(self) -> None:
        """Look after the workers until told to stop and all have ended."""
        handled = (*_STOP, signal.SIGHUP, signal.SIGCHLD)
        before = {sig: signal.signal(sig, lambda number, _: self._signals.put(number)) for sig in handled}
        try:
            _say_where(self._settings, self._sock)
            for _ in range(self._settings.workers):
                self._workers.append(self._start())
            self._look_after()
        finally:
            self._stop()
            for sig, handler in before.items():
                signal.signal(sig, handler)
        note("stopped", pid=os.getpid())

    def _look_after(self) -> None:
        while True:
            sig = self._next_signal(1.0)
            if sig in _STOP:
                return
            if sig == signal.SIGHUP:
                self._tell_all(signal.SIGHUP)
            self._replace_the_dead()

    def _next_signal(self, seconds: float) -> int | None:
        try:
            return self._signals.get(timeout=seconds)
        except queue.Empty:
            return None

    def _start(self) -> _Worker:
        told = {
            "settings": {**asdict(self._settings), "path": str(self._settings.path.absolute())},
            "socket": self._sock.fileno(),
            "parent": os.getpid(),
        }
        # A signal that comes before the worker can handle it waits, instead of ending it.
        held = signal.pthread_sigmask(signal.SIG_BLOCK, {*_STOP, signal.SIGHUP})
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "relae.serve._worker"],
                stdin=subprocess.PIPE,
                pass_fds=[self._sock.fileno()],
                env={**os.environ, SHARED: self._metrics},
                start_new_session=True,  # Ctrl-C is for the supervisor, which tells the workers once
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended already, which is found out in a moment
            process.stdin.write(json.dumps(told).encode() + b"\n")  # not on the command line: the key is in it
            process.stdin.flush()
        return _Worker(process, monotonic())

    def _replace_the_dead(self) -> None:
        for at, worker in enumerate(self._workers):
            if worker.process.poll() is None:
                continue
            if worker.due is None:
                worker.due = monotonic() + self._delay_after(worker)
            if monotonic() >= worker.due:
                self._workers[at] = self._start()

    def _delay_after(self, dead: _Worker) -> float:
        """Seconds until a worker is replaced: none, unless workers end as soon as they start."""
        _close(dead)
        lived = monotonic() - dead.started
        note(
            "a worker ended",
            ERROR,
            pid=dead.process.pid,
            exit_code=dead.process.returncode,
            lived_seconds=round(lived, 1),
        )
        self._early_ends = self._early_ends + 1 if lived < _SHORT_LIFE else 0
        settled = any(
            worker.process.poll() is None and monotonic() - worker.started >= _SHORT_LIFE for worker in self._workers
        )
        if self._early_ends >= _PATIENCE * self._settings.workers and not settled:
            raise RelaeError("the workers end as soon as they start: the log above says why")
        return min(_LONGEST_DELAY, 0.1 * 2.0**self._early_ends) if self._early_ends > 1 else 0.0

    def _tell_all(self, sig: int) -> None:
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.process.send_signal(sig)

    def _stop(self) -> None:
        """End all workers: politely, then, at a second signal or after a while, at once."""
        self._sock.close()  # the workers close theirs, and then nobody connects in vain
        self._tell_all(signal.SIGTERM)
        deadline = monotonic() + self._settings.stop_seconds + 5
        while any(worker.process.poll() is None for worker in self._workers):
            sig = self._next_signal(0.1)
            if sig in _STOP or monotonic() > deadline:
                self._tell_all(signal.SIGKILL)
        for worker in self._workers:
            _close(worker)


def _close(worker: _Worker) -> None:
    """Let go of a worker that has ended."""
    with suppress(BrokenPipeError):  # what it did not live to read
        if worker.process.stdin is not None:
            worker.process.stdin.close()
