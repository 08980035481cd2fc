"""RP3β, Turbo-CF, ChebyCF and BSPM beside their equations as dense matrices in double precision."""

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from relae import DataError, Interactions
from relae.baselines import BSPM, GFCF, ChebyCF, RP3Beta, TurboCF
from relae.baselines._chebycf import plateau_coefficients

from ..oracles import EMPTY_ITEM, csr, example, new_histories

USERS, ITEMS, RANK = 32, 20, 5
X = example(USERS, ITEMS, weighted=True)
NEW = new_histories(7, ITEMS, weighted=True)


def power(degrees, exponent):
    return np.array([degree**exponent if degree > 0 else 0.0 for degree in degrees])


def walks(x, alpha, beta):
    """Step by step: from an item to a user, and on to an item."""
    users, items = x.shape
    by_user, by_item = x.sum(axis=1), x.sum(axis=0)
    weights = np.zeros((items, items))
    for i in range(items):
        for j in range(items):
            for u in range(users):
                if x[u, i] > 0 and x[u, j] > 0:
                    weights[i, j] += (x[u, i] / by_item[i]) ** alpha * (x[u, j] / by_user[u]) ** alpha
            weights[i, j] *= power([by_item[j]], -beta)[0]
    return weights


def turbo(x, alpha, exponent, order):
    filtered = power(x.sum(axis=1), -alpha)[:, None] * x * power(x.sum(axis=0), alpha - 1)
    s = np.vectorize(lambda value: value**exponent if value > 0 else 0.0)(filtered.T @ filtered)
    return {1: s, 2: 2 * s - s @ s, 3: s + 0.01 * (-s @ s @ s + 10 * s @ s - 29 * s)}[order]


def spectrum(x):
    """Eigenvalues of R̃ᵀR̃, falling, and its eigenvectors."""
    filtered = power(x.sum(axis=1), -0.5)[:, None] * x * power(x.sum(axis=0), -0.5)
    values, vectors = np.linalg.eigh(filtered.T @ filtered)
    return values[::-1], vectors[:, ::-1]


def cheby(x, order, flatness, alpha, beta, rank):
    """The filter as a function of eigenvalues; the polynomial is NumPy's interpolation of the plateau."""
    values, vectors = spectrum(x)
    fitted = chebyshev.Chebyshev.interpolate(lambda t: 0.5 * (1 - np.sign(t) * np.abs(t) ** flatness), order)
    response = fitted(1 - 2 * values) + alpha * (np.arange(len(values)) < rank)
    degrees = x.sum(axis=0)
    return power(degrees, -beta)[:, None] * (vectors * response @ vectors.T) * power(degrees, beta)


def bspm(x, beta, rank, time, order, merge):
    values, vectors = spectrum(x)
    degrees = x.sum(axis=0)
    smooth = vectors * values @ vectors.T
    low = power(degrees, -0.5)[:, None] * (vectors[:, :rank] @ vectors[:, :rank].T) * power(degrees, 0.5)
    y = smooth + (beta * low if merge == "early" else 0)
    if order == 1:  # Euler
        y = y - time * y @ smooth
    else:  # the classical method, stage by stage
        k1 = -y @ smooth
        k2 = -(y + time / 2 * k1) @ smooth
        k3 = -(y + time / 2 * k2) @ smooth
        k4 = -(y + time * k3) @ smooth
        y = y + time / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y + (beta * low if merge == "late" else 0)


CASES = [
    (RP3Beta(), walks, (1.0, 0.6)),
    (RP3Beta(0.7, 0.0), walks, (0.7, 0.0)),
    (RP3Beta(1.4, 1.1), walks, (1.4, 1.1)),
    (TurboCF(), turbo, (0.6, 0.7, 1)),
    (TurboCF(0.3, 1.4, 2), turbo, (0.3, 1.4, 2)),
    (TurboCF(0.5, 1.0, 3), turbo, (0.5, 1.0, 3)),
    (ChebyCF(rank=RANK), cheby, (8, 1.5, 0.2, 0.4, RANK)),
    (ChebyCF(3, 10.0, 0.5, 0.0, 2), cheby, (3, 10.0, 0.5, 0.0, 2)),
    (ChebyCF(1, 1.0, 0.0, 0.3), cheby, (1, 1.0, 0.0, 0.3, 0)),
    (BSPM(rank=RANK), bspm, (0.2, RANK, 2.5, 4, "early")),
    (BSPM(0.3, 2, 1.2, 1, "late"), bspm, (0.3, 2, 1.2, 1, "late")),
    (BSPM(0.0, order=1, sharpening=0.5), bspm, (0.0, 0, 0.5, 1, "early")),
]


