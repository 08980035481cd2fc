"""`relae reproduce`: the paper's tables beside ours, saved as they grow."""

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from relae import __version__
from relae._common.files import lock_file, write_text
from relae._common.tables import Grid
from relae.cli import _console
from relae.cli._progress import progress_bar
from relae.errors import DataError
from relae.reproduce import Cell, Experiment, Row, experiment
from relae.tuning import Epoch, Training


def reproduce(
    table: str,
    dataset: str,
    models: list[str] | None,
    tolerance: float,
    out: Path,
    fresh: bool,
    time_budget: float | None = None,
) -> bool:
    """Run what is missing, show and save every model as soon as it is done; True if all cells are near enough."""
    if not tolerance >= 0:
        raise DataError(f"the tolerance must be a number of at least 0, got {tolerance}")
    with _console.errors().status(f"reading {dataset}"):
        job = experiment(table, dataset, models)
    saved = _Saved(job, out, tolerance)
    with lock_file(saved.paths[0]):
        return _run(job, saved, tolerance, out, fresh, time_budget)


def _run(job: Experiment, saved: "_Saved", tolerance: float, out: Path, fresh: bool, time_budget: float | None) -> bool:
    console, errors = _console.output(), _console.errors()
    rows = {} if fresh else saved.read(errors)
    done = {model for model, row in rows.items() if row.is_final(time_budget)}
    console.print(f"[bold]{escape(job.title)}[/bold]: {escape(repr(job.split))}")
    for row in rows.values():
        if row.model in job.models and row.model in done:
            _show(console, job, row)
    with progress_bar(errors) as progress:
        for row in job.run(done, progress, time_budget=time_budget, checkpoints=out):
            rows[row.model] = row
            saved.write(rows)
            _show(console, job, row)
    saved.write(rows)
    return _conclude(console, job, [rows[model] for model in job.models], tolerance, saved)


def _show(console: Console, job: Experiment, row: Row) -> None:
    console.print()
    console.print(_grid(row))


def _grid(row: Row) -> Grid:
    """Paper, ours and difference for each cut-off; a line per metric."""
    ks = sorted({int(cell.metric.split("@")[1]) for cell in row.cells})
    metrics = list(dict.fromkeys(cell.metric.split("@")[0] for cell in row.cells))
    cells = {cell.metric: cell for cell in row.cells}
    lines, strong = [], set()
    for r, metric in enumerate(metrics):
        line = [metric]
        for k in ks:
            cell = cells[f"{metric}@{k}"]
            if cell.difference and row.counts:
                strong |= {(r, len(line) + 1), (r, len(line) + 2)}
            line += [f"{cell.paper:.4f}", f"{cell.ours:.4f}", f"{cell.difference:+.4f}" if cell.difference else "="]
        lines.append(line)
    header = ["", *(text for k in ks for text in (f"paper @{k}", "ours", "diff"))]
    settings = ", ".join(f"{name} {_text(value)}" for name, value in row.parameters.items())
    notes = [f"{row.note}."] if row.note else ()
    return Grid(f"{row.model} ({settings}; {row.seconds:.0f} s)", header, lines, notes, frozenset(strong))


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def _conclude(console: Console, job: Experiment, rows: list[Row], tolerance: float, saved: "_Saved") -> bool:
    cells = [(row.model, cell) for row in rows if row.counts for cell in row.cells]
    off = [(model, cell) for model, cell in cells if cell.difference]
    bad = [(model, cell) for model, cell in off if _too_far(cell, tolerance)]
    equal = len(cells) - len(off)
    console.print()
    if cells:
        style = "green" if equal == len(cells) else "yellow"
        console.print(f"[bold {style}]{equal} of {len(cells)} cells equal the paper's to four decimals[/]")
    for model, cell in off:
        mark = "[red]beyond the tolerance[/red]" if _too_far(cell, tolerance) else "within the tolerance"
        console.print(
            f"  {model} {cell.metric}: paper {cell.paper:.4f}, ours {cell.ours:.5f}, "
            f"{cell.difference:+.4f}, {mark} of {tolerance:g}"
        )
        if cell.remark:
            console.print(f"  [dim]{escape(cell.remark)}[/dim]")
    trained = [row for row in rows if not row.counts]
    if trained:
        console.print("Not counted, because the paper does not say how these were trained:")
    for row in trained:
        figures = ", ".join(f"{cell.metric} {cell.ours:.4f} (paper {cell.paper:.4f})" for cell in row.cells)
        console.print(f"  {row.model}: {figures}")
    paths = [*saved.paths, *(saved.curve(row.model) for row in trained)]
    console.print(f"[dim]saved: {', '.join(str(path) for path in paths)}[/dim]", soft_wrap=True)
    return not bad


