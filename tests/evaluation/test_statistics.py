"""Intervals and p-values beside SciPy's."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from relae.evaluation import statistics

VALUES = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=st.one_of(st.just(np.nan), st.floats(0, 1))
)


def rng(seed=0):
    return np.random.default_rng(seed)


@given(VALUES)
def test_means_are_those_of_what_counts(values):
    found = statistics.means(values)
    for mean, column in zip(found, values.T, strict=True):
        counted = column[~np.isnan(column)]
        assert mean == pytest.approx(counted.mean() if len(counted) else math.nan, nan_ok=True)


# --- intervals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_interval_is_that_of_scipy(level):
    values = rng(1).beta(0.4, 1.0, 400)
    low, high = statistics.bootstrap(values[:, None], level, 4000, rng(2))
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, confidence_level=level, n_resamples=4000, method="percentile", rng=rng(3)
    ).confidence_interval
    width = theirs.high - theirs.low
    assert low[0] == pytest.approx(theirs.low, abs=0.05 * width)
    assert high[0] == pytest.approx(theirs.high, abs=0.05 * width)


def test_the_interval_covers_the_true_mean_about_as_often_as_it_says():
    draw = rng(4)
    samples = draw.beta(1.0, 3.0, (200, 300))  # users, experiments
    low, high = statistics.bootstrap(samples, 0.9, 400, draw)
    assert 0.83 <= np.mean((low <= 0.25) & (high >= 0.25)) <= 0.96


@given(VALUES, st.integers(0, 5))
def test_an_interval_lies_within_the_values(values, seed):
    values = values[:, ~np.isnan(values).all(axis=0)]
    if values.shape[1] == 0:
        return
    low, high = statistics.bootstrap(values, 0.95, 50, rng(seed))
    assert (low <= high).all()
    assert (low >= np.nanmin(values, axis=0) - 1e-12).all()
    assert (high <= np.nanmax(values, axis=0) + 1e-12).all()


def test_a_user_who_does_not_count_is_not_a_zero():
    values = np.array([[0.5, 0.5], [0.5, np.nan], [0.5, np.nan]])
    low, high = statistics.bootstrap(values, 0.95, 500, rng())
    assert low.tolist() == high.tolist() == [0.5, 0.5]


def test_a_metric_for_which_nobody_counts_has_no_interval_and_makes_no_noise():
    low, high = statistics.bootstrap(np.array([[0.5, np.nan], [1.0, np.nan]]), 0.95, 50, rng())
    assert np.isnan([low[1], high[1]]).all()
    assert 0.5 <= low[0] <= high[0] <= 1


def test_chunks_make_no_difference(monkeypatch):
    values = rng(5).random((30, 2))
    whole = statistics.bootstrap(values, 0.9, 100, rng()), statistics.permutation_test(values - 0.4, 5000, rng())
    monkeypatch.setattr(statistics, "_CHUNK", 30 * 7)
    parts = statistics.bootstrap(values, 0.9, 100, rng()), statistics.permutation_test(values - 0.4, 5000, rng())
    assert np.allclose(whole[0], parts[0])
    assert np.allclose(whole[1], parts[1], atol=0.03)  # other signs are drawn


@pytest.mark.parametrize("level", [0, 1, 95, -0.5, np.nan])
def test_bad_levels(level):
    with pytest.raises(ValueError, match="level of an interval must lie between 0 and 1"):
        statistics.bootstrap(np.ones((3, 1)), level, 10, rng())


@pytest.mark.parametrize("resamples", [0, -5])
def test_resampling_never_is_an_error_that_says_so(resamples):
    with pytest.raises(ValueError, match="resamples"):
        statistics.bootstrap(np.ones((3, 1)), 0.95, resamples, rng())
    with pytest.raises(ValueError, match="resamples"):
        statistics.permutation_test(np.ones((3, 1)), resamples, rng())


# --- tests -------------------------------------------------------------------------------------------------------


def exact_p(differences):
    return scipy.stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=True,
    ).pvalue


@pytest.mark.parametrize("shift", [0.0, 0.2, 0.5])
def test_the_permutation_test_approaches_the_exact_one(shift):
    differences = rng(6).normal(shift, 0.4, (11, 3))
    found = statistics.permutation_test(differences, 40_000, rng(7))
    for p, column in zip(found, differences.T, strict=True):
        exact = exact_p(column)
        assert p == pytest.approx(exact, abs=4.5 * math.sqrt(exact * (1 - exact) / 40_000) + 1e-4)


def test_ties_between_flips_count_as_extreme():
    found = statistics.permutation_test(np.array([[0.1], [0.2], [0.3]]), 20_000, rng())
    assert found[0] == pytest.approx(2 / 8, abs=0.015)
    found = statistics.permutation_test(np.full((12, 1), 0.1), 20_000, rng())  # only all alike are as extreme
    assert found[0] == pytest.approx(2 / 2**12, abs=0.001)


def test_p_is_never_zero_and_one_where_nothing_differs():
    differences = np.column_stack([np.full(60, 0.3), np.zeros(60), np.full(60, np.nan)])
    assert statistics.permutation_test(differences, 99, rng()).tolist() == [0.01, 1.0, 1.0]
    assert statistics.wilcoxon_test(differences)[1:].tolist() == [1.0, 1.0]


def test_a_user_who_does_not_count_changes_no_p():
    differences = rng(8).normal(0.1, 0.3, (20, 1))
    more = np.concatenate([differences, np.full((5, 1), np.nan)])
    assert statistics.wilcoxon_test(more) == pytest.approx(statistics.wilcoxon_test(differences))
    assert statistics.permutation_test(more, 20_000, rng()) == pytest.approx(
        statistics.permutation_test(differences, 20_000, rng(1)), abs=0.02
    )


def test_p_values_are_spread_evenly_where_there_is_no_difference():
    p = statistics.permutation_test(rng(9).normal(0, 1, (40, 400)), 500, rng(10))
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.001


@pytest.mark.parametrize("users", [6, 40, 200])
def test_wilcoxon_is_that_of_scipy(users):
    differences = rng(11).normal(0.1, 0.3, (users, 2))
    found = statistics.wilcoxon_test(differences)
    assert found == pytest.approx([scipy.stats.wilcoxon(column).pvalue for column in differences.T])


def test_wilcoxon_leaves_out_those_who_do_not_differ():
    differences = np.concatenate([rng(12).normal(0.2, 0.3, 30), np.zeros(25)])[:, None]
    expected = scipy.stats.wilcoxon(differences[:30, 0]).pvalue
    assert statistics.wilcoxon_test(differences) == pytest.approx([expected])
