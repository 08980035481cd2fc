"""Data in files: the same matrix, the same Gram, and no change unseen."""

import os

import numpy as np
import polars as pl
import pytest

from relae import DataError, Interactions
from relae.distributed import Dask, Partitions, split_by_user
from relae.distributed._cluster import Job, finish
from relae.distributed._tiles import edges, gram_tiles
from relae.solvers import solve

from .suite import NOISE, Killer, interactions, write_files

pytestmark = NOISE


@pytest.mark.parametrize("name", [int, "item {}".format], ids=["integers", "strings"])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_equal_those_of_one_table(client, tmp_path, name, weighted):
    x = interactions(300, 70, weighted=weighted)
    files = write_files(tmp_path / "data", x, 11, name=name, weight=weighted)
    weight = "weight" if weighted else None
    found = Partitions.from_parquet(files, client, weight=weight, weighting=weight and "linear")
    expected = Interactions.from_frame(
        pl.read_parquet(files), user="user", item="item", weight=weight, weighting=weight and "linear"
    )
    assert found.shape == (expected.n_users, expected.n_items)
    assert found.nnz == expected.n_interactions
    assert found.items == expected.items
    assert (found.item_counts == np.bincount(expected.matrix.indices)).all()
    assert np.array_equal(found.squares, np.asarray((expected.matrix**2).sum(axis=0)).ravel())
    job = Job(client)
    ours = np.vstack([block.toarray() for block in client.gather(found.blocks(job, "float32"))])
    theirs = expected.matrix.toarray()
    if not isinstance(expected.users.values[0], str):  # integers sort alike within the files and over all of them
        assert np.array_equal(ours, theirs)
    assert np.array_equal(ours.T @ ours, theirs.T @ theirs)


@pytest.mark.parametrize("tile", [16, 25, 70])
@pytest.mark.parametrize("files", [1, 9])
def test_gram_tiles(client, tmp_path, tile, files):
    x = interactions(300, 70)
    found = Partitions.from_parquet(write_files(tmp_path / "data", x, files), client)
    penalty = np.linspace(1, 2, found.shape[1])
    job = Job(client)
    tiles = gram_tiles(job, found.blocks(job, "float64"), penalty, tile, "float64")
    kept = x.toarray()[:, np.asarray(x.sum(axis=0)).ravel() > 0].astype(np.float64)
    expected = kept.T @ kept + np.diag(penalty)
    spans = edges(len(penalty), tile)
    for (i, j), future in tiles.items():
        assert np.array_equal(future.result(), expected[slice(*spans[i]), slice(*spans[j])])
    assert set(tiles) == {(i, j) for i in range(len(spans)) for j in range(i + 1)}


def test_gram_survives_a_worker(client, tmp_path):
    x = interactions(2000, 400)
    found = Partitions.from_parquet(write_files(tmp_path / "data", x, 9), client)
    job = Job(client)
    blocks = found.blocks(job, "float32")
    tiles = gram_tiles(job, blocks, np.zeros(found.shape[1]), 64, "float32")
    order = list(tiles)
    finish([tiles[place] for place in order[: len(order) // 2]])
    killer = Killer(client, 0, "sum")
    killer("gram", 0.5)
    assert killer.lost
    spans = edges(found.shape[1], 64)
    kept = x.toarray()[:, np.asarray(x.sum(axis=0)).ravel() > 0]
    expected = kept.T @ kept
    for i, j in order:
        assert np.array_equal(tiles[i, j].result(), expected[slice(*spans[i]), slice(*spans[j])])


def test_a_user_in_two_files_is_refused_and_can_be_brought_together(client, tmp_path):
    x = interactions(100, 30)
    files = write_files(tmp_path / "data", x, 4)
    table = pl.read_parquet(files)
    for at in range(3):  # by item: users are everywhere
        table.filter(pl.col("item") % 3 == at).write_parquet(tmp_path / f"by-item-{at}.parquet")
    with pytest.raises(DataError, match=r"user \d+ occurs in .*by-item-\d.* and in .*by-item-\d.*split_by_user"):
        Partitions.from_parquet(tmp_path / "by-item-*", client)
    written = split_by_user(tmp_path / "by-item-*", client, tmp_path / "by-user", parts=5)
    assert sorted(os.listdir(tmp_path / "by-user")) == [os.path.basename(path) for path in written]
    found = Partitions.from_parquet(written, client)
    assert found.nnz == x.nnz
    assert found.shape[0] == 100
    with pytest.raises(DataError, match="not empty"):
        split_by_user(tmp_path / "by-item-*", client, tmp_path / "by-user", parts=5)


def test_what_is_not_there(client, tmp_path):
    with pytest.raises(DataError, match="no file matches"):
        Partitions.from_parquet(tmp_path / "*.parquet", client)
    with pytest.raises(DataError, match=r"missing\.parquet cannot be read by a worker"):
        Partitions.from_parquet([tmp_path / "missing.parquet"], client)
    pl.DataFrame({"user": [1], "product": [2]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(DataError, match="item"):
        Partitions.from_parquet(tmp_path / "*.parquet", client)


@pytest.mark.parametrize("solver", ["local", "primal"])
def test_data_changed_before_it_is_read(client, tmp_path, solver):
    found = Partitions.from_parquet(write_files(tmp_path / "data", interactions(100, 30), 3), client)
    _add_a_row(tmp_path / "data" / "001.parquet")
    with pytest.raises(DataError, match=r"001\.parquet changed under way"):
        solve(found, found.squares + 5, solver=Dask(client, solver))


@pytest.mark.parametrize("solver", ["local", "primal"])
def test_data_changed_after_it_was_read(client, tmp_path, solver):
    found = Partitions.from_parquet(write_files(tmp_path / "data", interactions(100, 30), 3), client)

    def change(stage, fraction):
        if fraction == 1:
            _add_a_row(tmp_path / "data" / "002.parquet")

    with pytest.raises(DataError, match=r"002\.parquet changed under way"):
        solve(found, found.squares + 5, progress=change, solver=Dask(client, solver))


def test_data_changed_and_read_again_after_a_worker_died(client, tmp_path):
    found = Partitions.from_parquet(write_files(tmp_path / "data", interactions(2000, 500), 4), client)

    def change():
        for path in found.files:
            _add_a_row(path)

    killer = Killer(client, 0.2, "read", change)
    with pytest.raises(DataError, match=r"parquet changed under way"):
        solve(found, found.squares + 5, progress=killer, solver=Dask(client, "primal", tile=64))
    assert killer.lost


def _add_a_row(path):
    table = pl.read_parquet(path)
    pl.concat([table, table.head(1)]).write_parquet(path)
