"""`relae fit`: fit a model to data, and save it as a folder."""

import shlex
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np
from rich.console import Console
from rich.markup import escape

from relae import store
from relae._common.words import in_bytes
from relae.baselines import Trained
from relae.cli._cluster import connect, make_cluster_solver, open_partitions
from relae.cli._console import error_console, make_facts, output_console, print_json
from relae.cli._model import describe_extensions, describe_fit, describe_users
from relae.cli._parameters import choose_data, parse_parameters
from relae.cli._progress import progress_bar
from relae.data import Interactions
from relae.distributed import Partitions
from relae.errors import DataError
from relae.experiments import Run, choose_model, matrix_shape, read_data
from relae.models import LinearAutoencoder
from relae.recommender import HistoryRecommender
from relae.solvers import Solver, as_solver, plan


def fit(
    source: str | None,
    columns: Mapping[str, Any],
    parameters: Mapping[str, Any],
    out: Path,
    *,
    run: Path | None,
    form: str,
    histories: bool,
    solver: str,
    dtype: str,
    time_budget: float | None,
    scheduler: str | None,
    as_json: bool,
) -> None:
    """Fit a model to all of the data, save it, and show a summary."""
    started = time.perf_counter()
    tuned = None if run is None else Run.read(run)
    source, table_columns = choose_data(source, columns, tuned)
    model, fit_solver = choose_model(*parse_parameters(parameters, tuned), tuned, solver=solver, dtype=dtype)
    if not histories and not model.folds_in:
        raise DataError(
            f"{type(model).__name__} finds its users by their histories, which are part of it: leave --no-histories "
            "out, or take a model that folds in new users, such as RDLAE"
        )
    checkpoint = _choose_checkpoint(model, out, time_budget)
    console = error_console()
    if scheduler is not None and not isinstance(model, LinearAutoencoder):
        raise DataError(f"a cluster fits linear autoencoders, and not {type(model).__name__}: leave --scheduler out")
    with store.reserve(out) as target, connect(scheduler) as client:
        if checkpoint is not None and checkpoint.exists():
            console.print(f"[dim]going on from {escape(str(checkpoint))}[/dim]", soft_wrap=True)
        data: Interactions | Partitions
        with console.status(f"reading {source}"):
            if client is not None and any(mark in source for mark in "*?["):
                title, data = source, open_partitions(source, table_columns, client)
            else:
                title, data = read_data(source, table_columns)
        known = data if isinstance(data, Interactions) else None
        if known is not None and client is None and isinstance(model, LinearAutoencoder):
            target.check_room(_forecast_size(fit_solver, known, form, histories))
        with progress_bar(console) as progress:
            model.fit_with(
                cast(Interactions, data),  # partitions only for linear autoencoders, which take them
                progress=progress,
                solver=fit_solver if client is None else make_cluster_solver(fit_solver, client),
                checkpoint=checkpoint,
                time_budget=time_budget,
                feature_weight=table_columns.feature_weight,
            )
            fitted = time.perf_counter()
            store.save(
                model,
                target,
                form=form if isinstance(model, LinearAutoencoder) else "fitted",
                histories=known if histories else None,
                title=title,
                progress=progress,
            )
        if checkpoint is not None:
            checkpoint.unlink(missing_ok=True)
    saved = store.open_model(out)
    seconds = {"fit": fitted - started, "save": time.perf_counter() - fitted}
    if as_json:
        statistics = {} if known is None else {"statistics": asdict(known.statistics())}
        print_json({**_summarize(saved), **statistics, "seconds": seconds})
        return
    _show(output_console(), saved, model, title, seconds, tuned)


def _choose_checkpoint(model: HistoryRecommender, out: Path, time_budget: float | None) -> Path | None:
    """Return the path of the training checkpoint, beside the folder; None for a model without epochs."""
    if model.trains:
        path = out.absolute()
        return path.with_name(f"{path.name}.training")
    if time_budget is not None:
        raise DataError(f"{type(model).__name__} is fitted at once, and not by epochs: leave --time-budget out")
    return None


