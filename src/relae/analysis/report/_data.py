"""What a report says, as plain values: whoever has these can draw the page again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


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
    """A model and what the test users say of it; `role` is "chosen", "EASE" or "popularity"."""

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
class Point:
    """A configuration and its means on the validation users."""

    l2: float
    dropout: float
    xi: float
    metrics: Mapping[str, float]

    @property
    def setting(self) -> tuple[float, float, float]:
        """What tells it from other points."""
        return self.l2, self.dropout, self.xi


@dataclass(frozen=True)
class Trial:
    """One inversion of the search, with all its ξ."""

    l2: float
    dropout: float
    xi_interval: tuple[float, float]
    residual: float
    solver: str
    seconds: float
    points: Sequence[Point]


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


@dataclass(frozen=True)
class Fit:
    """The last fit, to train and validation: what it was and how exact it is."""

    solver: str
    dtype: str
    residual: float
    users: int
    items: int
    unconstrained: Sequence[tuple[float, float]]  # ξ; share of the items without a constraint there
    unconstrained_here: float  # at the chosen ξ


@dataclass(frozen=True)
class ReportData:
    """Everything a report shows.

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
    l2, dropout, xi : float
    objective : str
        What was maximized on the validation users, such as "ndcg@100".
    constraint : (str, float) or None
        The metric to keep, and the share of it that may be lost.
    axes : (str, str)
        The metrics of the trade-off: accuracy, and the tail.
    trials : sequence of Trial
    bests : mapping of str to Point
        The best point of each model.
    front : sequence of Point
        Those that no other point beats in both axes.
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
    """

    title: str
    made: str
    commands: Sequence[str]
    versions: Mapping[str, str]
    model: str
    model_name: str
    l2: float
    dropout: float
    xi: float
    objective: str
    constraint: tuple[str, float] | None
    axes: tuple[str, str]
    trials: Sequence[Trial]
    bests: Mapping[str, Point]
    front: Sequence[Point]
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
    data: DataFacts
    fit: Fit
    samples: Sequence[Sample] = field(default_factory=tuple)
    neighbours: Sequence[Neighbours] = field(default_factory=tuple)

    @property
    def chosen(self) -> Judged:
        """The chosen model on the test users."""
        return self.judged[0]

    def rival(self, role: str) -> Judged | None:
        """Return another model on the test users; None if it is not there."""
        return next((judged for judged in self.judged[1:] if judged.role == role), None)

    def difference(self, role: str, metric: str, k: int) -> Difference | None:
        """Return the difference to another model in a metric; None if it was not compared."""
        wanted = (role, metric, k)
        return next((row for row in self.differences if (row.role, row.metric, row.k) == wanted), None)
