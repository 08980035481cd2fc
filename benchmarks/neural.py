"""How far some time of this machine gets the paper's neural systems on Gowalla, weak generalization.

`python -m benchmarks.neural lightgcn|ltocf|hmlet|grmf|grmfnorm|multvae SECONDS [name=value …]` trains on all of
train.txt and prints a line of the learning curve whenever test users are ranked: recall@20 and the time so far, without
that of ranking. The last line is the result: nothing is chosen by the test users but the place on the curve that you
read. A checkpoint in benchmarks/cache survives a break; the same command goes on. Needs RELAE_DATA with gowalla.

`python -m benchmarks.neural draw FILE` draws the learning curves of these checkpoints, beside the paper's figures.
`python -m benchmarks.neural vae ml-1m|online-retail` trains Mult-VAE as published, then the steps from there to the
defaults, and fits EDLAE beside them: ndcg@100 of validation and of test users.
`python -m benchmarks.neural product` times what most of a training is, the product of Gowalla's graph with vectors of
64, beside torch's and SciPy's own product.
"""

import json
import sys
import time
import warnings
from ast import literal_eval
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

import relae.baselines as baselines
from benchmarks._machine import seconds
from relae import EDLAE, datasets
from relae.analysis import _style
from relae.baselines.neural._graph import Graph
from relae.evaluation import Split, evaluate, given_split, hold_out_users
from relae.experiments.paper import printed
from relae.recommender import Recommender

PUBLISHED = {
    "dim": 200,
    "hidden": 600,
    "dropout": 0.5,
    "anneal_cap": 0.2,
    "weight_decay": 0,
    "average": 0,
    "learning_rate": 1e-3,
}
CACHE = Path(__file__).parent / "cache"
LABELS = {  # the paper's name, and how far its labels move up, at the end of the curve and at the right
    "ltocf": ("LT-OCF", 0, 5),
    "hmlet": ("HMLET", -2, -6),
    "lightgcn": ("LightGCN", 3, 0),
}


def main(name: str, budget: float, *settings: str) -> None:
    kind = next(getattr(baselines, kind) for kind in baselines.__all__ if kind.lower() == name)
    parameters = dict(setting.split("=", 1) for setting in settings)
    given = {key: _value(text) for key, text in parameters.items()}
    model = kind(**{"epochs": 100_000, "patience": 0, "every": 25, "objective": "recall@20", "seed": 0, **given})
    split = given_split(*datasets.get("gowalla").weak())
    started = time.process_time()

    def show(stage: str, fraction: float) -> None:
        print(json.dumps({"stage": stage, "done": round(fraction, 4)}), end="\r", file=sys.stderr)

    label = "-".join([name, *settings]).replace("/", "_")
    model.fit(
        split.train,
        validation=split,
        checkpoint=CACHE / f"{label}.npz",
        time_budget=budget,
        progress=show if sys.stderr.isatty() else None,
    )
    for mark in model.curve_:
        if mark.value == mark.value:
            print(json.dumps({"epoch": mark.epoch, "seconds": mark.seconds, "recall@20": round(mark.value, 4)}))
    result = evaluate(model, split, ["recall", "ndcg"], [20])
    line = {
        "benchmark": "neural",
        "model": repr(model),
        "epochs": model.epochs_,
        "seconds": round(model.curve_[-1].seconds),
        "cpu_seconds": round(time.process_time() - started),
        "last recall@20": round([mark.value for mark in model.curve_ if mark.value == mark.value][-1], 4),
        "best epoch": model.best_epoch_,
        "recall@20": round(float(result["recall@20"]), 4),
        "ndcg@20": round(float(result["ndcg@20"]), 4),
    }
    print(json.dumps(line), flush=True)


def vae(name: str) -> None:
    rng = np.random.default_rng(0)  # the split of `relae compare NAME --split strong`
    test = hold_out_users(datasets.get(name).load(), 0.1, rng=rng)
    valid = hold_out_users(test.train, 0.1, rng=rng)
    ways: dict[str, dict[str, Any]] = {
        "as published": PUBLISHED,
        "without hidden layers": {"average": 0, "weight_decay": 0},
        "averaged": {"weight_decay": 0},
        "and with weight_decay": {},
    }
    for way, parameters in ways.items():
        model = baselines.MultVAE(objective="ndcg@100", **parameters).fit(valid.train, validation=valid)
        _report_vae(name, f"MultVAE {way}", model, valid, test, {"best epoch": model.best_epoch_})
    grid = product((50, 100, 200, 400, 800), (0.1, 0.3, 0.5, 0.7))
    fitted = (EDLAE(l2=l2, dropout=dropout).fit(valid.train) for l2, dropout in grid)
    linear = max(fitted, key=lambda model: _ndcg(model, valid))
    _report_vae(name, "EDLAE", linear, valid, test, {"l2": linear.l2, "dropout": linear.dropout})


