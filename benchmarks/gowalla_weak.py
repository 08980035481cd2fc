"""Gowalla, weak generalization: recall@20 and NDCG@20 of the six models beside the paper's Table 3.

`python -m benchmarks.gowalla_weak [model …]`, with RELAE_DATA set to a folder that contains gowalla/.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from relae import DLAE, EASE, EDLAE, LAE, RDLAE, RLAE, Interactions
from relae.evaluation import find_hits, ndcg, recall
from relae.models import LinearAutoencoder

# model with the authors' hyper-parameters, recall@20 and NDCG@20 of Table 3
PAPER: dict[str, tuple[LinearAutoencoder, float, float]] = {
    "LAE": (LAE(500), 0.1630, 0.1295),
    "EASE": (EASE(80), 0.1765, 0.1467),
    "DLAE": (DLAE(60, 0.9), 0.1839, 0.1533),
    "EDLAE": (EDLAE(60, 0.8), 0.1844, 0.1539),
    "RLAE": (RLAE(100, 0.2), 0.1772, 0.1467),
    "RDLAE": (RDLAE(80, 0.8, 0.09), 0.1845, 0.1539),
}


def load() -> tuple[Interactions, Interactions]:
    folder = Path(os.environ["RELAE_DATA"]) / "gowalla"
    train = Interactions.read_lists(folder / "train.txt")
    return train, Interactions.read_lists(folder / "test.txt", n_users=train.n_users, n_items=train.n_items)


def measure(model: LinearAutoencoder, train: Interactions, test: Interactions) -> tuple[float, float, float]:
    """recall@20, NDCG@20 (means over users, as the paper has them) and the seconds of recommending."""
    start = time.perf_counter()
    ranked, _ = model.recommend(train.matrix, k=20)
    seconds = time.perf_counter() - start
    hits, sizes = find_hits(ranked, test.matrix), np.diff(test.matrix.indptr)
    return float(np.nanmean(recall(hits, sizes, 20))), float(np.nanmean(ndcg(hits, sizes, 20))), seconds


def main(names: list[str]) -> int:
    train, test = load()
    wrong = 0
    for name in names or list(PAPER):
        model, paper_recall, paper_ndcg = PAPER[name]
        start = time.perf_counter()
        model.fit(train.matrix)
        fit_seconds = time.perf_counter() - start
        ours_recall, ours_ndcg, recommend_seconds = measure(model, train, test)
        equal = round(ours_recall, 4) == paper_recall and round(ours_ndcg, 4) == paper_ndcg
        wrong += not equal
        line = {
            "benchmark": "gowalla-weak",
            "model": repr(model),
            "solver": model.plan_.solver,
            "residual": model.residual_,
            "recall@20": round(ours_recall, 7),
            "paper_recall@20": paper_recall,
            "ndcg@20": round(ours_ndcg, 7),
            "paper_ndcg@20": paper_ndcg,
            "equal": equal,
            "fit_seconds": round(fit_seconds, 1),
            "recommend_seconds": round(recommend_seconds, 1),
        }
        print(json.dumps(line), flush=True)
        del model.inverse_
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
