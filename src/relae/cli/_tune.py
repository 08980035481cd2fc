"""`relae tune`: search, show, test, and leave a folder from which a model can be fitted and a report made."""

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from relae import __version__
from relae._common.files import lock_folder, write_text
from relae.analysis import report
from relae.cli import _console
from relae.cli._columns import Columns
from relae.cli._data import Divided, load
from relae.cli._progress import progress_bar
from relae.cli._searches import Request, Searching
from relae.evaluation import Evaluation, Evaluations, evaluate
from relae.recommender import HistoryRecommender
from relae.solvers import Solver
from relae.tuning import Journal, Tuning

__all__ = ["Request", "run"]


def run(request: Request, out: Path, time_budget: float | None, test: bool) -> None:
    """Search (or go on), show the result, judge it by the test users, and save all of it."""
    search = Searching(request)
    with lock_folder(out):
        _run(request, search, out, time_budget, test)


def _run(request: Request, search: Searching, out: Path, time_budget: float | None, test: bool) -> None:
    console, errors = _console.output(), _console.errors()
    with errors.status(f"reading {request.source}"):
        divided = load(request.source, request.columns, request.split, request.share, request.seed)
    purpose = {"data": divided.fingerprint, **search.purpose(), "version": __version__}
    with _journal(out / "journal.jsonl", purpose) as journal:
        if journal.trials:
            errors.print(f"[dim]going on from {journal.path}: {len(journal.trials)} trials are done[/dim]")
        with progress_bar(errors) as progress:
            result = search.run(divided, journal, time_budget, progress, errors.print)
    console.print(f"[bold]{escape(divided.title)}[/bold]: {escape(repr(divided.valid))}")
    if divided.low_ratings:
        console.print(divided.low_ratings, markup=False)
    if not result.trials:
        console.print("the time budget leaves room for no trial")
        return
    for table in search.tables(result):
        console.print()
        console.print(table)
    if not result.complete:
        console.print("[yellow]stopped by the time budget: the same command with a larger one goes on[/yellow]")
    models = search.models(result)
    chosen = repr(models[0][1])
    tested = (
        _test(models, search.solver, divided, int(request.objective.split("@")[1]), console, errors) if test else None
    )
    record = {"trials": len(result.trials), "complete": result.complete, "model": chosen, **search.record(result)}
    _save(out, request, divided, result, record, tested)
    console.print(f"\n[dim]saved in {out}: journal.jsonl, points.csv, result.json, result.md[/dim]", soft_wrap=True)
    place = escape(shlex.quote(str(out)))
    console.print(f"[dim]Next:[/dim] relae fit --from {place} --out MODEL\n      relae report {place}", soft_wrap=True)


@contextmanager
def _journal(path: Path, purpose: Mapping[str, Any]) -> Iterator[Journal]:
    """Open a journal; one that was begun for a search that cannot be goes again."""
    is_new = not path.exists()
    with Journal(path, purpose) as journal:
        try:
            yield journal
        except ValueError:
            if is_new and not journal.trials:
                path.unlink()
            raise


def _test(
    models: list[tuple[str, HistoryRecommender]],
    solver: Solver,
    divided: Divided,
    k: int,
    console: Console,
    errors: Console,
) -> list[tuple[str, Evaluation]]:
    """Fit the chosen model and its rivals to train and validation, and judge them by the test users."""
    found: list[tuple[str, Evaluation]] = []
    with progress_bar(errors) as progress:
        while models:
            role, model = models.pop(0)  # what was fitted goes before the next one comes
            model.fit_with(divided.test.train, solver=solver, progress=progress)
            found.append(
                (role, evaluate(model, divided.test, report.METRICS, sorted({min(20, k), k}), progress=progress))
            )
    console.print()
    console.print("[bold]Test users[/bold], who took no part in the choice; fitted to train and validation")
    shown = [f"{name}@{k}" for name in ("ndcg", "recall", "tail_ndcg", "unbiased_ndcg", "coverage")]
    console.print(Evaluations([evaluation for _, evaluation in found]).grid(shown))
    for role, evaluation in found[1:]:
        row = found[0][1].compare(evaluation)[f"ndcg@{k}"]
        interval = f"[{row.low:+.4f}, {row.high:+.4f}]"
        console.print(
            f"chosen − {role}: ndcg@{k} {row.difference:+.4f} {interval}, p {row.p_value:.2g}",
            style="dim",
            markup=False,
        )
    return found


def _save(
    out: Path,
    request: Request,
    divided: Divided,
    result: Tuning,
    found: Mapping[str, Any],
    tested: Sequence[tuple[str, Evaluation]] | None,
) -> None:
    record = {
        "relae": __version__,
        "python": sys.version.split()[0],
        "command": _command(request, out),
        "request": {**asdict(request), "columns": {k: _plain(v) for k, v in asdict(request.columns).items()}},
        "title": divided.title,
        "protocol": divided.valid.protocol,
        "low_ratings": divided.low_ratings,
        "objective": result.objective,
        **found,
        "test": None
        if tested is None
        else [
            {
                "role": role,
                "model": evaluation.model,
                "figures": evaluation.records(),
                "differences": [] if role == "chosen" else tested[0][1].compare(evaluation).records(),
            }
            for role, evaluation in tested
        ],
    }
    write_text(out / "result.json", json.dumps(record, indent=1))
    write_text(out / "points.csv", result.to_polars().write_csv())
    write_text(out / "result.md", result.to_markdown())


def _command(request: Request, out: Path) -> str:
    """Return the command that makes this run again."""
    options = {
        name: value for name, value in asdict(request).items() if name not in ("source", "columns", "parameters")
    }
    options |= asdict(request.columns) | dict(request.parameters)
    defaults = asdict(Request("", Columns())) | asdict(Columns())
    given = [
        f"--{name.replace('_', '-')} {shlex.quote(str(part))}"
        for name, value in options.items()
        if value != defaults.get(name)
        for part in (value if isinstance(value, (list, tuple)) else [value])
    ]
    return " ".join(["relae tune", shlex.quote(request.source), *given, "--out", shlex.quote(os.fspath(out))])


def _plain(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, Path) else value