def _too_far(cell: Cell, tolerance: float) -> bool:
    return abs(cell.difference) > tolerance + 1e-9


class _Saved:
    """Results of one table and data set on disk: JSON to go on from, CSV and Markdown to read."""

    def __init__(self, job: Experiment, folder: Path, tolerance: float) -> None:
        self.job, self.tolerance = job, tolerance
        self.paths = [folder / f"{job.table}-{job.dataset}.{kind}" for kind in ("json", "csv", "md")]

    def read(self, errors: Console) -> dict[str, Row]:
        """Return the rows of an earlier run on the same data with the same version, by model."""
        path = self.paths[0]
        if not path.exists():
            return {}
        try:
            earlier = json.loads(path.read_text(encoding="utf-8"))
            rows = {row["model"]: _row(row) for row in earlier["rows"]}
            same = (earlier["fingerprint"], earlier["version"]) == (self.job.fingerprint, __version__)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path} is not a result of this command ({error}): move it away, name another --out, or use --fresh"
            ) from error
        if not same:
            errors.print(f"[yellow]{path} is of other data or another version: starting anew[/yellow]")
            return {}
        if rows:
            errors.print(f"[dim]going on from {path}: {', '.join(rows)} done[/dim]")
        return rows

    def write(self, rows: dict[str, Row]) -> None:
        """Write all three, each atomically."""
        ordered = list(rows.values())
        head = {name: getattr(self.job, name) for name in ("table", "dataset", "fingerprint")}
        texts = (
            json.dumps({**head, "version": __version__, "rows": [_record(row) for row in ordered]}, indent=1),
            self._csv(ordered),
            self._markdown(ordered),
        )
        for path, text in zip(self.paths, texts, strict=True):
            write_text(path, text)
        for row in ordered:
            if row.training is not None:
                write_text(self.curve(row.model), _curve(row.training))

    def curve(self, model: str) -> Path:
        """Return the file of a learning curve."""
        name = f"{self.job.table}-{self.job.dataset}-{model.lower().replace('-', '')}-curve.csv"
        return self.paths[0].with_name(name)

    def _csv(self, rows: list[Row]) -> str:
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(["table", "dataset", "model", "metric", "paper", "ours", "difference", "remark"])
        for row in rows:
            for cell in row.cells:
                figures = (f"{cell.paper:.4f}", f"{cell.ours:.7f}", f"{cell.difference:.4f}", cell.remark or row.note)
                lines.writerow([self.job.table, self.job.dataset, row.model, cell.metric, *figures])
        return text.getvalue()

    def _markdown(self, rows: list[Row]) -> str:
        names = [cell.metric for cell in rows[0].cells] if rows else []
        lines, strong = [], set()
        for r, row in enumerate(rows):
            texts = []
            for c, cell in enumerate(row.cells):
                texts.append(f"{cell.paper:.4f} / {cell.ours:.4f}")
                if cell.difference and row.counts:
                    strong.add((r, c + 1))
            lines.append([f"{row.model}{'' if row.counts else ' (trained here)'}", *texts])
        remarks = [f"{row.model} {cell.metric}: {cell.remark}" for row in rows for cell in row.cells if cell.remark]
        remarks += [f"{row.model}: {row.note}" for row in rows if row.note]
        notes = ["paper / ours; in bold what differs in the fourth decimal", *remarks]
        return Grid(self.job.title, ["model", *names], lines, notes, frozenset(strong)).markdown()


def _record(row: Row) -> dict[str, Any]:
    return asdict(row) | {"training": None if row.training is None else row.training.record()}


def _row(saved: dict[str, Any]) -> Row:
    cells = tuple(Cell(**cell) for cell in saved["cells"])
    training = None if saved.get("training") is None else Training.from_record(saved["training"])
    parameters, seconds = dict(saved["parameters"]), float(saved["seconds"])
    return Row(saved["model"], parameters, cells, seconds, saved["residual"], training, saved.get("time_budget"))


def _curve(training: Training) -> str:
    """A learning curve as CSV; what the validation was not asked stays empty."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(Epoch._fields)
    lines.writerows(training.record()["curve"])
    return text.getvalue()
