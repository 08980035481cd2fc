"""Fit on a Dask cluster from the command line."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from relae.data import TableOptions, options_of
from relae.distributed import Dask, Partitions
from relae.errors import DataError, RelaeError
from relae.experiments import Columns
from relae.solvers import Solver


@contextmanager
def connect(address: str | None) -> Iterator[Any]:
    """Yield a client of the Dask scheduler at `address`, or None if there is no address."""
    if address is None:
        yield None
        return
    try:
        import distributed
    except ImportError as error:
        raise RelaeError(f"{error.name} is not installed: pip install 'relae[dask]'") from error
    try:
        client_type: Any = distributed.Client
        client = client_type(address, timeout=10)
    except (OSError, ValueError, TimeoutError) as error:
        raise DataError(f"there is no Dask scheduler at {address}: {error or 'no answer within 10 s'}") from error
    with client:
        yield client


def make_cluster_solver(solver: Solver, client: Any) -> Dask:
    """Return the same solver, run by the workers of a cluster."""
    return Dask(client, solver.name, solver.neighbours, solver.nearest_by, dtype=solver.dtype)


def open_partitions(pattern: str, columns: Columns, client: Any) -> Partitions:
    """Return the Parquet files that match a pattern, for the workers to read."""
    whole_table_options = [name for name, option in options_of(TableOptions).items() if not option.by_row]
    changed = columns.changed("low_ratings", *whole_table_options, "features")
    if changed:
        raise DataError(changed[0], " is for tables that are read here: leave it out with a pattern")
    return Partitions.from_parquet(
        pattern,
        client,
        **columns.keywords(by_row=True),
    )
