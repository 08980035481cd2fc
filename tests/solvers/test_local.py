"""The local solver beside dense systems, one support at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relae import RDLAE, ApproximationWarning, PrecisionError
from relae.linalg import as_csr, labelled, local_columns, nearest, transpose
from relae.solvers import Auto, Local, LocalInverse, solve

from ..oracles import csr, dense_inverse, dense_penalty, example, matrices


def supports(dense, count, by):
    """The definition, item by item."""
    gram = dense.T.astype(np.float64) @ dense
    norms = np.sqrt(np.diag(gram))
    found = []
    for j in range(len(gram)):
        closeness = gram[:, j] if by == "count" else gram[:, j] / np.where(norms > 0, norms, 1)
        others = [i for i in range(len(gram)) if i != j and gram[i, j] > 0]
        others.sort(key=lambda i: (-closeness[i], i))
        found.append(sorted([j, *others[: count - 1]]))
    return found


def columns(dense, penalty, members):
    """P̂ by dense inverses."""
    gram = dense.T.astype(np.float64) @ dense
    expected = np.zeros_like(gram)
    for j, support in enumerate(members):
        inverse = np.linalg.inv(gram[np.ix_(support, support)] + np.diag(penalty[support]))
        expected[support, j] = inverse[:, support.index(j)]
    return expected


@pytest.mark.parametrize("by", ["cosine", "count"])
@pytest.mark.parametrize("count", [1, 2, 7, 25, 40])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("square", [True, False])
def test_every_column_is_the_closed_form_on_its_support(by, count, weighted, square, monkeypatch):
    monkeypatch.setattr("relae.solvers._local.SQUARE_BYTES", 1e9 if square else 0)
    monkeypatch.setattr("relae.solvers._local.BLOCK", 10)
    dense = example(60, 25, weighted=weighted)
    penalty = dense_penalty(dense, 4.0, 0.3)
    found = solve(csr(dense), penalty, solver=Local(count, dtype="float64", nearest_by=by))
    members = supports(dense, count, by)
    assert np.allclose(found.inverse.columns.toarray(), columns(dense, penalty, members), atol=1e-10)
    assert found.residual < 1e-10
    assert found.plan.solver == found.inverse.solver == "local"


@given(matrices(), st.integers(1, 8))
def test_supports_of_any_matrix(dense, count):
    by_user = as_csr(csr(dense), np.float64)
    members, sizes, _ = nearest(
        transpose(by_user), labelled(by_user, np.ones(dense.shape[1])), np.arange(dense.shape[1]), count
    )
    assert [list(row[:size]) for row, size in zip(members, sizes, strict=True)] == supports(dense, count, "count")


def test_ties_go_to_the_lower_column():
    dense = np.ones((3, 9), np.float32)
    by_user = csr(dense)
    members, sizes, _ = nearest(transpose(by_user), labelled(by_user, np.ones(9)), np.arange(9), 4)
    assert members.tolist() == [[0, 1, 2, 3]] * 4 + [[0, 1, 2, j] for j in range(4, 9)]
    assert sizes.tolist() == [4] * 9


def test_all_neighbours_are_the_exact_solution():
    dense = example(60, 25, weighted=True)
    dense = dense[:, (dense > 0).any(axis=0)]
    dense[0] = 1.0  # everything goes with everything
    penalty = dense_penalty(dense, 4.0, 0.3)
    found = solve(csr(dense), penalty, solver=Local(dense.shape[1], dtype="float64")).inverse
    assert np.allclose(found.columns.toarray(), dense_inverse(dense, penalty), atol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_read_from_it(dtype):
    dense = example(60, 25, weighted=True)
    penalty = dense_penalty(dense, 4.0, 0.3)
    inverse = solve(csr(dense), penalty, solver=Local(9, dtype=dtype)).inverse
    assert isinstance(inverse, LocalInverse)
    expected = columns(dense, penalty, supports(dense, 9, "cosine"))
    close = {"float32": 1e-5, "float64": 1e-10}[dtype]
    rows, some = np.array([3, 0, 3, 24]), np.array([24, 1, 3, 3])
    assert np.allclose(inverse.diagonal(), np.diag(expected), atol=close)
    assert np.allclose(inverse.project(csr(dense[:7])), dense[:7] @ expected, atol=10 * close)
    assert np.allclose(inverse.rows(rows), expected[rows], atol=close)
    assert np.allclose(inverse.block(rows, some), expected[np.ix_(rows, some)], atol=close)
    assert np.allclose(inverse.apply(dense.T.astype(dtype)), expected @ dense.T, atol=10 * close)
    assert inverse.project(csr(dense[:7])).dtype == inverse.dtype == np.dtype(dtype)
    again = LocalInverse.from_arrays(inverse.arrays(), penalty)
    assert (again.columns != inverse.columns).nnz == 0
    assert inverse.block(rows, np.array([], np.int64)).shape == (4, 0)


def test_a_matrix_that_is_not_definite_is_found_and_done_again_in_float64():
    dense = np.ones((50, 12), np.float32)
    penalty = np.full(12, 1e-6)  # lost in float32 beside 50
    found = solve(csr(dense), penalty, solver=Local(12))
    assert found.inverse.dtype == np.float64
    assert found.residual < 1e-3
    with pytest.raises(PrecisionError, match="raise l2"):
        solve(csr(dense), np.full(12, 1e-18), solver=Local(12))


def test_columns_of_an_indefinite_matrix_are_not_numbers():
    by_item = transpose(csr(np.ones((5, 3))))
    members, sizes = np.arange(3, dtype=np.int32)[None], np.array([3])
    assert np.isnan(local_columns(np.arange(1), members, sizes, by_item, np.full(3, -9.0))).all()


def test_the_choice_of_neighbours_is_checked():
    with pytest.raises(ValueError, match="nearest_by must be 'cosine' or 'count', got 'magic'"):
        RDLAE(3.0).fit(csr(example(9, 9, weighted=False)), solver=Local(nearest_by="magic"))
    with pytest.raises(ValueError, match="neighbours must be a whole number"):
        RDLAE(3.0).fit(csr(example(9, 9, weighted=False)), solver=Local(0))


def test_auto_says_that_it_takes_an_approximation(monkeypatch):
    """Where no exact form fits; for the plan, this machine is a small one."""
    x = csr(example(60, 25, weighted=False))
    monkeypatch.setattr(Auto, "preference", lambda self, shape: ("nothing that fits", "local"))
    with pytest.warns(ApproximationWarning, match=r"its 5 nearest items only.*solver='exact' refuses"):
        model = RDLAE(3.0).fit(x, solver=Auto(neighbours=5))
    assert model.plan_.solver == "local"
    assert model.recommend(x, 3)[0].shape == (60, 3)


def test_progress_and_blocks(monkeypatch):
    monkeypatch.setattr("relae.solvers._local.BLOCK", 10)
    calls = []
    dense = example(60, 25, weighted=False)
    penalty = dense_penalty(dense, 4.0, 0.3)
    solve(csr(dense), penalty, progress=lambda *call: calls.append(call), solver=Local(5))
    assert calls == [("inverse", 0.4), ("inverse", 0.8), ("inverse", 1.0)]
