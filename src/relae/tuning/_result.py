"""The result of a search: every point, the best of each model, and the trade-off between accuracy and the tail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from relae._common.checks import refuse
from relae._common.tables import Grid, Tabular, short
from relae.errors import DataError
from relae.evaluation import METRICS
from relae.recommender import HistoryRecommender, Range
from relae.tuning import _family as family
from relae.tuning import _tables as tables
from relae.tuning._judge import Gap, gap
from relae.tuning._training import Training
from relae.tuning._trial import Constraint, Point, Trial

if TYPE_CHECKING:
    import polars as pl

Choice = Literal["best", "tail"]


def check_choice(choose: str) -> None:
    """Raise a ValueError if there is no such way to choose."""
    if choose not in get_args(Choice):
        refuse("choose", choose, f"be one of {', '.join(map(repr, get_args(Choice)))}")


@dataclass(frozen=True)
class Tuning(Tabular):
    """The result of a search.

    Attributes
    ----------
    model : HistoryRecommender
        The model searched, with its own parameters, not fitted.
    objective : str
        What was maximized, such as "ndcg@100".
    trials : sequence of Trial
        One per fit, in the order they were made.
    constraint : Constraint or None
        What had to be kept.
    space : mapping of str to Range
        What was searched.
    complete : bool
        Whether the search came to its end, or was stopped by a time budget.
    choose : str
        Which configuration is `chosen`. "tail": among those within one standard error of the best, and not behind the
        default, the one with the most tail; the default where neither the objective of the best nor this tail can be
        told from the default's. Or "best".
    untuned : mapping of str to value, or None
        The parameters of the model that nobody has tuned, which is one of the candidates.
    """

    model: HistoryRecommender
    objective: str
    trials: Sequence[Trial]
    constraint: Constraint | None = None
    space: Mapping[str, Range] = field(default_factory=dict)
    complete: bool = True
    choose: Choice = "tail"
    untuned: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_choice(self.choose)

    # --- points --------------------------------------------------------------------------------------------------

    @property
    def points(self) -> list[Point]:
        """All configurations."""
        return [point for trial in self.trials for point in trial.points]

    @property
    def parameters(self) -> list[str]:
        """The names of what was searched."""
        return list(self.points[0].parameters) if self.points else list(self.space)

    @property
    def dials(self) -> list[str]:
        """The names of those that need no fit."""
        return [] if not self.points else [name for name in self.parameters if name not in self.trials[0].parameters]

    @property
    def members(self) -> list[str]:
        """The models that have points of their own: several for the linear autoencoders, which share a search."""
        if not family.is_base(self.model):
            return [type(self.model).__name__]
        own = self.model.get_params()
        return [name for name, kind in family.MEMBERS.items() if set(kind().get_params()) <= set(own)]

    def owns(self, name: str, point: Point) -> bool:
        """Return whether a point is a configuration of a model."""
        if not family.is_base(self.model):
            return name == type(self.model).__name__
        return family.owns(family.MEMBERS[name], point.parameters)

    def trial_of(self, point: Point) -> Trial:
        """Return the fit of a point."""
        return next(trial for trial in self.trials if any(each is point for each in trial.points))

    def model_of(self, point: Point, name: str | None = None) -> Any:
        """Return the model of a point, not fitted, for a last fit to all data.

        Of the linear autoencoders it is the one named, or the most special one that owns the point. One that learns by
        epochs gets as many as were best in the trial, and hides nothing to stop by.
        """
        if family.is_base(self.model):
            return family.linear_model(point.parameters, name, self.model)
        return with_epochs(with_parameters(self.model, point.parameters), self.trial_of(point).training)

    # --- what is best, and what is chosen ------------------------------------------------------------------------

    def best(self, model: str | None = None) -> Point:
        """Return the best configuration of a model that the constraint allows; of all, if no model is named."""
        known = list(family.MEMBERS) if family.is_base(self.model) else self.members
        if model is not None and model not in known:
            raise ValueError(f"there is no model {model!r}: the models are {', '.join(known)}")
        if not self.points:
            failure = f": {self.trials[-1].failure}" if self.trials else ""
            raise DataError(f"no trial of {type(self.model).__name__} came to an end{failure}")
        own = self.points if model is None else [point for point in self.points if self.owns(model, point)]
        if not own:
            raise ValueError(f"the search has no point of {model} yet")
        kept = self.constraint
        allowed = self._allowed(own)
        if kept is not None and not allowed:  # a model that cannot keep it: the nearest it comes
            return max(own, key=lambda point: point[kept.metric])
        return max(allowed, key=lambda point: point[self.objective])

    @property
    def bests(self) -> dict[str, Point]:
        """The best configuration of each model that has any."""
        return {name: self.best(name) for name in self.members if any(self.owns(name, each) for each in self.points)}

    @property
    def default(self) -> Point | None:
        """The untuned configuration with its figures; None if it was not tried."""
        if self.untuned is None:
            return None
        return next((point for point in self.points if point.parameters == self.untuned), None)

    @property
    def chosen(self) -> Point:
        """The configuration to fit: see `choose`. On the validation users it is never behind the default."""
        best, default = self.best(), self.default
        _, tail = self.names
        if self.choose == "best" or tail not in best.metrics:
            return best
        able = self._allowed(self.points)
        least = -np.inf if default is None else default[self.objective]
        equals = [p for p in able if p[self.objective] >= least and self.gap(p, best).near]
        best_in_tail = max([best, *equals], key=lambda point: point[tail])
        if default in able and not (
            self.gap(best, default).significant or self.gap(best_in_tail, default, tail).better
        ):
            return default
        return best_in_tail

    def chosen_model(self) -> Any:
        """Return the model of the chosen configuration, not fitted; see `model_of`."""
        return self.model_of(self.chosen)

    def gap(self, ours: Point, theirs: Point | None, name: str | None = None) -> Gap:
        """Return the difference of two configurations in a metric, or in the objective."""
        return gap(ours.groups, {} if theirs is None else theirs.groups, self.objective if name is None else name)

    def _allowed(self, points: Sequence[Point]) -> list[Point]:
        """Return those of some configurations that the constraint, if there is one, allows."""
        if self.constraint is None:
            return list(points)
        most = max(point[self.constraint.metric] for point in self.points)
        return [point for point in points if self.constraint.allows(point, most)]

    def verdict(self) -> str | None:
        """Say how the chosen configuration compares with the default; None if that was not tried."""
        chosen, default, best = self.chosen, self.default, self.best()
        if default is None:
            return None
        if chosen is default and best is not default:
            settings = ", ".join(f"{name} {short(value)}" for name, value in best.parameters.items())
            return (
                f"the default was kept: the best that was found ({settings}) cannot be told from it on the validation "
                f"users, {self.objective} {self.gap(best, default)}; to use it anyway, set choose to 'best'"
            )
        if chosen is default:
            return "the default was chosen: nothing that was tried is better on the validation users"
        gained = self.gap(chosen, default)
        words = "better" if gained.significant else "they cannot be told apart"
        return f"the chosen configuration − the default: {self.objective} {gained} on the validation users, {words}"

    # --- the trade-off -------------------------------------------------------------------------------------------

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
        metric, _, k = self.objective.partition("@")
        tail = f"tail_{metric.removeprefix('tail_').removeprefix('head_').removeprefix('unbiased_')}"
        return self.objective, f"{tail if tail in METRICS else 'tail_ndcg'}@{k}"  # coverage and the like have no tail

    # --- tables --------------------------------------------------------------------------------------------------

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary per configuration; where each had a fit of its own also its seconds."""
        return tables.records(self)

    def to_polars(self) -> "pl.DataFrame":
        """Return a polars frame with a row per configuration."""
        import polars as pl

        return pl.DataFrame(self.records(), infer_schema_length=None)

    def grid(self) -> Grid:
        """Return a table with a row per model that shares the search, or else with a row per trial."""
        return tables.of_models(self) if len(self.members) > 1 else tables.of_trials(self)

    def trade_off(self) -> Grid:
        """Return the trade-off in a dozen lines at most, from most accurate to most tail."""
        return tables.of_front(self)


def with_parameters(model: HistoryRecommender, parameters: Mapping[str, Any]) -> HistoryRecommender:
    """Return a model that is not fitted, with some of its parameters changed."""
    return type(model)(**model.get_params()).set_params(**parameters)


def with_epochs(model: HistoryRecommender, training: Training | None) -> HistoryRecommender:
    """Return a model that learns by epochs with as many as were best, in place; any other one as it is."""
    if training is not None and {"epochs", "validation_share"} <= set(model.get_params()):
        model.set_params(epochs=max(1, training.best_epoch), validation_share=0.0)
    return model
