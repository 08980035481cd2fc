"""The paper on one page, as laws."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from relae import algebra

from .oracles import Spec, dense_inverse, dense_multipliers, dense_penalty, dense_weights, matrices, specs


def solved(x, spec):
    """The package's Λ and w beside a dense P."""
    penalty = algebra.penalty((x.astype(np.float64) ** 2).sum(axis=0), spec.l2, spec.dropout)
    inverse = dense_inverse(x, penalty)
    return penalty, inverse, algebra.column_weights(penalty, np.diag(inverse), spec.xi)


def weights(x, spec):
    _, inverse, column_weights = solved(x, spec)
    return np.eye(x.shape[1]) - inverse * column_weights


# --- laws of B ---------------------------------------------------------------------------------------------------


@given(matrices(), specs())
def test_penalty_is_the_papers(x, spec):
    penalty, _, _ = solved(x, spec)
    assert np.allclose(penalty, dense_penalty(x, spec.l2, spec.dropout))


@given(matrices(), specs())
def test_weights_are_those_of_the_lagrangian_form(x, spec):
    assert np.allclose(weights(x, spec), dense_weights(x, spec), atol=1e-9)


@given(matrices(), specs())
def test_diagonal_never_exceeds_xi(x, spec):
    assert (np.diag(weights(x, spec)) <= spec.xi + 1e-9).all()


@given(matrices(), specs())
def test_xi_of_zero_has_a_zero_diagonal(x, spec):
    assert np.abs(np.diag(weights(x, Spec(spec.l2, spec.dropout, 0.0)))).max() < 1e-9


@given(matrices(), st.floats(0.1, 100))
def test_xi_of_one_is_ridge_regression(x, l2):
    found = weights(x, Spec(l2, 0.0, 1.0))
    for column in range(x.shape[1]):
        ridge = Ridge(alpha=l2, fit_intercept=False, solver="cholesky").fit(x.astype(np.float64), x[:, column])
        assert np.allclose(found[:, column], ridge.coef_, atol=1e-6)


@given(matrices(), specs())
def test_xi_of_one_with_dropout_is_generalized_ridge(x, spec):
    found = weights(x, Spec(spec.l2, spec.dropout, 1.0))
    gram = x.T.astype(np.float64) @ x
    expected = np.linalg.solve(gram + np.diag(dense_penalty(x, spec.l2, spec.dropout)), gram)
    assert np.allclose(found, expected, atol=1e-9)


@given(matrices(), specs())
def test_the_kkt_conditions_hold(x, spec):
    penalty, inverse, column_weights = solved(x, spec)
    b = np.eye(x.shape[1]) - inverse * column_weights
    mu = column_weights - penalty
    gram = x.T.astype(np.float64) @ x
    scale = max(1.0, gram.max())
    stationarity = gram @ b - gram + penalty[:, None] * b + np.diag(mu)
    assert np.abs(stationarity).max() <= 1e-9 * scale
    assert (mu >= 0).all()
    assert np.abs(mu * (np.diag(b) - spec.xi)).max() <= 1e-9 * scale  # pressed down, or not pressed at all
    assert np.allclose(mu, dense_multipliers(x, spec), atol=1e-9 * scale)


@given(matrices(), specs())
def test_no_feasible_neighbour_is_better(x, spec):
    b = weights(x, spec)
    penalty = dense_penalty(x, spec.l2, spec.dropout)

    def objective(b):
        return ((x - x @ b) ** 2).sum() + (penalty[:, None] * b**2).sum()

    rng = np.random.default_rng(0)
    best = objective(b)
    for size in (1e-3, 1e-1, 1.0):
        other = b + size * rng.standard_normal(b.shape)
        np.fill_diagonal(other, np.minimum(np.diag(other), spec.xi))
        assert objective(other) >= best * (1 - 1e-9) - 1e-9


# --- the interval of ξ -------------------------------------------------------------------------------------------


