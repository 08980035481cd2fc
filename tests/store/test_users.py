"""Users whom a saved model knows: what they have seen beside their histories, and who was dropped."""

import json

import numpy as np
import polars as pl
import pytest

from relae import EASE, Interactions, StoreError, store

from ..data.tables import dropped_users, seen_pairs
from ..oracles import csr, example
from .suite import ITEMS, USERS, fitted

X = example(USERS, ITEMS, weighted=True)
SEEN = (np.random.default_rng(5).random(X.shape) < 0.3) & (X == 0)


def ratings(ids):
    """A table in which user 1 and 2 stay, 3 has only low ratings and 4 too few."""
    name = {"int": int, "str": lambda number: f"n° {number}"}[ids]
    rows = [(1, 10, 5), (1, 11, 1), (1, 12, 4), (2, 11, 5), (2, 12, 5), (2, 10, 2), (3, 10, 1), (4, 10, 5), (1, 13, 2)]
    return pl.DataFrame([(name(u), name(i), stars) for u, i, stars in rows], ["user", "item", "stars"], orient="row")


@pytest.fixture(params=["int", "str"])
def data(request):
    return Interactions.from_frame(ratings(request.param), rating="stars", min_rating=4, min_user_count=2)


@pytest.fixture
def folder(data, tmp_path):
    EASE(1.0).fit(data).save(tmp_path / "model", histories=data)
    return tmp_path / "model"


def array(folder, name):
    [path] = folder.glob(f"arrays-*/{name}.npy")
    return path


def damage(folder, name, change):
    """Change the values of an array, and neither its type nor its shape."""
    values = np.load(array(folder, name))
    change(values)
    np.save(array(folder, name), values)


def test_what_is_known_of_users_comes_back(data, folder):
    saved = store.open_model(folder, verify=True)
    found = saved.histories
    assert len(seen_pairs(data)) == 2
    assert seen_pairs(found) == seen_pairs(data)
    assert dropped_users(found) == dropped_users(data)
    assert set(dropped_users(data).values()) == {"min_rating=4", "min_user_count=2"}
    assert saved.info["data"]["seen"] == 2
    assert saved.info["data"]["filters"] == ["min_rating=4", "min_user_count=2"]
    assert found.users == data.users
    assert (found.matrix != data.matrix).nnz == 0


def test_saved_again_it_is_the_same(data, folder, tmp_path):
    saved = store.open_model(folder)
    saved.model.save(tmp_path / "again", histories=saved.histories)
    again = store.open_model(tmp_path / "again", verify=True).histories
    assert seen_pairs(again) == seen_pairs(data)
    assert dropped_users(again) == dropped_users(data)


def test_it_is_saved_on_the_columns_of_the_model(tmp_path):
    """Histories may have other items than the model; what it does not know it cannot recommend."""
    data = Interactions(csr(X), seen=csr(SEEN))
    other = Interactions(csr(X[:, :5]), items=[f"ïtem {j}" for j in (4, 2, 99, 0, 30)], seen=csr(SEEN[:, :5]))
    for histories, model in ((data, EASE(6.0).fit(data)), (other, fitted("RDLAE"))):
        model.save(tmp_path / "model", histories=histories)
        found = store.open_model(tmp_path / "model").histories
        expected = {pair for pair in seen_pairs(histories) if pair[1] != "ïtem 99"}
        assert seen_pairs(found) == expected


def test_a_model_whose_users_have_seen_nothing_has_no_arrays_for_it(tmp_path):
    data = Interactions(csr(X))
    EASE(6.0).fit(data).save(tmp_path / "model", histories=data)
    saved = store.open_model(tmp_path / "model")
    assert not {"seen_starts", "dropped_users"} & set(saved.info["arrays"])
    assert saved.info["data"]["seen"] == 0
    assert saved.histories.seen is None
    assert saved.histories.dropped is None


@pytest.mark.parametrize("name", ["EASE", "GFCF", "ItemKNN"])
def test_without_histories_nothing_of_users_is_saved(name, tmp_path):
    fitted(name).save(tmp_path / "model")
    assert not {"users", "seen_starts", "dropped_users"} & set(store.open_model(tmp_path / "model").info["arrays"])


DAMAGES = {
    "a column beyond the last": ("seen_columns", lambda values: values.__setitem__(0, 1000)),
    "a column below the first": ("seen_columns", lambda values: values.__setitem__(0, -1)),
    "a row that ends before it begins": ("seen_starts", lambda values: values.__setitem__(1, 99)),
    "fewer pairs than there are": ("seen_starts", lambda values: values.__setitem__(-1, 1)),
    "a filter that is not there": ("dropped_reasons", lambda values: values.__setitem__(0, 7)),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_what_cannot_be_is_refused_before_a_kernel_sees_it(folder, kind):
    damage(folder, *DAMAGES[kind])
    with pytest.raises(StoreError, match=r"is corrupt: .*; copy or save the model again"):
        _ = store.open_model(folder).histories


def test_the_record_names_the_filters(folder):
    record = json.loads((folder / "model.json").read_text())
    assert record["data"]["filters"] == ["min_rating=4", "min_user_count=2"]
