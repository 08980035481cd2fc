"""`relae reproduce`: show the paper's tables beside ours, model by model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from relae._common.tables import Grid
from relae.cli import _console
from relae.cli._progress import progress_bar
from relae.experiments import paper
from relae.experiments.paper import Cell, Reproduction, Row


def reproduce(
    table: str,
    dataset: str,
    models: Sequence[str] | None,
    tolerance: float,
    out: Path,
    fresh: bool,
    time_budget: float | None = None,
) -> bool:
    """Run the missing models, show each when it is done; return True if all cells are within the tolerance."""
    console, errors = _console.output_console(), _console.error_console()

    def show_row(row: Row) -> None:
        console.print()
        console.print(_make_grid(row))

    with progress_bar(errors) as progress:
        result = paper.reproduce(
            table,
            dataset,
            models,
            out=out,
            tolerance=tolerance,
            fresh=fresh,
            time_budget=time_budget,
            progress=progress,
            on_start=lambda experiment: console.print(
                f"[bold]{escape(experiment.title)}[/bold]: {escape(repr(experiment.split))}"
            ),
            on_row=show_row,
            notify=lambda note: errors.print(f"[dim]{escape(note)}[/dim]"),
        )
    _show_summary(console, result)
    return result.succeeded


def _make_grid(row: Row) -> Grid:
    """Return a table of one model: a line per metric; the paper's value, ours and the difference per cut-off."""
    ks = sorted({int(cell.metric.split("@")[1]) for cell in row.cells})
    metrics = list(dict.fromkeys(cell.metric.split("@")[0] for cell in row.cells))
    cells = {cell.metric: cell for cell in row.cells}
    lines, strong = [], set()
    for r, metric in enumerate(metrics):
        line = [metric]
        for k in ks:
            cell = cells[f"{metric}@{k}"]
            if cell.difference and row.counts and not cell.is_misprint:
                strong |= {(r, len(line) + 1), (r, len(line) + 2)}
            line += [f"{cell.paper:.4f}", f"{cell.ours:.4f}", _describe_difference(cell)]
        lines.append(line)
    header = ["", *(text for k in ks for text in (f"paper @{k}", "ours", "diff"))]
    settings = ", ".join(f"{name} {_write_value(value)}" for name, value in row.parameters.items())
    notes = [f"{row.note}."] if row.note else ()
    return Grid(f"{row.model} ({settings}; {row.seconds:.0f} s)", header, lines, notes, frozenset(strong))


def _describe_difference(cell: Cell) -> str:
    if cell.is_misprint:
        return "misprint"
    return f"{cell.difference:+.4f}" if cell.difference else "="


def _write_value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def _show_summary(console: Console, result: Reproduction) -> None:
    count, misprints = len(result.cells), len(result.misprints)
    equal = count - misprints - len(result.differences)
    console.print()
    if count:
        style = "yellow" if result.differences else "green"
        known = f"; {misprints} known {'misprint' if misprints == 1 else 'misprints'} of the paper" * bool(misprints)
        console.print(f"[bold {style}]{equal} of {count} cells equal the paper's to four decimals{known}[/]")
    for model, cell in result.differences:
        mark = "[red]beyond the tolerance[/red]" if result.is_beyond(cell) else "within the tolerance"
        console.print(
            f"  {model} {cell.metric}: paper {cell.paper:.4f}, ours {cell.ours:.5f}, "
            f"{cell.difference:+.4f}, {mark} of {result.tolerance:g}"
        )
    for model, cell in result.misprints:
        console.print(f"  {model} {cell.metric}: paper {cell.paper:.4f}, ours {cell.ours:.5f}, a misprint")
        console.print(f"  [dim]{escape(cell.remark)}[/dim]")
    trained = [row for row in result.rows if not row.counts]
    if trained:
        console.print("Not counted, because the paper does not say how these were trained:")
    for row in trained:
        figures = ", ".join(f"{cell.metric} {cell.ours:.4f} (paper {cell.paper:.4f})" for cell in row.cells)
        console.print(f"  {row.model}: {figures}")
    console.print(
        f"[dim]saved in {escape(str(result.run.path))}: result.json, table.csv, table.md[/dim]", soft_wrap=True
    )
