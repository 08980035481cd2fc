"""The local solver beside the exact one: quality, time and size over the number of neighbours.

`python -m benchmarks.local ml-1m | gowalla`: a table of K. `python -m benchmarks.local update`: new users by update and
by refit, n = 10,000. `python -m benchmarks.local table FILE USER ITEM K`: a table with a tenth of its users held out,
beside popularity, item-KNN, and SANSA where it is installed. `python -m benchmarks.local folder FOLDER K`: streaming
read, fit, save and 1,000 recommendations of a folder of Parquet files (columns user, item), in one process. Real data
with RELAE_DATA set to a folder that contains it.
"""

import json
import logging
import resource
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import numpy as np
import psutil
import scipy.sparse as sp

from relae import EASE, RDLAE, Interactions, datasets, store
from relae.baselines import ItemKNN, Popularity
from relae.evaluation import Split, evaluate, given_split, hold_out_users, strong_lists
from relae.linalg import as_csr, sparse_sparse
from relae.recommender import HistoryRecommender, Parameter
from relae.solvers import Local, Solver

METRICS, KS = ["ndcg", "tail_ndcg"], [100]
SETTINGS = {"ml-1m": (200.0, 0.3, 0.3), "gowalla": (70.0, 0.5, 0.4)}


def split_of(name: str) -> Split:
    dataset = datasets.get(name)
    if dataset.heldout is None:
        return hold_out_users(dataset.load(), share=0.16, rng=np.random.default_rng(0))
    lists = strong_lists(dataset.pairs(), dataset.heldout)
    n = 1 + max(int(part.items.max()) for part in lists)
    train, _, _, test_in, test = (Interactions.from_lists(part, 1 + int(part.owners.max()), n) for part in lists)
    return given_split(train, test, test_in)


def over_k(name: str, ks: list[int]) -> None:
    l2, dropout, xi = SETTINGS[name]
    split = split_of(name)
    for count in ks:
        judged(name, RDLAE(l2, dropout, xi), split, f"local {count}", Local(count))
    exact = RDLAE(l2, dropout, xi)
    judged(name, exact, split, "exact", "exact")
    for count in (100, 200):
        started = perf_counter()
        small = exact.compact(split.train, per_item=count)
        figures(name, small, split, f"compact {count}", perf_counter() - started)


def judged(name: str, model: RDLAE, split: Split, kind: str, solver: Solver | str) -> None:
    started = perf_counter()
    model.fit(split.train, solver=solver)
    figures(name, model, split, kind, perf_counter() - started)


def figures(name: str, model: RDLAE, split: Split, kind: str, seconds: float) -> None:
    found = evaluate(model, split, METRICS, KS)
    n = len(model.items_)
    entries = model.inverse_.columns.nnz if model.inverse_.solver == "local" else n * n
    line = {
        "benchmark": "local",
        "data": name,
        "model": kind,
        "fit_s": round(seconds, 1),
        "ndcg@100": round(found["ndcg@100"], 4),
        "tail_ndcg@100": round(found["tail_ndcg@100"], 4),
        "model_mb": round(entries * (8 if model.inverse_.solver == "local" else 4) / 1e6, 1),
        "residual": float(f"{model.residual_:.0e}"),
    }
    print(json.dumps(line), flush=True)


def update(n: int = 10_000, users: int = 50_000) -> None:
    """1% new users."""
    rng = np.random.default_rng(0)
    popularity = 1.0 / np.arange(1, n + 1) ** 0.8
    columns = rng.choice(n, 40 * users, p=popularity / popularity.sum())
    rows = np.repeat(np.arange(users), 40)
    x = sp.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(users, n))
    x.data[:] = 1.0
    old, new = x[: int(0.99 * users)], x[int(0.99 * users) :]
    fits, updates, agreement = [], [], 0.0
    model = EASE(200.0).fit(old, solver="primal")
    for _ in range(3):
        started = perf_counter()
        refit = EASE(200.0).fit(x, solver="primal")
        fits.append(perf_counter() - started)
        started = perf_counter()
        updated = model.update(new)
        updates.append(perf_counter() - started)
        agreement = float((updated.recommend(x[:5000], 100)[0] == refit.recommend(x[:5000], 100)[0]).mean())
    line = {
        "benchmark": "update",
        "items": n,
        "users": users,
        "new_users": new.shape[0],
        "refit_s": round(float(np.median(fits)), 2),
        "update_s": round(float(np.median(updates)), 2),
        "update_over_refit": round(float(np.median(updates) / np.median(fits)), 3),
        "top100_positions_equal": round(agreement, 5),
    }
    print(json.dumps(line), flush=True)


