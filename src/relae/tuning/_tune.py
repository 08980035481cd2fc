"""The loop: fit, judge with every setting of the dials, write it down, forget the fit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from relae._common.checks import refuse
from relae._common.progress import Progress, of_trials
from relae.algebra import Dial
from relae.data import Interactions
from relae.errors import DataError, ParameterError, PrecisionError
from relae.evaluation import DEFAULT_METRICS, Evaluation, Split, evaluate
from relae.recommender import HistoryRecommender, Range
from relae.registry import kind
from relae.tuning import _family as family
from relae.tuning._box import BoxSearch
from relae.tuning._journal import Journal
from relae.tuning._judge import Judge
from relae.tuning._result import Choice, Tuning, check_choice, with_parameters
from relae.tuning._search import Auto, Dials, Search, Setting
from relae.tuning._training import Training, check_users
from relae.tuning._trial import Constraint, Point, Trial


def tune(
    model: HistoryRecommender | str,
    split: Split,
    search: str | Search = "auto",
    *,
    objective: str = "ndcg@100",
    budget: int | None = None,
    constraint: Constraint | None = None,
    space: Mapping[str, Range] | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    choose: Choice | None = None,
    solver: Any = None,
    seed: int = 0,
    lengths: ArrayLike | None = None,
    journal: Journal | None = None,
    time_budget: float | None = None,
    progress: Progress | None = None,
    on_trial: Callable[[Trial, Tuning], None] | None = None,
) -> Tuning:
    """Search the parameters of a model on the users of a split.

    The first trial has the model's own parameters, so that the choice is never behind them on the validation users. One
    search over RDLAE tunes all six linear autoencoders: one fit serves every value of a dial. A model that learns by
    epochs gets the split to stop by, so that each trial is judged at its best epoch; with a journal, its training is
    kept beside it and goes on after a kill. Parameters that the data or the memory do not allow are written down and
    count as the worst, unless they are the first. Never more than one fit is in memory.

    Parameters
    ----------
    model
        Where to begin, or its name: parameters that are not searched stay as they are. It is not fitted itself.
    split
        Its train is fitted to, its users are judged by: validation users, not those of the last test.
    search
        "auto" (a budget of fits, spent where most is to be gained), "grid" (for RDLAE the paper's: 11 l2 around the
        suggested one, dropout 0 to 0.9, ξ 0 to 1: 110 fits; for DAN 11 norms of users for each: 1,210), or a search of
        your own.
    objective
        What to maximize: a metric and a cut-off.
    budget
        Fits of "auto", the first among them; 16 for the linear autoencoders and 8 for other models if not given.
    constraint
        What to keep meanwhile, such as `Constraint("ndcg@100", loss=0.01)` with the objective "tail_recall@100".
    space
        The ranges to search, by parameter; the model's `SPACE` if not given. Where the model knows that the data allow
        less, such as fewer singular vectors, a range ends there, and begins as many times below. The linear
        autoencoders have a space of their own.
    metrics
        What else to evaluate at every point, at the same cut-off.
    choose
        Which configuration is `chosen`. "tail": among those within one standard error of the best, and not behind the
        default, the one with the most tail; the default itself where neither the objective of the best nor this tail
        can be told from the default's. "best": the best of the objective. If not given, "tail" for the linear
        autoencoders and "best" for other models.
    solver
        How a linear model is fitted; see `LinearAutoencoder.fit`.
    seed
        Of the places that are tried before there is anything to learn from.
    lengths
        How many items the histories have that the model will be asked for: one number for each of them, in any order.
        Hiding items makes those of validation users shorter, so these are weighted until the lengths agree. Those of
        all users of the split, with what is hidden of them, if not given.
    journal
        Where trials are written as they finish, and read from: a search that was stopped goes on.
    time_budget
        Seconds after which no further trial is started, counting those of the journal. A model that is trained gets
        what is left of them.
    progress
        Called with the name of a stage and the fraction of it that is done.
    on_trial
        Called with each new trial and the result so far.
    """
    begin = _begin(kind(model)() if isinstance(model, str) else model, split, objective, space)
    choice = choose or ("tail" if begin.is_family else "best")
    check_choice(choice)
    names = [objective, *([constraint.metric] if constraint else [])]
    trials = [] if journal is None else journal.of(begin.setting)
    result = Tuning(begin.model, objective, trials, constraint, begin.space, True, choice, begin.parameters)
    tail = [result.names[1].partition("@")[0]] if begin.is_family else []  # the trade-off needs it
    metric_names = metrics_of(names, [*metrics, *tail], split.n_candidates)
    plan = _planned(search, begin, split, objective, budget, constraint, seed)
    judge = Judge(split, dict.fromkeys([objective, *result.names]), lengths)
    run = _Trials(begin, plan, split, judge, *metric_names, solver)
    size = plan.size if isinstance(plan, (Auto, BoxSearch)) else plan.size + 1  # others may not have the first
    while (setting := plan.next(trials) if trials else begin.setting) is not None:
        spent = [trial.seconds for trial in trials]
        if time_budget is not None and spent and sum(spent) + float(np.mean(spent)) > time_budget:
            return replace(result, complete=False)
        left = None if time_budget is None else time_budget - sum(spent)
        trial = run.make(setting, trials, journal, left, of_trials(progress, "search", len(trials), size))
        trials.append(trial)
        if journal is not None:
            journal.append(trial)
        result = replace(result, trials=trials, complete=not any(map(_is_cut, trials)))
        if on_trial is not None:
            on_trial(trial, result)
    if progress is not None:
        progress("search", 1.0)
    return replace(result, complete=not any(map(_is_cut, trials)))


def _is_cut(trial: Trial) -> bool:
    """Return whether the time was up before the training of a trial was done."""
    return trial.training is not None and trial.training.stopped == "time"


# --- the start -------------------------------------------------------------------------------------------------


class _Begin(NamedTuple):
    """The start of a search: the model, its parameters that need a fit and its dials, and what is searched."""

    model: HistoryRecommender
    setting: Setting
    dials: Dials
    space: Mapping[str, Range]
    is_family: bool

    @property
    def parameters(self) -> dict[str, Any]:
        """All that is searched, as the model has it, in the order of the space."""
        return self.ordered({})

    def ordered(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters with some of them changed, in the order of the space."""
        values = {**self.setting, **self.dials, **changes}
        return {name: values[name] for name in dict.fromkeys([*self.space, *values]) if name in values}