def _report_vae(data: str, way: str, model: Recommender, valid: Split, test: Split, more: dict[str, object]) -> None:
    line = {"benchmark": "vae", "data": data, "users": valid.train.n_users, "model": way, **more}
    found = {"validation ndcg@100": _ndcg(model, valid), "test ndcg@100": _ndcg(model, test)}
    print(json.dumps(line | {key: round(value, 4) for key, value in found.items()}), flush=True)


def _ndcg(model: Recommender, split: Split) -> float:
    return float(evaluate(model, split, ["ndcg"], [100])["ndcg@100"])


def time_product() -> None:
    graph = Graph(given_split(*datasets.get("gowalla").weak()).train.matrix)
    vectors = np.random.default_rng(0).standard_normal((len(graph.degrees), 64)).astype(np.float32)
    tensor, matrix = torch.from_numpy(vectors), graph.matrix
    parts = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    with warnings.catch_warnings():  # torch says that its sparse tensors are in beta
        warnings.simplefilter("ignore")
        theirs = torch.sparse_csr_tensor(*parts, size=matrix.shape)
    ways = {
        "relae": lambda: graph.propagate(tensor),
        "torch": lambda: theirs @ tensor,
        "scipy": lambda: matrix @ vectors,
    }
    exact = matrix.astype(np.float64) @ vectors
    times: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        np.testing.assert_allclose(np.asarray(way()), exact, atol=1e-5)
    for _ in range(15):  # in turns, because the machine is not always as quiet
        for name, way in ways.items():
            times[name].append(seconds(way))
    taken = {name: float(np.median(each)) for name, each in times.items()}
    line = {
        "benchmark": "product",
        "threads": torch.get_num_threads(),
        **{f"{name}_ms": round(1000 * each, 1) for name, each in taken.items()},
        **{f"times {name}'s speed": round(taken[name] / taken["relae"], 2) for name in ("torch", "scipy")},
    }
    print(json.dumps(line), flush=True)


def draw(path: Path) -> None:
    figure, [axes] = _style.new_figure(
        7.2,
        3.6,
        1,
        "An hour of one core brings LightGCN close to the paper on Gowalla",
        "Recall@20 on the weak split, by time of training; at the right, the paper.",
        "Last value of each curve; the time of ranking is not counted.",
    )
    paper = printed("table3", "gowalla")
    for (name, (title, here, there)), look in zip(LABELS.items(), _style.GROUPS.values(), strict=True):
        published = paper[title]["recall@20"]
        with np.load(CACHE / f"{name}.npz") as checkpoint:
            marks = json.loads(str(checkpoint["record"]))["curve"]
        points = [(taken / 60, value) for _, taken, _, value in marks if value == value]
        color, dash, marker = look
        axes.plot(*zip(*points, strict=True), color=color, linestyle=dash, marker=marker, markersize=3, linewidth=1.4)
        axes.plot(78, published, color=color, marker=marker, markersize=5)
        for value, at, y in ((points[-1][1], points[-1][0], here), (published, 78, there)):
            _style.label(axes, f"{title} {value:.4f}".replace("0.", "."), (at, value), color, xytext=(6, y))
    axes.set_xlim(0, 95)
    axes.set_xticks([0, 15, 30, 45, 60])
    _style.dress(axes, "", "minutes", "recall@20")
    path.write_bytes(_style.render(figure, "png" if path.suffix == ".png" else "svg"))


def _value(text: str) -> object:
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text


if __name__ == "__main__":
    if sys.argv[1] == "draw":
        draw(Path(sys.argv[2]))
    elif sys.argv[1] == "product":
        time_product()
    elif sys.argv[1] == "vae":
        vae(sys.argv[2])
    else:
        main(sys.argv[1], float(sys.argv[2]), *sys.argv[3:])
