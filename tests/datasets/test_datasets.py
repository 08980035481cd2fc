"""The registry of benchmarks, the embedded data set, and real ones where RELAE_DATA names their folder."""

import dataclasses
import hashlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from relae import datasets
from relae.data import Interactions
from relae.datasets import DatasetFile, online_retail
from relae.errors import DataError

from ..data.tables import check_form, same
from ..real_data import real
from .server import serving


def shape(data):
    check_form(data)
    return data.n_users, data.n_items, data.n_interactions


def test_online_retail():
    data = online_retail()
    assert shape(data) == (4_339, 3_665, 266_802)
    assert data.users.kind == "int"
    assert data.items.kind == "str"
    assert all(data.titles)
    assert data.title("85123A") == data.titles[data.items.positions(["85123A"])[0]]
    assert (data.matrix.data == 1).all()


@pytest.mark.parametrize("weight", ["quantity", "invoices"])
def test_online_retail_with_weights(weight):
    data = online_retail(weight, weight and "linear")
    assert shape(data) == (4_339, 3_665, 266_802)
    assert data.matrix.data.max() > 80


def test_online_retail_is_the_original():
    folder = real("online-retail")
    for weight in (None, "quantity", "invoices"):
        options = {"weight": weight, "weighting": weight and "linear"}
        original = Interactions.read(folder / "interactions.csv.gz", **options, titles=folder / "items.csv")
        assert same(online_retail(**options), original)


def test_the_licence_comes_with_the_data():
    folder = Path(sys.modules["relae.datasets"].__file__).parent / "online_retail"
    text = (folder / "ATTRIBUTION.md").read_text()
    assert "CC BY 4.0" in text
    assert "10.24432/C5BW33" in text
    assert sum(file.stat().st_size for file in folder.iterdir()) < 1_000_000


def test_movielens():
    folder = real("ml-1m")
    everything = Interactions.read(folder / "interactions.csv.gz", titles=folder / "items.csv")
    assert shape(everything) == (6_040, 3_706, 1_000_209)
    assert everything.title(260).startswith("Star Wars")
    liked = Interactions.read(folder / "interactions.csv.gz", rating="rating", min_rating=4)
    assert liked.n_interactions == 575_281


def test_gowalla():
    folder = real("gowalla")
    train = Interactions.read_lists(folder / "train.txt")
    assert shape(train) == (29_858, 40_981, 810_128)
    test = Interactions.read_lists(folder / "test.txt", n_items=train.n_items)
    assert shape(test) == (29_858, 40_981, 217_242)
    assert train.matrix.multiply(test.matrix).nnz == 0


def test_book_crossing():
    folder = real("book-crossing")
    data = Interactions.read(folder / "interactions.csv.gz")
    assert shape(data) == (105_283, 340_556, 1_149_780)
    rows = pl.read_csv(folder / "interactions.csv.gz", infer_schema=False)
    assert rows.height == data.n_interactions  # so there were no duplicates to merge
    assert "0155061224" in data.history(276726)


def test_importing_is_quick_because_polars_waits():
    code = "import sys, relae.data; print({'polars', 'narwhals', 'pandas', 'pyarrow'} & set(sys.modules))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "set()"


