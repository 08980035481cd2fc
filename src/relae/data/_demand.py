"""The recent demand for each item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relae.data._weights import ages_of, day_of
from relae.data.interactions import Interactions
from relae.errors import DataError

FRESH_DAYS = (0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 14.0, 30.0, 60.0, 120.0, 365.0)
"""The half-lives, in days, that are counted in every demand."""

_NOTHING = 1e-12  # of a sum: what rounding leaves when all of it is taken away


@dataclass(frozen=True)
class Demand:
    """The interactions of each item, each counted 0.5^(age / half-life), for several half-lives.

    Attributes
    ----------
    half_lives : tuple of float
        In days.
    counts : (half-lives, items)
        The aged interactions.
    at : int
        The moment of which the ages are, in the unit of the times.
    """

    half_lives: tuple[float, ...]
    counts: NDArray[np.float64]
    at: int

    @classmethod
    def of(cls, data: Interactions, *half_lives: float) -> Demand | None:
        """Return the demand at the latest time of interactions, also for these half-lives; None without times."""
        if data.times is None or len(data.times) == 0:
            return None
        days = tuple(sorted({*FRESH_DAYS, *map(float, half_lives)}))
        ages, items = ages_of(data.times), data.matrix.indices
        return cls(days, _count(items, ages, days, data.n_items), int(data.times.max()))

    def of_half_life(self, days: float) -> NDArray[np.float64]:
        """Return the aged interactions of each item : (items,).

        Exact for the half-lives that were counted, and between two of them the geometric mean by their nearness;
        outside of them, that of the nearest.
        """
        row = np.interp(np.log(days), np.log(self.half_lives), np.arange(len(self.half_lives)))
        low = int(row)
        share = float(row) - low
        if share == 0:
            return np.asarray(self.counts[low])
        return np.asarray(self.counts[low] ** (1 - share) * self.counts[low + 1] ** share)

    def with_events(self, columns: NDArray[np.integer], times: NDArray[np.int64]) -> Demand:
        """Return the demand once further interactions are known, exactly as if all had been counted at once.

        Parameters
        ----------
        columns, times
            The item and the time of each of them, in the unit of `at`.
        """
        if len(times) == 0:
            return self
        day, at = day_of(np.array([self.at])), max(self.at, int(times.max()))
        if day_of(times) != day:
            raise DataError(
                f"times of about {int(times.max()):,} are in another unit than those of the model, which end at "
                f"{self.at:,}: give both in the same unit"
            )
        decay = np.exp2(-(at - self.at) / day / np.array(self.half_lives))
        added = _count(columns, (at - times) / day, self.half_lives, self.counts.shape[1])
        return Demand(self.half_lives, self.counts * decay[:, None] + added, at)

    def without_events(self, columns: NDArray[np.integer], times: NDArray[np.int64]) -> Demand:
        """Return the demand without some of the interactions that were counted, as of the same moment.

        Parameters
        ----------
        columns, times
            The item and the time of each of them, in the unit of `at`.
        """
        if len(times) == 0:
            return self
        day = day_of(np.array([self.at]))
        gone = _count(columns, (self.at - times) / day, self.half_lives, self.counts.shape[1])
        left = self.counts - gone
        return Demand(self.half_lives, np.where(left > _NOTHING * self.counts, left, 0.0), self.at)

    def of_items(self, columns: NDArray[np.integer]) -> Demand:
        """Return the demand for some of the items."""
        return Demand(self.half_lives, self.counts[:, columns], self.at)

    def for_items(self, n_items: int) -> Demand:
        """Return the demand with further items that nobody has wanted yet."""
        return Demand(self.half_lives, np.pad(self.counts, ((0, 0), (0, n_items - self.counts.shape[1]))), self.at)


def _count(
    items: NDArray[np.integer], ages: NDArray[np.float64], days: tuple[float, ...], n_items: int
) -> NDArray[np.float64]:
    return np.stack([np.bincount(items, np.exp2(-ages / each), n_items).astype(np.float64) for each in days])
