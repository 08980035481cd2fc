"""`relae plan`: show the cost of a fit on this machine, before anything is fitted."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from relae._common.words import in_bytes, in_time
from relae.cli._console import error_console, make_table, output_console, print_json
from relae.data import Interactions, Statistics
from relae.errors import PlanError
from relae.experiments import Columns, matrix_shape, read_data
from relae.solvers import SOLVERS, Forecast, Shape, Solver, as_solver, available_memory
from relae.solvers import plan as make_plan
from relae.store import forecast_size

_SIDE = 1536
_SECONDS = 0.3


def plan(
    source: str,
    columns: Mapping[str, Any],
    *,
    solver: str,
    dtype: str,
    neighbours: int,
    form: str,
    histories: bool,
    as_json: bool,
) -> None:
    """Show the cost of each solver, and which one a fit would choose; raise after the table if none can fit."""
    console = error_console()
    with console.status(f"reading {source}"):
        title, data = read_data(source, Columns(**columns))
    sizes = data.statistics()
    matrix = matrix_shape(data)
    available = available_memory()
    solvers = [as_solver(name, dtype=dtype, neighbours=neighbours) for name in SOLVERS]
    requested_solver = as_solver(solver, dtype=dtype, neighbours=neighbours)
    try:
        chosen: str | None = make_plan(*matrix, solver=requested_solver, available_bytes=available).solver
        refusal = None
    except PlanError as error:
        chosen, refusal = None, error
    forecasts = [each.forecast(Shape(*matrix)) for each in solvers]
    disk = {each.name: _forecast_disk(data, each, form, histories) for each in solvers}
    with console.status("measuring how fast this machine multiplies matrices"):
        rate = measure_gemm_rate(dtype)
    if as_json:
        print_json(
            {
                "title": title,
                "data": asdict(sizes),
                "available_bytes": available,
                "flops_per_second": rate,
                "chosen": chosen,
                "refusal": None if refusal is None else str(refusal),
                "solvers": [
                    {**asdict(entry), "estimated_seconds": entry.flops / rate, **asdict(disk[entry.solver])}
                    for entry in forecasts
                ],
            }
        )
    else:
        _show(output_console(), title, sizes, solvers, forecasts, disk, chosen, available, rate)
    if refusal is not None:
        raise refusal


def measure_gemm_rate(dtype: str) -> float:
    """Return the flops per second of a matrix product, measured in less than a second."""
    rng = np.random.default_rng(0)
    left, right = (rng.random((_SIDE, _SIDE)).astype(dtype) for _ in range(2))
    out = left @ right  # warm-up
    best, started = np.inf, time.perf_counter()
    while time.perf_counter() - started < _SECONDS:
        began = time.perf_counter()
        np.matmul(left, right, out=out)
        best = min(best, time.perf_counter() - began)
    return 2.0 * _SIDE**3 / best


@dataclass(frozen=True)
class _Disk:
    """The size of the model folder for one solver; None and 0 if it cannot be saved in the requested form."""

    saved_form: str | None
    disk_bytes: int
    fitted_bytes: int
    """The same with --form fitted."""


def _forecast_disk(data: Interactions, solver: Solver, form: str, histories: bool) -> _Disk:
    size = partial(forecast_size, data, solver, histories=histories)
    try:
        saved_form = solver.makes.saved_form(form)
    except ValueError:
        return _Disk(None, 0, size(form="fitted"))
    fitted = size(form="fitted")
    return _Disk(saved_form, fitted if saved_form == solver.name else size(form=form), fitted)


def _show(
    console: Console,
    title: str,
    sizes: Statistics,
    solvers: list[Solver],
    forecasts: list[Forecast],
    disk: Mapping[str, _Disk],
    chosen: str | None,
    available: int,
    rate: float,
) -> None:
    console.print(
        f"[bold]{escape(title)}[/bold]: {sizes.users:,} users × {sizes.items:,} items, "
        f"{sizes.interactions:,} interactions (density {sizes.density:.3%}, Gini of popularity {sizes.gini:.2f})"
    )
    console.print()
    shown = make_table("", "solver", ">square", ">memory", ">flops", ">time, estimated", ">model on disk")
    for solver, entry in zip(solvers, forecasts, strict=True):
        is_chosen = entry.solver == chosen
        unit = solver.grows_with if solver.exact else f"× {sizes.items:,} items"
        mark = "→" if is_chosen else "" if entry.added_bytes <= available else "✗"
        shown.add_row(
            mark,
            entry.solver,
            f"{entry.square:,}² {unit}",
            in_bytes(entry.added_bytes),
            f"{entry.flops:.1e}",
            in_time(entry.flops / rate),
            _describe_disk(disk[entry.solver]),
            style="bold" if is_chosen else "dim",
        )
    console.print(shown)
    console.print()
    console.print(
        f"{in_bytes(available)} of memory are available" + (f"; a fit chooses {chosen}" if chosen else "; nothing fits")
    )
    smaller = disk[chosen] if chosen else None
    if smaller is not None and smaller.fitted_bytes < smaller.disk_bytes:
        console.print(
            f"the model is saved in the {smaller.saved_form} form, which serves fastest: "
            f"{in_bytes(smaller.disk_bytes)}; --form fitted saves {in_bytes(smaller.fitted_bytes)}",
            soft_wrap=True,
        )
    console.print(
        f"[dim]The time is an estimate: the flops of the inverse at the {rate / 1e9:.0f} GFLOP/s of a small matrix "
        "product, measured just now; finding neighbours comes on top. Local is an approximation, taken where no exact "
        "form fits: each item is explained by its nearest ones only. Every ξ comes from one fit.[/dim]"
    )


def _describe_disk(disk: _Disk) -> str:
    return "–" if disk.saved_form is None else f"{in_bytes(disk.disk_bytes)}, {disk.saved_form}"
