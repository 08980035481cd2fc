"""Weights of interactions: from amounts and from ages."""

import math
from datetime import timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relae import EASE
from relae.data import Interactions, fading_weights
from relae.datasets import online_retail
from relae.errors import DataError, WeightingWarning
from relae.solvers import Auto

from ..real_data import real
from .tables import as_dict, check_form, same, stream, summed, tables

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
BOTH = {"half_life": 100, "fading": 2}


def plays(**options):
    return Interactions.from_frame(PLAYS, weight="plays", weighting="linear", timestamp="when", **options)


@given(tables().filter(lambda table: len(summed(table)) > 0), st.sampled_from(list(PLAIN)))
def test_the_amounts_of_a_pair_are_added_before_they_are_weighted(table, weighting):
    found = Interactions.from_frame(table, weight="weight", weighting="linear").weighted(weighting)
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


@pytest.mark.parametrize("unit", [None, 1, 1_000, 1_000_000])
def test_a_half_life_is_in_days_whatever_the_unit_of_the_times(unit):
    start, end = 1_577_836_800, 1_577_836_800 + 30 * 86_400
    times = ["2020-01-01", "2020-01-31"] if unit is None else [start * unit, end * unit]
    data = Interactions.from_frame(pl.DataFrame({"user": [1, 1], "item": [1, 2], "at": times}), timestamp="at")
    assert data.ages().tolist() == [30, 0]
    assert data.weighted(half_life=30).matrix.data.tolist() == [0.5, 1]
    assert data.ages(at=int(data.times.max()) + (86_400_000_000 if unit is None else 86_400 * unit)).tolist() == [31, 1]


def test_places_are_no_clock():
    assert Interactions(np.eye(2), times=[3, 10]).ages().tolist() == [7, 0]
    with pytest.raises(DataError, match="these interactions have no times: name the column, as in Interactions"):
        Interactions(np.eye(2)).ages()


def test_what_is_very_old_stays_seen():
    with pytest.warns(UserWarning, match="half_life"):
        old = plays().weighted("binary", half_life=1e-3)
    check_form(old)
    assert old.n_interactions == plays().n_interactions
    assert sorted(old.matrix.data.tolist()) == pytest.approx([1e-6] * 4 + [1, 1])
    amounts = plays().weighted(fading=1000).matrix.data / plays().matrix.data
    assert np.unique(amounts) == pytest.approx([1e-6, 1])


def test_a_user_with_nothing_new_has_the_lists_of_equal_weights():
    rng = np.random.default_rng(0)
    x = np.random.default_rng(1).random((40, 30)) < 0.2
    times = np.where(rng.random(x.shape) < 0.5, 1_000_000, 999_000) - np.where(np.arange(40) < 5, 900_000, 0)[:, None]
    plain = Interactions(x.astype(float), times=times[x])
    model = EASE(l2=1.0).fit(plain)
    aged = plain.weighted(half_life=5_000)
    assert aged.matrix[[2]].data.tolist() == pytest.approx([1e-6] * x[2].sum())
    expected, found = model.recommend(plain, 10)[0], model.recommend(aged, 10)[0]
    assert np.array_equal(found[:5], expected[:5])
    assert not np.array_equal(found[5:], expected[5:])


def test_a_short_half_life_is_reported():
    table = pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 2], "day": ["2020-01-01", "2020-01-11", "2020-01-06"]})
    dated = Interactions.from_frame(table, timestamp="day")
    warning = (
        r"half_life=0\.1 days are short for times that span 10 days: 67% of the interactions are so old that they "
        r"count the least there is, 1e-06"
    )
    with pytest.warns(UserWarning, match=warning) as caught:
        dated.weighted(half_life=0.1)
    assert caught[0].filename == __file__
    assert dated.weighted(half_life=1 / 3).matrix.data.tolist() == pytest.approx([1e-6, 1, 2**-15])  # one of three


# --- by order ----------------------------------------------------------------------------------------------------


def faded(users, times, fading):
    """The definition, pair by pair."""
    pairs = list(zip(users, times, strict=True))
    return [(1 + sum(u == user and t > time for u, t in pairs)) ** -fading for user, time in pairs]


@given(
    st.lists(st.tuples(st.integers(-2, 3), st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3)), max_size=20),
    st.sampled_from([0, 0.5, 1, 2.5]),
)
def test_the_latest_of_a_user_count_most(pairs, fading):
    users, times = [user for user, _ in pairs], [time for _, time in pairs]
    assert fading_weights(users, times, fading).tolist() == pytest.approx(faded(users, times, fading))


