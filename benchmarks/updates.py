"""Changes of a fitted model beside a refit: `python -m benchmarks.updates [ITEMS [USERS [PER_USER]]]`.

A hundredth of the users comes back with three more items each, and a hundredth is forgotten, with and without dropout:
a line says how much of the refit's time that takes (CPU seconds of one process), and how much of the top 100 of 1,000
users is the same. `python -m benchmarks.updates many COUNT`: single users who come back one after the other, and the
error after them. Set OPENBLAS_NUM_THREADS=1 to compare the work.
"""

import json
import sys
from functools import partial
from time import process_time

import numpy as np
import scipy.sparse as sp

from relae import DataError, Interactions
from relae.models import RDLAE

SHARE, MORE, LISTS, ROUNDS = 0.01, 3, 1_000, 2


def make_data(items: int, users: int, per_user: float, seed: int = 0) -> Interactions:
    """Users with a geometric number of items, which are drawn by Zipf's law."""
    rng = np.random.default_rng(seed)
    counts = np.minimum(3 + rng.geometric(1 / max(per_user - 3, 1), users), items // 4)
    popularity = 1 / (10.0 + np.arange(items))
    columns = rng.choice(items, counts.sum(), p=popularity / popularity.sum())
    cells = np.unique(np.repeat(np.arange(users), counts) * items + columns)
    x = sp.csr_array((np.ones(len(cells), np.float32), (cells // items, cells % items)), shape=(users, items))
    return Interactions(x, [f"user {row}" for row in range(users)], [f"item {column}" for column in range(items)])


def later_events(data: Interactions, rows: np.ndarray, seed: int) -> Interactions:
    """Return a few more items of some users, drawn by popularity."""
    rng = np.random.default_rng(seed)
    counts = np.bincount(data.matrix.indices, minlength=data.n_items) + 1.0
    columns = rng.choice(data.n_items, (len(rows), MORE), p=counts / counts.sum())
    x = np.zeros((len(rows), data.n_items), np.float32)
    x[np.arange(len(rows))[:, None], columns] = 1.0
    return Interactions(sp.csr_array(x), data.users.values[rows], data.items)


def timed(work):
    """Return what some work returns, and its CPU seconds."""
    started = process_time()
    result = work()
    return result, process_time() - started


def agreement(ours: RDLAE, theirs: RDLAE, data: Interactions) -> float:
    """Return the share of the places in the top 100 that are the same."""
    left, right = (each.recommend(data.matrix[:LISTS], 100)[0] for each in (ours, theirs))
    return float((left == right).mean())


def compare(items: int, users: int, per_user: float) -> None:
    """Print a line for each kind of change and dropout."""
    data = make_data(items, users, per_user)
    rng = np.random.default_rng(1)
    RDLAE(10.0, 0.3).fit(make_data(200, 300, 8)).update(make_data(200, 2, 4, seed=5).replace(users=["a", "b"]))
    for dropout in (0.0, 0.3):
        model = RDLAE(100.0, dropout, 0.3).fit(data, solver="primal")
        rows = rng.choice(users, int(SHARE * users), replace=False)
        events, gone = later_events(data, rows, 2), data.users.values[rows]
        for what, change, after in (
            ("update", partial(model.update, events, data), data.joined(events)),
            ("forget", partial(model.forget, gone, data), data.without_users(gone)),
        ):
            line = {"benchmark": "updates", "what": what, "items": items, "users": users, "changed": len(rows)}
            line |= {"dropout": dropout, "interactions": data.n_interactions}
            try:
                changes = [timed(change) for _ in range(ROUNDS)]
            except DataError as error:
                print(json.dumps(line | {"refused": str(error)}), flush=True)
                continue
            again = partial(RDLAE(100.0, dropout, 0.3).fit, after, solver="primal")
            refits = [timed(again) for _ in range(ROUNDS)]
            (changed, _), (refit, _) = changes[0], refits[0]
            ours, theirs = (min(seconds for _, seconds in each) for each in (changes, refits))
            line |= {"change_s": round(ours, 2), "refit_s": round(theirs, 2), "ratio": round(ours / theirs, 3)}
            line |= {"same_top_100": agreement(changed, refit, after), "residual": changed.residual_}
            print(json.dumps(line | {"refit_residual": refit.residual_}), flush=True)
            del changes, refits, changed, refit


def many(count: int) -> None:
    """Print the error after each hundredth of many single changes, and how much of a refit's lists is the same."""
    data = make_data(1_500, 3_000, 20)
    for dropout in (0.0, 0.3):
        now = data
        model = RDLAE(100.0, dropout, 0.3).fit(now, solver="primal")
        started, rng = process_time(), np.random.default_rng(3)
        line = {"benchmark": "many updates", "dropout": dropout, "residual_of_fit": model.residual_}
        for at in range(1, count + 1):
            row = rng.choice(now.n_users, 1)
            if at % 2:
                events = later_events(now, row, at)
                model, now = model.update(events, now), now.joined(events)
            else:
                gone = now.users.values[row]
                model, now = model.forget(gone, now), now.without_users(gone)
            if at % max(count // 10, 1) == 0:
                refit = RDLAE(100.0, dropout, 0.3).fit(now, solver="primal")
                same = agreement(model, refit, now)
                print(json.dumps(line | {"changes": at, "residual": model.residual_, "same_top_100": same}), flush=True)
        print(json.dumps(line | {"changes": count, "s_per_change": (process_time() - started) / count}), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["many"]:
        many(int(sys.argv[2]))
    else:
        sizes = [*map(float, sys.argv[1:]), *(10_000, 20_000, 12.0)[len(sys.argv) - 1 :]]
        compare(int(sizes[0]), int(sizes[1]), sizes[2])
