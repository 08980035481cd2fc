"""All six models by both solvers, beside the dense solution of the paper."""

import numpy as np
import pytest
import scipy.sparse as sp

from relae import Interactions, NotFittedError
from relae.models import Explanation, suggested_l2
from relae.solvers import as_solver
from relae.testing import check_recommender

from ..oracles import (
    EMPTY_ITEM,
    brute_force_top_k,
    csr,
    dense_inverse,
    dense_multipliers,
    dense_penalty,
    dense_similarity,
    dense_weights,
    example,
)
from .suite import ITEMS, MODELS, NEW, SOLVERS, STRINGS, USERS, B, X, fitted, raw


@pytest.fixture(params=[(name, solver) for name in MODELS for solver in SOLVERS], ids="-".join)
def case(request):
    return request.param


@pytest.fixture
def model(case):
    return fitted(*case)


@pytest.fixture
def weights(case):
    return B[case[0]]


@pytest.mark.parametrize("name", ["RLAE", "RDLAE"])
def test_the_examples_bind_some_items_and_not_others(name):
    bound = dense_multipliers(X, MODELS[name][2]) > 0
    assert 3 < bound.sum() < ITEMS - 3


def test_it_keeps_the_contract_of_every_recommender(case):
    kind, parameters, _ = MODELS[case[0]]
    check_recommender(kind(**parameters))


# --- numbers -----------------------------------------------------------------------------------------------------


def test_weights(model, weights):
    assert np.allclose(model.weights(), weights, atol=1e-9)


def test_weights_in_float32(case, weights):
    found = fitted(*case, dtype="float32").weights()
    assert found.dtype == np.float32
    assert np.allclose(found, weights, atol=2e-5)


def test_score(model, weights):
    assert np.allclose(model.score(csr(X)), X @ weights, atol=1e-6)
    assert np.allclose(model.score(csr(NEW)), NEW @ weights, atol=1e-6)


def test_score_in_float32(case, weights):
    model = fitted(*case, dtype="float32")
    found = model.score(csr(NEW))
    assert found.dtype == np.float32
    assert np.allclose(found, NEW @ weights, atol=1e-4)


def test_fitted_attributes(case, model):
    name, solver = case
    spec = MODELS[name][2]
    penalty = dense_penalty(X, spec.l2, spec.dropout)
    inverse = dense_inverse(X, penalty)
    assert np.allclose(model.penalty_, penalty)
    assert np.allclose(model.inverse_diagonal_, np.diag(inverse))
    assert np.allclose(model.column_weights(), penalty + dense_multipliers(X, spec))
    free = 1 - penalty * np.diag(inverse)
    assert np.allclose(model.xi_interval_, (free.min(), free.max()), atol=1e-9)
    assert model.l2_ == spec.l2
    assert model.plan_.solver == model.inverse_.solver == solver
    assert 0 <= model.residual_ < 1e-9
    assert model.item_counts_.tolist() == (X > 0).sum(axis=0).tolist()
    assert model.n_users_ == USERS
    assert model.titles_ is None
    assert len(model.items_) == ITEMS


# --- recommendations ---------------------------------------------------------------------------------------------


def check_ranking(found, scores, k, histories, seen=True, banned=()):
    ids, values = found
    assert ids.shape == values.shape == (len(histories), k)
    for row, history in enumerate(histories):
        if not history.any():
            continue  # the popular ones, tested by themselves
        barred = set(np.flatnonzero(history)) if seen else set()
        expected_ids, expected = brute_force_top_k(scores[row], k, barred | set(banned))
        assert ids[row].tolist() == expected_ids
        assert np.allclose(values[row], expected, atol=1e-6)


@pytest.mark.parametrize("k", [1, 5, ITEMS, ITEMS + 5])
@pytest.mark.parametrize("exclude_seen", [True, False])
def test_recommend_known_and_new_users(model, weights, k, exclude_seen):
    for histories in (X, NEW, np.concatenate([NEW[3:5], X[6:9], NEW[5:]])):
        found = model.recommend(csr(histories), k, exclude_seen=exclude_seen)
        assert found[0].dtype == np.int64
        check_ranking(found, histories @ weights, k, histories, exclude_seen)


