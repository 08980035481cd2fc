"""Metrics of ranked lists: one value per user, NaN for a user without truth. Means are the report's business."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.linalg import Csr, as_csr

Hits = NDArray[np.bool_]
PerUser = NDArray[np.float64]


def find_hits(ranked: NDArray[np.int64], truth: Csr) -> Hits:
    """Tell which ranked columns (users, k) are in the user's truth; −1 never is."""
    truth = as_csr(truth, truth.dtype)
    users, items = truth.shape
    if ranked.size and ranked.max() >= items:
        raise ValueError(f"column {ranked.max():,} was recommended, and the truth has {items:,} columns")
    if ranked.shape[0] != users:
        raise ValueError(f"{ranked.shape[0]:,} ranked lists for {users:,} users with truth")
    owner = np.repeat(np.arange(users), np.diff(truth.indptr))
    cells = owner * np.int64(items) + truth.indices  # sorted, because rows and columns are
    wanted = np.arange(users)[:, None] * np.int64(items) + ranked
    at = np.minimum(np.searchsorted(cells, wanted), max(len(cells) - 1, 0))
    found = cells[at] == wanted if len(cells) else np.zeros(ranked.shape, bool)
    return np.asarray(found & (ranked >= 0))


def recall(hits: Hits, truth_sizes: NDArray[np.int64], k: int) -> PerUser:
    """Hits among the first k, divided by the size of the truth : (users,)."""
    with np.errstate(invalid="ignore"):
        return np.asarray(hits[:, :k].sum(axis=1) / truth_sizes)


def ndcg(hits: Hits, truth_sizes: NDArray[np.int64], k: int) -> PerUser:
    """Σ 1/log₂(rank + 1) over the hits among the first k, divided by that of the best possible list : (users,)."""
    discounts = 1.0 / np.log2(np.arange(2, k + 2))
    ideal = np.concatenate([[0.0], np.cumsum(discounts)])[np.minimum(truth_sizes, k)]
    with np.errstate(invalid="ignore"):
        return np.asarray(hits[:, :k] @ discounts[: hits.shape[1]] / ideal)


@dataclass(frozen=True)
class Summary:
    """Means over the users with truth, at one cut-off; the tail is what is not the head."""

    ndcg: float
    recall: float
    tail_recall: float
    tail_share: float


def summarize(ranked: NDArray[np.int64], truth: Csr, head: NDArray[np.bool_], k: int) -> Summary:
    """Return accuracy and long tail of ranked lists in four figures.

    Parameters
    ----------
    ranked : (users, at least k) columns, −1 where there is none
    truth : (users, items)
    head : (items,)
        Which items are the popular ones.
    """
    hits, sizes = find_hits(ranked, truth), np.diff(truth.indptr)
    tail_truth = truth @ sp.diags_array((~head).astype(truth.dtype))
    tail_truth.eliminate_zeros()
    tail_hits, tail_sizes = find_hits(ranked, sp.csr_array(tail_truth)), np.diff(tail_truth.indptr)
    shown = ranked[:, :k][ranked[:, :k] >= 0]
    return Summary(
        ndcg=_mean(ndcg(hits, sizes, k)),
        recall=_mean(recall(hits, sizes, k)),
        tail_recall=_mean(recall(tail_hits, tail_sizes, k)),
        tail_share=_mean(~head[shown]),
    )


def _mean(values: NDArray[Any]) -> float:
    """The mean of what is not NaN; NaN if nothing is left."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else np.nan
