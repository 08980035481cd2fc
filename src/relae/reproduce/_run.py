"""Fit with the authors' parameters, evaluate as they did, and put the result beside what they print."""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from time import perf_counter

import numpy as np

from relae.baselines import GFCF
from relae.data import datasets
from relae.errors import DataError
from relae.evaluation import Evaluation, Split, evaluate, given_split, paper_splits, strong_lists
from relae.evaluation.progress import of_all
from relae.models import RDLAE
from relae.reproduce._paper import REMARKS, TABLES, parameters, printed
from relae.solvers import Progress


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

    Models with the same l2 and dropout share a fit, and each of them names the seconds of the whole.
    """

    model: str
    parameters: dict[str, float]
    cells: tuple[Cell, ...]
    seconds: float
    residual: float | None = None


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
        groups: dict[tuple[float | None, ...], list[str]] = {}
        known = parameters(self.table, self.dataset)
        for model in self.models:
            if model not in done:
                key = tuple(known[model].get(name) for name in ("l2", "dropout", "alpha"))
                groups.setdefault(key, []).append(model)
        return list(groups.values())

    def run(self, done: Collection[str] = (), progress: Progress | None = None) -> Iterator[Row]:
        """Yield a row as soon as its model is finished; those in `done` are left out.

        `progress` is called with the stage of the fit under way, and with the title and the part of all that is done.
        """
        fits = self.fits(done)
        for at, models in enumerate(fits):
            yield from self._rows(models, of_all(progress, self.title, at, len(fits)))

    def _rows(self, models: list[str], progress: Progress | None) -> Iterator[Row]:
        known = parameters(self.table, self.dataset)
        paper = printed(self.table, self.dataset)
        names = list(paper[models[0]])
        started = perf_counter()
        first = known[models[0]]
        if "alpha" in first:
            filters = GFCF(alpha=first["alpha"]).fit(self.split.train, progress=progress)
            results: Sequence[Evaluation] = [
                evaluate(filters, self.split, *_asked(names), mode="paper", progress=progress)
            ]
            residual = None
        else:
            model = RDLAE(first["l2"], first["dropout"]).fit(self.split.train, progress=progress)
            xis = [known[name]["xi"] for name in models]
            results = evaluate(model, self.split, *_asked(names), xis=xis, mode="paper", progress=progress)
            residual = model.residual_
        seconds = perf_counter() - started
        for name, result in zip(models, results, strict=True):
            cells = tuple(
                Cell(metric, paper[name][metric], result[metric], self._remark(name, metric)) for metric in names
            )
            yield Row(name, known[name], cells, seconds, residual)

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
        Some of the models of the table, in any case; all that can be run if not given.
    """
    rows, known = printed(table, dataset), parameters(table, dataset)
    able = [model for model in rows if model in known]
    chosen = able if models is None else [_named(model, able, list(rows)) for model in models]
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


def _named(model: str, able: list[str], rows: list[str]) -> str:
    """Return a model of the table by its name in any case, with or without hyphens."""
    plain = {name.lower().replace("-", ""): name for name in rows}
    name = plain.get(model.lower().replace("-", ""))
    if name is None:
        close = get_close_matches(model.lower().replace("-", ""), plain, 1)
        hint = f" (did you mean {plain[close[0]]}?)" if close else ""
        raise DataError(f"the table has no model {model!r}{hint}: the models are {', '.join(able)}")
    if name not in able:
        raise DataError(f"{name} cannot be run here: the models are {', '.join(able)}")
    return name


def _asked(names: list[str]) -> tuple[list[str], list[int]]:
    """Return the metrics and the cut-offs of names such as "ndcg@20"."""
    metrics = list(dict.fromkeys(name.split("@")[0] for name in names))
    return metrics, sorted({int(name.split("@")[1]) for name in names})
