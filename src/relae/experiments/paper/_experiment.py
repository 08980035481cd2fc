"""Fit models with the authors' parameters, evaluate them as they did, and compare with the printed figures."""

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
from relae.experiments.paper._order import popularity_order
from relae.experiments.paper._printed import MISPRINTS, TABLES, TRAINED, Misprint, parameters, printed
from relae.models import RDLAE
from relae.recommender import HistoryRecommender
from relae.registry import kind
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
    misprint: Misprint | None = None

    @property
    def difference(self) -> float:
        """Ours, rounded to four decimals as the paper's are, minus the paper's."""
        return round(round(self.ours, 4) - self.paper, 4)

    @property
    def is_misprint(self) -> bool:
        """True if ours is the value that the paper should have printed."""
        return self.misprint is not None and round(self.ours, 4) == self.misprint.value

    @property
    def remark(self) -> str:
        """The reason why the printed figure is wrong; empty if it is not known to be."""
        return self.misprint.reason if self.misprint is not None and self.is_misprint else ""


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
        """True if its differences count; those of a model with a training of our own do not."""
        return self.training is None

    @property
    def note(self) -> str:
        """A remark on a row that was trained; empty for the others."""
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
        """Return whether more time than it had would change nothing."""
        if self.training is None or self.training.stopped != "time" or self.time_budget is None:
            return True
        return time_budget is not None and time_budget <= self.time_budget


@dataclass(frozen=True)
class PaperExperiment:
    """The rows of one table for one data set that can be run here."""

    table: str
    dataset: str
    models: tuple[str, ...]
    split: Split
    fingerprint: str  # of the data, so that results are not mixed

    @property
    def title(self) -> str:
        """The data set and the table."""
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
                yield self._train(models[0], report, time_budget, checkpoints)
            else:
                yield from self._fit(models, report)

    def _train(self, name: str, progress: Progress | None, time_budget: float | None, checkpoints: Path | None) -> Row:
        """Train one model with relae's defaults, without a look at the test."""
        model = kind(name.replace("-", ""))()
        path = None if checkpoints is None else checkpoints / f"{plain_name(name)}.checkpoint"
        started = perf_counter()
        model.fit_with(self.split.train, progress=progress, time_budget=time_budget, checkpoint=path)
        evaluation = self._evaluate(model, name, progress)
        training = Training.of(model)
        seconds = training.curve[-1].seconds if training and training.curve else perf_counter() - started
        if path is not None and (training is None or training.stopped != "time"):
            path.unlink(missing_ok=True)
        return Row(name, model.get_params(), self._cells(name, evaluation), seconds, None, training, time_budget)

    def _fit(self, models: list[str], progress: Progress | None) -> Iterator[Row]:
        known = parameters(self.table, self.dataset)
        started = perf_counter()
        first = known[models[0]]
        if "alpha" in first:
            filters = GFCF(alpha=first["alpha"]).fit(self.split.train, progress=progress)
            results: Sequence[Evaluation] = [self._evaluate(filters, models[0], progress)]
            residual = None
        else:
            model = RDLAE(first["l2"], first["dropout"]).fit(self.split.train, progress=progress)
            xis = [known[name]["xi"] for name in models]
            metrics, ks = _parse_metrics(printed(self.table, self.dataset)[models[0]])
            results = evaluate(
                model, self.split, metrics, ks, xis=xis, mode="paper", item_order=popularity_order, progress=progress
            )
            residual = model.residual_
        seconds = perf_counter() - started
        for name, result in zip(models, results, strict=True):
            yield Row(name, known[name], self._cells(name, result), seconds, residual)

    def _evaluate(self, model: HistoryRecommender, name: str, progress: Progress | None) -> Evaluation:
        metrics, ks = _parse_metrics(printed(self.table, self.dataset)[name])
        return evaluate(model, self.split, metrics, ks, mode="paper", item_order=popularity_order, progress=progress)

    def find_misprint(self, model: str, metric: str) -> Misprint | None:
        """Return the known misprint of a cell; None if there is none."""
        return MISPRINTS.get((self.table, self.dataset, model, metric))

    def _cells(self, name: str, evaluation: Evaluation) -> tuple[Cell, ...]:
        return tuple(
            Cell(metric, value, evaluation[metric], self.find_misprint(name, metric))
            for metric, value in printed(self.table, self.dataset)[name].items()
        )


def load_experiment(table: str, dataset: str, models: Sequence[str] | None = None) -> PaperExperiment:
    """Return the models of one table and data set, with the data read and divided.

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
    chosen = (
        [model for model in able if model in known] if models is None else [_find_name(name, able) for name in models]
    )
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
    return PaperExperiment(table, dataset, ordered, split, digest.hexdigest())


def _find_name(model: str, able: list[str]) -> str:
    """Return a model of the table by its name in any case, with or without hyphens."""
    plain = {plain_name(name): name for name in able}
    name = plain.get(plain_name(model))
    if name is None:
        close = get_close_matches(plain_name(model), plain, 1)
        hint = f" (did you mean {plain[close[0]]}?)" if close else ""
        raise DataError(f"the table has no model {model!r}{hint}: the models are {', '.join(able)}")
    return name


def plain_name(name: str) -> str:
    """Return the name of a model in lower case, without hyphens."""
    return name.lower().replace("-", "")


def _parse_metrics(names: Iterable[str]) -> tuple[list[str], list[int]]:
    """Return the metrics and the cut-offs of names such as "ndcg@20"."""
    names = list(names)
    metrics = list(dict.fromkeys(name.split("@")[0] for name in names))
    return metrics, sorted({int(name.split("@")[1]) for name in names})
