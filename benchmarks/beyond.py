"""DAN, tuned on validation users and then judged by the test users once; and what its free dials cost.

`python -m benchmarks.beyond weak|strong BUDGET [USERS]` searches l2, dropout and the user norm by BUDGET inversions,
with the dials ξ and α of each, on Gowalla: weak generalization, the last tenth of every user's training items as the
validation (of USERS of them, to save time), or the paper's strong split with its validation users. Trials are kept in
benchmarks/cache; the same command goes on, and ends with the test. `python -m benchmarks.beyond sweep` measures 11 × 11
dials beside the inverse. `python -m benchmarks.beyond curve` follows each dial on ML-1M; `cold` fits ML-1M with genres
and years, a tenth of the films new. Needs RELAE_DATA with gowalla and ml-1m.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
import polars as pl

from relae.baselines import ContentKNN, Popularity, Random
from relae.data import Ids, Lists, datasets
from relae.evaluation import (
    Evaluation,
    Split,
    evaluate,
    given_split,
    hold_out_new_items,
    hold_out_users,
    paper_splits,
    strong_lists,
)
from relae.models import DAN, EASE, RDLAE, Dial
from relae.tuning import Constraint, Journal, Search, Trial, Tuning, planned, tune

CACHE = Path(__file__).parent / "cache"
METRICS = ["ndcg", "recall", "tail_ndcg", "unbiased_ndcg"]


def splits(protocol: str, users: int) -> tuple[Split, Split]:
    """The validation, and the test."""
    dataset = datasets.get("gowalla")
    if protocol == "strong":
        assert dataset.heldout is not None
        return paper_splits(strong_lists(dataset.pairs(), dataset.heldout))
    train, truth = dataset.weak()
    valid = given_split(*last_of_each(train, 0.1))
    chosen = np.sort(np.random.default_rng(0).choice(len(valid.users), min(users, len(valid.users)), replace=False))
    some = valid.histories[chosen], valid.truth[chosen]
    return Split(valid.train, Ids(valid.users.values[chosen]), *some, valid.protocol), given_split(train, truth)


def last_of_each(lists: Lists, share: float) -> tuple[Lists, Lists]:
    """Divide every user's items by their order in the file: the first ones, and the last share of them.

    The published division is no random one. Towards the end of the lines popular items become more frequent, from 5.9%
    in the first tenth of the lines to 7.9% in the last one (items with 300 users or more), and in the test file they
    are 9.5%: the test is what follows.
    """
    sizes = np.bincount(lists.users)[lists.users]
    starts = np.searchsorted(lists.users, lists.users)  # lines are in the order of users
    late = np.arange(len(lists.users)) - starts >= np.minimum(np.ceil((1 - share) * sizes), sizes - 1)
    late &= sizes > 1
    first, last = (Lists(lists.users[part], lists.items[part], lists.owners) for part in (~late, late))
    return first, last


# l2, dropout, β to begin with: what the paper's authors and those of DAN found good for data like this
START = {"weak": [(25.0, 0.7, 0.6), (25.0, 0.6, 0.3), (12.0, 0.75, 0.6), (40.0, 0.8, 0.4)], "strong": []}


class Seeded:
    """A search that begins with given settings."""

    def __init__(self, search: Search, settings: Sequence[tuple[float, float, float]]) -> None:
        self.search, self.settings = search, settings
        self.size, self.dials = search.size, search.dials

    def next(self, trials: Sequence[Trial]) -> tuple[float, float, float] | None:
        done = {(trial.l2, trial.dropout, trial.user_norm) for trial in trials}
        return next((each for each in self.settings if each not in done), None) or self.search.next(trials)


def search(protocol: str, budget: int, users: int) -> None:
    valid, test = splits(protocol, users)
    k = 20 if protocol == "weak" else 100
    purpose = {"protocol": protocol, "users": len(valid.users)}
    with Journal(CACHE / f"beyond-{protocol}-{len(valid.users)}.jsonl", purpose) as journal:
        auto = planned("auto", valid, f"ndcg@{k}", budget, None, norms=True)
        result = tune(
            valid,
            Seeded(auto, START[protocol]),
            objective=f"ndcg@{k}",
            budget=budget,
            metrics=METRICS,
            journal=journal,
            on_trial=shown,
        )
    print(result.to_markdown())
    points = {"most ndcg": result.best()}
    kept = Tuning(f"tail_ndcg@{k}", Constraint(f"ndcg@{k}", 0.005), result.trials)
    points["most tail for half a percent of ndcg"] = kept.best()
    for name, point in points.items():
        model = point.model("DAN").fit(test.train)
        for mode in ("standard", "paper"):
            found = evaluate(model, test, METRICS, [k], mode=mode)  # type: ignore[arg-type]
            means = {key: round(value, 4) for key, value in found.means.items()}
            print(json.dumps({"choice": name, **point.parameters, "mode": mode, **means}), flush=True)


def shown(trial: Trial, so_far: Tuning) -> None:
    name = so_far.objective
    here = max(trial.points, key=lambda point: point[name])
    line = {**here.parameters, **{key: round(value, 5) for key, value in here.metrics.items()}}
    print(json.dumps(line | {"fit": trial.fit_seconds, "sweep": trial.evaluate_seconds}), flush=True)


def sweep() -> None:
    """Gowalla, strong and weak: all validation users and 121 dials, beside the time of the fit."""
    dials = [Dial(round(0.1 * xi, 1), round(0.05 * norm, 2)) for norm in range(11) for xi in range(11)]
    for protocol in ("strong", "weak"):
        valid, _ = splits(protocol, 30_000)
        started = perf_counter()
        model = DAN(25.0, 0.6, user_norm=0.3).fit(valid.train)
        fitted = perf_counter()
        model = model.for_many(len(valid.users), dials)
        unfolded = perf_counter()
        evaluate(model, valid, ["ndcg"], [20], xis=dials)
        line = {
            "benchmark": f"sweep {protocol}",
            "users": len(valid.users),
            "fit s": round(fitted - started, 1),
            "unfold s": round(unfolded - fitted, 1),
            "sweep s": round(perf_counter() - unfolded, 1),
            "ratio": round((perf_counter() - fitted) / (fitted - started), 2),
        }
        print(json.dumps(line), flush=True)


def curve() -> None:
    """Accuracy and tail on ML-1M along each dial, from one inverse."""
    data = datasets.get("ml-1m").load()
    split = hold_out_users(data, 0.16, rng=np.random.default_rng(0))
    model = DAN(200.0, 0.3, 0.0, user_norm=0.0).fit(split.train)
    steps = [round(0.1 * step, 1) for step in range(6)]
    paths = {
        "ξ": [Dial(value) for value in (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)],
        "α": [Dial(0.0, value) for value in steps],
        "γ": [Dial(0.0, 0.0, value) for value in steps],
    }
    for name, dials in paths.items():
        for result in evaluate(model, split, [*METRICS, "coverage"], [100], xis=dials):
            assert result.dial is not None
            means = {key: round(value, 4) for key, value in result.means.items()}
            print(json.dumps({"dial": name, "value": max(result.dial), **means}, ensure_ascii=False), flush=True)


def cold() -> None:
    """ML-1M with genres and years: films that nobody has seen yet, and what features cost the others."""
    films = pl.read_csv(next(datasets.get("ml-1m").folder().glob("items.csv*")))
    year = pl.col("title").str.extract(r"\((\d{4})\)").cast(pl.Int32)
    tables = {
        "genres, year": films.with_columns(year=year),
        "genres, period": films.with_columns(period=pl.format("{}", year // 5 * 5)),
    }
    for kind, table in tables.items():
        data = datasets.get("ml-1m").load().with_features(table, separators={"genres": "|"})
        splits = [hold_out_new_items(data, 0.1, rng=np.random.default_rng(seed)) for seed in range(3)]
        rivals = {"random": Random(), "popularity": Popularity(), "content KNN": ContentKNN()}
        for name, model in rivals.items():
            report_cold(
                kind, name, 0.0, [evaluate(model.fit(each.train), each, ["recall", "ndcg"], [20]) for each in splits]
            )
        for weight in (1.0, 10.0, 100.0, 1000.0):
            for each in (EASE(300.0), RDLAE(200.0, 0.3, 0.3), DAN(20.0, 0.3, user_norm=0.5)):
                found = [
                    evaluate(each.fit(split.train, feature_weight=weight), split, ["recall", "ndcg"], [20])
                    for split in splits
                ]
                report_cold(kind, repr(each), weight, found)
        warm = hold_out_users(data, 0.16, rng=np.random.default_rng(0))
        for weight in (0.0, 1.0, 10.0, 100.0, 1000.0):
            model = RDLAE(200.0, 0.3, 0.3).fit(warm.train, feature_weight=weight)
            report_cold(kind, "warm", weight, [evaluate(model, warm, ["recall", "ndcg"], [20, 100])])


def report_cold(kind: str, name: str, weight: float, found: Sequence[Evaluation]) -> None:
    means = {key: round(float(np.mean([each[key] for each in found])), 4) for key in found[0].means}
    print(json.dumps({"features": kind, "model": name, "weight": weight, **means}), flush=True)


if __name__ == "__main__":
    modes = {"sweep": sweep, "curve": curve, "cold": cold}
    if sys.argv[1] in modes:
        modes[sys.argv[1]]()
    else:
        search(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 30_000)
