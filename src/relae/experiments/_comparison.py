"""Compare models: choose parameters, fit and judge one model after the other, with one fitted model in memory."""

import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from relae._common.files import remove_orphans
from relae._common.progress import Progress
from relae._common.words import in_count
from relae.errors import DataError, Message, Option, RelaeError, Text
from relae.evaluation import Evaluation, Split, evaluate
from relae.experiments._comparison_table import METRICS, ComparisonRow, ComparisonTable, LeftOut
from relae.experiments._yardsticks import POPULARITY
from relae.models import Dial
from relae.recommender import HistoryRecommender
from relae.registry import KINDS, kind
from relae.tuning import Journal, Point, Training, Tuning, check_users, tune

_CHOOSING = 0.8  # of the time of a model
_SIX = ("rdlae", "edlae", "dlae", "rlae", "ease", "lae")
_SEARCHED = {"linear": "all six", "dan": "DAN"}  # what has a search of inversions, and for whom
_NEW_USERS = "only users of the training data have a vector, and the test users are others"


def list_models(models: Sequence[str] | None, yardsticks: Collection[str] = (POPULARITY,)) -> list[str]:
    """Return the names of models in the order of the registry, with those of the yardsticks; all models if None."""
    names = list(KINDS) if models is None else [kind(model).__name__.lower() for model in models]
    return [name for name in KINDS if name in names or name in yardsticks]


class _Chosen(NamedTuple):
    """A model that is not fitted yet, and how its parameters were chosen."""

    model: HistoryRecommender
    names: Sequence[str]
    words: str
    seconds: float
    complete: bool


class _Judged(NamedTuple):
    """The costs of the last fit, and its figures."""

    fit_seconds: float
    evaluate_seconds: float
    size: int
    evaluations: list[Evaluation]


