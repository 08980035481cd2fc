"""How a command ends: an error is one line and exit code 2, a traceback only where one is asked for."""

import errno
import os
import re
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import typer

from relae._common.interrupts import interrupt
from relae._common.limits import LIBRARY_BYTES, address_space_limit
from relae._common.table_options import TableOptions, options_of
from relae.errors import RelaeError

_DEBUG = "--debug"
_HELP = {"-h", "--help", "--version"}
_LEAST_SPACE = LIBRARY_BYTES + 400_000_000  # for Python, NumPy and what a small model takes
_INTERRUPTED, _TERMINATED = 130, 143  # 128 and the number of the signal, as shells have it
_OPTIONS = (
    *options_of(TableOptions),
    *("half_life", "features"),
    *("solver", "dtype", "k"),
)
_PYTHON = {  # what a Python error advises, and how the command line says it
    r"as in Interactions\.read\(…, (\w+='[^']*')\)": r"as in \1",
    r"give item_features to fit, or interactions that have them, by Interactions\.with_features\(table\)": (
        "give --features FILE"
    ),
    r"columns=\[[^\]]*\]": "--feature-columns",
    r"or use given_split\(…, overlap='drop'\)": "or give --overlap drop",
    r"\bvalidation_share=0(?= trains)": "--set validation_share=0",
    r"\bset warm_up lower": "give a lower --set warm_up=…",
}


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
        if debug and not _is_usage(error):
            raise
        _fail(in_words(error, arguments))
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


def in_words(error: Exception, arguments: Sequence[str] = ()) -> str:
    """Return an error as one line that says what to do; nothing if it has been said, as by a page of help."""
    if _is_usage(error):
        return _usage(error, arguments)
    if isinstance(error, RelaeError):
        return as_options(_one_line(error))
    if isinstance(error, MemoryError):
        return f"out of memory{_colon(error)}: use fewer users or items, or a machine with more; see `relae plan`"
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed: {_extra(error.name)}"
    if isinstance(error, OSError):
        if error.errno == errno.ENOSPC:
            return f"the disk is full{_place(error)}: make room, or name another place"
        return f"{error.strerror or _one_line(error) or type(error).__name__}{_place(error)}"
    if isinstance(error, ValueError) and type(error).__module__ == "builtins":  # a value that cannot be, as --loss 2
        return as_options(_one_line(error))
    return f"unexpected {type(error).__name__}{_colon(error)}; this is a bug, and --debug shows where"


# --- words -------------------------------------------------------------------------------------------------------


def _is_usage(error: Any) -> bool:
    """Whether the parser raised it, which Typer brings along or takes from click, by its version."""
    return callable(getattr(error, "format_message", None))


def _usage(error: Any, arguments: Sequence[str]) -> str:
    text = _one_line(error.format_message()).rstrip(".")
    if not text:
        return ""
    value = _value(getattr(error, "param", None), arguments)
    text = text.replace(": Value error, ", ": ")
    if value and repr(value) not in text:
        text = text.replace("Invalid value for", f"Invalid value {value!r} for", 1)
    context = getattr(error, "ctx", None)
    see = f"`{'relae' if context is None else context.command_path} --help`"
    return f"{text[:1].lower()}{text[1:]}" + (f" See {see}" if text.endswith("?") else f"; see {see}")


def _value(parameter: Any, arguments: Sequence[str]) -> str:
    """Return what an option was given, if it was on the line."""
    for option in getattr(parameter, "opts", ()):
        for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
            if argument == option:
                return following
            if argument.startswith(f"{option}="):
                return argument.partition("=")[2]
    return ""


def _one_line(text: Any) -> str:
    return " ".join(str(text).split())


def _colon(error: Exception) -> str:
    text = _one_line(error)
    return f" ({text})" if text else ""


def _place(error: OSError) -> str:
    return "" if error.filename is None else f": {error.filename}"


def _extra(name: str | None) -> str:
    extras = {"matplotlib": "plots", "fastapi": "serve", "uvicorn": "serve", "prometheus_client": "serve"}
    extra = extras.get((name or "").split(".")[0])
    return f"pip install 'relae[{extra}]'" if extra else "install relae again"


def as_options(text: str) -> str:
    """Return the advice of a Python error in the words of the command line: solver='dual' becomes --solver dual."""
    for pattern, words in _PYTHON.items():
        text = re.sub(pattern, words, text)
    from relae.cli._options import parameter_options  # an error is rare, and the start is quick without it

    names = "|".join((*_OPTIONS, *parameter_options()))
    text = re.sub(r"(?<![-\w])(min|max|stop)_(\w+)(?!\w|=)", lambda f: f"--{f[1]}-{f[2].replace('_', '-')}", text)
    return re.sub(
        rf"\b({names})=('([^']*)'|…|[\d.]+)",
        lambda found: f"--{found[1].replace('_', '-')} {found[2] if found[3] is None else _quoted(found[3])}",
        text,
    )


def _quoted(value: str) -> str:
    """Return a value as a shell takes it; what stands for any value stays as it is."""
    return value if "…" in value else shlex.quote(value)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"relae: {as_options(_one_line(message))}", file=sys.stderr)


def _leave_pipe() -> NoReturn:
    """End quietly when nobody reads any more; what is still buffered goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(1)
