"""Where to write: results on stdout, everything else on stderr; in a terminal, a pipe or a file."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PIPE_WIDTH = 120  # a pipe has no width of its own, whatever COLUMNS says: wide enough for a table with titles


def output() -> "Console":
    """Return the console of results."""
    return _console(stderr=False)


def errors() -> "Console":
    """Return the console of progress, notes and errors."""
    return _console(stderr=True)


def _console(stderr: bool) -> "Console":
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=_PIPE_WIDTH)


def table(*columns: str, header: bool = True) -> "Table":
    """Return a table without lines.

    A column that begins with `>` is of figures; one that begins with `~` is cut where the terminal is too narrow.
    """
    from rich.table import Table

    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="cyan", show_header=header)
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.startswith(">") else "left"
        made.add_column(column.lstrip(">~"), justify=justify, no_wrap=True, ratio=1 if column.startswith("~") else None)
    return made


def show_table(console: "Console", made: "Table") -> None:
    """Print a table as wide as it is, or as the terminal."""
    from rich.measure import Measurement

    natural = Measurement.get(console, console.options.update(width=10_000), made).maximum
    if any(column.ratio for column in made.columns):
        made.expand = natural > console.width
    console.print(made)


def facts(rows: Mapping[str, str]) -> "Table":
    """Return a table of names and values."""
    from rich.text import Text

    made = table("", "", header=False)
    made.columns[0].style = "cyan"
    made.columns[1].no_wrap, made.columns[1].overflow = False, "fold"
    for name, value in rows.items():
        made.add_row(name, Text(value))
    return made


def print_json(value: Any) -> None:
    """Print what a program reads: ASCII, which no terminal or locale can change."""
    print(json.dumps(value, indent=2))
