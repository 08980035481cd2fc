"""`relae tune`: search parameters, and show the result."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from relae import experiments
from relae._common.tables import short
from relae.cli import _console
from relae.cli._parameters import parse_parameters
from relae.cli._progress import progress_bar
from relae.cli._wording import COMMAND_LINE
from relae.evaluation import Evaluations
from relae.experiments import Run
from relae.tuning import Trial, Tuning, symbol


def tune(data: str, out: Path, parameters: Mapping[str, Any], options: Mapping[str, Any], test: bool) -> None:
    """Search parameters, or continue a search; show the result, evaluate it on the test users, and save it."""
    console, errors = _console.output_console(), _console.error_console()
    model, values = parse_parameters(parameters)
    with progress_bar(errors) as progress:
        run = experiments.tune(
            data,
            model,
            values,
            out=out,
            test=False,
            progress=progress,
            on_trial=lambda trial, so_far: errors.print(_describe_trial(trial, so_far)),
            notify=lambda note: errors.print(f"[dim]{escape(note)}[/dim]"),
            wording=COMMAND_LINE,
            **options,
        )
    _show_search(console, run)
    if test:
        with progress_bar(errors) as progress:
            run = experiments.judge_and_save(run, progress)
        _show_test(console, run)
    console.print(f"\n[dim]saved in {out}: journal.jsonl, points.csv, result.json, result.md[/dim]", soft_wrap=True)
    folder = escape(shlex.quote(str(out)))
    console.print(
        f"[dim]Next:[/dim] relae fit --from {folder} --out MODEL\n      relae report {folder}", soft_wrap=True
    )


def _show_search(console: Console, run: Run) -> None:
    """Show the best of each model and the trade-off, or all trials of one model."""
    tuning = run.tuning
    console.print(f"[bold]{escape(run.title)}[/bold]: {escape(repr(run.divide().valid))}")
    for line in (run.record["periods"], run.record["low_ratings"]):
        if line:
            console.print(line, markup=False)
    for table in [tuning.grid(), *([tuning.trade_off()] if tuning.dials else [])]:
        console.print()
        console.print(table)
    if not tuning.complete:
        console.print("[yellow]stopped by the time budget: the same command with a larger one goes on[/yellow]")


def _show_test(console: Console, run: Run) -> None:
    k = run.k
    console.print()
    console.print("[bold]Test users[/bold], who took no part in the choice; fitted to train and validation")
    shown = [f"{name}@{k}" for name in ("ndcg", "recall", "tail_ndcg", "unbiased_ndcg", "coverage")]
    console.print(Evaluations(list(run.evaluations.values())).grid(shown))
    for result in run.results[1:]:
        row = result.difference("ndcg", k)
        assert row is not None
        interval = f"[{row.low:+.4f}, {row.high:+.4f}]"
        text = f"chosen − {result.role}: ndcg@{k} {row.difference:+.4f} {interval}, p {row.p_value:.2g}"
        console.print(text, style="dim", markup=False)


def _describe_trial(trial: Trial, so_far: Tuning) -> str:
    """Return a coloured line about a finished trial."""
    name, number = so_far.objective, len(so_far.trials)
    values = " ".join(f"{symbol(key)} {short(value):<7}" for key, value in trial.parameters.items())
    if trial.failure is not None:
        return f"[yellow]{number:>3}  {values} not fitted: {escape(trial.failure)}[/yellow]"
    top = max(trial.points, key=lambda point: point[name])
    dials = "".join(f" {symbol(key)} {short(top.parameters[key]):<6}" for key in so_far.dials)
    epochs = "" if trial.training is None else f" epoch {trial.training.best_epoch:>4} of {trial.training.epochs:<4}"
    text = f"{number:>3}  {values} {name} {top[name]:.4f}{' at' * bool(dials)}{dials}{epochs} {trial.seconds:5.1f} s"
    best = so_far.best()
    return f"[green]{text}  best so far[/green]" if any(p is best for p in trial.points) else f"[dim]{text}[/dim]"
