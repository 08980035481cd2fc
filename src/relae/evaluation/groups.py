"""Popular and unpopular items, and how likely an item is to be seen at all: from training counts alone."""

import numpy as np
from numpy.typing import NDArray

from relae.algebra import propensities
from relae.errors import ParameterError

__all__ = ["head_items", "propensities"]

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
    # rounded first: 0.07 · 100 is a little more than 7
    head[order[: int(np.ceil(round(share * np.count_nonzero(item_counts), 9)))]] = True
    return head