ALL = [datasets.get(name) for name in datasets.names()]
TRAIN, TEST = b"0 1 2\n2 0\n", b"0 3\n1 2\n"


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """Folders without any data set."""
    monkeypatch.setenv("RELAE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path


def put_gowalla(folder):
    folder.mkdir(parents=True)
    (folder / "train.txt").write_bytes(TRAIN)
    (folder / "test.txt").write_bytes(TEST)


def test_the_names():
    assert datasets.names() == [
        "ml-20m",
        "netflix",
        "msd",
        "gowalla",
        "yelp2018",
        "amazon-book",
        "ml-1m",
        "ml-100k",
        "online-retail",
    ]
    assert datasets.get("Gowalla") is datasets.get("gowalla")


def test_an_unknown_name():
    with pytest.raises(DataError, match=r"no data set 'gowala': did you mean 'gowalla'\? There are ml-20m, netflix"):
        datasets.get("gowala")
    with pytest.raises(DataError, match="no data set 'xyzzy': There are ml-20m"):
        datasets.get("xyzzy")


@pytest.mark.parametrize("dataset", ALL, ids=lambda dataset: dataset.name)
def test_every_data_set_is_described(dataset):
    for words in (dataset.recipe, dataset.licence, dataset.citation, dataset.homepage):
        assert words
    for file in dataset.files:
        assert file.url is None or file.url.startswith(("http://", "https://"))
        assert file.url is None or file.url.endswith("/" + file.name)
        assert file.md5 is None or (len(file.md5) == 32 and int(file.md5, 16))
        assert file.url is not None or dataset.by_hand
    assert (dataset.paper is None) == (dataset.heldout is None)


def test_expected_figures_are_those_of_the_paper_except_where_the_note_says_so():
    for dataset in ALL:
        if dataset.paper is None:
            continue
        assert dataset.expected.users == dataset.paper.users
        assert dataset.expected.items == dataset.paper.items or f"{dataset.paper.items:,}" in dataset.note
        density = dataset.expected.interactions / (dataset.expected.users * dataset.expected.items)
        assert f"{density:.2%}" == f"{dataset.paper.density:.2%}" or "density" in dataset.note


@pytest.mark.parametrize("dataset", [d for d in ALL if d.files], ids=lambda dataset: dataset.name)
def test_missing_files_are_named_with_where_to_put_them(empty, dataset):
    assert not dataset.present
    assert dataset.folder() == empty / "data" / dataset.name
    with pytest.raises(DataError, match=dataset.title) as caught:
        dataset.load()
    for file in dataset.files:
        assert str(empty / "data" / dataset.name / file.name) in str(caught.value)
        assert file.url is None or file.url in str(caught.value)
    assert f"relae datasets get {dataset.name}" in str(caught.value)
    with pytest.raises(DataError, match=dataset.title):
        dataset.pairs()


def test_the_users_cache_serves_without_relae_data(empty, monkeypatch):
    monkeypatch.delenv("RELAE_DATA")
    folder = datasets.get("gowalla").folder()
    assert folder.parts[-2:] == ("relae", "gowalla")
    assert folder.is_relative_to(empty)


def test_the_users_cache_is_looked_into_last(empty, monkeypatch):
    gowalla = datasets.get("gowalla")
    monkeypatch.delenv("RELAE_DATA")
    cache = gowalla.folder()
    put_gowalla(cache)
    monkeypatch.setenv("RELAE_DATA", str(empty / "data"))
    assert gowalla.folder() == cache
    assert gowalla.load().n_interactions == 5
    put_gowalla(empty / "data" / "gowalla")
    assert gowalla.folder() == empty / "data" / "gowalla"


def test_files_of_lightgcn(empty):
    gowalla = datasets.get("gowalla")
    put_gowalla(empty / "data" / "gowalla")
    assert shape(gowalla.load()) == (3, 4, 5)
    pairs = gowalla.pairs()
    assert pairs.users.tolist() == [0, 0, 2, 0, 1]
    assert pairs.items.tolist() == [1, 2, 0, 3, 2]
    assert pairs.owners.tolist() == [0, 1, 2]
    train, test = gowalla.weak()
    assert (train.items.tolist(), test.items.tolist()) == ([1, 2, 0], [3, 2])


def test_only_some_have_a_weak_split(empty):
    for name in ("ml-20m", "netflix", "msd", "ml-1m", "online-retail"):
        with pytest.raises(DataError, match=r"no weak split of .*; it has one of Gowalla, Yelp2018, Amazon-book"):
            datasets.get(name).weak()


def test_the_embedded_one_is_always_there(empty):
    dataset = datasets.get("online-retail")
    assert dataset.present
    assert (dataset.folder() / "ATTRIBUTION.md").exists()
    dataset.download()
    data, pairs = dataset.load(), dataset.pairs()
    assert same(data, online_retail())
    matrix = np.zeros(data.matrix.shape, dtype=bool)
    matrix[pairs.users, pairs.items] = True
    assert np.array_equal(matrix, data.matrix.toarray() > 0)
    assert len(pairs.users) == data.n_interactions


def served_gowalla(site, **changes):
    """Gowalla, but from a server of our own."""
    published = tuple(
        DatasetFile(name, f"{site.url}/{name}", hashlib.md5(body).hexdigest(), len(body))
        for name, body in (("train.txt", TRAIN), ("test.txt", TEST))
    )
    return dataclasses.replace(datasets.get("gowalla"), files=published, **changes)


@pytest.fixture
def site():
    with serving({"/train.txt": TRAIN, "/test.txt": TEST}) as found:
        yield found


def test_download(empty, site):
    dataset = served_gowalla(site)
    stages = []
    dataset.download(lambda stage, fraction: stages.append(stage))
    assert dataset.folder() == empty / "data" / "gowalla"
    assert dataset.load().n_interactions == 5
    assert "train.txt (10 B)" in stages
    dataset.download()
    assert len(site.requests) == 2  # what is there is checked, not fetched again
    dataset.download(force=True)
    assert len(site.requests) == 4


def test_download_of_what_is_missing_only(empty, site):
    folder = empty / "data" / "gowalla"
    folder.mkdir(parents=True)
    (folder / "train.txt").write_bytes(TRAIN)
    served_gowalla(site).download()
    assert len(site.requests) == 1
    assert (folder / "test.txt").read_bytes() == TEST


def test_a_file_that_is_there_but_another(empty, site):
    dataset = served_gowalla(site)
    put_gowalla(empty / "data" / "gowalla")
    (dataset.folder() / "test.txt").write_bytes(b"0 1\n")
    with pytest.raises(
        DataError, match=r"test\.txt is there, but its MD5 sum is .* and not .* Fetch it anew with force=True"
    ):
        dataset.download()
    assert (dataset.folder() / "test.txt").read_bytes() == b"0 1\n"
    dataset.download(force=True)
    assert (dataset.folder() / "test.txt").read_bytes() == TEST


def test_what_has_no_address_is_fetched_by_hand(empty):
    netflix = datasets.get("netflix")
    with pytest.raises(DataError, match=r"no longer offers it: fetch nf_prize_dataset\.tar\.gz by hand"):
        netflix.download()
    folder = empty / "data" / "netflix"
    folder.mkdir(parents=True)
    (folder / "nf_prize_dataset.tar.gz").write_bytes(b"something else")
    with pytest.raises(DataError, match=r"its MD5 sum is .* and not a8f23d2d76461211c6b4c0ca6df2547d"):
        netflix.download()


def test_another_form_that_is_there_needs_no_download(empty):
    folder = empty / "data" / "ml-1m"
    folder.mkdir(parents=True)
    (folder / "ratings.dat").write_text("1::2::5::3\n")
    datasets.get("ml-1m").download()
    assert [file.name for file in folder.iterdir()] == ["ratings.dat"]


def test_gowalla_by_name():
    real("gowalla")
    gowalla = datasets.get("gowalla")
    data = gowalla.load()
    assert shape(data) == tuple(vars(gowalla.expected).values())
    comparison = {row.column: (row.paper, row.ours, row.equal) for row in gowalla.compare(data.statistics())}
    assert comparison == {
        "users": ("29,858", "29,858", True),
        "items": ("40,981", "40,981", True),
        "ratings": ("1,027,370", "1,027,370", True),
        "density": ("0.01%", "0.08%", False),
        "Gini of items": ("0.44", "0.43", False),
    }
    train, test = gowalla.weak()
    pairs = gowalla.pairs()
    assert (len(train.users), len(test.users), len(pairs.users)) == (810_128, 217_242, 1_027_370)
    assert np.array_equal(pairs.items[: len(train.items)], train.items)
    assert f"{Interactions.read_lists(gowalla.folder() / 'train.txt').statistics().gini:.2f}" == "0.44"
    gowalla.download()  # the checksums


def test_movielens_by_name():
    folder = real("ml-1m")
    dataset = datasets.get("ml-1m")
    data = dataset.load()
    assert shape(data) == tuple(vars(dataset.expected).values())
    expected = Interactions.read(
        folder / "interactions.csv.gz",
        rating="rating",
        min_rating=4,
        min_user_count=5,
        timestamp="timestamp",
        titles=folder / "items.csv",
    )
    assert same(data, expected)
    assert np.array_equal(data.times, expected.times)
    assert data.seen is None  # the published protocols do not know what was rated low
    whole = dataset.load(seen=True)
    assert same(whole, expected)
    assert (whole.seen != expected.seen).nnz == 0
    rows = pl.read_csv(folder / "interactions.csv.gz").filter(pl.col("rating") >= 4)
    rows = rows.filter(pl.len().over("user") >= 5)
    pairs = dataset.pairs()
    assert data.users.values[pairs.users].tolist() == rows["user"].to_list()
    assert data.items.values[pairs.items].tolist() == rows["item"].to_list()


def test_the_page_in_the_docs_agrees_and_runs():
    page = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
    for dataset in ALL:
        row = next(line for line in page.splitlines() if line.startswith(f"| `{dataset.name}` |"))
        assert all(file.name in row and (file.md5 or "not known") in row for file in dataset.files)
        if dataset.expected is not None:
            users, items, interactions = vars(dataset.expected).values()
            assert f"{users:,} × {items:,}, {interactions:,}" in row
    [block] = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    exec(compile(block, "docs/datasets.md", "exec"), {})
