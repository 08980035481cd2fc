"""The strongest known rivals with the parameters of their publications, on the publications' own split.

`python -m benchmarks.rivals gowalla [MODEL …]` fits each to LightGCN's train.txt and ranks all items for every user of
its test.txt. One line of JSON per model: recall@20 and ndcg@20 as the publications compute them, what they printed, the
ratio, and the costs. RP3β and SLIM have no published parameters for this split: theirs are the defaults.
Needs RELAE_DATA with gowalla.
"""

import json
import sys
from time import perf_counter, process_time

from relae import datasets
from relae.baselines import BSPM, GFCF, SLIM, ChebyCF, RP3Beta, TurboCF
from relae.evaluation import evaluate, given_split
from relae.recommender import HistoryRecommender

# the model with its published parameters, and the published recall@20 and ndcg@20
PUBLISHED: dict[str, dict[str, tuple[HistoryRecommender, float | None, float | None]]] = {
    "gowalla": {
        "rp3beta": (RP3Beta(), None, None),
        "slim": (SLIM(), None, None),
        "gfcf": (GFCF(0.3, 256), 0.1849, 0.1518),
        "turbocf": (TurboCF(0.6, 0.7, 1), 0.1835, None),
        "chebycf": (ChebyCF(8, 1.5, 0.2, 0.4, 512), 0.1941, 0.1616),
        "bspm": (BSPM(0.2, 448, 2.5, 4, "early"), 0.1920, 0.1597),
    }
}


def main(name: str, *models: str) -> None:
    split = given_split(*datasets.get(name).weak())
    for key in models or PUBLISHED[name]:
        model, recall, ndcg = PUBLISHED[name][key]
        started, cpu = perf_counter(), process_time()
        model.fit(split.train)
        fitted, fit_cpu = perf_counter(), process_time()
        means = evaluate(model, split, ["recall", "ndcg"], [20], mode="paper").means
        line = {
            "data": name,
            "model": repr(model),
            **{metric: round(value, 4) for metric, value in means.items()},
            "published": [recall, ndcg],
            "ratio": [round(means[m] / p, 4) if p else None for m, p in (("recall@20", recall), ("ndcg@20", ndcg))],
            "fit s": round(fitted - started, 1),
            "fit cpu s": round(fit_cpu - cpu, 1),
            "rank s": round(perf_counter() - fitted, 1),
            "rank cpu ms per user": round(1e3 * (process_time() - fit_cpu) / len(split.users), 1),
            "MB": round(sum(array.nbytes for array in model.state("fitted").arrays.values()) / 1e6),
        }
        print(json.dumps(line, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
