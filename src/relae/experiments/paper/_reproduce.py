"""Reproduce a table of the paper, and keep every model in a folder as soon as it is finished."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from relae import __version__
from relae._common.files import lock_file, write_text
from relae._common.progress import Progress
from relae._common.tables import Grid
from relae.errors import DataError, Option
from relae.experiments.paper._experiment import Cell, PaperExperiment, Row, load_experiment, plain_name
from relae.tuning import Epoch, Training


@dataclass(frozen=True)
class Reproduction:
    """A table of the paper beside ours.

    Attributes
    ----------
    experiment : PaperExperiment
    rows : sequence of Row
        Of the models that were asked for, in the order of the paper.
    tolerance : float
        How far a cell may be off.
    paths : sequence of Path
        The files that were written.
    """

    experiment: PaperExperiment
    rows: Sequence[Row]
    tolerance: float
    paths: Sequence[Path]

    @property
    def cells(self) -> list[tuple[str, Cell]]:
        """The cells that count, with their models."""
        return [(row.model, cell) for row in self.rows if row.counts for cell in row.cells]

    @property
    def misprints(self) -> list[tuple[str, Cell]]:
        """The cells in which ours is right, and the paper is known to be wrong."""
        return [(model, cell) for model, cell in self.cells if cell.is_misprint]

    @property
    def differences(self) -> list[tuple[str, Cell]]:
        """The cells that differ from the paper in the fourth decimal, without misprints."""
        return [(model, cell) for model, cell in self.cells if cell.difference and not cell.is_misprint]

    @property
    def succeeded(self) -> bool:
        """True if no cell is beyond the tolerance."""
        return not any(self.is_beyond(cell) for _, cell in self.differences)

    def is_beyond(self, cell: Cell) -> bool:
        """Return whether a cell is beyond the tolerance."""
        return abs(cell.difference) > self.tolerance + 1e-9


def reproduce(
    table: str,
    dataset: str,
    models: Sequence[str] | None = None,
    *,
    out: str | PathLike[str] = "reproduced",
    tolerance: float = 0.0001,
    fresh: bool = False,
    time_budget: float | None = None,
    progress: Progress | None = None,
    on_start: Callable[[PaperExperiment], None] | None = None,
    on_row: Callable[[Row], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> Reproduction:
    """Run the models of one table of the paper, as `relae reproduce` does.

    Parameters
    ----------
    table, dataset, models
        See `load_experiment`.
    out
        The folder for the results; what it has of the same data and version is not run again.
    tolerance
        How far a cell may be off.
    fresh
        Run all models again.
    time_budget
        Seconds of training for each model that is trained.
    progress
        Called with the name of a stage and the fraction of it that is done.
    on_start
        Called when the data is read.
    on_row
        Called with each finished row, also with those of an earlier run.
    notify
        Called with notes for people, such as which models are done already.
    """
    if not tolerance >= 0:
        raise DataError(f"the tolerance must be a number of at least 0, got {tolerance}")
    folder = Path(out)
    stage = f"reading {dataset}"
    if progress is not None:
        progress(stage, 0.0)
    experiment = load_experiment(table, dataset, models)
    if progress is not None:
        progress(stage, 1.0)
    files = _ResultFiles(experiment, folder)
    with lock_file(files.paths[0]):
        rows = {} if fresh else files.read(notify)
        done = {model for model, row in rows.items() if row.is_final(time_budget)}
        if on_start is not None:
            on_start(experiment)
        new = experiment.run(done, progress, time_budget=time_budget, checkpoints=folder)
        for row in (*(row for row in rows.values() if row.model in done and row.model in experiment.models), *new):
            rows[row.model] = row
            files.write(rows.values())
            if on_row is not None:
                on_row(row)
    ordered = [rows[model] for model in experiment.models]
    curves = [files.curve_path(row.model) for row in ordered if row.training is not None]
    return Reproduction(experiment, ordered, tolerance, [*files.paths, *curves])


class _ResultFiles:
    """The results of one table and data set: JSON to go on from, CSV and Markdown to read."""

    def __init__(self, experiment: PaperExperiment, folder: Path) -> None:
        self.experiment = experiment
        self.paths = [folder / f"{experiment.table}-{experiment.dataset}.{kind}" for kind in ("json", "csv", "md")]

    def read(self, notify: Callable[[str], None] | None) -> dict[str, Row]:
        """Return the rows of an earlier run on the same data with the same version, by model."""
        path = self.paths[0]
        if not path.exists():
            return {}
        try:
            earlier = json.loads(path.read_text(encoding="utf-8"))
            rows = {row["model"]: _read_row(row, self.experiment) for row in earlier["rows"]}
            is_same = (earlier["fingerprint"], earlier["version"]) == (self.experiment.fingerprint, __version__)
        except (OSError, ValueError, KeyError, TypeError) as error:
            way_out = ("move it away, name another ", Option("out"), ", or use ", Option("fresh"))
            raise DataError(f"{path} is not a result of this command ({error}): ", *way_out) from error
        if notify is not None and (rows or not is_same):
            why = f"going on from {path}: {', '.join(rows)} done"
            notify(why if is_same else f"{path} is of other data or another version: starting anew")
        return rows if is_same else {}

    def write(self, rows: Iterable[Row]) -> None:
        """Write all files, each whole or not at all."""
        ordered = list(rows)
        head = {name: getattr(self.experiment, name) for name in ("table", "dataset", "fingerprint")}
        record = {**head, "version": __version__, "rows": [_record_row(row) for row in ordered]}
        texts = (json.dumps(record, indent=1), self._write_csv(ordered), self._write_markdown(ordered))
        for path, text in zip(self.paths, texts, strict=True):
            write_text(path, text)
        for row in ordered:
            if row.training is not None:
                write_text(self.curve_path(row.model), _join_csv([Epoch._fields, *row.training.record()["curve"]]))

    def curve_path(self, model: str) -> Path:
        """Return the file of a learning curve."""
        return self.paths[0].with_name(f"{self.paths[0].stem}-{plain_name(model)}-curve.csv")

    def _write_csv(self, rows: Sequence[Row]) -> str:
        head = ("table", "dataset", "model", "metric", "paper", "ours", "difference", "remark")
        where = (self.experiment.table, self.experiment.dataset)
        lines = [
            (*where, row.model, cell.metric, f"{cell.paper:.4f}", f"{cell.ours:.7f}", f"{cell.difference:.4f}", remark)
            for row in rows
            for cell in row.cells
            for remark in [cell.remark or row.note]
        ]
        return _join_csv([head, *lines])

    def _write_markdown(self, rows: Sequence[Row]) -> str:
        lines, strong, remarks = [], set(), []
        for r, row in enumerate(rows):
            lines.append([f"{row.model}{'' if row.counts else ' (trained here)'}"])
            for c, cell in enumerate(row.cells, 1):
                lines[-1].append(f"{cell.paper:.4f} / {cell.ours:.4f}{' (misprint)' * cell.is_misprint}")
                if cell.difference and row.counts and not cell.is_misprint:
                    strong.add((r, c))
                remarks += [f"{row.model} {cell.metric}: {cell.remark}"] if cell.remark else []
        remarks += [f"{row.model}: {row.note}" for row in rows if row.note]
        notes = ["paper / ours; in bold what differs in the fourth decimal", *remarks]
        names = [cell.metric for cell in rows[0].cells] if rows else []
        return Grid(self.experiment.title, ["model", *names], lines, notes, frozenset(strong)).markdown()


def _record_row(row: Row) -> dict[str, Any]:
    names = ("metric", "paper", "ours", "remark")
    cells = [{name: getattr(cell, name) for name in names} for cell in row.cells]
    return asdict(row) | {"cells": cells, "training": None if row.training is None else row.training.record()}


def _read_row(record: Mapping[str, Any], experiment: PaperExperiment) -> Row:
    cells = [
        Cell(each["metric"], each["paper"], each["ours"], experiment.find_misprint(record["model"], each["metric"]))
        for each in record["cells"]
    ]
    training = None if record["training"] is None else Training.from_record(record["training"])
    parameters, seconds = dict(record["parameters"]), float(record["seconds"])
    figures = (tuple(cells), seconds, record["residual"], training, record["time_budget"])
    return Row(record["model"], parameters, *figures)


def _join_csv(rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
