"""DAN, tuned on validation users and then judged by the test users once; and what its free dials cost.

`python -m benchmarks.beyond strong BUDGET` searches l2, dropout and the user norm by BUDGET inversions, with the dials
ξ and α of each, on the paper's strong split of Gowalla with its validation users.

`python -m benchmarks.beyond weak BUDGET USERS [FADING]` does it for weak generalization: the last fifth of every line
of the training file is the validation, of USERS of them; a fifth is what the test has of all. Models on 100 neighbours,
which take seconds, find l2, dropout and the user norm; the exact model finds the dials. With a FADING the r-th last
item of a history counts r^−FADING. `… fading USERS` compares some.

Trials are kept in benchmarks/cache; the same command goes on, and ends with the test. `… sweep` measures 11 × 11 dials
beside the inverse. `… curve` follows each dial on ML-1M; `… cold` fits ML-1M with genres and years, a tenth of the
films new. Needs RELAE_DATA with gowalla and ml-1m.
"""

import json
import sys
from ast import literal_eval
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from relae import datasets
from relae.baselines import ContentKNN, Popularity, Random
from relae.data import Ids, Lists, fading_weights
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
from relae.solvers import Local
from relae.tuning import Constraint, GridSearch, Journal, Point, Search, Trial, Tuning, linear_model, tune

CACHE = Path(__file__).parent / "cache"
METRICS = ["ndcg", "recall", "tail_ndcg", "unbiased_ndcg"]


def strong_splits() -> tuple[Split, Split]:
    """The paper's validation, and its test."""
    dataset = datasets.get("gowalla")
    assert dataset.heldout is not None
    return paper_splits(strong_lists(dataset.pairs(), dataset.heldout))


def weak_splits(users: int, fading: float = 0.0) -> tuple[Split, Split]:
    """The ends of some users' training lines, and the test."""
    train, truth = datasets.get("gowalla").weak()
    first, last = last_of_each(train, 0.2)
    valid, test = faded(first, given_split(first, last), fading), faded(train, given_split(train, truth), fading)
    chosen = np.sort(np.random.default_rng(0).choice(len(valid.users), min(users, len(valid.users)), replace=False))
    some = Ids(valid.users.values[chosen]), valid.histories[chosen], valid.truth[chosen]
    return Split(valid.train, *some, valid.protocol), test


def last_of_each(lists: Lists, share: float) -> tuple[Lists, Lists]:
    """Divide every user's items by their order in the file: the first ones, and the last share of them.

    The lines are in an order: neighbours in a line are more alike than others, and the published test continues the
    lines rather than being drawn from them (docs/paper.md).
    """
    sizes = np.bincount(lists.users)[lists.users]
    ranks = np.searchsorted(lists.users, lists.users, side="right") - np.arange(len(lists.users))  # 1 for the last
    late = (ranks <= np.maximum(np.floor(share * sizes), 1)) & (sizes > 1)
    first, last = (Lists(lists.users[part], lists.items[part], lists.owners) for part in (~late, late))
    return first, last


def faded(lists: Lists, split: Split, fading: float) -> Split:
    """Let the r-th last item of a history count r^−fading."""
    rows, columns = split.users.positions(lists.users), split.train.items.positions(lists.items)
    known = rows >= 0
    counts = fading_weights(lists.users, np.arange(len(lists.users)), fading)[known].astype(np.float32)
    histories = sp.csr_array((counts, (rows[known], columns[known])), shape=split.histories.shape)
    assert np.array_equal(np.diff(histories.indptr), np.diff(split.histories.indptr))
    return replace(split, histories=histories)


def strong(budget: int) -> None:
    valid, test = strong_splits()
    result = tuned(valid, "auto", 100, budget, f"beyond-strong-{len(valid.users)}")
    kept = Tuning(DAN(), "tail_ndcg@100", result.trials, Constraint("ndcg@100", 0.005))
    judged("most ndcg", result.best(), test, 100)
    judged("most tail for half a percent of ndcg", kept.best(), test, 100)


def weak(budget: int, users: int, fading: float = 0.0) -> None:
    valid, test = weak_splits(users, fading)
    name = f"beyond-weak-{users}-{fading:g}"
    near = tuned(valid, "auto", 20, budget, f"{name}-near", solver=Local(100)).best()
    norms = (-0.1, -0.05, 0.0, 0.05, 0.1, 0.15, 0.2)
    setting = {name: near.parameters[name] for name in ("l2", "dropout", "user_norm")}
    dials = GridSearch([setting], {"xi": (0.0, 0.05, 0.1, 0.2, 0.3, 1.0), "item_norm": norms})
    judged(f"fading {fading:g}", tuned(valid, dials, 20, 1, name).best(), test, 20)


def fading(users: int) -> None:
    """Some ways of forgetting, with an untuned model on 100 neighbours."""
    model = None
    for power in (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0):
        valid, _ = weak_splits(users, power)
        model = model or DAN().fit(valid.train, solver=Local(100))
        means = {key: round(value, 4) for key, value in evaluate(model, valid, METRICS, [20]).means.items()}
        print(json.dumps({"fading": power, **means}), flush=True)


def tuned(valid: Split, search: str | Search, k: int, budget: int, name: str, **how: Any) -> Tuning:
    """Search for the best ndcg@k, or read what was found before."""
    with Journal(CACHE / f"{name}.jsonl", {"name": name, "users": len(valid.users)}) as journal:
        result = tune(
            DAN(),
            valid,
            search,
            objective=f"ndcg@{k}",
            budget=budget,
            metrics=METRICS,
            journal=journal,
            on_trial=shown,
            **how,
        )
    print(result.to_markdown(), flush=True)
    return result


def judged(choice: str, point: Point, test: Split, k: int) -> None:
    """Fit what was chosen to all of train, and show what the test users say."""
    model = linear_model(point.parameters, "DAN").fit(test.train)
    for mode in ("standard", "paper"):
        found = evaluate(model, test, METRICS, [k], mode=mode)  # type: ignore[arg-type]
        means = {key: round(value, 4) for key, value in found.means.items()}
        print(json.dumps({"choice": choice, **point.parameters, "mode": mode, **means}), flush=True)


def shown(trial: Trial, so_far: Tuning) -> None:
    name = so_far.objective
    here = max(trial.points, key=lambda point: point[name])
    line = {**here.parameters, **{key: round(value, 5) for key, value in here.metrics.items()}}
    print(json.dumps(line | {"fit": trial.fit_seconds, "sweep": trial.evaluate_seconds}), flush=True)


def sweep() -> None:
    """Gowalla, strong and weak: all validation users and 121 dials, beside the time of the fit."""
    dials = [Dial(round(0.1 * xi, 1), round(0.05 * norm, 2)) for norm in range(11) for xi in range(11)]
    for protocol, valid in (("strong", strong_splits()[0]), ("weak", weak_splits(30_000)[0])):
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
    modes = {"strong": strong, "weak": weak, "fading": fading, "sweep": sweep, "curve": curve, "cold": cold}
    modes[sys.argv[1]](*(literal_eval(number) for number in sys.argv[2:]))
