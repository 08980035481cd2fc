"""Alternating least squares, relae's beside irspack's: the same split, the same number of trials, tested once.

`python -m benchmarks.ials [data set …] [--trials 20] [--seeds 1]` hides a fifth of every user's items for the test, and
a fifth of the rest for validation. Both search with their own tuner and space for so many trials by the ndcg@20 of the
validation, fit the best to all but the test, and are judged by the test users; `difference` is relae's ndcg@20 less
irspack's with its 95% interval over users. The figures of the validation are not comparable: relae weights its users by
the lengths of their histories. irspack stops each of its trials at the best epoch of 16. `--same` fits both with the
same parameters instead, to compare loss and ndcg.

Data sets: movietweetings (ratings of 7 and more, 5-core), online-retail, ml-1m (4 and more, 5-core), from the folder
that RELAE_DATA names. irspack has to be installed.
"""

import argparse
import contextlib
import io
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from relae import Interactions
from relae.baselines import IALS
from relae.evaluation import Evaluation, Split, evaluate, hold_out_items
from relae.ranking import rank
from relae.tuning import tune

K = 20
SAME = [(16, 3e-3, 0.1), (64, 1e-2, 0.03), (128, 1e-2, 0.1)]  # dim, l2, unobserved weight


def read(name: str) -> Interactions:
    """The interactions of a data set; what is rated lower may be recommended, as irspack cannot know of it."""
    folder = Path(os.environ["RELAE_DATA"]) / name
    if name == "movietweetings":
        lines = (folder / "ratings.dat").read_text(encoding="utf-8").splitlines()
        users, items, ratings, _ = zip(*(line.split("::") for line in lines), strict=True)
        frame = pl.DataFrame({"user": users, "item": items, "rating": [float(rating) for rating in ratings]})
        return Interactions.from_frame(frame, rating="rating", min_rating=7, k_core=5).without_seen()
    if name == "ml-1m":
        return Interactions.read(folder / "interactions.csv.gz", rating="rating", min_rating=4, k_core=5).without_seen()
    return Interactions.read(folder / "interactions.csv.gz")


def splits(data: Interactions, seed: int) -> tuple[Split, Split]:
    """The validation, and the test whose training data holds the validation's truth too."""
    rng = np.random.default_rng(seed)
    test = hold_out_items(data, 0.2, rng=rng)
    return hold_out_items(test.train, 0.2, rng=rng), test


