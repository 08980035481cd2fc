"""Compare models on a data set, and keep each one in a folder as soon as it is finished."""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Unpack
from zipfile import BadZipFile

import numpy as np

from relae import __version__
from relae._common.files import atomic_file, lock_folder
from relae._common.progress import Progress
from relae.errors import DataError, Option, Text
from relae.evaluation import Evaluation, Split
from relae.experiments._columns import ColumnKeywords, Columns
from relae.experiments._comparison import Comparison, list_models
from relae.experiments._comparison_table import ComparisonRow, LeftOut
from relae.experiments._data import DataSource, DividedData, Division, is_judged_by_time
from relae.experiments._run import Run
from relae.experiments._tune import name_source, read_divided
from relae.experiments._wording import PYTHON, Wording
from relae.experiments._yardsticks import list_yardsticks
from relae.registry import KINDS, kind

_K, _SHARE = 100, 5  # the default cut-off, but at most one in so many items


def compare(
    data: DataSource,
    models: Sequence[str] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    split: str = "auto",
    share: float = 0.1,
    seed: int = 0,
    last: int = 1,
    k: int | None = None,
    budget: int = 8,
    time_budget: float | None = None,
    progress: Progress | None = None,
    on_row: Callable[[ComparisonRow, str], None] | None = None,
    notify: Callable[[str], None] | None = None,
    wording: Wording = PYTHON,
    **columns: Unpack[ColumnKeywords],
) -> Run:
    """Compare models on a data set in one table, as `relae compare` does.

    Parameters are chosen by validation users; then each model is judged once, by test users.

    Parameters
    ----------
    data
        See `tune`.
    models
        Names such as "ease"; all models if not given. Popularity is always among them, and where there are times
        trending.
    out
        The folder of the comparison, in which an unfinished one goes on; without it nothing is kept on disk.
    split, share, seed, last
        How data is divided; see `Division`. With the split "auto" and no times, users are known to the models ("weak")
        if one of `models` cannot do with others.
    k
        The cut-off of all metrics; 100 if not given, but at most a fifth of the items.
    budget
        Inversions that the six linear autoencoders share, as many for DAN, and fits of every other model to tune.
    time_budget
        Seconds of choosing and training, for each model.
    progress
        Called with the name of a stage and the fraction of it that is done.
    on_row
        Called with each new row and the metric by which parameters were chosen.
    notify
        Called with notes for people, such as which models are done already.
    wording
        How texts name options; Python's way if not given.
    columns
        How to read a table: `user`, `item`, `rating` and so on; see `Columns`.

    Returns
    -------
    The Run, whose `table` is the comparison and whose `model` is the first of it.
    """
    if models is not None and not models:
        raise DataError(Option("models"), f" names no model: name some of {', '.join(KINDS)}, or all")
    list_models(models)  # refuses an unknown name before anything is read
    needs_weak = split == "auto" and any(not kind(name).folds_in for name in models or ())
    division = Division(split, share, seed, last)
    table, folder = Columns(**columns), None if out is None else Path(out)
    if needs_weak and is_judged_by_time(data, table, division):
        needs_weak = False  # whose users are all known
    division = division._replace(split="weak") if needs_weak else division
    if folder is not None:
        table.check_paths()
    with nullcontext() if folder is None else lock_folder(folder):
        divided = read_divided(data, table, division, progress)
        names = list_models(models, list_yardsticks(divided.valid, divided.test))
        comparison = _make_comparison(divided, names, k, budget, time_budget, seed, folder)
        finished = None if folder is None else _FinishedRows(comparison)
        rows: dict[str, ComparisonRow] = {} if finished is None else finished.read()
        if rows and notify is not None:
            notify(f"going on from {folder}: {', '.join(rows)} done")
        results: list[ComparisonRow | LeftOut] = list(rows.values())
        for each in comparison.run(rows, progress):
            results.append(each)
            if isinstance(each, ComparisonRow):
                if finished is not None:
                    finished.write(each)
                if on_row is not None:
                    on_row(each, comparison.objective)
        result = comparison.table(results, wording.text)
        if not result.rows:
            raise DataError(f"there is no model to show; {'; '.join(result.absences())}")
        low_ratings = wording.text(divided.low_ratings)
        record = {
            "relae": __version__,
            "data": divided.title,
            "source": name_source(data),
            "columns": table.record(),
            "low_ratings": low_ratings,
            "periods": wording.text(divided.periods),
            "split": {"name": division.split, **_record_division(division), "protocol": divided.test.protocol},
            "users": {"validation": len(divided.valid.users), "test": len(divided.test.users)},
            "k": result.k,
            "budget": budget,
            "time_budget": time_budget,
            "models": result.records(),
            "left_out": [vars(each) for each in result.left_out],
        }
        why = "auto: not all of the models know new users" if needs_weak else "auto" if split == "auto" else "as asked"
        heading = [f"{divided.title}: {divided.test!r}", wording.text(_describe_split(divided.test, why))]
        periods = wording.text(divided.periods)
        heading += [line for line in (*periods.split("\n"), low_ratings) if line]
        run = Run.from_record(
            record, folder, source=data, columns=table, divided=divided, table=result, heading=heading
        )
        run.save({"table.md": "\n\n".join([*heading, result.to_markdown()]), "table.csv": result.to_csv()})
    return run