@given(tables().filter(lambda table: len(summed(table)) > 0), st.sampled_from([0.3, 1.0, 2.0]))
def test_items_fade_within_each_user(table, fading):
    whole = Interactions.from_frame(table, weight="weight", weighting="linear")
    times = np.random.default_rng(0).integers(0, 4, whole.n_interactions)
    data = Interactions(whole.matrix, whole.users, whole.items, times=times)
    expected = as_dict(data.weighted("log"))
    users = [user for user, _ in expected]
    for pair, rest in zip(expected, faded(users, times, fading), strict=True):
        expected[pair] *= rest
    found = data.weighted("log", fading=fading)
    check_form(found)
    assert as_dict(found) == pytest.approx(expected, rel=1e-6)


def test_what_happened_at_once_fades_alike():
    times = [[5, 9, 9, 1, 5], [3, 3, 3, 3, 3]]
    data = Interactions(np.ones((2, 5)), times=np.ravel(times)).weighted(fading=1)
    assert data.matrix.toarray().tolist() == [[np.float32(1 / 3), 1, 1, np.float32(0.2), np.float32(1 / 3)], [1] * 5]


def test_age_and_order_multiply():
    both, age, rank = (plays().weighted("sqrt", **o).matrix.data for o in (BOTH, BOTH | {"fading": 0}, {"fading": 2}))
    np.testing.assert_allclose(both, age * rank / plays().weighted("sqrt").matrix.data, rtol=1e-6)
    assert not np.allclose(both, age)
    assert np.array_equal(age, plays().weighted("sqrt", half_life=100).matrix.data)


@pytest.mark.parametrize("fading", [-1, float("nan"), float("inf"), timedelta(days=1), "0.5"])
def test_fading_is_a_number_of_at_least_zero(fading):
    for weigh in (lambda: plays().weighted(fading=fading), lambda: fading_weights([0], [0], fading)):
        with pytest.raises(DataError, match="fading must be a number of at least 0, a power of the place by time, got"):
            weigh()


def test_fading_needs_times_unless_it_is_none():
    plain = Interactions(np.eye(2))
    with pytest.raises(DataError, match=r"fading=0.5 needs times: read the data with timestamp="):
        plain.weighted(fading=0.5)
    assert same(plain.weighted(fading=0), plain)


def test_everything_else_stays():
    before = plays(titles={1: "One"})
    after = before.weighted("sqrt", half_life=10.0)
    assert after.times is before.times
    assert after.titles is before.titles
    assert same(before, plays(titles={1: "One"}))
    assert same(before.weighted(), before)


@pytest.mark.parametrize("half_life", [0, -1, float("nan"), float("inf"), timedelta(days=1), "30"])
def test_a_half_life_is_a_positive_number(half_life):
    with pytest.raises(DataError, match="half_life must be a positive number of days, got"):
        plays().weighted(half_life=half_life)


def test_what_cannot_be_weighted():
    with pytest.raises(DataError, match="weighting must be one of 'linear', 'sqrt', 'log', 'binary', got 'cube'"):
        plays().weighted("cube")
    with pytest.raises(DataError, match="half_life=3 needs times: read the data with timestamp="):
        Interactions(np.eye(2)).weighted(half_life=3)


def test_no_interactions_have_no_weights():
    empty = plays().select_users([])
    assert empty.weighted("log", half_life=10, fading=1).n_interactions == 0


def test_weights_count_in_histories_as_in_a_fit():
    data = plays().weighted("log", half_life=500)
    model = EASE(l2=2.0).fit(data, solver=Auto(dtype="float64"))
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


# --- a weighting that the data choose ----------------------------------------------------------------------------


def taste(amount, users=400, items=30, seed=0):
    """Users of two tastes who also have some of anything; `amount(rng, is_taste)` draws what they have of each."""
    rng = np.random.default_rng(seed)
    rows = []
    for user in range(users):
        liked = rng.random(items) < np.where(np.arange(items) % 2 == user % 2, 0.5, 0.25)
        owned = np.flatnonzero(liked).tolist()
        rows += [(user, item, int(amount(rng, item % 2 == user % 2))) for item in owned]
    return pl.DataFrame(rows, schema=["user", "item", "plays"], orient="row")


