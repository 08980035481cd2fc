"""Compact models and updates, beside the fits that they stand for."""

import numpy as np
import pytest
import scipy.sparse as sp

import relae
from relae import EASE, LAE, RDLAE, RLAE, DataError, Interactions, UncheckedUsersWarning
from relae.models import DAN
from relae.solvers import Auto, Local, Primal, as_solver

from ..oracles import csr, example, new_histories

USERS, ITEMS = 90, 30
X = example(USERS, ITEMS, weighted=True)
NEW = new_histories(5, ITEMS, weighted=True)
NAMES = [f"item {j * 7 % 31}" for j in range(ITEMS)]


def data(x=X, names=NAMES, **more):
    return Interactions(csr(np.asarray(x, np.float32)), items=names, **more)


def both(old, new):
    return data(np.concatenate([old, new]))


def close(ours, theirs, histories=NEW, tolerance=1e-9):
    """Whether two models score alike, item by item."""
    order = ours.items_.positions(theirs.items_.values)
    raw = [dict(zip(NAMES, row, strict=True)) for row in histories]
    assert (order >= 0).all()
    assert np.allclose(ours.score(raw)[:, order], theirs.score(raw), atol=tolerance)
    assert np.allclose(ours.penalty_[order], theirs.penalty_)
    assert np.allclose(ours.inverse_diagonal_[order], theirs.inverse_diagonal_, atol=tolerance)
    assert np.array_equal(ours.item_counts_[order], theirs.item_counts_)
    assert ours.n_users_ == theirs.n_users_
    assert ours.xi_interval_ == pytest.approx(theirs.xi_interval_, abs=1e-8)


# --- update --------------------------------------------------------------------------------------------------------


def people(x, first):
    """Users called "user 0", "user 1", … from a number on."""
    return Interactions(csr(x), [f"user {first + row}" for row in range(len(x))], NAMES)


def test_users_of_the_fit_need_the_data_of_the_fit():
    """A user who comes back is one user with more items, and not two."""
    old = people(X, 0)
    model = EASE(6.0).fit(old, solver="primal")
    back = people(NEW, USERS - 2)
    with pytest.raises(
        DataError, match=f"2 of {len(NEW)} users are users of the fit, such as 'user {USERS - 2}', .* as data"
    ):
        model.update(back)
    fresh = back.select_users(model.users_.positions(back.users.values) < 0)  # as the message says
    assert model.update(fresh).n_users_ == USERS + len(NEW) - 2
    with pytest.raises(DataError, match="this is not the data of the fit"):
        model.update(back, people(X[1:], 1))
    assert model.users_ == old.users


def test_a_folder_with_histories_knows_its_users_and_one_without_warns(tmp_path):
    old = people(X, 0)
    model = EASE(6.0).fit(old)
    model.save(tmp_path / "with", histories=old)
    model.save(tmp_path / "without")
    model.save(tmp_path / "others", histories=people(X[:5], 0))
    with pytest.raises(DataError, match="users of the fit"):
        relae.load(tmp_path / "with").update(people(NEW, USERS - 1), None if model.plan_.solver == "primal" else csr(X))
    for name in ("without", "others"):
        unsure = relae.load(tmp_path / name)
        with pytest.warns(UncheckedUsersWarning, match=f"does not know the ids of the {USERS} users"):
            unsure.update(people(NEW, USERS))
    assert not any(b"user 3" in file.read_bytes() for file in (tmp_path / "without").rglob("*") if file.is_file())
    again = relae.load(tmp_path / "with").update(people(NEW, USERS))
    again.save(tmp_path / "again", histories=people(np.concatenate([X, NEW]), 0))
    assert relae.load(tmp_path / "again").users_ == again.users_


def test_rows_without_ids_are_new_users_by_definition(tmp_path):
    model = EASE(6.0).fit(people(X, 0))
    assert model.update(csr(NEW)).n_users_ == USERS + len(NEW)
    assert model.update(data(NEW)).users_ == model.users_  # as far as they have ids
    bare = EASE(6.0).fit(data())
    bare.save(tmp_path / "m", histories=data())
    for each in (bare, relae.load(tmp_path / "m")):
        assert each.users_.positional
        assert each.update(people(NEW, 0)).n_users_ == USERS + len(NEW)
        assert each.update(data(NEW)).update(data(NEW)).n_users_ == USERS + 2 * len(NEW)