@dataclass(frozen=True)
class Comparison:
    """A comparison of models on one division of data.

    Attributes
    ----------
    valid, test : Split
        The users to choose parameters by, and those to judge by, once. The train of `test` has all of `valid`.
    models : sequence of str
        Names out of `relae.registry.KINDS`.
    k : int
        The cut-off of all metrics; parameters are chosen by ndcg@k.
    budget : int
        Inversions that the six linear autoencoders share, as many for DAN, and fits of every other model with
        parameters to search.
    time_budget : float, optional
        Seconds of choosing for each model. The six put theirs together. A model that is trained gets
        half of it to find the number of epochs, and the last fit then takes about as long.
    seed : int
        Of what searches draw at random.
    folder : Path, optional
        Where searches and trainings are kept, so that they can be resumed.
    purpose : mapping
        What identifies this comparison, so that files of another one are refused.
    """

    valid: Split
    test: Split
    models: Sequence[str]
    k: int = 100
    budget: int = 8
    time_budget: float | None = None
    seed: int = 0
    folder: Path | None = None
    purpose: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        most = min(self.valid.n_candidates, self.test.n_candidates)
        if not 1 <= self.k <= most:
            raise DataError(f"k must lie between 1 and the {most:,} items there are, got {self.k!r}")
        if self.budget < 1:
            raise DataError(f"the budget must be a whole number of fits, at least 1, got {self.budget!r}")
        if self.time_budget is not None and not self.time_budget > 0:
            raise DataError(f"the time budget must be a number of seconds above 0, got {self.time_budget!r}")

    @property
    def objective(self) -> str:
        """The metric by which parameters are chosen."""
        return f"ndcg@{self.k}"

    def run(self, done: Collection[str] = (), progress: Progress | None = None) -> Iterator[ComparisonRow | LeftOut]:
        """Yield each model as soon as it is finished; those in `done` are passed over, and one that fails is left out.

        `progress` is called with the model and the stage that it is in, and with "compare" and the part of all that is
        done.
        """
        if self.folder is not None:
            remove_orphans(self.folder)
        waiting = [name for name in self.models if name not in done]
        linear = [name for name in waiting if name in _SIX]
        groups = [[name] for name in waiting if name not in linear] + ([linear] if linear else [])
        groups.sort(key=lambda group: waiting.index(group[0]))
        before = len(self.models) - len(waiting)
        for group in groups:
            title = "linear" if group is linear else group[0]
            meter = _Meter(progress, title, before, len(group), len(self.models))
            find = (
                partial(self._compare_linear, group, title)
                if title in _SEARCHED
                else partial(self._compare_other, title)
            )
            try:
                with self._journal(title) as journal:  # one of another comparison is refused
                    yield from _catch_errors(group, find(journal, meter))
            finally:
                meter.close()
            before += len(group)

    def table(self, results: Iterable[ComparisonRow | LeftOut], write: Callable[[Text], str] = str) -> ComparisonTable:
        """Return results as one table: `comparison.table(comparison.run())`; `write` writes the reasons of absence."""
        listed = list(results)
        rows = [each for each in listed if isinstance(each, ComparisonRow)]
        left_out = [replace(each, reason=write(each.reason)) for each in listed if isinstance(each, LeftOut)]
        return ComparisonTable(rows, left_out, self.k, len(self.valid.users))

    # --- the linear autoencoders -----------------------------------------------------------------------------------

    def _compare_linear(
        self, names: Sequence[str], title: str, journal: Journal | None, meter: "_Meter"
    ) -> Iterator[ComparisonRow | LeftOut]:
        """One search for the six, or for DAN, and one fit for those that differ in their dials alone."""
        tuning = tune(
            "dan" if title == "dan" else _SIX[0],
            self.valid,
            objective=self.objective,
            budget=self.budget,
            metrics=(),
            journal=journal,
            time_budget=None if self.time_budget is None else self.time_budget * len(names),
            progress=meter.report,
        )
        words = f"out of {in_count(len(tuning.trials), 'inversion')} for {_SEARCHED[title]}"
        groups: dict[str, dict[str, Point]] = {}
        bests = tuning.bests
        for name in names:
            point = bests.get(KINDS[name])
            if point is None and tuning.points:
                yield LeftOut(name, _too_short(len(tuning.trials), self.time_budget))
                continue
            point = point or tuning.best()  # an error that says why no trial came to an end
            groups.setdefault(str(tuning.trial_of(point).parameters), {})[name] = point
        for points in groups.values():
            yield from _catch_errors(points, self._judge_points(points, tuning, words, meter))

    def _judge_points(
        self, points: Mapping[str, Point], tuning: Tuning, words: str, meter: "_Meter"
    ) -> Iterator[ComparisonRow]:
        """Judge models that differ in their dials alone."""
        seconds = sum(trial.seconds for trial in tuning.trials)
        [setting, *_] = [tuning.trial_of(point).parameters for point in points.values()]
        dials = [{name: point.parameters[name] for name in tuning.dials} for point in points.values()]
        judged = self._judge(  # the model has no name here, so that its fit is freed at once
            _copy(tuning.model).set_params(**setting), meter, dials=[Dial(**each) for each in dials]
        )
        for (name, point), evaluation in zip(points.items(), judged.evaluations, strict=True):
            own = tuning.model_of(point, KINDS[name])
            searched = [each for each in own.get_params() if each in point.parameters]
            yield _make_row(name, _Chosen(own, searched, words, seconds, tuning.complete), judged, evaluation)

    # --- every other model -----------------------------------------------------------------------------------------

    def _compare_other(self, name: str, journal: Journal | None, meter: "_Meter") -> Iterator[ComparisonRow | LeftOut]:
        model = kind(name)()
        try:
            for split in (self.valid, self.test):
                check_users(model, split)
        except DataError:
            yield LeftOut(name, Text(f"{_NEW_USERS} ({self.test.protocol}); ", Option("split", "weak"), " admits them"))
            return
        chosen = self._choose(model, journal, meter)
        judged = self._judge(_copy(chosen.model), meter, checkpoint=self._checkpoint(name, "last"))
        yield _make_row(name, chosen, judged, judged.evaluations[0])
        for stage in ("choice", "last"):
            path = self._checkpoint(name, stage)
            if path is not None:
                path.unlink(missing_ok=True)

    def _choose(self, model: HistoryRecommender, journal: Journal | None, meter: "_Meter") -> _Chosen:
        """Find the parameters by the validation users."""
        if model.trains:
            return self._choose_epochs(model, meter)
        if not model.SPACE:
            return _Chosen(model, (), "nothing to choose", 0.0, True)
        tuning = tune(
            model,
            self.valid,
            objective=self.objective,
            budget=self.budget,
            metrics=(),
            seed=self.seed,
            journal=journal,
            time_budget=self.time_budget,
            progress=meter.report,
        )
        seconds = sum(trial.seconds for trial in tuning.trials)
        words = f"out of {in_count(len(tuning.trials), 'fit')}"
        chosen = tuning.chosen
        return _Chosen(tuning.model_of(chosen), tuple(chosen.parameters), words, seconds, tuning.complete)

    def _choose_epochs(self, model: HistoryRecommender, meter: "_Meter") -> _Chosen:
        """Train until the validation users gain no more; the last fit, to them as well, is for as many epochs."""
        trial: Any = _copy(model).set_params(objective=self.objective)
        trial.fit_with(
            self.valid.train,
            progress=meter.report,
            validation=self.valid,
            checkpoint=self._checkpoint(type(model).__name__.lower(), "choice"),
            time_budget=None if self.time_budget is None else self.time_budget / 2,
        )
        last = _copy(trial).set_params(epochs=trial.best_epoch_, patience=0, validation_share=0.0)
        return _Chosen(
            last, ("epochs",), "by early stopping", float(trial.curve_[-1].seconds), trial.stopped_ != "time"
        )

    # --- helpers ---------------------------------------------------------------------------------------------------

    def _judge(
        self,
        model: HistoryRecommender,
        meter: "_Meter",
        *,
        dials: Sequence[Dial] | None = None,
        checkpoint: Path | None = None,
    ) -> _Judged:
        """Fit to all but the test users, and judge by them; the fit is then forgotten."""
        started = perf_counter()
        model.fit_with(self.test.train, progress=meter.report, checkpoint=checkpoint)
        between = perf_counter()
        judge: Any = partial(evaluate, model, self.test, tuple(METRICS), [self.k], progress=meter.report)
        evaluations = [judge()] if dials is None else list(judge(xis=dials))
        seconds = round(perf_counter() - between, 3)
        training = Training.of(model)  # its seconds count those before a break as well
        fit_seconds = round(between - started, 3) if training is None else training.curve[-1].seconds
        return _Judged(fit_seconds, seconds, _size(model), evaluations)

    def _journal(self, name: str) -> Any:
        """Open the journal of a search; nothing where nothing is searched, or kept."""
        searched = name in _SEARCHED or (kind(name).SPACE and not kind(name).trains)
        if self.folder is None or not searched:
            return nullcontext()
        return Journal(self.folder / f"{name}.jsonl", {**self.purpose, "search": name})

    def _checkpoint(self, name: str, stage: str) -> Path | None:
        return None if self.folder is None else self.folder / f"{name}-{stage}.training"


