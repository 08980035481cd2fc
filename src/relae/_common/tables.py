"""A table of text that can be shown anywhere: terminal, Markdown, notebook."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table


@dataclass(frozen=True)
class Grid:
    """A title, a header, rows of text and notes below; the first column is text, the others are figures.

    `strong` are the cells (row, column) to point out, and `meaning`, if it is given, says what they are: where nothing
    is bold, as in a pipe, they get a star and a note with it. Printed with rich, it fits itself to the terminal.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    strong: frozenset[tuple[int, int]] = field(default_factory=frozenset)
    meaning: str = ""

    def markdown(self) -> str:
        """Return the table in Markdown."""
        rule = ["---", *["---:"] * (len(self.header) - 1)]
        marked = [
            [f"**{_cell(text)}**" if (r, c) in self.strong and text else _cell(text) for c, text in enumerate(row)]
            for r, row in enumerate(self.rows)
        ]
        lines = ["| " + " | ".join(row) + " |" for row in (map(_cell, self.header), rule, *marked)]
        return "\n".join([*([f"**{self.title}**", ""] if self.title else []), *lines, *_after(self.notes)]) + "\n"

    def html(self) -> str:
        """Return the table in HTML, for notebooks."""

        def cell(tag: str, text: str, column: int, bold: bool = False) -> str:
            align = "left" if column == 0 else "right"
            inner = f"<b>{escape(text)}</b>" if bold else escape(text)
            return f"<{tag} style='text-align:{align}'>{inner}</{tag}>"

        head = "".join(cell("th", text, c) for c, text in enumerate(self.header))
        body = "".join(
            "<tr>" + "".join(cell("td", text, c, (r, c) in self.strong) for c, text in enumerate(row)) + "</tr>"
            for r, row in enumerate(self.rows)
        )
        caption = f"<caption style='text-align:left'><b>{escape(self.title)}</b></caption>"
        notes = "".join(f"<div><small>{escape(note)}</small></div>" for note in self.notes)
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """Show the table in a terminal; columns that do not fit side by side go below each other."""
        from rich.text import Text

        if self.strong and self.meaning and console.color_system is None:
            yield self._starred()
            return
        if self.title:
            yield Text(self.title, style="bold")
        for columns in self._fitting(options.max_width):
            yield self._table(columns, options.max_width)
        for note in self.notes:
            yield Text(note, style="dim")

    def _starred(self) -> "Grid":
        rows = [
            [f"{text.rstrip()}*" if (r, c) in self.strong else text for c, text in enumerate(row)]
            for r, row in enumerate(self.rows)
        ]
        return replace(self, rows=rows, notes=[f"* {self.meaning}", *self.notes], strong=frozenset())

    def _fitting(self, width: int) -> list[list[int]]:
        """Return the columns of figures in runs that fit beside the first column."""
        widths = [max(map(len, (head, *column))) + 2 for head, *column in zip(self.header, *self.rows, strict=True)]
        room = width - min(widths[0], width // 2)
        runs: list[list[int]] = [[]]
        for column in range(1, len(widths)):
            if runs[-1] and sum(widths[c] for c in runs[-1]) + widths[column] > room:
                runs.append([])
            runs[-1].append(column)
        return runs

    def _table(self, columns: Sequence[int], width: int) -> "Table":
        from rich.table import Table
        from rich.text import Text

        table = Table(header_style="cyan", pad_edge=False, box=None, padding=(0, 2, 0, 0))
        table.add_column(Text(self.header[0]), max_width=width // 2, overflow="fold")
        for column in columns:
            table.add_column(Text(self.header[column]), justify="right", overflow="fold")
        for r, row in enumerate(self.rows):
            cells = [Text(row[c], style="bold yellow" if (r, c) in self.strong else "") for c in columns]
            table.add_row(Text(row[0]), *cells)
        return table


def _cell(text: str) -> str:
    """Return text that cannot end a cell of a Markdown table."""
    return " ".join(text.replace("|", "\\|").split())


def _after(notes: Sequence[str]) -> list[str]:
    return ["", *[line for note in notes for line in (note, "")][:-1]] if notes else []


class Tabular:
    """Whatever can be shown as a grid."""

    def grid(self) -> Grid:
        """Return the table to show."""
        raise NotImplementedError

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        return self.grid().markdown()

    def __rich__(self) -> Grid:
        return self.grid()

    def _repr_html_(self) -> str:
        return self.grid().html()


def short(value: object) -> str:
    """Return a parameter as a table shows it: four digits of a fraction."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
