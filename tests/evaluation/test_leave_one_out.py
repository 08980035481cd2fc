"""Every figure of leave-one-out against real fits without the user."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relae import DAN, DEQL, DLAE, EASE, EDLAE, LAE, RDLAE, RLAE, Interactions
from relae.algebra import Dial
from relae.baselines import Popularity
from relae.data import Ids
from relae.errors import DataError
from relae.evaluation import (
    METRICS,
    Scorer,
    evaluate,
    groups_without,
    head_items,
    leave_one_out,
    propensities,
)
from relae.evaluation.groups import Groups
from relae.evaluation.splits import Split, hide_items
from relae.solvers import as_solver

from ..oracles import csr, example, matrices

MODELS = [
    LAE(5.0),
    EASE(5.0),
    RLAE(5.0, xi=0.6),
    DLAE(3.0, dropout=0.1),
    EDLAE(3.0, dropout=0.5),
    RDLAE(3.0, dropout=0.3, xi=0.4),
    RDLAE(3.0, dropout=0.8, xi=0.2),
    DAN(3.0, dropout=0.3, xi=0.1, user_norm=0.5, item_norm=0.3, propensity=0.4),
    DAN(3.0, dropout=0.0, xi=0.5, user_norm=-0.3, item_norm=0.2),
    DEQL(3.0, dropout=0.4, kept=0.3, item_norm=0.2),
]
PER_USER = [
    name for name in METRICS if name not in ("coverage", "exposure_gini", "tail_share", "popularity", "novelty")
]


def table(weighted=True, seed=0):
    """Users × items, with an item that one user alone has, and one that nobody has."""
    x = example(30, 18, weighted=weighted, seed=seed)
    x[:, 16:] = 0.0
    x[4, 16] = 1.0
    return x


def features(seed=3):
    values = (np.random.default_rng(seed).random((18, 5)) < 0.4).astype(float)
    values[2] = 0.0
    values[16:, 0] = 1.0
    return values


def refits(model, data, solver, metrics, ks, item_features=None):
    """One fit and one evaluation for each user: a figure per user, and the lists."""
    rows, histories, truth, times = hide_items(data, rng=np.random.default_rng(0))
    figures, lists = {}, []
    for at, user in enumerate(rows):
        kept = np.arange(data.n_users) != user
        train = data.select_users(kept)
        other = type(model)(**model.get_params()).fit(train, solver=solver, item_features=item_features)
        span = slice(histories.indptr[at], histories.indptr[at + 1])
        split = Split(
            train,
            Ids(data.users.values[[user]]),
            histories[[at]],
            truth[[at]],
            "one user",
            new_users=True,
            history_times=None if times["history_times"] is None else times["history_times"][span],
        )
        for name, values in evaluate(other, split, metrics, ks).values.items():
            figures.setdefault(name, []).append(values[0])
        lists.append(other.recommend(histories[[at]], max(ks), times=split.history_times))
    return figures, lists


@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("with_features", [False, True], ids=["plain", "features"])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_figures_are_those_of_fits_without_the_user(model, solver, with_features):
    data = Interactions(csr(table()))
    solver, options = as_solver(solver, dtype="float64"), {"item_features": features() if with_features else None}
    fitted = type(model)(**model.get_params()).fit(data, solver=solver, **options)
    result = leave_one_out(fitted, data, PER_USER, (3, 9))
    expected, lists = refits(model, data, solver, PER_USER, (3, 9), options["item_features"])
    for name, values in expected.items():
        np.testing.assert_allclose(result.values[name], values, atol=1e-10, err_msg=name)
    rows, histories, *_ = hide_items(data, rng=np.random.default_rng(0))
    [(start, stop, [ranked])] = fitted.left_out(data, [None]).ranked(rows, histories, 9)
    np.testing.assert_array_equal(ranked, np.concatenate([ids for ids, _ in lists]))
    assert (start, stop) == (0, len(rows))


@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_scores_are_those_of_fits_without_the_user(model, solver):
    data = Interactions(csr(table(weighted=False)))
    solver = as_solver(solver, dtype="float64")
    fitted = type(model)(**model.get_params()).fit(data, solver=solver, item_features=features())
    rows, histories, *_ = hide_items(data, rng=np.random.default_rng(0))
    scores = fitted.left_out(data, [None]).scores(rows, histories)
    for at, user in enumerate(rows):
        train = data.select_users(np.arange(data.n_users) != user)
        other = type(model)(**model.get_params()).fit(train, solver=solver, item_features=features())
        unseen = np.setdiff1d(np.arange(data.n_items), histories[[at]].indices)
        np.testing.assert_allclose(scores[at, unseen], other.score(histories[[at]])[0, unseen], rtol=0, atol=1e-8)


def test_dials_share_one_inverse():
    data = Interactions(csr(table()))
    fitted = RDLAE(3.0, dropout=0.3, xi=0.4).fit(data, solver=as_solver("primal", dtype="float64"))
    dials = [Dial(0.0), Dial(0.3, item_norm=0.5), 0.7, Dial(0.3, propensity=0.5)]
    results = leave_one_out(fitted, data, ["ndcg", "tail_recall"], (5,), dials)
    for dial, result in zip(dials, results, strict=True):
        alone = leave_one_out(fitted._turned(fitted._as_dials([dial])[0]), data, ["ndcg", "tail_recall"], (5,))
        np.testing.assert_array_equal(result.values["ndcg@5"], alone.values["ndcg@5"])
        assert result.xi == (dial.xi if isinstance(dial, Dial) else dial)
    assert results[0].compare(results[1])["ndcg@5"].p_value <= 1


def test_fading_follows_the_order_of_the_history():
    x = csr(table())
    data = Interactions(x, times=np.random.default_rng(5).permutation(x.nnz))
    model = RDLAE(3.0, dropout=0.3, xi=0.4, fading=0.7)
    solver = as_solver("primal", dtype="float64")
    result = leave_one_out(model.fit(data, solver=solver), data, ["ndcg"], (5,))
    expected, _ = refits(model, data, solver, ["ndcg"], (5,))
    np.testing.assert_allclose(result.values["ndcg@5"], expected["ndcg@5"], atol=1e-12)


def test_batches_change_nothing(monkeypatch):
    data = Interactions(csr(table()))
    fitted = EDLAE(3.0, dropout=0.3).fit(data)
    whole = leave_one_out(fitted, data, ks=(5,))
    monkeypatch.setattr("relae.models._left_out._BATCH_BYTES", 4 * 18 * 7)
    steps = []
    parts = leave_one_out(fitted, data, ks=(5,), progress=lambda *step: steps.append(step))
    assert whole.means == parts.means
    assert steps[-1] == ("leave one out", 1.0)
    assert len(steps) > 3


def test_users_are_drawn():
    data = Interactions(csr(table()))
    fitted = EASE(3.0).fit(data)
    assert len(leave_one_out(fitted, data, ks=(5,), users=8).users) == 8
    able = np.count_nonzero(np.diff(data.matrix.indptr) >= 2)
    assert len(leave_one_out(fitted, data, ks=(5,), users=10**6).users) == able


@given(matrices(min_side=2, max_side=9), st.sampled_from([0.2, 0.5, 0.8]))
def test_groups_are_those_of_the_counts_without_the_user(x, share):
    x = csr(x)
    counts = np.bincount(x.indices, minlength=x.shape[1])
    groups = groups_without(counts, x, x, share)
    at = 0
    for user in range(x.shape[0]):
        own = x.indices[x.indptr[user] : x.indptr[user + 1]]
        left = counts.copy()
        left[own] -= 1
        if left.any():
            np.testing.assert_array_equal(groups.head[at : at + len(own)], head_items(left, share)[own])
            np.testing.assert_allclose(groups.propensities[at : at + len(own)], propensities(left)[own])
        at += len(own)


def test_groups_of_entries_that_are_those_of_items_change_nothing():
    truth = csr(table())
    counts = np.bincount(truth.indices, minlength=18)
    rows = np.argsort(np.random.default_rng(0).random(truth.shape), axis=1)
    plain = Scorer(truth, counts, 30, PER_USER, (3, 9))
    cells = Groups(head_items(counts)[truth.indices], propensities(counts)[truth.indices])
    other = Scorer(truth, counts, 30, PER_USER, (3, 9), groups=cells)
    for name, values in plain.values(rows).items():
        np.testing.assert_allclose(other.values(rows)[name], values, err_msg=name)


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (EASE(3.0), {"solver": "local"}, "small closed form per item"),
        (EASE(3.0, half_life=300.0), {}, "half_life=300.0"),
        (EASE(3.0, freshness=1.0), {}, "freshness=1.0"),
        (EDLAE(0.0, dropout=0.5), {}, "l2 above 0"),
        (Popularity(), {}, "Popularity does not have"),
    ],
)
def test_what_cannot_be_exact_is_refused(model, options, words):
    dense = example(30, 18, weighted=False)
    dense[0] = 1.0  # each item has a user
    x = csr(dense)
    data = Interactions(x, times=np.arange(x.nnz))
    with pytest.raises(DataError, match=words.replace("(", r"\(")):
        leave_one_out(model.fit(data, **options), data, ks=(5,))


def test_other_data_is_refused():
    data = Interactions(csr(table()))
    fitted = EASE(3.0).fit(data)
    with pytest.raises(DataError, match="not the data of the fit: 29 users"):
        leave_one_out(fitted, data.select_users(np.arange(30) != 3), ks=(5,))
    heavier = data.matrix.copy()
    heavier.data[0] *= 2
    with pytest.raises(DataError, match="other weights than that of the fit, in 1 of 18 items"):
        leave_one_out(fitted, Interactions(heavier), ks=(5,))
