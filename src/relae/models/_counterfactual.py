"""The smallest part of a history without which an item would not have been recommended."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations, islice
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGEST_SET = 4  # that is searched for among all sets
_WORK = 2e10  # multiplications that a size may take; beyond them sets are grown item by item
_CHUNK = 4096  # sets at a time

Floats = NDArray[np.float64]
Weigh = Callable[[NDArray[np.bool_]], Floats]
"""Returns the weights of the items of histories that lack some of them : (sets, items), from masks of what is left."""


@dataclass(frozen=True)
class Counterfactual:
    """The part of a history that a place in the first k of a list rests on.

    Attributes
    ----------
    items : list, or None
        Without these items of the history, the item would not have been among the first k; none if it is not among them
        now, and None if it would be without any of them.
    k : int
    rank : int
        The place of the item in the list, from 1 on.
    exact : bool
        Whether no smaller set does it. Otherwise the set was grown item by item, and there may be a smaller one.
    """

    items: list[Any] | None
    k: int
    rank: int
    exact: bool


def smallest_set(
    leads: Floats, offsets: Floats, before: NDArray[np.bool_], k: int, weigh: Weigh, is_fixed: bool
) -> tuple[NDArray[np.int64] | None, int, bool]:
    """Return the places of items to leave out, the rank of the item before, and whether no smaller set does it.

    Parameters
    ----------
    leads : (history, others)
        By how much an item of the history with the weight 1 raises the item above each of the others.
    offsets : (others,)
        What raises it above them whatever the history.
    before : (others,)
        Whether another comes first where both have the same score.
    weigh
        The weights of what is left of the history.
    is_fixed
        Whether the weight of an item does not depend on the others.
    """
    size = len(leads)
    whole = weigh(np.ones((1, size), bool))[0]

    def ahead(masks: NDArray[np.bool_], columns: Any) -> tuple[NDArray[np.int64], Floats]:
        """Return how many others are ahead of the item, and its lead over the k-th of them, for what is left."""
        gaps = weigh(masks) @ leads[:, columns] + offsets[columns]
        counts = ((gaps < 0) | ((gaps == 0) & before[columns])).sum(axis=1)
        enough = gaps.shape[1] >= k
        return counts, np.partition(gaps, k - 1, axis=1)[:, k - 1] if enough else np.full(len(gaps), np.inf)

    everyone = np.arange(len(offsets))
    rank = int(ahead(np.ones((1, size), bool), everyone)[0][0]) + 1
    if rank > k:
        return np.empty(0, np.int64), rank, True
    gaps = whole @ leads + offsets
    falls = np.cumsum(-np.sort(-np.maximum(whole[:, None] * leads, 0.0), axis=0), axis=0)  # the most that sets take
    for count in range(1, min(_LARGEST_SET, size) + 1):
        rivals = np.flatnonzero(gaps - falls[count - 1] <= 0) if is_fixed else everyone
        if len(rivals) < k:
            continue
        if comb(size, count) * size * len(rivals) > _WORK:
            return _grown(ahead, everyone, size, k), rank, False
        best = _best_of(combinations(range(size), count), count, size, ahead, rivals, k)
        if best is not None:
            return best, rank, True
    if size <= _LARGEST_SET:
        return None, rank, True
    return _grown(ahead, everyone, size, k), rank, False


def _best_of(
    sets: Iterator[tuple[int, ...]], count: int, size: int, ahead: Any, rivals: NDArray[np.int64], k: int
) -> NDArray[np.int64] | None:
    """Return that of the sets without which the item falls furthest behind the k-th, None if it stays before it."""
    best, lowest = None, np.inf
    while len(chunk := np.fromiter(chain.from_iterable(islice(sets, _CHUNK)), np.int64)):
        chunk = chunk.reshape(-1, count)
        masks = np.ones((len(chunk), size), bool)
        np.put_along_axis(masks, chunk, False, axis=1)
        counts, leads = ahead(masks, rivals)
        enough = np.flatnonzero(counts >= k)
        if len(enough):
            first = enough[np.argmin(leads[enough])]
            if best is None or leads[first] < lowest:
                best, lowest = chunk[first], float(leads[first])
    return best


def _grown(ahead: Any, rivals: NDArray[np.int64], size: int, k: int) -> NDArray[np.int64] | None:
    """Return a set that is grown by the item that costs most each time, None if no set is enough."""
    mask = np.ones(size, bool)
    while mask.any():
        left = np.flatnonzero(mask)
        masks = np.repeat(mask[None], len(left), axis=0)
        masks[np.arange(len(left)), left] = False
        counts, leads = ahead(masks, rivals)
        worst = int(np.argmin(leads))
        mask[left[worst]] = False
        if counts[worst] >= k:
            return np.flatnonzero(~mask)
    return None
