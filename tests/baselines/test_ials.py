"""Alternating least squares beside dense alternating solves in double precision."""

import pickle

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import relae
from relae import DataError, Interactions, PlanError, PrecisionError
from relae._common import memory
from relae.baselines import IALS
from relae.evaluation import evaluate, hold_out_items
from relae.tuning import tune

from ..effort import repeat
from ..oracles import EMPTY_ITEM, brute_force_top_k, csr, example, matrices, new_histories
from ..real_data import real

USERS, ITEMS, DIM = 40, 27, 6
X = example(USERS, ITEMS, weighted=True)
NEW = new_histories(7, ITEMS, weighted=True)


def penalties(x, model):
    """λ (|row| + a · columns)^ν of the rows."""
    return [
        model.l2 * (sum(row) + model.unobserved_weight * x.shape[1]) ** model.frequency_exponent
        for row in x.astype(np.float64)
    ]


def half_step(x, v, model):
    """The best u of every row, by its normal equations."""
    a, found = model.unobserved_weight, []
    for row, penalty in zip(x.astype(np.float64), penalties(x, model), strict=True):
        system = sum((weight * np.outer(v[j], v[j]) for j, weight in enumerate(row)), a * v.T @ v)
        found.append(np.linalg.solve(system + penalty * np.eye(v.shape[1]), v.T @ row))
    return np.array(found)


def start(items, model):
    drawn = np.random.default_rng(model.seed).standard_normal((items, model.dim), np.float32)
    return drawn.astype(np.float64) / np.sqrt(model.dim)


def dense_factors(x, model):
    """U and V after every half step."""
    v, found = start(x.shape[1], model), []
    for _ in range(model.epochs):
        u = half_step(x, v, model)
        found.append((u, v))
        v = half_step(x.T, u, model)
        found.append((u, v))
    return found


def loss(x, u, v, model):
    predicted = u @ v.T
    squares = (x * (1 - predicted) ** 2).sum() + model.unobserved_weight * (predicted**2).sum()
    return squares + penalties(x, model) @ (u**2).sum(axis=1) + penalties(x.T, model) @ (v**2).sum(axis=1)


CASES = [
    IALS(DIM, l2=0.01, unobserved_weight=0.1, epochs=5),
    IALS(DIM, l2=0.5, unobserved_weight=0.01, epochs=3, frequency_exponent=0.0, seed=4),
    IALS(1, l2=0.05, unobserved_weight=0.3, epochs=4, frequency_exponent=0.5),
    IALS(ITEMS + 8, l2=0.02, unobserved_weight=1.0, epochs=3),
]


@pytest.fixture(params=CASES, ids=repr)
def model(request):
    return clone(request.param)


@pytest.mark.parametrize("weighted", [True, False])
def test_scores_are_those_of_dense_alternating_solves(model, weighted):
    x = X if weighted else (X > 0).astype(np.float32)
    _, v = dense_factors(x, model)[-1]
    model.fit(csr(x))
    assert model.item_factors_.dtype == np.float32
    assert np.allclose(model.item_factors_ @ model.item_factors_.T, v @ v.T, atol=1e-4)
    for histories in (x, NEW):
        assert np.allclose(model.score(csr(histories)), half_step(histories, v, model) @ v.T, atol=1e-4)


def test_each_half_step_lowers_the_loss(model):
    """Of the definition; and of the fit, whose user factors are those that fold in."""
    steps = [loss(X, u, v, model) for u, v in dense_factors(X, model)]
    assert (np.diff(steps) <= 1e-9).all()
    fits = []
    for epochs in range(1, 5):
        fitted = clone(model).set_params(epochs=epochs).fit(csr(X))
        u, v = (factors.astype(np.float64) for factors in (fitted._fold_in(csr(X)), fitted.item_factors_))
        fits.append(loss(X, u, v, model))
    assert (np.diff(fits) <= 1e-6 * fits[0]).all()
    assert fits[0] < loss(X, np.zeros((USERS, 1)), np.zeros((ITEMS, 1)), model)