def _begin(model: HistoryRecommender, split: Split, objective: str, space: Mapping[str, Range] | None) -> _Begin:
    check_users(model, split)
    if family.is_base(model):
        if space is not None:
            raise ValueError(f"{type(model).__name__} has a space of its own: leave space out, or give a search")
        return _Begin(model, *family.start(model, split), family.ranges(model, split), True)
    if "objective" in model.get_params():  # the best epoch is one by what the search maximizes
        model = with_parameters(model, {"objective": objective})
    model, searched = _within(model, _space(model, space), split.train)
    return _Begin(model, {name: model.get_params()[name] for name in searched}, {}, searched, False)


def _within(
    model: HistoryRecommender, space: dict[str, Range], data: Interactions
) -> tuple[HistoryRecommender, Mapping[str, Range]]:
    """Return where to begin and what to search, with no more of a parameter than the data allow."""
    most = {name: limit for name, limit in model.limits(data).items() if name in space}
    begin = with_parameters(model, {name: min(getattr(model, name), limit) for name, limit in most.items()})
    return begin, space | {name: space[name].up_to(limit) for name, limit in most.items()}


def _space(model: HistoryRecommender, space: Mapping[str, Range] | None) -> dict[str, Range]:
    """Return what is searched; a ValueError if it is empty or has an unknown parameter."""
    name = type(model).__name__
    searched = model.search_space() if space is None else space
    if not searched:
        raise DataError(f"{name} has nothing to tune: give a space, or another model")
    strangers = [parameter for parameter in searched if parameter not in model.get_params()]
    if strangers:
        raise ValueError(
            f"{name} has no parameter {', '.join(strangers)}: its parameters are {', '.join(model.get_params())}"
        )
    return dict(searched)


