"""A cluster, data in files, and a hand that kills."""

import os
import signal
import warnings
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

pytest.importorskip("distributed", reason="the extra `dask` is not installed")

# Dask leaves sockets and event loops to the garbage collector when processes die.
NOISE = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


@contextmanager
def running(limit):
    from distributed import Client, LocalCluster

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        with (
            LocalCluster(
                n_workers=3, threads_per_worker=1, processes=True, memory_limit=limit, dashboard_address="127.0.0.1:0"
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client


def interactions(users, items, *, weighted=False, seed=0, per_user=12):
    """A matrix with popular and rare items, in which every user has something."""
    rng = np.random.default_rng(seed)
    columns = (items * rng.random((users, per_user)) ** 2).astype(int)
    dense = np.zeros((users, items), np.float32)
    dense[np.arange(users)[:, None], columns] = rng.integers(1, 6, columns.shape) if weighted else 1
    return sp.csr_array(dense)


def write_files(folder, x, count, *, name=lambda number: number, weight=False):
    """The rows of a matrix in some Parquet files; a user of a binary one may have an item twice."""
    folder.mkdir(exist_ok=True)
    for at, rows in enumerate(np.array_split(np.arange(x.shape[0]), count)):
        cells = x[rows].tocoo()
        table = pl.DataFrame(
            {
                "user": [name(int(rows[row])) for row in cells.coords[0]],
                "item": [name(int(column)) for column in cells.coords[1]],
                "weight": cells.data,
            }
        )
        if not weight:
            table = pl.concat([table, table.head(3)]).drop("weight")
        table.sample(fraction=1, shuffle=True, seed=at).write_parquet(folder / f"{at:03d}.parquet")
    return str(folder / "*.parquet")


class Killer:
    """Kills one worker that holds what it shall lose, at the first report beyond a fraction."""

    def __init__(self, client, after, holding, also=lambda: None):
        self.client, self.after, self.holding, self.also, self.lost = client, after, holding, also, []

    def __call__(self, stage, fraction):
        if self.lost or not self.after <= fraction < 1:
            return
        held = {
            worker: [key for key in keys if key.startswith(self.holding)]
            for worker, keys in self.client.has_what().items()
        }
        victim = max(held, key=lambda worker: len(held[worker]))
        if held[victim]:
            self.also()
            self.lost = held[victim]
            os.kill(self.client.run(os.getpid, workers=[victim])[victim], signal.SIGKILL)
