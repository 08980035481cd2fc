"""How far some time of this machine gets the paper's neural systems on Gowalla, weak generalization.

`python -m benchmarks.neural lightgcn|ltocf|hmlet|grmf|grmfnorm|multvae SECONDS [name=value …]` trains on all of
train.txt and prints a line of the learning curve whenever test users are ranked: recall@20 and the time so far, without
that of ranking. The last line is the result: nothing is chosen by the test users but the place on the curve that you
read. A checkpoint in benchmarks/cache survives a break; the same command goes on. Needs RELAE_DATA with gowalla.
"""

import json
import sys
import time
from ast import literal_eval
from pathlib import Path

import relae.baselines as baselines
from relae.data import datasets
from relae.evaluation import evaluate, given_split

CACHE = Path(__file__).parent / "cache"


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


def _value(text: str) -> object:
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError):
        return text


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), *sys.argv[3:])