def test_numbers_in_a_file_of_lists_are_ids(tmp_path):
    (tmp_path / "train.txt").write_text("0 1 2\n1 0 2\n2 1\n")
    lists = Interactions.read_lists(tmp_path / "train.txt")
    assert not lists.users.positional
    with pytest.raises(DataError, match=r"3 of 3 users are users of the fit, such as 0"):
        EASE(6.0).fit(lists, solver="primal").update(lists)


@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("model", [LAE(6.0), EASE(6.0), RLAE(6.0, 0.5)], ids=repr)
def test_new_users_are_as_if_they_had_been_there(model, solver):
    how = as_solver(solver, dtype="float64")
    fitted = model.fit(data(), solver=how)
    before = fitted.score(csr(NEW)).copy()
    updated = fitted.update(data(NEW))
    close(updated, type(model)(**model.get_params()).fit(both(X, NEW), solver=how))
    assert type(updated) is type(model)
    assert updated.inverse_.solver == updated.plan_.solver == solver
    assert updated.residual_ < 1e-9
    assert np.array_equal(fitted.score(csr(NEW)), before)  # the old one stays as it is


def test_with_dropout_the_penalty_grows_too():
    new = np.zeros((2, ITEMS))
    new[0, [3, 5]], new[1, 5] = 1.0, 2.0
    model = RDLAE(3.0, 0.4, 0.42)
    how = Primal(dtype="float64")
    refit = RDLAE(**model.get_params()).fit(both(X, new), solver=how)
    close(model.fit(data(), solver=how).update(data(new)), refit)


def test_parameters_that_are_set_after_the_fit_are_for_the_next_one():
    new = np.zeros((2, ITEMS))
    new[0, [3, 5]], new[1, 5] = 1.0, 2.0
    model = DAN(3.0, 0.4, 0.2, user_norm=0.3).fit(data(), solver=Primal(dtype="float64"))
    updated, compacted = model.update(data(new)), model.compact(data(), per_item=ITEMS)
    model.set_params(dropout=0.7, user_norm=0.9)
    close(model.update(data(new)), updated)
    close(model.compact(data(), per_item=ITEMS), compacted)


@pytest.mark.parametrize("compacted", [False, True])
def test_an_updated_local_model_has_the_neighbours_of_its_fit(compacted):
    new = np.zeros((1, ITEMS))
    new[0, [3, 5]] = 1.0
    how = Local(8, nearest_by="count", dtype="float64")
    expected = EASE(6.0).fit(both(X, new), solver=how)
    if compacted:
        model = EASE(6.0).fit(data(), solver=Auto(dtype="float64")).compact(data(), per_item=8, supports="count")
    else:
        model = EASE(6.0).fit(data(), solver=how)
    close(model.update(data(new), data()), expected)


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_new_items(solver):
    model = EASE(6.0).fit(data(titles=[f"title {name}" for name in NAMES]), solver=as_solver(solver, dtype="float64"))
    names = ["item 99", NAMES[4], "item 98", "item 97"]
    new = Interactions(np.array([[1, 1, 0, 0], [2, 0, 1, 0]], np.float32), items=names, titles=["a", "b", "c", "d"])
    updated = model.update(new)
    wide = np.zeros((USERS + 2, ITEMS + 2))
    wide[:USERS, :ITEMS] = X
    wide[USERS:, [ITEMS, 4, ITEMS + 1]] = [[1, 1, 0], [2, 0, 1]]
    refit = EASE(6.0).fit(data(wide, [*NAMES, "item 99", "item 98"]), solver=as_solver(solver, dtype="float64"))
    close(updated, refit)
    assert list(updated.items_.values) == [*NAMES, "item 99", "item 98"]  # nobody has item 97
    assert list(updated.titles_[-2:]) == ["a", "c"]
    assert updated.titles_[0] == f"title {NAMES[0]}"
    ids, _ = updated.recommend([NAMES[4]], 5)
    assert set(ids) <= set(updated.items_.values)


def test_a_matrix_has_the_models_columns():
    model = EASE(6.0).fit(data(), solver=Auto(dtype="float64"))
    close(model.update(csr(NEW)), EASE(6.0).fit(both(X, NEW), solver=Auto(dtype="float64")))


def test_updates_can_follow_one_another():
    model = EASE(6.0).fit(data(), solver=Auto(dtype="float64"))
    for rows in (NEW[:2], NEW[2:3], NEW[3:]):
        model = model.update(csr(rows))
    close(model, EASE(6.0).fit(both(X, NEW), solver=Auto(dtype="float64")))


