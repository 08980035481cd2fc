"""What users have had beside their histories, and who was dropped: by loops over the rows of a table."""

from collections import Counter

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from relae import Interactions
from relae.data import Ids
from relae.errors import DataError

from ..real_data import real
from .tables import as_dict, core, dropped_users, same, seen_pairs, stream, tables

FILMS = pl.DataFrame(
    {
        "user": [1, 1, 1, 1, 2, 2, 2, 3, 4, 4],
        "item": [10, 11, 12, 13, 10, 11, 14, 12, 10, 10],
        "stars": [5, 2, 4, 1, 4, 5, 3, 2, 2, 5],
    }
)


def read_films(**options):
    return Interactions.from_frame(FILMS, rating="stars", min_rating=4, **options)


# --- reading -----------------------------------------------------------------------------------------------------


def test_what_is_rated_low_is_seen():
    data = read_films()
    assert set(as_dict(data)) == {(1, 10), (1, 12), (2, 10), (2, 11), (4, 10)}
    assert seen_pairs(data) == {(1, 11)}
    assert seen_pairs(data, FILMS["item"]) == {(1, 11), (1, 13), (2, 14)}  # items without a column, too
    assert "1 pairs seen beside them" in repr(data)


def test_a_pair_with_a_low_and_a_high_rating_is_liked():
    assert (4, 10) in as_dict(read_films())
    assert (4, 10) not in seen_pairs(read_films(), FILMS["item"])


def filtered(table, lowest, weighted, users, items, k):
    """The cells, what is seen beside them, and who was dropped by what; each filter by a loop."""
    rows = [row for row in table.rows(named=True) if row["rating"] >= lowest]
    low = {(row["user"], row["item"]) for row in table.rows(named=True) if row["rating"] < lowest}
    sums = Counter()
    for row in rows:
        sums[row["user"], row["item"]] += row["weight"] if weighted else 1
    pairs, fates = set(sums), {}
    stages = [
        (f"min_rating={lowest}", lambda pairs: pairs),
        ("weights of zero", lambda pairs: {pair for pair in pairs if np.float32(sums[pair]) > 0}),
        (f"min_item_count={items}", lambda pairs: {p for p in pairs if Counter(i for _, i in pairs)[p[1]] >= items}),
        (f"min_user_count={users}", lambda pairs: {p for p in pairs if Counter(u for u, _ in pairs)[p[0]] >= users}),
        (f"k_core={k}", lambda pairs: core(pairs, k) if k > 1 else pairs),
    ]
    left, nonzero = set(table["user"]), None
    for name, stage in stages:
        pairs = stage(pairs)
        nonzero = pairs if name == "weights of zero" else nonzero
        now = {user for user, _ in pairs}
        fates |= dict.fromkeys(left - now, name)
        left = now
    seen = {pair for pair in (low | nonzero) - pairs if pair[0] in left}
    return pairs, seen, fates