def chosen(frame, **options):
    with pytest.warns(WeightingWarning, match="weight='plays': an amount a counts") as told:
        data = Interactions.from_frame(frame, weight="plays", **options)
    assert len(told) == 1
    return data, str(told[0].message)


def test_amounts_that_tell_nothing_do_not_count():
    """Large amounts at random, as of a wholesaler: they drown the tastes."""
    data, message = chosen(taste(lambda rng, _: rng.zipf(1.3) % 10_000 + 1))
    assert data.weighting == "binary"
    assert (data.matrix.data == 1).all()
    assert "an amount a counts 1 for every amount (ndcg@20 of 80 users in a quick trial: binary 0." in message
    assert message.endswith("Set weighting='binary' to keep that, or another one of linear, sqrt, log, binary")


def test_amounts_that_tell_tastes_count():
    data, message = chosen(taste(lambda rng, is_taste: rng.integers(2, 40) if is_taste else 1))
    figures = dict(part.split() for part in message.split("trial: ")[1].split(").")[0].split(", "))
    assert data.weighting != "binary"
    assert float(figures[data.weighting]) > float(figures["binary"])
    frame = taste(lambda rng, is_taste: rng.integers(2, 40) if is_taste else 1)
    amounts = Interactions.from_frame(frame, weight="plays", weighting="linear")
    assert np.array_equal(data.matrix.data, amounts.weighted(data.weighting).matrix.data)


def test_few_users_are_no_trial():
    data, message = chosen(taste(lambda rng, _: rng.integers(1, 9), users=40))
    assert data.weighting == "log"
    assert "counts log₂(1 + a) (there are too few users to try)" in message


def test_a_weighting_that_is_given_is_not_questioned():
    frame = taste(lambda rng, _: rng.integers(1, 9))
    for weighting in ("linear", "sqrt", "log", "binary"):
        data = Interactions.from_frame(frame, weight="plays", weighting=weighting)
        assert data.weighting == weighting
        assert data.select_users([3, 1]).weighting == weighting
    ones = Interactions.from_frame(frame.with_columns(plays=1), weight="plays")  # nothing to choose, nothing to say
    assert ones.weighting == "linear"
    with pytest.raises(DataError, match="weighting='log' needs the column of the amounts: set weight=…"):
        Interactions.from_frame(frame, weighting="log")
    with pytest.raises(DataError, match="weighting must be one of 'linear', 'sqrt', 'log', 'binary', got 'cubic'"):
        Interactions.from_frame(frame, weight="plays", weighting="cubic")


def test_weights_are_not_weighted_twice():
    data = Interactions.from_frame(taste(lambda rng, _: rng.integers(1, 9)), weight="plays", weighting="log")
    with pytest.raises(
        DataError, match="those of weighting='log' already: read the data with weighting='sqrt' instead"
    ):
        data.weighted("sqrt")
    assert np.array_equal(data.weighted().matrix.data, data.matrix.data)


def test_reading_in_batches_chooses_the_same(tmp_path):
    frame = taste(lambda rng, is_taste: rng.integers(2, 40) if is_taste else 1)
    frame.write_csv(tmp_path / "log.csv")
    read, _ = chosen(frame)
    with pytest.warns(WeightingWarning, match="weight='plays'"):
        scanned = stream(tmp_path / "log.csv", weight="plays")
    assert (scanned.matrix != read.matrix).nnz == 0


def test_pieces_of_a_shop_and_ratings_of_films():
    """The trial agrees with models fitted to all of the data: see docs/guide.md."""
    with pytest.warns(WeightingWarning, match="weight='quantity'"):
        assert online_retail("quantity").weighting == "binary"
    path = real("ml-1m") / "interactions.csv.gz"
    with pytest.warns(WeightingWarning, match="weight='rating'"):
        assert Interactions.read(path, weight="rating").weighting != "linear"


@pytest.mark.parametrize(("l2", "effect"), [(1.0, "does nothing"), (1e14, "leaves nothing of them")])
def test_a_penalty_of_another_order_than_the_weights_is_told(l2, effect):
    data = Interactions.from_frame(taste(lambda rng, _: 1_000 * rng.integers(1, 9)), weight="plays", weighting="linear")
    with pytest.warns(UserWarning, match=f" beside weights of 1000 to 8000 .* {effect}: for weights of this"):
        EASE(l2).fit(data)
    EASE().fit(data)  # the rule knows the scale
    EASE(1.0).fit(data.matrix.astype(bool).astype(np.float32))  # without weights, anybody's own business
