"""Models that live: users who come back, who are forgotten, and items that go, beside the fits that they stand for."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import relae
from relae import EASE, RDLAE, RLAE, DataError, Interactions
from relae.models import DAN, DEQL
from relae.solvers import Local, NewItems, as_solver

USERS, ITEMS = 60, 40
PEOPLE = [f"user {row}" for row in range(USERS)]
NAMES = [f"item {column}" for column in range(ITEMS)]


def world(seed=0, weighted=False, density=0.12):
    """Interactions with ids, times and pairs that were seen."""
    rng = np.random.default_rng(seed)
    x = (rng.random((USERS, ITEMS)) < density).astype(np.float32)
    x[:, :3] = rng.random((USERS, 3)) < 0.4
    x[np.arange(USERS), rng.integers(ITEMS, size=USERS)] = 1.0
    if weighted:
        x *= rng.choice([0.5, 1.0, 2.0], x.shape).astype(np.float32)
    matrix = sp.csr_array(x)
    seen = (rng.random(x.shape) < 0.03) & (x == 0)
    times = rng.integers(1_600_000_000, 1_700_000_000, matrix.nnz)
    return Interactions(matrix, PEOPLE, NAMES, times=times, seen=seen)


def events(rows, start=1_700_000_000):
    """Later events: pairs of a user and the items, in the order of time."""
    users = list(rows)
    items = sorted({item for each in rows.values() for item in each})
    x = np.zeros((len(users), len(items)), np.float32)
    for row, user in enumerate(users):
        for item in rows[user]:
            x[row, items.index(item)] = 1.0
    matrix = sp.csr_array(x)
    return Interactions(matrix, users, items, times=start + np.arange(matrix.nnz))


def same(ours, theirs, tolerance=1e-9):
    """Whether all that two models hold is the same, item by item and user by user."""
    order = ours.items_.positions(theirs.items_.values)
    assert sorted(order) == list(range(len(ours.items_)))
    left, right = ours.weights()[np.ix_(order, order)], theirs.weights()
    assert np.allclose(left, right, atol=tolerance)
    for name in ("penalty_", "inverse_diagonal_", "item_squares_"):
        assert np.allclose(getattr(ours, name)[order], getattr(theirs, name), rtol=1e-8, atol=tolerance), name
    assert np.array_equal(ours.item_counts_[order], theirs.item_counts_)
    assert ours.n_users_ == theirs.n_users_
    assert set(ours.users_.values) == set(theirs.users_.values)
    if theirs.demand_ is None:
        assert ours.demand_ is None
    else:
        assert ours.demand_.at == theirs.demand_.at
        assert np.allclose(ours.demand_.counts[:, order], theirs.demand_.counts, atol=1e-9)
    assert ours.residual_ < 1e-6


def copy_of(model):
    return type(model)(**model.get_params())


MODELS = {
    "ease": EASE(6.0),
    "rlae": RLAE(6.0, 0.4),
    "rdlae": RDLAE(5.0, 0.3, 0.4),
    "dan": DAN(5.0, 0.3, 0.2, user_norm=0.4),
    "deql": DEQL(5.0, 0.3, 0.5),
}
FORMS = {
    "primal": as_solver("primal", dtype="float64"),
    "dual": as_solver("dual", dtype="float64"),
    "local": Local(9, dtype="float64"),
}


@pytest.fixture(autouse=True)
def any_rank(monkeypatch):
    """Small models can be tested with changes that would not be worth it."""
    monkeypatch.setattr("relae.solvers._update._WORTHWHILE", 100.0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_users_who_come_back(name, form, weighted):
    data = world(1, weighted)
    later = events({"user 7": ["item 1", "item 33"], "new": ["item 2", "a new item"], "user 3": ["item 30"]})
    fitted = copy_of(MODELS[name]).fit(data, solver=FORMS[form])
    before = fitted.weights().copy()
    updated = fitted.update(later, data)
    whole = data.joined(later)
    assert (whole.n_users, whole.n_items) == (USERS + 1, ITEMS + 1)
    same(updated, copy_of(MODELS[name]).fit(whole, solver=FORMS[form]))
    assert np.array_equal(fitted.weights(), before)
    if form == "dual":
        assert (updated.inverse_.held_rows != whole.matrix).nnz == 0  # users keep their places
        same(fitted.update(later.replace(times=None)), updated) if fitted.demand_ is None else None


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MODELS)
def test_users_who_are_forgotten(name, form):
    data = world(2)
    gone = ["user 5", "user 59", "user 0"]
    fitted = copy_of(MODELS[name]).fit(data, solver=FORMS[form])
    forgotten = fitted.forget(gone, data)
    left = data.without_users(gone)
    assert left.n_users == USERS - 3
    same(forgotten, copy_of(MODELS[name]).fit(left, solver=FORMS[form]))
    if form == "dual":
        assert (forgotten.inverse_.held_rows != left.matrix).nnz == 0
    if form != "local":  # what these users had is enough
        rows = fitted.forget(gone, data.select_users(data.users.positions(gone)))
        assert np.allclose(rows.weights(), forgotten.weights(), atol=1e-10)
        assert np.array_equal(rows.item_counts_, forgotten.item_counts_)
        assert np.allclose(
            rows.demand_.of_half_life(7.0) / rows.demand_.of_half_life(7.0).max(),
            forgotten.demand_.of_half_life(7.0) / forgotten.demand_.of_half_life(7.0).max(),
        )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MODELS)
def test_items_that_go(name, form):
    data = world(3)
    gone = ["item 0", "item 17", "item 39"]
    fitted = copy_of(MODELS[name]).fit(data, solver=FORMS[form])
    left = data.without_items(gone)
    same(fitted.drop_items(gone, data), copy_of(MODELS[name]).fit(left, solver=FORMS[form]))
    if name != "dan" and form == "primal":  # needs no data
        assert np.allclose(fitted.drop_items(gone).weights(), fitted.drop_items(gone, data).weights())


@pytest.mark.parametrize("form", ["primal", "dual"])
def test_features_and_items_that_have_nothing_else(form):
    """Items without users come from an inverse of features: which they are changes with the users."""
    data = world(4)
    rng = np.random.default_rng(0)
    x = data.matrix.toarray()
    x[:, [10, 11]] = 0.0
    x[:, 12] = 0.0
    x[8, 12] = 1.0  # of one user alone
    described = Interactions(sp.csr_array(x), PEOPLE, NAMES, features=rng.random((ITEMS, 4)))
    solver = FORMS[form]
    model = RDLAE(5.0, 0.3).fit(described, feature_weight=2.0, solver=solver)
    assert model.inverse_.items.tolist() == [10, 11]
    later = Interactions(np.array([[1.0, 1.0]]), ["user 8"], ["item 10", "item 1"])
    joined = described.joined(later)
    updated = model.update(later, described)
    assert updated.inverse_.items.tolist() == [11]
    same(updated, RDLAE(5.0, 0.3).fit(joined, feature_weight=2.0, solver=solver))
    forgotten = updated.forget(["user 8"], joined)
    assert forgotten.inverse_.items.tolist() == [10, 11, 12]
    same(forgotten, RDLAE(5.0, 0.3).fit(joined.without_users(["user 8"]), feature_weight=2.0, solver=solver))
    dropped = forgotten.drop_items(["item 10", "item 11", "item 12"])
    assert not isinstance(dropped.inverse_, NewItems)
    left = joined.without_users(["user 8"]).without_items(["item 10", "item 11", "item 12"])
    same(dropped, RDLAE(5.0, 0.3).fit(left, feature_weight=2.0, solver=solver))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_row_of_changes_is_the_fit_to_what_is_left(draw):
    form = draw.draw(st.sampled_from(["primal", "dual"]))
    name = draw.draw(st.sampled_from(["ease", "rdlae", "dan"]))
    data = world(draw.draw(st.integers(0, 5)), weighted=draw.draw(st.booleans()))
    model = copy_of(MODELS[name]).fit(data, solver=FORMS[form])
    at = 1_700_000_000
    for _ in range(draw.draw(st.integers(1, 4))):
        what = draw.draw(st.sampled_from(["update", "forget", "drop"]))
        if what == "update":
            who = draw.draw(st.lists(st.integers(0, USERS + 5), min_size=1, max_size=4, unique=True))
            has = st.lists(st.integers(0, ITEMS + 3), min_size=1, max_size=5, unique=True)
            later = events({f"user {row}": [f"item {each}" for each in draw.draw(has)] for row in who}, at)
            at += 1000
            model, data = model.update(later, data), data.joined(later)
        elif what == "forget":
            ids = draw.draw(st.lists(st.sampled_from(data.users.values.tolist()), min_size=1, max_size=4, unique=True))
            model, data = model.forget(ids, data), data.without_users(ids)
        else:
            ids = draw.draw(st.lists(st.sampled_from(data.items.values.tolist()), min_size=1, max_size=3, unique=True))
            model, data = model.drop_items(ids, data), data.without_items(ids)
    same(model, copy_of(MODELS[name]).fit(data, solver=FORMS[form]))


def test_the_l2_of_the_fit_is_kept():
    data = world(5)
    model = RDLAE().fit(data, solver=FORMS["primal"])
    forgotten = model.forget(["user 1"], data)
    assert forgotten.l2_ == model.l2_
    same(forgotten, RDLAE(model.l2_).fit(data.without_users(["user 1"]), solver=FORMS["primal"]))


def test_many_single_changes_keep_their_error(any_rank):
    """The error that is stated is that against all of the data, not a sum of guesses."""
    data = world(6)
    model = RDLAE(5.0, 0.3).fit(data, solver="primal")
    for round_ in range(40):
        later = events({f"user {round_ % 7}": [f"item {round_ % ITEMS}"]}, 1_700_000_000 + round_)
        model, data = model.update(later, data), data.joined(later)
    fresh = RDLAE(5.0, 0.3).fit(data, solver="primal")
    assert model.residual_ < 1e-4
    assert np.allclose(model.weights(), fresh.weights(), atol=1e-4)


def test_a_change_that_has_lost_too_much_asks_for_a_fit():
    data = world(7)
    model = EASE(6.0).fit(data, solver="primal")
    model.inverse_.square[3, 5] *= 3.0
    with pytest.raises(DataError, match=r"the change failed its check \(error .*: fit again to all of the data"):
        model.forget(["user 1"], data)
    model.residual_ = 0.9
    with pytest.raises(DataError, match="fit again"):
        model.forget(["user 1"], data.select_users([1]))


def test_a_model_that_does_not_hold_what_users_had_says_the_way_out(tmp_path):
    data = world(8)
    model = EASE(6.0).fit(data, solver="primal")
    with pytest.raises(DataError, match="give the data of the fit, or the rows of these users, as data"):
        model.forget(["user 1"])
    with pytest.raises(DataError, match="user 'nobody' is unknown"):
        model.forget(["nobody"], data)
    with pytest.raises(DataError, match="no user is named"):
        model.forget([], data)
    with pytest.raises(DataError, match="all 60 users"):
        model.forget(PEOPLE, data)
    with pytest.raises(DataError, match="item 'nothing' is unknown"):
        model.drop_items(["nothing"])
    with pytest.raises(DataError, match="nothing would be left"):
        model.drop_items(NAMES)
    with pytest.raises(DataError, match=r"with a user_norm of 0\.4"):
        copy_of(MODELS["dan"]).fit(data, solver="primal").drop_items(["item 1"])
    dual = EASE(6.0).fit(data, solver="dual")
    assert dual.with_events(events({"a": ["item 1"]})).forget(["user 1"], data).n_users_ == USERS - 1
    other = data.replace(matrix=data.matrix * 2.0)
    with pytest.raises(DataError, match="other weights than that of the fit"):
        dual.forget(["user 1"], other)
    with pytest.raises(DataError, match="is this the data of the fit"):
        dual.forget(["user 1"], other.select_users([1]))


def test_the_dual_form_finds_rows_whatever_their_order():
    data = world(10)
    x = data.matrix.toarray()
    x[20:30] = x[5]  # many of a kind
    data = Interactions(x, PEOPLE, NAMES)
    model = EASE(6.0).fit(data, solver=FORMS["dual"])
    turned = data.select_users(np.random.default_rng(0).permutation(USERS))
    gone = ["user 5", "user 21", "user 25", "user 3", "user 59"]
    later = Interactions(np.ones((2, 1)), ["user 22", "user 1"], ["item 39"])
    forgotten = model.forget(gone, turned)
    same(forgotten, EASE(6.0).fit(data.without_users(gone), solver=FORMS["dual"]))
    left = turned.without_users(gone)
    same(forgotten.update(later, left), EASE(6.0).fit(left.joined(later), solver=FORMS["dual"]))


def test_with_a_half_life():
    data = world(9)
    model = EASE(3.0, half_life=200.0).fit(data, solver=FORMS["primal"])
    with pytest.raises(DataError, match="half-life of 200 days, so that later events"):
        model.update(events({"a": ["item 1"]}), data)
    last = int(np.searchsorted(data.matrix.indptr, data.times.argmax(), side="right")) - 1
    with pytest.raises(DataError, match="the latest event of the fit is of these users"):
        model.forget([PEOPLE[last]], data)
    other = PEOPLE[(last + 1) % USERS]
    refit = EASE(3.0, half_life=200.0).fit(data.without_users([other]), solver=FORMS["primal"])
    same(model.forget([other], data), refit)


# --- the data --------------------------------------------------------------------------------------------------------


def test_joined_interactions_are_those_of_one_table():
    import polars as pl

    rng = np.random.default_rng(3)
    rows = pl.DataFrame(
        {
            "user": rng.integers(0, 30, 900),
            "item": rng.integers(0, 25, 900),
            "rating": rng.integers(1, 6, 900).astype(float),
            "at": np.arange(900) + 1_600_000_000,
        }
    )
    for options in (
        {},
        {"weight": "rating", "weighting": "linear"},
        {"weight": "rating", "weighting": "log"},
        {"weight": "rating", "weighting": "sqrt"},
        {"weight": "rating", "weighting": "binary"},
        {"rating": "rating", "min_rating": 3.0},
    ):

        def read(table, options=options):
            return Interactions.from_frame(table, user="user", item="item", timestamp="at", **options)

        ours, theirs = read(rows[:450]).joined(read(rows[450:])), read(rows)
        users, items = ours.users.positions(theirs.users.values), ours.items.positions(theirs.items.values)
        assert sorted(users) == list(range(theirs.n_users))
        assert sorted(items) == list(range(theirs.n_items))
        assert np.allclose(ours.matrix.toarray()[np.ix_(users, items)], theirs.matrix.toarray(), rtol=1e-6)
        when = [
            sp.csr_array((each.times, each.matrix.indices, each.matrix.indptr), each.matrix.shape).toarray()
            for each in (ours, theirs)
        ]
        assert np.array_equal(when[0][np.ix_(users, items)], when[1])
        if "min_rating" in options:
            assert np.array_equal(ours.seen.toarray()[np.ix_(users, items)], theirs.seen.toarray())


def test_what_cannot_be_joined():
    data = world(1)
    with pytest.raises(DataError, match="these events have no times"):
        data.joined(Interactions(np.eye(1), ["a"], ["item 1"]))
    with pytest.raises(DataError, match="have no ids"):
        data.joined(Interactions(sp.csr_array(np.eye(1)), items=["item 1"], times=[5]))


def test_users_whom_a_filter_dropped():
    from relae.data import Dropped, Ids

    dropped = Dropped(Ids(["few", "fewer"]), np.zeros(2, np.uint8), ("min_user_count=5",))
    data = world(1).replace(dropped=dropped)
    model = EASE(6.0).fit(data, solver="primal")
    assert model.forget(["few"], data).n_users_ == USERS
    assert data.without_users(["few"]).dropped.users.values.tolist() == ["fewer"]
    assert data.joined(events({"fewer": ["item 1"]})).dropped.users.values.tolist() == ["few"]


def test_saved_and_opened_again(tmp_path):
    data = world(2)
    RDLAE(5.0, 0.3).fit(data, solver=FORMS["primal"]).save(tmp_path / "model", histories=data)
    opened = relae.store.open_model(tmp_path / "model")
    later = events({"user 7": ["item 1", "item 33"]})
    updated = opened.model.update(later, opened.histories)
    same(updated, RDLAE(5.0, 0.3).fit(data.joined(later), solver=FORMS["primal"]))