@settings(max_examples=repeat(10, 30))
@given(matrices(max_side=7), st.integers(1, 5), st.floats(0.02, 1.0), st.floats(0.02, 1.0))
def test_any_matrix(x, dim, l2, unobserved_weight):
    x[0, 0] = 1.0
    model = IALS(dim, l2=l2, unobserved_weight=unobserved_weight, epochs=2).fit(csr(x))
    _, v = dense_factors(x, model)[-1]
    assert np.allclose(model.score(csr(x)), half_step(x, v, model) @ v.T, atol=2e-3)


def test_a_training_user_folds_in_to_the_factor_of_a_last_half_step(model):
    model.fit(csr(X))
    v = model.item_factors_.astype(np.float64)
    assert np.allclose(model._fold_in(csr(X)), half_step(X, v, model), atol=1e-4)


def test_the_basis_of_the_factors():
    model = IALS(DIM).fit(csr(X))
    gram = model.item_factors_.T @ model.item_factors_
    assert np.allclose(gram, np.diag(model.spectrum_), atol=1e-5 * model.spectrum_[0])


def test_a_seed_gives_the_same_model_and_another_one_another():
    first, again, other = (IALS(DIM, l2=0.01, seed=seed).fit(csr(X)) for seed in (3, 3, 4))
    assert np.array_equal(first.item_factors_, again.item_factors_)
    assert not np.allclose(first.score(csr(NEW)), other.score(csr(NEW)), atol=1e-4)


def test_the_order_of_users_makes_no_difference():
    order = np.random.default_rng(0).permutation(USERS)
    found = IALS(DIM).fit(csr(X[order])).score(csr(NEW))
    assert np.allclose(found, IALS(DIM).fit(csr(X)).score(csr(NEW)), atol=1e-4)


def test_two_tastes_are_kept_apart():
    rng = np.random.default_rng(0)
    same = (np.arange(40)[:, None] < 20) == (np.arange(24)[None] < 12)
    x = ((rng.random((40, 24)) < 0.5) & same).astype(np.float32)
    history = np.zeros((2, 24), np.float32)
    history[0, [0, 3]] = history[1, [15, 20]] = 1
    ids, _ = IALS(2).fit(csr(x)).recommend(csr(history), 6)
    assert (ids[0] < 12).all()
    assert (ids[1] >= 12).all()


def test_recommendations_are_the_best_scores():
    model = IALS(DIM).fit(csr(X))
    ids, _ = model.recommend(csr(NEW[1:]), 5)
    for row, history, scores in zip(ids, NEW[1:], model.score(csr(NEW[1:])), strict=True):
        assert row.tolist() == brute_force_top_k(scores, 5, set(np.flatnonzero(history)))[0]


def test_an_item_nobody_had_and_an_empty_history_are_scored_zero():
    scores = IALS(DIM).fit(csr(X)).score(csr(NEW))
    assert not scores[:, EMPTY_ITEM].any()
    assert not scores[0].any()


