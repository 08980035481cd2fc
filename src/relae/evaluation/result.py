"""The result of an evaluation: a value per user, and everything that is computed from them."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relae._common.checks import refuse
from relae._common.tables import Grid, Tabular
from relae.algebra import Dial
from relae.data import Ids
from relae.evaluation import statistics
from relae.evaluation.metrics import PER_USER

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

PerUser = NDArray[np.float64]


class Estimate(NamedTuple):
    """A mean over users with its confidence interval; metrics of all lists together have no interval."""

    metric: str
    k: int
    mean: float
    low: float
    high: float
    users: int


class _Shown(Tabular):
    """Ways to show and to hand on whatever has rows and a grid."""

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary per figure."""
        raise NotImplementedError

    def to_polars(self) -> "pl.DataFrame":
        """Return a polars frame with a row per figure."""
        import polars as pl

        return pl.DataFrame(self.records(), infer_schema_length=None)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a pandas frame with a row per figure; pandas has to be installed."""
        import pandas as pd

        return pd.DataFrame(self.records())

    def to_json(self) -> str:
        """Return the figures as JSON in ASCII, with null for NaN."""
        rows = [{name: _jsonable(value) for name, value in row.items()} for row in self.records()]
        return json.dumps(rows, indent=1)

    def __str__(self) -> str:
        return self.to_markdown()


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(_Shown):
    """The metrics of one recommender's lists.

    Attributes
    ----------
    model : str
    protocol : str
        How train and truth were divided.
    mode : str
        "standard" or "paper".
    users : Ids
    values : mapping of str to (users,)
        "ndcg@20" and so on; NaN for a user who does not count, having no truth in the group.
    overall : mapping of str to float
        Metrics of all lists together, such as "coverage@20".
    notes : mapping of str to int
        What is worth counting: users without truth, users left out, truth that no model can find, …
    xi : float or None
        The ξ of the lists, where several were evaluated.
    truth : str
        A fingerprint of what was to be found.
    dial : Dial or None
        ξ, α and γ of the lists, where several were evaluated.
    """

    model: str
    protocol: str
    mode: str
    users: Ids
    values: Mapping[str, PerUser]
    overall: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)
    xi: float | None = None
    truth: str = ""
    dial: Dial | None = None

    def __getitem__(self, name: str) -> float:
        """The mean of a metric, such as `result["ndcg@20"]`."""
        if name in self.overall:
            return self.overall[name]
        if name not in self.values:
            raise KeyError(f"{name!r} was not evaluated: there are {', '.join([*self.values, *self.overall])}")
        return float(statistics.means(self.values[name][:, None])[0])

    @property
    def means(self) -> dict[str, float]:
        """All means by name."""
        values = statistics.means(self._table) if self.values else np.empty(0)
        return dict(zip(self.values, values.tolist(), strict=True)) | dict(self.overall)

    @property
    def undefined(self) -> dict[str, str]:
        """The reasons why figures have no value, by name; empty if all have one."""
        return {name: _why_undefined(name) for name, mean in self.means.items() if np.isnan(mean)}

    @cached_property
    def _table(self) -> NDArray[np.float64]:
        return np.column_stack(list(self.values.values()))

    @cached_property
    def _usual(self) -> list[Estimate]:
        return self.estimates()

    def estimates(
        self, level: float = 0.95, resamples: int = 1000, rng: np.random.Generator | None = None
    ) -> list[Estimate]:
        """Return the means with bootstrap confidence intervals over users.

        Without `rng` a generator with a fixed seed is used, so that a table looks the same twice.
        """
        estimates = []
        if self.values:
            table = self._table
            low, high = statistics.bootstrap(table, level, resamples, rng or np.random.default_rng(0))
            counted = (~np.isnan(table)).sum(axis=0)
            rows = zip(self.values, statistics.means(table), low, high, counted, strict=True)
            estimates = [Estimate(*_split(name), float(m), float(lo), float(hi), int(n)) for name, m, lo, hi, n in rows]
        nothing = float("nan")
        return estimates + [
            Estimate(*_split(name), value, nothing, nothing, len(self.users)) for name, value in self.overall.items()
        ]

    def compare(
        self,
        other: "Evaluation",
        test: Literal["permutation", "wilcoxon"] = "permutation",
        *,
        level: float = 0.95,
        resamples: int = 9999,
        rng: np.random.Generator | None = None,
    ) -> "Comparison":
        """Return the differences to another evaluation of the same users, with intervals and p-values.

        Users are paired. Without `rng` a generator with a fixed seed is used.
        """
        ours, theirs = ((e.users, e.mode, e.protocol, e.truth) for e in (self, other))
        if ours != theirs:
            raise ValueError(
                "only evaluations of the same users, truth and mode can be compared: "
                f"{len(self.users):,} users ({self.protocol}, {self.mode}) and "
                f"{len(other.users):,} users ({other.protocol}, {other.mode})"
            )
        names = [name for name in self.values if name in other.values]
        if not names:
            raise ValueError("the two evaluations have no metric per user in common")
        if test not in ("permutation", "wilcoxon"):
            refuse("test", test, "be 'permutation' or 'wilcoxon'")
        rng = rng or np.random.default_rng(0)
        differences = np.column_stack([self.values[name] - other.values[name] for name in names])
        low, high = statistics.bootstrap(differences, level, min(resamples, 1000), rng)
        p_values = (
            statistics.wilcoxon_test(differences)
            if test == "wilcoxon"
            else statistics.permutation_test(differences, resamples, rng)
        )
        columns = zip(names, statistics.means(differences), low, high, p_values, strict=True)
        rows = [
            Difference(*_split(name), self[name], other[name], float(mean), float(lo), float(hi), float(p))
            for name, mean, lo, hi, p in columns
        ]
        return Comparison(self.label, other.label, test, level, rows)

    @property
    def label(self) -> str:
        """The model, with its dials where several were evaluated."""
        if self.dial is not None:
            signs = list(zip(("ξ", "α", "γ", "φ", "τ", "days"), self.dial, strict=True))
            time = signs[3:] if self.dial.freshness else signs[3:-1]
            shown = [*signs[:3], *((sign, value) for sign, value in time if value)]
            return ", ".join([self.model, *(f"{sign} = {value:g}" for sign, value in shown)])
        return self.model if self.xi is None else f"{self.model}, ξ = {self.xi:g}"

    def per_user(self) -> "pl.DataFrame":
        """Return a polars frame with a row per user and a column per metric."""
        import polars as pl

        return pl.DataFrame({"user": self.users.values.tolist()} | dict(self.values))

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary per metric and cut-off."""
        who = {"model": self.model} | ({} if self.xi is None else {"xi": self.xi})
        who |= {} if self.dial is None else self.dial._asdict()
        return [who | row._asdict() for row in self._usual]

    def grid(self) -> Grid:
        """Return a table with a row per metric and a column per cut-off."""
        rows = self._usual
        ks = sorted({row.k for row in rows})
        cells = {(row.metric, row.k): _with_interval(row) for row in rows}
        metrics = list(dict.fromkeys(row.metric for row in rows))
        notes = [_notes(len(self.users), self.notes), "95% bootstrap intervals over users in brackets"]
        notes += _explain_undefined([self], self.means)
        return Grid(
            f"{self.label}: {self.protocol}" + (", as the paper computes it" if self.mode == "paper" else ""),
            ["metric", *(f"@{k}" for k in ks)],
            [[metric, *(cells.get((metric, k), "") for k in ks)] for metric in metrics],
            notes if self.values else notes[:1] + notes[2:],
        )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {value:.4f}" for name, value in list(self.means.items())[:6])
        return f"Evaluation({self.label}; {len(self.users):,} users; {shown})"


