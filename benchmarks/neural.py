"""How far some time of this machine gets the paper's neural systems on Gowalla, weak generalization.

`python -m benchmarks.neural lightgcn|ltocf|hmlet|grmf|grmfnorm|multvae SECONDS [name=value …]` trains on all of
train.txt and prints a line of the learning curve whenever test users are ranked: recall@20 and the time so far, without
that of ranking. The last line is the result: nothing is chosen by the test users but the place on the curve that you
read. A checkpoint in benchmarks/cache survives a break; the same command goes on. Needs RELAE_DATA with gowalla.

`python -m benchmarks.neural draw FILE` draws the learning curves of these checkpoints, beside the paper's figures.
"""

import json
import sys
import time
from ast import literal_eval
from pathlib import Path

import numpy as np

import relae.baselines as baselines
from relae.analysis import _style
from relae.data import datasets
from relae.evaluation import evaluate, given_split
from relae.reproduce._paper import printed

CACHE = Path(__file__).parent / "cache"
LABELS = {  # the paper's name, and how far its labels move up, at the end of the curve and at the right
    "ltocf": ("LT-OCF", 0, 5),
    "hmlet": ("HMLET", 5, -6),
    "lightgcn": ("LightGCN", -5, 0),
}


def main(name: str, seconds: float, *settings: str) -> None:
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
        time_budget=seconds,
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


def draw(path: Path) -> None:
    figure, [axes] = _style.new_figure(
        7.2,
        3.6,
        1,
        "An hour of one core is not enough for graph networks on Gowalla",
        "Recall@20 on the weak split, by time of training; at the right, the paper.",
        "Last value of each curve; the time of ranking is not counted.",
    )
    paper = printed("table3", "gowalla")
    for (name, (title, here, there)), look in zip(LABELS.items(), _style.GROUPS.values(), strict=True):
        published = paper[title]["recall@20"]
        with np.load(CACHE / f"{name}.npz") as checkpoint:
            marks = json.loads(str(checkpoint["record"]))["curve"]
        points = [(seconds / 60, value) for _, seconds, _, value in marks if value == value]
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
    draw(Path(sys.argv[2])) if sys.argv[1] == "draw" else main(sys.argv[1], float(sys.argv[2]), *sys.argv[3:])
