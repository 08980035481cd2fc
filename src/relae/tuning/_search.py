"""Search of the parameters of a model with dials: the same trials always lead to the same next one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr

from relae.errors import ParameterError
from relae.tuning._process import Array, finite, improvement, predict
from relae.tuning._trial import Constraint, Trial

Setting = dict[str, Any]  # parameters that need a fit, by name
Dials = dict[str, float]  # parameters that are live on a fitted model, by name


def three_digits(value: float) -> float:
    """Return a value as it is shown, so that a journal and a person can repeat it."""
    return float(f"{value:.3g}")


class Search(Protocol):
    """A plan of trials."""

    @property
    def size(self) -> int:
        """The number of trials that it will make."""
        ...

    def next(self, trials: Sequence[Trial]) -> Mapping[str, Any] | None:
        """Return the next parameters to fit, by name; None when it is done. Those not named stay as they are."""
        ...

    def dials(self, model: Any, trials: Sequence[Trial]) -> Sequence[Mapping[str, float]]:
        """Return the dials to evaluate on a fitted model, by name; one empty mapping where there are none.

        `trials` are those before.
        """
        ...


@dataclass(frozen=True)
class GridSearch:
    """All combinations of some parameters, each fit with the same dials: the paper's search.

    Parameters
    ----------
    fit_values
        The values of each parameter that needs a fit, of which the first changes fastest; or all settings, one by one.
    dial_values
        The same for the dials; the model's own if not given.
    """

    fit_values: Mapping[str, Sequence[float]] | Sequence[Mapping[str, float]]
    dial_values: Mapping[str, Sequence[float]] | Sequence[Mapping[str, float]] = ()

    @property
    def size(self) -> int:
        """Return the number of fits."""
        return len(_combinations(self.fit_values))

    def dials(self, model: Any, trials: Sequence[Trial] = ()) -> list[Dials]:
        """Return the same dials for every fit."""
        return _combinations(self.dial_values) or [{}]

    def next(self, trials: Sequence[Trial]) -> Setting | None:
        """Return the first combination that has not been tried."""
        settings = _combinations(self.fit_values)
        names = list(settings[0]) if settings else []
        done = {_values(trial.parameters, names) for trial in trials}
        return next((setting for setting in settings if _values(setting, names) not in done), None)


def _combinations(grid: Mapping[str, Sequence[float]] | Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Return all combinations of the values of parameters, the first of which changes fastest."""
    if not isinstance(grid, Mapping):
        return [{name: _plain(value) for name, value in each.items()} for each in grid]
    if not grid:
        return []
    names = list(grid)
    return [
        dict(zip(names, map(_plain, reversed(values)), strict=True))
        for values in product(*(grid[name] for name in reversed(names)))
    ]


def _plain(value: float) -> float:
    """Return a number as Python has it, which a journal can keep."""
    return value if isinstance(value, int) else float(value)


