"""Normalized users and items, emphasis, and features: against dense float64, and as laws."""

import inspect
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from relae import Interactions, load
from relae.algebra import Dial, user_weights
from relae.errors import ApproximationWarning, DataError, PlanError
from relae.evaluation import evaluate, hold_out_users
from relae.models import DAN, DEQL, DLAE, EASE, EDLAE, RDLAE, RLAE
from relae.solvers import Auto, DualInverse, Local, NewItems, PrimalInverse, Rows, as_solver, solve

SOLVERS = ["primal", "dual", "local"]


def random_matrix(m=60, n=25, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    x = (rng.random((m, n)) < rng.uniform(0.05, 0.6, n)).astype(np.float64)
    x[np.arange(m), rng.integers(0, n, m)] = 1.0
    x[0] = 1.0  # one user has everything, so that every item has every other one as a neighbour
    return x * rng.choice([0.5, 1.0, 2.0], x.shape) if weighted else x


def dense_scorer(x, model, features=None, weight=0.0):
    """S with scores = histories @ S, from the definition."""
    n = x.shape[1]
    d, counts = np.maximum((x > 0).sum(1), 1.0), (x > 0).sum(0)
    popularity = np.maximum(counts, 1.0)
    gram = x.T @ (x * d[:, None] ** -model.user_norm)
    plain = (x**2).sum(0)
    if features is not None:
        gram += weight * features @ features.T
        plain = plain + weight * (features**2).sum(1)
    penalty = model.dropout / (1 - model.dropout) * plain + model.l2
    inverse = np.linalg.inv(gram + np.diag(penalty))
    if features is not None:  # whoever has no users is fitted to features alone
        gram = weight * features @ features.T
        alone = model.dropout / (1 - model.dropout) * np.diag(gram) + model.l2
        inverse[:, counts == 0] = np.linalg.inv(gram + np.diag(alone))[:, counts == 0]
    w = np.maximum(penalty, (1 - model.xi) / np.diag(inverse))
    b = np.eye(n) - inverse * w
    propensity = np.maximum(np.sqrt(counts / counts.max()), 0.01)
    outer = popularity**-model.item_norm * propensity**-model.propensity
    return popularity[:, None] ** model.item_norm * b * outer


def best(scores, x, k):
    masked = np.where(x > 0, -np.inf, scores)
    return np.sort(masked, axis=1)[:, ::-1][:, :k]


def fitted(x, solver="primal", dtype="float64", **parameters):
    given = {"l2": 3.0, "dropout": 0.4, "xi": 0.2, "user_norm": 0.5, "item_norm": 0.3, "propensity": 0.2} | parameters
    fit = {name: given.pop(name) for name in ("item_features", "feature_weight") if name in given}
    return DAN(**given).fit(sp.csr_array(x), **fit, solver=as_solver(solver, dtype=dtype, neighbours=x.shape[1]))


# --- against the definition --------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("weight", [0.0, 2.0])
def test_scores_are_those_of_the_definition(solver, weight):
    x = random_matrix()
    x[:, 3] = 0.0  # an item that nobody has
    features = np.random.default_rng(1).random((25, 4))
    model = fitted(x, solver, item_features=features, feature_weight=weight)
    scorer = dense_scorer(x, model, features, weight)
    others = random_matrix(30, seed=2)
    for histories in (x, others):
        given = sp.csr_array(histories)
        assert np.allclose(model.score(given), histories @ scorer, atol=2e-6)
        assert np.allclose(model.recommend(given, 5)[1], best(histories @ scorer, histories, 5), atol=2e-6)
        whole = np.sort(histories @ scorer, axis=1)[:, ::-1][:, :5]
        assert np.allclose(model.recommend(given, 5, exclude_seen=False)[1], whole, atol=2e-6)
    assert np.allclose(model.weights(), scorer, atol=1e-6)
    assert np.allclose(model.weight_rows(np.array([7, 2])), scorer[[7, 2]], atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_explanations_add_up_to_scores(solver):
    x = random_matrix()
    model = fitted(x, solver)
    scorer = dense_scorer(x, model)
    history = sp.csr_array(x[:1])
    for why in model.explain_all(history, [0, 5, 11]):
        assert why.score == pytest.approx((x[0] @ scorer)[why.item], abs=2e-6)
        by_item = dict(zip(why.items, why.contributions, strict=True))
        for item, part in by_item.items():
            assert part == pytest.approx(x[0, item] * scorer[item, why.item], abs=2e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_path_of_dials_is_each_model_with_its_dials(solver):
    x = random_matrix()
    model = fitted(x, solver)
    dials = [Dial(0.2, 0.3, 0.1), Dial(0.0), Dial(1.0, 0.3), Dial(0.5, 0.6), Dial(0.0, 0.0, 1.0)]
    lists = model.recommend_path(sp.csr_array(x), dials, 6)
    for dial, (ids, scores) in zip(dials, lists, strict=True):
        turned = model.with_dials(**dial._asdict())
        assert isinstance(turned, DAN)
        assert turned.inverse_ is model.inverse_
        expected = turned.recommend(sp.csr_array(x), 6)
        assert np.array_equal(ids, expected[0])
        assert np.allclose(scores, best(x @ dense_scorer(x, turned), x, 6), atol=2e-6)
    [(ids, _)] = model.recommend_path(sp.csr_array(x), [0.7], 6)  # a number is ξ; the other dials stay
    assert np.array_equal(ids, model.with_xi(0.7).recommend(sp.csr_array(x), 6)[0])


def test_any_linear_model_has_the_dials():
    x = random_matrix()
    for plain in (EASE(3.0), EDLAE(3.0, 0.4), RDLAE(3.0, 0.4, 0.2)):
        model = plain.fit(sp.csr_array(x))
        turned = model.with_dials(item_norm=0.4)
        assert turned.get_params()["item_norm"] == 0.4
        assert turned.xi == model.xi
        assert np.allclose(turned.score(sp.csr_array(x)), x @ dense_scorer(x, turned), atol=1e-4)
        assert np.array_equal(
            model.with_dials(xi=0.5).score(sp.csr_array(x)), model.with_xi(0.5).score(sp.csr_array(x))
        )


# --- laws --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_without_norms_it_is_rdlae_to_the_last_bit(solver, dtype):
    x = sp.csr_array(random_matrix(80, 40))
    how = as_solver(solver, dtype=dtype, neighbours=20)
    ours = DAN(3.0, 0.4, 0.2, 0.0, 0.0, 0.0).fit(x, solver=how)
    theirs = RDLAE(3.0, 0.4, 0.2).fit(x, solver=how)
    for mine, other in zip(ours.recommend(x, 10), theirs.recommend(x, 10), strict=True):
        assert np.array_equal(mine, other)
    assert np.array_equal(ours.score(x), theirs.score(x))
    assert np.array_equal(ours.weights(), theirs.weights())
    assert ours.residual_ == theirs.residual_


@pytest.mark.parametrize("solver", SOLVERS)
def test_scaling_all_weights_of_users_scales_the_penalty(solver):
    x = sp.csr_array(random_matrix())
    weights = np.random.default_rng(3).uniform(0.2, 3.0, 60)
    penalty = np.random.default_rng(4).uniform(1.0, 5.0, 25)
    how = as_solver(solver, dtype="float64", neighbours=25)
    one = solve(Rows(x, weights), penalty, solver=how).inverse
    other = solve(Rows(x, 7.0 * weights), 7.0 * penalty, solver=how).inverse
    everything = np.arange(25)
    assert np.allclose(one.rows(everything), 7.0 * other.rows(everything), atol=1e-12)
    dense = np.linalg.inv(x.toarray().T @ (x.toarray() * weights[:, None]) + np.diag(penalty))
    assert np.allclose(one.rows(everything), dense, atol=1e-12)
    assert np.allclose(one.project(x), x.toarray() @ dense, atol=1e-6)


def test_users_who_are_equally_active_only_scale_l2():
    rng = np.random.default_rng(5)
    x = np.zeros((40, 20))
    for row in x:
        row[rng.choice(20, 6, replace=False)] = 1.0
    given = sp.csr_array(x)
    ours = DAN(4.0 * 6**-0.7, 0.0, 0.2, user_norm=0.7).fit(given, solver=Auto(dtype="float64"))
    theirs = RLAE(4.0, 0.2).fit(given, solver=Auto(dtype="float64"))
    assert np.allclose(ours.weights(), theirs.weights(), atol=1e-12)


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_the_order_of_users_and_items_does_not_matter(solver):
    x = random_matrix()
    rng = np.random.default_rng(6)
    users, items = rng.permutation(60), rng.permutation(25)
    model, moved = fitted(x, solver), fitted(x[users][:, items], solver)
    assert np.allclose(moved.weights(), model.weights()[np.ix_(items, items)], atol=1e-10)


def test_primal_dual_and_full_supports_agree():
    x = random_matrix()
    found = [fitted(x, solver).weights() for solver in SOLVERS]
    assert np.allclose(found[0], found[1], atol=1e-10)
    assert np.allclose(found[0], found[2], atol=1e-10)


def test_a_larger_norm_recommends_rarer_items():
    x = random_matrix(400, 60, weighted=False)
    model = DAN(5.0, 0.3, item_norm=0.0).fit(sp.csr_array(x))
    counts = x.sum(0)
    shown = [
        counts[model.with_dials(**{name: value}).recommend(sp.csr_array(x), 5)[0]].mean()
        for name in ("item_norm", "propensity")
        for value in (0.0, 0.4, 0.8)
    ]
    assert shown[0] > shown[1] > shown[2]
    assert shown[3] > shown[4] > shown[5]


def test_user_weights():
    assert user_weights(np.array([0, 1, 4, 100]), 0.5).tolist() == [1.0, 1.0, 0.5, 0.1]


@pytest.mark.parametrize("name", ["user_norm", "item_norm", "propensity"])
@pytest.mark.parametrize("value", [-1.5, 3, float("nan"), "much", None, True])
def test_wrong_norms(name, value):
    with pytest.raises(ValueError, match=f"{name} must lie in"):
        DAN(1.0, **{name: value}).fit(sp.csr_array(random_matrix()))


# --- the form that suits many histories --------------------------------------------------------------------------


def test_many_scaled_histories_are_worth_another_form():
    x = sp.csr_array(random_matrix(40, 50))
    model = fitted(x.toarray(), "dual")
    assert isinstance(model.for_many(40).inverse_, PrimalInverse)
    assert isinstance(model.for_many(5).inverse_, DualInverse)
    assert isinstance(model.for_many(5, [Dial(0.1, 0.1 * step) for step in range(4)]).inverse_, PrimalInverse)
    assert isinstance(model.for_many(40, [Dial(0.1), Dial(0.5)]).inverse_, DualInverse)
    assert isinstance(model.inverse_, DualInverse)
    for mine, other in zip(model.for_many(40).recommend(x, 10), model.recommend(x, 10), strict=True):
        assert np.allclose(mine, other, atol=1e-9)
    assert fitted(x.toarray(), "primal").for_many(10_000).inverse_.solver == "primal"


def test_without_memory_the_form_stays(monkeypatch):
    model = fitted(random_matrix(40, 50), "dual")
    monkeypatch.setattr("relae.solvers._dual.available_memory", lambda: 50 * 50 * 8)
    assert model.for_many(1000) is model


def test_evaluation_takes_dials():
    data = Interactions(sp.csr_array(random_matrix(200, 30)))
    split = hold_out_users(data, 0.2, rng=np.random.default_rng(0))
    model = DAN(3.0, user_norm=0.4).fit(split.train)
    dials = [Dial(0.1, 0.2), Dial(0.1, 0.0), Dial(0.9, 0.2, 0.3)]
    found = evaluate(model, split, ["ndcg"], [10], xis=dials)
    for dial, result in zip(dials, found, strict=True):
        assert result.dial == dial
        assert result.xi == dial.xi
        assert f"α = {dial.item_norm:g}" in result.label
        assert result["ndcg@10"] == evaluate(model.with_dials(**dial._asdict()), split, ["ndcg"], [10])["ndcg@10"]
    assert found[0].records()[0]["item_norm"] == 0.2


# --- on disk, smaller, with new users ----------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("form", ["fitted", "auto"])
def test_a_saved_model_is_the_same(solver, form, tmp_path):
    x = random_matrix()
    features = sp.lil_array(np.random.default_rng(1).random((25, 3)) < 0.3, dtype=np.float32)
    x[:, 7] = 0.0
    features[7, 1] = 1.0
    model = fitted(x, solver, item_features=features, feature_weight=4.0)
    assert isinstance(model.inverse_, NewItems)
    model.save(tmp_path / "model", form=form)
    opened = load(tmp_path / "model")
    assert isinstance(opened, DAN)
    assert opened.get_params() == model.get_params()
    assert np.allclose(opened.score(sp.csr_array(x)), model.score(sp.csr_array(x)), atol=1e-9)
    assert opened.feature_weight_ == 4.0
    assert (opened.item_features_ != features.tocsr()).nnz == 0
    again = load(tmp_path / "model").with_dials(item_norm=0.0)
    assert np.allclose(again.score(sp.csr_array(x)), model.with_dials(item_norm=0.0).score(sp.csr_array(x)), atol=1e-9)


def similarities(model, items):
    """The similarities of each item to all others, by column."""
    found = np.zeros((items, items))
    for item in range(items):
        ids, scores = model.similar_items(item, items - 1)
        found[item, ids.astype(int)] = scores
    return found


@pytest.mark.parametrize(
    ("solver", "form"),
    [(own, form) for own in SOLVERS for form in ("fitted", "auto", own)] + [("dual", "primal")],
)
@pytest.mark.parametrize("supports", ["cosine", "weights"])
def test_new_items_survive_every_form_on_disk(solver, form, supports, tmp_path):
    x = random_matrix()
    x[:, [7, 12]] = 0.0
    features = np.random.default_rng(1).random((25, 3))
    model = fitted(x, solver, item_features=features, feature_weight=4.0)
    model.save(tmp_path / "model", form=form)
    opened = load(tmp_path / "model", verify=True)
    given = sp.csr_array(x)
    assert isinstance(opened.inverse_, NewItems)
    assert opened.inverse_.solver == ("primal" if form in ("auto", "primal") and solver == "dual" else solver)
    assert np.allclose(opened.score(given), model.score(given), atol=1e-9)
    ours, theirs = (each.compact(given, per_item=25, supports=supports) for each in (opened, model))
    assert np.allclose(ours.weights(), theirs.weights(), atol=1e-9)
    assert np.allclose(ours.weights(), model.weights(), atol=1e-6)  # with all items in every support
    assert np.allclose(similarities(opened, 25), similarities(model, 25), atol=1e-9)


def test_supports_by_weights_are_those_of_the_inverse_that_is_solved_again():
    x = random_matrix()
    x[:, [7, 12]] = 0.0
    features = np.random.default_rng(1).random((25, 3))
    model = fitted(x, item_features=features, feature_weight=4.0)
    base = np.abs(model.inverse_.base.square)
    pattern = model.compact(sp.csr_array(x), per_item=5, supports="weights").inverse_.base.columns.toarray() != 0
    for item in range(25):
        others = np.argsort(-np.where(np.arange(25) == item, np.inf, base[:, item]), kind="stable")[:5]
        assert set(np.flatnonzero(pattern[:, item])) <= set(others)


def test_models_saved_without_the_diagonal_of_features_still_open():
    x, features = blocks()
    inverse = EASE(1.0).fit(sp.csr_array(x), item_features=features).inverse_
    arrays = inverse.arrays()
    del arrays["new_diagonal"]
    assert np.array_equal(NewItems.around(inverse.base, arrays).other_diagonal, inverse.other_diagonal)


@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("with_features", [False, True])
def test_a_compact_model_solves_the_same_closed_form(solver, with_features):
    x = random_matrix()
    x[:, 7] = 0.0
    features = np.random.default_rng(1).random((25, 3)) if with_features else None
    model = fitted(x, solver, item_features=features)
    small = model.compact(sp.csr_array(x), per_item=25)
    assert np.allclose(small.weights(), model.weights(), atol=1e-6)
    if solver == "dual":  # it holds its training data
        assert np.allclose(model.compact(per_item=25).weights(), model.weights(), atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("with_features", [False, True])
@pytest.mark.parametrize("user_norm", [0.0, 0.6])
def test_an_update_is_a_fit_to_all(solver, with_features, user_norm):
    x, new = random_matrix(), random_matrix(4, seed=9)
    features = np.random.default_rng(1).random((25, 3)) if with_features else None
    parameters = {"item_features": features, "user_norm": user_norm, "dropout": 0.0 if solver == "dual" else 0.4}
    model = fitted(x, solver, **parameters)
    if solver == "primal":
        model = fitted(x, solver, **parameters | {"dropout": 0.0})
        parameters["dropout"] = 0.0
    updated = model.update(sp.csr_array(new), sp.csr_array(x))
    whole = fitted(np.vstack([x, new]), solver, **parameters)
    assert np.allclose(updated.weights(), whole.weights(), atol=1e-6)
    assert np.allclose(updated.score(sp.csr_array(new)), whole.score(sp.csr_array(new)), atol=1e-5)
    if solver == "dual":
        assert np.allclose(updated.compact(per_item=25).weights(), whole.weights(), atol=1e-6)


# --- features ----------------------------------------------------------------------------------------------------


def blocks():
    """Two kinds of items, and users who like one kind: item 0 of the first kind and item 10 have no users."""
    rng = np.random.default_rng(0)
    x = np.zeros((200, 20))
    for user, row in enumerate(x):
        row[(user % 2) * 10 + 1 + rng.choice(9, 4, replace=False)] = 1.0
    features = np.zeros((20, 2), np.float32)
    features[:10, 0] = features[10:, 1] = 1.0
    return x, features


@pytest.mark.parametrize("kind", [EASE, DAN, RDLAE])
@pytest.mark.parametrize("solver", SOLVERS)
def test_an_item_without_users_is_known_by_its_features(kind, solver):
    x, features = blocks()
    model = kind(1.0).fit(sp.csr_array(x), item_features=features, feature_weight=20.0, solver=solver)
    scores = model.score(sp.csr_array(x[:2]))
    assert scores[0, 0] > 0.05 > 0.005 > abs(scores[0, 10])
    assert scores[1, 10] > 0.05 > 0.005 > abs(scores[1, 0])
    ids, _ = model.recommend(sp.csr_array(x[:2]), 1, allow=[0, 10])
    assert ids.tolist() == [[0], [10]]
    assert model.item_counts_[[0, 10]].tolist() == [0, 0]


def test_users_do_not_refuse_what_is_new():
    """A new item's column is what a fit to the features alone gives; those of others do not change."""
    x, features = blocks()
    features = features + np.random.default_rng(1).random(features.shape).astype(np.float32)
    how = Auto(dtype="float64")
    model = EDLAE(1.0, 0.3).fit(sp.csr_array(x), item_features=features, feature_weight=5.0, solver=how)
    alone = EDLAE(1.0, 0.3).fit(sp.csr_array(np.sqrt(5.0) * features.T), solver=how)
    whole = EDLAE(1.0, 0.3).fit(sp.csr_array(np.vstack([x, np.sqrt(5.0) * features.T])), solver=how)
    new = model.item_counts_ == 0
    assert np.flatnonzero(new).tolist() == [0, 10]
    assert np.allclose(model.weights()[:, new], alone.weights()[:, new], atol=1e-6)
    assert np.allclose(model.weights()[:, ~new], whole.weights()[:, ~new], atol=1e-6)


def groups_of_three(seed=0):
    """27 items in groups that share a feature and users, and three without users in the first groups."""
    rng = np.random.default_rng(seed)
    x = np.zeros((800, 30))
    for row in x:
        row[3 * rng.integers(9) + rng.choice(3, 2, replace=False)] = 1.0
        row[rng.integers(27)] = 1.0
    features = np.eye(9, dtype=np.float32)[[*np.repeat(np.arange(9), 3), 0, 1, 2]]
    return x, features


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_new_items_are_similar_by_their_features_and_others_by_all(solver, dtype):
    x, features = groups_of_three()
    how = as_solver(solver, dtype=dtype, neighbours=30)
    model = EASE(1.0).fit(sp.csr_array(x), item_features=features, feature_weight=10.0, solver=how)
    alone = 10.0 * features @ features.T + np.eye(30)
    wanted = [
        -inverse / np.sqrt(np.outer(*2 * [np.diag(inverse)]))
        for inverse in map(np.linalg.inv, (alone, x.T @ x + alone))
    ]
    new = model.item_counts_ == 0
    pairs = new[:, None] | new
    found, outside = similarities(model, 30), ~np.eye(30, dtype=bool)
    assert np.allclose(found[pairs & outside], wanted[0][pairs & outside], atol=1e-5)
    if solver != "local":  # which leaves out those who share no user
        assert np.allclose(found[~pairs & outside], wanted[1][~pairs & outside], atol=1e-5)
        assert np.allclose(found, found.T, atol=1e-6)
    assert found.max() <= 1.0
    assert model.similar_items(0)[0][0] == 27
    assert sorted(model.similar_items(27)[0][:3]) == [0, 1, 2]
    assert model.similar_items(27)[1].dtype == model.inverse_.dtype


def test_a_similarity_reads_no_diagonal_again(monkeypatch):
    x, features = groups_of_three()
    model = EASE(1.0).fit(sp.csr_array(x), item_features=features, solver="dual")
    wanted = similarities(model, 30)
    monkeypatch.setattr(DualInverse, "diagonal", lambda self: pytest.fail("this takes all items"))
    assert np.array_equal(similarities(model, 30), wanted)
    assert np.array_equal(similarities(model.with_xi(0.4), 30), wanted)


def test_new_items_need_a_penalty_in_the_inverse_of_features():
    x, features = groups_of_three()
    x[:3, [28, 29]] = 1.0  # item 27 alone is new
    few = features * np.isin(np.arange(30), [0, 1, 2, 5, 27])[:, None]
    said = r"1 items have no users .* 25 of 30 items have no features, and with l2=0.0 no penalty: new items need an l2"
    with pytest.raises(ValueError, match=said):
        RDLAE(0.0, 0.5).fit(sp.csr_array(x), item_features=few)
    for l2, given in ((0.1, few), (0.0, features)):  # either is enough
        model = RDLAE(l2, 0.5).fit(sp.csr_array(x), item_features=given)
        assert model.inverse_.items.tolist() == [27]
        assert np.isfinite(model.weights()).all()


@pytest.mark.parametrize("known", [False, True])
def test_an_update_refuses_features_of_items_that_it_does_not_know(known):
    x, features = blocks()
    x[:2, [0, 10]] = 1.0  # nothing is new
    old = Interactions(sp.csr_array(x[:, :18]), features=features[:18] if known else None)
    model = EASE(1.0).fit(old, solver=Auto(dtype="float64"))
    users = np.eye(2, 20) + np.eye(2, 20, 18)
    for rows in (users, np.eye(2, 20)):  # also if nobody has them yet
        new = Interactions(sp.csr_array(rows), features=features)
        with pytest.raises(DataError, match=r"2 items that are new to the model have features, which need a fit"):
            model.update(new)
    without = model.update(Interactions(sp.csr_array(users)))
    described = features.copy()
    described[18:] = 0.0  # items that the model knows keep the features that it knows
    same = model.update(Interactions(sp.csr_array(users), features=described))
    assert np.array_equal(same.weights(), without.weights())


@pytest.mark.parametrize("nearest_by", ["cosine", "count"])
@pytest.mark.parametrize("user_norm", [0.0, 0.5])
def test_a_local_update_follows_features_below_zero(nearest_by, user_norm):
    """Items that share no user with those of the new users, but features below 0, or of both signs, that cancel out."""
    x = np.zeros((40, 12))
    rng = np.random.default_rng(2)
    for user, row in enumerate(x):
        row[(user % 3) * 4 + rng.choice(4, 2, replace=False)] = rng.choice([1.0, 2.0], 2)
    features = np.zeros((12, 2))
    features[:8, 0], features[8:, 1] = [-1.0, -0.8, -1.2, -0.9, -0.7, -0.3, -1.1, -0.5], 0.4
    features[[1, 2], 1] = -0.6, 0.6
    new = np.zeros((2, 12))
    new[:, [1, 2]] = 1.0
    how = Local(6, nearest_by, dtype="float64")

    def fit(rows):
        return DAN(2.0, 0.4, user_norm=user_norm).fit(
            sp.csr_array(rows), item_features=features, feature_weight=3.0, solver=how
        )

    model, whole = fit(x), fit(np.vstack([x, new]))
    updated = model.update(sp.csr_array(new), sp.csr_array(x))
    changed = np.abs(model.inverse_.columns - whole.inverse_.columns).max(axis=0).toarray().ravel() > 1e-6
    assert changed[4:8].any()
    assert changed[8:].any()
    assert np.allclose(updated.weights(), whole.weights(), atol=1e-9)
    assert np.allclose(updated.inverse_.columns.toarray(), whole.inverse_.columns.toarray(), atol=1e-9)


def test_too_many_features_for_a_square_of_them(monkeypatch):
    x, features = blocks()

    def refuse(*_, **__):
        raise PlanError("no room")

    monkeypatch.setattr("relae.models._rows.solve", refuse)
    with pytest.warns(ApproximationWarning, match="2 items have no users, and 2 features are too many"):
        model = EASE(1.0).fit(sp.csr_array(x), item_features=features, feature_weight=9.0, solver=Auto(dtype="float64"))
    theirs = EASE(1.0).fit(sp.csr_array(np.vstack([x, 3.0 * features.T])), solver=Auto(dtype="float64"))
    assert np.allclose(model.weights(), theirs.weights(), atol=1e-12)


def test_features_as_rows_are_pseudo_users():
    x, features = blocks()
    x[:2, [0, 10]] = 1.0  # nothing is new
    ours = EASE(1.0).fit(sp.csr_array(x), item_features=features, feature_weight=9.0, solver=Auto(dtype="float64"))
    theirs = EASE(1.0).fit(sp.csr_array(np.vstack([x, 3.0 * features.T])), solver=Auto(dtype="float64"))
    assert np.allclose(ours.weights(), theirs.weights(), atol=1e-12)
    sparse = EASE(1.0).fit(
        sp.csr_array(x), item_features=sp.csc_array(features), feature_weight=9.0, solver=Auto(dtype="float64")
    )
    assert np.array_equal(ours.weights(), sparse.weights())


def test_features_of_the_data_are_used_unless_they_weigh_nothing():
    x, features = blocks()
    data = Interactions(sp.csr_array(x), features=features)
    with_them = EASE(1.0).fit(data, feature_weight=9.0)
    assert np.array_equal(
        with_them.weights(), EASE(1.0).fit(sp.csr_array(x), item_features=features, feature_weight=9.0).weights()
    )
    without = EASE(1.0).fit(data, feature_weight=0.0)
    assert np.array_equal(without.weights(), EASE(1.0).fit(sp.csr_array(x)).weights())
    assert without.item_features_ is None


def test_the_suggested_penalty_does_not_depend_on_features():
    x, features = blocks()
    assert EASE().fit(sp.csr_array(x)).l2_ == EASE().fit(sp.csr_array(x), item_features=features).l2_


def test_wrong_features():
    x, features = blocks()
    with pytest.raises(DataError, match="19 rows of features for 20 items"):
        EASE(1.0).fit(sp.csr_array(x), item_features=features[1:])
    for wrong in (-1.0, float("nan"), "much", True):
        with pytest.raises(ValueError, match="feature_weight must be a finite number"):
            EASE(1.0).fit(sp.csr_array(x), item_features=features, feature_weight=wrong)
    bad = features.copy()
    bad[3, 1] = np.nan
    with pytest.raises(DataError):
        EASE(1.0).fit(sp.csr_array(x), item_features=bad)


# --- emphasis ----------------------------------------------------------------------------------------------------


def expected_optimum(x, l2, dropout, kept):
    """Minimize the expected loss by adding up every way in which a user's items can be dropped."""
    n = x.shape[1]
    stays = 1.0 - dropout
    mean_weight = dropout + stays * kept
    optimum = np.zeros((n, n))
    for j in range(n):
        left, right = np.zeros((n, n)), np.zeros(n)
        for row in x:
            for mask in product([0.0, 1.0], repeat=n):
                z = np.array(mask)
                probability = np.prod(np.where(z > 0, stays, dropout))
                weight = probability * (kept if z[j] else 1.0)
                left += weight * np.outer(z * row, z * row)
                right += weight * z * row * row[j]
        optimum[:, j] = np.linalg.solve(left + l2 * mean_weight * stays**2 * np.eye(n), right)
    return optimum


@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("kept", [0.0, 0.2, 1.0, 3.0])
@pytest.mark.parametrize("dropout", [0.2, 0.7])
def test_emphasis_is_the_optimum_of_the_expected_loss(solver, kept, dropout):
    x = random_matrix(5, 4, seed=3)
    model = DEQL(0.7, dropout, kept).fit(sp.csr_array(x), solver=as_solver(solver, dtype="float64"))
    found, wanted = model.weights(), (1.0 - dropout) * expected_optimum(x, 0.7, dropout, kept)
    outside = ~np.eye(4, dtype=bool)
    assert np.allclose(found[outside], wanted[outside], atol=1e-7)


def test_emphasis_goes_from_edlae_to_dlae():
    x = sp.csr_array(random_matrix())
    for kept, other in ((0.0, EDLAE(3.0, 0.4)), (1.0, DLAE(3.0, 0.4))):
        ours = DEQL(3.0, 0.4, kept).fit(x, solver=Auto(dtype="float64"))
        assert np.allclose(
            ours.column_weights(), other.fit(x, solver=Auto(dtype="float64")).column_weights(), rtol=1e-9
        )
        assert np.array_equal(ours.recommend(x, 5)[0], other.recommend(x, 5)[0])
    assert np.allclose(ours.with_xi(0.3).weights(), RDLAE(3.0, 0.4, 0.3).fit(x, solver=Auto(dtype="float64")).weights())


def test_emphasis_keeps_its_norms():
    x = random_matrix()
    model = DEQL(3.0, 0.4, 0.3).fit(sp.csr_array(x), solver=Auto(dtype="float64"))
    turned = model.with_dials(item_norm=0.4)
    assert (turned.kept, turned.item_norm) == (0.3, 0.4)
    popularity = (x > 0).sum(0)
    expected = popularity[:, None] ** 0.4 * model.weights() * popularity**-0.4
    assert np.allclose(turned.weights(), expected, atol=1e-9)
    other = turned.with_xi(0.5)
    assert (type(other), other.item_norm) == (DAN, 0.4)
    assert type(model.with_xi(0.5)) is RDLAE


def test_a_xi_that_is_asked_for_has_no_emphasis():
    x = random_matrix(200, 30)
    given = sp.csr_array(x)
    model = DEQL(3.0, 0.4, 0.8).fit(given, solver=Auto(dtype="float64"))
    plain = RDLAE(3.0, 0.4, 0.0).fit(given, solver=Auto(dtype="float64"))
    for xi in (0.0, 0.1, 1.0):
        assert type(model.with_xi(xi)) is type(model.with_dials(xi=xi)) is RDLAE
        assert np.array_equal(model.with_xi(xi).column_weights(), model.column_weights(xi))
        assert np.allclose(model.with_xi(xi).weights(), plain.with_xi(xi).weights(), atol=1e-12)
        turned = model.with_dials(xi=xi, propensity=0.2)
        assert (type(turned), turned.propensity) == (DAN, 0.2)
        assert np.allclose(turned.weights(), plain.with_dials(xi=xi, propensity=0.2).weights(), atol=1e-12)
    assert not np.allclose(model.weights(), model.with_xi(0.0).weights(), atol=1e-3)
    same = model.with_dials()
    assert (type(same), same.kept) == (DEQL, 0.8)
    assert np.array_equal(same.weights(), model.weights())
    ours, theirs = (each.recommend_path(given, [0.0, 0.1, Dial(0.0, 0.3)], 9) for each in (model, plain))
    for (ids, _), (expected, _) in zip(ours, theirs, strict=True):
        assert np.array_equal(ids, expected)
    split = hold_out_users(Interactions(given), 0.2, rng=np.random.default_rng(0))
    ours, theirs = (
        evaluate(each.fit(split.train), split, ["ndcg"], [10], xis=[0, 0.1])
        for each in (DEQL(3.0, 0.4, 0.8), RDLAE(3.0, 0.4))
    )
    assert [each["ndcg@10"] for each in ours] == [each["ndcg@10"] for each in theirs]


def test_emphasis_takes_features_like_any_other():
    x, features = blocks()
    data = Interactions(sp.csr_array(x), features=features)
    with_them, without = (DEQL(1.0, 0.3, 0.0).fit(data, feature_weight=weight) for weight in (9.0, 0.0))
    assert (with_them.feature_weight_, without.item_features_) == (9.0, None)
    assert "feature_weight" in inspect.signature(with_them.fit).parameters  # by which the command line knows


def test_emphasis_survives_the_disk(tmp_path):
    x = sp.csr_array(random_matrix())
    model = DEQL(3.0, 0.4, 0.3).fit(x)
    model.save(tmp_path / "model")
    opened = load(tmp_path / "model")
    assert repr(opened) == repr(model)
    assert np.array_equal(opened.recommend(x, 5)[0], model.recommend(x, 5)[0])


def test_wrong_emphasis():
    x = sp.csr_array(random_matrix())
    with pytest.raises(ValueError, match="kept must be"):
        DEQL(3.0, 0.4, -1.0).fit(x)
    with pytest.raises(ValueError, match="dropout must lie between"):
        DEQL(3.0, 0.0, 0.5).fit(x)
