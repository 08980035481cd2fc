"""Popular and unpopular items, and how likely an item is to be seen at all: from training counts alone."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relae.algebra import propensities
from relae.errors import ParameterError
from relae.linalg import Csr

__all__ = ["Groups", "groups_without", "head_items", "propensities"]

Counts = NDArray[np.int64]


def head_items(item_counts: Counts, share: float = 0.2, order: NDArray[np.int64] | None = None) -> NDArray[np.bool_]:
    """Return which items are the head : (items,): the ceil(share · n) with the most users, of the n that have users.

    Items that nobody has, which a model can only know by their features, do not make the head larger.

    Parameters
    ----------
    item_counts : (items,)
        Users per item in the training data.
    share : float
        Between 0 and 1.
    order : (items,), optional
        The items from most to least popular; without it, ties go to the lower column.
    """
    if not 0 < share < 1:
        raise ParameterError(
            f"the share of head items must lie between 0 and 1, got {share!r}", field="head_share", value=share
        )
    if order is None:
        order = np.lexsort((np.arange(len(item_counts)), -item_counts))
    head = np.zeros(len(item_counts), bool)
    head[order[: _head_size(share, int(np.count_nonzero(item_counts)))]] = True
    return head


def _head_size(share: float, items: int) -> int:
    return int(np.ceil(round(share * items, 9)))  # rounded first: 0.07 · 100 is a little more than 7


class Groups(NamedTuple):
    """The group and the weight of each stored entry of a truth, where they differ by user : (entries,) each."""

    head: NDArray[np.bool_]
    propensities: NDArray[np.float64]


def groups_without(
    item_counts: Counts,
    rows: Csr,
    truth: Csr,
    share: float = 0.2,
    exponent: float = 0.5,
    floor: float = 0.01,
) -> Groups:
    """Return the head and the propensities of truth by the counts without the user who is judged by.

    Parameters
    ----------
    item_counts : (items,)
        Users per item, with all users.
    rows : (users, items)
        All items of each user, each counted in `item_counts`.
    truth : (users, items)
        The hidden part of each row.
    share, exponent, floor
        See `head_items` and `propensities`.
    """
    n, columns = len(item_counts), np.arange(len(item_counts))
    most = int(item_counts.max(initial=0))
    top = item_counts == most
    # an item i goes before (c, j) if it has more users than c, or as many and the lower column
    keys = np.sort(-item_counts * n + columns)
    before = np.searchsorted(keys, -(item_counts - 1) * n + columns)
    head = np.empty(truth.nnz, bool)
    probabilities = np.empty(truth.nnz)
    fewer = [
        propensities(np.append(np.maximum(item_counts - 1, 0), max(most - lower, 0)), exponent, floor)[:-1]
        for lower in (0, 1)
    ]
    used = int(np.count_nonzero(item_counts))
    for user in range(truth.shape[0]):
        own = rows.indices[rows.indptr[user] : rows.indptr[user + 1]].astype(np.int64)
        span = slice(truth.indptr[user], truth.indptr[user + 1])
        hidden = truth.indices[span].astype(np.int64)
        counts, theirs = item_counts[own][:, None], item_counts[hidden]
        ahead = _goes_before(counts, own[:, None], theirs - 1, hidden).sum(axis=0)  # as if the user still had them
        still = _goes_before(counts - 1, own[:, None], theirs - 1, hidden).sum(axis=0)
        left = used - int(np.count_nonzero(counts == 1))
        head[span] = before[hidden] - ahead + still < _head_size(share, left)
        lower = int(np.count_nonzero(top[own]) == np.count_nonzero(top))
        probabilities[span] = fewer[lower][hidden]
    return Groups(head, probabilities)


def _goes_before(counts: Counts, columns: Counts, others: Counts, other_columns: Counts) -> NDArray[np.bool_]:
    return np.asarray((counts > others) | ((counts == others) & (columns < other_columns)))