def table(path: str, user: str, item: str, count: int) -> None:
    """A table as it is, beside what everybody has at hand."""
    data = Interactions.read(path, user=user, item=item)
    split = hold_out_users(data, share=0.1, rng=np.random.default_rng(0))
    rivals = [Popularity(), ItemKNN(), RDLAE(dropout=0.3, xi=0.3)]
    if find_spec("implicit") is not None:
        rivals.append(ImplicitKnn())
    if find_spec("sansa") is not None:  # needs SuiteSparse's headers
        rivals += [Sansa(l2, density) for density in (1e-5, 5e-5) for l2 in (1.0, 10.0)]
    for model in rivals:
        started = perf_counter()
        model.fit(split.train, **({"solver": Local(count)} if isinstance(model, RDLAE) else {}))
        seconds = perf_counter() - started
        found = evaluate(model, split, METRICS, [20, 100])
        line = {
            "benchmark": "table",
            "users": data.n_users,
            "items": data.n_items,
            "interactions": data.n_interactions,
            "model": repr(model),
            "fit_s": round(seconds, 1),
            **{name: round(found[name], 4) for name in ("ndcg@20", "ndcg@100", "tail_ndcg@100")},
            "judged": len(split.users),
            "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        }
        print(json.dumps(line), flush=True)


class ImplicitKnn(HistoryRecommender):
    """implicit's item-KNN by cosine behind our protocol, so that lists are made and judged alike."""

    PARAMETERS = (Parameter("neighbours", 100, low=1, whole=True),)

    def __init__(self, neighbours: int = 100) -> None:
        self.neighbours = neighbours

    def fit(self, data: Interactions, *, progress: object = None) -> "ImplicitKnn":
        from implicit.nearest_neighbours import CosineRecommender

        found = CosineRecommender(K=self.neighbours)
        found.fit(sp.csr_matrix(data.matrix), show_progress=False)
        self.similarity_ = as_csr(sp.csr_array(found.similarity), np.float32)
        self.remember(data)
        return self

    def project(self, batch: sp.csr_array) -> np.ndarray:
        return sparse_sparse(batch, self.similarity_)

    def users_at_once(self) -> int:
        return 100

    @property
    def score_dtype(self) -> np.dtype:
        return np.dtype(np.float32)


class Sansa(HistoryRecommender):
    """SANSA (Spišák et al., RecSys 2023), a sparse approximation of EASE, behind our protocol."""

    PARAMETERS = (Parameter("l2", 10.0, low=0), Parameter("density", 5e-5, low=0))

    def __init__(self, l2: float = 10.0, density: float = 5e-5) -> None:
        self.l2, self.density = l2, density

    def fit(self, data: Interactions, *, progress: object = None) -> "Sansa":
        from sansa import SANSA, ICFGramianFactorizerConfig, SANSAConfig, UMRUnitLowerTriangleInverterConfig

        logging.disable()
        parts = (ICFGramianFactorizerConfig(), UMRUnitLowerTriangleInverterConfig(scans=1, finetune_steps=5))
        self.remember(data)
        self.known_ = np.flatnonzero(self.item_counts_)  # it stops at an item without users
        found = SANSA(SANSAConfig(self.l2, self.density, *parts)).fit(sp.csr_matrix(data.matrix[:, self.known_]))
        self.left_, self.right_ = (as_csr(part, np.float32) for part in found.weights)
        return self

    def project(self, batch: sp.csr_array) -> np.ndarray:
        scores = np.full(batch.shape, -np.inf, np.float32)
        coded = as_csr(batch[:, self.known_] @ self.left_, np.float32)
        scores[:, self.known_] = sparse_sparse(coded, self.right_)
        return scores

    def users_at_once(self) -> int:
        return 100

    @property
    def score_dtype(self) -> np.dtype:
        return np.dtype(np.float32)


def folder(path: str, count: int) -> None:
    """Everything in one process, so that its peak is that of the whole way."""
    seconds = {}
    started = perf_counter()
    data = Interactions.read(path)
    seconds["read"] = perf_counter() - started
    started = perf_counter()
    model = RDLAE(20.0, 0.3, 0.3).fit(data, solver=Local(count))
    seconds["fit"] = perf_counter() - started
    with tempfile.TemporaryDirectory() as scratch:
        started = perf_counter()
        model.save(Path(scratch, "model"), form="auto")
        seconds["save"] = perf_counter() - started
        started = perf_counter()
        saved = store.open_model(Path(scratch, "model"))
        seconds["open"] = perf_counter() - started
        started = perf_counter()
        saved.model.recommend(data.matrix[:1000], 20)
        seconds["recommend 1,000"] = perf_counter() - started
        size = saved.size
    line = {
        "benchmark": "folder",
        "users": data.n_users,
        "items": data.n_items,
        "interactions": data.n_interactions,
        "neighbours": count,
        **{name: round(value, 1) for name, value in seconds.items()},
        "model_gb": round(size / 1e9, 2),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "residual": float(f"{model.residual_:.0e}"),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
    }
    print(json.dumps(line), flush=True)


def main(arguments: list[str]) -> None:
    what = arguments[0] if arguments else "ml-1m"
    if what == "update":
        update()
    elif what == "table":
        table(arguments[1], arguments[2], arguments[3], int(arguments[4]))
    elif what == "folder":
        folder(arguments[1], int(arguments[2]))
    else:
        over_k(what, [int(k) for k in arguments[1].split(",")] if len(arguments) > 1 else [50, 100, 200, 500])


if __name__ == "__main__":
    main(sys.argv[1:])
