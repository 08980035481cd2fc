"""Processes and signals: one worker in this process, or several that it supervises."""

import asyncio
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from io import FileIO
from ipaddress import ip_address
from logging import ERROR, WARNING
from time import monotonic, sleep
from types import FrameType

import uvicorn
from prometheus_client import disable_created_metrics

from relae._common.files import scratch_folder
from relae.errors import RelaeError
from relae.serve._connections import ConnectionPool
from relae.serve._listening import bind, drain, fit_to_system, refuse_new_connections
from relae.serve._log import configure, flush, log_event
from relae.serve._metrics import SHARED
from relae.serve._settings import Settings

_HANG_UP = getattr(signal, "SIGHUP", None)  # Windows has none
_STOP = (signal.SIGINT, signal.SIGTERM)
_KEEP_ALIVE = 75  # seconds, longer than a reverse proxy keeps its connections
# Seconds after which the thread that computes lets the event loop have the interpreter. The loop asks for it at least
# once per connection: with Python's own 5 ms, a hundred new connections would hold up the next one for half a second.
_SWITCH = 0.0005
_TICK = 1.0  # seconds between looks at connections, and between heartbeats of a worker
_START = 120.0  # seconds until the first heartbeat
_PATIENCE = 3  # ends of each worker before it is ready until all are given up, if none is ready
_LONGEST_DELAY = 30.0  # seconds before the next try otherwise
_PIPE = 1 << 16  # bytes that a pipe holds
_ALIVE, _READY, _HANGS = b".", b"r", b"h"  # heartbeats


def serve(settings: Settings) -> None:
    """Serve until a signal to stop."""
    configure()
    if settings.workers == 1:
        with bind(settings) as sock:
            run_server(settings, sock, listening=lambda: _log_address(settings, sock))
    else:
        if sys.platform == "win32":
            raise RelaeError("several workers need a system with signals and shared sockets: use workers=1 on Windows")
        from relae.store import open_model

        open_model(settings.path, verify=settings.verify)
        with bind(settings) as sock, scratch_folder() as metrics:
            Supervisor(settings, sock, str(metrics)).run()


def _log_address(settings: Settings, sock: socket.socket) -> None:
    host, port = sock.getsockname()[:2]
    url = f"http://{f'[{host}]' if sock.family == socket.AF_INET6 else host}:{port}/"
    log_event("listening", url=url, workers=settings.workers, pid=os.getpid(), path=str(settings.path))
    if settings.api_key is None and not ip_address(host.partition("%")[0]).is_loopback:
        log_event("anyone who can reach this address may ask: set an API key to prevent that", WARNING, url=url)


# --- a worker ------------------------------------------------------------------------------------------------------


class _Server(uvicorn.Server):
    """uvicorn with its own signals, a watch on its connections, and a stop that resets no connection."""

    def __init__(
        self,
        config: uvicorn.Config,
        pool: ConnectionPool,
        *,
        alone: bool,
        listening: Callable[[], None] | None,
        reload: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._pool, self._alone = pool, alone
        self._listening, self._reload = listening, reload
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ticked = monotonic()

    def hangs(self, seconds: float) -> bool:
        """Tell whether the event loop has been blocked for so long."""
        return self._loop is not None and monotonic() - self._ticked > seconds

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal to stop."""
        self._ticked, self._loop = monotonic(), asyncio.get_running_loop()
        ticking = self._loop.create_task(self._tick())
        try:
            await super().serve(sockets)
        finally:
            ticking.cancel()

    async def _tick(self) -> None:
        while True:
            self._ticked = monotonic()
            self._pool.sweep()
            await asyncio.sleep(_TICK)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started and self._listening is not None:
            self._listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept the connections that are already made, and answer requests that have come, or come in a moment."""
        if self._alone:  # otherwise others go on with these sockets, or the supervisor has done it
            for sock in sockets or ():
                refuse_new_connections(sock)
        await drain(sockets or ())
        self._pool.stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while serving."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {sig: signal.signal(sig, self._handle_stop) for sig in _STOP}
        if _HANG_UP is not None:
            before[_HANG_UP] = signal.signal(_HANG_UP, self._handle_reload)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {*_STOP, _HANG_UP})  # blocked until they could be handled
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)

    def _handle_stop(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True  # Ctrl-C for the second time
        self.should_exit = True

    def _handle_reload(self, sig: int, frame: FrameType | None) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._reload)  # also wakes the loop up


