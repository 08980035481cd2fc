"""ML-1M (ratings ≥ 4, users with ≥ 5), strong split with a seed: the six models and GF-CF with confidence intervals.

Parameters are chosen on validation users, never on the test users; ξ is swept from each inverse.
`python -m benchmarks.ml1m [seed]`, with RELAE_DATA set to a folder that contains ml-1m/. Prints Markdown.
"""

import sys
from typing import Any

import numpy as np

from relae import DLAE, EASE, EDLAE, LAE, RDLAE, RLAE, datasets
from relae.baselines import GFCF
from relae.evaluation import Evaluation, Evaluations, evaluate, hold_out_users

L2 = (50.0, 100.0, 200.0, 400.0, 700.0, 1000.0, 2000.0, 4000.0)
DROPOUT = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
XIS = tuple(round(0.05 * step, 2) for step in range(21))
ALPHA = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
OBJECTIVE = "ndcg@100"
CLASSES = {"LAE": LAE, "EASE": EASE, "RLAE": RLAE, "DLAE": DLAE, "EDLAE": EDLAE, "RDLAE": RDLAE}


def family(name: str, dropout: float, xi: float) -> bool:
    """Whether a point of the search is one of a model's."""
    relaxed, plain = name.startswith("R"), name in ("LAE", "EASE", "RLAE")
    return (dropout == 0 if plain else dropout > 0) and (relaxed or xi == (0.0 if name.startswith("E") else 1.0))


def main(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = datasets.get("ml-1m").load()
    test = hold_out_users(data, share=1000 / data.n_users, rng=rng)
    valid = hold_out_users(test.train, share=1000 / test.train.n_users, rng=rng)

    points: list[tuple[float, float, float, float]] = []  # objective, l2, dropout, xi
    for dropout in DROPOUT:
        for l2 in L2:
            found = evaluate(RDLAE(l2, dropout).fit(valid.train), valid, ["ndcg"], [100], xis=XIS)
            points += [(result[OBJECTIVE], l2, dropout, result.xi) for result in found]
            print(f"l2 {l2:g} dropout {dropout:g}: {found.best(OBJECTIVE)!r}", file=sys.stderr, flush=True)
    models: dict[str, Any] = {}
    for name, kind in CLASSES.items():
        _, l2, dropout, xi = max(point for point in points if family(name, *point[2:]))
        given = {"l2": l2, "dropout": dropout, "xi": xi}
        models[name] = kind(**{key: given[key] for key in kind().get_params() if key in given})
    filters = [(evaluate(GFCF(alpha).fit(valid.train), valid, ["ndcg"], [100])[OBJECTIVE], alpha) for alpha in ALPHA]
    models["GF-CF"] = GFCF(max(filters)[1])

    metrics = ("ndcg", "recall", "tail_ndcg", "tail_recall", "unbiased_ndcg", "coverage", "tail_share")
    results: list[Evaluation] = [
        evaluate(models[name].fit(test.train), test, metrics, [20, 100], name=repr(models[name]))
        for name in ("GF-CF", *CLASSES)
    ]
    print(f"{test!r}, seed {seed}\n")
    columns = [
        "ndcg@20",
        "ndcg@100",
        "recall@20",
        "recall@100",
        "tail_ndcg@100",
        "tail_recall@100",
        "unbiased_ndcg@100",
    ]
    print(f"| model | {' | '.join(columns)} | coverage@100 |\n|---|{'---:|' * (len(columns) + 1)}")
    for result in results:
        rows = {f"{row.metric}@{row.k}": row for row in result.estimates()}
        cells = [f"{rows[name].mean:.4f} ± {(rows[name].high - rows[name].low) / 2:.4f}" for name in columns]
        print(f"| `{result.model}` | {' | '.join(cells)} | {rows['coverage@100'].mean:.3f} |")
    best = Evaluations(results).best(OBJECTIVE)
    print(f"\nDifference of the best, `{best.model}`, to each of the others, paired over users:\n")
    print("| to | ndcg@100 | 95% interval | p | tail_ndcg@100 | p |\n|---|---:|---:|---:|---:|---:|")
    for other in results:
        if other is not best:
            found = best.compare(other)
            row, tail = found["ndcg@100"], found["tail_ndcg@100"]
            print(
                f"| `{other.model}` | {row.difference:+.4f} | [{row.low:+.4f}, {row.high:+.4f}] | {row.p_value:.4f} "
                f"| {tail.difference:+.4f} | {tail.p_value:.4f} |"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2023)
