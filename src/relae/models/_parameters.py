"""The parameters of the linear autoencoders, each declared once."""

from typing import TypedDict

from relae.algebra import FADING as FADING_LIMITS
from relae.algebra import FRESH_DAYS as FRESH_DAYS_LIMITS
from relae.algebra import FRESHNESS as FRESHNESS_LIMITS
from relae.algebra import NORMS, XIS
from relae.recommender import HistoryRecommender, Parameter, Range


def _steps(low: float, high: float, step: float) -> tuple[float, ...]:
    """Return the values from `low` to `high`, both included."""
    return tuple(round(low + step * at, 2) for at in range(round((high - low) / step) + 1))


L2 = Parameter(
    "l2",
    None,
    "the L2 penalty on all weights; by default a rule chooses it from the data, and `relae tune` searches it",
    "λ",
    low=0,
    steps=_steps(-7.0, 9.0, 0.25),
    option=True,
)
DROPOUT = Parameter(
    "dropout",
    0.3,
    "the dropout rate, a penalty in proportion to popularity",
    low=0,
    high=1,
    below=True,
    steps=_steps(0.0, 0.9, 0.05),
    option=True,
)
USER_NORM = Parameter(
    "user_norm",
    0.3,
    "a power that reduces the weight of users with many items, usually from 0 to 1",
    "β",
    "users",
    low=NORMS[0],
    high=NORMS[1],
    steps=_steps(0.0, 1.0, 0.1),
    effect="The norm of users, by which those with many items count less",
    option=True,
)
KEPT = Parameter("kept", 0.1, "the weight in the loss of an entry that dropout has kept", low=0, search=Range(0.0, 1.0))

XI = Parameter(
    "xi",
    0.4,
    "the largest weight of an item on itself",
    "ξ",
    low=XIS[0],
    high=XIS[1],
    kind="dial",
    steps=_steps(0.0, 1.0, 0.1),
    option=True,
)
ITEM_NORM = Parameter(
    "item_norm",
    0.0,
    "penalize popular items by this power of their number of users, usually from 0 to 0.5",
    "α",
    "items",
    low=NORMS[0],
    high=NORMS[1],
    kind="dial",
    steps=(-0.1, -0.05, 0.0, 0.05, 0.1, 0.2, 0.3, 0.4),  # below 0 for users who turn to what is popular
    effect="The norm of items, which holds popular ones back",
    option=True,
)
PROPENSITY = Parameter(
    "propensity",
    0.0,
    "divide scores by this power of √popularity, usually from 0 to 1",
    "γ",
    "propensity",
    low=NORMS[0],
    high=NORMS[1],
    kind="dial",
)

HALF_LIFE = Parameter(
    "half_life",
    None,
    "the age in days at which an interaction counts half in the fit; by default age does not matter",
    low=0,
    above=True,
    effect="The half-life, the age in days at which an interaction counts half in the fit",
    option=True,
)
FADING = Parameter(
    "fading",
    0.0,
    "the power by which the items of a history fade with each later one, usually from 0 to 1",
    "φ",
    low=FADING_LIMITS[0],
    high=FADING_LIMITS[1],
    kind="dial",
    effect="Fading, by which the latest items of a history count most",
    option=True,
)
FRESHNESS = Parameter(
    "freshness",
    0.0,
    "what the recent demand adds to the score of the most wanted item, usually from 0 to 1",
    "τ",
    low=FRESHNESS_LIMITS[0],
    high=FRESHNESS_LIMITS[1],
    kind="dial",
    effect="Freshness, which adds to the scores of items that are in demand now",
    option=True,
)
FRESH_DAYS = Parameter(
    "fresh_days",
    7.0,
    "the age in days at which an interaction counts half in the recent demand",
    low=FRESH_DAYS_LIMITS[0],
    high=FRESH_DAYS_LIMITS[1],
    kind="dial",
    effect="The days in which the demand counted for freshness halves",
    option=True,
)

TIME = (HALF_LIFE, FADING, FRESHNESS, FRESH_DAYS)
"""What time changes; all linear autoencoders have it, and it needs data with times."""


class TimeParameters(TypedDict, total=False):
    """The parameters in `TIME`, as keywords of a model."""

    half_life: float | None
    fading: float
    freshness: float
    fresh_days: float


DIALS = (XI, ITEM_NORM, PROPENSITY, FADING, FRESHNESS, FRESH_DAYS)
"""What can be changed on any fitted linear autoencoder, in the order of `algebra.Dial`."""

FAMILY = (L2, DROPOUT, USER_NORM, HALF_LIFE, *DIALS)
"""The parameters of the closed form; of a model that has no parameter of a name, it is a constant."""


def dial_values(model: HistoryRecommender) -> dict[str, float | None]:
    """Return the values of the dials of a linear autoencoder, by name; None for any other model."""
    return {dial.name: float(getattr(model, dial.name)) if model.dials else None for dial in DIALS}
