"""The weighting of amounts with the best ndcg in a small trial on the data itself.

Amounts are plays, pieces or visits, or ratings. Whether a larger one says more, and how much more, differs from data to
data, and a model whose weights are the amounts themselves is mostly far worse than one that does not look at them. So
a small EASE is fitted to some users and the most popular items under each weighting, and judged by other users.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae._common.table_options import Weighting
from relae.algebra import column_weights, penalty, suggested_l2
from relae.data._weights import reweighted
from relae.errors import Option, WeightingWarning

_USERS, _ITEMS = 5_000, 1_000  # of the trial: an inverse of that many items takes a fraction of a second
_LEAST_USERS = 50  # to judge by
_JUDGED, _HIDDEN = 0.2, 0.2  # shares of the users to judge by, and of their items to find
_K = 20
# By rising influence of the amounts: where figures do not differ significantly, the first is chosen.
_CANDIDATES: tuple[Weighting, ...] = ("binary", "log", "sqrt", "linear")
_WORDS = {"binary": "1 for every amount", "log": "log₂(1 + a)", "sqrt": "√a", "linear": "a itself"}


@dataclass(frozen=True)
class Trial:
    """ndcg@20 of each weighting on the users of a trial, and the weighting that is chosen by it."""

    chosen: Weighting
    figures: dict[Weighting, float]
    users: int

    def __str__(self) -> str:
        figures = ", ".join(f"{name} {value:.4f}" for name, value in self.figures.items())
        return f"ndcg@{_K} of {self.users:,} users in a quick trial: {figures}"


def choose_weighting(matrix: sp.csr_array, column: str) -> Weighting:
    """Return the weighting for the amounts in a matrix (users × items), and say which it is and why."""
    if (matrix.data == 1).all():
        return "linear"
    trial = try_weightings(matrix)
    chosen, why = ("log", "there are too few users to try") if trial is None else (trial.chosen, str(trial))
    warnings.warn(
        WeightingWarning(
            Option("weight", column),
            f": an amount a counts {_WORDS[chosen]} ({why}). Set ",
            Option("weighting", chosen),
            " to keep that, or another one of linear, sqrt, log, binary",
        ),
        stacklevel=4,
    )
    return cast(Weighting, chosen)


def try_weightings(matrix: sp.csr_array) -> Trial | None:
    """Judge all weightings on a part of some data, always the same one; None if it has too few users."""
    part = _part(matrix)
    n_judged = round(_JUDGED * part.shape[0])
    if n_judged < _LEAST_USERS:
        return None
    rng = np.random.default_rng(0)
    judged = np.zeros(part.shape[0], dtype=bool)
    judged[rng.choice(part.shape[0], n_judged, replace=False)] = True
    train, test = part[~judged], part[judged]
    hidden = _hide(test, rng)
    values = {
        weighting: _ndcg(_weighted(train, weighting), _weighted(test, weighting), hidden) for weighting in _CANDIDATES
    }
    figures = {weighting: float(per_user.mean()) for weighting, per_user in values.items()}
    best = max(figures, key=lambda weighting: figures[weighting])
    for weighting in _CANDIDATES:
        ahead = values[best] - values[weighting]
        if ahead.mean() <= ahead.std() / np.sqrt(n_judged):
            return Trial(weighting, figures, n_judged)
    return Trial(best, figures, n_judged)


def _part(matrix: sp.csr_array) -> sp.csr_array:
    """Return the most popular items, and users who have two of them or more."""
    counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
    items = np.sort(np.argsort(-counts, kind="stable")[:_ITEMS])
    users = np.flatnonzero(np.diff(matrix.indptr) >= 2)
    if len(users) > 2 * _USERS:  # some of the chosen items only would cost a copy of all
        users = np.sort(np.random.default_rng(0).choice(users, 2 * _USERS, replace=False))
    part = sp.csr_array(sp.csr_array(matrix[users])[:, items])
    return sp.csr_array(part[np.flatnonzero(np.diff(part.indptr) >= 2)[:_USERS]])


def _hide(rows: sp.csr_array, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which stored entries are to be found: a share of each row, at least one and not all."""
    sizes = np.diff(rows.indptr)
    order = np.lexsort((rng.random(rows.nnz), np.repeat(np.arange(len(sizes)), sizes)))
    rank = np.empty(rows.nnz, dtype=np.int64)
    rank[order] = np.arange(rows.nnz) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray(rank < np.repeat(np.maximum(1, (_HIDDEN * sizes).astype(np.int64)), sizes))


def _weighted(rows: sp.csr_array, weighting: Weighting) -> sp.csr_array:
    return sp.csr_array((reweighted(rows.data, weighting), rows.indices, rows.indptr), shape=rows.shape)


def _ndcg(train: sp.csr_array, rows: sp.csr_array, hidden: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the ndcg@20 of each row by a small EASE : (rows,)."""
    dense = train.astype(np.float32).toarray()
    gram: NDArray[Any] = dense.T @ dense
    squares, counts = gram.diagonal().astype(np.float64), np.bincount(train.indices, minlength=train.shape[1])
    penalties = penalty(squares, suggested_l2(counts, float(squares.sum())))
    gram[np.diag_indices_from(gram)] += penalties
    inverse = np.linalg.inv(gram)
    weights = column_weights(penalties, inverse.diagonal().astype(np.float64), 0.0)
    history = sp.csr_array((np.where(hidden, 0.0, rows.data), rows.indices, rows.indptr), shape=rows.shape)
    scores = -(history @ inverse) * weights
    truth = sp.csr_array((hidden.astype(np.float64), rows.indices, rows.indptr), shape=rows.shape).toarray()
    scores[history.toarray() > 0] = -np.inf
    k = min(_K, scores.shape[1])
    top = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    ranked = np.take_along_axis(top, np.argsort(np.take_along_axis(-scores, top, axis=1), axis=1), axis=1)
    discounts = 1.0 / np.log2(np.arange(2.0, k + 2.0))
    gains = np.take_along_axis(truth, ranked, axis=1) @ discounts
    best = np.cumsum(discounts)[np.minimum(truth.sum(axis=1).astype(np.int64), k) - 1]
    return np.asarray(gains / best)