def test_recommend_with_allow_and_deny(model, weights):
    allow, deny = [1, 4, 5, 9, 11, 12], [4, 9, 17]
    banned = set(range(ITEMS)) - set(allow) | set(deny)
    for exclude_seen in (True, False):
        found = model.recommend(csr(X), 4, allow=allow, deny=deny, exclude_seen=exclude_seen)
        check_ranking(found, X @ weights, 4, X, exclude_seen, banned)
    check_ranking(model.recommend(csr(X), 4, deny=deny), X @ weights, 4, X, True, deny)
    check_ranking(model.recommend(csr(X), 4, allow=allow), X @ weights, 4, X, True, set(range(ITEMS)) - set(allow))


def test_seen_items_never_come_back_in_float32(case):
    model = fitted(*case, dtype="float32")
    ids, scores = model.recommend(csr(X), ITEMS)
    for row, history in enumerate(X):
        given_back = ids[row][ids[row] >= 0]
        if history.any():
            assert not set(given_back) & set(np.flatnonzero(history))
            assert len(given_back) == ITEMS - np.count_nonzero(history)
        assert len(set(given_back)) == len(given_back)
        assert (np.diff(scores[row][ids[row] >= 0]) <= 0).all()
        assert (scores[row][ids[row] < 0] == -np.inf).all()


def test_negative_scores_are_ranked_like_any_other(model, weights):
    scores = X @ weights
    wanted = np.flatnonzero(((scores < 0) & (X == 0)).sum(axis=1) >= 2)
    assert len(wanted) > 3  # the example has what is to be tested
    ids, values = model.recommend(csr(X), ITEMS)
    for row in wanted:
        below = ids[row][(values[row] < 0) & (ids[row] >= 0)]
        assert len(below) >= 2
        assert (np.diff(scores[row, below]) <= 0).all()


def test_the_path_is_recommend_for_each_xi(model):
    xis = [0.0, 0.2, 0.5, 1.0]
    path = model.recommend_path(csr(X), iter(xis), 6, deny=[2])
    assert len(path) == len(xis)
    for xi, (ids, scores) in zip(xis, path, strict=True):
        expected_ids, expected_scores = model.with_xi(xi).recommend(csr(X), 6, deny=[2])
        assert np.array_equal(ids, expected_ids)
        assert np.array_equal(scores, expected_scores)


def test_batches_make_no_difference(model, monkeypatch):
    histories = csr(np.concatenate([NEW, X]))
    whole = model.recommend(histories, 5), model.recommend_path(histories, [0.1, 0.9], 5), model.score(histories)
    whole_weights = model.weights()
    monkeypatch.setattr(type(model.inverse_), "batch_bytes", 3.5 * model.inverse_.bytes_per_user)
    stages = []
    ids, scores = model.recommend(histories, 5, progress=lambda stage, done: stages.append((stage, done)))
    assert len(stages) == 13  # 39 histories, three at a time
    assert stages[-1] == ("recommend", 1.0)
    assert np.array_equal(ids, whole[0][0])
    assert np.allclose(scores, whole[0][1])
    for found, expected in zip(model.recommend_path(histories, [0.1, 0.9], 5), whole[1], strict=True):
        assert np.array_equal(found[0], expected[0])
    assert np.allclose(model.score(histories), whole[2])
    assert np.allclose(model.weights(), whole_weights)
    monkeypatch.setattr(type(model.inverse_), "batch_bytes", 1)  # less than one history
    assert np.array_equal(model.recommend(histories[:4], 5)[0], whole[0][0][:4])


def test_an_empty_history_gets_the_popular_items(model):
    counts = (X > 0).sum(axis=0)
    popular = sorted(range(ITEMS), key=lambda column: (-counts[column], column))
    histories = csr(np.zeros((2, ITEMS), np.float32))
    ids, scores = model.recommend(histories, 6)
    assert ids.tolist() == [popular[:6]] * 2
    assert scores.tolist() == [[0.0] * 6] * 2
    ids, _ = model.recommend(histories, 6, deny=popular[:2], exclude_seen=False)
    assert ids.tolist() == [popular[2:8]] * 2
    ids, scores = model.recommend(histories, 3, allow=popular[4:6])
    assert ids.tolist() == [[*popular[4:6], -1]] * 2
    assert scores.tolist() == [[0, 0, -np.inf]] * 2


