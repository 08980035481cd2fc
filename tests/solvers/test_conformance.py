"""Every solver beside a dense float64 inverse."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relae.linalg import as_csr
from relae.solvers import Dual, DualInverse, PrimalInverse, as_solver, solve

from ..effort import repeat
from ..oracles import (
    EMPTY_ITEM,
    EMPTY_USER,
    TWINS,
    csr,
    dense_inverse,
    dense_penalty,
    example,
    matrices,
    new_histories,
    specs,
)

SOLVERS = ["primal", "dual"]
DTYPES = ["float32", "float64"]
TOLERANCE = {"float32": 1e-4, "float64": 1e-7}  # of the largest element
SHAPES = {"more users": (60, 25), "more items": (25, 60), "blocks": (150, 290)}


class Case:
    """Data, the dense P, and the inverse to be examined."""

    def __init__(self, solver, dtype, shape="more users", weighted=False, dropout=0.3):
        self.dense = example(*SHAPES[shape], weighted=weighted)
        self.x = csr(self.dense)
        self.penalty = dense_penalty(self.dense, 4.0, dropout)
        self.expected = dense_inverse(self.dense, self.penalty)
        self.solution = solve(self.x, self.penalty, solver=as_solver(solver, dtype=dtype))
        self.inverse = self.solution.inverse
        self.tolerance = TOLERANCE[dtype]

    def check(self, found, expected):
        assert found.shape == expected.shape
        assert np.abs(found - expected).max(initial=0.0) <= self.tolerance * np.abs(expected).max(initial=1.0)


shared = cache(Case)  # between tests that only look


@pytest.fixture(params=[(solver, dtype) for solver in SOLVERS for dtype in DTYPES], ids="-".join)
def kind(request):
    return request.param


@pytest.fixture(params=[(shape, weighted) for shape in SHAPES for weighted in (False, True)], ids=str)
def case(request, kind):
    return shared(*kind, *request.param)


def test_it_is_what_was_asked_for(case, kind):
    solver, dtype = kind
    assert isinstance(case.inverse, {"primal": PrimalInverse, "dual": DualInverse}[solver])
    assert case.inverse.solver == case.solution.plan.solver == solver
    assert case.inverse.dtype == np.dtype(dtype)
    assert case.solution.plan.dtype == dtype
    assert case.inverse.n_items == case.x.shape[1]


def test_diagonal(case):
    found = case.inverse.diagonal()
    assert found.dtype == np.float64
    case.check(found, np.diag(case.expected))
    assert found[EMPTY_ITEM] == pytest.approx(1 / case.penalty[EMPTY_ITEM])


def test_rows(case):
    items = np.array([7, EMPTY_ITEM, 0, 7, case.x.shape[1] - 1])
    case.check(case.inverse.rows(items), case.expected[items])
    assert case.inverse.rows(np.array([], np.int64)).shape == (0, case.x.shape[1])


def test_block(case):
    rows, columns = np.array([7, EMPTY_ITEM, 0, 7]), np.array([0, 7, 3, EMPTY_ITEM, 0])
    case.check(case.inverse.block(rows, columns), case.expected[np.ix_(rows, columns)])
    assert case.inverse.block(rows, np.array([], np.int64)).shape == (4, 0)
    assert case.inverse.block(np.array([], np.int64), columns).shape == (0, 5)


def test_it_can_be_taken_apart_and_put_together(case):
    again = type(case.inverse).from_arrays(case.inverse.arrays(), case.penalty)
    assert np.array_equal(again.rows(np.arange(5)), case.inverse.rows(np.arange(5)))


def test_rows_are_not_a_view_of_the_model(case):
    case.inverse.rows(np.array([1, 2]))[:] = np.nan
    case.check(case.inverse.rows(np.array([1, 2])), case.expected[[1, 2]])


def test_apply(case):
    vectors = np.random.default_rng(0).standard_normal((case.x.shape[1], 3)).astype(case.inverse.dtype)
    case.check(case.inverse.apply(vectors), case.expected @ vectors)


def histories(dense, name):
    users, items = dense.shape
    fresh = new_histories(6, items, weighted=False)
    return {
        "all training users": dense,
        "some, in order": dense[5:9],
        "some, in disorder": dense[[9, 3, 3, 0, users - 1]],
        "twins": dense[list(TWINS)],
        "one": dense[1:2],
        "new": fresh,
        "new with weights": new_histories(6, items, weighted=True),
        "mixture": np.concatenate([fresh[:2], dense[4:7], fresh[2:], dense[[0, EMPTY_USER]]]),
        "nearly a training user": np.where(np.arange(items) == 5, 1 - (dense[:4] > 0), dense[:4]),
        "a training user's items with other weights": 2 * dense[6:9],
        "empty": np.zeros((2, items)),
        "none": np.zeros((0, items)),
    }[name].astype(np.float32)


HISTORIES = [
    "all training users",
    "some, in order",
    "some, in disorder",
    "twins",
    "one",
    "new",
    "new with weights",
    "mixture",
    "nearly a training user",
    "a training user's items with other weights",
    "empty",
    "none",
]


@pytest.mark.parametrize("name", HISTORIES)
def test_project(case, name):
    h = histories(case.dense, name)
    found = case.inverse.project(csr(h))
    assert found.dtype == case.inverse.dtype
    case.check(found, h.astype(np.float64) @ case.expected)


def test_an_empty_history_without_an_empty_training_user(kind):
    dense = np.array([[1, 1, 0], [0, 1, 1]], np.float32)
    inverse = solve(csr(dense), np.ones(3), solver=as_solver(kind[0], dtype=kind[1])).inverse
    assert np.array_equal(inverse.project(csr(np.zeros((2, 3), np.float32))), np.zeros((2, 3)))


@pytest.mark.parametrize(
    "solver",
    [
        "primal",
        "dual",
    ],
)
def test_float64_is_float64_for_new_histories(solver):
    case = Case(solver, "float64", weighted=True)
    h = new_histories(6, case.x.shape[1], weighted=True)
    case.tolerance = 1e-12
    case.check(case.inverse.project(csr(h)), h.astype(np.float64) @ case.expected)


@pytest.mark.parametrize("solver", SOLVERS)
def test_float64_is_float64_for_everything_else(solver):
    case = Case(solver, "float64", weighted=True)
    case.tolerance = 1e-12
    case.check(case.inverse.diagonal(), np.diag(case.expected))
    case.check(case.inverse.rows(np.arange(9)), case.expected[:9])
    case.check(case.inverse.project(case.x), case.dense.astype(np.float64) @ case.expected)
    assert case.solution.residual < 1e-12


@given(matrices(), specs())
@settings(max_examples=repeat(20, 60))
def test_primal_is_dual(x, spec):
    penalty = dense_penalty(x, spec.l2, spec.dropout)
    primal, dual = (solve(csr(x), penalty, solver=as_solver(solver, dtype="float64")).inverse for solver in SOLVERS)
    expected = dense_inverse(x, penalty)
    everything = np.arange(x.shape[1])
    assert np.allclose(primal.rows(everything), expected, rtol=1e-6, atol=1e-9)
    assert np.allclose(dual.rows(everything), expected, rtol=1e-6, atol=1e-9)
    assert np.allclose(primal.project(csr(x)), dual.project(csr(x)), rtol=1e-6, atol=1e-9)


@given(st.data())
@settings(max_examples=repeat(20, 60))
def test_the_dual_form_knows_its_training_users_and_nobody_else(data):
    x = data.draw(matrices(values=(0, 1, 2)))
    h = (
        data.draw(matrices(values=(0, 1, 2)).filter(lambda h: h.shape[1] == x.shape[1]))
        if data.draw(st.booleans())
        else x[data.draw(st.lists(st.integers(0, len(x) - 1), max_size=6))]
    )
    penalty = np.ones(x.shape[1])
    inverse = solve(csr(x), penalty, solver=Dual(dtype="float64")).inverse
    assert np.allclose(inverse.project(csr(h)), h @ dense_inverse(x, penalty), atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_callers_matrix_is_left_alone(solver):
    dense = example(20, 30, weighted=True)
    x = csr(dense)
    penalty = dense_penalty(dense, 2.0)
    kept = penalty.copy()
    solve(x, penalty, solver=solver)
    assert np.array_equal(x.toarray(), dense)
    assert np.array_equal(penalty, kept)


@pytest.mark.parametrize("solver", SOLVERS)
def test_one_user_and_one_item(solver):
    for shape in ((1, 1), (1, 5), (5, 1)):
        x = np.ones(shape, np.float32)
        inverse = solve(csr(x), np.full(shape[1], 2.0), solver=solver).inverse
        assert np.allclose(inverse.rows(np.arange(shape[1])), dense_inverse(x, np.full(shape[1], 2.0)))


@pytest.mark.parametrize("solver", SOLVERS)
def test_memory_per_user_covers_the_result(solver):
    inverse = Case(solver, "float64").inverse
    assert inverse.bytes_per_user >= inverse.project(csr(np.zeros((1, inverse.n_items), np.float32))).nbytes


@pytest.mark.parametrize("solver", SOLVERS)
def test_progress(solver):
    seen = []
    x = example(290, 300, weighted=False)
    solve(csr(x), dense_penalty(x, 40.0), solver=solver, progress=lambda stage, done: seen.append((stage, done)))
    assert {stage for stage, _ in seen} == {"inverse"}
    fractions = [done for _, done in seen]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1
    assert len(fractions) > (3 if solver == "local" else 1)  # LAPACK tells when it has the factor, and the end


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_same_twice(solver):
    x = example(70, 150, weighted=True)
    penalty = dense_penalty(x, 4.0)
    first, second = (solve(csr(x), penalty, solver=solver) for _ in range(2))
    assert first.residual == second.residual
    assert np.array_equal(first.inverse.project(csr(x)), second.inverse.project(csr(x)))


def test_a_training_matrix_of_another_precision():
    dense = example(25, 40, weighted=True)
    penalty = dense_penalty(dense, 4.0)
    found = solve(as_csr(dense, np.float64), penalty, solver=Dual(dtype="float32")).inverse
    assert found.dtype == np.float32
    assert np.allclose(found.project(csr(dense)), dense @ dense_inverse(dense, penalty), atol=1e-5)
