"""Weights of interactions: from amounts and from ages."""

import math
from datetime import timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relae import EASE
from relae.data import Interactions
from relae.errors import DataError

from .tables import as_dict, check_form, same, summed, tables

PLAIN = {
    "linear": lambda amount: amount,
    "sqrt": math.sqrt,
    "log": lambda amount: math.log1p(amount) / math.log(2),
    "binary": lambda amount: 1.0,
}
PLAYS = pl.DataFrame(
    {
        "user": ["ann", "ann", "ann", "bob", "bob", "cy", "cy"],
        "item": [1, 1, 2, 1, 3, 2, 3],
        "plays": [3, 4, 1, 15, 1, 2, 1],
        "when": [100, 300, 200, 400, 100, 400, 300],
    }
)


def plays(**options):
    return Interactions.from_frame(PLAYS, weight="plays", timestamp="when", **options)


@given(tables().filter(lambda table: len(summed(table)) > 0), st.sampled_from(list(PLAIN)))
def test_the_amounts_of_a_pair_are_added_before_they_are_weighted(table, weighting):
    found = Interactions.from_frame(table, weight="weight").weighted(weighting)
    check_form(found)
    tiny = float(np.finfo(np.float32).tiny)
    expected = {pair: max(PLAIN[weighting](amount), tiny) for pair, amount in summed(table).items()}
    assert as_dict(found) == pytest.approx(expected, rel=1e-6, abs=0)


def test_the_amount_one_has_the_weight_one():
    for weighting in PLAIN:
        assert Interactions(np.eye(3)).weighted(weighting).matrix.data.tolist() == [1, 1, 1]


def test_a_half_life_halves():
    assert as_dict(plays().weighted("binary", half_life=100)) == {
        ("ann", 1): 0.5,
        ("ann", 2): 0.25,
        ("bob", 1): 1.0,
        ("bob", 3): 0.125,
        ("cy", 2): 1.0,
        ("cy", 3): 0.5,
    }
    assert as_dict(plays().weighted("log", half_life=100))["ann", 1] == 1.5
    assert as_dict(plays().weighted(half_life=50))["ann", 1] == 1.75


def test_dates_have_a_half_life_in_microseconds():
    table = pl.DataFrame({"user": [1, 1], "item": [1, 2], "day": ["2020-01-01", "2020-01-31"]})
    dated = Interactions.from_frame(table, timestamp="day")
    month = timedelta(days=30) / timedelta(microseconds=1)
    assert dated.weighted(half_life=month).matrix.data.tolist() == [0.5, 1]


def test_what_is_very_old_stays_seen():
    old = plays().weighted(half_life=1e-3)
    check_form(old)
    assert old.n_interactions == plays().n_interactions
    assert old.matrix.data.min() == np.finfo(np.float32).tiny


def test_everything_else_stays():
    before = plays(titles={1: "One"})
    after = before.weighted("sqrt", half_life=10.0)
    assert after.times is before.times
    assert after.titles is before.titles
    assert same(before, plays(titles={1: "One"}))
    assert same(before.weighted(), before)


@pytest.mark.parametrize("half_life", [0, -1, float("nan"), float("inf"), timedelta(days=1), "30"])
def test_a_half_life_is_a_positive_number(half_life):
    with pytest.raises(DataError, match="half_life must be a positive number, in the unit of the times, got"):
        plays().weighted(half_life=half_life)


def test_what_cannot_be_weighted():
    with pytest.raises(DataError, match="weighting must be one of 'linear', 'sqrt', 'log', 'binary', got 'cube'"):
        plays().weighted("cube")
    with pytest.raises(DataError, match="half_life=3 needs times: read the data with timestamp="):
        Interactions(np.eye(2)).weighted(half_life=3)


def test_no_interactions_have_no_weights():
    empty = plays().select_users([])
    assert empty.weighted("log", half_life=10).n_interactions == 0


def test_weights_count_in_histories_as_in_a_fit():
    data = plays().weighted("log", half_life=500)
    model = EASE(l2=2.0, dtype="float64").fit(data)
    x = data.matrix.toarray().astype(np.float64)
    inverse = np.linalg.inv(x.T @ x + 2.0 * np.eye(3))
    weights = np.eye(3) - inverse / np.diag(inverse)
    np.testing.assert_allclose(model.score(data), x @ weights, rtol=1e-6)
    for user, scores in zip(data.users.values, model.score(data), strict=True):
        row = data.matrix[[data.users.positions([user])[0]]]
        history = dict(zip(data.items.take(row.indices), row.data.tolist(), strict=True))
        np.testing.assert_allclose(np.ravel(model.score(history)), scores, rtol=1e-6)
    moved = Interactions(data.matrix[:, [2, 0, 1]], data.users, [3, 1, 2])
    np.testing.assert_allclose(model.score(moved), x @ weights, rtol=1e-6)