def _forecast_size(solver: Solver, data: Interactions, form: str, histories: bool) -> int:
    """Return the size of the model folder in bytes; raise if the model cannot be saved in this form."""
    fit_plan = plan(*matrix_shape(data), solver=solver)
    planned_solver = as_solver(fit_plan.solver, dtype=solver.dtype, neighbours=solver.neighbours)
    try:
        return store.forecast_size(data, planned_solver, form=form, histories=histories)
    except ValueError as error:
        raise DataError(f"{error}: choose another --form or --solver") from None


def _summarize(saved: store.Saved) -> dict[str, Any]:
    info = saved.info
    return {
        "path": str(saved.path),
        **{name: info[name] for name in ("title", "model", "parameters", "fitted", "data", "created")},
        "size": saved.size,
    }


def _describe_precision(model: LinearAutoencoder) -> str:
    fit_plan = model.plan_
    if fit_plan.exact:
        return f"‖(G+Λ)Pv − v‖/‖v‖ = {model.residual_:.0e} ({fit_plan.solver} solver, {fit_plan.dtype})"
    return f"each item by its {fit_plan.chosen.square:,} nearest, solved to {model.residual_:.0e} ({fit_plan.dtype})"


def _show(
    console: Console,
    saved: store.Saved,
    model: HistoryRecommender,
    title: str,
    seconds: Mapping[str, float],
    run: Run | None,
) -> None:
    data = saved.info["data"]
    rows = {"model": str(model)}
    if run is not None and run.is_comparison:
        rows["chosen by"] = _describe_rank(model, run)
    if isinstance(model, LinearAutoencoder):
        by = (
            f", as {run.path} chose"
            if run is not None
            else ", by the rule 20·√(users per item)"
            if model.l2 is None
            else ""
        )
        rows["parameters"] = f"l2 {model.l2_:g}, dropout {model.dropout:g}, ξ {model.xi:g}{by}"
        rows |= describe_extensions(model)
        kind = "exact to" if model.plan_.exact else "approximate"
        rows[kind] = _describe_precision(model)
        rows["form"] = f"{saved.info['fitted']['form']}, ξ stays free"
    else:
        rows |= describe_fit(model)
    if isinstance(model, Trained) and model.validation_share > 0:
        whose = "of the users" if model.folds_in else "of every user's items"
        rows["validated by"] = f"{model.validation_share:.0%} {whose}, which it was not trained on"
    rows |= {
        "data": f"{title}: {data['users']:,} users × {data['items']:,} items, {data['interactions']:,} interactions",
        "users": describe_users(saved),
        "saved in": f"{saved.path}, {in_bytes(saved.size)}",
        "time": f"{seconds['fit']:.1f} s to read and fit, {seconds['save']:.1f} s to save",
    }
    console.print(make_facts(rows))
    if isinstance(model, LinearAutoencoder) and model.l2 is None:
        console.print(
            "\n[yellow]Nothing was tuned:[/yellow] "
            "`relae tune DATA --out RUN` tells whether other parameters do better."
        )
    folder = shlex.quote(str(saved.path))
    console.print(
        f"\n[dim]Next:[/dim] relae serve {escape(folder)}\n"
        f"      relae recommend {escape(folder)} {escape(_write_example_option(saved))}",
        soft_wrap=True,
    )


def _describe_rank(model: HistoryRecommender, run: Run) -> str:
    names = list(run.models)
    rank = names.index(type(model).__name__.lower()) + 1
    return f"{run.path}, number {rank} of {len(names)} in its table by the {run.objective} of the test users"


def _write_example_option(saved: store.Saved) -> str:
    """Return an example option for `relae recommend`: two popular items as a history, or a known user."""
    model = saved.model
    if not model.folds_in and saved.histories is not None:
        return f"--for {shlex.quote(str(saved.histories.users.values[0]))}"
    popular = np.argsort(-model.item_counts_, kind="stable")[:2]
    return f"--history {shlex.quote(','.join(str(item) for item in model.items_.values[popular]))}"
