"""The table of a comparison: a row per model, with the best of each column and those not significantly different."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae._common.tables import Grid, Tabular, short
from relae._common.words import in_bytes, in_count, in_time
from relae.evaluation import Evaluation, Evaluations
from relae.evaluation.statistics import permutation_test
from relae.registry import KINDS

# The metrics, and their names in a narrow table.
METRICS = {
    "ndcg": "ndcg",
    "recall": "recall",
    "head_ndcg": "head",
    "tail_ndcg": "tail",
    "unbiased_ndcg": "unbiased",
    "coverage": "coverage",
}
LEVEL = 0.05
_RESAMPLES = 9999


@dataclass(frozen=True)
class ComparisonRow:
    """One model: its parameters and how they were chosen, its costs, and its figures on the test users.

    Attributes
    ----------
    name : str
        In lower case, as in `relae.registry.KINDS`.
    parameters : mapping
        Of the model that was judged.
    chosen : sequence of str
        The parameters that were chosen by the validation users.
    choice : str
        How they were chosen, in words.
    choose_seconds, fit_seconds, evaluate_seconds : float
        Of the search (shared by the six linear autoencoders), of the last fit, and of the test users.
    size : int
        Bytes of the fitted model's arrays.
    complete : bool
        Whether the choice was finished before the time budget was used up.
    evaluation : Evaluation
    """

    name: str
    parameters: Mapping[str, Any]
    chosen: Sequence[str]
    choice: str
    choose_seconds: float
    fit_seconds: float
    evaluate_seconds: float
    size: int
    complete: bool
    evaluation: Evaluation


@dataclass(frozen=True)
class LeftOut:
    """A model that is not in the table, and why.

    Attributes
    ----------
    name : str
    reason : Text or str
        A Text until a table writes its options in one way.
    trace : str
        The traceback of an error that was not foreseen; otherwise empty.
    """

    name: str
    reason: Any
    trace: str = ""


class ComparisonTable(Tabular):
    """Models in the order of their ndcg on the test users.

    Parameters
    ----------
    rows
        In any order, all of the same test users.
    left_out
        Models that are not among them.
    k
        The cut-off of all metrics.
    validation_users
        The number of users by whom parameters were chosen.
    """

    def __init__(
        self, rows: Sequence[ComparisonRow], left_out: Sequence[LeftOut], k: int, validation_users: int
    ) -> None:
        self.rows = sorted(rows, key=lambda row: -np.nan_to_num(row.evaluation[f"ndcg@{k}"], nan=-1.0))
        self.left_out, self.k, self.validation_users = list(left_out), k, validation_users

    @cached_property
    def p_values(self) -> dict[str, NDArray[np.float64]]:
        """The p-value of each model's difference from the best, by metric : (rows,); nan for the best itself.

        Users are paired, signs of their differences flipped at random (with a fixed seed), and the p-values of one
        metric corrected for their number by Holm's method.
        """
        p_values = {}
        for name in (f"{metric}@{self.k}" for metric in METRICS):
            columns = [row.evaluation.values.get(name) for row in self.rows]
            known = [column for column in columns if column is not None]
            if len(known) < max(2, len(columns)):
                continue  # a metric of all lists together, or no model to compare with
            values = np.column_stack(known)
            best = self._best(name)
            rivals = [at for at in range(len(self.rows)) if at != best]
            differences = values[:, rivals] - values[:, [best]]
            p_values[name] = np.full(len(self.rows), np.nan)
            p_values[name][rivals] = holm(permutation_test(differences, _RESAMPLES, np.random.default_rng(0)))
        return p_values

    def _best(self, name: str) -> int:
        return int(np.argmax([np.nan_to_num(row.evaluation[name], nan=-1.0) for row in self.rows]))

    def grid(self) -> Grid:
        """Return the table."""
        names = {f"{metric}@{self.k}": shown for metric, shown in METRICS.items()}
        rows = [
            [
                KINDS[row.name],
                *(self._cell(at, name) for name in names),
                in_time(row.fit_seconds),
                in_bytes(row.size),
            ]
            for at, row in enumerate(self.rows)
        ]
        strong = {
            (row, column)
            for column, name in enumerate(names, start=1)
            for row in range(len(rows))
            if name in self.p_values and self._leads(row, name)
        }
        title = f"{in_count(len(rows), 'model')}, judged once by the test users at k = {self.k}"
        header = ["model", *names.values(), "fit", "size"]
        return Grid(title, header, rows, self._notes(), frozenset(strong), "the best of its column")

    def _leads(self, at: int, name: str) -> bool:
        """Return whether a model has the best value, to the decimals that are shown."""
        value, best = (self.rows[row].evaluation[name] for row in (at, self._best(name)))
        return round(value, 4) == round(best, 4)

    def _cell(self, at: int, name: str) -> str:
        value = self.rows[at].evaluation[name]
        text = _share(value)
        if name not in self.p_values or np.isnan(value):
            return text
        near = self.p_values[name][at] >= LEVEL and not self._leads(at, name)
        return text + ("≈" if near else " ")

    def _notes(self) -> list[str]:
        names = [f"{metric}@{self.k}" for metric in METRICS]
        notes = list(Evaluations([row.evaluation for row in self.rows]).grid(names).notes)
        if self.p_values:
            notes.append(
                "≈ cannot be told from the best of its column: paired permutation test over users, p ≥ "
                f"{LEVEL:g} after Holm's correction for {in_count(len(self.rows) - 1, 'comparison')}"
            )
        notes.append(
            "head, tail, unbiased: ndcg of the 20% most popular items, of the others, and weighted by rarity; "
            "fit: the last fit, without the search"
        )
        notes += self._choices()
        cut = [KINDS[row.name] for row in self.rows if not row.complete]
        if cut:
            notes.append(f"cut off by the time budget, and with more time perhaps better: {', '.join(cut)}")
        return notes + self.absences()

    def _choices(self) -> list[str]:
        """Return the chosen parameters, in a line per way of choosing."""
        ways: dict[str, list[str]] = {}
        for row in self.rows:
            if row.chosen:
                settings = ", ".join(f"{name} {short(row.parameters[name])}" for name in row.chosen)
                ways.setdefault(row.choice, []).append(f"{KINDS[row.name]} {settings}")
        by = f"chosen by {in_count(self.validation_users, 'validation user')}"
        return [f"{by} {way}: {'; '.join(models)}" for way, models in ways.items()]

    def absences(self) -> list[str]:
        """Return the models that were left out, in a line per reason."""
        reasons: dict[str, list[str]] = {}
        for absent in self.left_out:
            reasons.setdefault(str(absent.reason), []).append(KINDS[absent.name])
        return [f"left out: {', '.join(names)}: {reason}" for reason, names in reasons.items()]

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary per model, for JSON."""
        return [
            {
                "model": row.name,
                "called": row.evaluation.model,
                "parameters": dict(row.parameters),
                "chosen": list(row.chosen),
                "choice": row.choice,
                "complete": row.complete,
                "metrics": {name: _plain(value) for name, value in row.evaluation.means.items()},
                "p_values": {name: _plain(values[at]) for name, values in self.p_values.items()},
                "seconds": {part: getattr(row, f"{part}_seconds") for part in ("choose", "fit", "evaluate")},
                "bytes": row.size,
            }
            for at, row in enumerate(self.rows)
        ]

    def to_csv(self) -> str:
        """Return a table with a row per model as CSV."""
        import polars as pl

        return pl.DataFrame(self.flat_records(), infer_schema_length=None).write_csv()

    def flat_records(self) -> list[dict[str, Any]]:
        """Return a flat dictionary per model, for a table with a row each."""
        return [
            {
                "model": record["model"],
                **record["metrics"],
                **{f"p_{name}": value for name, value in record["p_values"].items()},
                **{f"{part}_seconds": value for part, value in record["seconds"].items()},
                "bytes": record["bytes"],
                "complete": record["complete"],
                "choice": record["choice"],
                "parameters": json.dumps(record["parameters"]),
            }
            for record in self.records()
        ]


def holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Correct p-values for their number, whatever their dependence : the same shape.

    The i-th smallest of m is multiplied by m − i + 1, made no smaller than those before it, and at most 1.
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * factors))
    return corrected


def _share(value: float) -> str:
    """Return a figure between 0 and 1 in five characters, so that nine columns fit 80 characters."""
    if np.isnan(value):
        return "–"
    return f"{value:.3f}" if value >= 0.99995 else f"{value:.4f}".removeprefix("0")


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
