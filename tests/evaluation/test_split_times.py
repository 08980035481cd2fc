"""A split knows when its interactions happened, and a model that is judged by time never sees the future."""

import numpy as np
import pytest

from relae import Interactions
from relae.evaluation import hold_out_items, hold_out_users, leave_last_out, split_by_time


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
