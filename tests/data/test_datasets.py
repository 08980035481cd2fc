"""The embedded data set, and real ones where RELAE_DATA names the folder that has them."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from relae.data import Interactions, online_retail

from ..real_data import real
from .tables import check_form, same


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
    data = online_retail(weight=weight)
    assert shape(data) == (4_339, 3_665, 266_802)
    assert data.matrix.data.max() > 80


def test_online_retail_is_the_original():
    folder = real("online-retail")
    for weight in (None, "quantity", "invoices"):
        original = Interactions.read(folder / "interactions.csv.gz", weight=weight, titles=folder / "items.csv")
        assert same(online_retail(weight), original)


def test_the_licence_comes_with_the_data():
    folder = Path(sys.modules["relae.data"].__file__).parent / "online_retail"
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
