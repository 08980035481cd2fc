"""Time in the search of the linear autoencoders: how interactions age, how histories fade, what is wanted now.

How interactions age needs an inverse of its own and is one more axis. Fading costs a projection and freshness a pass
over the scores: they are dials. The first fit is judged with a coarse grid of them, and every later one around the best
so far, so that a fit is judged some fifty times and not thousands of times. Where times are places in a list and no
clock, interactions have an order and no age: then only fading is searched.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from relae.algebra import Dial
from relae.data import FRESH_DAYS, Interactions
from relae.recommender import Range
from relae.tuning._search import Axis, Dials, Setting, Space, three_digits
from relae.tuning._trial import Trial

NAMES = ("half_life", "fading", "freshness", "fresh_days")
DIALS = NAMES[1:]

_FADINGS = (0.0, 0.12, 0.25, 0.37, 0.5, 0.75, 1.0, 1.5, 2.0)
_FRESHNESSES = (0.0, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12)
_STEPS = dict(zip(DIALS, (_FADINGS, _FRESHNESSES, FRESH_DAYS), strict=True))
_FIRST_FADINGS, _FIRST_FRESHNESSES, _FIRST_DAYS = (0.25, 0.5, 1.0), _FRESHNESSES[1:-1], FRESH_DAYS[1:9]

_HALVINGS = 7  # how often the half-lives to choose from are halved, from the whole span of the data
_START = (0, 3, 0, 5, 1)  # of the half-life, at the places where a search begins


def searched(data: Interactions) -> tuple[str, ...]:
    """Return the parameters that are searched on data with times."""
    return NAMES if data.has_clock else ("fading",)


def ranges(data: Interactions) -> dict[str, Range]:
    """Return what is searched, by parameter; without a half-life, age does not matter."""
    if not data.has_clock:
        return {"fading": Range(_FADINGS[0], _FADINGS[-1])}
    values = [value for value in _half_lives(data).values() if value is not None]
    return {
        "half_life": Range(min(values), max(values), log=True),
        **{name: Range(steps[0], steps[-1]) for name, steps in _STEPS.items()},
    }


def timed(space: Space, data: Interactions, objective: str) -> Space:
    """Return a space with the parameters of time in it."""
    names = [name for name in searched(data) if name in DIALS]

    def dials(model: Any, trials: Sequence[Trial]) -> list[Dials]:
        return _around(space.dials(model, trials), model, trials, objective, names)

    if not data.has_clock:
        return replace(space, dials=dials)
    half_lives = _half_lives(data)
    squares = data.matrix.data.astype(np.float64) ** 2
    shares = {
        value: 1.0 if value is None else float((squares * np.exp2(-2 * data.ages() / value)).sum() / squares.sum())
        for value in half_lives.values()
    }
    axis = Axis("half_life", tuple(half_lives), (1.5, 3.0, 6.0), values=half_lives)

    def scale(setting: Setting) -> float:
        value = half_lives[axis.step_of(setting["half_life"])]
        return space.scale(setting) * shares[value]

    starts = [(*point, float(_START[at % len(_START)])) for at, point in enumerate(space.start)]
    return replace(space, axes=(*space.axes, axis), start=starts, scale=scale, dials=dials)


def _half_lives(data: Interactions) -> dict[float, float | None]:
    """Return the half-lives to choose from, by their place on the axis: none, the whole span, its half, and so on."""
    span = max(float(data.ages().max(initial=0.0)), 1.0)
    return {0.0: None, **{float(step): three_digits(span * 2.0 ** (1 - step)) for step in range(1, _HALVINGS)}}


def _around(
    plain: Sequence[Dials], model: Any, trials: Sequence[Trial], objective: str, names: Sequence[str]
) -> list[Dials]:
    """Return the dials to judge a fit with: a coarse grid for the first, and later ones around the best so far."""
    points = [point for trial in trials for point in trial.points]
    if not points:
        own = {name: getattr(model, name) for name in plain[0]}
        neutral = {name: Dial._field_defaults[name] for name in names}
        grid: list[Dials] = [{"fading": fading} for fading in _FIRST_FADINGS]
        if "freshness" in names:
            pairs = product(_FIRST_FRESHNESSES, _FIRST_DAYS)
            grid += [{"freshness": freshness, "fresh_days": days} for freshness, days in pairs]
        return [*(neutral | each for each in plain), *(own | neutral | each for each in grid)]
    best = max(points, key=lambda point: point[objective]).parameters
    time = {name: best[name] for name in names}
    others = {name: best[name] for name in plain[0]}
    settings = [time | each for each in plain] + [others | near for near in _near(time)]
    return list({tuple(sorted(each.items())): each for each in settings}.values())


def _near(time: Dials) -> Iterator[Dials]:
    """Yield all dials of time that are at most one step away in each of them."""
    choices = []
    for name, value in time.items():
        steps = _STEPS[name]
        at = int(np.argmin([abs(step - value) for step in steps]))
        choices.append([value, *(steps[each] for each in (at - 1, at, at + 1) if 0 <= each < len(steps))])
    for values in product(*choices):
        near = dict(zip(time, values, strict=True))
        if near.get("freshness", 1.0) == 0:  # then it does not matter
            near["fresh_days"] = time["fresh_days"]
        yield near