@pytest.mark.filterwarnings("ignore:min_item_count=.* is one pass")
@given(tables(), st.integers(1, 5), st.booleans(), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
def test_filters_tell_what_was_seen_and_who_was_dropped(table, lowest, weighted, users, items, k):
    pairs, seen, fates = filtered(table, lowest, weighted, users, items, k)
    options = {"rating": "rating", "min_rating": lowest}
    options |= {"weight": "weight", "weighting": "linear"} if weighted else {}
    options |= {"min_user_count": users, "min_item_count": items, "k_core": k}
    if not pairs:
        with pytest.raises(DataError, match="nothing is left"):
            Interactions.from_frame(table, **options)
        return
    data = Interactions.from_frame(table, **options)
    assert set(as_dict(data)) == pairs
    assert seen_pairs(data, table["item"]) == seen
    assert seen_pairs(data) == {pair for pair in seen if pair[1] in data.items.values}
    assert dropped_users(data) == fates


# --- times -------------------------------------------------------------------------------------------------------


def seen_times(data, items=None):
    """When each pair was first seen, by raw ids; with `items` also items that are no columns."""
    if data._seen is None:
        return {}
    axis = data.items if items is None else Ids(sorted(set(items)))
    found = data._seen.on(axis)
    if found is None:
        return {}
    assert found.times.dtype == np.int64
    cells = found.pairs.tocoo()
    pairs = zip(data.users.take(cells.row), axis.take(cells.col), strict=True)
    return dict(zip(pairs, found.times.tolist(), strict=True))


@given(tables(), st.data(), st.integers(1, 5))
def test_a_pair_is_seen_from_its_first_low_rating_on(table, draw, lowest):
    times = draw.draw(st.lists(st.integers(-9, 9), min_size=table.height, max_size=table.height))
    table = table.with_columns(at=pl.Series(times))
    rows = table.rows(named=True)
    liked = {(row["user"], row["item"]) for row in rows if row["rating"] >= lowest}
    if not liked:
        return
    first = {}
    for row in rows:
        pair = row["user"], row["item"]
        if pair not in liked and pair[0] in {user for user, _ in liked}:
            first[pair] = min(row["at"], first.get(pair, row["at"]))
    data = Interactions.from_frame(table, rating="rating", min_rating=lowest, timestamp="at")
    assert seen_times(data, table["item"]) == first
    known = {pair: at for pair, at in first.items() if pair[1] in data.items.values}
    assert seen_times(data) == known
    assert (data.seen_times is None) == (not known)
    moments = np.array(draw.draw(st.lists(st.integers(-9, 9), min_size=data.n_users, max_size=data.n_users)))
    earlier = data.with_seen_before(moments)
    by_user = dict(zip(data.users.values.tolist(), moments.tolist(), strict=True))
    assert seen_times(earlier, table["item"]) == {pair: at for pair, at in first.items() if at < by_user[pair[0]]}
    assert seen_pairs(earlier) == {pair for pair, at in known.items() if at < by_user[pair[0]]}
    assert same(earlier, data)


def test_times_of_what_is_seen_go_along():
    at = [3, 7, 1, 9, 2, 4, 8, 5, 6, 0]
    data = Interactions.from_frame(FILMS.with_columns(at=pl.Series(at)), rating="stars", min_rating=4, timestamp="at")
    everything = {(1, 11): 7, (1, 13): 9, (2, 14): 8}
    assert seen_times(data, FILMS["item"]) == everything
    assert data.seen_times.tolist() == [7]
    features = pl.DataFrame({"item": [10, 11, 15], "genre": ["a", "b", "b"]})
    others = [data.weighted("log", half_life=2.0), data.with_features(features, min_count=1)]
    for other in [*others, data.replace(matrix=data.matrix), data.select_users([2, 1, 0])]:
        assert seen_times(other, FILMS["item"]) == everything
    assert seen_times(data.select_users([1]), FILMS["item"]) == {(2, 14): 8}
    assert data.without_seen().seen_times is None
    assert read_films().seen_times is None


def test_a_matrix_comes_with_times_of_what_is_seen():
    matrix = sp.csr_array(np.array([[1, 0, 0], [0, 2, 1]], np.float32))
    seen = np.array([[1, 0, 3], [1, 0, 1]])
    data = Interactions.from_matrix(matrix, seen=seen, seen_times=[5, 6, 7, 8])
    assert seen_times(data) == {(0, 2): 6, (1, 0): 7}  # the others are liked
    with pytest.raises(DataError, match="3 seen_times for 4 pairs in seen: give one per cell that is not zero"):
        Interactions(matrix, seen=seen, seen_times=[1, 2, 3])
    with pytest.raises(DataError, match="seen_times are the times of seen, which is not given"):
        Interactions(matrix, seen_times=[1])


def test_what_has_no_time_is_not_seen_before_anything():
    data = Interactions(np.eye(2), seen=np.ones((2, 2)))
    with pytest.warns(UserWarning, match=r"what users have seen has no times \(seen_times\), so it counts as not seen"):
        assert data.with_seen_before(10**12).seen is None


def test_a_weight_of_zero_says_that_nothing_happened():
    table = pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 2], "plays": [3, 0, 1]})
    data = Interactions.from_frame(table, weight="plays", weighting="linear")
    assert data.seen is None
    assert seen_pairs(data, [1, 2]) == set()


