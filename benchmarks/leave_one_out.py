"""Leave-one-out on ML-1M: the lists of some users against real fits without them, and its time beside that of the fit.

`python -m benchmarks.leave_one_out [refits]` needs RELAE_DATA with ml-1m.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np

from relae import DAN, EASE, RDLAE, Interactions
from relae.evaluation import leave_one_out
from relae.evaluation.splits import hide_items
from relae.models import LinearAutoencoder
from relae.solvers import as_solver

MODELS: list[LinearAutoencoder] = [
    EASE(500.0),
    RDLAE(200.0, dropout=0.3, xi=0.4),
    DAN(20.0, dropout=0.5, xi=0.1, user_norm=0.3, item_norm=0.2),
]
XIS = np.linspace(0.0, 1.0, 11).tolist()


def compare(model: LinearAutoencoder, data: Interactions, dtype: str, refits: int) -> tuple[float, float]:
    """Return the largest difference of scores to real fits, and the share of equal places of the first 100."""
    solver = as_solver("primal", dtype=dtype)
    fitted = type(model)(**model.get_params()).fit(data, solver=solver)
    rows, histories, *_ = hide_items(data, refits, rng=np.random.default_rng(1))
    left_out = fitted.left_out(data, [None])
    scores = left_out.scores(rows, histories)
    lists = np.concatenate([each[0] for _, _, each in left_out.ranked(rows, histories, 100)])
    worst, equal = 0.0, []
    for at, user in enumerate(rows):
        kept = np.arange(data.n_users) != user
        other = type(model)(**model.get_params()).fit(data.select_users(kept), solver=solver)
        unseen = np.setdiff1d(np.arange(data.n_items), histories[[at]].indices)
        worst = max(worst, float(np.abs(scores[at, unseen] - other.score(histories[[at]])[0, unseen]).max()))
        equal.append(np.mean(other.recommend(histories[[at]], 100)[0] == lists[at]))
    return worst, float(np.mean(equal))


def main(arguments: list[str]) -> None:
    """Print a row per model."""
    refits = int(arguments[0]) if arguments else 50
    data = Interactions.read(
        Path(os.environ["RELAE_DATA"]) / "ml-1m" / "interactions.csv.gz", rating="rating", min_rating=4
    )
    print(f"ML-1M: {data.n_users:,} users × {data.n_items:,} items, {data.n_interactions:,} interactions", flush=True)
    for model in MODELS:
        type(model)(**model.get_params()).fit(data)  # compiles the kernels
        start = time.process_time()
        fitted = type(model)(**model.get_params()).fit(data, solver="primal")
        fit = time.process_time() - start
        start = time.process_time()
        result = leave_one_out(fitted, data, ["ndcg", "recall", "tail_recall"], (100,), XIS).best("ndcg@100")
        judged = time.process_time() - start
        print(
            f"{model}: fit {fit:.1f} s, leave-one-out of {len(result.users):,} users and {len(XIS)} ξ {judged:.1f} s "
            f"({judged / fit:.1f} ×), ndcg@100 {result['ndcg@100']:.4f} at ξ = {result.xi:g}",
            flush=True,
        )
        for dtype in ("float64", "float32") if refits else ():
            worst, equal = compare(model, data, dtype, refits)
            print(f"  {dtype}: scores differ by {worst:.1e} at most, {equal:.2%} of the places are equal", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