def fitted(model, x=X):
    return type(model)(**model.get_params()).fit(csr(x))


@pytest.fixture(params=CASES, ids=lambda case: repr(case[0]))
def case(request):
    return request.param


@pytest.mark.parametrize("users", [USERS, 14])
def test_scores_of_known_and_new_users(case, users):
    model, weights, parameters = case
    x = X[:users]
    expected = weights(x.astype(np.float64), *parameters)
    for histories in (X, NEW):
        scores = fitted(model, x).score(csr(histories))
        assert scores.dtype == np.float32
        assert np.allclose(scores, histories.astype(np.float64) @ expected, rtol=1e-4, atol=5e-5)


def test_permuting_items_permutes_the_scores(case):
    model, _, _ = case
    order = np.random.default_rng(4).permutation(ITEMS)
    scores = fitted(model, X[:, order]).score(csr(NEW[:, order]))
    assert np.allclose(scores, fitted(model).score(csr(NEW))[:, order], rtol=1e-4, atol=5e-5)


def test_scores_are_linear_in_the_history(case):
    model = fitted(case[0])
    mixed = model.score(csr(2.0 * NEW[1:4] + 0.5 * NEW[2:5]))
    assert np.allclose(mixed, 2.0 * model.score(csr(NEW[1:4])) + 0.5 * model.score(csr(NEW[2:5])), rtol=1e-4, atol=5e-5)


def test_an_item_nobody_had_is_scored_zero(case):
    model = fitted(case[0])
    assert not X[:, EMPTY_ITEM].any()
    assert (model.score(csr(X))[:, EMPTY_ITEM] == 0).all()
    assert (model.score(csr(np.eye(ITEMS, dtype=np.float32)[[EMPTY_ITEM]])) == 0).all()


def test_parameters_that_change_after_a_fit_count_at_the_next_one(case):
    model = fitted(case[0])
    before = model.score(csr(NEW))
    model.set_params(**{parameter.name: parameter.default for parameter in model.PARAMETERS})
    assert np.array_equal(model.score(csr(NEW)), before)


def test_without_sharpening_it_is_gfcf():
    scores = BSPM(0.3, RANK, 0.0).fit(csr(X)).score(csr(NEW))
    assert np.allclose(scores, GFCF(0.3, RANK).fit(csr(X)).score(csr(NEW)), atol=1e-5)


def test_a_plateau_of_flatness_one_is_a_line():
    assert np.allclose(plateau_coefficients(5, 1.0), [0.5, -0.5, 0, 0, 0, 0], atol=1e-6)


@pytest.mark.parametrize("kind", [ChebyCF, BSPM])
def test_an_impossible_rank(kind):
    with pytest.raises(DataError, match="rank must lie between 1 and 19 for 32 users × 20 items, got 20"):
        kind(rank=ITEMS).fit(csr(X))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RP3Beta(beta=-1), "beta must be"),
        (TurboCF(alpha=1.5), "alpha must"),
        (TurboCF(order=4), "order must"),
        (ChebyCF(flatness=0), "flatness must"),
        (BSPM(merge="never"), "merge must be 'early' or 'late'"),
        (BSPM(order=5), "order must"),
    ],
    ids=repr,
)
def test_a_bad_parameter(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(csr(X))


def test_fits_report_how_far_they_are():
    for model in (TurboCF(), ChebyCF(rank=RANK), BSPM(rank=RANK)):
        done = []
        model.fit(Interactions(csr(X)), progress=lambda stage, fraction, done=done: done.append(fraction))
        assert done[-1] == 1.0