def test_an_item_nobody_had_is_scored_zero_and_may_be_recommended(model):
    scores = model.score(csr(X))
    assert np.abs(scores[:, EMPTY_ITEM]).max() < 1e-12
    ids, _ = model.recommend(csr(X), ITEMS)
    assert (ids == EMPTY_ITEM).any(axis=1).all()


def test_no_histories(model):
    ids, scores = model.recommend(csr(np.zeros((0, ITEMS), np.float32)), 3)
    assert ids.shape == scores.shape == (0, 3)
    assert model.score(csr(np.zeros((0, ITEMS), np.float32))).shape == (0, ITEMS)


# --- similar items and explanations ------------------------------------------------------------------------------


def test_similar_items(case, model):
    spec = MODELS[case[0]][2]
    expected = dense_similarity(X, dense_penalty(X, spec.l2, spec.dropout))
    found = np.full((ITEMS, ITEMS), np.nan)
    for item in range(ITEMS):
        ids, scores = model.similar_items(item, ITEMS - 1)
        expected_ids, expected_scores = brute_force_top_k(expected[item], ITEMS - 1, {item})
        if item != EMPTY_ITEM:  # which is equally unlike all others
            assert ids.tolist() == expected_ids
        assert np.allclose(scores, expected_scores, atol=1e-9)
        assert item not in ids
        found[item, ids.astype(int)] = scores
    outside = ~np.eye(ITEMS, dtype=bool)
    assert np.allclose(found[outside], found.T[outside], atol=1e-12)
    assert (np.abs(found[outside]) <= 1).all()


def test_similar_items_do_not_depend_on_xi(model):
    for xi in (0.0, 0.5, 1.0):
        assert np.array_equal(model.with_xi(xi).similar_items(5, 8)[0], model.similar_items(5, 8)[0])


def test_explanations_sum_to_the_score(case, weights):
    model = fitted(*case, ids="str")
    for row in (1, 3, 4):
        history = raw(NEW[row], STRINGS)
        scores = model.score(history)
        for column in range(ITEMS):  # inside the history and outside
            why = model.explain(history, STRINGS[column])
            assert isinstance(why, Explanation)
            assert why.item == STRINGS[column]
            assert why.score == pytest.approx(scores[column], abs=1e-6)
            assert why.contributions.sum() == pytest.approx(why.score)
            assert (np.diff(why.contributions) <= 0).all()
            expected = {STRINGS[i]: NEW[row, i] * weights[i, column] for i in np.flatnonzero(NEW[row])}
            assert dict(zip(why.items, why.contributions, strict=True)) == pytest.approx(expected, abs=1e-9)


def test_several_explanations_in_one_pass(model):
    history = csr(NEW[3:4])
    items = [4, int(history.indices[0]), 4, 0]
    for together, alone in zip(
        model.explain_all(history, items), [model.explain(history, i) for i in items], strict=True
    ):
        assert (together.item, together.items) == (alone.item, alone.items)
        assert together.contributions == pytest.approx(alone.contributions, rel=1e-6)
    assert model.explain_all(history, []) == []


def test_shares_of_an_explanation(model):
    why = model.explain(csr(NEW[3:4]), 1)
    positive = why.contributions[why.contributions > 0]
    assert why.shares[why.contributions > 0].sum() == pytest.approx(1 if len(positive) else 0)
    assert np.array_equal(np.sign(why.shares), np.sign(why.contributions))
    nothing = model.explain([], 1)
    assert (nothing.score, nothing.items, len(nothing.shares)) == (0, [], 0)


# --- fitting -----------------------------------------------------------------------------------------------------


def test_fit_returns_self_and_keeps_the_parameters(case):
    kind, parameters, _ = MODELS[case[0]]
    model = kind(**parameters)
    before = dict(vars(model))
    assert model.fit(csr(X), solver=case[1]) is model
    assert {name: getattr(model, name) for name in before} == before
    assert all(name.endswith("_") for name in set(vars(model)) - set(before))


