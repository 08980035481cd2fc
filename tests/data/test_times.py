"""Times of interactions: what they may be, and that they stay with their cells."""

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from relae.data import Interactions
from relae.errors import DataError

EVENTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(-(2**40), 2**40)), min_size=1)
NOON = 1_577_880_000_000_000  # 2020-01-01 12:00 UTC in microseconds


def by_pair(data):
    coo = data.matrix.tocoo()
    users, items = data.users.take(coo.row), data.items.take(coo.col)
    return dict(zip(zip(users, items, strict=True), data.times.tolist(), strict=True))


def times_of(column, **options):
    frame = {"user": list(range(len(column))), "item": [0] * len(column), "ts": column}
    table = pl.DataFrame(frame) if isinstance(column, (list, pl.Series)) else pd.DataFrame(frame)
    found = Interactions.from_frame(table, timestamp="ts", **options).times
    assert found.dtype == np.int64
    return found.tolist()


@given(EVENTS, st.booleans())
def test_a_pair_has_its_last_time(events, weighted):
    users, items, times = zip(*events, strict=True)
    table = pl.DataFrame({"user": users, "item": items, "ts": times, "weight": [1.5] * len(users)})
    data = Interactions.from_frame(
        table, timestamp="ts", weight="weight" if weighted else None, weighting="linear" if weighted else None
    )
    expected = {}
    for user, item, time in events:
        expected[user, item] = max(time, expected.get((user, item), time))
    assert by_pair(data) == expected


@given(EVENTS, st.randoms())
def test_a_choice_of_users_keeps_the_times(events, random):
    users, items, times = zip(*events, strict=True)
    data = Interactions.from_frame(pl.DataFrame({"user": users, "item": items, "ts": times}), timestamp="ts")
    rows = random.sample(range(data.n_users), random.randint(0, data.n_users))
    chosen = data.select_users(rows)
    kept = set(chosen.users.values.tolist())
    assert by_pair(chosen) == {pair: time for pair, time in by_pair(data).items() if pair[0] in kept}


def test_filters_keep_the_times_of_what_stays():
    table = pl.DataFrame({"u": [1, 1, 2, 2, 3], "i": [7, 8, 7, 8, 9], "t": [5, 4, 3, 2, 1], "r": [5, 5, 5, 1, 5]})
    options = {"user": "u", "item": "i", "timestamp": "t"}
    assert by_pair(Interactions.from_frame(table, min_item_count=2, **options)) == {
        (1, 7): 5,
        (1, 8): 4,
        (2, 7): 3,
        (2, 8): 2,
    }
    liked = Interactions.from_frame(table, rating="r", min_rating=4, min_user_count=2, **options)
    assert by_pair(liked) == {(1, 7): 5, (1, 8): 4}


def test_no_times_without_a_column():
    data = Interactions.from_frame(pl.DataFrame({"user": [1], "item": [1]}))
    assert data.times is None
    assert data.select_users([0]).times is None


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([3, 1], [3, 1]),
        (pl.Series([3, 1], dtype=pl.UInt8), [3, 1]),
        ([978300760.0, 1.0], [978300760, 1]),
        ([1.5, 2.0], [1_500_000, 2_000_000]),
        ([Decimal("3"), Decimal("1")], [3, 1]),
        (["3", " 1"], [3, 1]),
        (["1.5", "2"], [1_500_000, 2_000_000]),
        ([date(2020, 1, 1)], [NOON - 43_200_000_000]),
        ([datetime(2020, 1, 1, 12)], [NOON]),
        ([datetime(2020, 1, 1, 13, tzinfo=timezone(timedelta(hours=1)))], [NOON]),
        (pl.Series([datetime(2020, 1, 1, 12)], dtype=pl.Datetime("ms")), [NOON]),
        (["2020-01-01"], [NOON - 43_200_000_000]),
        (
            ["2020-01-01T12:00", "2020-01-01 12:00:00", "2020-01-01T12:00:00.5", "2020-01-01T12:00:00Z"],
            [NOON, NOON, NOON + 500_000, NOON],
        ),
        (["2020-01-01T13:00:00+01:00", "2020-01-01T11:00:00.25-0100"], [NOON, NOON + 250_000]),
    ],
)
def test_what_may_be_a_time(column, expected):
    assert times_of(column) == expected


