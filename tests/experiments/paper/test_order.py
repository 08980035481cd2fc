"""The authors' order of equally popular items is NumPy's old sort, to the letter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relae.data import read_lists
from relae.experiments.paper import _order, introsort, popularity_order

from ...real_data import real


def by_numpy(values):
    """NumPy has faster sorts for integers by now, but for long doubles still the one of version 1.18."""
    return np.argsort(np.asarray(values).astype(np.longdouble))


def check(values):
    values = np.asarray(values)
    assert introsort(values).tolist() == by_numpy(values).tolist()


def test_the_judge_is_not_a_stable_sort():
    constant = np.zeros(100)
    assert by_numpy(constant).tolist() != np.argsort(constant, kind="stable").tolist()


@pytest.mark.parametrize("n", [*range(40), 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000, 4097])
def test_the_sort_of_numpy_at_every_size(n):
    rng = np.random.default_rng(n)
    for kinds in (1, 2, 3, 7, n + 1, 10 * n + 1):
        for _ in range(4):
            check(rng.integers(0, kinds, n))


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 18, 33, 500, 2048, 3001])
def test_the_sort_of_numpy_on_patterns(n):
    rising = np.arange(n)
    halves = np.concatenate([rising[: n // 2], rising[: n - n // 2][::-1]])
    for pattern in (rising, rising[::-1], np.zeros(n, np.int64), halves, halves[::-1], rising % 7, -(rising // 5)):
        check(pattern)


def median_of_three_killer(n):
    """Musser's permutation (1997): the median of three of each part is nearly its smallest (n divisible by 4)."""
    half = n // 2
    odd = [i if i % 2 else half + i - 1 for i in range(1, half + 1)]
    return np.array([*odd, *(2 * i for i in range(1, half + 1))])


def adversary(n):
    """McIlroy's antiquicksort: values that are decided only as the sort compares them, always to its harm."""
    gas = n
    values = dict.fromkeys(range(n), gas)
    solid, candidate = 0, 0

    class Lazy:
        def __init__(self, item):
            self.item = item

        def __lt__(self, other):
            nonlocal solid, candidate
            a, b = self.item, other.item
            if values[a] == gas and values[b] == gas:
                frozen = a if a == candidate else b
                values[frozen], solid = solid, solid + 1
            if values[a] == gas:
                candidate = a
            elif values[b] == gas:
                candidate = b
            return values[a] < values[b]

    class Values:
        def tolist(self):
            return [Lazy(item) for item in range(n)]

    introsort(Values())
    return np.array([values[item] for item in range(n)])


@pytest.mark.parametrize("hard", [median_of_three_killer(10_000), adversary(3_000)], ids=["musser", "mcilroy"])
@pytest.mark.parametrize("divisor", [1, 2])
def test_the_sort_of_numpy_where_it_falls_back_on_a_heap(hard, divisor, monkeypatch):
    sizes = []
    heapsort = _order._heapsort

    def counted(keys, order):
        sizes.append(len(order))
        return heapsort(keys, order)

    monkeypatch.setattr(_order, "_heapsort", counted)
    check(hard // divisor)  # halved: with ties
    assert max(sizes, default=0) > 400


def test_the_heap_sort_alone():
    rng = np.random.default_rng(0)
    for n in range(50):
        keys = rng.integers(0, 10, n).tolist()
        order = _order._heapsort(keys, list(range(n)))
        assert sorted(order) == list(range(n))
        assert [keys[at] for at in order] == sorted(keys)


@given(st.lists(st.integers(-3, 30), max_size=200))
def test_the_order_is_a_permutation_that_sorts(values):
    values = np.array(values, np.int64)
    order = introsort(values)
    assert order.dtype == np.int64
    assert sorted(order) == list(range(len(values)))
    assert (np.diff(values[order]) >= 0).all()


@given(st.lists(st.integers(0, 5), max_size=60))
def test_popularity_falls(counts):
    counts = np.array(counts, np.int64)
    order = popularity_order(counts)
    assert order.tolist() == by_numpy(counts)[::-1].tolist()
    assert (np.diff(counts[order]) <= 0).all()


def test_the_head_of_gowalla_is_the_authors_in_their_order():
    folder = real("gowalla-strong")
    train = read_lists(folder / "train.txt")
    counts = np.bincount(train.items)
    head = np.loadtxt(folder / "head_items.txt", dtype=np.int64)
    assert len(head) == int(np.ceil(0.2 * len(counts)))
    assert np.array_equal(popularity_order(counts)[: len(head)], head)
