"""A cluster of four single-threaded processes beside this machine alone: time, agreement, memory of the workers.

`python -m benchmarks.distributed [ml-1m] [square] [recommend] [--items 18000 --limit 1GiB --alone]`; ml-1m and
recommend need RELAE_DATA. Prints one JSON line per figure. The processes share this machine's cores, so that nothing
can be gained here: the ratio is what the cluster costs.
"""

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from distributed import Client, LocalCluster

from benchmarks._machine import describe
from relae import RDLAE, algebra, datasets
from relae.batch import recommend_to_parquet
from relae.distributed import Dask
from relae.ranking import rank
from relae.solvers import solve

WORKERS = 4


@contextmanager
def cluster(limit: str) -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, memory_limit=limit, dashboard_address="127.0.0.1:0"
        ) as made,
        Client(made) as client,
    ):
        yield client


class Memory:
    """The largest resident bytes of any worker, and of all of them together, while something runs."""

    def __init__(self, client: Client) -> None:
        self._client, self._stop = client, threading.Event()
        self.one = self.all = self.spilled = 0.0

    def __enter__(self) -> "Memory":
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
            known = self._client.sync(self._client.scheduler.identity, n_workers=-1)["workers"]
            found = [each["metrics"] for each in known.values()]
            used = [float(each["memory"]) for each in found]
            self.one, self.all = max([self.one, *used]), max(self.all, sum(used))
            self.spilled = max(self.spilled, sum(float(each["spilled_bytes"]["disk"]) for each in found))

    def figures(self) -> dict[str, float]:
        return {
            "largest_worker_gb": round(self.one / 1e9, 2),
            "all_workers_gb": round(self.all / 1e9, 2),
            "spilled_gb": round(self.spilled / 1e9, 2),
        }


def show(**figures: Any) -> None:
    print(json.dumps({"benchmark": "distributed", **figures}), flush=True)


def agreement(one: Any, other: Any, x: Any, penalty: Any, xi: float, k: int = 100) -> float:
    """Share of the top-k positions that are the same."""
    same = total = 0
    for start in range(0, x.shape[0], 1000):
        histories = x[start : start + 1000]
        ids = [
            rank(
                inverse.project(histories),
                k,
                scale=-algebra.column_weights(penalty, inverse.diagonal(), xi).astype(inverse.dtype),
                seen=histories,
            )[0]
            for inverse in (one, other)
        ]
        same, total = same + int((ids[0] == ids[1]).sum()), total + ids[0].size
    return same / total


def ml1m(limit: str) -> None:
    x = datasets.get("ml-1m").load().matrix
    penalty = algebra.penalty(np.asarray(x.multiply(x).sum(axis=0)).ravel(), 200.0, 0.3)
    with cluster(limit) as client:
        for solver in ("local", "primal"):
            for work in ("first", "again"):  # the first fit wakes the compiler in every process
                start = time.perf_counter()
                alone = solve(x, penalty, solver=solver)
                middle = time.perf_counter()
                with Memory(client) as memory:
                    together = solve(x, penalty, solver=Dask(client, solver))
                    done = time.perf_counter()
                show(
                    data="ml-1m",
                    solver=solver,
                    work=work,
                    alone_s=round(middle - start, 2),
                    cluster_s=round(done - middle, 2),
                    same_top_100=agreement(alone.inverse, together.inverse, x, penalty, 0.4),
                    residual=together.residual,
                    **memory.figures(),
                )


def square(limit: str, items: int, compare: bool) -> None:
    """A dense square of which the lower triangle alone is larger than what one worker could hold beside its work."""
    rng = np.random.default_rng(0)
    users, each = 2 * items, 30
    columns = (items * rng.random(users * each) ** 2).astype(np.int32)
    x = sp.csr_array((np.ones(users * each, np.float32), columns, np.arange(0, users * each + 1, each)), (users, items))
    x.sum_duplicates()
    x.data[:] = 1
    penalty = algebra.penalty(np.asarray(x.multiply(x).sum(axis=0)).ravel(), 50.0, 0.3)
    with cluster(limit) as client, tempfile.TemporaryDirectory() as scratch:
        stages: dict[str, float] = {}
        start = time.perf_counter()
        with Memory(client) as memory:
            found = solve(
                x,
                penalty,
                progress=lambda _, done: stages.__setitem__(f"{int(3 * done - 1e-9)}", time.perf_counter() - start),
                solver=Dask(client, "primal", scratch=scratch),
            )
            took = time.perf_counter() - start
        forecast = found.plan.chosen.added_bytes / WORKERS
        show(
            data="random",
            items=items,
            square_gb=round(4e-9 * items**2, 2),
            limit=limit,
            forecast_worker_gb=round(forecast / 1e9, 2),
            cluster_s=round(took, 1),
            thirds_s=[round(value, 1) for value in stages.values()],
            gflops=round(items**3 / took / 1e9, 1),
            residual=found.residual,
            **memory.figures(),
        )
        if compare:
            start = time.perf_counter()
            alone = solve(x, penalty, solver="primal")
            took = time.perf_counter() - start
            same = agreement(alone.inverse, found.inverse, x[:2000], penalty, 0.4)
            show(data="random", items=items, alone_s=round(took, 1), same_top_100=same)


def recommendations(limit: str) -> None:
    data = datasets.get("ml-1m").load()
    model = RDLAE(200, 0.3, 0.4).fit(data)
    with cluster(limit) as client, tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder, "model"))
        for work in ("first", "again"):
            start = time.perf_counter()
            files = recommend_to_parquet(client, Path(folder, "model"), data, Path(folder, work), 100)
            took = time.perf_counter() - start
            show(
                data="ml-1m", work=f"recommend, {work}", users=data.n_users, files=len(files), cluster_s=round(took, 2)
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", default=["ml-1m", "square", "recommend"])
    parser.add_argument("--items", type=int, default=18_000)
    parser.add_argument("--limit", default="1GiB", help="of a worker, for the square")
    parser.add_argument("--alone", action="store_true", help="invert the square on this machine alone as well")
    given = parser.parse_args()
    print(json.dumps(describe()), flush=True)
    if "ml-1m" in given.parts:
        ml1m("4GiB")
    if "square" in given.parts:
        square(given.limit, given.items, given.alone)
    if "recommend" in given.parts:
        recommendations("4GiB")


if __name__ == "__main__":
    main()
