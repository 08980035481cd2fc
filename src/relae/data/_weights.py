"""From amounts and ages to the weights of interactions."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from relae.errors import DataError

Weighting = Literal["linear", "sqrt", "log", "binary"]

_FUNCTIONS: dict[str, Any] = {
    "linear": np.positive,
    "sqrt": np.sqrt,
    "log": lambda amounts: np.log1p(amounts) / np.log(2.0),
    "binary": np.ones_like,
}


def reweighted(amounts: NDArray[np.float32], weighting: Weighting) -> NDArray[np.float64]:
    """Return the weights of amounts; an amount of 1 has the weight 1."""
    if weighting not in _FUNCTIONS:
        raise DataError(f"weighting must be one of {', '.join(map(repr, get_args(Weighting)))}, got {weighting!r}")
    weights: NDArray[np.float64] = _FUNCTIONS[weighting](amounts.astype(np.float64))
    return weights


def recency(times: NDArray[np.int64] | None, half_life: float | None) -> NDArray[np.float64] | float:
    """Return what age leaves of the weights, 0.5^((latest − t) / half_life)."""
    if half_life is None:
        return 1.0
    if not (isinstance(half_life, Real) and 0 < half_life < np.inf):
        raise DataError(f"half_life must be a positive number, in the unit of the times, got {half_life!r}")
    if times is None:
        raise DataError(f"half_life={half_life!r} needs times: read the data with timestamp=…")
    ages = times.max(initial=np.iinfo(np.int64).min).astype(np.float64) - times
    decay: NDArray[np.float64] = np.exp2(-ages / half_life)
    return decay