@pytest.mark.parametrize("frequency_exponent", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("unobserved_weight", [0.02, 0.5])
def test_the_mean_penalty_of_a_user_is_what_was_asked_for(frequency_exponent, unobserved_weight):
    """Whatever the other parameters are: so that a search over it is one over the strength of the penalty alone."""
    others = {"unobserved_weight": unobserved_weight, "frequency_exponent": frequency_exponent}
    model = IALS(DIM, 0.7, **others).fit(csr(X))
    given = IALS(DIM, l2=model.l2_, **others).fit(csr(X))
    assert np.mean(penalties(X, given)) == pytest.approx(0.7 * X[X > 0].mean())
    assert np.array_equal(model.score(csr(NEW)), given.score(csr(NEW)))
    assert model.l2 is None


def test_an_l2_that_is_given_counts_and_leaves_no_penalty_to_search():
    loose, strict = (IALS(DIM, penalty, l2=0.01).fit(csr(X)) for penalty in (0.5, 9.0))
    assert np.array_equal(loose.score(csr(NEW)), strict.score(csr(NEW)))
    assert set(IALS(l2=0.01).search_space()) == {"dim", "unobserved_weight"}
    assert set(IALS().search_space()) == set(IALS.SPACE) == {"dim", "penalty", "unobserved_weight"}
    split = hold_out_items(Interactions(csr(X)), rng=np.random.default_rng(0))
    found = tune(IALS(DIM, l2=0.01), split, objective="ndcg@5", budget=2)
    assert set(found.best().parameters) == {"dim", "unobserved_weight"}


def test_the_defaults_suit_short_histories():
    """An average user has 10 films in MovieTweetings, and the λ that suits ML-1M is far too small for that."""
    lines = (real("movietweetings") / "ratings.dat").read_text(encoding="utf-8").splitlines()
    users, items, ratings, _ = zip(*(line.split("::") for line in lines), strict=True)
    frame = pl.DataFrame({"user": users, "item": items, "rating": [float(rating) for rating in ratings]})
    data = Interactions.from_frame(frame, rating="rating", min_rating=7, k_core=5).without_seen()
    assert data.matrix.shape == (3452, 1714)
    split = hold_out_items(data, 0.2, rng=np.random.default_rng(0))
    assert evaluate(IALS().fit(split.train), split, ["ndcg"], [20])["ndcg@20"] > 0.188


@pytest.mark.slow
def test_eight_trials_find_a_better_model_than_eight_of_another_package():
    """irspack 0.5.2 has .2638 on this split of Online Retail after 8 trials; see benchmarks/ials.py."""
    rng = np.random.default_rng(0)
    test = hold_out_items(Interactions.read(real("online-retail") / "interactions.csv.gz"), 0.2, rng=rng)
    valid = hold_out_items(test.train, 0.2, rng=rng)
    found = tune(IALS(), valid, objective="ndcg@20", budget=8, metrics=("ndcg",))
    assert evaluate(found.chosen_model().fit(test.train), test, ["ndcg"], [20])["ndcg@20"] > 0.2638


def test_progress_of_each_half_step():
    done = []
    IALS(DIM, epochs=2).fit(csr(X), progress=lambda stage, fraction: done.append((stage, fraction)))
    assert done == [("least squares", share) for share in (0.25, 0.5, 0.75, 1.0)]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"dim": 0}, "dim must be a whole number of at least 1, got 0"),
        ({"dim": 8.0}, "dim must be a whole number of at least 1, got 8.0"),
        ({"epochs": 0}, "epochs must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"penalty": 0}, "penalty must be a finite number above 0, got 0"),
        ({"l2": 0}, "l2 must be a finite number above 0, got 0"),
        ({"l2": np.inf}, "l2 must be a finite number above 0, got inf"),
        ({"unobserved_weight": np.nan}, "unobserved_weight must be a finite number above 0, got nan"),
        ({"frequency_exponent": -0.5}, "frequency_exponent must be a finite number of at least 0, got -0.5"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        IALS(**parameters).fit(csr(X))


def test_nothing_to_fit():
    with pytest.raises(DataError, match="nothing to fit: 3 users × 4 items"):
        IALS().fit(np.zeros((3, 4)))


def test_factors_that_do_not_fit_into_memory(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(PlanError, match=r"256 factors of each of 40 users and 27 items needs .* dim below 256"):
        IALS().fit(csr(X))


def test_weights_beyond_single_precision_are_refused_and_the_earlier_fit_is_kept():
    model = IALS(DIM).fit(csr(X))
    expected = model.score(csr(NEW))
    model.set_params(l2=1e-30, unobserved_weight=1e-30)
    with pytest.raises(PrecisionError, match="the factors overflowed in epoch 1: raise the penalty, now λ = 1e-30"):
        model.fit(csr(X * 1e30))
    assert np.array_equal(model.set_params(**IALS(DIM).get_params()).score(csr(NEW)), expected)


def test_there_and_back(tmp_path):
    data = Interactions(csr(X), items=[f"item {j}" for j in range(ITEMS)])
    model = IALS(DIM).fit(data)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).score(csr(NEW)), model.score(csr(NEW)))
    model.save(tmp_path / "model")
    found = relae.load(tmp_path / "model", verify=True)
    assert found.get_params() == model.get_params()
    assert found.l2_ == model.l2_
    assert np.array_equal(found.score(csr(NEW)), model.score(csr(NEW)))


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("item_factors", lambda array: array * np.nan, "the factors are not finite"),
        ("spectrum", lambda array: -array, "the spectrum is below 0"),
    ],
)
def test_what_cannot_have_been_saved_is_not_taken_up(name, changed, message):
    state = IALS(DIM).fit(csr(X)).state("fitted")
    with pytest.raises(ValueError, match=message):
        IALS(DIM).restore(state.facts, {**state.arrays, name: changed(state.arrays[name])})
