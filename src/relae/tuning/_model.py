"""The same loop for a model of any kind: fit, judge, write it down, forget the fit."""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from relae._common.progress import Progress, of_trials
from relae.data import Interactions
from relae.errors import DataError, PrecisionError
from relae.evaluation import DEFAULT_METRICS, Split, evaluate
from relae.recommender import HistoryRecommender, Range
from relae.solvers import Solver
from relae.tuning._box import BoxSearch
from relae.tuning._journal import Journal
from relae.tuning._judge import Judge
from relae.tuning._model_result import ModelTrial, ModelTuning, with_parameters
from relae.tuning._training import Training, check_users
from relae.tuning._tune import asked, rounded


def tune_model(
    model: HistoryRecommender,
    split: Split,
    *,
    objective: str = "ndcg@100",
    budget: int = 8,
    space: Mapping[str, Range] | None = None,
    metrics: Sequence[str] = DEFAULT_METRICS,
    seed: int = 0,
    journal: Journal | None = None,
    time_budget: float | None = None,
    lengths: ArrayLike | None = None,
    solver: Solver | str | None = None,
    progress: Progress | None = None,
    on_trial: Callable[[ModelTrial, ModelTuning], None] | None = None,
) -> ModelTuning:
    """Search the parameters of one model on the users of a split; `tune` is for the linear autoencoders.

    A model that learns by epochs gets the split to stop by, so that each trial is judged at its best epoch; with a
    journal, its training is kept beside it and goes on after a kill. Parameters that the data or the memory do not
    allow are written down and count as the worst, unless they are the model's own. Never more than one fit is in
    memory.

    Parameters
    ----------
    model
        Where to begin: its own parameters are the first trial, as far as the data allow, and those not searched stay as
        they are. It is not fitted itself.
    split
        Its train is fitted to, its users are judged by: validation users, not those of the last test.
    objective
        What to maximize: a metric and a cut-off.
    budget
        Fits.
    space
        The ranges to search, by parameter; the model's `SPACE` if not given. Where the model knows that the data allow
        less, such as fewer singular vectors, a range ends there, and begins as many times below.
    metrics
        What else to evaluate at every trial, at the same cut-off.
    seed
        Of the places that are tried before there is anything to learn from.
    journal
        Where trials are written as they finish, and read from: a search that was stopped goes on.
    time_budget
        Seconds after which no further trial is started, counting those of the journal. A model whose fit takes a time
        budget is given what is left.
    lengths
        As of `tune`.
    solver
        As of the `fit` of a linear autoencoder.
    progress
        Called with the name of a stage and the fraction of it that is done.
    on_trial
        Called with each new trial and the result so far.
    """
    names, ks = asked([objective], metrics, split.n_candidates)
    check_users(model, split)
    judge = Judge(split, [objective], lengths)
    if "objective" in model.get_params():  # the best epoch is one by what the search maximizes
        model = with_parameters(model, {"objective": objective})
    model, searched = _within(model, _space(model, space), split.train)
    plan = BoxSearch(model.get_params(), searched, objective, budget, seed)
    trials = [] if journal is None else journal.of(ModelTrial)
    result = ModelTuning(model, objective, searched, trials, complete=not any(map(_cut, trials)))
    while (setting := plan.next(trials)) is not None:
        spent = [trial.seconds for trial in trials]
        if time_budget is not None and spent and sum(spent) + float(np.mean(spent)) > time_budget:
            return ModelTuning(model, objective, searched, trials, complete=False)
        left = None if time_budget is None else time_budget - sum(spent)
        report = of_trials(progress, "search", len(trials), plan.size)
        checkpoint = None if journal is None else journal.checkpoint(setting)
        options = {"time_budget": left, "checkpoint": checkpoint, "solver": solver}
        started = perf_counter()
        try:
            trial = _trial(with_parameters(model, setting), setting, split, judge, names, ks, options, report)
        except (DataError, PrecisionError, MemoryError) as error:
            if not trials:
                raise
            trial = ModelTrial(
                setting, {}, round(perf_counter() - started, 3), 0.0, failure=str(error) or "out of memory"
            )
        trials.append(trial)
        if journal is not None:
            journal.append(trial)
        result = ModelTuning(model, objective, searched, trials, complete=not any(map(_cut, trials)))
        if on_trial is not None:
            on_trial(trial, result)
    return result


def _cut(trial: ModelTrial) -> bool:
    """Whether the time was up before the training of a trial was done."""
    return trial.training is not None and trial.training.stopped == "time"


def _trial(
    model: HistoryRecommender,
    setting: Mapping[str, Any],
    split: Split,
    judge: Judge,
    names: Sequence[str],
    ks: Sequence[int],
    options: Mapping[str, Any],
    progress: Progress | None,
) -> ModelTrial:
    started = perf_counter()
    model.fit_with(split.train, progress=progress, validation=split, **options)
    ended = perf_counter()
    found = evaluate(model, split, names, ks, progress=progress)
    training = Training.of(model)  # its seconds count those before a break as well
    fit_seconds = max(ended - started, 0.0 if training is None else training.curve[-1].seconds)
    seconds = round(fit_seconds, 3), round(perf_counter() - ended, 3)
    return ModelTrial(setting, rounded(judge.means(found)), *seconds, training, groups=judge.groups(found))


def _within(
    model: HistoryRecommender, space: dict[str, Range], data: Interactions
) -> tuple[HistoryRecommender, Mapping[str, Range]]:
    """Return where to begin and what to search, with no more of a parameter than the data allow."""
    most = {name: limit for name, limit in model.limits(data).items() if name in space}
    begin = with_parameters(model, {name: min(getattr(model, name), limit) for name, limit in most.items()})
    return begin, space | {name: space[name].up_to(limit) for name, limit in most.items()}


def _space(model: HistoryRecommender, space: Mapping[str, Range] | None) -> dict[str, Range]:
    """Return what is searched; nothing, or a stranger among it, is an error."""
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
