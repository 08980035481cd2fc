"""Popular and unpopular items, and how likely an item is to be seen at all: from training counts alone."""

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


def head_items(item_counts: Counts, share: float = 0.2, order: NDArray[np.int64] | None = None) -> NDArray[np.bool_]:
    """Tell which items are the head : (items,): the ceil(share · items) with the most users.

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
        raise ValueError(f"the share of head items must lie between 0 and 1, got {share!r}")
    if order is None:
        order = np.lexsort((np.arange(len(item_counts)), -item_counts))
    head = np.zeros(len(item_counts), bool)
    # rounded first: 0.07 · 100 is a little more than 7
    head[order[: int(np.ceil(round(share * len(item_counts), 9)))]] = True
    return head


def propensities(item_counts: Counts, exponent: float = 0.5, floor: float = 0.01) -> NDArray[np.float64]:
    """max((count/largest count)^exponent, floor) : (items,), how likely an item's interactions are to be observed.

    Yang et al. (2018) write the exponent as (γ + 1)/2 on counts; the paper calls an exponent of ½ "γ = 2".
    """
    if not exponent >= 0 or not 0 < floor <= 1:
        raise ValueError(f"the exponent must be at least 0 and the floor in (0, 1], got {exponent!r} and {floor!r}")
    return np.asarray(np.maximum((item_counts / max(int(item_counts.max(initial=0)), 1)) ** exponent, floor))
