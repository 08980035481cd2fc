"""The strong split of the paper's authors, to the letter."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relae.data import Lists
from relae.errors import DataError

SEED = 98765  # of NumPy's legacy generator


class StrongLists(NamedTuple):
    """The five files of a strong split; users are numbered from 0 in each part."""

    train: Lists
    valid_in: Lists
    valid: Lists
    test_in: Lists
    test: Lists


def strong_lists(pairs: Lists, heldout: int) -> StrongLists:
    """Return the paper's strong split of pairs in the order of their file.

    The users are permuted; the last `heldout` are the test users, those before them the validation users, and a part
    numbers its users in the permuted order. Items are numbered by their first appearance among the pairs of training
    users; others are dropped. Of a held-out user with at least 5 items, int(0.2·n) items drawn at random are the
    truth; users are drawn for in the order of their original numbers, with the seed set anew for each part.
    """
    users = np.unique(pairs.users)
    if not 0 < 2 * heldout < len(users):
        raise DataError(f"cannot hold out 2 × {heldout:,} of {len(users):,} users")
    permuted = users[np.random.RandomState(SEED).permutation(len(users))]
    rest = len(users) - 2 * heldout
    train = _numbered(pairs, permuted[:rest])
    seen, first = np.unique(train.items, return_index=True)
    number = np.full(int(pairs.items.max()) + 1, -1, np.int64)
    number[seen[np.argsort(first)]] = np.arange(len(seen))

    def part(chosen: NDArray[np.int64]) -> tuple[Lists, Lists]:
        held = _numbered(pairs, chosen)
        items = number[held.items]
        known = items >= 0
        return _divided(Lists(held.users[known], items[known], held.owners), np.argsort(chosen))

    valid_in, valid = part(permuted[rest : rest + heldout])
    test_in, test = part(permuted[rest + heldout :])
    return StrongLists(_by_user(Lists(train.users, number[train.items], train.owners)), valid_in, valid, test_in, test)


def _numbered(pairs: Lists, chosen: NDArray[np.int64]) -> Lists:
    """Return the pairs of some users, who are numbered as they are listed."""
    number = np.full(int(pairs.users.max()) + 1, -1, np.int64)
    number[chosen] = np.arange(len(chosen))
    users = number[pairs.users]
    kept = users >= 0
    return Lists(users[kept], pairs.items[kept], np.arange(len(chosen)))


def _divided(held: Lists, turns: NDArray[np.int64]) -> tuple[Lists, Lists]:
    """Return the histories and the truths of held-out users, drawn for in the order of `turns`."""
    held = _by_user(held)
    rng = np.random.RandomState(SEED)
    ends = np.searchsorted(held.users, np.arange(len(held.owners) + 1))
    is_truth = np.zeros(len(held.users), bool)
    for user in turns:
        start, size = ends[user], ends[user + 1] - ends[user]
        if size >= 5:
            is_truth[start + rng.choice(size, int(0.2 * size), replace=False)] = True
    return _chosen(held, ~is_truth), _chosen(held, is_truth)


def _by_user(lists: Lists) -> Lists:
    order = np.argsort(lists.users, kind="stable")
    return Lists(lists.users[order], lists.items[order], lists.owners)


def _chosen(lists: Lists, mask: NDArray[np.bool_]) -> Lists:
    users = lists.users[mask]
    return Lists(users, lists.items[mask], np.unique(users))
