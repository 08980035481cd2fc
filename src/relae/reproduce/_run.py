"""Fit with the authors' parameters, evaluate as they did, and put the result beside what they print."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from relae import datasets
from relae._common.progress import Progress, of_trials
from relae.baselines import GFCF
from relae.errors import DataError
from relae.evaluation import Evaluation, Split, evaluate, given_split, paper_splits, strong_lists
from relae.models import RDLAE
from relae.recommender import HistoryRecommender
from relae.registry import kind
from relae.reproduce._paper import REMARKS, TABLES, TRAINED, parameters, printed
from relae.tuning import Training

_STOPPED = {
    "time": "cut short by the time it was given",
    "patience": "stopped by its own validation",
    "epochs": "to the end",
}


@dataclass(frozen=True)
class Cell:
    """One figure: as printed, and as measured here."""

    metric: str
    paper: float
    ours: float
    remark: str = ""

    @property
    def difference(self) -> float:
        """Ours, rounded to four decimals as the paper's are, minus the paper's."""
        return round(round(self.ours, 4) - self.paper, 4)


@dataclass(frozen=True)
class Row:
    """One model of a table: its parameters, its cells and the seconds that it took.

    Models with the same l2 and dropout share a fit, and each of them names the seconds of the whole. A model that is
    trained epoch by epoch has its training, and the seconds that it was given, if they were limited.
    """

    model: str
    parameters: dict[str, Any]
    cells: tuple[Cell, ...]
    seconds: float
    residual: float | None = None
    training: Training | None = None
    time_budget: float | None = None

    @property
    def counts(self) -> bool:
        """Whether a difference to the paper is one of the reproduction: with a training of our own it is not."""
        return self.training is None

    @property
    def note(self) -> str:
        """What a reader has to know of a row that was trained; nothing for the others."""
        if self.training is None:
            return ""
        most, hidden = self.parameters.get("epochs"), self.parameters.get("validation_share")
        why = _STOPPED.get(self.training.stopped, self.training.stopped)
        return (
            f"trained here for {self.training.epochs:,} epochs"
            + (f" of at most {most:,}" if most else "")
            + f" in {self.seconds:,.0f} s ({why}), of which epoch {self.training.best_epoch:,} counts"
            + (f"; {hidden:.0%} of the training data was hidden to choose it" if hidden else "")
            + ". The settings are relae's defaults. The paper refers to the models' own publications for its own, and "
            "does not say how long it trained: the difference is shown, and counts neither for nor against the "
            "reproduction"
        )

    def is_final(self, time_budget: float | None) -> bool:
        """Whether more time than it had would change nothing."""
        if self.training is None or self.training.stopped != "time" or self.time_budget is None:
            return True
        return time_budget is not None and time_budget <= self.time_budget


@dataclass(frozen=True)
class Experiment:
    """The rows of one table for one data set that can be run here."""

    table: str
    dataset: str
    models: tuple[str, ...]
    split: Split
    fingerprint: str  # of the data, so that results are not mixed

    @property
    def title(self) -> str:
        """Data set and table in words."""
        return f"{datasets.get(self.dataset).title}, {TABLES[self.table]}"

    def fits(self, done: Collection[str] = ()) -> list[list[str]]:
        """Return the models that are not done, grouped by the fit they share."""
        groups: dict[tuple[Any, ...], list[str]] = {}
        known = parameters(self.table, self.dataset)
        for model in self.models:
            if model not in done:
                shared = [known[model].get(name) for name in ("l2", "dropout", "alpha")] if model in known else [model]
                groups.setdefault(tuple(shared), []).append(model)
        return list(groups.values())

    def run(
        self,
        done: Collection[str] = (),
        progress: Progress | None = None,
        *,
        time_budget: float | None = None,
        checkpoints: Path | None = None,
    ) -> Iterator[Row]:
        """Yield a row as soon as its model is finished; those in `done` are left out.

        Parameters
        ----------
        done
            Models that need not be run.
        progress
            Called with the stage of the fit under way, and with the title and the part of all that is done.
        time_budget
            Seconds of training for each model that is trained epoch by epoch.
        checkpoints
            A folder for trainings under way: after a break they go on. What is finished is removed.
        """
        fits = self.fits(done)
        for at, models in enumerate(fits):
            report = of_trials(progress, self.title, at, len(fits))
            if models[0] in TRAINED:
                yield self._trained(models[0], report, time_budget, checkpoints)
            else:
                yield from self._rows(models, report)

    def _trained(
        self, name: str, progress: Progress | None, time_budget: float | None, checkpoints: Path | None
    ) -> Row:
        """Train one model with relae's defaults, without a look at the test."""
        model = kind(name.replace("-", ""))()
        place = None if checkpoints is None else checkpoints / f"{self.table}-{self.dataset}-{_plain(name)}.checkpoint"
        started = perf_counter()
        model.fit_with(self.split.train, progress=progress, time_budget=time_budget, checkpoint=place)
        found = self._evaluated(model, name, progress)
        training = Training.of(model)
        seconds = training.curve[-1].seconds if training and training.curve else perf_counter() - started
        if place is not None and (training is None or training.stopped != "time"):
            place.unlink(missing_ok=True)
        return Row(name, model.get_params(), self._cells(name, found), seconds, None, training, time_budget)

    def _rows(self, models: list[str], progress: Progress | None) -> Iterator[Row]:
        known = parameters(self.table, self.dataset)
        started = perf_counter()
        first = known[models[0]]
        if "alpha" in first:
            filters = GFCF(alpha=first["alpha"]).fit(self.split.train, progress=progress)
            results: Sequence[Evaluation] = [self._evaluated(filters, models[0], progress)]
            residual = None
        else:
            model = RDLAE(first["l2"], first["dropout"]).fit(self.split.train, progress=progress)
            xis = [known[name]["xi"] for name in models]
            asked = _asked(printed(self.table, self.dataset)[models[0]])
            results = evaluate(model, self.split, *asked, xis=xis, mode="paper", progress=progress)
            residual = model.residual_
        seconds = perf_counter() - started
        for name, result in zip(models, results, strict=True):
            yield Row(name, known[name], self._cells(name, result), seconds, residual)

    def _evaluated(self, model: HistoryRecommender, name: str, progress: Progress | None) -> Evaluation:
        asked = _asked(printed(self.table, self.dataset)[name])
        return evaluate(model, self.split, *asked, mode="paper", progress=progress)

    def _cells(self, name: str, found: Evaluation) -> tuple[Cell, ...]:
        paper = printed(self.table, self.dataset)[name]
        return tuple(Cell(metric, value, found[metric], self._remark(name, metric)) for metric, value in paper.items())

    def _remark(self, model: str, metric: str) -> str:
        return REMARKS.get((self.table, self.dataset, model, metric), "")