def _record_division(division: Division) -> dict[str, Any]:
    return {name: value for name, value in division._asdict().items() if name != "split"}


def _describe_split(test: Split, why: str) -> Text:
    who = "users who are new to the models" if test.new_users else "users of the training data"
    text = Text(f"split: {test.protocol} ({why}), judged by {who}")
    return (
        Text(text, "; ", Option("split", "weak"), " judges by users of the training data") if test.new_users else text
    )


def _make_comparison(
    divided: DividedData,
    models: Sequence[str],
    k: int | None,
    budget: int,
    time_budget: float | None,
    seed: int,
    folder: Path | None,
) -> Comparison:
    k = max(1, min(_K, divided.n_items // _SHARE)) if k is None else k
    sums = {"data": divided.fingerprint, "test": divided.test_fingerprint}
    return Comparison(
        divided.valid,
        divided.test,
        models,
        k=k,
        budget=budget,
        time_budget=time_budget,
        seed=seed,
        folder=None if folder is None else folder / "models",
        purpose={**sums, "k": k, "budget": budget, "seed": seed, "version": __version__},
    )


class _FinishedRows:
    """A file for each finished model of a comparison, to go on from."""

    def __init__(self, comparison: Comparison) -> None:
        assert comparison.folder is not None
        self.comparison, self.folder = comparison, comparison.folder

    def read(self) -> dict[str, ComparisonRow]:
        """Return the models that need not be run again, by name."""
        rows, limit = {}, self.comparison.time_budget
        for name in self.comparison.models:
            path = self.folder / f"{name}.npz"
            if path.exists():
                row, budget = self._read_row(path)
                if row.complete or (limit is not None and budget is not None and limit <= budget):
                    rows[name] = row
        return rows

    def _read_row(self, path: Path) -> tuple[ComparisonRow, float | None]:
        """Return a row, and the seconds that its model had."""
        ours, way_out = self.comparison.purpose, "name another folder, or remove it"
        try:
            with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
                record, values = json.loads(str(file["record"])), file["values"]
            purpose, budget = record["purpose"], record["time_budget"]
            row = self._parse_row(record, values) if purpose == ours else None
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
            raise DataError(f"{path} is damaged, or no result of a comparison ({error}): {way_out}") from error
        if row is None:
            different = sorted(key for key in {*purpose, *ours} if purpose.get(key) != ours.get(key))
            raise DataError(f"{path} is of another comparison, which differs in {', '.join(different)}: {way_out}")
        return row, budget

    def _parse_row(self, record: dict[str, Any], values: Any) -> ComparisonRow:
        test = self.comparison.test
        evaluation = Evaluation(
            record["called"],
            test.protocol,
            "standard",
            test.users,
            dict(zip(record["metrics"], values.T, strict=True)),
            record["overall"],
            record["notes"],
            truth=record["truth"],
        )
        return ComparisonRow(**record["row"], evaluation=evaluation)

    def write(self, row: ComparisonRow) -> None:
        """Write a finished model, whole or not at all."""
        evaluation = row.evaluation
        record = {
            "purpose": dict(self.comparison.purpose),
            "time_budget": self.comparison.time_budget,
            "row": {name: value for name, value in vars(row).items() if name != "evaluation"},
            "called": evaluation.model,
            "metrics": list(evaluation.values),
            "overall": dict(evaluation.overall),
            "notes": dict(evaluation.notes),
            "truth": evaluation.truth,
        }
        values = np.column_stack(list(evaluation.values.values()))
        with atomic_file(self.folder / f"{row.name}.npz") as part, part.open("wb") as file:
            np.savez(file, record=np.array(json.dumps(record)), values=values)
