"""Head and tail, and propensities."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relae.evaluation import head_items, propensities
from relae.experiments.paper import popularity_order

from .suite import loop_propensities, paper_head, stable_head

COUNTS = st.lists(st.integers(0, 5), max_size=30)


@given(COUNTS, st.sampled_from([0.1, 0.2, 0.25, 0.5, 0.99]))
def test_the_head_is_the_share_with_the_most_users_and_ties_go_to_the_lower_column(counts, share):
    head = head_items(np.array(counts, np.int64), share)
    assert head.dtype == bool
    assert set(np.flatnonzero(head)) == stable_head(counts, share)


@given(COUNTS, st.sampled_from([0.2, 0.5]))
def test_another_order_of_ties_gives_another_head_of_the_same_size(counts, share):
    counts = np.array(counts, np.int64)
    head = head_items(counts, share, popularity_order(counts))
    assert set(np.flatnonzero(head)) == paper_head(counts, share)
    assert head.sum() == head_items(counts, share).sum()
    assert sorted(counts[head]) == sorted(counts[head_items(counts, share)])


def test_a_fifth_is_the_head():
    assert head_items(np.array([5, 1, 5, 9, 1])).tolist() == [False, False, False, True, False]
    assert head_items(np.array([5, 1, 5, 9, 1, 1])).tolist() == [True, False, False, True, False, False]


def test_an_item_that_nobody_has_is_never_the_head():
    assert head_items(np.array([0, 3, 0, 0, 0]), 0.6).tolist() == [False, True, False, False, False]


def test_items_that_nobody_has_do_not_make_the_head_larger():
    counts = np.array([*range(10, 0, -1), *[0] * 40])  # a catalog of 50, of which 10 have users
    assert np.flatnonzero(head_items(counts)).tolist() == [0, 1]


@pytest.mark.parametrize("share", [0, 1, -0.2, 1.5, math.nan])
def test_a_share_of_nothing_or_of_all_is_refused(share):
    with pytest.raises(ValueError, match="share of head items must lie between 0 and 1"):
        head_items(np.array([1, 2, 3]), share)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.floats(0, 3), st.floats(0.001, 1))
def test_propensities(counts, exponent, floor):
    found = propensities(np.array(counts, np.int64), exponent, floor)
    assert found == pytest.approx(loop_propensities(counts, exponent, floor))
    assert ((found >= floor) & (found <= 1)).all()


def test_propensities_of_nothing():
    assert propensities(np.zeros(3, np.int64)).tolist() == [0.01] * 3
    assert propensities(np.empty(0, np.int64)).tolist() == []
