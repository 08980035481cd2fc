"""One fit of a search: its parameters, and a point for every setting of its dials."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relae._common.checks import check_share
from relae.tuning._judge import Groups, read_groups
from relae.tuning._training import Training


@dataclass(frozen=True)
class Point:
    """One configuration and its means on the validation users.

    Attributes
    ----------
    parameters : mapping of str to value
        All that were searched: those of the fit, and the dials.
    metrics : mapping of str to float
    groups : mapping of str to sequence of float
        See `Judge`.
    """

    parameters: Mapping[str, Any]
    metrics: Mapping[str, float]
    groups: Groups = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        """A metric, such as `point["ndcg@100"]`; −inf where it is NaN, so that it is never the best."""
        value = self.metrics[name]
        return value if np.isfinite(value) else -np.inf


@dataclass(frozen=True)
class Trial:
    """One fit, judged with each setting of its dials.

    Attributes
    ----------
    parameters : mapping of str to value
        Those that needed the fit.
    points : sequence of Point
        One for each setting of the dials; one alone for a model without dials, and none if the fit failed.
    fit_seconds, evaluate_seconds : float
    training : Training or None
        How a model that learns by epochs came to be.
    failure : str or None
        Why there is no point, if the model could not be fitted so.
    facts : mapping of str to value
        What the fit says of itself, such as the solver.
    """

    parameters: Mapping[str, Any]
    points: Sequence[Point]
    fit_seconds: float
    evaluate_seconds: float
    training: Training | None = None
    failure: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        """Return the best value of a metric over all points; −inf if there is none."""
        return max((point[name] for point in self.points), default=-np.inf)

    @property
    def seconds(self) -> float:
        """The seconds of fit and evaluation together."""
        return self.fit_seconds + self.evaluate_seconds

    def to_json(self) -> str:
        """Return the trial as one line."""
        record = {name: getattr(self, name) for name in self.__dataclass_fields__}
        record |= {"training": None if self.training is None else self.training.record()}
        return json.dumps(record | {"points": [vars(point) for point in self.points]})

    @classmethod
    def from_json(cls, line: str) -> "Trial":
        """Return the trial that `to_json` wrote."""
        record = json.loads(line)
        training = record.pop("training")
        points = tuple(
            Point(point["parameters"], point["metrics"], read_groups(point["groups"])) for point in record.pop("points")
        )
        return cls(**record, points=points, training=None if training is None else Training.from_record(training))


@dataclass(frozen=True)
class Constraint:
    """Lose at most a share of the best value of a metric: `Constraint("ndcg@100", loss=0.01)`."""

    metric: str
    loss: float

    def __post_init__(self) -> None:
        check_share("the loss of a constraint", self.loss)

    def allows(self, point: Point, best: float) -> bool:
        """Return whether a point keeps enough of the best value."""
        return point[self.metric] >= (1 - self.loss) * best