class Evaluations(_Shown, Sequence[Evaluation]):
    """Several evaluations side by side: models, or values of ξ."""

    def __init__(self, evaluations: Sequence[Evaluation]) -> None:
        self._all = list(evaluations)

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, at: Any) -> Any:
        return Evaluations(self._all[at]) if isinstance(at, slice) else self._all[at]

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self._all)

    def best(self, name: str) -> Evaluation:
        """Return the evaluation with the largest mean of a metric, such as "ndcg@100"."""
        if not self._all:
            raise ValueError("there is no evaluation to choose from")
        known = [evaluation for evaluation in self._all if not np.isnan(evaluation[name])]
        if not known:
            raise ValueError(f"none of the evaluations has a value of {name}")
        return max(known, key=lambda evaluation: evaluation[name])

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary per evaluation, metric and cut-off."""
        return [row for evaluation in self._all for row in evaluation.records()]

    def grid(self, names: Sequence[str] | None = None) -> Grid:
        """Return a table with a row per evaluation and a column per metric and cut-off; the best are pointed out.

        `names` are the columns to show, such as "ndcg@20"; all if not given.
        """
        if names is None:
            names = list(dict.fromkeys(name for evaluation in self._all for name in evaluation.means))
        table = [[evaluation.means.get(name, np.nan) for name in names] for evaluation in self._all]
        strong = set()
        for c, column in enumerate(np.array(table).reshape(len(table), len(names)).T):
            if len(column) > 1 and not np.isnan(column).all() and names[c].split("@")[0] in PER_USER:
                strong |= {
                    (int(r), c + 1) for r in np.flatnonzero(np.round(column, 4) == np.round(np.nanmax(column), 4))
                }
        first = self._all[0] if self._all else None
        return Grid(
            first.protocol if first else "",
            ["model", *names],
            [
                [evaluation.label, *(_figure(value) for value in row)]
                for evaluation, row in zip(self._all, table, strict=True)
            ],
            [_notes(len(first.users), first.notes), *_explain_undefined(self._all, names)] if first else [],
            frozenset(strong),
        )

    def __repr__(self) -> str:
        return f"Evaluations({', '.join(evaluation.label for evaluation in self._all)})"


class Difference(NamedTuple):
    """A difference of two means of a metric, its confidence interval and its p-value."""

    metric: str
    k: int
    ours: float
    theirs: float
    difference: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True)
class Comparison(_Shown):
    """The differences of one evaluation to another, user by user."""

    ours: str
    theirs: str
    test: str
    level: float
    rows: Sequence[Difference]

    def __getitem__(self, name: str) -> Difference:
        """The difference in a metric, such as `comparison["ndcg@20"]`."""
        for row in self.rows:
            if f"{row.metric}@{row.k}" == name:
                return row
        raise KeyError(f"{name!r} was not compared: there are {', '.join(f'{r.metric}@{r.k}' for r in self.rows)}")

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary per metric and cut-off."""
        return [row._asdict() for row in self.rows]

    def grid(self) -> Grid:
        """Return a table with a row per metric and cut-off."""
        rows = [
            [
                f"{row.metric}@{row.k}",
                *(f"{value:.4f}" for value in (row.ours, row.theirs)),
                f"{row.difference:+.4f}",
                f"[{row.low:+.4f}, {row.high:+.4f}]",
                f"{row.p_value:.2g}",
            ]
            for row in self.rows
        ]
        header = ["metric", self.ours, self.theirs, "difference", f"{100 * self.level:g}% interval", "p"]
        return Grid(
            "", header, rows, [f"paired over users; p-values: {self.test} test, not corrected for their number"]
        )