def test_of_a_row_rated_low_the_weight_is_not_looked_at():
    table = pl.DataFrame(
        {"user": [1, 1, None, 2], "item": [1, 2, 2, None], "stars": [5, 1, 1, 1], "plays": [1.0, -7.0, 1.0, 1.0]}
    )
    data = Interactions.from_frame(table, rating="stars", min_rating=4, weight="plays", weighting="linear")
    assert seen_pairs(data, [1, 2]) == {(1, 2)}
    assert data.dropped is None


# --- users who are not there -------------------------------------------------------------------------------------


def test_a_user_whom_a_filter_dropped_is_told_from_a_stranger():
    data = read_films(min_user_count=2)
    with pytest.raises(DataError, match=r"^user 3 was dropped by min_rating=4 and is not among the 2: relax that"):
        data.history(3)
    with pytest.raises(DataError, match=r"^user 4 was dropped by min_user_count=2 "):
        data.history(4)
    with pytest.raises(DataError, match=r"^there is no user 99 among the 2$"):
        data.history(99)
    assert data.dropped.counts() == {"min_rating=4": 1, "min_user_count=2": 1}


# --- from one data set to another --------------------------------------------------------------------------------


def test_a_choice_of_users_has_what_they_have_seen():
    data = read_films()
    some = data.select_users([2, 0])
    assert seen_pairs(some, FILMS["item"]) == {(1, 11), (1, 13)}
    assert seen_pairs(data.select_users([1]), FILMS["item"]) == {(2, 14)}
    assert dropped_users(some) == {3: "min_rating=4"}


def test_other_weights_leave_what_is_seen():
    assert seen_pairs(read_films().weighted("binary"), FILMS["item"]) == seen_pairs(read_films(), FILMS["item"])


def test_features_leave_what_is_seen_and_bring_back_no_dropped_item():
    features = pl.DataFrame({"item": [10, 11, 13, 14, 15], "genre": ["a", "b", "a", "b", "b"]})
    wider = read_films().with_features(features)
    assert seen_pairs(wider, FILMS["item"]) == seen_pairs(read_films(), FILMS["item"])
    assert not set(wider.items.values) & set(read_films().dropped_items.values)
    few = Interactions.from_frame(FILMS, min_item_count=3).with_features(features, min_count=1)
    assert set(as_dict(few)) == {(1, 10), (2, 10), (4, 10)}
    assert few.items.values.tolist() == [10, 15]
    assert seen_pairs(few, FILMS["item"]) == {(1, 11), (1, 12), (1, 13), (2, 11), (2, 14)}


def test_without_seen_is_as_if_the_rows_had_not_been_there():
    plain = read_films().without_seen()
    assert same(plain, Interactions.from_frame(FILMS.filter(pl.col("stars") >= 4)))
    assert plain.seen is None
    assert seen_pairs(plain, FILMS["item"]) == set()
    assert dropped_users(plain) == {3: "min_rating=4"}


def test_a_matrix_comes_with_what_is_seen():
    matrix = sp.csr_array(np.array([[1, 0, 0], [0, 2, 1]], np.float32))
    data = Interactions(matrix, seen=np.array([[1, 0, 3], [1, 0, 1]]))
    assert seen_pairs(data) == {(0, 2), (1, 0)}
    assert Interactions.from_matrix(matrix).seen is None
    with pytest.raises(DataError, match="seen is 1 × 3 and the matrix 2 × 3"):
        Interactions(matrix, seen=np.ones((1, 3)))


# --- real data ---------------------------------------------------------------------------------------------------


def test_ml_1m_has_all_pairs_of_its_users():
    """Whatever a filter takes from a history has been seen: no pair of a user who is left is lost."""
    path = real("ml-1m") / "interactions.csv.gz"
    options = {"rating": "rating", "min_rating": 4, "min_user_count": 5}
    data = Interactions.read(path, **options)
    whole = Interactions.read(path)
    seen = data.seen_on(whole.items)
    counted = np.diff(whole.matrix.indptr)[whole.users.positions(data.users.values)]
    assert np.array_equal(np.diff(data.matrix.indptr) + np.diff(seen.indptr), counted)
    assert data.n_users + len(data.dropped.users) == whole.n_users == 6_040
    scanned = stream(path, **options)
    assert (scanned.seen != data.seen).nnz == 0
    assert dropped_users(scanned) == dropped_users(data)
