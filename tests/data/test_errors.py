"""Errors name the file, the column, the row and the value, and say what to do."""

import pandas as pd
import polars as pl
import pytest

from relae.data import Interactions
from relae.errors import DataError


def fails(message, frame, **options):
    with pytest.raises(DataError, match=message):
        Interactions.from_frame(frame, **options)


@pytest.fixture
def file(tmp_path):
    def write(content, name="events.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def read_fails(message, path, **options):
    with pytest.raises(DataError, match=message) as caught:
        Interactions.read(path, **options)
    assert str(path) in str(caught.value)


def test_missing_column(file):
    path = file("userId,movieId\n1,2\n")
    read_fails("has no column 'user', its columns are 'userId', 'movieId': set user='userId'", path)
    read_fails("has no column 'thing', .* set item=…", path, user="userId", item="thing")
    fails(
        "the table has no column 'weight', .*: set weight='Weights'",
        pl.DataFrame({"user": [1], "item": [1], "Weights": [1]}),
        weight="weight",
    )


def test_null_ids(file):
    path = file("user,item\n1,2\n3\n,5\n,6\n")
    read_fails(r"column 'user' has no value in row 3 \(and 1 more\): drop the row or fill it", path)
    fails("column 'item' has no value in row 2", pl.DataFrame({"user": [1, 2], "item": ["a", ""]}))
    fails("column 'user' has no value in row 2", pd.DataFrame({"user": [1, None], "item": [1, 2]}))
    fails("column 'user' has no value in row 1", pd.DataFrame({"user": [None, "a"], "item": [1, 2]}))
    fails("column 'user' has no value in row 1", pl.DataFrame({"user": [None], "item": [1]}))
    fails("column 'user' has no value in row 2", pl.DataFrame({"user": [1.0, float("nan")], "item": [1, 2]}))


def test_rows_are_those_of_the_file_even_after_a_filter(file):
    path = file("user,item,stars\n1,2,1\n1,3,1\n,3,5\n")
    read_fails("column 'user' has no value in row 3:", path, rating="stars", min_rating=4)


def test_ids_of_impossible_types():
    ids = {"item": [1, 2]}
    fails(
        "'user' has the value 2.5 in row 2: ids are whole numbers or strings",
        pl.DataFrame({"user": [1.0, 2.5], **ids}),
    )
    fails("'user' has the value inf in row 1", pl.DataFrame({"user": [float("inf"), 2], **ids}))
    fails("'user' has the type Boolean, which cannot be an id", pl.DataFrame({"user": [True, False], **ids}))
    fails(
        "'user' has the type Datetime",
        pd.DataFrame({"user": pd.date_range("2020", periods=2, unit="ns"), **ids}),
    )
    fails("'user' has the type List", pl.DataFrame({"user": [[1], [2]], **ids}))
    fails(
        r"'user' has the value b'\\xff' in row 2: these bytes are not UTF-8",
        pl.DataFrame({"user": [b"a", b"\xff"], **ids}),
    )
    fails("'user' mixes values of the types int, str", pd.DataFrame({"user": [1, "a"], **ids}))
    fails(
        "an object of the type set in row 1",
        pl.DataFrame({"user": pl.Series([{1}, {2}], dtype=pl.Object), **ids}),
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("-1", "has the value -1.0 in row 2: a weight must not be negative"),
        ("nan", "has the value nan in row 2"),
        ("inf", "has the value inf in row 2: a weight must be finite"),
        ("", "has no value in row 2"),
        ("many", "has the value 'many' in row 2: that is not a number"),
    ],
)
def test_bad_weights(file, value, message):
    path = file(f"user,item,n\n1,2,3\n1,3,{value}\n")
    read_fails(f"column 'n' {message}", path, weight="n")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("NaN", "has the value nan in row 2"),
        ("", "has no value in row 2"),
        ("good", "has the value 'good' in row 2"),
    ],
)
def test_bad_ratings(file, value, message):
    path = file(f"user,item,stars\n1,2,3\n1,3,{value}\n")
    read_fails(f"column 'stars' {message}", path, rating="stars", min_rating=1)


def test_numbers_of_impossible_types():
    frame = pl.DataFrame({"user": [1], "item": [1], "n": [[1]]})
    fails("column 'n' has the type List.*, which is not a number", frame, weight="n")


def test_weights_too_large():
    frame = pl.DataFrame({"user": [1], "item": [1], "n": [1e300]})
    fails("sum to 1e.300, too large for float32", frame, weight="n")


def test_options_that_do_not_go_together():
    frame = pl.DataFrame({"user": [1], "item": [1], "stars": [5]})
    fails("min_rating=4 needs the column of the ratings: set rating=", frame, min_rating=4)
    fails("rating='stars' needs a threshold: set min_rating=", frame, rating="stars")
    fails("user and item both name the column 'user'", frame, item="user")


def test_empty_tables(file):
    fails("the table has no rows", pl.DataFrame({"user": [], "item": []}))
    read_fails("has no rows", file("user,item\n"))
    read_fails("is empty: it needs a header line", file(""))


def test_nothing_left_says_which_filter_removed_how_many():
    frame = pl.DataFrame({"user": [1, 2, 3, 3, 3], "item": [1, 2, 3, 4, 4], "stars": [1, 5, 5, 5, 5]})
    fails(
        "nothing is left of 5 rows: min_rating=2 removed 1 rows, k_core=2 removed 3 interactions",
        frame,
        rating="stars",
        min_rating=2,
        k_core=2,
    )
    zero = pl.DataFrame({"user": [1], "item": [1], "n": [0]})
    fails("weights of zero removed 1 interactions", zero, weight="n")
    fails(
        "min_item_count=2 removed 4 interactions",
        frame,
        min_item_count=2,
    )


def test_files_that_are_not_there(tmp_path, file):
    path = file("user,item\n1,2\n", "ratings.csv")
    read_fails("is a folder, not a file", tmp_path)
    read_fails("does not exist: did you mean 'ratings.csv'", tmp_path / "rating.csv")
    read_fails("does not exist$", tmp_path / "nowhere" / "at-all.csv")
    assert path.exists()


def test_unknown_extensions(file):
    read_fails(r"the extension '\.dat' is unknown.*separator=.*read_lists", file("1::2\n", "ratings.dat"))
    read_fails("the extension '' is unknown", file("1 2\n", "ratings"))


def test_files_that_cannot_be_parsed(file):
    read_fails("row 2 has 3 fields and the header 2: '1,2,3'", file("user,item\n1,2\n1,2,3\n"))
    read_fails("row 1 is not UTF-8", file("user,item\n1,é\n".encode("latin-1")))
    read_fails("a quote that opens in row 2 is never closed", file('user,item\n1,2\n1,"2\n3,4\n'))
    read_fails("cannot be read as Parquet", file(b"no parquet at all", "t.parquet"))
    read_fails("cannot be read as a text table", file(b"\x1f\x8b broken", "t.csv.gz"))


def test_separators(file):
    with pytest.raises(DataError, match="separator must be one ASCII character, got '::'"):
        Interactions.read(file("user::item\n1::2\n", "ratings.dat"), separator="::")


def test_what_is_no_table():
    for thing in ([1, 2], {"user": [1], "item": [2]}, None):
        fails(f"the table is a {type(thing).__name__}: give a pandas, polars or pyarrow table", thing)
    fails("several columns of one name", pd.DataFrame([[1, 2]], columns=["user", "user"]))


def test_errors_are_value_errors():
    with pytest.raises(ValueError, match="no rows"):
        Interactions.from_frame(pl.DataFrame({"user": [], "item": []}))
