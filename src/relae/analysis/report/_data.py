"""What a report says, as plain values: whoever has these can draw the page again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A mean over test users with its interval; low and high are NaN where there is none."""

    metric: str
    k: int
    mean: float
    low: float
    high: float
    users: int


@dataclass(frozen=True)
class Judged:
    """A model and what the test users say of it; `role` is "chosen", that of a rival, or "popularity"."""

    role: str
    model: str
    figures: Sequence[Figure]

    def figure(self, metric: str, k: int) -> Figure | None:
        """Return one figure; None if it was not evaluated."""
        return next((figure for figure in self.figures if (figure.metric, figure.k) == (metric, k)), None)


@dataclass(frozen=True)
class Difference:
    """The chosen model less another one, user by user."""

    role: str  # of the other one
    metric: str
    k: int
    difference: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True)
class Searched:
    """A parameter that was searched.

    Attributes
    ----------
    name, symbol : str
    log : bool
        Whether it was searched by its logarithm.
    is_dial : bool
        Whether all its values come with one fit.
    neutral : float or None
        Where it changes nothing, for a parameter that other models of the same search do not have.
    phrase : str
        What stands before its value in a sentence.
    effect : str
        What it does, as the beginning of a sentence.
    """

    name: str
    symbol: str
    log: bool
    is_dial: bool = False
    neutral: float | None = None
    phrase: str = ""
    effect: str = ""


@dataclass(frozen=True)
class Learning:
    """A learning curve: epochs, their loss, and what the validation said where it was asked (else NaN)."""

    curve: Sequence[tuple[int, float, float]]  # epoch, loss, value
    best_epoch: int
    stopped: str  # "patience", "epochs" or "time"


