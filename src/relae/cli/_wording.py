"""Write options and calls as on the command line."""

import shlex
from collections.abc import Mapping
from typing import Any

from relae.cli._messages import render_option
from relae.cli._parameters import write_value
from relae.errors import Option
from relae.experiments import Wording


class CommandWording(Wording):
    """Messages in terms of the command line: `--split weak`, `relae tune log.csv --user who`."""

    def option(self, option: Option) -> str:
        """Return an option as on the command line."""
        return render_option(option)

    def call(self, name: str, source: str | None, options: Mapping[str, Any]) -> str:
        """Return a command for a shell."""
        return " ".join([f"relae {name} {shlex.quote(str(source))}", *write_options(options)])


def write_options(options: Mapping[str, Any]) -> list[str]:
    """Return options as on the command line; an option with several values is repeated."""
    return [
        f"--set {name}=none"
        if each is None
        else render_option(Option(name) if each is True else Option(name, write_value(each)))
        for name, value in options.items()
        for each in (value if name == "separator" else [value])
    ]


COMMAND_LINE = CommandWording()
