"""The order of equally popular items in the authors' programs: an unstable sort of NumPy 1.18, step by step."""

import numpy as np
from numpy.typing import NDArray

_SHORT = 16  # runs of at most this length are sorted by insertion


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
