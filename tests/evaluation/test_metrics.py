"""Metrics beside loops."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st

from relae.evaluation import find_hits, ndcg, recall, summarize

from ..oracles import brute_force_ndcg, brute_force_recall


@st.composite
def rankings(draw):
    """Ranked lists without repetition, −1 at their ends, and the truth as a matrix."""
    users, items, length = draw(st.tuples(st.integers(0, 5), st.integers(1, 8), st.integers(1, 10)))
    lists = []
    for _ in range(users):
        order = draw(st.permutations(range(items)))[: draw(st.integers(0, length))]
        lists.append([*order, *[-1] * (length - len(order))])
    truth = np.array([draw(st.lists(st.booleans(), min_size=items, max_size=items)) for _ in range(users)])
    return np.array(lists, np.int64).reshape(users, length), truth.reshape(users, items).astype(np.float32)


def truths(truth):
    return [set(np.flatnonzero(row)) for row in truth]


@given(rankings())
def test_hits(case):
    ranked, truth = case
    found = find_hits(ranked, sp.csr_array(truth))
    assert found.dtype == bool
    expected = [[column in known for column in row] for row, known in zip(ranked, truths(truth), strict=True)]
    assert found.tolist() == expected


@given(rankings(), st.integers(1, 12))
def test_recall_and_ndcg(case, k):
    ranked, truth = case
    hits, sizes = find_hits(ranked, sp.csr_array(truth)), np.count_nonzero(truth, axis=1)
    for metric, oracle in ((recall, brute_force_recall), (ndcg, brute_force_ndcg)):
        found = metric(hits, sizes, k)
        expected = [oracle(list(row), known, k) for row, known in zip(ranked, truths(truth), strict=True)]
        assert found.shape == (len(ranked),)
        assert found == pytest.approx(expected, nan_ok=True)
        assert ((found >= 0) & (found <= 1 + 1e-12) | np.isnan(found)).all()


@given(rankings())
def test_a_perfect_list_is_worth_one(case):
    _, truth = case
    k = truth.shape[1]
    ranked = np.argsort(-truth, axis=1, kind="stable")
    hits, sizes = find_hits(ranked, sp.csr_array(truth)), np.count_nonzero(truth, axis=1)
    for metric in (recall, ndcg):
        assert np.allclose(metric(hits, sizes, k)[sizes > 0], 1)


def test_users_without_truth_have_no_value():
    hits, sizes = find_hits(np.array([[0, 1], [0, 1]]), sp.csr_array(np.array([[0, 0], [0, 1]]))), np.array([0, 1])
    assert np.isnan(recall(hits, sizes, 2)).tolist() == [True, False]
    assert np.isnan(ndcg(hits, sizes, 2)).tolist() == [True, False]
    assert np.isnan(recall(hits[:1], sizes[:1], 5)).all()


def test_no_truth_at_all():
    assert find_hits(np.array([[0, 1]]), sp.csr_array((1, 3))).tolist() == [[False, False]]


def test_known_values():
    ranked = np.array([[3, 0, 2]])
    truth = sp.csr_array(np.array([[1, 1, 1, 0, 1]]))
    hits = find_hits(ranked, truth)
    assert recall(hits, np.array([4]), 3).tolist() == [0.5]
    assert ndcg(hits, np.array([4]), 3)[0] == pytest.approx((1 / np.log2(3) + 0.5) / (1 + 1 / np.log2(3) + 0.5))


def test_a_large_matrix_does_not_overflow():
    truth = sp.csr_array((np.ones(1), ([99_999], [99_998])), shape=(100_000, 100_000))
    ranked = np.zeros((100_000, 1), np.int64)
    ranked[-1] = 99_998
    assert find_hits(ranked, truth).nonzero()[0].tolist() == [99_999]


def test_as_many_lists_as_users():
    with pytest.raises(ValueError, match="2 ranked lists for 3 users"):
        find_hits(np.zeros((2, 1), np.int64), sp.csr_array((3, 4)))


def test_a_column_the_truth_does_not_have_is_not_a_hit_of_the_next_user():
    truth = sp.csr_array(np.array([[0, 0, 0], [1, 0, 0]]))
    try:
        found = find_hits(np.array([[3], [1]]), truth)
    except ValueError:
        return  # a clear refusal is as good
    assert found.tolist() == [[False], [False]]


def test_truth_with_unsorted_indices():
    truth = sp.csr_array((np.ones(3), np.array([2, 0, 1]), np.array([0, 3])), shape=(1, 3))
    assert find_hits(np.array([[0, 1, 2]]), truth).tolist() == [[True, True, True]]


# --- the summary -------------------------------------------------------------------------------------------------


def test_recall_in_the_tail():
    truth = sp.csr_array(np.array([[1.0, 1.0, 1.0, 1.0]]))
    found = summarize(np.array([[1, 2, 3]]), truth, np.array([True, False, False, False]), 3)
    assert found.tail_recall == 1
    assert found.recall == 0.75
    assert found.tail_share == 1


@given(rankings(), st.integers(1, 10), st.lists(st.booleans(), min_size=8, max_size=8))
@example((np.array([[0]]), np.ones((1, 3), np.float32)), 1, [False] * 8)
def test_summary(case, k, head):
    ranked, truth = case
    head = np.array(head[: truth.shape[1]])
    known, tail = truths(truth), truths(truth * ~head)
    shown = [column for row in ranked for column in row[:k] if column >= 0]
    if not any(known) or not any(tail) or not shown:
        return
    found = summarize(ranked, sp.csr_array(truth), head, k)

    def mean(metric, wanted):
        return np.nanmean([metric(list(row), one, k) for row, one in zip(ranked, wanted, strict=True)])

    assert found.ndcg == pytest.approx(mean(brute_force_ndcg, known))
    assert found.recall == pytest.approx(mean(brute_force_recall, known))
    assert found.tail_recall == pytest.approx(mean(brute_force_recall, tail))
    assert found.tail_share == pytest.approx(np.mean([not head[column] for column in shown]))


def test_a_summary_without_tail_is_nan_without_noise():
    truth = sp.csr_array(np.array([[1.0, 0.0]]))
    found = summarize(np.array([[0]]), truth, np.array([True, False]), 1)
    assert (found.ndcg, found.recall) == (1, 1)
    assert np.isnan(found.tail_recall)
