"""Which (l2, dropout, user norm) to try next: the same trials always lead to the same next one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from relae.algebra import Dial
from relae.models import RDLAE
from relae.tuning._process import Array, finite, improvement, predict
from relae.tuning._result import FAMILY, Constraint, Trial

Setting = tuple[float, float, float]  # l2, dropout, user norm
DEFAULT_XI = RDLAE().xi


def three_digits(value: float) -> float:
    """Return a value as it is shown, so that a journal and a person can repeat it."""
    return float(f"{value:.3g}")


class Search(Protocol):
    """A plan of trials."""

    @property
    def size(self) -> int:
        """How many trials it will make."""
        ...

    def dials(self, free_diagonal: Array) -> list[Dial]:
        """Return the dials to evaluate, given the diagonal of the unconstrained solution : (items,)."""
        ...

    def next(self, trials: Sequence[Trial]) -> Setting | None:
        """Return the next l2, dropout and user norm; None when it is done."""
        ...


@dataclass(frozen=True)
class GridSearch:
    """All combinations of some l2 and dropouts, each with the same ξ: the paper's search; and of norms, beyond it.

    User norms that are keys have what each multiplies the l2 by, as those of `Auto` have.
    """

    l2s: Sequence[float]
    dropouts: Sequence[float] = tuple(round(0.1 * step, 1) for step in range(10))
    xi_values: Sequence[float] = tuple(round(0.1 * step, 1) for step in range(11))

    user_norms: Sequence[float] | Mapping[float, float] = (0.0,)
    item_norms: Sequence[float] = (0.0,)

    @property
    def size(self) -> int:
        """Return the number of inversions."""
        return len(self.l2s) * len(self.dropouts) * len(self.user_norms)

    def dials(self, free_diagonal: Array) -> list[Dial]:
        """Return the same dials for every inversion."""
        return [Dial(xi, norm) for norm in self.item_norms for xi in self.xi_values]

    def next(self, trials: Sequence[Trial]) -> Setting | None:
        """Return the first combination that has not been tried."""
        done = {(trial.l2, trial.dropout, trial.user_norm) for trial in trials}
        all_of_them = product(self.user_norms, self.dropouts, self.l2s)
        settings = ((self._scaled(l2, norm), float(dropout), float(norm)) for norm, dropout, l2 in all_of_them)
        return next((setting for setting in settings if setting not in done), None)

    def _scaled(self, l2: float, norm: float) -> float:
        """Return the l2 of a user norm, with three digits where it is multiplied."""
        factor = self.user_norms[norm] if isinstance(self.user_norms, Mapping) else 1.0
        return float(l2) if factor == 1 else three_digits(l2 * factor)


# --- auto --------------------------------------------------------------------------------------------------------

# Octaves from the suggested l2, and dropouts: one look at each corner that some data set likes best.
_START = ((0.0, 0.0, 0.0), (2.5, 0.2, 0.0), (-2.5, 0.4, 0.0), (4.0, 0.0, 0.0), (0.0, 0.5, 0.0))
_START_WITH_NORMS = ((0.0, 0.5, 0.0), (-1.5, 0.7, 0.3), (2.5, 0.2, 0.5), (0.0, 0.7, 0.8), (0.0, 0.5, 0.5))
_OCTAVES = np.arange(-7.0, 9.01, 0.25)
_DROPOUTS = np.round(np.arange(0.0, 0.91, 0.05), 2)
_LENGTHS = [(octaves, share) for octaves in (1.5, 2.5, 4.0, 6.0) for share in (0.2, 0.35, 0.6, 1.0)]
_NORM_LENGTHS = (0.4, 0.8, 1.6)
_WEIGHT = 0.25  # of models other than the best of all


@dataclass(frozen=True)
class Auto:
    """A budget of inversions, spent where the six models together can expect to gain most.

    The best value over ξ is a smooth function of log l2 and dropout, and so are those at ξ = 0 and ξ = 1. Each is
    modelled by a Gaussian process with the same kernel; the next trial has the largest expected improvement, summed
    over the models, and the last few go where the best of all is expected.

    Parameters
    ----------
    scale : float
        An l2 of the right order of magnitude, such as `suggested_l2`.
    budget : int
        Inversions.
    objective : str
        What to maximize.
    constraint : Constraint, optional
        What to keep.
    user_norms : mapping of float to float
        User norms to choose from, and what each multiplies the scale by. With more than one, DAN alone is searched for.
    item_norms : sequence of float
        Item norms of every inversion.
    """

    scale: float
    objective: str
    budget: int = 16
    constraint: Constraint | None = None
    user_norms: Mapping[float, float] = field(default_factory=lambda: {0.0: 1.0})
    item_norms: Sequence[float] = (0.0,)

    def __post_init__(self) -> None:
        if isinstance(self.budget, bool) or not isinstance(self.budget, (int, np.integer)) or self.budget < 1:
            raise ValueError(f"the budget must be a whole number of inversions, at least 1, got {self.budget!r}")

    @property
    def size(self) -> int:
        """Return the budget."""
        return self.budget

    @property
    def _normalizing(self) -> bool:
        return len(self.user_norms) > 1

    def dials(self, free_diagonal: Array) -> list[Dial]:
        """Return, for each item norm, ξ of 0, 1, the default, and some with the same share of constraints removed."""
        inner = np.concatenate(
            [
                np.quantile(free_diagonal, np.linspace(0.05, 0.95, 5 if self._normalizing else 10)),
                np.linspace(free_diagonal.min(), free_diagonal.max(), 4 if self._normalizing else 7)[1:-1],
            ]
        )
        xis = sorted({0.0, 1.0, DEFAULT_XI, *np.round(inner.clip(0.0, 1.0), 4).tolist()})
        return [Dial(xi, norm) for norm in self.item_norms for xi in xis]

    def next(self, trials: Sequence[Trial]) -> Setting | None:
        """Return the next setting to try."""
        if len(trials) >= self.budget:
            return None
        done = {(trial.l2, trial.dropout, trial.user_norm) for trial in trials}
        start = [self._setting(*place) for place in (_START_WITH_NORMS if self._normalizing else _START)]
        for setting in start:
            if setting not in done and len(trials) < min(len(start), max(2, self.budget - 2)):
                return setting
        places = self._candidates(trials)
        free = [at for at, place in enumerate(places) if self._setting(*place) not in done]
        values = self._promise(trials, places[free])
        return self._setting(*places[free][int(np.argmax(values))])

    def _setting(self, octaves: float, dropout: float, norm: float) -> Setting:
        """Return l2 with three digits, dropout, and the nearest user norm there is."""
        nearest = min(self.user_norms, key=lambda each: abs(each - norm))
        scale = self.scale * self.user_norms[nearest]
        return three_digits(scale * 2.0 ** float(octaves)), round(float(dropout), 4), nearest

    def _place(self, trial: Trial) -> tuple[float, float, float]:
        """Return the octaves, dropout and user norm of a trial."""
        scale = self.scale * self.user_norms.get(trial.user_norm, 1.0)
        return float(np.log2(trial.l2 / scale)), trial.dropout, trial.user_norm

    def _candidates(self, trials: Sequence[Trial]) -> Array:
        """Return octaves, dropouts and norms to choose from : (candidates, 3), with room around the best so far."""
        octave, *_ = self._place(max(trials, key=lambda trial: _best(trial, self.objective, None)))
        low, high = min(-4.5, octave - 2.5), max(5.0, octave + 2.5)
        octaves = [a for a in _OCTAVES if low <= a <= high]
        return np.array(list(product(octaves, _DROPOUTS, self.user_norms)))

    def _predict(
        self, seen: Array, surfaces: Mapping[str, Array], places: Array
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        if not self._normalizing:
            return predict(seen[:, :2], surfaces, places[:, :2], _LENGTHS)
        return predict(seen, surfaces, places, [(*pair, norm) for pair in _LENGTHS for norm in _NORM_LENGTHS])

    def _promise(self, trials: Sequence[Trial], places: Array) -> Array:
        """Return what a trial at each place promises : (places,)."""
        seen = np.array([self._place(trial) for trial in trials])
        if self.constraint is None:
            return self._gain(trials, seen, places, self.objective)
        if 2 * len(trials) < self.budget:  # what there is to keep comes first
            return self._gain(trials, seen, places, self.constraint.metric)
        return self._allowed_gain(self.constraint, trials, seen, places)

    def _gain(self, trials: Sequence[Trial], seen: Array, places: Array, name: str) -> Array:
        """The improvement of all models together; near the end, the value of the best."""
        surfaces = {
            surface: np.array([_best(trial, name, xi) for trial in trials])
            for surface, xi in (("best", None), ("zero", 0.0), ("one", 1.0))
            if surface == "best" or not self._normalizing
        }
        means, spread = self._predict(seen, surfaces, places)
        if self.budget - len(trials) <= max(1, self.budget // 5):
            return means["best"]
        total = improvement(means["best"], spread["best"], surfaces["best"].max())
        if self._normalizing:
            return total
        plain = places[:, 1] == 0
        for model, (_, dropout, xi) in FAMILY.items():
            surface = {None: "best", 0.0: "zero", 1.0: "one"}[xi]
            own = seen[:, 1] == 0 if dropout == 0.0 else np.ones(len(seen), bool)
            if model not in ("RDLAE", "DAN") and own.any():
                gain = improvement(means[surface], spread[surface], surfaces[surface][own].max())
                total = total + _WEIGHT * np.where(plain | (dropout is None), gain, 0.0)
        return total

    def _allowed_gain(self, kept: Constraint, trials: Sequence[Trial], seen: Array, places: Array) -> Array:
        """The improvement of the objective, times the probability that the constraint is kept."""
        most = max(point[kept.metric] for trial in trials for point in trial.points)
        objective, allowed = [], []
        for trial in trials:
            able = [point for point in trial.points if kept.allows(point, most)]
            nearest = max(trial.points, key=lambda point: point[kept.metric])
            objective.append(max(point[self.objective] for point in able) if able else nearest[self.objective])
            allowed.append(bool(able))
        surfaces = {
            "objective": finite(np.array(objective)),
            "kept": np.array([_best(trial, kept.metric, None) for trial in trials]),
        }
        means, spread = self._predict(seen, surfaces, places)
        z = (means["kept"] - (1 - kept.loss) * most) / np.maximum(spread["kept"], 1e-15)
        return np.asarray(
            improvement(means["objective"], spread["objective"], surfaces["objective"][allowed].max()) * ndtr(z)
        )


def _best(trial: Trial, name: str, xi: float | None) -> float:
    """The best value of a metric over all ξ of a trial, or at one."""
    values = finite(np.array([point[name] for point in trial.points if xi in (None, point.xi)]))
    return float(values.max())
