"""Statistics of a data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Spread:
    """The least, the middle and the largest of some counts."""

    min: int
    median: float
    max: int


@dataclass(frozen=True)
class Statistics:
    """Statistics of a data set; counts are of interactions, not sums of weights.

    `gini` is that of the items' popularity: 0 if all items are equally popular, towards 1 if few have it all.
    """

    users: int
    items: int
    interactions: int
    density: float
    gini: float
    per_user: Spread
    per_item: Spread


def spread_of(counts: NDArray[np.integer[Any]]) -> Spread:
    """Return the least, the middle and the largest of some counts; zeros if there are none."""
    if len(counts) == 0:
        return Spread(0, 0.0, 0)
    return Spread(int(counts.min()), float(np.median(counts)), int(counts.max()))


def gini(counts: NDArray[np.integer[Any]]) -> float:
    """Return the Gini coefficient 2 Σ i c_i / (n Σ c) − (n+1)/n of counts in rising order, i from 1."""
    n, total = len(counts), int(counts.sum())
    if total == 0:
        return 0.0
    ranked = np.sort(counts).astype(np.float64)
    return float(2.0 * (np.arange(1, n + 1) @ ranked) / (n * total) - (n + 1) / n)