def test_a_second_fit_refits(case):
    kind, parameters, spec = MODELS[case[0]]
    model = kind(**parameters).fit(csr(X), solver=as_solver(case[1], dtype="float64"))
    shared = model.with_xi(0.5)
    kept = shared.weights()
    other = example(15, 11, weighted=False, seed=9)
    model.fit(Interactions(csr(other), items=[f"x{j}" for j in range(11)]), solver=as_solver(case[1], dtype="float64"))
    assert np.allclose(model.weights(), dense_weights(other, spec), atol=1e-9)
    assert model.recommend(["x1"], 3)[0].shape == (3,)
    assert model.n_users_ == 15
    assert np.array_equal(shared.weights(), kept)  # whoever shared the first fit still has it


def test_every_kind_of_matrix_gives_the_same_fit(case):
    kind, parameters, _ = MODELS[case[0]]
    expected = fitted(*case).weights()
    for data in (X, sp.coo_matrix(X), sp.csc_array(X.astype(np.float64)), Interactions(X, items=STRINGS)):
        assert np.array_equal(
            kind(**parameters).fit(data, solver=as_solver(case[1], dtype="float64")).weights(), expected
        )


def test_permuting_items_permutes_the_weights(case, weights):
    kind, parameters, _ = MODELS[case[0]]
    order = np.random.default_rng(4).permutation(ITEMS)
    found = kind(**parameters).fit(csr(X[:, order]), solver=as_solver(case[1], dtype="float64")).weights()
    assert np.allclose(found, weights[np.ix_(order, order)], atol=1e-9)


def test_permuting_users_changes_nothing(case, weights):
    kind, parameters, _ = MODELS[case[0]]
    found = kind(**parameters).fit(csr(X[::-1]), solver=as_solver(case[1], dtype="float64")).weights()
    assert np.allclose(found, weights, atol=1e-9)


def test_with_xi_shares_the_inverse_and_equals_a_fresh_fit(case, model):
    _, _, spec = MODELS[case[0]]
    for xi in (0.0, 0.3, 1.0):
        other = model.with_xi(xi)
        assert other.inverse_ is model.inverse_
        assert other.xi == xi
        assert (other.l2, other.dropout) == (model.l2, model.dropout)
        assert other is not model
        fresh = type(other)(**other.get_params()).fit(csr(X), solver=as_solver(case[1], dtype="float64"))
        assert np.array_equal(other.weights(), fresh.weights())
        assert np.allclose(other.weights(), dense_weights(X, type(spec)(spec.l2, spec.dropout, xi)), atol=1e-9)
        assert type(other).__name__ == {0.0: "RLAE", 0.4: "RDLAE"}[spec.dropout]
    assert model.xi == spec.xi


def test_without_l2_the_suggested_one_is_used(case):
    kind, parameters, spec = MODELS[case[0]]
    rest = {name: value for name, value in parameters.items() if name != "l2"}
    model = kind(**rest).fit(csr(X), solver=as_solver(case[1], dtype="float64"))
    users_per_item = np.count_nonzero(X) / np.count_nonzero(X.any(axis=0))
    assert model.l2 is None
    assert model.l2_ == pytest.approx(20 * np.sqrt(users_per_item) * np.mean(X[X > 0].astype(np.float64) ** 2))
    assert model.l2_ == suggested_l2(csr(X))
    assert np.allclose(model.weights(), dense_weights(X, type(spec)(model.l2_, spec.dropout, spec.xi)), atol=1e-9)


def test_progress_of_a_fit(case):
    kind, parameters, _ = MODELS[case[0]]
    seen = []
    kind(**parameters).fit(csr(X), progress=lambda *call: seen.append(call), solver=as_solver(case[1], dtype="float64"))
    assert seen[-1] == ("inverse", 1.0)


def test_nothing_works_before_the_fit(case):
    kind, parameters, _ = MODELS[case[0]]
    model = kind(**parameters)
    calls = [
        lambda: model.recommend(csr(X)),
        lambda: model.recommend_path(csr(X), [0.5]),
        lambda: model.score(csr(X)),
        lambda: model.weights(),
        lambda: model.similar_items(0),
        lambda: model.explain([0], 1),
        lambda: model.with_xi(0.5),
        lambda: model.column_weights(),
        lambda: model.xi_interval_,
    ]
    for call in calls:
        with pytest.raises(NotFittedError, match=rf"this {case[0]} is not fitted yet: call fit\(data\) first"):
            call()
