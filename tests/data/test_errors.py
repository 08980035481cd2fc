"""Errors name the file, the column, the row and the value, and say what to do."""

import os
import sys
import threading

import pandas as pd
import polars as pl
import pytest

from relae.data import Interactions
from relae.errors import DataError

from .tables import stream


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
    (tmp_path / "empty").mkdir()
    read_fails("has no files that end in .parquet", tmp_path / "empty")
    read_fails("does not exist: did you mean 'ratings.csv'", tmp_path / "rating.csv")
    read_fails("does not exist$", tmp_path / "nowhere" / "at-all.csv")
    assert path.exists()


def test_unknown_extensions(file):
    read_fails(
        r"the extension '\.dat' is unknown.*; convert it to one of these, or in Python .*separator=.*read_lists",
        file("1::2\n", "ratings.dat"),
    )
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


# --- what a text file may be -------------------------------------------------------------------------------------


ROWS = "user,item\n1,2\n1,3\n2,2\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (ROWS.replace("\n", "\r").encode(), r"ends its lines with CR alone: convert it, as by `tr '\\r' '\\n' < "),
        (ROWS.encode("utf-16"), "its first line has NUL characters: if it is UTF-16, convert it, as by `iconv"),
        (ROWS.encode("utf-16-be"), "if it is UTF-16"),
        (b" user ,item\n1,2\n", "no column 'user' but ' user ', with blanks in its header: remove them there, or set"),
        (b"user,item,item\n1,2,3\n", "several columns named 'item', in the places 2, 3: rename all but one"),
        (b"user,item,a,a\n1,2,3,4\n", "several columns named 'a', in the places 3, 4"),
    ],
)
def test_what_is_no_plain_text_table(content, message, file):
    read_fails(message, file(content))


def test_columns_without_a_name_do_no_harm(file):
    assert Interactions.read(file("user,item,,\n1,2,,\n")).n_interactions == 1


@pytest.mark.parametrize("read", [Interactions.read, stream])
def test_a_pipe_is_read_like_a_file(read, tmp_path):
    import gzip
    import io

    parquet = io.BytesIO()
    pl.read_csv(ROWS.encode()).write_parquet(parquet)
    for number, content in enumerate([ROWS.encode(), gzip.compress(ROWS.encode()), parquet.getvalue()]):
        pipe = tmp_path / f"pipe{number}"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(content,))
        writer.start()
        found = read(pipe)
        writer.join()
        assert found.n_interactions == 3
        assert found.users.values.tolist() == [1, 2]


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux")
def test_the_name_of_a_file_need_not_be_utf8(tmp_path):
    path = os.fsencode(tmp_path) + b"/caf\xe9.csv"
    with open(path, "w") as stream:
        stream.write(ROWS)
    assert Interactions.read(os.fsdecode(path)).n_interactions == 3
    with open(path, "w") as stream:
        stream.write(ROWS + "1,2,3\n")
    with pytest.raises(DataError, match="row 4 has 3 fields and the header 2"):
        Interactions.read(os.fsdecode(path))


# --- ids that may not be meant -----------------------------------------------------------------------------------


@pytest.mark.parametrize("read", [Interactions.read, stream])
def test_ids_that_are_written_like_missing_values_are_counted(read, file, monkeypatch):
    monkeypatch.setattr("relae.data._tables.BATCH_ROWS", 2)
    path = file("user,item\n1,7\nnan,7\nnan,8\n2,NA\n2,8\nnan,9\n")
    with pytest.warns(UserWarning, match="count as ids") as told:
        found = read(path)
    assert [str(warning.message).removeprefix(f"{path}, ") for warning in told] == [
        "row 2: column 'user' has 'nan' in 3 rows, which count as ids like any others: drop these rows if that means "
        "that the value is missing",
        "row 4: column 'item' has 'NA' in 1 row, which count as ids like any others: drop these rows if that means "
        "that the value is missing",
    ]
    assert found.users.values.tolist() == ["1", "2", "nan"]


def test_titles_of_no_item_are_an_error(file):
    path, titles = file(ROWS), file("item,title\n1.0,A\n2.0,B\n3.0,C\n", "titles.csv")
    message = (
        "none of its 3 titles is of one of the 2 items: it has ids such as '1.0', the interactions have ids such as "
    )
    with pytest.raises(DataError, match=message):
        Interactions.read(path, titles=titles)
    with pytest.raises(DataError, match="the mapping: none of its 1 titles"):
        Interactions.read(path, titles={"x": "A"})
    assert Interactions.read(path, titles={}).titles.tolist() == [None, None]


def test_titles_of_few_items_are_told():
    frame = pl.DataFrame({"user": [1] * 9, "item": range(9)})
    titles = {str(10 * item): "T" for item in range(9)}  # of which only 0 is an item
    with pytest.warns(UserWarning, match="its 9 titles are of only 1 of the 9 items"):
        Interactions.from_frame(frame, titles=titles)


# --- filters -----------------------------------------------------------------------------------------------------


def test_one_pass_is_told_where_it_is_not_enough():
    pairs = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 3), (4, 3), (4, 1)]
    frame = pl.DataFrame(pairs, schema=["user", "item"], orient="row")
    with pytest.warns(UserWarning, match="is one pass") as told:
        once = Interactions.from_frame(frame, min_item_count=2, min_user_count=2)
    assert str(told[0].message) == (
        "min_item_count=2 is one pass, before min_user_count=2: after both, 1 of 3 items have fewer than 2 users. To "
        "drop items and users until all have enough, use k_core=2"
    )
    core = Interactions.from_frame(frame, k_core=2)
    assert (once.n_items, core.n_items) == (3, 2)
    Interactions.from_frame(frame, min_item_count=2, min_user_count=2, k_core=2)  # nothing to tell
