"""Figures 3, 4 and 5 of the paper: what ξ, λ and dropout do to all, to popular and to unpopular items."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from relae import algebra
from relae._common.checks import refuse
from relae._common.progress import Progress, prefixed
from relae.analysis._spectrum import checked_l2s
from relae.evaluation import Evaluation, Split, evaluate
from relae.models import DLAE, LAE, RDLAE, RLAE, suggested_l2

if TYPE_CHECKING:
    import polars as pl

Parameter = Literal["xi", "l2", "dropout"]
GROUPS = ("all", "head", "tail")
_METRICS = ("ndcg", "head_ndcg", "tail_ndcg")
_LARGE = 10_000  # users or items, whichever are fewer, above which a fit takes a while
_XI_STEPS = 17


@dataclass(frozen=True)
class Curve:
    """The mean of a metric over users at each value of a parameter, with its confidence interval : (values,) each."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def best(self) -> int:
        """The place of the largest mean."""
        return int(np.nanargmax(self.mean))


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """NDCG of all, head and tail items as a function of one parameter of a model.

    Attributes
    ----------
    parameter : "xi", "l2" or "dropout"
    values : (values,)
        Of the parameter, rising.
    curves : mapping of "all", "head" and "tail" to Curve
    model : str
        "RLAE", "RDLAE", "LAE" or "DLAE".
    fixed : mapping of str to float
        The parameters that stay as they are.
    k, head_share
        The cut-off of NDCG, and the share of the items that are the head.
    evaluations : list of Evaluation
        One per value: NDCG of every user.
    unconstrained : (values,), or None
        The share of the items whose diagonal constraint is gone, where the parameter is ξ.
    """

    parameter: Parameter
    values: NDArray[np.float64]
    curves: Mapping[str, Curve]
    model: str
    fixed: Mapping[str, float]
    k: int
    head_share: float
    evaluations: Sequence[Evaluation]
    unconstrained: NDArray[np.float64] | None = None

    @property
    def best(self) -> float:
        """The value of the parameter with the largest NDCG of all items."""
        return float(self.values[self.curves["all"].best])

    def to_polars(self) -> "pl.DataFrame":
        """Return a row per group and value: model, group, k, parameters, ndcg, low, high, and unconstrained for ξ."""
        import polars as pl

        frames = []
        for group, curve in self.curves.items():
            columns: dict[str, Any] = {"model": self.model, "group": group, "k": self.k, **self.fixed}
            columns |= {self.parameter: self.values, "ndcg": curve.mean, "low": curve.low, "high": curve.high}
            if self.unconstrained is not None:
                columns["unconstrained"] = self.unconstrained
            frames.append(pl.DataFrame(columns))
        return pl.concat(frames)