def _planned(
    search: str | Search,
    begin: _Begin,
    split: Split,
    objective: str,
    budget: int | None,
    constraint: Constraint | None,
    seed: int,
) -> Search:
    """Return the search of a name, made for the data of a split; see `tune`."""
    if not isinstance(search, str):
        return search
    if begin.is_family:
        return family.plan(search, begin.model, split, objective, budget, constraint)
    if search != "auto":
        refuse("search", search, "be 'auto' or a search of your own")
    return BoxSearch(begin.setting, begin.space, objective, 8 if budget is None else budget, seed)


# --- one trial ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Trials:
    """Makes the trials of a search."""

    begin: _Begin
    plan: Search
    split: Split
    judge: Judge
    names: Sequence[str]
    ks: Sequence[int]
    solver: Any

    def make(
        self,
        changes: Mapping[str, Any],
        trials: Sequence[Trial],
        journal: Journal | None,
        time_budget: float | None,
        progress: Progress | None,
    ) -> Trial:
        """Fit once and judge, after `trials`; what the data or the memory do not allow is a trial without points."""
        setting = {name: value for name, value in self.begin.ordered(changes).items() if name not in self.begin.dials}
        checkpoint = None if journal is None else journal.checkpoint(setting)
        model = with_parameters(self.begin.model, setting)
        started = perf_counter()
        try:
            model.fit_with(
                self.split.train,
                progress=progress,
                validation=self.split,
                solver=self.solver,
                time_budget=time_budget,
                checkpoint=checkpoint,
            )
            ended = perf_counter()
            facts = family.fit_facts(model) if self.begin.is_family else {}
            dials = self._dials(model, trials)
            if self.begin.is_family:  # the other form goes before the lists come
                model = model.for_many(len(self.split.users), [Dial(**each) for each in dials])
            points = self._points(model, setting, dials, progress)
        except (DataError, PrecisionError, MemoryError) as error:
            if not trials:
                raise
            seconds = round(perf_counter() - started, 3)
            return Trial(setting, (), seconds, 0.0, failure=str(error) or "out of memory")
        training = Training.of(model)  # its seconds count those before a break as well
        fit_seconds = max(ended - started, 0.0 if training is None else training.curve[-1].seconds)
        return Trial(setting, points, round(fit_seconds, 3), round(perf_counter() - ended, 3), training, facts=facts)

    def _dials(self, model: HistoryRecommender, trials: Sequence[Trial]) -> list[Dials]:
        """Return the dials to judge a fitted model with; the first trial has the model's own among them."""
        own = self.begin.dials
        dials = [own | dict(each) for each in self.plan.dials(model, trials)]
        return [*dials, own] if not trials and own not in dials else dials

    def _points(
        self, model: HistoryRecommender, setting: Setting, dials: Sequence[Dials], progress: Progress | None
    ) -> tuple[Point, ...]:
        """Judge a fitted model with every setting of its dials."""
        arguments = (model, self.split, self.names, self.ks)
        results: Sequence[Evaluation] = (
            evaluate(*arguments, xis=[Dial(**each) for each in dials], progress=progress)
            if self.begin.is_family
            else [evaluate(*arguments, progress=progress)]
        )
        return tuple(
            Point(self.begin.ordered(setting | each), rounded(self.judge.means(result)), self.judge.groups(result))
            for each, result in zip(dials, results, strict=True)
        )


def rounded(means: dict[str, float]) -> dict[str, float]:
    """Return means as they are written to a journal, so that a search that goes on sees what it saw before."""
    return {name: round(value, 9) for name, value in means.items()}


def metrics_of(names: Sequence[str], metrics: Sequence[str], n_items: int) -> tuple[list[str], list[int]]:
    """Return the metrics and cut-offs to evaluate: those wanted, such as "ndcg@100", and others beside them."""
    ks: set[int] = set()
    for name in names:
        metric, at, k = name.partition("@")
        if not metric or at != "@" or not k.isdigit():
            raise ParameterError(
                f"an objective is a metric and a cut-off, such as 'ndcg@100', got {name!r}",
                field="objective",
                value=name,
            )
        if int(k) > n_items:
            raise DataError(f"{name} needs more items than the {n_items:,} there are: choose a smaller cut-off")
        ks.add(int(k))
    return list(dict.fromkeys([*(name.partition("@")[0] for name in names), *metrics])), sorted(ks)
