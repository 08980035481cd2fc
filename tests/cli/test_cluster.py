"""`relae fit --scheduler` with a cluster of real processes."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import relae
from relae import EASE, RDLAE, Interactions

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def address():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit="2GiB"
    ) as cluster:
        yield cluster.scheduler_address


def test_a_cluster_fits_what_this_machine_would(address, table, columns, data, shell, tmp_path):
    call = ("fit", table, *columns, "--l2", 10, "--scheduler", address, "--json")
    answer = json.loads(shell.ok(*call, "--out", tmp_path / "m"))
    assert answer["data"]["histories"]
    expected = RDLAE(l2=10.0).fit(data).recommend(data.matrix, 5)[0]
    assert (relae.load(tmp_path / "m").recommend(data.matrix, 5)[0] == expected).mean() > 0.999


def test_files_that_only_the_workers_read(address, shell, tmp_path):
    rng = np.random.default_rng(0)
    for part in range(3):
        users = np.repeat(np.arange(50 * part, 50 * part + 50), 8)
        frame = pl.DataFrame({"user": users, "item": rng.integers(0, 40, len(users))}).unique(maintain_order=True)
        frame.write_parquet(tmp_path / f"{part}.parquet")
    pattern = str(tmp_path / "*.parquet")
    given = ("--model", "ease", "--l2", 5, "--scheduler", address, "--out", tmp_path / "m")
    said = shell.ok("fit", pattern, *given)
    assert "150 users × 40 items" in said
    whole = pl.concat([pl.read_parquet(path) for path in sorted(Path(tmp_path).glob("*.parquet"))])
    expected = EASE(5.0).fit(Interactions.from_frame(whole))
    found = relae.load(tmp_path / "m")
    assert found.items_ == expected.items_
    assert np.allclose(found.score([[1, 2], [7]]), expected.score([[1, 2], [7]]), atol=1e-5)
    assert "--titles is for tables that are read here" in shell("fit", pattern, "--titles", "x.csv", *given).line()


def test_nobody_is_there(table, columns, shell, tmp_path, monkeypatch):
    client = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda address, timeout: client(address, timeout=timeout / 10))
    call = ("fit", table, *columns, "--scheduler", "tcp://127.0.0.1:9", "--out", tmp_path / "m")
    assert "there is no Dask scheduler at tcp://127.0.0.1:9" in shell(*call).line()
    call = (
        "fit",
        table,
        *columns,
        "--model",
        "popularity",
        "--scheduler",
        "tcp://127.0.0.1:9",
        "--out",
        tmp_path / "m",
    )
    assert "a cluster fits linear autoencoders, and not Popularity" in shell(*call).line()
