"""Top-k beside a stable sort of everything."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from relae.linalg import top_k

from ..oracles import brute_force_top_k

# few different values, so that ties are the rule
TIED = st.sampled_from([-2.0, -1.0, -0.0, 0.0, 0.5, 1.0, np.inf, -np.inf, np.nan])


@st.composite
def problems(draw):
    """Values, k, a scale or None, and what to skip as a boolean matrix or None."""
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    rows, n = draw(st.integers(0, 4)), draw(st.integers(1, 12))
    values = draw(hnp.arrays(dtype, (rows, n), elements=TIED))
    scale = draw(st.none() | hnp.arrays(dtype, n, elements=st.sampled_from([-1.0, 0.5, 2.0, np.nan])))
    skip = draw(st.none() | hnp.arrays(bool, (rows, n)))
    return values, draw(st.integers(1, 15)), scale, skip


@given(problems())
def test_equals_a_stable_sort(problem):
    values, k, scale, skip = problem
    before = values.copy()
    columns, best = top_k(values, k, scale, None if skip is None else sp.csr_array(skip))
    assert columns.shape == best.shape == (len(values), k)
    assert best.dtype == values.dtype
    scores = values if scale is None else values * scale
    for row in range(len(values)):
        banned = set() if skip is None else set(np.flatnonzero(skip[row]))
        expected_columns, expected_scores = brute_force_top_k(scores[row], k, banned)
        assert columns[row].tolist() == expected_columns
        assert best[row].tolist() == expected_scores
    assert np.array_equal(values, before, equal_nan=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 3, 10, 99, 500, 501])
@pytest.mark.parametrize("order", ["random", "rising", "falling", "ties"])
def test_long_rows(k, order, dtype):
    rng = np.random.default_rng(k)
    values = rng.standard_normal((7, 500)).astype(dtype)
    if order == "ties":
        values = values.round()
    elif order != "random":
        values = np.sort(values, axis=1)[:, :: 1 if order == "rising" else -1].copy()
    skip = sp.csr_array(rng.random(values.shape) < 0.1)
    columns, best = top_k(values, k, None, skip)
    for row in range(len(values)):
        expected_columns, expected_scores = brute_force_top_k(values[row], k, set(skip[[row]].indices))
        assert columns[row].tolist() == expected_columns
        assert best[row].tolist() == expected_scores


def test_a_transposed_array_is_read_right():
    values = np.arange(12.0).reshape(4, 3).T
    columns, best = top_k(values, 2)
    assert columns.tolist() == [[3, 2]] * 3
    assert best.tolist() == [[9, 6], [10, 7], [11, 8]]


def test_nothing_left_to_choose():
    values = np.array([[1.0, np.nan, -np.inf]])
    columns, best = top_k(values, 2, None, sp.csr_array(np.array([[True, False, False]])))
    assert columns.tolist() == [[-1, -1]]
    assert best.tolist() == [[-np.inf, -np.inf]]


def test_k_of_zero_gives_no_columns():
    columns, best = top_k(np.ones((2, 3)), 0)
    assert columns.shape == best.shape == (2, 0)


@given(problems(), st.randoms(use_true_random=False))
def test_hints_change_nothing(problem, random):
    values, k, scale, skip = problem
    stored = None if skip is None else sp.csr_array(skip)
    expected = top_k(values, k, scale, stored)
    hints = np.full((len(values), k), -1)
    for row in range(len(values)):  # any k columns that may be chosen, in any order; too few are no hint
        able = [c for c in range(values.shape[1]) if skip is None or not skip[row, c]]
        chosen = random.sample(able, k) if len(able) >= k else able
        hints[row, : len(chosen)] = chosen
    found = top_k(values, k, scale, stored, hints)
    assert found[0].tolist() == expected[0].tolist()
    assert found[1].tolist() == expected[1].tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_best_of_another_scale_are_good_hints(dtype):
    rng = np.random.default_rng(5)
    values = rng.standard_normal((20, 1000)).round(2).astype(dtype)
    skip = sp.csr_array(rng.random(values.shape) < 0.05)
    hints = None
    for spread in (0.0, 0.1, 0.5, 2.0, -1.0):
        scale = (1 + spread * rng.random(1000)).astype(dtype)
        expected = top_k(values, 50, scale, skip)
        found = top_k(values, 50, scale, skip, hints)
        assert np.array_equal(found[0], expected[0])
        assert np.array_equal(found[1], expected[1])
        hints = found[0]
