"""Render errors and warnings as one line, with parameters written as command-line options."""

import errno
import shlex
from collections.abc import Sequence
from functools import cache
from typing import Any

from relae.errors import Message, Option, RelaeError, Text

_NO_SPACE = "make room, or name another place"
_EXTRAS = {"matplotlib": "plots"} | dict.fromkeys(("starlette", "msgspec", "uvicorn", "prometheus_client"), "serve")


def render(message: Any) -> str:
    """Return a message, a text or anything else as one line."""
    return one_line(message.render(render_option) if isinstance(message, (Message, Text)) else message)


def render_option(option: Option) -> str:
    """Return a parameter as it is typed: `--min-rating 4`, or `--set validation_share=0` if it has no option."""
    if option.name in _list_options():
        return _write_option(option)
    if option.name in _list_parameters() and option.value is not None:
        return f"--set {_quote(f'{option.name}={_write_value(option)}')}"
    return str(option)


def render_filter(text: str) -> str:
    """Return a filter that dropped users, such as `k_core=5`, as it is typed."""
    option = Option.parse(text)
    return text if option is None else render_option(option)


def render_error(error: Exception, arguments: Sequence[str] = ()) -> str:
    """Return an error as one line; an empty text if the parser has already shown a message."""
    if is_usage(error):
        return _render_usage(error, arguments)
    if isinstance(error, RelaeError):
        return render(error)
    if isinstance(error, MemoryError):
        return f"out of memory{_bracket(error)}: use fewer users or items, or a machine with more; see `relae plan`"
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed: {_advise_install(error.name)}"
    if isinstance(error, OSError):
        file = "" if error.filename is None else f": {error.filename}"
        if error.errno == errno.ENOSPC:
            return f"the disk is full{file}: {_NO_SPACE}"
        return f"{error.strerror or one_line(error) or type(error).__name__}{file}"
    if isinstance(error, ValueError) and type(error).__module__ == "builtins":  # a wrong value, such as --loss 2
        return one_line(error)
    return f"unexpected {type(error).__name__}{_bracket(error)}; this is a bug, and --debug shows where"


def is_usage(error: Any) -> bool:
    """Return True for an error of the parser; its class depends on the version of Typer."""
    return callable(getattr(error, "format_message", None))


def one_line(text: Any) -> str:
    """Return a text without line breaks."""
    return " ".join(str(text).split())


# Options


def _write_option(option: Option) -> str:
    flag = f"--{option.name.replace('_', '-')}"
    if option.value is None or option.value is True:
        return flag
    if option.value is False:
        return f"--no-{flag[2:]}"
    return f"{flag} {_quote(_write_value(option))}"


def _write_value(option: Option) -> str:
    return "…" if option.value is ... else str(option.value)


def _quote(value: str) -> str:
    """Quote a value for a shell; leave "…", which stands for any value, as it is."""
    return value if "…" in value else shlex.quote(value)


@cache
def _list_options() -> frozenset[str]:
    """Return the names of the options of all commands, with _ for -."""
    from typer.main import get_command

    from relae.cli import app  # late, because it is slow and only needed for errors

    commands: list[Any] = [get_command(app)]
    for command in commands:  # groups add their commands to the list
        commands += getattr(command, "commands", {}).values()
    flags = [flag for command in commands for parameter in command.params for flag in parameter.opts]
    return frozenset(flag[2:].replace("-", "_") for flag in flags if flag.startswith("--"))


@cache
def _list_parameters() -> frozenset[str]:
    """Return the names of all parameters of all models."""
    from relae.registry import KINDS, kind

    return frozenset(parameter.name for model in KINDS for parameter in kind(model).PARAMETERS)


# Errors of the parser and of Python


def _render_usage(error: Any, arguments: Sequence[str]) -> str:
    text = one_line(error.format_message()).rstrip(".")
    if not text:
        return ""
    value = _find_value(getattr(error, "param", None), arguments)
    text = text.replace(": Value error, ", ": ")
    if value and repr(value) not in text:
        text = text.replace("Invalid value for", f"Invalid value {value!r} for", 1)
    context = getattr(error, "ctx", None)
    see = f"`{'relae' if context is None else context.command_path} --help`"
    return f"{text[:1].lower()}{text[1:]}" + (f" See {see}" if text.endswith("?") else f"; see {see}")


def _find_value(parameter: Any, arguments: Sequence[str]) -> str:
    """Return the value of an option, if it is among the arguments."""
    for option in getattr(parameter, "opts", ()):
        for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
            if argument == option:
                return following
            if argument.startswith(f"{option}="):
                return argument.partition("=")[2]
    return ""


def _bracket(error: Exception) -> str:
    text = one_line(error)
    return f" ({text})" if text else ""


def _advise_install(module: str | None) -> str:
    extra = _EXTRAS.get((module or "").split(".")[0])
    return f"pip install 'relae[{extra}]'" if extra else "install relae again"
