"""What a search has found: every point, the best of each model, and the trade-off between accuracy and the tail."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from relae.evaluation import Grid
from relae.evaluation.grid import Tabular
from relae.models import DAN, DLAE, EASE, EDLAE, LAE, RDLAE, RLAE, LinearAutoencoder

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


@dataclass(frozen=True)
class Point:
    """One configuration and its means on the validation users."""

    l2: float
    dropout: float
    xi: float
    metrics: Mapping[str, float]
    user_norm: float = 0.0
    item_norm: float = 0.0

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
        points = [{"xi": point.xi, "item_norm": point.item_norm, **point.metrics} for point in self.points]
        return json.dumps(record | {"points": points})

    @classmethod
    def from_json(cls, line: str) -> "Trial":
        """Return the trial of such a line."""
        record = json.loads(line)
        norm = record.get("user_norm", 0.0)
        points = tuple(
            Point(record["l2"], record["dropout"], point.pop("xi"), point, norm, point.pop("item_norm", 0.0))
            for point in map(dict, record.pop("points"))
        )
        return cls(points=points, xi_interval=tuple(record.pop("xi_interval")), **record)


@dataclass(frozen=True)
class Constraint:
    """Lose at most a share of the best value of a metric: `Constraint("ndcg@100", loss=0.01)`."""

    metric: str
    loss: float

    def __post_init__(self) -> None:
        if not 0 <= self.loss < 1:
            raise ValueError(f"the loss of a constraint must lie in [0, 1), got {self.loss!r}")

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
    """

    objective: str
    constraint: Constraint | None
    trials: Sequence[Trial]
    complete: bool = True

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
        first = accuracy or (self.constraint.metric if self.constraint else self.objective)
        plain = first.removeprefix("tail_").removeprefix("head_").removeprefix("unbiased_")
        second = tail or (self.objective if self.constraint else f"tail_{plain}")
        for name in (first, second):
            if name not in self.points[0].metrics:
                raise ValueError(f"{name!r} was not evaluated: there are {', '.join(self.points[0].metrics)}")
        return first, second

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
        bests = self.bests
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
