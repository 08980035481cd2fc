"""`relae tune`: search, show, test, and leave a folder from which a model can be fitted and a report made."""

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from relae import __version__
from relae.analysis import report
from relae.baselines import Popularity
from relae.cli import _console
from relae.cli._data import Columns, Divided, load
from relae.cli._files import write_text
from relae.cli._progress import progress_bar
from relae.evaluation import Evaluation, Evaluations, Grid, evaluate
from relae.recommender import HistoryRecommender
from relae.tuning import Constraint, Journal, Point, Trial, Tuning, tune


@dataclass(frozen=True)
class Request:
    """What is asked for, as it is kept in the run's folder."""

    source: str
    columns: Columns
    split: str = "auto"
    share: float = 0.1
    seed: int = 0
    search: str = "auto"
    budget: int = 16
    objective: str = "ndcg@100"
    keep: str | None = None
    loss: float = 0.01
    solver: str = "auto"

    @property
    def constraint(self) -> Constraint | None:
        """What to keep."""
        return None if self.keep is None else Constraint(self.keep, self.loss)


def run(request: Request, out: Path, time_budget: float | None, test: bool) -> None:
    """Search (or go on), show the result, judge it by the test users, and save all of it."""
    console, errors = _console.output(), _console.errors()
    with errors.status(f"reading {request.source}"):
        divided = load(request.source, request.columns, request.split, request.share, request.seed)
    with _journal(out / "journal.jsonl", _purpose(request, divided)) as journal:
        if journal.trials:
            errors.print(f"[dim]going on from {journal.path}: {len(journal.trials)} trials are done[/dim]")
        with progress_bar(errors) as progress:
            result = tune(
                divided.valid,
                request.search,
                objective=request.objective,
                budget=request.budget,
                constraint=request.constraint,
                solver=request.solver,
                journal=journal,
                time_budget=time_budget,
                progress=progress,
                on_trial=lambda trial, so_far: errors.print(_news(trial, so_far)),
            )
    console.print(f"[bold]{escape(divided.title)}[/bold]: {escape(repr(divided.valid))}")
    if not result.trials:
        console.print("the time budget leaves room for no trial")
        return
    console.print()
    console.print(result)
    console.print()
    console.print(_front(result))
    if not result.complete:
        console.print("[yellow]stopped by the time budget: the same command with a larger one goes on[/yellow]")
    tested = _test(request, divided, result, console, errors) if test else None
    _save(out, request, divided, result, tested)
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
                with suppress(OSError):  # a folder that was there before may hold something else
                    path.parent.rmdir()
            raise


def _purpose(request: Request, divided: Divided) -> dict[str, Any]:
    """What has to be the same for trials to be used again."""
    kept = ("search", "objective", "keep", "loss", "solver")
    return {"data": divided.fingerprint, **{name: getattr(request, name) for name in kept}, "version": __version__}


def _news(trial: Trial, so_far: Tuning) -> str:
    name = so_far.objective
    best, here = so_far.best(), max(trial.points, key=lambda point: point[name])
    text = (
        f"{len(so_far.trials):>3}  l2 {trial.l2:<7g} dropout {trial.dropout:<4g} {name} {here[name]:.4f} "
        f"at ξ {here.xi:<6g} {trial.fit_seconds + trial.evaluate_seconds:5.1f} s"
    )
    is_best = (best.l2, best.dropout) == (trial.l2, trial.dropout)
    return f"[green]{text}  best so far[/green]" if is_best else f"[dim]{text}[/dim]"


def _front(result: Tuning) -> Grid:
    """The trade-off in a dozen lines at most, from most accurate to most tail."""
    first, second = result.axes()
    front = result.pareto()
    chosen = result.best()
    step = max(1, len(front) // 10)
    shown = [point for at, point in enumerate(front) if at % step == 0 or at == len(front) - 1 or point is chosen]
    rows = [
        [
            "→ chosen" if point is chosen else "",
            *(f"{value:.4g}" for value in (point.l2, point.dropout, point.xi)),
            *(f"{point.metrics[name]:.4f}" for name in (first, second)),
            f"{point[first] / front[0][first] - 1:+.1%}",
        ]
        for point in shown
    ]
    header = ["", "l2", "dropout", "ξ", first, second, "accuracy"]
    return Grid("The trade-off: no point beats these in both", header, rows, [f"{len(front)} points on the front"])


def _test(
    request: Request, divided: Divided, result: Tuning, console: Console, errors: Console
) -> list[tuple[str, Evaluation]]:
    """Fit the chosen model and its rivals to train and validation, and judge them by the test users."""
    k = int(request.objective.split("@")[1])
    rivals: list[tuple[str, Point | None]] = [("chosen", result.best())]
    bests = result.bests
    if "EASE" in bests and bests["EASE"] is not result.best():
        rivals.append(("EASE", bests["EASE"]))
    rivals.append(("popularity", None))
    found: list[tuple[str, Evaluation]] = []
    with progress_bar(errors) as progress:
        for role, point in rivals:
            model: HistoryRecommender = Popularity() if point is None else point.model()
            if point is not None:
                model.set_params(solver=request.solver)
            model.fit(divided.test.train, progress=progress)
            ks = sorted({min(20, k), k})
            found.append((role, evaluate(model, divided.test, report.METRICS, ks, progress=progress)))
            del model  # its inverse goes before the next one comes
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
    out: Path, request: Request, divided: Divided, result: Tuning, tested: Sequence[tuple[str, Evaluation]] | None
) -> None:
    chosen = result.best()
    record = {
        "relae": __version__,
        "python": sys.version.split()[0],
        "command": _command(request, out),
        "request": {**asdict(request), "columns": {k: _plain(v) for k, v in asdict(request.columns).items()}},
        "title": divided.title,
        "protocol": divided.valid.protocol,
        "objective": result.objective,
        "complete": result.complete,
        "trials": len(result.trials),
        "chosen": _point(chosen),
        "model": repr(chosen.model()),
        "best": {name: _point(point) for name, point in result.bests.items()},
        "axes": list(result.axes()),
        "front": [_point(point) for point in result.pareto()],
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
    options = {name: value for name, value in asdict(request).items() if name not in ("source", "columns")}
    options |= asdict(request.columns)
    defaults = asdict(Request("", Columns())) | asdict(Columns())
    given = [
        f"--{name.replace('_', '-')} {shlex.quote(str(value))}"
        for name, value in options.items()
        if value != defaults.get(name)
    ]
    return " ".join(["relae tune", shlex.quote(request.source), *given, "--out", shlex.quote(os.fspath(out))])


def _point(point: Point) -> dict[str, float]:
    return {"l2": point.l2, "dropout": point.dropout, "xi": point.xi, **point.metrics}


def _plain(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, Path) else value
