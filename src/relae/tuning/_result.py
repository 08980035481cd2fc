"""What a search has found: every point, the best of each model, and the trade-off between accuracy and the tail."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from relae._common.checks import check_share
from relae._common.tables import Grid, Tabular
from relae.models import DAN, DLAE, EASE, EDLAE, LAE, RDLAE, RLAE, LinearAutoencoder
from relae.tuning._judge import Gap, Groups, gap, read_groups

if TYPE_CHECKING:
    import polars as pl

# A model owns the points where its constants hold; those with a free parameter own its ends as well. Only DAN's users
# and items may be normalized.
FAMILY: dict[str, tuple[type[LinearAutoencoder], float | None, float | None]] = {  # dropout and ξ, None if free
    "LAE": (LAE, 0.0, 1.0),
    "EASE": (EASE, 0.0, 0.0),
    "RLAE": (RLAE, 0.0, None),
    "DLAE": (DLAE, None, 1.0),
    "EDLAE": (EDLAE, None, 0.0),
    "RDLAE": (RDLAE, None, None),
    "DAN": (DAN, None, None),
}


Choice = Literal["best", "tail"]


def check_choice(choose: str) -> None:
    """Raise a ValueError if there is no such way to choose."""
    if choose not in get_args(Choice):
        raise ValueError(f"choose must be one of {', '.join(map(repr, get_args(Choice)))}, got {choose!r}")


@dataclass(frozen=True)
class Point:
    """One configuration and its means on the validation users; for `groups` see `Judge`."""

    l2: float
    dropout: float
    xi: float
    metrics: Mapping[str, float]
    user_norm: float = 0.0
    item_norm: float = 0.0
    groups: Groups = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        """A metric, such as `point["ndcg@100"]`; −inf where it is not a number, so that it is never the best."""
        value = self.metrics[name]
        return value if np.isfinite(value) else -np.inf

    def is_a(self, model: str) -> bool:
        """Whether this is a configuration of a model of the family."""
        _, dropout, xi = FAMILY[model]
        return dropout in (None, self.dropout) and xi in (None, self.xi) and (model == "DAN" or not self.normalized)

    @property
    def normalized(self) -> bool:
        """Whether users or items are normalized."""
        return self.user_norm != 0 or self.item_norm != 0

    @property
    def parameters(self) -> dict[str, float]:
        """What was searched: l2, dropout and ξ, and the norms where there are any."""
        norms = {"user_norm": self.user_norm, "item_norm": self.item_norm} if self.normalized else {}
        return {"l2": self.l2, "dropout": self.dropout, "xi": self.xi, **norms}

    def model(self, name: str | None = None) -> LinearAutoencoder:
        """Return the model of this configuration, not fitted: of a name, or the most special one that it is."""
        name = next(name for name in FAMILY if self.is_a(name)) if name is None else name
        if not self.is_a(name):
            raise ValueError(f"{', '.join(f'{key}={value:g}' for key, value in self.parameters.items())} is no {name}")
        kind = FAMILY[name][0]
        given = self.parameters | {"user_norm": self.user_norm, "item_norm": self.item_norm}
        return kind(**{key: given[key] for key in kind().get_params() if key in given})


@dataclass(frozen=True)
class Trial:
    """One inverse: its l2, dropout and user norm, the points of all its dials, and what it took."""

    l2: float
    dropout: float
    points: tuple[Point, ...]
    xi_interval: tuple[float, float]
    residual: float
    solver: str
    fit_seconds: float
    evaluate_seconds: float
    user_norm: float = 0.0

    def to_json(self) -> str:
        """Return the trial as one line."""
        record = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "points"}
        points = [
            {"xi": point.xi, "item_norm": point.item_norm, "groups": dict(point.groups), **point.metrics}
            for point in self.points
        ]
        return json.dumps(record | {"points": points})

    @classmethod
    def from_json(cls, line: str) -> "Trial":
        """Return the trial of such a line."""
        record = json.loads(line)
        norm = record.get("user_norm", 0.0)
        points = tuple(
            Point(
                record["l2"],
                record["dropout"],
                point.pop("xi"),
                point,
                norm,
                point.pop("item_norm"),
                read_groups(point.pop("groups")),
            )
            for point in map(dict, record.pop("points"))
        )
        return cls(points=points, xi_interval=tuple(record.pop("xi_interval")), **record)


@dataclass(frozen=True)
class Constraint:
    """Lose at most a share of the best value of a metric: `Constraint("ndcg@100", loss=0.01)`."""

    metric: str
    loss: float

    def __post_init__(self) -> None:
        check_share("the loss of a constraint", self.loss)

    def allows(self, point: Point, best: float) -> bool:
        """Whether a point keeps enough of the best value."""
        return point[self.metric] >= (1 - self.loss) * best


@dataclass(frozen=True)
class Tuning(Tabular):
    """The result of a search.

    Attributes
    ----------
    objective : str
        What was maximized, such as "ndcg@100".
    constraint : Constraint or None
        What had to be kept.
    trials : sequence of Trial
        One per inverse, in the order they were made.
    complete : bool
        Whether the search came to its end, or was stopped by a time budget.
    choose : str
        Which configuration is `chosen`. "tail": among those within one standard error of the best, and not behind the
        default, the one with the most tail; the default where neither the objective of the best nor this tail can be
        told from the default's. Or "best".
    untuned : Point or None
        The parameters of the model that nobody has tuned, which is one of the candidates.
    """

    objective: str
    constraint: Constraint | None
    trials: Sequence[Trial]
    complete: bool = True
    choose: Choice = "tail"
    untuned: Point | None = None

    def __post_init__(self) -> None:
        check_choice(self.choose)

    @property
    def points(self) -> list[Point]:
        """All configurations."""
        return [point for trial in self.trials for point in trial.points]

    @property
    def normalizing(self) -> bool:
        """Whether the search has tried norms of users or items."""
        return any(point.normalized for point in self.points)

    def best(self, model: str = "DAN") -> Point:
        """Return the best configuration of a model that the constraint allows; of all, if no model is named."""
        if model not in FAMILY:
            raise ValueError(f"there is no model {model!r}: the models are {', '.join(FAMILY)}")
        own = [point for point in self.points if point.is_a(model)]
        if not own:
            raise ValueError(f"the search has no point of {model} yet")
        allowed = own
        if self.constraint is not None:
            most = max(point[self.constraint.metric] for point in self.points)
            allowed = [point for point in own if self.constraint.allows(point, most)]
            if not allowed:  # a model that cannot keep it: the nearest it comes
                return max(own, key=lambda point: point[self.constraint.metric] if self.constraint else 0.0)
        return max(allowed, key=lambda point: point[self.objective])

    @property
    def default(self) -> Point | None:
        """The untuned configuration with its figures; None if it was not tried."""
        if self.untuned is None:
            return None
        return next((point for point in self.points if point.parameters == self.untuned.parameters), None)

    @property
    def chosen(self) -> Point:
        """The configuration to fit: see `choose`. On the validation users it is never behind the default."""
        best, default = self.best(), self.default
        _, tail = self.names
        if self.choose == "best" or tail not in best.metrics:
            return best
        able = [point for point in self.points if self._allows(point)]
        least = -np.inf if default is None else default[self.objective]
        equals = [p for p in able if p[self.objective] >= least and self._gap(p, best).near]
        found = max([best, *equals], key=lambda point: point[tail])
        if default in able and not (self._gap(best, default).told or self._gap(found, default, tail).better):
            return default
        return found

    def _gap(self, ours: Point, theirs: Point, name: str | None = None) -> Gap:
        """The difference of two configurations in a metric, or in the objective."""
        return gap(ours.groups, theirs.groups, self.objective if name is None else name)

    def _allows(self, point: Point) -> bool:
        """Whether the constraint, if there is one, allows a configuration."""
        if self.constraint is None:
            return True
        return self.constraint.allows(point, max(each[self.constraint.metric] for each in self.points))

    def verdict(self) -> str | None:
        """Say how the chosen configuration compares with the default; None if that was not tried."""
        chosen, default, best = self.chosen, self.default, self.best()
        if default is None:
            return None
        if chosen is default and best is not default:
            found = ", ".join(f"{name} {value:g}" for name, value in best.parameters.items())
            return (
                f"the default was kept: the best that was found ({found}) cannot be told from it on the validation "
                f"users, {self.objective} {self._gap(best, default)}; --choose best takes it all the same"
            )
        return verdict(chosen is default, self._gap(chosen, default), self.objective)

    @property
    def bests(self) -> dict[str, Point]:
        """The best configuration of each model that has any."""
        names = [name for name in FAMILY if name != "DAN" or self.normalizing]
        return {name: self.best(name) for name in names if any(point.is_a(name) for point in self.points)}

    def pareto(self, accuracy: str | None = None, tail: str | None = None) -> list[Point]:
        """Return the points that no other beats in both metrics, from most accurate to most tail.

        Without names: the objective (or what the constraint keeps) and the tail metric of the same kind.
        """
        first, second = self.axes(accuracy, tail)
        front: list[Point] = []
        for point in sorted(self.points, key=lambda point: (-point[first], -point[second])):
            if not front or point[second] > front[-1][second]:
                front.append(point)
        return front

    def axes(self, accuracy: str | None = None, tail: str | None = None) -> tuple[str, str]:
        """Return the names of the two metrics of the trade-off."""
        first, second = accuracy or self.names[0], tail or self.names[1]
        for name in (first, second):
            if name not in self.points[0].metrics:
                raise ValueError(f"{name!r} was not evaluated: there are {', '.join(self.points[0].metrics)}")
        return first, second

    @property
    def names(self) -> tuple[str, str]:
        """The metrics of accuracy and of the tail, whether or not they were evaluated."""
        if self.constraint is not None:
            return self.constraint.metric, self.objective
        plain = self.objective.removeprefix("tail_").removeprefix("head_").removeprefix("unbiased_")
        return self.objective, f"tail_{plain}"

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary per configuration."""
        norms = ("user_norm", "item_norm") if self.normalizing else ()
        return [
            {name: getattr(point, name) for name in ("l2", "dropout", "xi", *norms)} | dict(point.metrics)
            for point in self.points
        ]

    def to_polars(self) -> "pl.DataFrame":
        """Return a polars frame with a row per configuration."""
        import polars as pl

        return pl.DataFrame(self.records(), infer_schema_length=None)

    def grid(self) -> Grid:
        """Return a table with a row per model: its best configuration and what it scores."""
        default = {} if self.default is None else {"default": self.default}
        bests = {**self.bests, **default}
        shown = self._shown()
        signs = {"l2": "l2", "dropout": "dropout", "xi": "ξ"}
        signs |= {"user_norm": "β", "item_norm": "α"} if self.normalizing else {}
        rows = [
            [
                name,
                *(f"{getattr(point, each):.4g}" for each in signs),
                *(f"{point.metrics[m]:.4f}" for m in shown),
            ]
            for name, point in bests.items()
        ]
        strong = set()
        for c, metric in enumerate(shown):
            values = [round(point[metric], 4) for point in bests.values()]
            strong |= {(r, c + 1 + len(signs)) for r, value in enumerate(values) if value == max(values)}
        notes = [f"{len(self.trials)} inversions, {len(self.points):,} configurations, judged by validation users"]
        plain = sum(trial.dropout == 0 for trial in self.trials)
        if plain < len(self.trials):
            notes.append(
                f"LAE, EASE and RLAE rest on the {plain} inversions without dropout: a fair comparison of models gives "
                "each a search of its own (`relae compare`)"
            )
        said = self.verdict()
        notes += [] if said is None else [said]
        if self.constraint is not None:
            notes.append(f"with at most {self.constraint.loss:.1%} of the best {self.constraint.metric} lost")
        return Grid(
            f"Best {self.objective} of each model",
            ["model", *signs.values(), *shown],
            rows,
            notes,
            frozenset(strong),
        )

    def _shown(self) -> list[str]:
        first, second = self.axes()
        k = self.objective.split("@")[1]
        wanted = [self.objective, first, second, f"unbiased_ndcg@{k}", f"coverage@{k}"]
        return [name for name in dict.fromkeys(wanted) if name in self.points[0].metrics]


def verdict(is_default: bool, gained: Gap, objective: str) -> str:
    """Say whether the chosen configuration can be told from the default."""
    if is_default:
        return "the default was chosen: nothing that was tried is better on the validation users"
    words = "better" if gained.told else "they cannot be told apart"
    return f"the chosen configuration − the default: {objective} {gained} on the validation users, {words}"
