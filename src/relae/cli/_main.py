"""Run a command and end the process: an error is one line and exit code 2, with a traceback only for --debug."""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import typer

from relae._common.interrupts import interrupt
from relae._common.limits import LIBRARY_BYTES, address_space_limit
from relae.cli._messages import is_usage, render, render_error

_DEBUG = "--debug"
_HELP = {"-h", "--help", "--version"}
_LEAST_SPACE = LIBRARY_BYTES + 400_000_000  # for Python, NumPy and what a small model takes
_INTERRUPTED, _TERMINATED = 130, 143  # 128 and the number of the signal, as shells have it


def run(app: typer.Typer) -> NoReturn:
    """Run a command line, and end the process as a shell expects it."""
    arguments = [argument for argument in sys.argv[1:] if argument != _DEBUG]
    debug = len(arguments) < len(sys.argv) - 1 or os.environ.get("RELAE_DEBUG", "") not in ("", "0")
    warnings.showwarning = _show_warning
    if sys.stdout is None:  # Python's way to say that it is closed
        _fail("stdout is closed, so that there is nowhere to show a result: give > /dev/null to do without")
    limit = address_space_limit()
    if limit is not None and limit < _LEAST_SPACE and not _HELP & set(arguments):
        _fail(
            f"the limit of virtual memory (ulimit -v) is {limit / 1e9:.1f} GB, and {_LEAST_SPACE / 1e9:.1f} GB are "
            "needed before there is any data: raise the limit"
        )
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # an old terminal shows ξ as a question mark rather than an error
            stream.reconfigure(errors="replace")
    terminated: list[int] = []
    try:
        with _terminated_like_interrupted(terminated):
            code = app(arguments, prog_name="relae", standalone_mode=False)
            sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except BrokenPipeError:
        _leave_pipe()
    except Exception as error:
        if debug and not is_usage(error):
            raise
        _fail(render_error(error, arguments))
    if code == _INTERRUPTED:
        code, word = (_TERMINATED, "terminated") if terminated else (code, "interrupted")
        print(f"relae: {word}", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)


@contextmanager
def _terminated_like_interrupted(signals: list[int]) -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, so that it leaves no half-written files; and note that it came."""

    def terminate(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        interrupt(number, frame)

    wanted = {signal.SIGINT: (signal.default_int_handler, interrupt), signal.SIGTERM: (signal.SIG_DFL, terminate)}
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # only there signals can be handled
        before = {sig: usual for sig, (usual, _) in wanted.items() if signal.getsignal(sig) is usual}
    try:
        for sig in before:
            signal.signal(sig, wanted[signal.Signals(sig)][1])
        yield
    finally:
        for sig, usual in before.items():
            signal.signal(sig, usual)


def _fail(text: str) -> NoReturn:
    if text:
        print(f"relae: {text}", file=sys.stderr)
    sys.exit(2)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"relae: {render(message)}", file=sys.stderr)


def _leave_pipe() -> NoReturn:
    """End quietly when nobody reads any more; what is still buffered goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)