def run_server(
    settings: Settings,
    sock: socket.socket,
    *,
    listening: Callable[[], None] | None = None,
    supervisor: "_SupervisorLink | None" = None,
) -> None:
    """Answer on a socket until a signal to stop."""
    from relae.serve._app import build
    from relae.serve._service import Service
    from relae.serve._snapshot import Snapshot

    failures: list[Exception] = []

    def failed(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    # when a counter was made is another series for each, and nobody looks at it
    disable_created_metrics()  # type: ignore[no-untyped-call]
    settings = fit_to_system(settings)
    sys.setswitchinterval(_SWITCH)
    # opened before anything listens, and held by nobody else, so that it goes when another one comes
    opened = Snapshot.open(settings, verify=settings.verify and supervisor is None)  # the supervisor has verified it
    service = Service(
        settings, opened, reloaded=None if supervisor is None else supervisor.request_reload, failed=failed
    )
    del opened
    pool = ConnectionPool(settings)
    config = uvicorn.Config(
        build(settings, service),
        http=pool.protocol(),  # type: ignore[arg-type]  # it is only ever called
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody's headers are trusted
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=settings.stop_seconds,
    )
    server = _Server(
        config,
        pool,
        alone=supervisor is None,
        listening=listening,
        reload=lambda: service.background(service.reload_quietly()),
    )
    if supervisor is not None:
        threading.Thread(target=_stop_with_parent, args=(server,), daemon=True).start()
        supervisor.state = lambda: (
            _HANGS
            if server.hangs(settings.hang_seconds) or service.queue.hangs
            else _READY
            if service.ready
            else _ALIVE
        )
    server.run(sockets=[sock])
    flush()
    log_event("stopped", pid=os.getpid())
    if service.queue.is_busy:  # the interpreter would wait for it to end
        os._exit(1 if failures or service.queue.hangs else 0)
    if failures:
        raise RelaeError(f"{settings.path} cannot be served: {failures[0]}") from failures[0]


def _stop_with_parent(server: uvicorn.Server) -> None:
    """Stop when the other end of stdin is closed, because the parent has ended."""
    # not through sys.stdin, whose lock would be held when the interpreter ends
    while os.read(0, 1024):
        pass
    server.should_exit = True


def run_worker() -> None:
    """Run a worker of a supervisor: settings come on stdin, which stays open as long as the supervisor lives."""
    with open(0, "rb", buffering=0, closefd=False) as stdin:
        message = json.loads(stdin.readline())
    configure()
    settings = Settings(**message["settings"])
    supervised = _SupervisorLink(message["parent"], message["heartbeat"])
    try:
        run_server(settings, socket.socket(fileno=message["socket"]), supervisor=supervised)
    except RelaeError as error:
        log_event("the worker cannot start", ERROR, reason=str(error))
        sys.exit(1)


class _SupervisorLink:
    """A worker's link to its supervisor: a thread sends heartbeats as long as the interpreter runs."""

    def __init__(self, pid: int, heartbeat: int) -> None:
        self._pid, self._heartbeat = pid, heartbeat
        self.state: Callable[[], bytes] = lambda: _ALIVE
        os.set_blocking(heartbeat, False)
        threading.Thread(target=self._send_heartbeats, daemon=True).start()

    def _send_heartbeats(self) -> None:
        while True:
            with suppress(OSError):  # nobody reads them
                os.write(self._heartbeat, self.state())
            sleep(_TICK)

    def request_reload(self) -> None:
        """Have all workers reload, as a request has asked."""
        if _HANG_UP is not None:
            os.kill(self._pid, _HANG_UP)


# --- several workers -----------------------------------------------------------------------------------------------


@dataclass
class _Worker:
    process: "subprocess.Popen[bytes]"
    heartbeat: FileIO  # where its heartbeats arrive
    seen: float  # when the last one arrived
    was_ready: bool = False
    heard: bool = False
    due: float | None = None  # when it is replaced, once it has ended


class Supervisor:
    """Start workers on one socket, pass signals on to them, and replace those that die or hang."""

    def __init__(self, settings: Settings, sock: socket.socket, metrics: str) -> None:
        self._settings, self._sock, self._metrics = settings, sock, metrics
        self._signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self._early_ends = 0

    def run(self) -> None:
        """Watch the workers until a signal to stop, and until all have ended."""
        handled = (*_STOP, signal.SIGHUP, signal.SIGCHLD)
        before = {sig: signal.signal(sig, lambda number, _: self._signals.put(number)) for sig in handled}
        try:
            _log_address(self._settings, self._sock)
            for _ in range(self._settings.workers):
                self._workers.append(self._start())
            self._watch()
        finally:
            self._stop()
            for sig, handler in before.items():
                signal.signal(sig, handler)
        log_event("stopped", pid=os.getpid())

    def _watch(self) -> None:
        while True:
            sig = self._next_signal(1.0)
            if sig in _STOP:
                return
            if sig == signal.SIGHUP:
                self._signal_all(signal.SIGHUP)
            for worker in self._workers:
                self._kill_if_hanging(worker)
            self._replace_ended()

    def _next_signal(self, seconds: float) -> int | None:
        try:
            return self._signals.get(timeout=seconds)
        except queue.Empty:
            return None

    def _start(self) -> _Worker:
        own_end, worker_end = os.pipe()
        os.set_blocking(own_end, False)
        message = {
            "heartbeat": worker_end,
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
                pass_fds=[self._sock.fileno(), worker_end],
                env={**os.environ, SHARED: self._metrics},
                start_new_session=True,  # Ctrl-C is for the supervisor, which tells the workers once
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)
            os.close(worker_end)
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended already, which is found out in a moment
            process.stdin.write(json.dumps(message).encode() + b"\n")  # not on the command line: the key is in it
            process.stdin.flush()
        return _Worker(process, FileIO(own_end), monotonic())

    def _kill_if_hanging(self, worker: _Worker) -> None:
        """Kill a worker that reports that it hangs, or reports nothing, as when it was stopped by a signal."""
        if worker.heartbeat.closed:  # it has ended
            return
        if beats := worker.heartbeat.read(_PIPE) or b"":
            worker.heard, worker.seen = True, monotonic()
            worker.was_ready |= _READY in beats
        silence = monotonic() - worker.seen
        patience = self._settings.hang_seconds + _TICK if worker.heard else _START + self._settings.hang_seconds
        if (beats.endswith(_HANGS) or silence > patience) and worker.process.poll() is None:
            log_event("a worker hangs, and is ended", ERROR, pid=worker.process.pid, silent_seconds=round(silence, 1))
            worker.process.kill()

    def _replace_ended(self) -> None:
        for at, worker in enumerate(self._workers):
            if worker.process.poll() is None:
                continue
            if worker.due is None:
                worker.due = monotonic() + self._delay_after(worker)
            if monotonic() >= worker.due:
                self._workers[at] = self._start()

    def _delay_after(self, ended: _Worker) -> float:
        """Return the seconds until a worker is replaced: none, unless workers end before they are ready."""
        _close(ended)
        log_event(
            "a worker ended", ERROR, pid=ended.process.pid, exit_code=ended.process.returncode, ready=ended.was_ready
        )
        self._early_ends = 0 if ended.was_ready else self._early_ends + 1
        settled = any(worker.process.poll() is None and worker.was_ready for worker in self._workers)
        if self._early_ends >= _PATIENCE * self._settings.workers and not settled:
            raise RelaeError("the workers end as soon as they start: the log above says why")
        return min(_LONGEST_DELAY, 0.1 * 2.0**self._early_ends) if self._early_ends > 1 else 0.0

    def _signal_all(self, sig: int) -> None:
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.process.send_signal(sig)

    def _stop(self) -> None:
        """End all workers: with SIGTERM, then, at a second signal or after a while, with SIGKILL."""
        refuse_new_connections(self._sock)
        self._sock.close()  # the workers accept what waits and close theirs, and then nobody connects in vain
        self._signal_all(signal.SIGTERM)
        deadline = monotonic() + self._settings.stop_seconds + 5
        while any(worker.process.poll() is None for worker in self._workers):
            sig = self._next_signal(0.1)
            if sig in _STOP or monotonic() > deadline:
                self._signal_all(signal.SIGKILL)
        for worker in self._workers:
            _close(worker)


def _close(worker: _Worker) -> None:
    """Close the pipes of a worker that has ended."""
    worker.heartbeat.close()
    with suppress(BrokenPipeError):  # what it did not live to read
        if worker.process.stdin is not None:
            worker.process.stdin.close()
