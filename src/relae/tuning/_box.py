"""Search of the parameters of any model: the next point in a box of ranges, from the trials so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, floor, log10
from typing import Any, Protocol

import numpy as np

from relae._common.checks import is_number
from relae.errors import ParameterError
from relae.recommender import Range
from relae.tuning._process import Array, finite, improvement, predict

_LENGTHS = (0.15, 0.3, 0.6, 1.2)  # of the side of the box
_MOST_LENGTHS = 1024
_SPREAD, _NEAR = 1024, 256  # candidates: all over the box, and around the best
_STEP = 0.08  # of the side of the box, between the best and what is near it
_APART = 0.03  # of the side of the box, between any two trials


class Tried(Protocol):
    """The part of a trial that the search uses."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The parameters searched, by name."""
        ...

    def __getitem__(self, name: str) -> float:
        """A metric."""
        ...


@dataclass(frozen=True)
class BoxSearch:
    """A budget of trials: the model's own parameters, a few points spread evenly, then where most is expected.

    Places are of the unit cube, logarithmic where the range is. What is expected comes from a Gaussian process, by
    expected improvement; the last few trials go where the best value is expected. There is no chance in it: the seed
    decides how the first places are spread.

    Parameters
    ----------
    start
        The parameters to begin with.
    space
        The ranges to search.
    objective
        What to maximize.
    budget
        Trials.
    seed
        Of the places.
    """

    start: Mapping[str, Any]
    space: Mapping[str, Range]
    objective: str
    budget: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.budget, bool) or not isinstance(self.budget, (int, np.integer)) or self.budget < 1:
            raise ParameterError(
                f"the budget must be a whole number of trials, at least 1, got {self.budget!r}",
                field="budget",
                value=self.budget,
            )
        if not self.space:
            raise ValueError("there is nothing to search: the space has no parameter")

    @property
    def size(self) -> int:
        """Return the budget."""
        return self.budget

    def next(self, trials: Sequence[Tried]) -> dict[str, Any] | None:
        """Return the next parameters to try; None when the budget is spent, or all there is was tried."""
        if len(trials) >= self.budget:
            return None
        if not trials:
            return {name: self.start[name] for name in self.space}
        from scipy.stats import qmc  # half a second, which only this search pays

        done = [dict(trial.parameters) for trial in trials]
        dimensions = len(self.space)
        spread = qmc.Halton(dimensions, seed=self.seed).random(_SPREAD)
        if len(trials) < min(dimensions + 2, max(2, self.budget // 2)):
            candidates = [self._parameters(point) for point in spread]
            return next((candidate for candidate in candidates if candidate not in done), None)
        placed = [(point, trial) for trial in trials if (point := self._point(trial.parameters)) is not None]
        seen = np.array([point for point, _ in placed]).reshape(-1, dimensions)
        values = finite(np.array([trial[self.objective] for _, trial in placed]))
        return self._best_of(self._free(np.vstack([spread, self._near(seen, values)]), done), seen, values, len(trials))

    def dials(self, model: Any, trials: Sequence[Any] = ()) -> list[dict[str, float]]:
        """Return no dial but the model's own."""
        return [{}]

    def _near(self, seen: Array, values: Array) -> Array:
        """Return points around the best so far : (points, dimensions)."""
        if not len(seen):
            return np.empty((0, len(self.space)))
        steps = np.random.default_rng(self.seed).standard_normal((_NEAR, len(self.space)))
        return np.asarray((seen[int(np.argmax(values))] + _STEP * steps).clip(0.0, 1.0))

    def _free(self, points: Array, done: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the distinct parameters of points, without those that were tried."""
        settings = {tuple(setting.values()): setting for setting in map(self._parameters, points)}
        return [setting for setting in settings.values() if setting not in done]

    def _best_of(
        self, candidates: Sequence[dict[str, Any]], seen: Array, values: Array, done: int
    ) -> dict[str, Any] | None:
        if not candidates or not len(seen):
            return candidates[0] if candidates else None
        points = np.array([self._point(setting) for setting in candidates])
        far = np.flatnonzero(np.abs(points[:, None] - seen[None]).max(axis=2).min(axis=1) >= _APART)
        if len(far):  # what lies beside a trial would only repeat it
            candidates, points = [candidates[int(at)] for at in far], points[far]
        means, spread = predict(seen, {"value": values}, points, _lengths(len(self.space)))
        if self.budget - done <= max(1, self.budget // 5):
            return candidates[int(np.argmax(means["value"]))]
        return candidates[int(np.argmax(improvement(means["value"], spread["value"], float(values.max()))))]

    def _parameters(self, point: Array) -> dict[str, Any]:
        """Return the parameters of a point, with three digits or as whole numbers."""
        return {name: _value(ranged, float(at)) for (name, ranged), at in zip(self.space.items(), point, strict=True)}

    def _point(self, parameters: Mapping[str, Any]) -> Array | None:
        """Return the point of parameters; None if one of them is not a number, as with a default that the data set."""
        parts = [_part(ranged, parameters[name]) for name, ranged in self.space.items()]
        return None if None in parts else np.array(parts, np.float64)


def _value(ranged: Range, at: float) -> Any:
    """Return the value at a part of the way through a range; `_part` is its inverse."""
    low, high = ranged.low, ranged.high
    value = low * (high / low) ** at if ranged.log else low + at * (high - low)
    if ranged.whole:
        return int(min(max(round(value), ceil(low)), floor(high)))
    rounded = float(f"{value:.3g}") if ranged.log else round(value, 3 - floor(log10(high - low)))
    return float(min(max(rounded, low), high))


def _part(ranged: Range, value: Any) -> float | None:
    """Return the place of a value between the ends of a range, from 0 to 1; a value beyond them counts as the end."""
    if not is_number(value):
        return None
    low, high = ranged.low, ranged.high
    inside = min(max(float(value), low), high)
    return log10(inside / low) / log10(high / low) if ranged.log else (inside - low) / (high - low)


def _lengths(dimensions: int) -> list[tuple[float, ...]]:
    """Return all combinations of lengths; if these are too many, the same length in each dimension."""
    if len(_LENGTHS) ** dimensions <= _MOST_LENGTHS:
        return list(product(_LENGTHS, repeat=dimensions))
    return [(length,) * dimensions for length in _LENGTHS]
