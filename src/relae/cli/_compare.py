"""`relae compare`: models side by side in one table, kept as they finish."""

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import polars as pl
from rich.console import Console
from rich.markup import escape

from relae import __version__
from relae._common.files import atomic_file, lock_folder, write_text
from relae.cli import _console
from relae.cli._choice import as_text
from relae.cli._columns import Columns
from relae.cli._data import Divided, load
from relae.cli._messages import render
from relae.cli._progress import progress_bar
from relae.comparison import Contest, LeftOut, Standing, Standings, named
from relae.errors import DataError, Text
from relae.evaluation import Evaluation, Split
from relae.registry import KINDS, kind

_FILES = ("result.json", "table.md", "table.csv")
_K, _SHARE = 100, 5  # the cut-off if none is given: this, but at most one in so many items


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    source: str
    columns: Columns
    models: Sequence[str] | None
    split: str
    share: float
    seed: int
    k: int | None
    budget: int
    time_budget: float | None  # seconds
    out: Path | None


def compare(request: Request, as_json: bool) -> bool:
    """Compare (or go on), show the table, and save it; return whether no model failed for an unforeseen reason."""
    if request.models is not None and not request.models:
        raise DataError(f"--models names no model: name some of {', '.join(KINDS)}, or all")
    models, split = named(request.models), _split_for(request)
    with nullcontext() if request.out is None else lock_folder(request.out):
        return _compare(request, models, split, as_json)


def _compare(request: Request, models: Sequence[str], split: str, as_json: bool) -> bool:
    console, errors = _console.output(), _console.errors()
    with errors.status(f"reading {request.source}"):
        divided = load(request.source, request.columns, split, request.share, request.seed)
    contest = _contest(request, divided, models)
    kept = None if request.out is None else _Kept(contest)
    done = {} if kept is None else kept.read()
    if done:
        errors.print(f"[dim]going on from {escape(str(request.out))}: {', '.join(done)} done[/dim]", soft_wrap=True)
    result = _run(contest, done, kept, errors)
    if not result.rows:
        raise DataError(f"there is no model to show; {'; '.join(result.absences())}")
    heading = [f"{divided.title}: {divided.test!r}", _chosen_split(request, split, divided.test)]
    heading += [divided.low_ratings] if divided.low_ratings else []
    record = _record(request, split, divided, result)
    if kept is not None:
        kept.write(result, heading, record)
    if as_json:
        _console.print_json(record)
    else:
        _show(console, result, heading, request)
    return not any(absent.trace for absent in result.left_out)


def _run(contest: Contest, done: Mapping[str, Standing], kept: "_Kept | None", errors: Console) -> Standings:
    found: list[Standing | LeftOut] = list(done.values())
    with progress_bar(errors) as progress:
        for each in contest.run(done, progress):
            if isinstance(each, LeftOut):
                found.append(replace(each, reason=Text(render(each.reason))))
                continue
            found.append(each)
            if kept is not None:
                kept.keep(each)
            errors.print(_news(each, contest.objective))
    return contest.standings(found)


def _split_for(request: Request) -> str:
    """Return the split: if none is named, one that admits every model that is."""
    strangers = [name for name in request.models or () if not kind(name).folds_in]
    return "weak" if request.split == "auto" and strangers else request.split


def _chosen_split(request: Request, split: str, test: Split) -> str:
    """Say which split was taken, and why."""
    who = "users who are new to the models" if test.new_users else "users of the training data"
    why = "as asked" if request.split != "auto" else "auto"
    if split != request.split:
        why = "auto: not all of the models know new users"
    other = "; --split weak judges by users of the training data" if test.new_users else ""
    return f"split: {test.protocol} ({why}), judged by {who}{other}"


