"""Run a command and end the process: an error is one line and exit code 2; --debug shows the traceback."""

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
_LEAST_SPACE = LIBRARY_BYTES + 400_000_000  # for Python, NumPy and a small model
_INTERRUPTED, _TERMINATED = 130, 143  # 128 + the number of the signal, as in shells


def run(app: typer.Typer) -> NoReturn:
    """Run a command, and end the process with the exit code that a shell expects."""
    arguments = [argument for argument in sys.argv[1:] if argument != _DEBUG]
    debug = len(arguments) < len(sys.argv) - 1 or os.environ.get("RELAE_DEBUG", "") not in ("", "0")
    warnings.showwarning = _show_warning
    if sys.stdout is None:  # None if stdout is closed
        _fail("stdout is closed, so that there is nowhere to show a result: give > /dev/null to do without")
    limit = address_space_limit()
    if limit is not None and limit < _LEAST_SPACE and not _HELP & set(arguments):
        _fail(
            f"the limit of virtual memory (ulimit -v) is {limit / 1e9:.1f} GB, and {_LEAST_SPACE / 1e9:.1f} GB are "
            "needed before there is any data: raise the limit"
        )
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal without UTF-8 shows ξ as a question mark
            stream.reconfigure(errors="replace")
    terminated: list[int] = []
    try:
        with _handle_signals(terminated):
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
def _handle_signals(signals: list[int]) -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that no partly written files remain; add it to `signals` when it comes."""

    def terminate(number: int, frame: FrameType | None) -> None:
        signals.append(number)
        interrupt(number, frame)

    handlers = {signal.SIGINT: (signal.default_int_handler, interrupt), signal.SIGTERM: (signal.SIG_DFL, terminate)}
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # only the main thread can handle signals
        before = {sig: default for sig, (default, _) in handlers.items() if signal.getsignal(sig) is default}
    try:
        for sig in before:
            signal.signal(sig, handlers[signal.Signals(sig)][1])
        yield
    finally:
        for sig, default in before.items():
            signal.signal(sig, default)


def _fail(text: str) -> NoReturn:
    if text:
        print(f"relae: {text}", file=sys.stderr)
    sys.exit(2)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"relae: {render(message)}", file=sys.stderr)


def _leave_pipe() -> NoReturn:
    """Exit without a message when the reader of stdout is gone; discard the buffered output."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)
