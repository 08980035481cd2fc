"""What a path of ξ costs, and what metrics cost beside ranking: Gowalla's strong split, 3,000 users × 40,981 items.

`python -m benchmarks.evaluation`, with RELAE_DATA set to a folder that contains gowalla/.
"""

import json
from statistics import median

import numpy as np

from benchmarks._machine import seconds
from relae import RDLAE, datasets
from relae.evaluation import METRICS, Scorer, evaluate, paper_splits, strong_lists
from relae.ranking import rank

XIS = [round(0.1 * step, 1) for step in range(11)]
KS = (20, 100)


def main(arguments: list[str]) -> None:
    gowalla = datasets.get("gowalla")
    assert gowalla.heldout is not None
    _, split = paper_splits(strong_lists(gowalla.pairs(), gowalla.heldout))
    model = RDLAE(l2=70, dropout=0.5, xi=0.4).fit(split.train)
    evaluate(model, split, METRICS, KS, xis=[0.0, 1.0])  # compiles what has to be compiled

    scorer = Scorer(split.truth, split.item_counts, split.train.n_users, METRICS, KS)
    few = split.histories[:500]
    projected = model.inverse_.project(few)
    times: dict[str, list[float]] = {"one": [], "eleven": [], "top_k": [], "metrics": []}
    for xi in (0.2, 0.4, 0.6):
        scale = -model.column_weights(xi).astype(np.float32)
        ranked, _ = model.with_xi(xi).recommend(split.histories, KS[-1])
        jobs = {
            "one": lambda xi=xi: evaluate(model, split, METRICS, KS, xis=[xi]),
            "eleven": lambda: evaluate(model, split, METRICS, KS, xis=XIS),
            "top_k": lambda scale=scale: rank(projected, KS[-1], scale=scale, seen=few),
            "metrics": lambda ranked=ranked: (scorer.values(ranked), scorer.exposure(ranked)),
        }
        for name, job in jobs.items():
            times[name].append(seconds(job))
    middle = {name: median(values) for name, values in times.items()}
    middle["top_k"] *= len(split.users) / few.shape[0]
    allowed = 1.5 * middle["one"] + 10 * middle["top_k"]
    line = {
        "benchmark": "evaluation",
        "users": len(split.users),
        "items": split.train.n_items,
        "one_xi_s": round(middle["one"], 2),
        "eleven_xis_s": round(middle["eleven"], 2),
        "top_k_of_one_s": round(middle["top_k"], 3),
        "eleven_over_allowed": round(middle["eleven"] / allowed, 3),
        "eleven_over_one": round(middle["eleven"] / middle["one"], 2),
        "metrics_s": round(middle["metrics"], 4),
        "metrics_over_ranking": round(middle["metrics"] / middle["top_k"], 3),
        "figures": len(scorer.metrics) * len(KS),
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main([])
