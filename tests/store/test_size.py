"""The forecast of a folder's size beside the bytes that are written."""

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from relae import EASE, Interactions, store
from relae.solvers import Local, as_solver

from .suite import data


def size_of(model, path, **options):
    model.save(path, **options)
    saved = store.open_model(path)
    on_disk = sum(file.stat().st_size for file in path.rglob("*.npy"))
    assert saved.size == on_disk
    return on_disk


def described(ids="str"):
    """The same data with features, and one more item that has nothing else."""
    known = data(ids)
    wider = sp.csr_array((known.matrix.data, known.matrix.indices, known.matrix.indptr), (known.n_users, 32))
    names = [*known.items.values, "new" if ids == "str" else 999]
    features = (np.arange(32)[:, None] % 5 == np.arange(5)).astype(np.float32)
    return Interactions(wider, known.users, names, features=features)


def rated(ids="str"):
    """Users who have seen more than they have, and others who were dropped."""
    known = data(ids)
    rows = [(user, item, 5) for user in known.users.values for item in known.history(user)]
    rows += [(user, known.items.values[at], 1) for at, user in enumerate(known.users.values[:20])]
    rows += [("x" if ids == "str" else 7_000, known.items.values[0], 2)]
    frame = pl.DataFrame(rows, ["user", "item", "stars"], orient="row")
    found = Interactions.from_frame(frame, rating="stars", min_rating=4)
    assert found.seen.nnz > 0
    assert len(found.dropped.users) == 2  # one of them is the user without interactions
    return found


@pytest.mark.parametrize(("ids", "dtype", "histories"), [("str", "float32", True), ("int", "float64", False)])
@pytest.mark.parametrize("made", [data, described, rated])
@pytest.mark.parametrize(
    ("solver", "form"),
    [("primal", "auto"), ("dual", "auto"), ("dual", "fitted"), ("dual", "primal"), ("local", "auto")],
)
def test_each_form_has_the_size_that_was_forecast(solver, form, made, ids, dtype, histories, tmp_path):
    x = made(ids)
    model = EASE(6.0).fit(x, solver=as_solver(solver, dtype=dtype, neighbours=9))
    forecast = store.forecast_size(x, as_solver(solver, dtype=dtype, neighbours=9), form=form, histories=histories)
    assert forecast == size_of(model, tmp_path / "model", form=form, histories=x if histories else None)


def test_neighbours_of_a_long_tail_are_estimated_from_a_sample(tmp_path):
    """Most items have far fewer neighbours than there could be, and there are more items than the sample has."""
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(900), 6), (3000 * rng.random(5400) ** 3).astype(int)
    x = Interactions(sp.csr_array((np.ones(5400), (rows, columns)), shape=(900, 3000)).astype(bool).astype(np.float32))
    written = size_of(EASE(6.0).fit(x, solver=Local(50)), tmp_path / "model", form="auto", histories=x)
    most = 3000 * 50 * 8
    assert written < 0.7 * most
    assert store.forecast_size(x, Local(50)) == pytest.approx(written, rel=0.05)


def test_histories_that_the_dual_form_holds_are_not_counted_twice(tmp_path):
    x = data("int")
    model = EASE(6.0).fit(x, solver="dual")
    assert store.forecast_size(x, "dual", form="dual") == size_of(model, tmp_path / "m", form="dual", histories=x)


def test_a_form_that_a_solver_does_not_lead_to_is_refused():
    with pytest.raises(ValueError, match="has the primal form, and cannot be saved in the dual form"):
        store.forecast_size(data(), "primal", form="dual")
