"""`relae plan`: what a fit would cost here, before anything is fitted."""

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from relae.cli._console import errors, output, print_json, table
from relae.cli._data import Columns, read, shape
from relae.data.interactions import Statistics
from relae.errors import PlanError
from relae.solvers import SOLVERS, Forecast, available_memory, forecast, gigabytes
from relae.solvers import plan as make_plan

_SIDE = 1536
_SECONDS = 0.3


def plan(source: str, columns: Mapping[str, Any], *, solver: str, dtype: str, as_json: bool) -> None:
    """Show what each solver would take, and which one a fit would choose; a refusal comes after the table."""
    console = errors()
    with console.status(f"reading {source}"):
        title, data = read(source, Columns().but(columns))
    sizes = data.statistics()
    matrix = shape(data)
    available = available_memory()
    try:
        chosen: str | None = make_plan(*matrix, solver=solver, dtype=dtype, available_bytes=available).solver
        refusal = None
    except PlanError as error:
        chosen, refusal = None, error
    forecasts = [forecast(name, *matrix, dtype) for name in SOLVERS]
    with console.status("measuring how fast this machine multiplies matrices"):
        rate = gemm_rate(dtype)
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
                    {**asdict(entry), "estimated_seconds": entry.flops / rate, "disk_bytes": disk_bytes(entry, sizes)}
                    for entry in forecasts
                ],
            }
        )
    else:
        _show(output(), title, sizes, forecasts, chosen, available, rate)
    if refusal is not None:
        raise refusal


def gemm_rate(dtype: str) -> float:
    """Return the flops per second of a matrix product, measured in well under a second."""
    rng = np.random.default_rng(0)
    left, right = (rng.random((_SIDE, _SIDE)).astype(dtype) for _ in range(2))
    out = left @ right  # warm
    best, started = np.inf, time.perf_counter()
    while time.perf_counter() - started < _SECONDS:
        began = time.perf_counter()
        np.matmul(left, right, out=out)
        best = min(best, time.perf_counter() - began)
    return 2.0 * _SIDE**3 / best


def disk_bytes(entry: Forecast, sizes: Statistics) -> int:
    """Return the size of the saved model: the square, and the training data where it is needed or kept."""
    itemsize = np.dtype(entry.dtype).itemsize
    histories = sizes.interactions * 8 + 8 * sizes.users
    inverse = sizes.items * entry.square * (itemsize + 4) if entry.solver == "local" else itemsize * entry.square**2
    own = int(inverse) + 8 * 4 * sizes.items
    return own + histories * (2 if entry.solver == "dual" else 1)


def _show(
    console: Console,
    title: str,
    sizes: Statistics,
    forecasts: list[Forecast],
    chosen: str | None,
    available: int,
    rate: float,
) -> None:
    console.print(
        f"[bold]{escape(title)}[/bold]: {sizes.users:,} users × {sizes.items:,} items, "
        f"{sizes.interactions:,} interactions (density {sizes.density:.3%}, Gini of popularity {sizes.gini:.2f})"
    )
    console.print()
    shown = table("", "solver", ">square", ">memory", ">flops", ">time, estimated", ">model on disk")
    for entry in forecasts:
        is_chosen = entry.solver == chosen
        counted = {"primal": "items", "dual": "users", "local": f"× {sizes.items:,} items"}[entry.solver]
        mark = "→" if is_chosen else "" if entry.added_bytes <= available else "✗"
        shown.add_row(
            mark,
            entry.solver,
            f"{entry.square:,}² {counted}",
            gigabytes(entry.added_bytes),
            f"{entry.flops:.1e}",
            in_words(entry.flops / rate),
            gigabytes(disk_bytes(entry, sizes)),
            style="bold" if is_chosen else "dim",
        )
    console.print(shown)
    console.print()
    console.print(
        f"{gigabytes(available)} of memory are available"
        + (f"; a fit chooses {chosen}" if chosen else "; nothing fits")
    )
    console.print(
        f"[dim]The time is an estimate: the flops of the inverse at the {rate / 1e9:.0f} GFLOP/s of a small matrix "
        "product, measured just now; finding neighbours comes on top. Local is an approximation, taken where no exact "
        "form fits: each item is explained by its nearest ones only. Every ξ comes from one fit.[/dim]"
    )


def in_words(seconds: float) -> str:
    """Return a time as a person says it."""
    if seconds < 1:
        return "under 1 s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
