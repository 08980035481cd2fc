"""Recommendations for everyone, in files."""

import os

import numpy as np
import polars as pl
import pytest

from relae import EASE, RDLAE, DataError, Interactions, load
from relae import batch as recommending
from relae.batch import recommend_to_parquet
from relae.distributed import Partitions

from .suite import NOISE, interactions, write_files

pytestmark = NOISE


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    x = interactions(400, 60)
    files = write_files(folder / "data", x, 5, name="n{}".format)
    data = Interactions.from_frame(pl.read_parquet(files), user="user", item="item")
    model = RDLAE(5, 0.3, 0.4).fit(data)
    model.save(folder / "model")
    return model, data, files, folder / "model"


def expected(model, histories, users, items, k):
    ids, scores = model.recommend(histories, k)
    return {
        (users[row], rank + 1): (items[ids[row, rank]], scores[row, rank])
        for row in range(len(ids))
        for rank in range(k)
        if ids[row, rank] >= 0
    }


def written(files):
    table = pl.concat([pl.read_parquet(path) for path in files])
    assert table.columns == ["user", "rank", "item", "score"]
    assert table.select("user", "rank").is_duplicated().sum() == 0
    return {(row["user"], row["rank"]): (row["item"], row["score"]) for row in table.iter_rows(named=True)}


def agree(found, wanted):
    assert found.keys() == wanted.keys()
    assert all(found[place][0] == wanted[place][0] for place in wanted)
    assert np.allclose([found[place][1] for place in wanted], [wanted[place][1] for place in wanted], atol=1e-6)


@pytest.mark.parametrize("kind", ["matrix", "interactions", "partitions"])
@pytest.mark.parametrize("xi", [None, 0.9])
def test_files_have_what_the_model_recommends(client, saved, tmp_path, kind, xi, monkeypatch):
    monkeypatch.setattr(recommending, "_SENT_BYTES", 1e4)
    model, data, files, folder = saved
    users = np.arange(data.n_users) if kind == "matrix" else data.users.values
    histories = {
        "matrix": lambda: data.matrix,
        "interactions": lambda: data,
        "partitions": lambda: Partitions.from_parquet(files, client),
    }[kind]()
    found = recommend_to_parquet(client, folder, histories, tmp_path / "out", 55, xi=xi)
    assert len(found) > 3
    assert sorted(os.listdir(tmp_path / "out")) == [os.path.basename(path) for path in found]
    asked = model if xi is None else model.with_xi(xi)
    agree(written(found), expected(asked, data.matrix, users, data.items.values, 55))


@pytest.mark.parametrize("kind", ["interactions", "partitions"])
def test_nobody_gets_what_was_rated_low(client, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(recommending, "_SENT_BYTES", 1e4)
    (tmp_path / "data").mkdir()
    rng = np.random.default_rng(0)
    rated = interactions(300, 40).tocoo()
    rows = pl.DataFrame({"user": rated.row, "item": rated.col, "stars": rng.integers(1, 6, rated.nnz)})
    for part in range(3):
        rows.filter(pl.col("user") % 3 == part).write_parquet(tmp_path / "data" / f"{part}.parquet")
    how = {"rating": "stars", "min_rating": 4}
    data = Interactions.from_frame(rows, **how)
    # Fitted to everything, so that the model has items that the histories have not.
    EASE(5.0).fit(Interactions.from_frame(rows)).save(tmp_path / "model")
    files = str(tmp_path / "data" / "*.parquet")
    histories = data if kind == "interactions" else Partitions.from_parquet(files, client, **how)
    found = written(recommend_to_parquet(client, tmp_path / "model", histories, tmp_path / "out", 40))
    had = set(rows.select("user", "item").rows())
    assert {user for user, _ in found} == set(data.users.values.tolist())
    assert not had & {(user, item) for (user, _), (item, _) in found.items()}
    assert len(found) == data.n_users * 40 - len({pair for pair in had if pair[0] in data.users.values})


def test_another_way_to_open_a_model(client, saved, tmp_path):
    _, data, _, folder = saved

    def opener(path):
        from relae.store import load

        return load(path).with_xi(0.0)

    found = recommend_to_parquet(client, folder, data.matrix, tmp_path / "out", 5, open_model=opener)
    wanted = expected(load(folder).with_xi(0.0), data.matrix, np.arange(data.n_users), data.items.values, 5)
    agree(written(found), wanted)


def test_a_folder_that_has_something_is_left_alone(client, saved, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(DataError, match="is not empty"):
        recommend_to_parquet(client, saved[3], saved[1].matrix, tmp_path)
    assert os.listdir(tmp_path) == ["mine.txt"]


def test_a_model_saved_anew_is_opened_anew(client, saved, tmp_path):
    _, data, _, _ = saved
    results = []
    for at, l2 in enumerate((1.0, 500.0)):
        EASE(l2).fit(data).save(tmp_path / "model")
        found = recommend_to_parquet(client, tmp_path / "model", data.matrix, tmp_path / f"out-{at}", 5)
        wanted = expected(load(tmp_path / "model"), data.matrix, np.arange(data.n_users), data.items.values, 5)
        agree(written(found), wanted)
        results.append(wanted)
    assert results[0] != results[1]


def test_the_order_of_histories_reaches_the_workers(client, tmp_path):
    rng = np.random.default_rng(6)
    x = rng.random((50, 12)) < 0.4
    log = Interactions(x.astype(float), times=10**9 + 86_400 * rng.permutation(x.sum()))
    model = EASE(2.0, fading=0.8, freshness=0.1).fit(log)
    model.save(tmp_path / "model")
    [file] = recommend_to_parquet(client, tmp_path / "model", log, tmp_path / "lists", 3)
    ids, _ = model.recommend(log, 3)
    assert pl.read_parquet(file)["item"].to_list() == [item for row in ids for item in row if item is not None]
    plain = model.with_dials(fading=0.0).recommend(log, 3)[0]
    assert not np.array_equal(ids, plain)
