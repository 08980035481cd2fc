"""The printed figures of Tables 2 and 3 of "It's Enough" (SIGIR 2023), and the parameters behind them.

The parameters are those of the commands that the authors published; GF-CF's weak ones are those of its own authors. For
the models that are trained epoch by epoch the paper prints none; they run with the defaults of their classes here.
"""

import csv
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from relae.errors import DataError

TABLES = {"table2": "strong generalization (Table 2)", "table3": "weak generalization (Table 3)"}

# Models that are trained for hours, and run only when they are named; without hyphens these are names of the registry.
TRAINED = ("GRMF", "GRMF-Norm", "Mult-VAE", "LightGCN", "LT-OCF", "HMLET")


class Misprint(NamedTuple):
    """A cell that the paper prints wrongly: the right value, and how it is known."""

    value: float
    reason: str


MISPRINTS = {  # table, data set, model, metric
    ("table3", "gowalla", "GF-CF", "ndcg@20"): Misprint(
        0.1518,
        "the paper prints 0.1536. GF-CF's formula with its authors' α = 0.3 and 256 singular vectors gives the paper's "
        "recall to four decimals and an NDCG of 0.1518, as do the BARS leaderboard's entry for GF-CF's own publication "
        "and ChebyCF's comparison. No α from 0 to 1 with 64 to 1,024 singular vectors comes near 0.1536, and the "
        "strong row (Table 2) agrees in all twelve cells",
    ),
}


def _read(name: str) -> Iterator[dict[str, str]]:
    with (files("relae.experiments.paper") / f"{name}.csv").open(encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


@cache
def printed(table: str, dataset: str) -> dict[str, dict[str, float]]:
    """Return the printed figures of one data set: model → metric → value, in the order of the paper."""
    if table not in TABLES:
        raise DataError(f"there is no table {table!r}: the tables are {' and '.join(TABLES)}")
    rows = list(_read(table))
    figures = {
        row["model"]: {metric: float(value) for metric, value in row.items() if metric not in ("dataset", "model")}
        for row in rows
        if row["dataset"] == dataset
    }
    if not figures:
        known = list(dict.fromkeys(row["dataset"] for row in rows))
        raise DataError(f"{table} has no data set {dataset!r}: it has {', '.join(known)}")
    return figures


@cache
def parameters(table: str, dataset: str) -> dict[str, dict[str, float]]:
    """Return the parameters of the models that can be run: model → parameter → value."""
    return {
        row["model"]: {name: float(row[name]) for name in ("l2", "dropout", "xi", "alpha") if row[name]}
        for row in _read("parameters")
        if (row["table"], row["dataset"]) == (table, dataset)
    }
