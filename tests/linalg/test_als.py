"""Least squares per row beside dense systems in double precision."""

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relae.linalg import aligned, als_rows

from ..oracles import csr, example, matrices

COLUMNS = 300


def dense_rows(x, factors, unobserved, penalty):
    """The normal equations of each row, one after the other."""
    x, v = x.astype(np.float64), factors.astype(np.float64)
    found = []
    for row, own in zip(x, penalty, strict=True):
        system = (v.T * row) @ v + unobserved * v.T @ v + own * np.eye(v.shape[1])
        found.append(np.linalg.solve(system, v.T @ row))
    return np.array(found)


def factors_of(columns, dim, seed=0):
    return (np.random.default_rng(seed).normal(size=(columns, dim)) / np.sqrt(dim)).astype(np.float32)


def rows_of(lengths, columns, *, weighted, seed=0):
    """A row with each number of entries."""
    rng = np.random.default_rng(seed)
    x = np.zeros((len(lengths), columns), np.float32)
    for row, length in zip(x, lengths, strict=True):
        at = rng.permutation(columns)[:length]
        row[at] = rng.uniform(0.5, 3.0, length) if weighted else 1.0
    return x


def test_aligned_factors_are_the_same_factors_in_a_basis_of_their_own():
    factors = factors_of(COLUMNS, 12) * np.linspace(0.1, 3, 12, dtype=np.float32)
    found, spectrum = aligned(factors)
    assert found.dtype == np.float32
    assert np.allclose(found @ found.T, factors @ factors.T, atol=1e-5)
    assert np.allclose(found.T @ found, np.diag(spectrum), atol=1e-5 * spectrum[0])
    assert (np.diff(spectrum) <= 0).all()


@pytest.mark.parametrize("dim", [1, 3, 8, 30, 64])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_solve_their_normal_equations(dim, weighted):
    lengths = sorted({0, 1, 2, 3, 4, 5, dim - 1, dim, dim + 1, 2 * dim + 1, 239, 240, 241, COLUMNS})
    x = rows_of(lengths, COLUMNS, weighted=weighted)
    factors, spectrum = aligned(factors_of(COLUMNS, dim))
    penalty = np.linspace(0.5, 20, len(lengths))
    found = als_rows(csr(x), factors, spectrum, 0.1, penalty)
    assert found.dtype == np.float32
    assert found.shape == (len(lengths), dim)
    assert np.allclose(found, dense_rows(x, factors, 0.1, penalty), rtol=1e-4, atol=1e-5)
    assert not found[0].any()


@given(
    matrices(max_side=9),
    st.integers(1, 6),
    st.floats(0.01, 2.0),
    st.floats(0.01, 10.0),
)
def test_rows_of_any_matrix(x, dim, unobserved, penalty):
    factors, spectrum = aligned(factors_of(x.shape[1], dim))
    own = np.full(len(x), penalty)
    found = als_rows(csr(x), factors, spectrum, unobserved, own)
    assert np.allclose(found, dense_rows(x, factors, unobserved, own), rtol=1e-3, atol=1e-4)


def test_single_precision_is_enough_where_the_factors_differ_by_magnitudes():
    scale = np.logspace(1, -4, 32, dtype=np.float32)
    factors, spectrum = aligned(factors_of(COLUMNS, 32) * scale)
    x = rows_of([5, 31, 32, 200], COLUMNS, weighted=True)
    penalty = np.full(4, 0.05)
    found = als_rows(csr(x), factors, spectrum, 0.01, penalty)
    expected = dense_rows(x, factors, 0.01, penalty)
    assert np.allclose(found @ factors.T, expected @ factors.T.astype(np.float64), atol=1e-4)


def test_a_weight_of_two_is_the_same_entry_twice():
    x = rows_of([7, 50], COLUMNS, weighted=False)
    twice = np.concatenate([x, x], axis=1)
    factors = factors_of(COLUMNS, 16)
    once, spectrum = aligned(factors)
    # the second copy of the columns is observed only: its share of the unobserved is taken off
    found = als_rows(csr(2 * x), once, spectrum, 0.2, np.ones(2))
    both = als_rows(csr(twice), np.concatenate([once, once]), 2 * spectrum, 0.1, np.ones(2))
    assert np.allclose(found, both, atol=1e-6)


def test_the_number_of_threads_makes_no_difference():
    x = example(90, 70, weighted=True)
    factors, spectrum = aligned(factors_of(70, 10))
    before = numba.get_num_threads()
    results = []
    try:
        for threads in (1, before):
            numba.set_num_threads(threads)
            results.append(als_rows(csr(x), factors, spectrum, 0.1, np.ones(90)))
    finally:
        numba.set_num_threads(before)
    assert np.array_equal(*results)