@dataclass(frozen=True)
class Point:
    """A configuration and its means on the validation users."""

    parameters: Mapping[str, Any]
    metrics: Mapping[str, float]

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from other points of a search."""
        return tuple(self.parameters.items())


@dataclass(frozen=True)
class Trial:
    """One fit of the search, with a point for each setting of its dials; `failure` says why it has none.

    `interval` has the values of the first dial between which recommendations change.
    """

    parameters: Mapping[str, Any]
    points: Sequence[Point]
    seconds: float
    interval: tuple[float, float] = (0.0, 1.0)
    learning: Learning | None = None
    failure: str | None = None

    @property
    def metrics(self) -> Mapping[str, float]:
        """The means of the first point; none if it failed."""
        return self.points[0].metrics if self.points else {}


@dataclass(frozen=True)
class Item:
    """An item as a reader sees it."""

    name: str  # its title, or its id where it has none
    id: str
    users: int  # in the training data
    is_tail: bool


@dataclass(frozen=True)
class Suggestion:
    """A recommended item: whether it was in the hidden truth, and which items of the history speak for it."""

    item: Item
    score: float
    hit: bool
    because: Sequence[tuple[Item, float]]  # with its share of all that speaks for the item


@dataclass(frozen=True)
class Sample:
    """A test user, and what is recommended to them."""

    label: str
    history: Sequence[Item]  # what weighs most comes first; not all of a long one
    history_size: int
    hidden: int
    suggestions: Sequence[Suggestion]


@dataclass(frozen=True)
class Neighbours:
    """An item and those most similar to it, by partial correlation."""

    item: Item
    similar: Sequence[tuple[Item, float]]


@dataclass(frozen=True)
class DataFacts:
    """A data set in numbers, and two curves."""

    users: int
    items: int
    interactions: int
    density: float
    gini: float
    per_user: tuple[int, float, int]  # least, middle, largest
    per_item: tuple[int, float, int]
    popularity: Sequence[tuple[float, float]]  # share of items, most popular first; their share of interactions
    top_share: float  # of interactions with the most popular fifth of the items
    histories: Sequence[tuple[int, int, int]]  # from, up to and including, users with so many items
    features: int = 0  # of the items


@dataclass(frozen=True)
class Fit:
    """The last fit, to train and validation: what it was and how exact it is."""

    solver: str
    dtype: str
    residual: float
    users: int
    items: int
    ends: tuple[str, str]  # the models at ξ = 0 and ξ = 1
    unconstrained: Sequence[tuple[float, float]]  # ξ; share of the items without a constraint there
    unconstrained_here: float  # at the chosen ξ


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """What a report shows.

    Attributes
    ----------
    title : str
        Of the data.
    made : str
        The date of the report.
    commands : sequence of str
        What makes the run and the report again.
    versions : mapping of str to str
        Of relae, Python and the libraries that compute.
    model : str
        The chosen model, as code.
    model_name : str
        "RDLAE" and so on.
    objective : str
        What was maximized on the validation users, such as "ndcg@100".
    constraint : (str, float) or None
        The metric to keep, and the share of it that may be lost.
    choose : str
        "best"; "tail": the most tail of what cannot be told from the best; or "default": nothing was told from it.
    complete : bool
        Whether the search came to its end.
    judged : sequence of Judged
        The chosen model first.
    differences : sequence of Difference
    k : int
        The cut-off that counts.
    protocol, valid_users, test_users, seed, split, share
        How users were divided.
    new_users : bool
        Whether test users are others than those of the last fit.
    low_ratings : str
        What became of ratings that were too low to count, in a sentence; nothing if there were none.
    space : sequence of Searched
        What was searched, those first that need a fit.
    point : mapping of str to value
        The chosen configuration: each of them.
    parameters : mapping of str to value
        All parameters of the chosen model.
    trials : sequence of Trial
        All fits; the first has the model's own parameters.
    fit_users, fit_items : int
        Of the last fit.
    axes : (str, str)
        The metrics of the trade-off: accuracy, and the tail. This, and what follows, is of a search with dials.
    bests : mapping of str to Point
        The best point of each model that shared the search.
    front : sequence of Point
        Those that no other point beats in both axes.
    fit : Fit or None
        The last one.
    neighbours : sequence of Neighbours
    """

    title: str
    made: str
    commands: Sequence[str]
    versions: Mapping[str, str]
    model: str
    model_name: str
    objective: str
    constraint: tuple[str, float] | None = None
    choose: str = "best"
    complete: bool
    judged: Sequence[Judged]
    differences: Sequence[Difference]
    k: int
    protocol: str
    valid_users: int
    test_users: int
    seed: int
    split: str
    share: float
    new_users: bool
    low_ratings: str = ""
    data: DataFacts
    space: Sequence[Searched]
    point: Mapping[str, Any]
    parameters: Mapping[str, Any]
    trials: Sequence[Trial]
    fit_users: int
    fit_items: int
    axes: tuple[str, str] = ("", "")
    bests: Mapping[str, Point] = field(default_factory=dict)
    front: Sequence[Point] = ()
    fit: Fit | None = None
    neighbours: Sequence[Neighbours] = ()
    samples: Sequence[Sample] = field(default_factory=tuple)

    @property
    def dials(self) -> list[Searched]:
        """What needed no fit of its own."""
        return [searched for searched in self.space if searched.is_dial]

    @property
    def fitted(self) -> list[Searched]:
        """What needed a fit for each value."""
        return [searched for searched in self.space if not searched.is_dial]

    @property
    def extras(self) -> list[Searched]:
        """What other models of the same search do not have."""
        return [searched for searched in self.space if searched.neutral is not None]

    @property
    def trial(self) -> Trial | None:
        """The fit of the chosen configuration."""
        return next((trial for trial in self.trials if trial.parameters.items() <= self.point.items()), None)

    @property
    def configurations(self) -> int:
        """How many were tried; a fit that failed is one."""
        return sum(len(trial.points) or 1 for trial in self.trials)

    @property
    def chosen(self) -> Judged:
        """The chosen model on the test users."""
        return self.judged[0]

    @property
    def rival(self) -> Judged | None:
        """What the chosen model is measured against first: the same model with its defaults."""
        return next((judged for judged in self.judged[1:] if judged.role != "popularity"), None)

    @property
    def popularity(self) -> Judged | None:
        """What everybody is recommended alike; None if it was not judged."""
        return next((judged for judged in self.judged[1:] if judged.role == "popularity"), None)

    def difference(self, role: str, metric: str, k: int) -> Difference | None:
        """Return the difference to another model in a metric; None if it was not compared."""
        wanted = (role, metric, k)
        return next((row for row in self.differences if (row.role, row.metric, row.k) == wanted), None)
