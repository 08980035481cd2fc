"""Laws of tables: whatever holds them, in whatever order, they become the same matrix."""

import gzip
import subprocess
import sys
import uuid
from collections import Counter
from contextlib import nullcontext

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relae.data import Interactions
from relae.errors import DataError

from ..effort import repeat
from .tables import as_dict, check_form, core, same, summed, tables


@given(tables())
def test_without_weights_a_cell_is_one_however_often_it_occurs(table):
    data = Interactions.from_frame(table)
    check_form(data)
    assert as_dict(data) == dict.fromkeys(table.select("user", "item").rows(), 1.0)
    assert data.users.values.tolist() == sorted(set(table["user"]))
    assert data.items.values.tolist() == sorted(set(table["item"]))


@given(tables().filter(lambda table: len(summed(table)) > 0))
def test_with_weights_a_cell_is_their_sum(table):
    data = Interactions.from_frame(table, weight="weight", weighting="linear")
    check_form(data)
    assert as_dict(data) == summed(table)


@given(tables().filter(lambda table: len(summed(table)) > 0), st.integers(0, 2**32 - 1))
def test_the_order_of_the_rows_does_not_matter(table, seed):
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=seed)
    assert same(
        Interactions.from_frame(table, weight="weight", weighting="linear"),
        Interactions.from_frame(shuffled, weight="weight", weighting="linear"),
    )


@given(tables(), st.integers(1, 5))
def test_ratings_below_the_threshold_do_not_exist(table, lowest):
    kept = table.filter(pl.col("rating") >= lowest)
    if kept.height == 0:
        with pytest.raises(DataError, match=f"min_rating={lowest} removed {table.height} rows"):
            Interactions.from_frame(table, rating="rating", min_rating=lowest)
    else:
        filtered = Interactions.from_frame(table, rating="rating", min_rating=lowest)
        assert same(filtered, Interactions.from_frame(kept))


@given(tables(), st.integers(2, 4))
def test_the_core_is_a_fixed_point_and_the_largest(table, k):
    expected = core(set(table.select("user", "item").rows()), k)
    if not expected:
        with pytest.raises(DataError, match=f"k_core={k} removed"):
            Interactions.from_frame(table, k_core=k)
        return
    data = Interactions.from_frame(table, k_core=k)
    check_form(data)
    assert set(as_dict(data)) == expected
    counts = data.statistics()
    assert min(counts.per_user.min, counts.per_item.min) >= k


@given(tables(), st.integers(0, 3), st.integers(0, 3))
def test_counts_are_filtered_once_items_first(table, users, items):
    pairs = set(table.select("user", "item").rows())
    by_item = Counter(item for _, item in pairs)
    pairs = {pair for pair in pairs if by_item[pair[1]] >= items}
    by_user = Counter(user for user, _ in pairs)
    pairs = {pair for pair in pairs if by_user[pair[0]] >= users}
    if pairs:
        rare = any(count < items for count in Counter(item for _, item in pairs).values())
        with pytest.warns(UserWarning, match="is one pass") if rare else nullcontext():
            data = Interactions.from_frame(table, min_user_count=users, min_item_count=items)
        assert set(as_dict(data)) == pairs
    else:
        with pytest.raises(DataError, match=r"nothing is left of .* removed"):
            Interactions.from_frame(table, min_user_count=users, min_item_count=items)