@given(matrices(), specs())
def test_outside_the_interval_nothing_changes(x, spec):
    penalty, inverse, _ = solved(x, spec)
    low, high = algebra.xi_interval(penalty, np.diag(inverse))
    assert 0 <= low <= high <= 1
    at = {xi: weights(x, Spec(spec.l2, spec.dropout, xi)) for xi in (0.0, 1.0)}
    assert np.allclose(weights(x, Spec(spec.l2, spec.dropout, high)), at[1.0], atol=1e-9)
    between = (1 + high) / 2
    assert np.allclose(weights(x, Spec(spec.l2, spec.dropout, between)), at[1.0], atol=1e-9)
    # below, all columns are scaled alike and only the diagonal, which is masked, differs in kind
    outside = ~np.eye(x.shape[1], dtype=bool)
    below = weights(x, Spec(spec.l2, spec.dropout, low / 2))
    assert np.allclose(below[outside], (1 - low / 2) * at[0.0][outside], atol=1e-9)


@given(matrices(), specs())
def test_inside_the_interval_something_is_bound_and_something_is_not(x, spec):
    penalty, inverse, _ = solved(x, spec)
    low, high = algebra.xi_interval(penalty, np.diag(inverse))
    assume(high - low > 1e-6)
    bound = dense_multipliers(x, Spec(spec.l2, spec.dropout, (low + high) / 2)) > 0
    assert bound.any()
    assert not bound.all()


@given(matrices(), specs())
def test_unconstrained_share(x, spec):
    penalty, inverse, _ = solved(x, spec)
    free_diagonal = np.diag(weights(x, Spec(spec.l2, spec.dropout, 1.0)))
    assume((np.abs(free_diagonal - spec.xi) > 1e-9).all())
    share = algebra.unconstrained_share(penalty, np.diag(inverse), spec.xi)
    assert share == pytest.approx(np.mean(dense_multipliers(x, spec) == 0))


@given(matrices(), specs(), st.floats(0, 1))
def test_a_larger_xi_never_raises_a_column_weight(x, spec, other):
    penalty, inverse, _ = solved(x, spec)
    low, high = sorted((spec.xi, other))
    at_low, at_high = (algebra.column_weights(penalty, np.diag(inverse), xi) for xi in (low, high))
    assert (at_high <= at_low).all()


# --- names and errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dropout", "xi", "name"),
    [
        (0, 1, "LAE"),
        (0.0, 0.0, "EASE"),
        (0, 0.4, "RLAE"),
        (0.3, 1.0, "DLAE"),
        (0.3, 0, "EDLAE"),
        (0.3, 1e-9, "RDLAE"),
    ],
)
def test_model_name(dropout, xi, name):
    assert algebra.model_name(dropout, xi) == name


COUNTS = np.array([3.0, 0.0, 5.0])


@pytest.mark.parametrize("l2", [-1, -1e-9, np.nan, np.inf])
def test_bad_l2(l2):
    with pytest.raises(ValueError, match=rf"l2 must be a finite number of at least 0, got {l2!r}"):
        algebra.penalty(COUNTS, l2)


@pytest.mark.parametrize("dropout", [-0.1, 1, 1.5, np.nan])
def test_bad_dropout(dropout):
    with pytest.raises(ValueError, match=r"dropout must lie in \[0, 1\), got"):
        algebra.penalty(COUNTS, 1.0, dropout)


@pytest.mark.parametrize("xi", [-0.1, 1.0001, np.nan, np.inf])
def test_bad_xi(xi):
    with pytest.raises(ValueError, match=r"xi must lie in \[0, 1\], got"):
        algebra.check_xi(xi)
    with pytest.raises(ValueError, match=r"xi must lie in \[0, 1\], got"):
        algebra.column_weights(np.ones(2), np.ones(2), xi)


def test_no_penalty_at_all():
    with pytest.raises(ValueError, match=r"3 of 3 items have no penalty with l2=0, dropout=0.0: set l2 above 0"):
        algebra.penalty(COUNTS, 0)
    with pytest.raises(ValueError, match=r"1 of 3 items have no penalty with l2=0, dropout=0.5: set l2 above 0"):
        algebra.penalty(COUNTS, 0, 0.5)
    assert algebra.penalty(COUNTS[[0, 2]], 0, 0.5).tolist() == [3, 5]


@pytest.mark.parametrize("name", ["l2", "xi", "dropout"])
def test_parameters_that_are_no_numbers(name):
    with pytest.raises(ValueError, match=name):
        algebra.check_xi("a") if name == "xi" else algebra.penalty(COUNTS, **{"l2": 1.0, name: "a"})
