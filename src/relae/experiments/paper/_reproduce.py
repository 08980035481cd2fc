"""Reproduce a table of the paper, and keep every model in a folder as soon as it is finished."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

from relae import __version__
from relae._common.files import lock_folder
from relae._common.progress import Progress
from relae._common.tables import Grid
from relae.errors import DataError, Option
from relae.experiments._run import Run
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
    run : Run
        The folder: `run.models` has the models by name, and `run.fit` fits one of them to all of the data.
    """

    experiment: PaperExperiment
    rows: Sequence[Row]
    tolerance: float
    run: Run

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
        The folder for the results, which gets a run folder for each table and data set, such as `table3-gowalla`. What
        that has of the same data and version is not run again.
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
    stage = f"reading {dataset}"
    if progress is not None:
        progress(stage, 0.0)
    experiment = load_experiment(table, dataset, models)
    if progress is not None:
        progress(stage, 1.0)
    folder = Path(out) / f"{table}-{dataset}"
    with lock_folder(folder):
        rows = {} if fresh else _read_rows(folder, experiment, notify)
        done = {model for model, row in rows.items() if row.is_final(time_budget)}
        if on_start is not None:
            on_start(experiment)
        old = [row for row in rows.values() if row.model in done and row.model in experiment.models]
        new = experiment.run(done, progress, time_budget=time_budget, checkpoints=folder)
        for row in chain(old, new):  # each new row is saved before the next model is run
            rows[row.model] = row
            run = _save_rows(folder, experiment, list(rows.values()))
            if on_row is not None:
                on_row(row)
    return Reproduction(experiment, [rows[model] for model in experiment.models], tolerance, run)


# --- the folder ----------------------------------------------------------------------------------------------------


def _read_rows(folder: Path, experiment: PaperExperiment, notify: Callable[[str], None] | None) -> dict[str, Row]:
    """Return the rows of an earlier run on the same data with the same version, by model."""
    if not (folder / "result.json").exists():
        return {}
    try:
        record = Run.read(folder).record
        rows = {row["model"]: _read_row(row, experiment) for row in record["rows"]}
        is_same = (record["fingerprint"], record["relae"]) == (experiment.fingerprint, __version__)
    except (DataError, ValueError, KeyError, TypeError) as error:
        way_out = ("move it away, name another ", Option("out"), ", or use ", Option("fresh"))
        raise DataError(f"{folder} is not a result of this command ({error}): ", *way_out) from error
    if notify is not None:
        why = f"going on from {folder}: {', '.join(rows)} done"
        notify(why if is_same else f"{folder} is of other data or another version: starting anew")
    return rows if is_same else {}


def _save_rows(folder: Path, experiment: PaperExperiment, rows: Sequence[Row]) -> Run:
    """Write all files of the folder, each whole or not at all, and return the run."""
    head = {name: getattr(experiment, name) for name in ("table", "dataset", "title", "fingerprint")}
    run = Run.from_record({"relae": __version__, **head, "rows": [_record_row(row) for row in rows]}, folder)
    curves = {
        f"{plain_name(row.model)}-curve.csv": _join_csv([Epoch._fields, *row.training.record()["curve"]])
        for row in rows
        if row.training is not None
    }
    run.save({"table.csv": _write_csv(experiment, rows), "table.md": _write_markdown(experiment, rows), **curves})
    return run


def _write_csv(experiment: PaperExperiment, rows: Sequence[Row]) -> str:
    head = ("table", "dataset", "model", "metric", "paper", "ours", "difference", "remark")
    where = (experiment.table, experiment.dataset)
    lines = [
        (*where, row.model, cell.metric, f"{cell.paper:.4f}", f"{cell.ours:.7f}", f"{cell.difference:.4f}", remark)
        for row in rows
        for cell in row.cells
        for remark in [cell.remark or row.note]
    ]
    return _join_csv([head, *lines])


def _write_markdown(experiment: PaperExperiment, rows: Sequence[Row]) -> str:
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
    return Grid(experiment.title, ["model", *names], lines, notes, frozenset(strong)).markdown()


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
