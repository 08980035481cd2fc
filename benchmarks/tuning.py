"""What tuning costs: the paper's grid on ML-1M, 11 l2 × 10 dropouts × 11 ξ, beside a fit for every configuration.

`python -m benchmarks.tuning [data set]`, with RELAE_DATA set to a folder that contains it (ml-1m if not named).
"""

import json
import sys
from time import perf_counter

import numpy as np

from relae import RDLAE, datasets
from relae.evaluation import Split, evaluate, hold_out_users
from relae.models import suggested_l2
from relae.tuning import paper_grid, tune

METRICS = ("ndcg", "recall", "tail_ndcg", "tail_recall", "unbiased_ndcg", "unbiased_recall", "coverage", "tail_share")


def timed(split: Split, l2: float, dropout: float, xis: list[float]) -> tuple[float, float]:
    """Seconds of a fit, and of an evaluation of some ξ."""
    started = perf_counter()
    model = RDLAE(l2, dropout).fit(split.train)
    fitted = perf_counter()
    evaluate(model, split, METRICS, [100], xis=xis)
    return fitted - started, perf_counter() - fitted


def main(arguments: list[str]) -> None:
    name = arguments[0] if arguments else "ml-1m"
    data = datasets.get(name).load()
    split = hold_out_users(data, 0.15, rng=np.random.default_rng(0))
    scale = suggested_l2(split.train.matrix)
    grid = paper_grid([float(f"{scale * 2.0**octave:.3g}") for octave in range(-4, 7)])
    timed(split, scale, 0.2, [0.5, 1.0])  # compiles what has to be compiled

    started = perf_counter()
    result = tune(RDLAE(), split, grid, metrics=METRICS)
    whole = perf_counter() - started
    fits, paths = (np.array([getattr(t, f"{kind}_seconds") for t in result.trials]) for kind in ("fit", "evaluate"))
    # the same inversions and projections with one ranking each, and single configurations with a fit each
    sample = result.trials[:: max(1, len(result.trials) // 22)]
    ones = [timed(split, trial.parameters["l2"], trial.parameters["dropout"], [0.5]) for trial in sample]
    one_fit, one_xi = np.median(ones, axis=0)
    configurations = len(result.points)

    best = result.best()["ndcg@100"]
    auto = tune(RDLAE(), split, metrics=METRICS)
    line = {
        "benchmark": "tuning",
        "data": name,
        "inversions": len(result.trials),
        "configurations": configurations,
        "grid_s": round(whole, 1),
        "fit_s": round(float(np.median(fits)), 3),
        "eleven_xis_s": round(float(np.median(paths)), 3),
        "one_xi_s": round(float(one_xi), 3),
        "xis_add": round(float((np.median(paths) - one_xi) / (np.median(fits) + one_xi)), 3),
        "refitting_over_grid": round(float(configurations * (one_fit + one_xi) / whole), 1),
        "grid_best": round(best, 5),
        "auto_best": round(auto.best()["ndcg@100"], 5),
        "auto_over_grid": round(auto.best()["ndcg@100"] / best, 5),
        "auto_inversions": len(auto.trials),
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main(sys.argv[1:])
