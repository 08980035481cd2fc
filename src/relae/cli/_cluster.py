"""A Dask cluster from the command line."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from relae.data import TableOptions, options_of
from relae.distributed import Dask, Partitions
from relae.errors import DataError, RelaeError
from relae.experiments import Columns
from relae.solvers import Solver


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Give a client of the scheduler at an address, None without one."""
    if address is None:
        yield None
        return
    try:
        import distributed
    except ImportError as error:
        raise RelaeError(f"{error.name} is not installed: pip install 'relae[dask]'") from error
    try:
        kind: Any = distributed.Client
        client = kind(address, timeout=10)
    except (OSError, ValueError, TimeoutError) as error:
        raise DataError(f"there is no Dask scheduler at {address}: {error or 'no answer within 10 s'}") from error
    with client:
        yield client


def on_cluster(solver: Solver, client: Any) -> Dask:
    """Return the solver on the workers of a cluster."""
    return Dask(client, solver.name, solver.neighbours, solver.nearest_by, dtype=solver.dtype)


def partitions(pattern: str, columns: Columns, client: Any) -> Partitions:
    """Return the Parquet files that a pattern names, as the workers see them."""
    of_all_rows = [name for name, option in options_of(TableOptions).items() if not option.by_row]
    changed = columns.changed("low_ratings", *of_all_rows, "half_life", "features")
    if changed:
        raise DataError(changed[0], " is for tables that are read here: leave it out with a pattern")
    return Partitions.from_parquet(
        pattern,
        client,
        **columns.keywords(by_row=True),
    )
