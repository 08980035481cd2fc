"""Sums along ranked lists beside loops."""

import math

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from relae.linalg import best_sums, ranked_sums

GAINS = st.sampled_from([0.0, 0.0, 1.0, 2.5, 0.1])


@st.composite
def problems(draw):
    rows, columns, groups = draw(st.integers(0, 5)), draw(st.integers(1, 8)), draw(st.integers(1, 3))
    cutoffs = np.array(sorted(draw(st.sets(st.integers(1, 9), min_size=1, max_size=3))))
    length = int(cutoffs[-1])
    ranked = np.full((rows, length), -1, np.int64)
    for row in ranked:
        order = draw(st.permutations(range(columns)))[:length]
        start = draw(st.integers(0, length - len(order)))  # a gap may come first
        row[start : start + len(order)] = order
    stored = np.array([draw(st.lists(st.booleans(), min_size=columns, max_size=columns)) for _ in range(rows)])
    gains = np.array(draw(st.lists(GAINS, min_size=columns * groups, max_size=columns * groups)))
    discounts = 1 / np.sqrt(np.arange(1.0, length + 1))
    return ranked, stored.reshape(rows, columns), gains.reshape(columns, groups), discounts, cutoffs


@given(problems())
def test_ranked_sums(problem):
    ranked, stored, gains, discounts, cutoffs = problem
    found = ranked_sums(ranked, sp.csr_array(stored.astype(np.float32)), gains, discounts, cutoffs)
    assert found.shape == (len(ranked), gains.shape[1], len(cutoffs), 4)
    for r, g, c in np.ndindex(found.shape[:3]):
        places = [
            place
            for place in range(cutoffs[c])
            if ranked[r, place] >= 0 and stored[r, ranked[r, place]] and gains[ranked[r, place], g] > 0
        ]
        gain = [gains[ranked[r, place], g] for place in places]
        expected = [
            math.fsum(gain),
            math.fsum(value * discounts[place] for value, place in zip(gain, places, strict=True)),
            math.fsum((at + 1) / (place + 1) for at, place in enumerate(places)),
            1 / (places[0] + 1) if places else 0.0,
        ]
        assert np.allclose(found[r, g, c], expected, rtol=0, atol=1e-12)


@given(problems(), st.lists(st.booleans(), min_size=3, max_size=3), st.randoms(use_true_random=False))
def test_best_sums(problem, by_gain, random):
    _, stored, gains, discounts, cutoffs = problem
    by_gain = np.array(by_gain[: gains.shape[1]])
    rows = [np.flatnonzero(row).tolist() for row in stored]
    for row in rows:
        random.shuffle(row)
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([column for row in rows for column in row], np.int64)
    found, sizes = best_sums(indptr, indices, gains, discounts, cutoffs, by_gain)
    for r, g, c in np.ndindex(found.shape[:3]):
        line = [gains[column, g] for column in rows[r] if gains[column, g] > 0]
        if by_gain[g]:
            line.sort(reverse=True)
        assert sizes[r, g] == len(line)
        line = line[: cutoffs[c]]
        expected = [math.fsum(line), math.fsum(gain * discounts[at] for at, gain in enumerate(line))]
        assert np.allclose(found[r, g, c], expected, rtol=0, atol=1e-12)


def test_any_layout_and_type_of_lists():
    stored = sp.csr_array(np.eye(3, dtype=np.float32))
    gains, discounts, cutoffs = np.ones((3, 1)), np.ones(2), np.array([1, 2])
    ranked = np.array([[0, 1], [2, 1], [0, 1]])
    expected = ranked_sums(ranked, stored, gains, discounts, cutoffs)
    assert expected[:, 0, :, 0].tolist() == [[1, 1], [0, 1], [0, 0]]
    for same in (ranked.astype(np.int32), np.asfortranarray(ranked), np.repeat(ranked, 2, axis=1)[:, ::2]):
        assert np.array_equal(ranked_sums(same, stored, gains, discounts, cutoffs), expected)


def test_a_large_matrix_does_not_overflow():
    stored = sp.csr_array((np.ones(1, np.float32), ([99_999], [99_998])), shape=(100_000, 100_000))
    ranked = np.zeros((100_000, 1), np.int64)
    ranked[-1] = 99_998
    found = ranked_sums(ranked, stored, np.ones((100_000, 1)), np.ones(1), np.array([1]))
    assert np.flatnonzero(found[:, 0, 0, 0]).tolist() == [99_999]
