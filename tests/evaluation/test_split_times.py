"""A split knows when its interactions happened, and a model that is judged by time never sees the future."""

import numpy as np
import pytest

from relae import DataError, Interactions
from relae.data import Lists
from relae.errors import DataWarning
from relae.evaluation import given_split, hold_out_items, hold_out_users, leave_last_out, split_by_time


@pytest.fixture
def log():
    rng = np.random.default_rng(0)
    x = rng.random((60, 20)) < 0.3
    return Interactions(x.astype(float), times=rng.permutation(x.sum()) + 100)


def as_cells(matrix, times, users):
    owners = np.repeat(users, np.diff(matrix.indptr))
    return dict(zip(zip(owners.tolist(), matrix.indices.tolist(), strict=True), times.tolist(), strict=True))


@pytest.mark.parametrize(
    "divide",
    [
        lambda data: hold_out_users(data, 0.2, rng=np.random.default_rng(1)),
        lambda data: hold_out_items(data, 0.2, rng=np.random.default_rng(1)),
        leave_last_out,
        lambda data: leave_last_out(data, 3),
        lambda data: split_by_time(data, share=0.2),
    ],
)
def test_every_part_has_the_times_of_the_log(log, divide):
    split = divide(log)
    whole = as_cells(log.matrix, log.times, log.users.values)
    for matrix, times in ((split.histories, split.history_times), (split.truth, split.truth_times)):
        cells = as_cells(matrix, times, split.users.values)
        assert cells.items() <= whole.items()
        assert len(cells) == matrix.nnz
    everything = split.everything()
    known = as_cells(everything.matrix, everything.times, everything.users.values)
    assert known.items() <= whole.items()
    left_out = sum(split.left_out.get(reason, 0) for reason in ("no history before",))
    assert len(known) == len(whole) or left_out


@pytest.mark.parametrize("divide", [leave_last_out, lambda data: split_by_time(data, share=0.2)])
def test_the_truth_is_later_than_the_history(log, divide):
    split = divide(log)
    assert split.by_time
    for user in range(len(split.users)):
        history = split.history_times[slice(*split.histories.indptr[user : user + 2])]
        truth = split.truth_times[slice(*split.truth.indptr[user : user + 2])]
        assert history.max() < truth.min()
    assert not hold_out_items(log, rng=np.random.default_rng(0)).by_time


def test_a_global_cut_never_looks_ahead(log):
    """Whatever happens after the cut, train and histories are the same."""
    split = split_by_time(log, at=250)
    rng = np.random.default_rng(5)
    later = log.times >= 250
    poisoned = log.matrix.copy()
    poisoned.data[later] = rng.random(later.sum()) * 1e6 + 1
    times = np.where(later, rng.integers(250, 10**6, len(later)), log.times)
    other = split_by_time(log.replace(matrix=poisoned, times=times), at=250)
    assert (split.train.matrix != other.train.matrix).nnz == 0
    assert np.array_equal(split.train.times, other.train.times)
    assert (split.histories != other.histories).nnz == 0
    assert np.array_equal(split.history_times, other.history_times)
    assert split.train.times.max() < 250


def test_given_lists_in_the_order_of_time_have_places_as_times():
    train, truth, histories = (
        Lists(np.array(users), np.array(items), np.array(owners))
        for users, items, owners in (
            ([0, 0, 0, 1, 1], [4, 2, 3, 1, 0], [0, 1]),
            ([0, 1, 1], [1, 3, 2], [0, 1]),
            ([0, 0, 1], [5, 0, 4], [0, 1]),
        )
    )
    split = given_split(train, truth, ordered=True)
    assert split.by_time
    assert split.train.times.tolist() == split.history_times.tolist() == [-1, 0, -2, 0, -1]  # of 2 3 4, then of 0 1
    assert split.truth_times.tolist() == [1, 2, 1]  # of 1, then of 2 3
    split = given_split(train, truth, histories, ordered=True)
    assert split.new_users
    assert split.history_times.tolist() == [0, -1, 0]
    assert given_split(train, truth).train.times is given_split(train, truth).truth_times is None
    data = Interactions(np.eye(3), times=[1, 2, 3])
    with pytest.raises(DataError, match="ordered is for lists"):
        given_split(data, data, ordered=True)


def test_given_interactions_keep_their_times_on_any_columns():
    train = Interactions(np.array([[1, 1, 0], [0, 1, 1]]), ["u", "v"], ["c", "a", "b"], times=[3, 1, 2, 4])
    truth = Interactions(np.array([[1, 1], [1, 0]]), ["v", "u"], ["d", "c"], times=[9, 7, 8])
    split = given_split(train, truth)
    assert split.by_time
    assert split.train.items.values.tolist() == ["c", "a", "b", "d"]
    assert split.train.times.tolist() == [3, 1, 2, 4]
    assert split.history_times.tolist() == [2, 4, 3, 1]  # of v, then of u
    assert split.truth_times.tolist() == [7, 9, 8]  # of v: c and d
    earlier = truth.replace(times=[9, 1, 8])
    assert not given_split(train, earlier).by_time
    doubled = Interactions(np.array([[1, 1]]), ["u"], ["a", "d"], times=[5, 6])
    with pytest.warns(DataWarning, match="1 of 2 interactions to find"):
        split = given_split(train, doubled, overlap="drop")
    assert split.truth_times.tolist() == [6]


def test_the_latest_share_of_each_user_is_hidden():
    x = np.zeros((3, 9))
    x[0], x[1, 4], x[2, :4] = 1, 1, 1
    times = np.random.default_rng(0).permutation(14)
    split = leave_last_out(Interactions(x, times=times), share=0.34)
    assert split.users.values.tolist() == [0, 2]
    assert split.truth.indices.tolist() == [*np.sort(np.argsort(times[:9])[-3:]), np.argmax(times[10:])]
    assert split.by_time
    with pytest.raises(ValueError, match="share"):
        leave_last_out(Interactions(x, times=times), share=1.0)


def test_moments_in_words():
    day = 86_400
    seconds = Interactions(np.ones((1, 2)), times=[15_800 * day, 15_900 * day])
    assert seconds.describe_times(15_800 * day, 15_900 * day) == ["2013-04-05", "2013-07-14"]
    assert seconds.describe_times(15_800 * day, 15_800 * day + 5400) == ["2013-04-05 00:00", "2013-04-05 01:30"]
    assert seconds.replace(times=seconds.times * 1000).describe_times(15_800 * day * 1000) == ["2013-04-05"]
    assert Interactions(np.ones((1, 2)), times=[1, 5000]).describe_times(5000) == ["5,000"]
    with pytest.raises(DataError, match="no times"):
        Interactions(np.ones((1, 2))).describe_times(3)