def _contest(request: Request, divided: Divided, models: Sequence[str]) -> Contest:
    k = max(1, min(_K, divided.n_items // _SHARE)) if request.k is None else request.k
    purpose = {
        "data": divided.fingerprint,
        "test": replace(divided, valid=divided.test).fingerprint,
        "k": k,
        "budget": request.budget,
        "seed": request.seed,
        "version": __version__,
    }
    return Contest(
        divided.valid,
        divided.test,
        models,
        k=k,
        budget=request.budget,
        time_budget=request.time_budget,
        seed=request.seed,
        folder=None if request.out is None else request.out / "models",
        purpose=purpose,
    )


# --- words -------------------------------------------------------------------------------------------------------


def _news(row: Standing, objective: str) -> str:
    took = row.choose_seconds + row.fit_seconds + row.evaluate_seconds
    return f"[dim]{KINDS[row.name]:<10} {objective} {row.evaluation[objective]:.4f}  {took:7.1f} s  {row.choice}[/dim]"


def _show(console: Console, result: Standings, heading: Sequence[str], request: Request) -> None:
    title, *rest = heading
    console.print(f"[bold]{escape(title)}[/bold]")
    for line in rest:
        console.print(line, markup=False)
    console.print()
    console.print(result)
    console.print()
    if request.out is not None:
        console.print(f"[dim]saved in {escape(str(request.out))}: {', '.join(_FILES)}[/dim]", soft_wrap=True)
    console.print("[dim]Next, fit the first of the table to all of the data:[/dim]", soft_wrap=True)
    console.print(next_command(request, result), soft_wrap=True, markup=False, emoji=False, highlight=False)


def next_command(request: Request, result: Standings) -> str:
    """Return the command that fits the first model of a table to all of the data, ready for a shell."""
    best = result.rows[0]
    if request.out is not None:
        words = ["--from", str(request.out)]
    else:
        words = [request.source, *request.columns.options(), "--model", best.name]
        for name, value in _changed(best).items():
            words += ["--set", f"{name}={as_text(value)}"]
    return shlex.join(["relae", "fit", *words, "--out", _new_folder(best.name)])


def _new_folder(name: str) -> str:
    """Return the name of a folder that is not there yet."""
    return next(place for at in count(1) if not Path(place := f"{name}-model{'' if at == 1 else f'-{at}'}").exists())


def _changed(row: Standing) -> dict[str, Any]:
    """Return the parameters that are not the model's defaults."""
    defaults = kind(row.name)().get_params()
    return {name: value for name, value in row.parameters.items() if value != defaults[name]}


def _record(request: Request, split: str, divided: Divided, result: Standings) -> dict[str, Any]:
    columns = {
        name: str(value) if isinstance(value, Path) else value for name, value in asdict(request.columns).items()
    }
    return {
        "relae": __version__,
        "data": divided.title,
        "source": request.source,
        "columns": columns,
        "low_ratings": divided.low_ratings,
        "split": {"name": split, "share": request.share, "seed": request.seed, "protocol": divided.test.protocol},
        "users": {"validation": len(divided.valid.users), "test": len(divided.test.users)},
        "k": result.k,
        "budget": request.budget,
        "time_budget": request.time_budget,
        "models": result.records(),
        "left_out": [asdict(absent) | {"reason": str(absent.reason)} for absent in result.left_out],
    }


# --- on disk -----------------------------------------------------------------------------------------------------


class _Kept:
    """The folder of a comparison: a file per finished model to go on from, and the table to read."""

    def __init__(self, contest: Contest) -> None:
        assert contest.folder is not None
        self.contest, self.folder = contest, contest.folder

    def read(self) -> dict[str, Standing]:
        """Return the models of an earlier run that need not be run again, by name."""
        found = {}
        for name in self.contest.models:
            path = self.folder / f"{name}.npz"
            if path.exists():
                row, budget = self._read(path)
                asked = self.contest.time_budget
                if row.complete or (asked is not None and budget is not None and asked <= budget):
                    found[name] = row
        return found

    def _read(self, path: Path) -> tuple[Standing, float | None]:
        ours, way_out = self.contest.purpose, "name another folder, or remove it"
        try:
            with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
                record, values = json.loads(str(file["record"])), file["values"]
            purpose, budget = record["purpose"], record["time_budget"]
            row = self._standing(record, values) if purpose == ours else None
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
            raise DataError(f"{path} is damaged, or no result of a comparison ({error}): {way_out}") from error
        if row is None:
            different = sorted(key for key in {*purpose, *ours} if purpose.get(key) != ours.get(key))
            raise DataError(f"{path} is of another comparison, which differs in {', '.join(different)}: {way_out}")
        return row, budget

    def _standing(self, record: dict[str, Any], values: Any) -> Standing:
        test = self.contest.test
        columns = dict(zip(record["metrics"], values.T, strict=True))
        judged = (test.protocol, "standard", test.users, columns, record["overall"], record["notes"], None)
        evaluation = Evaluation(record["called"], *judged, record["truth"])
        return Standing(**record["standing"], evaluation=evaluation)

    def keep(self, row: Standing) -> None:
        """Write a finished model, whole or not at all."""
        evaluation = row.evaluation
        kept = {name: getattr(row, name) for name in Standing.__dataclass_fields__ if name != "evaluation"}
        record = {
            "purpose": dict(self.contest.purpose),
            "time_budget": self.contest.time_budget,
            "standing": kept,
            "called": evaluation.model,
            "metrics": list(evaluation.values),
            "overall": dict(evaluation.overall),
            "notes": dict(evaluation.notes),
            "truth": evaluation.truth,
        }
        with atomic_file(self.folder / f"{row.name}.npz") as part, part.open("wb") as file:
            np.savez(
                file, record=np.array(json.dumps(record)), values=np.column_stack(list(evaluation.values.values()))
            )

    def write(self, result: Standings, heading: Sequence[str], record: Mapping[str, Any]) -> None:
        """Write the table in three forms."""
        texts = (
            json.dumps(record, indent=1, ensure_ascii=False) + "\n",
            "\n\n".join([*heading, result.to_markdown()]),
            pl.DataFrame(result.flat_records(), infer_schema_length=None).write_csv(),
        )
        for name, text in zip(_FILES, texts, strict=True):
            write_text(self.folder.parent / name, text)
