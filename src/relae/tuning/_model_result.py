"""What a search over the parameters of one model has found."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from relae._common.tables import Grid, Tabular, short
from relae.errors import DataError
from relae.recommender import HistoryRecommender, Range
from relae.tuning._judge import Gap, Groups, gap, read_groups
from relae.tuning._result import verdict
from relae.tuning._training import Training

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class ModelTrial:
    """One fit: the parameters searched, its means on the validation users, and what it took.

    `failure` says why there are no means, if the model could not be fitted so; for `groups` see `Judge`.
    """

    parameters: Mapping[str, Any]
    metrics: Mapping[str, float]
    fit_seconds: float
    evaluate_seconds: float
    training: Training | None = None
    failure: str | None = None
    groups: Groups = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        """A metric, such as `trial["ndcg@100"]`; −inf where it is not a number, so that it is never the best."""
        value = self.metrics.get(name, np.nan)
        return value if np.isfinite(value) else -np.inf

    @property
    def seconds(self) -> float:
        """What fit and evaluation took together."""
        return self.fit_seconds + self.evaluate_seconds

    def to_json(self) -> str:
        """Return the trial as one line."""
        record = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps(record | {"training": None if self.training is None else self.training.record()})

    @classmethod
    def from_json(cls, line: str) -> "ModelTrial":
        """Return the trial of such a line."""
        record = json.loads(line)
        training, groups = record.pop("training"), read_groups(record.pop("groups"))
        return cls(**record, groups=groups, training=None if training is None else Training.from_record(training))


@dataclass(frozen=True)
class ModelTuning(Tabular):
    """The result of a search over the parameters of one model.

    Attributes
    ----------
    model : HistoryRecommender
        The model searched, with its own parameters, not fitted.
    objective : str
        What was maximized, such as "ndcg@100".
    space : mapping of str to Range
        What was searched.
    trials : sequence of ModelTrial
        In the order they were made; the first has the model's own parameters.
    complete : bool
        Whether the search came to its end, or was stopped by a time budget.
    """

    model: HistoryRecommender
    objective: str
    space: Mapping[str, Range]
    trials: Sequence[ModelTrial]
    complete: bool = True

    @property
    def best_trial(self) -> ModelTrial:
        """The trial with the best value, the earliest of equals."""
        able = [trial for trial in self.trials if trial.failure is None]
        if not able:
            said = f": {self.trials[-1].failure}" if self.trials else ""
            raise DataError(f"no trial of {type(self.model).__name__} came to an end{said}")
        return max(able, key=lambda trial: trial[self.objective])

    @property
    def gain(self) -> Gap:
        """What the best trial gains over the first, which has the model's own parameters, on validation users."""
        return gap(self.best_trial.groups, self.trials[0].groups, self.objective)

    @property
    def best(self) -> dict[str, Any]:
        """The best parameters searched, by name."""
        return dict(self.best_trial.parameters)

    def best_model(self) -> HistoryRecommender:
        """Return the model with the best parameters, not fitted; see `model_of`."""
        return self.model_of(self.best_trial)

    def model_of(self, trial: ModelTrial) -> HistoryRecommender:
        """Return the model of a trial, not fitted, for a last fit to all data.

        One that learns by epochs gets as many as were best in the trial, and hides nothing to stop by.
        """
        model = with_parameters(self.model, trial.parameters)
        if trial.training is not None and {"epochs", "validation_share"} <= set(model.get_params()):
            model.set_params(epochs=max(1, trial.training.best_epoch), validation_share=0.0)
        return model

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary per trial: parameters, metrics and seconds."""
        names = self._metrics
        return [
            {
                **trial.parameters,
                **{name: trial.metrics.get(name, float("nan")) for name in names},
                "fit_seconds": trial.fit_seconds,
                "evaluate_seconds": trial.evaluate_seconds,
            }
            | ({} if trial.training is None else {"best_epoch": trial.training.best_epoch})
            for trial in self.trials
        ]

    def to_polars(self) -> "pl.DataFrame":
        """Return a polars frame with a row per trial."""
        import polars as pl

        return pl.DataFrame(self.records(), infer_schema_length=None)

    @property
    def _metrics(self) -> list[str]:
        return list(dict.fromkeys(name for trial in self.trials for name in trial.metrics))

    def shown(self) -> list[str]:
        """Return the metrics that a reader wants to see first."""
        k = self.objective.partition("@")[2]
        wanted = [self.objective, f"ndcg@{k}", f"tail_ndcg@{k}", f"unbiased_ndcg@{k}", f"coverage@{k}"]
        return [name for name in dict.fromkeys(wanted) if name in self._metrics]

    def grid(self) -> Grid:
        """Return a table with a row per trial."""
        shown, best = self.shown(), self.best_trial
        learned = any(trial.training is not None for trial in self.trials)
        rows = [
            [
                f"{number}{' → best' if trial is best else ''}",
                *(short(trial.parameters[name]) for name in self.space),
                *(f"{trial.metrics[name]:.4f}" if name in trial.metrics else "–" for name in shown),
                *([str(trial.training.best_epoch) if trial.training else "–"] if learned else []),
                f"{trial.seconds:.1f}",
            ]
            for number, trial in enumerate(self.trials, start=1)
        ]
        strong = {
            (r, c + 1 + len(self.space))
            for c, name in enumerate(shown)
            for r, trial in enumerate(self.trials)
            if round(trial[name], 4) == max(round(other[name], 4) for other in self.trials)
        }
        notes = [f"{len(self.trials)} fits, judged by validation users; the first has the model's own parameters"]
        notes += [verdict(best is self.trials[0], self.gain, self.objective)]
        notes += [f"trial {n} could not be fitted: {t.failure}" for n, t in enumerate(self.trials, 1) if t.failure]
        header = ["trial", *self.space, *shown, *(["best epoch"] if learned else []), "seconds"]
        title = f"{type(self.model).__name__}: parameters by {self.objective}"
        return Grid(title, header, rows, notes, frozenset(strong))


def with_parameters(model: HistoryRecommender, parameters: Mapping[str, Any]) -> HistoryRecommender:
    """Return a model that is not fitted, with some of its parameters changed."""
    return type(model)(**model.get_params()).set_params(**parameters)
