"""What amounts should count: ndcg@20 of held-out users under each weighting, and what the trial at reading chooses.

`python -m benchmarks.weights` needs RELAE_DATA with ml-1m and movietweetings; Online Retail comes with the package. A
tenth of the users is held out, a fifth of their items is to be found, and l2 is by the rule from the data.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from relae.data import Interactions
from relae.data._weighting import try_weightings
from relae.datasets import online_retail
from relae.evaluation import evaluate, hold_out_users
from relae.models import EASE, RDLAE

WEIGHTINGS = ("binary", "log", "sqrt", "linear")


def amounts() -> Iterator[tuple[str, Interactions]]:
    """Give data sets whose values are the amounts themselves."""
    yield "Online Retail, pieces", online_retail("quantity", "linear")
    yield "Online Retail, invoices", online_retail("invoices", "linear")
    folder = Path(os.environ["RELAE_DATA"])
    yield (
        "ML-1M, ratings",
        Interactions.read(folder / "ml-1m" / "interactions.csv.gz", weight="rating", weighting="linear"),
    )
    lines = (folder / "movietweetings" / "ratings.dat").read_text().splitlines()
    ratings = pl.DataFrame([line.split("::")[:3] for line in lines], schema=["user", "item", "rating"], orient="row")
    yield "MovieTweetings, ratings", Interactions.from_frame(ratings, weight="rating", weighting="linear", k_core=5)


def main() -> None:
    """Print a row per data set and model."""
    for name, data in amounts():
        trial = try_weightings(data.matrix)
        print(f"{name}: {trial.chosen if trial else 'log'} by {trial}", flush=True)
        for kind in (EASE, RDLAE):
            for weighting in WEIGHTINGS:
                split = hold_out_users(data.weighted(weighting), 0.1, rng=np.random.default_rng(0))
                result = evaluate(kind().fit(split.train), split, ["ndcg"], [20])
                [figure] = result.estimates()
                print(
                    f"  {kind.__name__:5} {weighting:6} {figure.mean:.4f} [{figure.low:.4f}, {figure.high:.4f}]",
                    flush=True,
                )


if __name__ == "__main__":
    main()
