"""What a report says, as plain values: whoever has these can draw the page again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Setting = tuple[float, float, float, float, float]  # l2, dropout, ξ, the norms of users and of items


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
class Point:
    """A configuration and its means on the validation users."""

    l2: float
    dropout: float
    xi: float
    metrics: Mapping[str, float]
    user_norm: float = 0.0
    item_norm: float = 0.0

    @property
    def setting(self) -> Setting:
        """What tells it from other points."""
        return self.l2, self.dropout, self.xi, self.user_norm, self.item_norm


@dataclass(frozen=True)
class Trial:
    """One inversion of the search, with all its ξ and norms of items."""

    l2: float
    dropout: float
    xi_interval: tuple[float, float]
    residual: float
    solver: str
    seconds: float
    points: Sequence[Point]
    user_norm: float = 0.0


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
    unconstrained: Sequence[tuple[float, float]]  # ξ; share of the items without a constraint there
    unconstrained_here: float  # at the chosen ξ


@dataclass(frozen=True)
class Searched:
    """A parameter that was searched, and whether by its logarithm."""

    name: str
    log: bool


@dataclass(frozen=True)
class Learning:
    """A learning curve: epochs, their loss, and what the validation said where it was asked (else NaN)."""

    curve: Sequence[tuple[int, float, float]]  # epoch, loss, value
    best_epoch: int
    stopped: str  # "patience", "epochs" or "time"


@dataclass(frozen=True)
class Attempt:
    """One fit of a search over the parameters of one model; `failure` says why it has no figures."""

    parameters: Mapping[str, object]
    metrics: Mapping[str, float]
    seconds: float
    learning: Learning | None = None
    failure: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reported:
    """What every report shows, whatever was searched.

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
    samples: Sequence[Sample] = field(default_factory=tuple)

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


@dataclass(frozen=True, kw_only=True)
class ReportData(Reported):
    """A report on the linear autoencoders.

    Attributes
    ----------
    l2, dropout, xi, user_norm, item_norm : float
        Of the chosen model.
    axes : (str, str)
        The metrics of the trade-off: accuracy, and the tail.
    trials : sequence of Trial
    bests : mapping of str to Point
        The best point of each model.
    front : sequence of Point
        Those that no other point beats in both axes.
    fit : Fit
        The last one.
    """

    l2: float
    dropout: float
    xi: float
    user_norm: float = 0.0
    item_norm: float = 0.0
    axes: tuple[str, str]
    trials: Sequence[Trial]
    bests: Mapping[str, Point]
    front: Sequence[Point]
    fit: Fit
    neighbours: Sequence[Neighbours] = field(default_factory=tuple)

    @property
    def setting(self) -> Setting:
        """The chosen point."""
        return self.l2, self.dropout, self.xi, self.user_norm, self.item_norm

    @property
    def normalizing(self) -> bool:
        """Whether norms of users or items were searched."""
        return any(any(point.setting[3:]) for trial in self.trials for point in trial.points)

    @property
    def trial(self) -> Trial | None:
        """The inversion of the chosen point."""
        here = (self.l2, self.dropout, self.user_norm)
        return next((trial for trial in self.trials if (trial.l2, trial.dropout, trial.user_norm) == here), None)


@dataclass(frozen=True, kw_only=True)
class ModelReportData(Reported):
    """A report on a search over the parameters of one model.

    Attributes
    ----------
    space : sequence of Searched
        What was searched.
    parameters : mapping of str to object
        All parameters of the chosen model.
    attempts : sequence of Attempt
        All fits; the first has the model's own parameters.
    picked : int
        Which of them was the best.
    fit_users, fit_items : int
        Of the last fit.
    """

    space: Sequence[Searched]
    parameters: Mapping[str, object]
    attempts: Sequence[Attempt]
    picked: int
    fit_users: int
    fit_items: int

    @property
    def best(self) -> Attempt:
        """The fit that was the best on the validation users."""
        return self.attempts[self.picked]