class _Meter:
    """Report the progress of one model or group of models, and that of the whole comparison."""

    def __init__(self, progress: Progress | None, name: str, done: int, size: int, total: int) -> None:
        self._progress, self._name, self._done, self._size, self._total = progress, name, done, size, total
        self._open: set[str] = set()
        self._most = 0.0  # a model that is trained twice does not go back
        self.report(None, 0.0)

    def report(self, stage: str | None, fraction: float) -> None:
        """Pass on a stage of the model; its search is most of its time."""
        if self._progress is None:
            return
        if stage is not None:
            (self._open.discard if fraction >= 1.0 else self._open.add)(stage)
            self._progress(f"{self._name}: {stage}", fraction)
        if stage in (None, "search", "train"):
            self._most = max(self._most, fraction)
            self._progress("compare", (self._done + _CHOOSING * self._size * self._most) / self._total)

    def close(self) -> None:
        """End the stages that were left before they were done."""
        for stage in list(self._open):
            self.report(stage, 1.0)
        if self._progress is not None:
            self._progress("compare", (self._done + self._size) / self._total)


def _make_row(name: str, chosen: _Chosen, judged: _Judged, evaluation: Evaluation) -> ComparisonRow:
    return ComparisonRow(
        name,
        chosen.model.get_params(),
        list(chosen.names),
        chosen.words,
        round(chosen.seconds, 3),
        judged.fit_seconds,
        judged.evaluate_seconds,
        judged.size,
        chosen.complete,
        replace(evaluation, model=repr(chosen.model), xi=None, dial=None),
    )


def _copy(model: HistoryRecommender) -> HistoryRecommender:
    """Return a model with the same parameters that is not fitted."""
    return type(model)(**model.get_params())


def _size(model: HistoryRecommender) -> int:
    """Return the bytes of the fitted arrays, as they would be saved."""
    arrays = model.state("fitted").arrays.values()
    return sum(int(np.prod(array.shape, dtype=np.int64)) * array.dtype.itemsize for array in arrays)


def _too_short(inversions: int, time_budget: float | None) -> Text:
    """Return why a model of the linear search has no row: the search ended before it came to one of its settings."""
    more = Option("budget", ...) if time_budget is None else Option("time_budget", ...)
    after = in_count(inversions, "inversion")
    return Text(f"the search ended after {after} without one of this model: allow more with ", more)


def _catch_errors(
    names: Collection[str], results: Iterator[ComparisonRow | LeftOut]
) -> Iterator[ComparisonRow | LeftOut]:
    """Yield the results of some models; after an error, those without a result are left out."""
    waiting = dict.fromkeys(names)
    try:
        for each in results:
            del waiting[each.name]
            yield each
    except Exception as error:
        foreseen = isinstance(error, (RelaeError, MemoryError))
        reason = _reason(error, foreseen=foreseen)
        trace = "" if foreseen else "".join(traceback.format_exception(error))
    else:
        return
    yield from (LeftOut(name, reason, trace) for name in waiting)  # what failed is forgotten with the error


def _reason(error: Exception, *, foreseen: bool) -> Text:
    """Return the reason why a model is left out; the class of an error that nobody foresaw is part of it."""
    if isinstance(error, Message):
        return error.text
    words = " ".join(str(error).split())
    return Text(words or "out of memory" if foreseen else f"{type(error).__name__}: {words}".removesuffix(": "))