def test_times_of_pandas_and_pyarrow():
    noon = pd.Timestamp("2020-01-01 12:00")
    assert times_of(pd.Series([noon])) == [NOON]
    assert times_of(pd.Series([noon.tz_localize("UTC").tz_convert("Asia/Tokyo")])) == [NOON]
    assert times_of(pd.Series([7.0, 8.0])) == [7, 8]
    table = pa.table({"user": [1], "item": [1], "ts": pa.array([noon], pa.timestamp("ns"))})
    assert Interactions.from_frame(table, timestamp="ts").times.tolist() == [NOON]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1, None], "column 'ts' has no value in row 2: drop the row, fill it, or leave timestamp away"),
        ([1.0, float("nan")], "has the value nan in row 2"),
        (["1", ""], "has the value '' in row 2"),
        (["1", "soon"], "has the value 'soon' in row 2: that is neither a number nor a time such as 2020-01-31"),
        (["2020-01-31", "2020-02-30"], "has the value '2020-02-30' in row 2"),
        ([float("inf"), 1.0], "has the value inf in row 1: a time must fit into 64 bits"),
        (pl.Series([2**64 - 1, 1], dtype=pl.UInt64), "must fit into 64 bits"),
        ([True, False], "has the type Boolean, which is not a time"),
        (pd.Series([pd.NaT, pd.Timestamp("2020")]), "has no value in row 1"),
    ],
)
def test_what_may_not(column, message):
    with pytest.raises(DataError, match=message):
        times_of(column)


def test_rows_below_the_rating_need_a_time_too():
    """Without it nobody could tell from when on the item is seen; a row without a user tells nothing anyway."""
    table = pl.DataFrame({"user": [1, 2, None], "item": [1, 1, 1], "ts": [None, 3, None], "stars": [1, 5, 1]})
    options = {"timestamp": "ts", "rating": "stars", "min_rating": 4}
    with pytest.raises(DataError, match="column 'ts' has no value in row 1: drop the row, fill it, or leave"):
        Interactions.from_frame(table, **options)
    assert by_pair(Interactions.from_frame(table[1:], **options)) == {(2, 1): 3}


def test_times_in_a_file(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("user,item,when\n1,5,2020-01-01T12:00:00\n1,5,2019-01-01T12:00:00\n2,5,2020-01-01\n")
    data = Interactions.read(path, timestamp="when")
    assert data.times.tolist() == [NOON, NOON - 43_200_000_000]
    assert repr(data) == "Interactions(2 users × 1 items, 2 interactions, with times)"
    with pytest.raises(DataError, match=r"has no column 'wen', .* set timestamp='when'"):
        Interactions.read(path, timestamp="wen")


def test_times_with_a_matrix():
    dense = np.array([[0, 2], [1, 1]])
    assert Interactions(dense, times=[5, 6, 7]).times.tolist() == [5, 6, 7]
    assert Interactions.from_matrix(sp.csr_array(dense), times=np.array([5, 6, 7], np.int32)).times.dtype == np.int64
    with pytest.raises(DataError, match="2 times for 3 interactions"):
        Interactions(dense, times=[5, 6])
    with pytest.raises(DataError, match="one integer for each of the interactions, got float64"):
        Interactions(dense, times=[5.0, 6.0, 7.0])


def test_a_matrix_in_disorder_cannot_have_times():
    unsorted = sp.csr_array((np.ones(2), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    zeros = sp.csr_array((np.array([1.0, 0.0]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2))
    for matrix in (unsorted, zeros, sp.coo_array(np.eye(2))):
        with pytest.raises(DataError, match=r"make it a CSR, then call its sum_duplicates\(\) and eliminate_zeros"):
            Interactions(matrix, times=[1, 2])