def _explain_undefined(evaluations: Sequence[Evaluation], names: Collection[str]) -> list[str]:
    """Return a line per reason why some figures of a table are a dash: "– of tail_ndcg@20: no user has …"."""
    by_reason: dict[str, dict[str, None]] = {}
    for evaluation in evaluations:
        undefined = evaluation.undefined
        for name in names:
            missing = name not in evaluation.values and name not in evaluation.overall
            reason = "not evaluated for every model" if missing else undefined.get(name)
            if reason is not None:
                by_reason.setdefault(reason, {})[name] = None
    return [f"– of {', '.join(listed)}: {reason}" for reason, listed in by_reason.items()]


def _why_undefined(name: str) -> str:
    metric, _ = _split(name)
    if metric not in PER_USER:
        return "no list has any item"
    group = metric.partition("_")[0]
    items = {"head": " among the popular items (the head)", "tail": " among the items outside the head (the tail)"}
    return f"no user has anything to find{items.get(group, '')}"


def _split(name: str) -> tuple[str, int]:
    metric, _, k = name.partition("@")
    return metric, int(k)


def _figure(value: float) -> str:
    if np.isnan(value):
        return "–"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4f}"


def _with_interval(row: Estimate) -> str:
    return _figure(row.mean) + ("" if np.isnan(row.low) else f" [{row.low:.4f}, {row.high:.4f}]")


def _notes(users: int, notes: Mapping[str, int]) -> str:
    counted = [f"{count:,} {what}" for what, count in notes.items() if count]
    return "; ".join([f"{users:,} users", *counted])


def _jsonable(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
