"""Times in words."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from relae.data._weights import day_of


def describe_times(times: NDArray[np.int64], moments: Iterable[int]) -> list[str]:
    """Return moments as dates in UTC, with the time of day where two are of one day; without a clock as numbers."""
    listed, day = list(moments), day_of(times)
    if day == 1.0:
        return [f"{moment:,}" for moment in listed]
    start = datetime(1970, 1, 1, tzinfo=UTC)
    dates = [start + timedelta(days=moment / day) for moment in listed]
    texts = [f"{date:%Y-%m-%d}" for date in dates]
    return texts if len(set(texts)) == len(texts) else [f"{date:%Y-%m-%d %H:%M}" for date in dates]
