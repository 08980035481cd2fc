"""The next item on ML-1M: fit and request beside RDLAE's, and accuracy beside its rivals.

All ratings, users and items with at least five, the last item of each user hidden (the one before it for validation),
ranked among all items that the user has not had; ratings of the same second are in the order of the file. With one
hidden item, recall@10 is the hit rate.

`python -m benchmarks.next_item speed` prints seconds and their ratio to RDLAE's, on all cores and in CPU seconds of one
thread; `… accuracy` the models that need no training; `… seconds` the same with ties by item; `… sasrec MINUTES` trains
SASRec. Needs RELAE_DATA with ml-1m.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from benchmarks._machine import seconds
from relae import EASE, RDLAE, Interactions
from relae.baselines import ItemKNN, LastItemKNN, Markov, Popularity, SASRec
from relae.evaluation import Evaluation, Split, evaluate, leave_last_out
from relae.models import NextItem


def load(*, by_file: bool = True) -> Interactions:
    """ML-1M with at least five ratings of every user and item; times are places in the sorted file, or seconds."""
    table = pl.read_csv(os.path.join(os.environ["RELAE_DATA"], "ml-1m", "interactions.csv.gz"))
    rows = -1
    while len(table) != rows:
        rows = len(table)
        table = table.filter(pl.len().over("item") >= 5).filter(pl.len().over("user") >= 5)
    table = table.sort("timestamp", maintain_order=True).with_row_index("place")
    users, user = np.unique(table["user"].to_numpy(), return_inverse=True)
    items, item = np.unique(table["item"].to_numpy(), return_inverse=True)
    times = table["place" if by_file else "timestamp"].to_numpy().astype(np.int64)
    matrix = sp.csr_array((np.ones(len(user), np.float32), (user, item)), shape=(len(users), len(items)))
    matrix.sum_duplicates()
    return Interactions(matrix, users, items, times=times[np.lexsort((item, user))])


def divide(*, by_file: bool = True) -> tuple[Split, Split]:
    """The item before the last of each user, and the last."""
    test = leave_last_out(load(by_file=by_file))
    return leave_last_out(test.train), test


def judge(model: Any, split: Split, name: str) -> Evaluation:
    """Print hit@10 and ndcg@10 with their intervals."""
    result = evaluate(model, split, ["recall", "ndcg"], [10], name=name)
    figures = {
        f"{each.metric}@{each.k}": [round(value, 4) for value in (each.mean, each.low, each.high)]
        for each in result.estimates()
    }
    print(json.dumps({"model": name, "users": len(split.users), **figures}), flush=True)
    return result


def accuracy(*, by_file: bool) -> None:
    valid, test = divide(by_file=by_file)
    models = (
        Popularity(),
        ItemKNN(),
        EASE(),
        LastItemKNN(),
        LastItemKNN(last=5),
        Markov(),
        NextItem(length=1),
        NextItem(fading=0.0),
        NextItem(),
    )
    for model in models:
        started = time.perf_counter()
        model.fit(valid.train)
        print(json.dumps({"model": repr(model), "fit_seconds": round(time.perf_counter() - started, 2)}), flush=True)
        judge(model, valid, f"{model!r}, validation")
        judge(model, test, f"{model!r}, test, fitted without the validation items")
        judge(model.fit(test.train), test, f"{model!r}, test")


def sasrec(minutes: float) -> None:
    import torch

    torch.set_num_threads(1)
    valid, test = divide()
    model = SASRec(learning_rate=2e-3, batch_size=128, every=2, patience=5, objective="ndcg@10")
    model.fit(valid.train, validation=valid, time_budget=60 * minutes)
    print(json.dumps({"model": repr(model), **model.facts()}), flush=True)
    judge(model, valid, "SASRec, validation")
    judge(model, test, "SASRec, test")


def speed() -> None:
    """Fits and single requests, each pair measured in turns; the ratio is that of the least times."""
    import numba
    from threadpoolctl import threadpool_limits

    data = load()
    models: dict[str, Any] = {"RDLAE": RDLAE().fit(data), "NextItem": NextItem().fit(data)}
    lists = [data.items.take(row.indices[np.argsort(row_times)]).tolist() for row, row_times in _users(data, 300)]

    def report(what: str, works: dict[str, Callable[[], object]], clock: Callable[[], float], repeats: int) -> None:
        least = dict.fromkeys(works, np.inf)
        for _ in range(repeats):
            for name, work in works.items():
                started = clock()
                work()
                least[name] = min(least[name], clock() - started)
        figures = {name: round(value, 4) for name, value in least.items()}
        print(
            json.dumps({"benchmark": what, **figures, "ratio": round(least["NextItem"] / least["RDLAE"], 2)}),
            flush=True,
        )

    fits = {"RDLAE": lambda: RDLAE().fit(data), "NextItem": lambda: NextItem().fit(data)}
    requests = {
        name: lambda model=model: [model.recommend(each, 10) for each in lists] for name, model in models.items()
    }
    report("fit, all cores", fits, time.perf_counter, 5)
    report("300 requests, all cores", requests, time.perf_counter, 5)
    with threadpool_limits(1):
        numba.set_num_threads(1)
        report("fit, CPU seconds of one thread", fits, time.process_time, 3)
        report("300 requests, CPU seconds of one thread", requests, time.process_time, 5)
    print(
        json.dumps(
            {
                "benchmark": "order of all histories",
                "seconds": round(seconds(lambda: models["NextItem"].weigh(data.matrix, data.times), 3), 3),
            }
        )
    )


def _users(data: Interactions, count: int) -> Any:
    rows = np.random.default_rng(0).choice(data.n_users, count, replace=False)
    for row in rows:
        assert data.times is not None
        yield data.matrix[[row]], data.times[data.matrix.indptr[row] : data.matrix.indptr[row + 1]]


def main(words: list[str]) -> None:
    what = words[0] if words else "speed"
    if what == "sasrec":
        sasrec(float(words[1]) if len(words) > 1 else 45.0)
    elif what in ("accuracy", "seconds"):
        accuracy(by_file=what == "accuracy")
    else:
        speed()


if __name__ == "__main__":
    main(sys.argv[1:])
