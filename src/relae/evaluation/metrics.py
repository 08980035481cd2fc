"""Metrics of ranked lists: one value per user, NaN for a user without truth. Means are the report's business.

With S = Σ gain over the hits among the first k, D = Σ gain/log₂(place + 1), and S*, D* the same of the best possible
list, and n the size of the truth:

| recall | recall_capped | ndcg | precision | hit_rate | mrr | map |
|---|---|---|---|---|---|---|
| S/n | S/S* | D/D* | S/k | S > 0 | 1/place of the first hit | Σ over hits (hits so far)/place, /n |

A prefix says which truth counts: none, all of it; `head_` and `tail_`, the popular items and the others, while the list
stays the one of all items. The gain of a hit is 1; for `unbiased_recall` (S/S*) and `unbiased_ndcg` (D/D*) it is
1/propensity. Other metrics are of all lists together: how many items are shown at all, and which.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae._common.checks import check_whole, refuse
from relae.data import canonical_matrix, gini
from relae.errors import DataError, Option, ParameterError
from relae.evaluation.groups import Groups, head_items, propensities
from relae.linalg import Csr, best_sums, ranked_sums

PerUser = NDArray[np.float64]
Mode = Literal["standard", "paper"]
ItemOrder = Callable[[NDArray[np.int64]], NDArray[np.int64]]  # from users per item to items, the most popular first


class Sums(NamedTuple):
    """Sums over each user's list at one cut-off, for one group of items : (users,) each."""

    gain: PerUser  # S
    discounted: PerUser  # D
    precisions: PerUser  # Σ over hits (hits so far)/place
    first: PerUser  # 1/place of the first hit
    best_gain: PerUser  # S*
    best_discounted: PerUser  # D*
    size: PerUser  # n
    k: int


FORMULAS: dict[str, Callable[[Sums], PerUser]] = {
    "recall": lambda sums: sums.gain / sums.size,
    "recall_capped": lambda sums: sums.gain / sums.best_gain,
    "ndcg": lambda sums: sums.discounted / sums.best_discounted,
    "precision": lambda sums: sums.gain / sums.k,
    "hit_rate": lambda sums: (sums.gain > 0).astype(np.float64),
    "mrr": lambda sums: sums.first,
    "map": lambda sums: sums.precisions / sums.size,
}
GROUPS = ("all", "head", "tail", "unbiased")
_UNBIASED = {"recall": "recall_capped", "ndcg": "ndcg"}  # names of S/S* and D/D* with a gain of 1/propensity


@dataclass(frozen=True)
class Exposure:
    """The number of times that each candidate is in the first k places of all lists."""

    shown: NDArray[np.int64]  # (items,)
    item_counts: NDArray[np.int64]  # (items,) users per item in training
    n_users: int  # in training
    head: NDArray[np.bool_]  # (items,)

    def mean(self, values: NDArray[np.floating]) -> float:
        """Return the mean of a value per item over all places of all lists."""
        slots = int(self.shown.sum())
        return float(self.shown @ values / slots) if slots else float("nan")


def _gini(exposure: Exposure) -> float:
    return gini(exposure.shown) if exposure.shown.any() else float("nan")


def _surprise(exposure: Exposure) -> NDArray[np.float64]:
    return -np.log2(np.maximum(exposure.item_counts, 1) / max(exposure.n_users, 1))


OVERALL: dict[str, Callable[[Exposure], float]] = {
    "coverage": lambda exposure: float(np.mean(exposure.shown > 0)),
    "exposure_gini": _gini,
    "tail_share": lambda exposure: exposure.mean((~exposure.head).astype(np.float64)),
    "popularity": lambda exposure: exposure.mean(exposure.item_counts.astype(np.float64)),
    "novelty": lambda exposure: exposure.mean(_surprise(exposure)),
}

PER_USER = (
    *FORMULAS,
    *(f"{group}_{formula}" for group in ("head", "tail") for formula in FORMULAS),
    *(f"unbiased_{formula}" for formula in _UNBIASED),
)
METRICS = (*PER_USER, *OVERALL)
DEFAULT_METRICS = (
    *("ndcg", "recall", "tail_ndcg", "tail_recall", "unbiased_ndcg", "unbiased_recall"),
    *("coverage", "tail_share"),
)


