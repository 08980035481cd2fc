"""Consoles and tables: results go to stdout, everything else to stderr; to a terminal, a pipe or a file."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_PIPE_WIDTH = 120  # a pipe has no width, and COLUMNS is ignored for it: wide enough for a table with titles


def output_console() -> "Console":
    """Return the console for results (stdout)."""
    return _make_console(stderr=False)


def error_console() -> "Console":
    """Return the console for progress, notes and errors (stderr)."""
    return _make_console(stderr=True)


def _make_console(stderr: bool) -> "Console":
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=_PIPE_WIDTH)


def make_table(*columns: str, header: bool = True) -> "Table":
    """Return a table without lines.

    A title that begins with `>` aligns its column to the right; `~` lets a narrow terminal cut the column.
    """
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="cyan", show_header=header)
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.startswith(">") else "left"
        table.add_column(
            column.lstrip(">~"), justify=justify, no_wrap=True, ratio=1 if column.startswith("~") else None
        )
    return table


def show_table(console: "Console", table: "Table") -> None:
    """Print a table at its natural width, or at the width of the terminal if that is smaller."""
    from rich.measure import Measurement

    natural = Measurement.get(console, console.options.update(width=10_000), table).maximum
    if any(column.ratio for column in table.columns):
        table.expand = natural > console.width
    console.print(table)


def make_facts(rows: Mapping[str, str]) -> "Table":
    """Return a table of names and values."""
    from rich.text import Text

    table = make_table("", "", header=False)
    table.columns[0].style = "cyan"
    table.columns[1].no_wrap, table.columns[1].overflow = False, "fold"
    for name, value in rows.items():
        table.add_row(name, Text(value))
    return table


def print_json(value: Any) -> None:
    """Print a value as JSON in ASCII, which does not depend on the terminal or the locale."""
    print(json.dumps(value, indent=2))
