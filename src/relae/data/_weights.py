"""From amounts and ages to the weights of interactions."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from relae._common.table_options import Weighting, check_weighting
from relae.errors import DataError, Option, ParameterWarning

LEAST = 1e-6  # that age leaves of a weight: what a fit makes of it in float32 is not rounded to 0

_FUNCTIONS: dict[str, Any] = {
    "linear": np.positive,
    "sqrt": np.sqrt,
    "log": lambda amounts: np.log1p(amounts) / np.log(2.0),
    "binary": np.ones_like,
}


def reweighted(amounts: NDArray[np.float32], weighting: Weighting) -> NDArray[np.float64]:
    """Return the weights of amounts; an amount of 1 has the weight 1."""
    check_weighting(weighting)
    weights: NDArray[np.float64] = _FUNCTIONS[weighting](amounts.astype(np.float64))
    return weights


def joined_amounts(
    weights: NDArray[np.float64], others: NDArray[np.float64], weighting: Weighting
) -> NDArray[np.float64]:
    """Return the weights of amounts that are added up, from the weights of both: f(f⁻¹(a) + f⁻¹(b))."""
    check_weighting(weighting)
    if weighting == "binary":
        return np.ones_like(weights)
    if weighting == "sqrt":
        return np.hypot(weights, others)
    if weighting == "log":
        return np.log2(np.exp2(weights) + np.exp2(others) - 1.0)
    return weights + others


_CLOCKS = ((1e14, 86_400e6), (1e11, 86_400e3), (1e8, 86_400.0))  # from which size on they are µs, ms and s since 1970


def day_of(times: NDArray[np.int64]) -> float:
    """Return how long a day is in the unit of times: microseconds, milliseconds or seconds since 1970, by their size.

    Smaller numbers, such as places in a file, are no clock: their unit counts as a day.
    """
    latest = float(times.max(initial=0))
    return next((day for size, day in _CLOCKS if latest >= size), 1.0)


def recency(
    times: NDArray[np.int64] | None, half_life: float | None, latest: int | None = None
) -> NDArray[np.float64] | float:
    """Return the factor of age in the weights, 0.5^((latest − t) / half_life), with a half-life in days."""
    if half_life is None:
        return 1.0
    if not (isinstance(half_life, Real) and 0 < half_life < np.inf):
        raise DataError(
            Option("half_life"),
            f" must be a positive number of days, got {half_life!r}",
            field="half_life",
            value=half_life,
        )
    if times is None:
        raise DataError(Option("half_life", half_life), " needs times: read the data with ", Option("timestamp", ...))
    ages = ages_of(times, latest)
    decay: NDArray[np.float64] = np.exp2(-ages / half_life)
    old = np.count_nonzero(decay < LEAST)
    if 2 * old > len(decay):
        warnings.warn(
            ParameterWarning(
                Option("half_life", half_life),
                f" days are short for times that span {ages.max():,.0f} days: {old / len(decay):.0%} of the "
                f"interactions are so old that they count the least there is, {LEAST:g}",
            ),
            stacklevel=3,
        )
    return decay


def ages_of(times: NDArray[np.int64], latest: int | None = None) -> NDArray[np.float64]:
    """Return the age of each interaction in days, at the latest of the times or at a later one."""
    end = int(times.max(initial=np.iinfo(np.int64).min)) if latest is None else int(latest)
    ages: NDArray[np.float64] = (end - times) / day_of(times)
    return ages


def faded(matrix: sp.csr_array, times: NDArray[np.int64] | None, fading: float | None) -> NDArray[np.float64] | float:
    """Return the factor of later items of the same user in the weights; see `fading_weights`."""
    if fading is None or fading == 0:
        return 1.0
    _check_fading(fading)
    if times is None:
        raise DataError(Option("fading", fading), " needs times: read the data with ", Option("timestamp", ...))
    users = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return fading_weights(users, times, fading)


def fading_weights(users: ArrayLike, times: ArrayLike, fading: float) -> NDArray[np.float64]:
    """Return r^−fading for each interaction, where r − 1 is how many interactions of the same user are later.

    The latest of a user counts 1, and so do all that happened at the same time.

    Parameters
    ----------
    users, times
        One of each per interaction, in any order: a number of the user, and a number that rises with time, such as
        the place of a line in a file.
    fading
        The power: 0 makes all weights 1.
    """
    _check_fading(fading)
    who, when = np.asarray(users), np.asarray(times)
    rising = np.lexsort((when, who))
    who, when = who[rising], when[rising]
    last = np.append((who[1:] != who[:-1]) | (when[1:] != when[:-1]), True)[: len(who)]  # of those at the same time
    ends = np.flatnonzero(last)[np.cumsum(last) - last]
    ranks = np.empty(len(who))
    ranks[rising] = np.searchsorted(who, who, side="right") - ends
    weights: NDArray[np.float64] = ranks ** -float(fading)
    return weights


def _check_fading(fading: float) -> None:
    if not (isinstance(fading, Real) and 0 <= fading < np.inf):
        raise DataError(
            Option("fading"),
            f" must be a number of at least 0, a power of the place by time, got {fading!r}",
            field="fading",
            value=fading,
        )
