"""`relae compare`: compare models, and show the table."""

import shlex
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from relae import experiments
from relae.cli import _console
from relae.cli._parameters import write_value
from relae.cli._progress import progress_bar
from relae.cli._wording import COMMAND_LINE, write_options
from relae.experiments import ComparisonRow, Run
from relae.registry import KINDS, kind


def compare(data: str, models: Sequence[str] | None, options: Mapping[str, Any], as_json: bool) -> bool:
    """Compare models, or continue a comparison; show and save the table; return False if a model crashed."""
    errors = _console.error_console()
    with progress_bar(errors) as progress:
        run = experiments.compare(
            data,
            models,
            progress=progress,
            on_row=lambda row, objective: errors.print(_describe_row(row, objective)),
            notify=lambda note: errors.print(f"[dim]{escape(note)}[/dim]", soft_wrap=True),
            wording=COMMAND_LINE,
            **options,
        )
    if as_json:
        _console.print_json(run.record)
    else:
        _show(_console.output_console(), run)
    return not any(each["trace"] for each in run.record["left_out"])


def _describe_row(row: ComparisonRow, objective: str) -> str:
    seconds = row.choose_seconds + row.fit_seconds + row.evaluate_seconds
    return (
        f"[dim]{KINDS[row.name]:<10} {objective} {row.evaluation[objective]:.4f}  {seconds:7.1f} s  {row.choice}[/dim]"
    )


def _show(console: Console, run: Run) -> None:
    title, *rest = run.heading
    console.print(f"[bold]{escape(title)}[/bold]")
    for line in rest:
        console.print(line, markup=False)
    console.print()
    console.print(run.table)
    console.print()
    if run.path is not None:
        files = "result.json, table.md, table.csv"
        console.print(f"[dim]saved in {escape(str(run.path))}: {files}[/dim]", soft_wrap=True)
    console.print("[dim]Next, fit the first of the table to all of the data:[/dim]", soft_wrap=True)
    console.print(_write_fit(run), soft_wrap=True, markup=False, emoji=False, highlight=False)


def _write_fit(run: Run) -> str:
    """Return the shell command that fits the first model of the table to all of the data."""
    name = next(iter(run.models))
    if run.path is not None:
        words = [f"--from {shlex.quote(str(run.path))}"]
    else:
        words = [shlex.quote(str(run.source)), *write_options(run.columns.changes()), f"--model {name}"]
        defaults = kind(name)().get_params()
        values = {each: value for each, value in run.model.get_params().items() if value != defaults[each]}
        words += [f"--set {shlex.quote(f'{each}={write_value(value)}')}" for each, value in values.items()]
    folders = (f"{name}-model{'' if number == 1 else f'-{number}'}" for number in count(1))
    folder = next(folder for folder in folders if not Path(folder).exists())
    return " ".join(["relae fit", *words, f"--out {folder}"])