def check_metrics(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names without repetition; an unknown one is an error that lists them all."""
    if isinstance(names, str):
        raise ParameterError(Option("metrics"), f" is a list of names, got the string {names!r}")
    names = tuple(names)
    for name in names:
        if name not in METRICS:
            raise ParameterError(
                f"there is no metric {name!r}: the metrics are {', '.join(METRICS)}", field="metrics", value=name
            )
    if not names:
        raise ParameterError(f"no metric is asked for: the metrics are {', '.join(METRICS)}", field="metrics")
    return tuple(dict.fromkeys(names))


def check_ks(ks: Sequence[int] | int, n_items: int, what: str = "catalog") -> tuple[int, ...]:
    """Return the cut-offs in rising order; each is a whole number from 1 to the number of items to choose from."""
    ks = (ks,) if isinstance(ks, (int, np.integer)) else tuple(ks)
    for k in ks:
        check_whole("a cut-off", k)
        if k > n_items:
            raise DataError(
                "lists of ",
                Option("k", int(k)),
                f" cannot be filled from a {what} of {n_items:,} items: choose a smaller ",
                Option("k"),
            )
    if not ks:
        raise ParameterError("no cut-off is asked for: give ", Option("k", "20,100", python="ks, such as (20, 100)"))
    return tuple(sorted({int(k) for k in ks}))


class Scorer:
    """Values per user, and exposure, of ranked lists against one truth; what depends on the truth alone is done once.

    Parameters
    ----------
    truth : (users, items)
        What was to be found.
    item_counts : (items,)
        Users per item in the training data; groups and propensities come from them alone.
    n_users : int
        Users in the training data.
    metrics, ks
        Names out of `METRICS`, and cut-offs.
    mode
        "standard", or "paper" for what the authors computed: users without any truth count as 0, the unbiased metrics
        are normalized by the first min(k, n) items of the truth in the order of the file, and unbiased NDCG is also
        divided by the ideal DCG of gains of 1.
    head_share, propensity_exponent, propensity_floor
        See `head_items` and `propensities`.
    truth_order : (stored entries of truth,)
        The items of each user's truth in the order of the file, which the mode "paper" needs.
    candidates : (columns,)
        The only items that may be in a list: coverage and inequality of exposure are among them. Groups and
        propensities stay those of all items.
    item_order
        A function from `item_counts` to the items, the most popular first, which decides among equally popular items
        at the edge of the head; the lower column first if not given. See `relae.experiments.paper.popularity_order`.
    groups
        The head and the propensities of each stored entry of the truth, where they differ by user; see
        `groups_without`. Metrics of all lists together take those of `item_counts`.
    """

    def __init__(
        self,
        truth: Csr,
        item_counts: NDArray[np.int64],
        n_users: int,
        metrics: Sequence[str] = DEFAULT_METRICS,
        ks: Sequence[int] = (20, 100),
        *,
        mode: Mode = "standard",
        head_share: float = 0.2,
        propensity_exponent: float = 0.5,
        propensity_floor: float = 0.01,
        truth_order: NDArray[np.integer] | None = None,
        candidates: NDArray[np.int64] | None = None,
        item_order: ItemOrder | None = None,
        groups: Groups | None = None,
    ) -> None:
        if mode not in ("standard", "paper"):
            refuse("mode", mode, "be 'standard' or 'paper'")
        self.metrics, self.candidates = check_metrics(metrics), candidates
        self.ks = check_ks(ks, truth.shape[1]) if candidates is None else check_ks(ks, len(candidates), "choice")
        truth = canonical_matrix(truth)
        self.mode, self.truth, self.item_counts, self.n_users = mode, truth, item_counts, n_users
        self.head = head_items(item_counts, head_share, None if item_order is None else item_order(item_counts))
        weights = 1.0 / propensities(item_counts, propensity_exponent, propensity_floor)
        head = self.head
        self._found = truth
        if groups is not None:  # a column for each entry of the truth, because each has groups of its own
            head, weights = groups.head, 1.0 / groups.propensities
            cells = np.arange(truth.nnz, dtype=np.int32)
            self._found = sp.csr_array((truth.data, cells, truth.indptr), shape=(truth.shape[0], truth.nnz))
        columns = {"all": np.ones(len(head)), "head": head, "tail": ~head, "unbiased": weights}
        split = [_parse(name) for name in self.metrics if name in PER_USER]
        # the paper's unbiased NDCG is divided by an ideal that knows no propensities
        self._groups = [name for name in GROUPS if name in {"all"} | {group for group, _ in split}]
        self._gains = np.column_stack([columns[group].astype(np.float64) for group in self._groups])
        self._cutoffs = np.array(self.ks, np.int64)
        self._discounts = 1.0 / np.log2(np.arange(2.0, self.ks[-1] + 2.0))
        in_order = mode == "paper" and "unbiased" in self._groups
        if in_order and truth_order is None:
            raise DataError(
                "the paper's unbiased metrics depend on the order of the truth in its file, and this truth has none: "
                "use ",
                Option("mode", "standard"),
                ", or a split made from lists in their order",
            )
        self._best, self._sizes = best_sums(
            truth.indptr,
            self._found.indices if truth_order is None else truth_order,
            self._gains,
            self._discounts,
            self._cutoffs,
            np.array([not (in_order and group == "unbiased") for group in self._groups]),
        )

    @property
    def users_without_truth(self) -> dict[str, int]:
        """For each group of items that is asked for, how many users have no truth in it."""
        return {
            group: int(np.count_nonzero(self._sizes[:, at] == 0))
            for at, group in enumerate(self._groups)
            if group != "unbiased"
        }

    def values(self, ranked: NDArray[np.int64], users: slice = slice(None)) -> dict[str, PerUser]:
        """Return each metric at each cut-off, as "ndcg@20" : (users,), for the ranked lists (users, at least max ks).

        `users` says which rows of the truth the lists belong to.
        """
        truth = self.truth if users == slice(None) else self.truth[users]
        if ranked.shape[0] != truth.shape[0]:
            raise DataError(f"{ranked.shape[0]:,} ranked lists for {truth.shape[0]:,} users with truth")
        if ranked.shape[1] < self.ks[-1]:
            raise DataError(f"the ranked lists have {ranked.shape[1]:,} places, and k goes up to {self.ks[-1]:,}")
        if ranked.size and ranked.max() >= truth.shape[1]:
            raise DataError(f"column {ranked.max():,} is recommended, and the truth has {truth.shape[1]:,} columns")
        entries = self._found if users == slice(None) else self._found[users]
        if self._found is not self.truth:
            ranked = _entries(ranked, truth, entries)
        totals = ranked_sums(ranked, entries, self._gains, self._discounts, self._cutoffs)
        best, sizes = self._best[users], self._sizes[users].astype(np.float64)
        result: dict[str, PerUser] = {}
        for name in self.metrics:
            if name not in PER_USER:
                continue
            group, formula = _parse(name)
            at = self._groups.index(group)
            for c, k in enumerate(self.ks):
                here, ideal = totals[:, at, c].T, best[:, at, c].T
                sums = Sums(here[0], here[1], here[2], here[3], ideal[0], ideal[1], sizes[:, at], k)
                result[f"{name}@{k}"] = self._value(group, formula, sums, best[:, 0, c, 1])
        return result

    def _value(self, group: str, formula: str, sums: Sums, plain_ideal: PerUser) -> PerUser:
        with np.errstate(invalid="ignore", divide="ignore"):
            if self.mode == "paper" and group == "unbiased" and formula == "ndcg":
                value = sums.discounted / sums.best_gain / plain_ideal
            else:
                value = FORMULAS[formula](sums)
        as_zero = self.mode == "paper" and group in ("all", "unbiased")
        return np.where(sums.size > 0, value, 0.0 if as_zero else np.nan)

    def exposure(self, ranked: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how often each item is in the first k places, for each k : (cut-offs, items)."""
        shown = np.zeros((len(self.ks), self.truth.shape[1]), np.int64)
        start = 0
        for c, k in enumerate(self.ks):
            slots = ranked[:, start:k]
            shown[c] = np.bincount(slots[slots >= 0], minlength=shown.shape[1])
            start = k
        return np.cumsum(shown, axis=0)

    def overall(self, shown: NDArray[np.int64]) -> dict[str, float]:
        """Return the metrics of all lists together from the exposure of all users."""
        may = slice(None) if self.candidates is None else self.candidates
        return {
            f"{name}@{k}": OVERALL[name](Exposure(shown[c, may], self.item_counts[may], self.n_users, self.head[may]))
            for name in self.metrics
            if name in OVERALL
            for c, k in enumerate(self.ks)
        }


def _entries(ranked: NDArray[np.int64], truth: Csr, counted: Csr) -> NDArray[np.int64]:
    """Return the column in `counted` of each place that is in the truth of its row, −1 for others."""
    width = np.int64(truth.shape[1])
    keys = np.repeat(np.arange(truth.shape[0]), np.diff(truth.indptr)) * width + truth.indices
    wanted = np.arange(len(ranked))[:, None] * width + ranked
    at = np.searchsorted(keys, wanted).clip(max=max(len(keys) - 1, 0))
    hit = (ranked >= 0) & (keys[at] == wanted) if len(keys) else np.zeros(ranked.shape, bool)
    return np.where(hit, counted.indices[at] if len(keys) else -1, -1)


def _parse(name: str) -> tuple[str, str]:
    """Return the group and the formula of a metric's name."""
    prefix, _, rest = name.partition("_")
    if prefix == "unbiased":
        return prefix, _UNBIASED[rest]
    return (prefix, rest) if prefix in GROUPS else ("all", name)