@settings(max_examples=repeat(10, 25), deadline=None)
@given(tables().filter(lambda table: len(summed(table)) > 0))
def test_every_kind_of_table_gives_the_same(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("tables")
    text = table.write_csv()
    (folder / "t.csv").write_text(text, encoding="utf-8")
    (folder / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    with pa.CompressedOutputStream(str(folder / "t.csv.zst"), "zstd") as stream:
        stream.write(text.encode())
    table.write_csv(folder / "t.tsv", separator="\t")
    table.write_csv(folder / "semicolons.csv", separator=";")
    table.write_csv(folder / "t.data", separator="|")
    table.write_parquet(folder / "t.parquet")

    columns = {"weight": "weight", "weighting": "linear", "rating": "rating", "min_rating": 1}
    expected = Interactions.from_frame(table, **columns)
    for frame in (table.lazy(), pd.DataFrame(table.to_dict(as_series=False)), table.to_arrow()):
        assert same(Interactions.from_frame(frame, **columns), expected)
    for name in ("t.csv", "t.csv.gz", "t.csv.zst", "t.tsv", "semicolons.csv", "t.parquet"):
        assert same(Interactions.read(folder / name, **columns), expected)
    assert same(Interactions.read(str(folder / "t.data"), separator="|", **columns), expected)


def frame_of(user, item=None):
    return pl.DataFrame({"user": user, "item": item or list(range(len(user)))})


def users_of(frame):
    return Interactions.from_frame(frame).users


def test_leading_zeros_survive_a_text_file(tmp_path):
    path = tmp_path / "books.csv"
    path.write_text("user,item\n1,0155061224\n2,0446520802\n3,34\n")
    data = Interactions.read(path)
    assert data.items.values.tolist() == ["0155061224", "0446520802", "34"]
    assert data.users.values.tolist() == [1, 2, 3]
    assert data.history("2") == ["0446520802"]


@pytest.mark.parametrize("odd", ["+5", "-0", "1.0", "1e3", "5 ", "9223372036854775808", "x", "１２"])
def test_one_id_that_is_not_written_like_an_integer_keeps_the_column_text(tmp_path, odd):
    path = tmp_path / "t.csv"
    path.write_text(f"user,item\n10,1\n9,1\n{odd},1\n", encoding="utf-8")
    data = Interactions.read(path)
    assert data.users.kind == "str"
    assert data.users.values.tolist() == sorted(["10", "9", odd])


def test_the_kind_of_the_ids_does_not_depend_on_the_ratings(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("user,item,stars\n007,1,1\n8,2,5\n")
    assert Interactions.read(path, rating="stars", min_rating=3).users.values.tolist() == ["8"]


def test_typed_strings_stay_strings():
    assert users_of(frame_of(["10", "9"])).values.tolist() == ["10", "9"]


def test_unicode_ids_are_sorted_by_code_point():
    names = ["z", "é", "李", "😀", "\uffee"]
    assert users_of(frame_of(names[::-1])).values.tolist() == sorted(names)


def test_whole_floats_are_integers():
    assert users_of(frame_of([3.0, 1.0])).values.tolist() == [1, 3]
    assert users_of(pd.DataFrame({"user": [3.0, 1.0], "item": [1, 1]})).values.tolist() == [1, 3]
    decimals = pl.Series(["3.00", "1.00"]).cast(pl.Decimal(10, 2))
    assert users_of(frame_of([1, 2]).with_columns(user=decimals)).values.tolist() == [1, 3]


def test_other_types_of_ids_become_strings_or_integers():
    categories = pl.Series(["b", "a"])
    for dtype in (pl.Categorical, pl.Enum(["b", "a"]), pl.Binary):
        frame = frame_of([1, 2]).with_columns(user=categories.cast(dtype))
        assert users_of(frame).values.tolist() == ["a", "b"]
    names = sorted(str(uuid.uuid4()) for _ in range(2))
    for frame in (pl.DataFrame, pd.DataFrame):
        assert users_of(frame({"user": [uuid.UUID(n) for n in names], "item": [1, 2]})).values.tolist() == names
    assert users_of(frame_of([2**63 + 1, 5])).values.tolist() == ["5", str(2**63 + 1)]
    assert users_of(frame_of([np.int8(3), np.int8(1)])).values.tolist() == [1, 3]


@pytest.mark.parametrize("dtype", ["category", "Int64", "int64[pyarrow]", "uint8", "object", "float32"])
def test_pandas_integers_of_every_dtype(dtype):
    frame = pd.DataFrame({"user": pd.Series([3, 1, 3]).astype(dtype), "item": [1, 2, 1]})
    assert users_of(frame).values.tolist() == [1, 3]


@pytest.mark.parametrize("dtype", ["category", "object", "str", "string", "string[pyarrow]", "string[python]"])
def test_pandas_strings_of_every_dtype(dtype):
    frame = pd.DataFrame({"user": pd.Series(["b", "a", "b"]).astype(dtype), "item": [1, 2, 1]})
    assert users_of(frame).values.tolist() == ["a", "b"]


def test_pyarrow_dictionaries_and_chunks():
    first, second = pa.array(["b", "a"]).dictionary_encode(), pa.array(["c"]).dictionary_encode()
    table = pa.table({"user": pa.chunked_array([first, second]), "item": [1, 2, 3]})
    assert users_of(table).values.tolist() == ["a", "b", "c"]


def test_columns_of_other_names(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('userId,"movie, id",when\n1,7,3\n2,7,4\n')
    data = Interactions.read(path, user="userId", item="movie, id")
    assert as_dict(data) == {(1, 7): 1.0, (2, 7): 1.0}


def test_one_column_may_be_rating_and_weight():
    frame = pl.DataFrame({"user": [1, 1, 2], "item": [1, 1, 1], "stars": ["4", " 5", "2"]})
    data = Interactions.from_frame(frame, weight="stars", weighting="linear", rating="stars", min_rating=4)
    assert as_dict(data) == {(1, 1): 9.0}


def test_zero_weights_are_no_interactions():
    frame = pl.DataFrame({"user": [1, 2, 2], "item": [1, 1, 2], "n": [0, 3, 0]})
    data = Interactions.from_frame(frame, weight="n", weighting="linear")
    assert as_dict(data) == {(2, 1): 3.0}
    assert data.users.values.tolist() == [2]


@pytest.mark.parametrize("text", ["﻿user,item\n1,2\n", "user,item\r\n1,2\r\n", "user,item\n1,2\n\n\n", "user,item\n1,2"])
def test_files_as_editors_leave_them(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    assert as_dict(Interactions.read(path)) == {(1, 2): 1.0}


class TestTitles:
    frame = pl.DataFrame({"user": [1, 1, 2], "asin": [10, 20, 30]})
    expected = ("ten", None, "thirty")

    def titles(self, source):
        return tuple(Interactions.from_frame(self.frame, item="asin", titles=source).titles)

    def test_from_a_mapping(self):
        assert self.titles({"10": "ten", 30: "thirty", 99: "unknown", 20: None}) == self.expected

    @pytest.mark.parametrize("column", ["asin", "item"])
    def test_from_a_frame(self, column):
        table = {column: [30, 99, 10, 20, 10], "title": ["thirty", "unknown", "ten", None, "second"]}
        for frame in (pl.DataFrame(table), pd.DataFrame(table), pa.table(table), pl.LazyFrame(table)):
            assert self.titles(frame) == self.expected

    @pytest.mark.parametrize("name", ["t.csv", "t.tsv"])
    def test_from_a_file(self, tmp_path, name):
        separator = "," if name == "t.csv" else "\t"
        rows = [("item", "title", "year"), ("10", "ten", "1"), ("20", "", "1"), ("30", "thirty", "1")]
        (tmp_path / name).write_text("\n".join(separator.join(row) for row in rows))
        assert self.titles(tmp_path / name) == self.titles(str(tmp_path / name)) == self.expected

    def test_of_items_that_are_strings(self):
        frame = pl.DataFrame({"user": [1, 1], "item": ["1", "x"]})
        data = Interactions.from_frame(frame, titles={1: "one", "x": "ex"})
        assert data.titles.tolist() == ["one", "ex"]
        assert data.title(1) == "one"
        assert data.title("y") is None

    def test_numbers_are_titles_too(self):
        assert self.titles({10: 1984}) == ("1984", None, None)

    def test_without_a_column(self):
        with pytest.raises(DataError, match=r"table of titles has no column 'title', .*: rename 'Title' to 'title'"):
            self.titles(pl.DataFrame({"item": [1], "Title": ["x"]}))
        with pytest.raises(DataError, match="has no column 'item', its columns are 'id', 'title'"):
            self.titles(pl.DataFrame({"id": [1], "title": ["x"]}))

    def test_from_a_list_says_what_is_missing(self):
        with pytest.raises(DataError, match="the table of titles is a list"):
            self.titles(["ten", "twenty", "thirty"])


def test_pyarrow_is_not_needed():
    code = """
import sys
sys.modules["pyarrow"] = None  # as if it were not installed
import pandas, polars
from relae.data import Interactions
from relae.datasets import online_retail
assert online_retail().n_users == 4_339
table = {"user": ["b", "a"], "item": [1, 2], "n": [1.5, 2.0]}
titles = pandas.DataFrame({"item": [1], "title": ["one"]})
for frame in (polars.DataFrame(table), pandas.DataFrame(table)):
    data = Interactions.from_frame(frame, weight="n", weighting="linear", titles=titles)
    assert data.users.values.tolist() == ["a", "b"]
    assert data.title(1) == "one"
"""
    subprocess.run([sys.executable, "-c", code], check=True)