def test_the_suggested_l2_is_kept():
    model = EASE().fit(data(), solver=Auto(dtype="float64"))
    updated = model.update(data(NEW))
    assert updated.l2_ == model.l2_
    close(updated, EASE(model.l2_).fit(both(X, NEW), solver=Auto(dtype="float64")))


def test_an_update_that_costs_no_less_than_a_fit_is_refused():
    with pytest.raises(DataError, match=r"a change by 90 rows costs about as much as a fit with a square of 30"):
        EASE(6.0).fit(data(), solver="primal").update(data())
    with pytest.raises(DataError, match=r"with dropout every item whose users change counts as one"):
        RDLAE(6.0).fit(data(), solver="primal").update(data(NEW))
    with pytest.raises(DataError, match=r"a change by 119 rows .* a square of 90"):
        RDLAE(6.0).fit(data(), solver="dual").update(data())


def test_bad_updates():
    model = EASE(6.0).fit(data())
    with pytest.raises(DataError, match="nothing to fit"):
        model.update(csr(np.zeros((2, ITEMS))))
    with pytest.raises(DataError, match="the new items are Ids"):
        EASE(6.0).fit(Interactions(X, items=np.arange(ITEMS) + 7)).update(Interactions(np.eye(2), items=["a", "b"]))
    with pytest.raises(DataError, match="l2 is 0"):
        RDLAE(0.0, 0.5).fit(data(np.maximum(X, 0.1)), solver="primal").update(Interactions(np.eye(1), items=["other"]))


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("nearest_by", ["cosine", "count"])
def test_a_local_model_solves_again_what_has_changed(dropout, nearest_by):
    """Two worlds that share no user: news of one leaves the other as it is."""
    x = np.zeros((USERS, ITEMS))
    x[: USERS // 2, : ITEMS // 2] = X[: USERS // 2, : ITEMS // 2]
    x[USERS // 2 :, ITEMS // 2 :] = X[USERS // 2 :, ITEMS // 2 :]
    new = np.zeros((3, ITEMS))
    new[:, : ITEMS // 2] = NEW[:3, : ITEMS // 2]
    how = Local(8, nearest_by, dtype="float64")
    model = RDLAE(3.0, dropout, 0.4).fit(data(x), solver=how)
    calls = []
    updated = model.update(data(new), data(x), progress=lambda *call: calls.append(call))
    close(updated, RDLAE(3.0, dropout, 0.4).fit(both(x, new), solver=how))
    assert calls == [("update", 1.0)]
    theirs, ours = model.inverse_.columns.toarray(), updated.inverse_.columns.toarray()
    assert np.array_equal(theirs[:, ITEMS // 2 :], ours[:, ITEMS // 2 :])
    assert not np.array_equal(theirs[:, : ITEMS // 2], ours[:, : ITEMS // 2])


def test_a_local_model_takes_new_items():
    model = RDLAE(3.0, 0.2).fit(data(), solver=Local(8, dtype="float64"))
    wide = np.zeros((USERS + 1, ITEMS + 1))
    wide[:USERS, :ITEMS] = X
    wide[USERS, [2, ITEMS]] = 1.0
    updated = model.update(data(wide[USERS:], [*NAMES, "item 99"]), data())
    refit = RDLAE(3.0, 0.2).fit(data(wide, [*NAMES, "item 99"]), solver=Local(8, dtype="float64"))
    close(updated, refit)


def test_a_local_model_needs_the_data_of_its_fit():
    model = RDLAE(3.0).fit(data(), solver=Local(8))
    with pytest.raises(DataError, match="give it as data"):
        model.update(data(NEW))
    with pytest.raises(DataError, match="this is not the data of the fit: 5 users"):
        model.update(data(NEW), data(NEW))


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_other_weights_are_other_data(dropout, tmp_path):
    """The same users with the same items, of which one has another weight."""
    import relae

    other = X.copy()
    row, column = np.argwhere(X > 0)[17]
    other[row, column] *= 1.5
    squares = f"{(other[:, column] ** 2).sum():g}, and in the fit to {(X[:, column] ** 2).sum():g};"
    said = rf"in 1 of 30 items: the squares of item '{NAMES[column]}' add up to {squares}"
    new = NEW[:2] * (np.arange(ITEMS) < 5)
    for solver in ("primal", "dual", "local"):
        model = RDLAE(3.0, dropout).fit(data(), solver=as_solver(solver, neighbours=8))
        model.save(tmp_path / solver)
        for each in (model, relae.load(tmp_path / solver)):
            assert each.compact(data(X[::-1]), per_item=8).n_users_ == USERS  # the order of users is free
            with pytest.raises(DataError, match=said):
                each.compact(data(other), per_item=8)
    with pytest.raises(DataError, match=said):
        model.update(data(new), data(other))
    updated = model.update(data(new), data())
    assert np.allclose(updated.item_squares_, (np.concatenate([X, new]) ** 2).sum(axis=0))
    updated.update(data(new), both(X, new))
    with pytest.raises(DataError, match="1 of 30 items"):
        updated.update(data(new), both(other, new))


def test_a_model_that_was_saved_without_squares_takes_any_weights(tmp_path):
    import relae

    model = RDLAE(3.0).fit(data(), solver="primal")
    model.item_squares_ = None
    model.save(tmp_path / "model")
    found = relae.load(tmp_path / "model")
    assert found.item_squares_ is None
    assert found.compact(data(2 * X), per_item=8).item_squares_ is None
    assert found.compact(data(), per_item=8).update(data(NEW), data(2 * X)).item_squares_ is None
    with pytest.raises(DataError, match="this is not the data of the fit"):
        found.compact(data(NEW))


# --- compact -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("supports", ["cosine", "count"])
def test_a_compact_model_is_the_local_one(solver, supports):
    model = RDLAE(3.0, 0.4, 0.42).fit(data(), solver=as_solver(solver, dtype="float64"))
    small = model.compact(None if solver == "dual" else data(), per_item=8, supports=supports)
    local = RDLAE(3.0, 0.4, 0.42).fit(data(), solver=Local(8, dtype="float64", nearest_by=supports))
    assert np.allclose(small.inverse_.columns.toarray(), local.inverse_.columns.toarray(), atol=1e-12)
    assert np.allclose(small.with_xi(0.9).score(csr(NEW)), local.with_xi(0.9).score(csr(NEW)), atol=1e-10)
    assert (small.inverse_.solver, small.neighbours_, small.plan_.solver) == ("local", 8, "local")
    assert (model.plan_.solver, model.inverse_.solver) == (solver, solver)
    assert small.explain([NAMES[0], NAMES[3]], NAMES[5]).score == pytest.approx(
        float(small.score([NAMES[0], NAMES[3]])[5])
    )


def test_supports_by_the_largest_weights():
    model = RDLAE(3.0, 0.4, 0.42).fit(data(), solver=Primal(dtype="float64"))
    small = model.compact(data(), per_item=6, supports="weights")
    inverse = model.inverse_.square
    pattern = small.inverse_.columns.toarray() != 0
    for j in range(ITEMS):
        others = sorted((i for i in range(ITEMS) if i != j), key=lambda i: (-abs(inverse[i, j]), i))
        assert set(np.flatnonzero(pattern[:, j])) <= {j, *others[:5]}
    assert pattern.sum(axis=0).max() == 6


def test_all_items_in_every_support_change_nothing():
    model = EASE(6.0).fit(data(np.maximum(X, 0.01)), solver=Primal(dtype="float64"))
    small = model.compact(data(np.maximum(X, 0.01)), per_item=ITEMS)
    assert np.allclose(small.score(csr(NEW)), model.score(csr(NEW)), atol=1e-8)


def test_bad_compacts():
    model = EASE(6.0).fit(data(), solver="primal")
    with pytest.raises(DataError, match="give it as data"):
        model.compact()
    with pytest.raises(DataError, match="this is not the data of the fit"):
        model.compact(data(NEW))
    with pytest.raises(ValueError, match="supports must be 'cosine', 'count' or 'weights', got 'luck'"):
        model.compact(data(), supports="luck")
    with pytest.raises(ValueError, match="neighbours must be a whole number"):
        model.compact(data(), per_item=0)


def test_it_is_small_on_disk(tmp_path):
    import relae

    rng = np.random.default_rng(0)
    x = sp.random_array((500, 400), density=0.05, rng=rng, format="csr", dtype=np.float32)
    model = RDLAE(3.0, 0.4).fit(x)
    model.save(tmp_path / "large", form="primal")
    model.compact(x, per_item=10).save(tmp_path / "small", form="auto")
    large, small = (relae.store.open_model(tmp_path / name) for name in ("large", "small"))
    assert small.size < large.size / 10
    assert np.array_equal(small.model.recommend(x, 5)[0], model.compact(x, per_item=10).recommend(x, 5)[0])
