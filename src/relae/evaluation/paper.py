"""The exact procedures of the paper's authors: their order of equal counts, and their strong split."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from relae.data import Lists
from relae.errors import DataError

SEED = 98765  # of NumPy's legacy generator
_SHORT = 16  # runs of at most this length are sorted by insertion


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


def popularity_order(item_counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the items from most to least popular, with equal counts in the authors' order : (items,).

    They took `argsort(counts)[::-1]` of NumPy 1.18, an introsort that is not stable: which of many equally popular
    items belong to the head depends on its every step.
    """
    return introsort(item_counts)[::-1].copy()


def introsort(values: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the order that sorts some numbers, step by step as NumPy's unstable argsort does.

    Quicksort with the median of three as its pivot, the shorter part first; insertion sort for short parts; heap sort
    for a part that was divided more than 2·log₂ n times.
    """
    keys: list[int] = values.tolist()
    order = list(range(len(keys)))

    waiting = [(0, len(keys) - 1, 2 * (len(keys).bit_length() - 1))]
    while waiting:
        low, high, depth = waiting.pop()
        if depth < 0:
            order[low : high + 1] = _heapsort(keys, order[low : high + 1])
            continue
        while high - low >= _SHORT:
            left = _partition(keys, order, low, high)
            depth -= 1
            if left - low < high - left:
                waiting.append((left + 1, high, depth))
                high = left - 1
            else:
                waiting.append((low, left - 1, depth))
                low = left + 1
        order[low : high + 1] = sorted(order[low : high + 1], key=keys.__getitem__)  # stable, as insertion is
    return np.array(order, np.int64)


def _partition(keys: list[int], order: list[int], low: int, high: int) -> int:
    """Put the keys of a part below and above its pivot, the median of three, and return where that is."""

    def swap(a: int, b: int) -> None:
        order[a], order[b] = order[b], order[a]

    middle = low + (high - low) // 2
    for a, b in ((middle, low), (high, middle), (middle, low)):
        if keys[order[a]] < keys[order[b]]:
            swap(a, b)
    pivot = keys[order[middle]]
    left, right = low, high - 1
    swap(middle, right)
    while True:
        left += 1
        while keys[order[left]] < pivot:
            left += 1
        right -= 1
        while pivot < keys[order[right]]:
            right -= 1
        if left >= right:
            break
        swap(left, right)
    swap(left, high - 1)
    return left


def _heapsort(keys: list[int], order: list[int]) -> list[int]:
    """Return `order` sorted by its keys with a binary heap whose root is the largest."""
    order = order.copy()

    def sink(at: int, size: int) -> None:
        entry = order[at]
        while (child := 2 * at + 1) < size:
            if child + 1 < size and keys[order[child]] < keys[order[child + 1]]:
                child += 1
            if not keys[entry] < keys[order[child]]:
                break
            order[at] = order[child]
            at = child
        order[at] = entry

    for at in range(len(order) // 2 - 1, -1, -1):
        sink(at, len(order))
    for size in range(len(order) - 1, 0, -1):
        order[0], order[size] = order[size], order[0]
        sink(0, size)
    return order
