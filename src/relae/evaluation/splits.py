"""Divisions of interactions into what a model may see and what it has to find."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.data import Interactions
from relae.errors import DataError
from relae.linalg import Csr


@dataclass(frozen=True)
class HeldOut:
    """Strong generalization: users to train on, and others whose history is given and whose truth is to be found."""

    train: Interactions
    users: NDArray[np.int64]  # rows of the held-out users in the whole data
    histories: Csr  # (held-out users, items)
    truth: Csr  # (held-out users, items)


def hold_out_users(
    data: Interactions, share: float = 0.1, truth_share: float = 0.2, *, rng: np.random.Generator
) -> HeldOut:
    """Hold out a share of the users, and of each of them a share of the items (at least one) as the truth.

    Users with a single item are never held out: nothing would be left of their history.
    """
    if not 0 < share < 1 or not 0 < truth_share < 1:
        raise ValueError(f"share and truth_share must lie between 0 and 1, got {share!r} and {truth_share!r}")
    matrix = data.matrix
    sizes = np.diff(matrix.indptr)
    able = np.flatnonzero(sizes >= 2)
    count = round(share * data.n_users)
    if not 0 < count <= len(able) or count == data.n_users:
        raise DataError(
            f"cannot hold out {count:,} of {data.n_users:,} users: {len(able):,} of them have two items or more"
        )
    held = np.sort(rng.choice(able, count, replace=False))
    rows = matrix[held]
    row_sizes = sizes[held]
    owner = np.repeat(np.arange(count), row_sizes)
    order = np.lexsort((rng.random(rows.nnz), owner))  # a random order within each user
    place = np.empty(rows.nnz, np.int64)
    place[order] = np.arange(rows.nnz) - np.repeat(np.cumsum(row_sizes) - row_sizes, row_sizes)
    is_truth = place < np.maximum(1, (truth_share * row_sizes).astype(np.int64))[owner]
    kept = np.ones(data.n_users, bool)
    kept[held] = False
    return HeldOut(data.select_users(kept), held, _part(rows, owner, ~is_truth), _part(rows, owner, is_truth))


def _part(rows: Csr, owner: NDArray[np.int64], chosen: NDArray[np.bool_]) -> Csr:
    """Return the chosen stored entries of some rows, all rows kept."""
    indptr = np.concatenate([[0], np.cumsum(np.bincount(owner[chosen], minlength=rows.shape[0]))])
    return sp.csr_array((rows.data[chosen], rows.indices[chosen], indptr), shape=rows.shape)


def head_items(item_counts: NDArray[np.int64], share: float = 0.2) -> NDArray[np.bool_]:
    """Tell which items are the head: the ceil(share · items) with the most users, ties to the lower column."""
    order = np.lexsort((np.arange(len(item_counts)), -item_counts))
    head = np.zeros(len(item_counts), bool)
    head[order[: int(np.ceil(share * len(item_counts)))]] = True
    return head
