"""Interactions from a matrix, and what they tell about themselves."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from relae.data import Dropped, Ids, Interactions
from relae.errors import DataError

from .tables import check_form, same

DENSE = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=6),
    elements=st.integers(0, 3).map(float),
)


def small(titles=("one", None, "three")):
    matrix = np.array([[1, 0, 2], [0, 0, 0], [0, 5, 0], [1, 1, 1]])
    return Interactions.from_matrix(matrix, users=["a", "b", "c", "d"], items=[10, 20, 30], titles=titles)


@given(DENSE)
def test_every_format_and_dtype_gives_the_same(dense):
    expected = Interactions(dense)
    check_form(expected)
    assert np.array_equal(expected.matrix.toarray(), dense)
    for make in (sp.csr_array, sp.csc_matrix, sp.coo_matrix, sp.lil_array, sp.dok_array, sp.csr_matrix):
        assert same(Interactions(make(dense)), expected)
    for dtype in (np.int8, np.uint16, np.float32):
        assert same(Interactions(sp.csr_array(dense.astype(dtype))), expected)


def test_a_matrix_in_good_form_is_shared():
    matrix = sp.csr_array(np.eye(3, dtype=np.float32))
    data = Interactions(matrix)
    assert np.shares_memory(data.matrix.data, matrix.data)
    assert np.shares_memory(data.matrix.indices, matrix.indices)


def test_the_callers_matrix_is_never_changed():
    data, indices, indptr = (
        np.array([0, 2, 3, 4], dtype=np.float32),
        np.array([2, 1, 1, 0]),
        np.array([0, 3, 4]),
    )
    matrix = sp.csr_array((data.copy(), indices.copy(), indptr.copy()), shape=(2, 3))
    found = Interactions(matrix)
    check_form(found)
    assert found.matrix.toarray().tolist() == [[0, 5, 0], [4, 0, 0]]
    assert matrix.data.tolist() == data.tolist()
    assert matrix.indices.tolist() == indices.tolist()
    assert matrix.nnz == 4


def test_duplicates_do_not_overflow_a_small_dtype():
    cell = (np.zeros(4, dtype=int), np.zeros(4, dtype=int))
    matrix = sp.coo_array((np.full(4, 100, dtype=np.int8), cell), shape=(1, 1))
    assert Interactions(matrix).matrix.toarray().item() == 400


def test_64_bit_indices_become_32():
    matrix = sp.csr_array(np.eye(3, dtype=np.float32))
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    check_form(Interactions(matrix))


def test_bare_matrices_have_their_positions_as_ids():
    data = Interactions(np.eye(3))
    assert data.users == data.items == Ids.range(3)
    assert data.titles is None
    assert data.title(0) is None


def test_ids_keep_the_order_of_the_columns():
    data = Interactions(np.array([[1, 0], [1, 1]]), users=[7, 3], items=["b", "a"])
    assert data.history(7) == ["b"]
    assert data.history(3) == ["b", "a"]
    assert data.items.positions(["a", "b"]).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.array([[0.0, -1.0]]), "has -1.0 in row 0, column 1"),
        (np.array([[0.0], [np.nan]]), "has nan in row 1, column 0"),
        (sp.csr_array(np.array([[0, 0], [0, np.inf]])), "has inf in row 1, column 1"),
        (np.array([[1e39]]), "has inf in row 0, column 0"),
        (np.array([1.0, 2.0]), r"two dimensions, users × items, got the shape \(2,\)"),
        (np.array([[1j]]), "real numbers, got complex128"),
        (np.array([["a"]]), "real numbers, got <U1"),
        ([[1, 2]], "a list is not a matrix"),
    ],
)
def test_bad_matrices_are_refused(matrix, message):
    with pytest.raises(DataError, match=message):
        Interactions(matrix)


def test_a_broken_csr_is_refused():
    matrix = sp.csr_array(np.eye(3))
    matrix.indices = np.array([0, 1, 7], dtype=np.int32)
    with pytest.raises(DataError, match="not a valid CSR"):
        Interactions(matrix)


def test_lengths_must_agree():
    with pytest.raises(DataError, match="2 ids of users for a matrix with 3 users: give one per user"):
        Interactions(np.eye(3), users=[1, 2])
    with pytest.raises(DataError, match="4 ids of items for a matrix with 3 items"):
        Interactions(np.eye(3), items=Ids.range(4))
    with pytest.raises(DataError, match="2 titles for 3 items"):
        Interactions(np.eye(3), titles=["a", "b"])


def test_titles():
    data = small()
    assert data.titles.tolist() == ["one", None, "three"]
    assert data.title("10") == "one"
    assert data.title(20) is None
    assert data.title(99) is None
    assert small({30: "three", "10": "one"}).titles.tolist() == ["one", None, "three"]


def test_history():
    data = small()
    assert data.history("a") == [10, 30]
    assert data.history("b") == []
    assert all(type(item) is int for item in data.history("d"))
    with pytest.raises(DataError, match="there is no user 'z' among the 4"):
        data.history("z")


def test_repr():
    assert repr(small()) == "Interactions(4 users × 3 items, 6 interactions, with titles)"


def test_statistics():
    found = small().statistics()
    assert (found.users, found.items, found.interactions) == (4, 3, 6)
    assert found.density == 0.5
    assert (found.per_user.min, found.per_user.median, found.per_user.max) == (0, 1.5, 3)
    assert (found.per_item.min, found.per_item.median, found.per_item.max) == (2, 2.0, 2)
    assert found.gini == pytest.approx(0.0, abs=1e-12)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(any))
def test_gini_is_the_mean_difference_over_twice_the_mean(counts):
    matrix = (np.arange(9)[:, None] < np.array(counts)).astype(float)
    differences = np.abs(np.subtract.outer(counts, counts)).mean()
    assert Interactions(matrix).statistics().gini == pytest.approx(differences / (2 * np.mean(counts)))


@given(DENSE, st.randoms())
def test_select_users_is_a_choice_of_rows(dense, random):
    data = Interactions(dense)
    rows = random.sample(range(len(dense)), random.randint(0, len(dense)))
    chosen = data.select_users(rows)
    check_form(chosen)
    assert np.array_equal(chosen.matrix.toarray(), dense[rows])
    assert chosen.users.values.tolist() == rows
    assert chosen.items == data.items


def test_select_users_by_booleans_keeps_the_titles():
    chosen = small().select_users(np.array([True, False, False, True]))
    assert chosen.users.values.tolist() == ["a", "d"]
    assert chosen.titles.tolist() == ["one", None, "three"]


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ([0, 4], r"lie in \[0, 4\), got 0 to 4"),
        ([-1], r"lie in \[0, 4\)"),
        ([0, 0], "'a' occurs more than once"),
        ([True, False], r"needs 4 of them, got shape \(2,\)"),
        ([0.5], "a list of integers, got float64"),
    ],
)
def test_select_users_refuses_other_positions(positions, message):
    with pytest.raises(DataError, match=message):
        small().select_users(positions)


def whole():
    """Interactions that have everything."""
    matrix = np.array([[1, 0, 2], [0, 3, 0]])
    return Interactions(
        matrix,
        ["a", "b"],
        [10, 20, 30],
        ["one", None, "three"],
        times=[5, 6, 7],
        features=np.eye(3),
        seen=np.array([[0, 1, 0], [0, 0, 1]]),
        seen_times=[1, 2],
        dropped=Dropped(Ids(["z"]), np.zeros(1, np.uint8), ("k_core=2",)),
        dropped_items=Ids([40]),
        weighting="log",
    )


def known(data):
    """All that interactions know, by name."""
    names = ("titles", "times", "features", "seen", "seen_times", "dropped", "dropped_items", "weighting")
    return {name: getattr(data, name) for name in ("matrix", "users", "items", *names)}


@pytest.mark.parametrize("name", list(known(whole())))
def test_nothing_can_be_set(name):
    data = whole()
    with pytest.raises(AttributeError):
        setattr(data, name, None)
    with pytest.raises(AttributeError):
        delattr(data, name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("users", Ids(["c", "d"])),
        ("items", Ids([1, 2, 3])),
        ("titles", None),
        ("times", None),
        ("features", None),
        ("dropped", None),
        ("dropped_items", Ids([50, 60])),
        ("weighting", "linear"),
    ],
)
def test_replace_changes_one_thing_and_shares_the_rest(name, value):
    data = whole()
    before, after = known(data), known(data.replace(**{name: value}))
    assert after.pop(name) == value
    for other, kept in after.items():
        if other in ("seen", "seen_times"):  # which are looked up by the ids of the items
            assert name == "items" or same_array(kept, before[other])
        else:
            assert kept is before[other]
    assert known(data)["users"] is before["users"]


def same_array(a, b):
    return np.array_equal(a.toarray(), b.toarray()) if sp.issparse(a) else np.array_equal(a, b)


def test_replace_takes_a_matrix_as_the_class_does():
    data = whole().replace(matrix=np.array([[4, 0, 4], [0, 4, 0]]))
    check_form(data)
    assert data.matrix.toarray().tolist() == [[4, 0, 4], [0, 4, 0]]
    assert data.times.tolist() == [5, 6, 7]
    assert data.seen.toarray().astype(int).tolist() == [[0, 1, 0], [0, 0, 1]]
    seen = whole().replace(seen=np.array([[1, 1, 0], [0, 0, 0]]), seen_times=[8, 9])
    assert seen.seen.toarray().astype(int).tolist() == [[0, 1, 0], [0, 0, 0]]  # without what is in the history
    assert seen.seen_times.tolist() == [9]
    assert whole().replace(titles={20: "two"}).titles.tolist() == [None, "two", None]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"matrix": np.eye(3)}, "2 ids of users for a matrix with 3 users"),
        ({"matrix": np.eye(2)}, "3 ids of items for a matrix with 2 items"),
        ({"matrix": np.zeros((2, 3))}, "times of 3 interactions and the matrix has 0: give times too"),
        ({"matrix": np.eye(3), "users": None}, "seen is of 2 users and the matrix of 3"),
        ({"matrix": np.ones((2, 2)), "items": [1, 2], "times": None}, "3 titles for 2 items"),
        ({"features": np.eye(2)}, "2 rows of features for 3 items"),
        ({"times": [1]}, "1 times for 3 interactions"),
        ({"seen_times": [1, 2]}, "seen_times are the times of a matrix"),
    ],
)
def test_replace_refuses_what_does_not_fit(changes, message):
    with pytest.raises(DataError, match=message):
        whole().replace(**changes)


def test_interactions_can_be_copied_and_pickled():
    for twin in (copy.copy(whole()), pickle.loads(pickle.dumps(whole()))):
        assert same(twin, whole())