def sensitivity_xi(
    split: Split,
    l2: float | None = None,
    xis: Sequence[float] | None = None,
    *,
    dropout: float = 0.0,
    k: int = 100,
    head_share: float = 0.2,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Sensitivity:
    """Return NDCG@k of RLAE (RDLAE with dropout) over ξ, all of it from one fit.

    Parameters
    ----------
    split
        What to fit to and to judge by; the paper holds out users (strong generalization).
    l2
        λ; the suggested one if not given. The paper sets it to 100.
    xis
        Values of ξ; if not given 0, 1 and steps over the interval in which they change anything.
    dropout
        0 for RLAE.
    k, head_share
        See `evaluate`.
    rng
        Of the bootstrap intervals; one with a fixed seed if not given.
    progress
        Called with the name of a stage and the fraction of it that is done.
    """
    l2 = _l2(split, l2)
    model = RDLAE(l2, dropout) if dropout > 0 else RLAE(l2)
    name = type(model).__name__
    report = prefixed(progress, f"{name} over ξ")
    model.fit(split.train, progress=report)
    if xis is None:
        low, high = model.xi_interval_
        xis = [0.0, *np.linspace(low, high, _XI_STEPS).round(3).tolist(), 1.0]
    values = np.unique([algebra.check_xi(xi) for xi in xis])
    results = evaluate(model, split, _METRICS, [k], xis=values.tolist(), head_share=head_share, progress=report)
    shares = [algebra.unconstrained_share(model.penalty_, model.inverse_diagonal_, xi) for xi in values.tolist()]
    fixed = {"l2": l2, "dropout": float(dropout)}
    curves = _curves(results, k, rng)
    return Sensitivity("xi", values, curves, name, fixed, k, head_share, list(results), np.array(shares))


def sensitivity_l2(
    split: Split,
    l2s: Sequence[float] | None = None,
    *,
    k: int = 100,
    head_share: float = 0.2,
    known: Sensitivity | None = None,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Sensitivity:
    """Return NDCG@k of LAE over λ: a fit for each, one at a time in memory.

    Parameters
    ----------
    split, k, head_share, rng, progress
        See `sensitivity_xi`.
    l2s
        Values of λ; if not given from a sixteenth of the suggested one to 64 times as much.
    known
        The result of `sensitivity_xi` for the same split: its ξ = 1 is LAE, which is then not fitted again.
    """
    steps = range(-4, 7, 2 if _is_large(split) else 1)
    values = checked_l2s([_l2(split, None) * 2.0**step for step in steps] if l2s is None else l2s)
    judge = _Judge(split, k, head_share, known, progress)
    results = [judge(LAE(float(l2)), f"l2 = {l2:.4g} ({at} of {len(values)})") for at, l2 in enumerate(values, 1)]
    return Sensitivity("l2", values, _curves(results, k, rng), "LAE", {"dropout": 0.0}, k, head_share, results)


def sensitivity_dropout(
    split: Split,
    dropouts: Sequence[float] | None = None,
    l2: float | None = None,
    *,
    k: int = 100,
    head_share: float = 0.2,
    known: Sensitivity | None = None,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Sensitivity:
    """Return NDCG@k of DLAE over dropout at a fixed λ: a fit for each, one at a time in memory.

    Parameters
    ----------
    split, l2, k, head_share, known, rng, progress
        See `sensitivity_xi` and `sensitivity_l2`.
    dropouts
        If not given 0 to 0.9.
    """
    l2 = _l2(split, l2)
    if dropouts is None:
        dropouts = (0.0, 0.2, 0.4, 0.6, 0.8) if _is_large(split) else (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    values = np.unique(np.asarray(dropouts, np.float64))
    if values.size == 0 or not (values[0] >= 0 and values[-1] < 1):
        refuse("dropouts", dropouts, "lie in [0, 1), and be at least one")
    judge = _Judge(split, k, head_share, known, progress)
    results = [
        judge(DLAE(l2, float(dropout)), f"dropout = {dropout:.4g} ({at} of {len(values)})")
        for at, dropout in enumerate(values, 1)
    ]
    return Sensitivity("dropout", values, _curves(results, k, rng), "DLAE", {"l2": l2}, k, head_share, results)


class _Judge:
    """Fits models and keeps nothing of them but their evaluations: one inverse at a time."""

    def __init__(
        self, split: Split, k: int, head_share: float, known: Sensitivity | None, progress: Progress | None
    ) -> None:
        self.split, self.k, self.head_share, self.progress = split, k, head_share, progress
        self.known: dict[tuple[float, float], Evaluation] = {}
        if known is not None:
            if (known.k, known.head_share, known.evaluations[0].users) != (k, head_share, split.users):
                raise ValueError("`known` is of other users, another k or another head_share: leave it out")
            for xi, result in zip(known.values, known.evaluations, strict=True):
                if known.parameter == "xi" and xi == 1:
                    self.known[known.fixed["l2"], known.fixed["dropout"]] = result

    def __call__(self, model: LAE | DLAE, name: str) -> Evaluation:
        known = self.known.get((model.l2 or 0.0, model.dropout))
        if known is not None:
            return known
        report = prefixed(self.progress, f"{type(model).__name__}, {name}")
        model.fit(self.split.train, progress=report)
        return evaluate(model, self.split, _METRICS, [self.k], head_share=self.head_share, progress=report)


def _curves(results: Sequence[Evaluation], k: int, rng: np.random.Generator | None) -> dict[str, Curve]:
    """Return means and intervals by group; users are resampled alike for all results."""
    seed = 0 if rng is None else int(rng.integers(2**63))
    points: dict[str, list[tuple[float, float, float]]] = {group: [] for group in GROUPS}
    for result in results:
        rows = result.estimates(rng=np.random.default_rng(seed))
        for group, metric in zip(GROUPS, _METRICS, strict=True):
            [matching] = [row for row in rows if (row.metric, row.k) == (metric, k)]
            points[group].append((matching.mean, matching.low, matching.high))
    return {group: Curve(*np.array(rows).T) for group, rows in points.items()}


def _l2(split: Split, l2: float | None) -> float:
    return suggested_l2(split.train.matrix) if l2 is None else float(l2)


def _is_large(split: Split) -> bool:
    return min(split.train.matrix.shape) > _LARGE
