"""Held-out users, and the head of the items."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relae import DataError, Interactions
from relae.evaluation import head_items, hold_out_users

from ..oracles import csr, example

DATA = Interactions(
    csr(example(60, 25, weighted=True)), users=[f"u{u}" for u in range(60)], items=[f"i{i}" for i in range(25)]
)


def split(share=0.3, truth_share=0.2, seed=0, data=DATA):
    return hold_out_users(data, share, truth_share, rng=np.random.default_rng(seed))


@given(st.floats(0.05, 0.9), st.floats(0.01, 0.99), st.integers(0, 100))
def test_a_split_is_a_partition(share, truth_share, seed):
    held = split(share, truth_share, seed)
    whole = DATA.matrix.toarray()
    rest = np.setdiff1d(np.arange(60), held.users)
    assert len(held.users) == round(share * 60)
    assert held.users.tolist() == sorted(set(held.users))
    assert np.array_equal(held.train.matrix.toarray(), whole[rest])
    assert held.train.users.values.tolist() == [f"u{u}" for u in rest]
    assert held.train.items == DATA.items
    histories, truth = held.histories.toarray(), held.truth.toarray()
    assert histories.shape == truth.shape == (len(held.users), 25)
    assert np.array_equal(histories + truth, whole[held.users])  # weights and all
    assert not ((histories > 0) & (truth > 0)).any()
    sizes = np.count_nonzero(whole[held.users], axis=1)
    assert (sizes >= 2).all()
    expected = np.maximum(1, np.floor(truth_share * sizes))
    assert np.array_equal(np.count_nonzero(truth, axis=1), expected)
    assert (np.count_nonzero(histories, axis=1) >= 1).all()


def test_the_parts_are_in_the_form_the_metrics_rely_on():
    held = split()
    for part in (held.histories, held.truth):
        assert part.format == "csr"
        assert part.has_canonical_format
        assert part.dtype == np.float32


def test_the_generator_decides():
    first, second, other = split(seed=1), split(seed=1), split(seed=2)
    assert np.array_equal(first.users, second.users)
    assert np.array_equal(first.truth.toarray(), second.truth.toarray())
    assert not np.array_equal(first.users, other.users)


def test_the_truth_is_drawn_evenly():
    data = Interactions(np.ones((400, 5)))
    counts = split(0.9, 0.2, data=data).truth.toarray().sum(axis=0)
    assert counts.sum() == 360
    assert (np.abs(counts - 72) < 35).all()  # about 4.6 standard deviations


def test_everybody_is_drawn_evenly():
    data = Interactions(np.ones((20, 3)))
    counts = np.zeros(20)
    for seed in range(200):
        counts[split(0.25, 0.5, seed, data).users] += 1
    assert (np.abs(counts - 50) < 30).all()


def test_users_with_a_single_item_are_never_held_out():
    x = np.ones((10, 4))
    x[:6, 1:] = 0
    data = Interactions(x)
    for seed in range(20):
        assert split(0.4, 0.5, seed, data).users.min() >= 6
    with pytest.raises(DataError, match="cannot hold out 5 of 10 users: 4 of them have two items or more"):
        split(0.5, 0.5, 0, data)


@pytest.mark.parametrize(("share", "truth_share"), [(0, 0.2), (1, 0.2), (-0.1, 0.2), (0.1, 0), (0.1, 1), (np.nan, 0.2)])
def test_bad_shares(share, truth_share):
    with pytest.raises(ValueError, match="share and truth_share must lie between 0 and 1"):
        split(share, truth_share)


def test_shares_that_leave_nobody():
    with pytest.raises(DataError, match="cannot hold out 0 of 60 users"):
        split(0.001)
    with pytest.raises(DataError, match="cannot hold out 2 of 2 users"):
        split(0.9, 0.5, 0, Interactions(np.ones((2, 3))))


# --- the head ----------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 5), max_size=30), st.sampled_from([0.1, 0.2, 0.25, 0.5, 1.0]))
def test_head_items(counts, share):
    head = head_items(np.array(counts, np.int64), share)
    order = sorted(range(len(counts)), key=lambda column: (-counts[column], column))
    assert head.dtype == bool
    assert set(np.flatnonzero(head)) == set(order[: math.ceil(share * len(counts))])


def test_a_fifth_is_the_head():
    assert head_items(np.array([5, 1, 5, 9, 1])).tolist() == [False, False, False, True, False]
    assert head_items(np.array([5, 1, 5, 9, 1, 1])).tolist() == [True, False, False, True, False, False]