def experiment(table: str, dataset: str, models: Sequence[str] | None = None) -> Experiment:
    """Return what to run for one table and data set, its data read and divided.

    Parameters
    ----------
    table
        "table2" (strong generalization) or "table3" (weak).
    dataset
        The name of a benchmark.
    models
        Some of the models of the table, in any case, with or without hyphens. If not given, all but those that are
        trained for hours.
    """
    rows, known = printed(table, dataset), parameters(table, dataset)
    able = [model for model in rows if model in known or model in TRAINED]
    chosen = [model for model in able if model in known] if models is None else [_named(name, able) for name in models]
    source = datasets.get(dataset)
    if table == "table2":
        assert source.heldout is not None
        lists = strong_lists(source.pairs(), source.heldout)
        split, parts = paper_splits(lists)[1], [lists.train, lists.test_in, lists.test]
    else:
        train, test = source.weak()
        split, parts = given_split(train, test, protocol="the paper's weak split"), [train, test]
    digest = hashlib.md5(usedforsecurity=False)
    for part in parts:
        digest.update(np.ascontiguousarray(part.users).tobytes())
        digest.update(np.ascontiguousarray(part.items).tobytes())
    ordered = tuple(model for model in able if model in chosen)
    return Experiment(table, dataset, ordered, split, digest.hexdigest())


def _named(model: str, able: list[str]) -> str:
    """Return a model of the table by its name in any case, with or without hyphens."""
    plain = {_plain(name): name for name in able}
    name = plain.get(_plain(model))
    if name is None:
        close = get_close_matches(_plain(model), plain, 1)
        hint = f" (did you mean {plain[close[0]]}?)" if close else ""
        raise DataError(f"the table has no model {model!r}{hint}: the models are {', '.join(able)}")
    return name


def _plain(name: str) -> str:
    return name.lower().replace("-", "")


def _asked(names: Iterable[str]) -> tuple[list[str], list[int]]:
    """Return the metrics and the cut-offs of names such as "ndcg@20"."""
    names = list(names)
    metrics = list(dict.fromkeys(name.split("@")[0] for name in names))
    return metrics, sorted({int(name.split("@")[1]) for name in names})
