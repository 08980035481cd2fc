"""The contents of a report: a run, its data, and facts about the chosen model."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from relae.experiments import POPULARITY, TRENDING, DividedData, ModelResult, Run
from relae.report._facts import DataFacts, FitFacts
from relae.report._samples import Neighbours, Sample
from relae.tuning import Point, Trial, Tuning, describe


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
    is_time : bool
        Whether it is a parameter of time.
    """

    name: str
    symbol: str
    log: bool
    is_dial: bool = False
    neutral: float | None = None
    phrase: str = ""
    effect: str = ""
    is_time: bool = False


@dataclass(frozen=True, kw_only=True)
class Report:
    """The contents of the page of a search.

    Attributes
    ----------
    run : Run
    tuning : Tuning
        The search of the run.
    divided : DividedData
    results : sequence of ModelResult
        Figures of the test users, the chosen model first.
    data : DataFacts
    fit : FitFacts or None
        The last fit of a linear autoencoder.
    samples : sequence of Sample
    neighbours : sequence of Neighbours
    made : str
        The date of the report.
    command : str
        What makes the report again.
    versions : dict
        Of relae, Python and the libraries that compute.
    """

    run: Run
    tuning: Tuning
    divided: DividedData
    results: Sequence[ModelResult]
    data: DataFacts
    fit: FitFacts | None = None
    samples: Sequence[Sample] = ()
    neighbours: Sequence[Neighbours] = ()
    made: str = ""
    command: str = ""
    versions: dict[str, str]

    # --- the search ----------------------------------------------------------------------------------------------

    @property
    def model_name(self) -> str:
        """The class of the chosen model."""
        return type(self.run.model).__name__

    @property
    def objective(self) -> str:
        """The metric that was maximized on the validation users, such as "ndcg@100"."""
        return self.tuning.objective

    @cached_property
    def chosen(self) -> Point:
        """The chosen configuration."""
        return self.tuning.chosen

    @property
    def point(self) -> dict[str, Any]:
        """The parameters of the chosen configuration."""
        return dict(self.chosen.parameters)

    @cached_property
    def trial(self) -> Trial:
        """The fit of the chosen configuration."""
        return self.tuning.trial_of(self.chosen)

    @property
    def trials(self) -> Sequence[Trial]:
        """All fits; the first has the model's own parameters."""
        return self.tuning.trials

    @cached_property
    def bests(self) -> dict[str, Point]:
        """The best configuration of each model that shared the search."""
        return self.tuning.bests

    @cached_property
    def front(self) -> list[Point]:
        """The configurations that no other beats in both axes."""
        return self.tuning.pareto()

    @cached_property
    def axes(self) -> tuple[str, str]:
        """The metrics of the trade-off: accuracy, and the tail."""
        return self.tuning.axes()

    @cached_property
    def space(self) -> list[Searched]:
        """The parameters that were searched, those first that need a fit."""
        dials = self.tuning.dials
        return [
            Searched(name, log=limits.log, is_dial=name in dials, **describe(name))
            for name, limits in self.tuning.space.items()
        ]

    @property
    def dials(self) -> list[Searched]:
        """The parameters that needed no fit of their own."""
        return [searched for searched in self.space if searched.is_dial]

    @property
    def fitted(self) -> list[Searched]:
        """The parameters that needed a fit for each value."""
        return [searched for searched in self.space if not searched.is_dial]

    @property
    def extras(self) -> list[Searched]:
        """The parameters that other models of the same search do not have."""
        return [searched for searched in self.space if searched.neutral is not None]

    @property
    def time(self) -> list[Searched]:
        """The parameters of time."""
        return [searched for searched in self.space if searched.is_time]

    @property
    def configurations(self) -> int:
        """The number of configurations that were tried; a fit that failed is one."""
        return sum(len(trial.points) or 1 for trial in self.trials)

    # --- the test users ------------------------------------------------------------------------------------------

    @property
    def k(self) -> int:
        """The cut-off of the objective."""
        return self.run.k

    @property
    def rival(self) -> ModelResult | None:
        """The first opponent of the chosen model: the same model with its defaults."""
        return next((result for result in self.results[1:] if result.role not in (POPULARITY, TRENDING)), None)

    @property
    def yardsticks(self) -> list[ModelResult]:
        """The figures of popularity and trending, as far as they were judged."""
        return [result for result in self.results[1:] if result.role in (POPULARITY, TRENDING)]

    @property
    def valid_users(self) -> int:
        """The number of users by whom the model was chosen."""
        return len(self.divided.valid.users)
