"""Every fit checks itself; a bad one is repaired or refused."""

import numpy as np
import pytest

from relae.errors import PlanError, PrecisionError, RelaeError
from relae.solvers import (
    NAMES,
    TOLERANCE,
    Auto,
    Dual,
    DualInverse,
    PrimalInverse,
    Rows,
    Shape,
    as_solver,
    residual,
    solve,
)

from ..oracles import csr, dense_inverse, dense_penalty, example

SOLVERS = ["primal", "dual"]


def hard(scale, seed=0):
    """Large weights, fewer users than items and users with the same history: as singular as data gets."""
    rng = np.random.default_rng(seed)
    x = (rng.random((20, 40)) < 0.3) * rng.integers(1, 10, (20, 40)) * float(scale)
    x[5], x[7] = x[4], x[6]
    return x.astype(np.float32)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_good_fit_has_a_small_residual(solver, dtype):
    """What rounding allows, whatever the processor.

    With u = eps/2, primal: u · cond(G + Λ). Dual: an error of u in K⁻¹, whose norm is about 1, is multiplied by X and
    Λ⁻¹ and once more by G + Λ: u · cond² along the largest eigenvector, of which a random probe has 1/√n.
    """
    x = example(80, 120, weighted=False)
    penalty = dense_penalty(x, 5.0)
    condition = np.linalg.cond(dense_inverse(x, penalty))
    solution = solve(csr(x), penalty, solver=as_solver(solver, dtype=dtype))
    growth = condition if solver == "primal" else condition**2 / np.sqrt(x.shape[1])
    assert 0 < solution.residual < np.finfo(dtype).eps / 2 * growth < TOLERANCE
    assert solution.plan.dtype == dtype


@pytest.mark.parametrize("error", [0.001, 0.01, 0.5])
def test_the_residual_is_the_error_that_was_put_in(error):
    x = example(50, 30, weighted=True)
    penalty = dense_penalty(x, 5.0)
    wrong = PrimalInverse((1 + error) * dense_inverse(x, penalty))
    assert residual(wrong, Rows(csr(x)), penalty, np.random.default_rng(0)) == pytest.approx(error, rel=1e-6)


def test_a_wrong_kernel_inverse_is_noticed():
    x = example(20, 30, weighted=False)
    penalty = dense_penalty(x, 5.0)
    right = solve(csr(x), penalty, solver=Dual(dtype="float64")).inverse
    broken = DualInverse(1.1 * right.kernel_inverse, csr(x).astype(np.float64), penalty)
    rng = np.random.default_rng(0)
    assert residual(broken, Rows(csr(x)), penalty, rng) > TOLERANCE > 1e-6 > residual(right, Rows(csr(x)), penalty, rng)


def test_nan_has_an_infinite_residual():
    x = example(20, 10, weighted=False)
    broken = np.eye(10)
    broken[3, 3] = np.nan
    assert residual(PrimalInverse(broken), Rows(csr(x)), np.ones(10), np.random.default_rng(0)) == np.inf


@pytest.mark.parametrize(("solver", "scale", "l2"), [("primal", 10, 1.0), ("dual", 1, 0.1)])
def test_float32_that_fails_is_done_again_in_float64(solver, scale, l2):
    x = hard(scale)
    penalty = dense_penalty(x, l2)
    solution = solve(csr(x), penalty, solver=solver)
    assert solution.plan.dtype == "float64"
    assert solution.inverse.dtype == np.float64
    assert solution.residual <= TOLERANCE
    expected = dense_inverse(x, penalty)
    assert np.abs(solution.inverse.rows(np.arange(40)) - expected).max() < 1e-5 * expected.max()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_no_precision_can_do_is_refused(solver, dtype):
    x = hard(1000)
    with pytest.raises(PrecisionError, match="raise l2") as caught:
        solve(csr(x), dense_penalty(x, 1e-9), solver=as_solver(solver, dtype=dtype))
    assert isinstance(caught.value, RelaeError)
    assert isinstance(caught.value, ArithmeticError)
    assert "float64" in str(caught.value)
    assert ("float32" in str(caught.value)) == (dtype == "float32")
    assert "0.001 is allowed" in str(caught.value)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_repair_without_the_memory_for_it_is_refused(solver, monkeypatch):
    x = hard({"primal": 10, "dual": 1}[solver])
    few, many = (
        as_solver(solver, dtype=dtype).forecast(Shape(20, 40, csr(x).nnz)).added_bytes
        for dtype in ("float32", "float64")
    )
    assert few < many
    monkeypatch.setattr("relae.solvers._solver.available_memory", lambda: (few + many) // 2)
    with pytest.raises(PrecisionError, match="the repair in float64 does not fit") as caught:
        solve(csr(x), dense_penalty(x, {"primal": 1.0, "dual": 0.1}[solver]), solver=solver)
    assert isinstance(caught.value.__cause__, PlanError)


def test_no_memory_at_all_is_a_matter_of_the_plan(monkeypatch):
    monkeypatch.setattr("relae.solvers._solver.available_memory", lambda: 1000)
    with pytest.raises(PlanError, match="are available"):
        solve(csr(np.eye(4, dtype=np.float32)), np.ones(4))


@pytest.mark.parametrize("solver", SOLVERS)
def test_memory_that_runs_out_after_all(solver, monkeypatch):
    def fail(*_):
        raise MemoryError("Unable to allocate")

    monkeypatch.setattr(NAMES[solver], "solve", fail)
    with pytest.raises(PlanError, match=f"the {solver} solver could not get its .*Unable to allocate"):
        solve(csr(np.eye(4, dtype=np.float32)), np.ones(4), solver=solver)


def test_auto_repairs_a_dual_fit_by_a_primal_one():
    x = hard(1000)
    penalty = dense_penalty(x, 1.0)
    assert solve(csr(x), penalty, solver="primal").residual <= TOLERANCE  # it can be done
    assert solve(csr(x), penalty, solver="auto").residual <= TOLERANCE


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_penalty_beyond_float32_is_no_trouble(solver):
    x = example(40, 12, weighted=False)
    solution = solve(csr(x), dense_penalty(x, 1e39), solver=solver)
    if solver == "primal":  # the dual form has no such number in its square
        assert solution.plan.dtype == "float64"
    assert np.allclose(solution.inverse.diagonal() * 1e39, 1)


def test_a_penalty_too_small_to_divide_by_is_refused_without_noise():
    x = example(40, 12, weighted=False)
    with pytest.raises(PrecisionError, match="raise l2"):
        solve(csr(x), dense_penalty(x, 1e-320), solver="dual")


@pytest.mark.parametrize("dtype", ["float16", "int32", "complex64", "nonsense", None])
def test_bad_dtype(dtype):
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64'"):
        solve(csr(np.eye(4, dtype=np.float32)), np.ones(4), solver=Auto(dtype=dtype))


def test_bad_solver():
    with pytest.raises(ValueError, match="solver must be 'auto', 'exact', 'primal', 'dual' or 'local', got 'cg'"):
        solve(csr(np.eye(4, dtype=np.float32)), np.ones(4), solver="cg")