class Irspack:
    """A fitted recommender of irspack, with the factors that it has for the users of its training data."""

    def __init__(self, recommender: Any, split: Split) -> None:
        trainer = recommender.trainer.core_trainer
        self.items = np.asarray(trainer.item)
        self.users = np.asarray(trainer.user)[split.train.users.positions(split.users.values)]
        self.start = 0

    def recommend(self, histories: Any, k: int = 10) -> tuple[Any, Any]:
        """The best k of the next users: evaluation asks for them in order."""
        stop = self.start + histories.shape[0]
        scores = self.users[self.start : stop] @ self.items.T
        self.start = stop
        return rank(scores, k, seen=histories)

    def score(self, histories: Any) -> Any:
        raise NotImplementedError


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the progress bars of irspack to itself."""
    logging.disable(logging.WARNING)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
    logging.disable(logging.NOTSET)


def fit_irspack(split: Split, **parameters: Any) -> Any:
    from irspack.recommenders import IALSRecommender

    recommender = IALSRecommender(sp.csr_matrix(split.train.matrix, dtype=np.float64), **parameters)
    with quiet():
        recommender.learn()
    return recommender


def judge(model: Any, split: Split) -> Evaluation:
    return evaluate(model, split, ["ndcg", "recall"], [K])


def means(model: Any, split: Split) -> dict[str, float]:
    return rounded(judge(model, split))


def rounded(judged: Evaluation) -> dict[str, float]:
    return {name: round(value, 4) for name, value in judged.means.items()}


def tune_relae(valid: Split, test: Split, trials: int, seed: int) -> tuple[dict[str, Any], Evaluation]:
    started = perf_counter()
    tuned = tune(IALS(), valid, objective=f"ndcg@{K}", budget=trials, metrics=("ndcg",), seed=seed)
    seconds = perf_counter() - started
    model = tuned.chosen_model().fit(test.train)
    point = tuned.best()
    best = {"parameters": point.parameters, "epochs": model.epochs, "validation": round(point[f"ndcg@{K}"], 4)}
    judged = judge(model, test)
    return {**best, **rounded(judged), "tune_s": round(seconds, 1)}, judged


def tune_irspack(valid: Split, test: Split, trials: int, seed: int) -> tuple[dict[str, Any], Evaluation]:
    from irspack.evaluation import Evaluator
    from irspack.recommenders import IALSRecommender

    truth = sp.lil_matrix(valid.train.matrix.shape)
    truth[valid.train.users.positions(valid.users.values)] = sp.csr_matrix(valid.truth)
    evaluator = Evaluator(sp.csr_matrix(truth), cutoff=K, target_metric="ndcg")
    x = sp.csr_matrix(valid.train.matrix, dtype=np.float64)
    started = perf_counter()
    with quiet():
        best, trace = IALSRecommender.tune(x, evaluator, n_trials=trials, tuning_random_seed=seed)
    seconds = perf_counter() - started
    found = {"parameters": best, "validation": round(-float(trace["value"].min()), 4)}
    judged = judge(Irspack(fit_irspack(test, **best), test), test)
    return {**found, **rounded(judged), "tune_s": round(seconds, 1)}, judged


def loss(x: Any, users: Any, items: Any, l2: float, a: float) -> float:
    """The loss that both say they minimize, in double precision."""
    u, v = users.astype(np.float64), items.astype(np.float64)
    dense = x.toarray().astype(np.float64)
    predicted = u @ v.T
    squares = (dense * (1 - predicted) ** 2).sum() + a * (predicted**2).sum()
    of_users = (dense.sum(axis=1) + a * len(v)) @ (u**2).sum(axis=1)
    of_items = (dense.sum(axis=0) + a * len(u)) @ (v**2).sum(axis=1)
    return float(squares + l2 * (of_users + of_items))


def same(name: str, valid: Split) -> None:
    """Both with the same parameters, solved exactly, from the same scale of random factors."""
    x = valid.train.matrix
    for dim, l2, a in SAME:
        ours = IALS(dim, l2=l2, unobserved_weight=a, epochs=16).fit(valid.train)
        shared = {"n_components": dim, "alpha0": a, "reg": l2, "train_epochs": 16}
        theirs = fit_irspack(valid, **shared, solver_type="CHOLESKY", init_std=1.0)
        trainer = theirs.trainer.core_trainer
        line = {
            "benchmark": "ials-same",
            "data": name,
            "parameters": {"dim": dim, "l2": l2, "unobserved_weight": a},
            "relae_loss": round(loss(x, ours._fold_in(x), ours.item_factors_, l2, a)),
            "irspack_loss": round(loss(x, np.asarray(trainer.user), np.asarray(trainer.item), l2, a)),
            "relae": means(ours, valid),
            "irspack": means(Irspack(theirs, valid), valid),
        }
        print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="*", default=["movietweetings"])
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--same", action="store_true")
    parser.add_argument("--only", choices=["relae", "irspack"])
    asked = parser.parse_args()
    systems = {"relae": tune_relae, "irspack": tune_irspack}
    for name in asked.data:
        data = read(name)
        for seed in range(asked.seeds):
            valid, test = splits(data, seed)
            if asked.same:
                same(name, valid)
                continue
            line: dict[str, Any] = {"benchmark": "ials", "data": name, "seed": seed, "trials": asked.trials}
            line |= {"users": data.n_users, "items": data.n_items}
            judged: dict[str, Evaluation] = {}
            for system, run in systems.items():
                if asked.only in (None, system):
                    line[system], judged[system] = run(valid, test, asked.trials, seed)
            if len(judged) == len(systems):
                apart = judged["relae"].compare(judged["irspack"])[f"ndcg@{K}"]
                line["difference"] = [round(value, 4) for value in (apart.difference, apart.low, apart.high)]
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