def _values(parameters: Mapping[str, Any], names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(parameters[name] for name in names)


# --- auto --------------------------------------------------------------------------------------------------------

_ROOM = 2.5  # octaves around the best so far
_WIDTH = (-4.5, 5.0)  # octaves that are always searched
_WEIGHT = 0.25  # of models other than the best of all


@dataclass(frozen=True)
class Axis:
    """One parameter that needs a fit.

    Attributes
    ----------
    name : str
    steps : sequence of float
        The values to choose from; octaves from the scale of the data if `octaves`.
    lengths : sequence of float
        Over how much of it a surface may change: the likeliest is taken.
    octaves : bool
    values : mapping, optional
        What stands at each step, where that is not the step itself: a number above 0, or None for infinity.
    """

    name: str
    steps: Sequence[float]
    lengths: Sequence[float]
    octaves: bool = False
    values: Mapping[float, Any] | None = None

    def value(self, at: float) -> Any:
        """Return the value of the parameter at the step nearest to a place."""
        step = _nearest(self.steps, at)
        return step if self.values is None else self.values[step]

    def step_of(self, value: Any) -> float:
        """Return the step of a value, or that of the nearest value of which there is one."""
        if self.values is None:
            return float(value)
        amount = float("inf") if value is None else float(value)
        known = {step: float("inf") if each is None else float(each) for step, each in self.values.items()}
        return min(known, key=lambda step: abs(1 / known[step] - 1 / amount))


@dataclass(frozen=True)
class Space:
    """The space that `Auto` searches.

    Attributes
    ----------
    axes : sequence of Axis
        The parameters that need a fit, the one in octaves first.
    start : sequence of places
        Where to look before there is anything to learn from: a step of each axis.
    scale : function of a setting
        Return the order of magnitude of the parameter in octaves, given the other parameters.
    dials : function of a fitted model, and of the trials so far
        Return the dials to evaluate.
    shared : sequence of mappings
        The constants of each model that is found by the same search and counts beside the best of all.
    """

    axes: Sequence[Axis]
    start: Sequence[Sequence[float]]
    scale: Callable[[Setting], float]
    dials: Callable[[Any, Sequence[Trial]], list[Dials]]
    shared: Sequence[Mapping[str, float]] = ()

    @property
    def names(self) -> list[str]:
        """The parameters that need a fit."""
        return [axis.name for axis in self.axes]

    def setting(self, point: Iterable[float]) -> Setting:
        """Return the parameters of a point: the nearest steps there are, or octaves of the scale with three digits."""
        pairs = list(zip(self.axes, map(float, point), strict=True))
        setting = {axis.name: axis.value(at) for axis, at in pairs if not axis.octaves}
        scaled = {axis.name: three_digits(self.scale(setting) * 2.0**at) for axis, at in pairs if axis.octaves}
        return {name: (scaled | setting)[name] for name in self.names}

    def point(self, setting: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the point of parameters."""
        scale = self.scale(dict(setting))
        return tuple(
            float(np.log2(setting[axis.name] / scale)) if axis.octaves else axis.step_of(setting[axis.name])
            for axis in self.axes
        )


@dataclass(frozen=True)
class Auto:
    """A budget of fits, spent where the models that share the search can together expect to gain most.

    The best value over all dials is a smooth function of the parameters that need a fit, and so are the values where
    the constants of a model hold. Each is modelled by a Gaussian process with the same kernel; the next trial has the
    largest expected improvement, summed over the models, and the last few go where the best of all is expected.

    Parameters
    ----------
    space : Space
        What to search, such as `linear_space(scale)`.
    objective : str
        What to maximize.
    budget : int
        Fits.
    constraint : Constraint, optional
        What to keep.
    """

    space: Space
    objective: str
    budget: int = 16
    constraint: Constraint | None = None

    def __post_init__(self) -> None:
        if isinstance(self.budget, bool) or not isinstance(self.budget, (int, np.integer)) or self.budget < 1:
            raise ParameterError(
                f"the budget must be a whole number of inversions, at least 1, got {self.budget!r}",
                field="budget",
                value=self.budget,
            )

    @property
    def size(self) -> int:
        """Return the budget."""
        return self.budget

    def dials(self, model: Any, trials: Sequence[Trial] = ()) -> list[Dials]:
        """Return the dials of the space for a fitted model."""
        return self.space.dials(model, trials)

    def next(self, trials: Sequence[Trial]) -> Setting | None:
        """Return the next setting to try."""
        if len(trials) >= self.budget:
            return None
        names = self.space.names
        done = {_values(trial.parameters, names) for trial in trials}
        start = [self.space.setting(point) for point in self.space.start]
        for setting in start:
            if _values(setting, names) not in done and len(trials) < min(len(start), max(2, self.budget - 2)):
                return setting
        known = [trial for trial in trials if trial.points]
        points = self._candidates(known)
        settings = [self.space.setting(point) for point in points]
        free = [at for at, setting in enumerate(settings) if _values(setting, names) not in done]
        return settings[free[int(np.argmax(self._promise(known, points[free], self.budget - len(trials))))]]

    def _candidates(self, trials: Sequence[Trial]) -> Array:
        """Return points to choose from : (candidates, axes), with room around the best so far."""
        best = self.space.point(max(trials, key=lambda trial: _best(trial, self.objective)).parameters)
        steps = []
        for axis, at in zip(self.space.axes, best, strict=True):
            low, high = min(_WIDTH[0], at - _ROOM), max(_WIDTH[1], at + _ROOM)
            steps.append([step for step in axis.steps if not axis.octaves or low <= step <= high])
        return np.array(list(product(*steps)))

    def _predict(
        self, seen: Array, surfaces: Mapping[str, Array], points: Array
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        return predict(seen, surfaces, points, list(product(*(axis.lengths for axis in self.space.axes))))

    def _promise(self, trials: Sequence[Trial], points: Array, left: int) -> Array:
        """Return the expected gain of a trial at each point : (points,)."""
        seen = np.array([self.space.point(trial.parameters) for trial in trials])
        if self.constraint is None:
            return self._gain(trials, seen, points, self.objective, left)
        if 2 * left > self.budget:  # what there is to keep comes first
            return self._gain(trials, seen, points, self.constraint.metric, left)
        return self._allowed_gain(self.constraint, trials, seen, points)

    def _gain(self, trials: Sequence[Trial], seen: Array, points: Array, name: str, left: int) -> Array:
        """Return the improvement of all models together; near the end, the value of the best."""
        dials = {str(held): held for constants in self.space.shared if (held := self._held(constants, fit=False))}
        surfaces = {"best": np.array([_best(trial, name) for trial in trials])}
        for key in sorted(dials):
            surfaces[key] = np.array([_best(trial, name, dials[key]) for trial in trials])
        means, spread = self._predict(seen, surfaces, points)
        if left <= max(1, self.budget // 5):
            return means["best"]
        total = improvement(means["best"], spread["best"], surfaces["best"].max())
        for constants in self.space.shared:
            held = self._held(constants, fit=False)
            surface = str(held) if held else "best"
            own, able = (self._holds(constants, each) for each in (seen, points))
            if own.any():
                gain = improvement(means[surface], spread[surface], surfaces[surface][own].max())
                total = total + _WEIGHT * np.where(able, gain, 0.0)
        return total

    def _held(self, constants: Mapping[str, float], *, fit: bool) -> dict[str, float]:
        """Return those constants that are parameters of the fit, or dials."""
        return {name: value for name, value in constants.items() if (name in self.space.names) == fit}

    def _holds(self, constants: Mapping[str, float], points: Array) -> Any:
        """Return whether the constants of a model hold at each point : (points,)."""
        held = self._held(constants, fit=True)
        columns = [points[:, self.space.names.index(name)] == value for name, value in held.items()]
        return np.logical_and.reduce(columns) if columns else np.ones(len(points), bool)

    def _allowed_gain(self, kept: Constraint, trials: Sequence[Trial], seen: Array, points: Array) -> Array:
        """Return the improvement of the objective, times the probability that the constraint is kept."""
        most = max(point[kept.metric] for trial in trials for point in trial.points)
        objective, allowed = [], []
        for trial in trials:
            able = [point for point in trial.points if kept.allows(point, most)]
            nearest = max(trial.points, key=lambda point: point[kept.metric])
            objective.append(max(point[self.objective] for point in able) if able else nearest[self.objective])
            allowed.append(bool(able))
        surfaces = {
            "objective": finite(np.array(objective)),
            "kept": np.array([_best(trial, kept.metric) for trial in trials]),
        }
        means, spread = self._predict(seen, surfaces, points)
        z = (means["kept"] - (1 - kept.loss) * most) / np.maximum(spread["kept"], 1e-15)
        return np.asarray(
            improvement(means["objective"], spread["objective"], surfaces["objective"][allowed].max()) * ndtr(z)
        )


def _nearest(steps: Sequence[float], value: float) -> float:
    return round(float(min(steps, key=lambda step: abs(step - value))), 4)


def _best(trial: Trial, name: str, constants: Mapping[str, float] | None = None) -> float:
    """Return the best value of a metric over the dials of a trial, or over those where constants hold."""
    held = (constants or {}).items()
    points = [point for point in trial.points if all(point.parameters[key] == value for key, value in held)]
    return float(finite(np.array([point[name] for point in points])).max())
