"""Features of items: a matrix or a table beside the interactions."""

import gzip
import math
import uuid
import warnings
from collections import Counter
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from relae.data import Features, Interactions, as_features
from relae.errors import DataError

from ..effort import repeat
from ..real_data import real
from .tables import check_form, same, stream

GENRES = [None, "", "Drama", "Comedy", "Sci-Fi", "Drama "]
TAGS = st.lists(st.sampled_from(["a", "b", "c", "", None]), max_size=4)
DENSE = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=5), elements=st.integers(-2, 2).map(float)
)


def data(n_items=4, titles=None, times=None):
    """Two users of the items 10, 20, …"""
    matrix = sp.csr_array(np.array([[1, 0, 2, 0], [0, 3, 0, 1]])[:, :n_items])
    return Interactions(matrix, ["ann", "bob"], [10 * (i + 1) for i in range(n_items)], titles, times)


def cells(found: Interactions) -> dict:
    """The values of the features by item id and name."""
    coo = found.features.matrix.tocoo()
    names = found.features.names[coo.col].tolist()
    return dict(zip(zip(found.items.take(coo.row), names, strict=True), coo.data.tolist(), strict=True))


def column(values, **options):
    """What a column makes of the items 10, 20, …: a dictionary of lists by name."""
    table = pl.DataFrame({"item": [10 * (i + 1) for i in range(len(values))], "x": values}, strict=False)
    found = data().with_features(table, columns=["x"], **options)
    dense = found.features.matrix.toarray()
    assert found.n_items == max(4, len(values))
    return {name: dense[: len(values), at].tolist() for at, name in enumerate(found.features.names)}


def approximately(expected):
    return pytest.approx(expected, rel=1e-6, abs=1e-7)


# --- the class -------------------------------------------------------------------------------------------------


@given(DENSE)
def test_every_format_of_a_matrix_gives_the_same(dense):
    for make in (np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array):
        found = Features(make(dense))
        assert np.array_equal(found.matrix.toarray(), dense)
        assert found.matrix.format == "csr"
        assert found.matrix.dtype == np.float32
        assert found.matrix.has_canonical_format
        assert np.count_nonzero(found.matrix.data) == found.matrix.nnz
        assert found.names.tolist() == [f"feature {j}" for j in range(dense.shape[1])]


@given(DENSE, st.data())
def test_take_is_a_choice_of_rows(dense, draw):
    columns = draw.draw(st.lists(st.integers(-1, len(dense) - 1), max_size=8))
    taken = Features(dense).take(columns).matrix.toarray()
    assert taken.shape == (len(columns), dense.shape[1])
    for row, position in zip(taken, columns, strict=True):
        assert np.array_equal(row, np.zeros(dense.shape[1]) if position < 0 else dense[position])


def test_take_refuses_other_positions():
    for columns in ([0, 3], [-2]):
        with pytest.raises(IndexError, match=r"positions must lie in \[-1, 3\)"):
            Features(np.eye(3)).take(columns)


def test_side_by_side():
    both = Features(np.eye(2), ["a", "b"]).beside(Features(np.array([[-1.0], [2.0]]), ["c"]))
    assert both.names.tolist() == ["a", "b", "c"]
    assert both.matrix.toarray().tolist() == [[1, 0, -1], [0, 1, 2]]
    with pytest.raises(DataError, match="the items have the feature 'a' already"):
        both.beside(Features(np.eye(2), ["z", "a"]))


def test_repr_of_features():
    assert repr(Features(np.eye(2), ["a", "b"])) == "Features(2 items × 2 features: 'a', 'b')"
    assert repr(Features(np.eye(4))) == "Features(4 items × 4 features: 'feature 0', 'feature 1', 'feature 2', …)"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.array([[np.nan]]), "has nan in row 0, column 0 .*: values must be finite in float32$"),
        (sp.csr_array(np.array([[1.0], [-np.inf]])), "has -inf in row 1, column 0"),
        (np.ones(3), r"two dimensions, items × features, got the shape \(3,\)"),
        ([[1, 2]], "a list is not a matrix: .* use Interactions.with_features for a table"),
        (np.ones((2, 1)), "2 rows of features for 3 items: give one row per item"),
    ],
)
def test_bad_features_are_refused(given, message):
    with pytest.raises(DataError, match=message):
        as_features(given, 3)
    with pytest.raises(DataError, match=message):
        Interactions(np.eye(3), features=given)


def test_names_are_one_per_feature():
    with pytest.raises(DataError, match="1 names for a matrix with 2 features"):
        Features(np.eye(2), ["a"])


# --- carried along ---------------------------------------------------------------------------------------------


def test_interactions_carry_features():
    features = Features(np.eye(3), ["a", "b", "c"])
    whole = Interactions.from_matrix(np.eye(3), titles=["x", "y", "z"], times=[1, 2, 3], features=features)
    assert whole.features is features
    assert repr(whole) == "Interactions(3 users × 3 items, 3 interactions, with titles, times and 3 features)"
    assert whole.select_users([2, 0]).features is features
    assert whole.weighted("log").features is features
    assert Interactions(np.eye(3)).features is None
    assert Interactions(np.eye(3)).select_users([0]).features is None


# --- what a column becomes -------------------------------------------------------------------------------------


def oracle(rows, min_count=2):
    """The slow and obvious way from rows (dictionaries) to features."""
    found = {}

    def several(name, values_of):
        lists = {row["item"]: {v for v in values_of(row) if v} for row in rows}
        counts = Counter(v for values in lists.values() for v in values)
        lists = {item: {v for v in values if counts[v] >= min_count} for item, values in lists.items()}
        sizes = [len(values) for values in lists.values() if values]
        for item, values in lists.items():
            for value in values:
                found[item, f"{name}={value}"] = 1 / math.sqrt(sum(sizes) / len(sizes))

    several("genre", lambda row: [row["genre"]])
    several("tags", lambda row: row["tags"] or [])
    several("words", lambda row: [word.strip() for word in (row["words"] or "").split("|")])
    there = [row["price"] for row in rows if row["price"] is not None]
    mean = math.fsum(there) / len(there)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in there) / len(there))
    for row in rows:
        if row["price"] is not None:
            found[row["item"], "price"] = (row["price"] - mean) / deviation
        if row["sale"]:
            found[row["item"], "sale"] = 1.0
    return found


@st.composite
def item_tables(draw):
    """Items 0 to n-1 with something in every column that two of them have, in any order."""
    n = draw(st.integers(5, 9))

    def some(values, fixed):
        drawn = draw(st.lists(values, min_size=n - len(fixed), max_size=n - len(fixed)))
        return [*fixed, *drawn]

    table = {
        "item": list(range(n)),
        "genre": some(st.sampled_from(GENRES), ["War", "War", None]),
        "tags": some(st.none() | TAGS, [["x", "x"], ["y", "x"], None]),
        "words": some(st.sampled_from(["p|q", " q ", "", "p||r", None]), ["s|t", "s", None]),
        "price": some(st.none() | st.integers(-3, 9).map(float), [2.5, 7.25, None]),
        "sale": some(st.none() | st.booleans(), [True, False, None]),
    }
    schema = {"item": pl.Int64, "tags": pl.List(pl.String), "price": pl.Float64, "sale": pl.Boolean}
    return pl.DataFrame(table, schema_overrides=schema)


@settings(max_examples=repeat(15, 40))
@given(item_tables(), st.integers(1, 3), st.randoms())
def test_columns_agree_with_a_loop_in_any_order_of_the_rows(table, min_count, random):
    known = Interactions(np.ones((1, 4)), items=[3, 0, 77, 1])
    options = {"columns": ["genre", "tags", "words", "price", "sale"], "separators": {"words": "|"}}
    expected = oracle(table.rows(named=True), min_count)
    if not all(any(key[1].startswith(name) for key in expected) for name in ("genre", "tags", "words")):
        with pytest.raises(DataError, match=r"cannot be a feature: it has no value that 3 items have"):
            known.with_features(table, min_count=min_count, **options)
        return
    found = known.with_features(table, min_count=min_count, **options)
    check_form(found)
    assert found.items.values.tolist() == [3, 0, 77, 1, 2, *range(4, table.height)]
    assert cells(found) == {key: approximately(value) for key, value in expected.items() if value}
    order = list(range(table.height))
    random.shuffle(order)
    assert same(known.with_features(table[order], min_count=min_count, **options), found)


@settings(max_examples=repeat(4, 8))
@given(item_tables())
def test_every_kind_of_table_gives_the_same(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("items")
    flat = table.drop("tags")
    flat.write_csv(folder / "items.csv")
    flat.write_csv(folder / "items.tsv", separator="\t")
    (folder / "items.csv.gz").write_bytes(gzip.compress((folder / "items.csv").read_bytes()))
    table.write_parquet(folder / "items.parquet")
    pandas = pd.DataFrame(table.to_dict(as_series=False))
    typed = (table, table.lazy(), table.to_arrow(), pandas, pd.read_parquet(folder / "items.parquet"))
    alike(*typed, folder / "items.parquet")
    alike(flat, *(str(folder / name) for name in ("items.csv", "items.tsv", "items.csv.gz")))


def alike(*tables):
    """Check that all tables give the features of the first."""
    known = Interactions(np.ones((1, 4)), items=[3, 0, 77, 1])
    expected, *others = [known.with_features(t, separators={"words": "|"}, min_count=1) for t in tables]
    for found in others:
        assert found.items == expected.items
        assert found.features.names.tolist() == expected.features.names.tolist()
        assert cells(found) == approximately(cells(expected))


def test_numbers_are_standardized_and_missing_ones_are_the_mean():
    assert column([1, 2, 3, None]) == {"x": approximately([-math.sqrt(1.5), 0, math.sqrt(1.5), 0])}
    assert column([1.0, float("nan"), 3.0, 2.0])["x"][1] == 0
    assert column([1e300, -1e300, None]) == {"x": approximately([1, -1, 0])}
    assert column([5e-324, 0.0, 1.5e-323])["x"][1] < 0


def test_dates_are_numbers():
    days = [date(2020, 1, 1), date(2020, 1, 2), date(2020, 1, 3)]
    expected = {"x": approximately([-math.sqrt(1.5), 0, math.sqrt(1.5)])}
    assert column(days) == expected
    assert column([datetime(day.year, day.month, day.day) for day in days]) == expected
    assert column([day - date(2020, 1, 1) for day in days]) == expected


def test_zeros_and_ones_are_flags():
    for flags in ([True, False, None], [1, 0, None], [1.0, 0.0, None], [True, None, None]):
        assert column(flags) == {"x": [1, 0, 0]}


def test_what_all_items_of_a_table_have_tells_them_from_others():
    assert column(["a", "a", "a"]) == {"x=a": [1, 1, 1]}  # the fourth item has no row
    assert column([True, True]) == {"x": [1, 1]}
    for values in (["a"] * 4, [True] * 4, [7] * 3, [0] * 3):
        with pytest.raises(DataError, match="cannot be a feature: it has the same value everywhere"):
            column(values)


def test_lists_of_integers_are_values_and_lists_of_floats_are_embeddings():
    assert column([[1, 2], [2], [1, 2, 2]]) == {
        "x=1": approximately([math.sqrt(0.6), 0, math.sqrt(0.6)]),
        "x=2": approximately([math.sqrt(0.6)] * 3),
    }
    vectors = [[3.0, 4.0], None, [0.0, -5.0], []]
    expected = {"x[0]": approximately([0.6, 0, 0, 0]), "x[1]": approximately([0.8, 0, -1, 0])}
    assert column(vectors) == expected
    assert column(pl.Series([[3, 4], None, [0, -5], None], dtype=pl.Array(pl.Int8, 2))) == expected


def test_embeddings_keep_their_directions_and_lengths():
    vectors = np.random.default_rng(0).normal(size=(6, 3))
    table = pd.DataFrame({"item": range(10, 70, 10), "e": list(vectors)})
    found = data().with_features(table).features.matrix.toarray()
    assert np.square(found).sum(axis=1).mean() == approximately(1)
    np.testing.assert_allclose(found / found[0, 0], vectors / vectors[0, 0], rtol=1e-5)


def test_the_squares_of_an_item_are_one_on_average_whatever_the_column():
    rng = np.random.default_rng(1)
    n = 40
    table = pl.DataFrame(
        {
            "item": np.arange(10, 10 * n + 10, 10),
            "genre": rng.choice(["a", "b", "c"], n),
            "tags": [rng.choice(list("abcdef"), rng.integers(1, 5)).tolist() for _ in range(n)],
            "year": rng.integers(1900, 2000, n),
            "text": list(rng.normal(3, 2, (n, 5))),
        }
    )
    for name in table.columns[1:]:
        matrix = data().with_features(table, columns=name).features.matrix
        assert np.square(matrix.data).sum() / n == approximately(1)


def test_categories_of_numbers_are_no_numbers():
    values = pd.Series([7, 5, 7, 5])
    expected = {(10, "x=7"), (20, "x=5"), (30, "x=7"), (40, "x=5")}
    arrow = pa.table({"item": [10, 20, 30, 40], "x": pa.array(values).dictionary_encode()})
    frame = pd.DataFrame({"item": [10, 20, 30, 40], "x": values.astype("category")})
    for table in (arrow, frame):
        assert cells(data().with_features(table)).keys() == expected
    gaps = frame.assign(x=pd.Series([7, 5, None, 5, 7]).astype("category"))
    assert cells(data().with_features(gaps, min_count=1)).keys() == {(10, "x=7"), (20, "x=5"), (40, "x=5")}
    halves = frame.assign(x=pd.Series([0.5, 5, 0.5, None]).astype("category"))
    assert cells(data().with_features(halves, min_count=1)).keys() == {(10, "x=0.5"), (20, "x=5.0"), (30, "x=0.5")}
    for kind in (pl.Categorical, pl.Enum(["u", "v"])):
        assert column(pl.Series(["u", "v", "u", "v"], dtype=kind)) == {"x=u": [1, 0, 1, 0], "x=v": [0, 1, 0, 1]}


def text(tmp_path, *values):
    path = tmp_path / "items.csv"
    path.write_text("item,x\n" + "".join(f"{10 * (at + 1)},{value}\n" for at, value in enumerate(values)))
    return data().with_features(path, columns=["x"]).features


def test_text_files_say_what_their_columns_are(tmp_path):
    assert text(tmp_path, " 1.5", "2", "", "1e1").names.tolist() == ["x"]
    assert text(tmp_path, "true", "False", "", "TRUE").matrix.toarray().T.tolist() == [[1, 0, 0, 1]]
    dates = text(tmp_path, "2020-01-01", "2020-01-02", "2020-01-03T00:00:00Z", "")
    assert dates.matrix.toarray().T.tolist() == [approximately([-math.sqrt(1.5), 0, math.sqrt(1.5), 0])]
    assert text(tmp_path, "007", "8", "007", "8").names.tolist() == ["x=007", "x=8"]
    assert text(tmp_path, "1", "2", "1", "two", "two").names.tolist() == ["x=1", "x=two"]


# --- which columns ---------------------------------------------------------------------------------------------

ITEMS = pl.DataFrame(
    {
        "item": [40, 30, 20, 10],
        "title": ["D", "C", "B", "A"],
        "genre": ["x", "x", "y", "y"],
        "code": ["q1", "q2", "q3", "q4"],
        "same": [5, 5, 5, 5],
        "where": ["here"] * 4,
        "empty": [None] * 4,
        "nested": [{"a": 1}] * 4,
    }
)


def test_columns_that_tell_nothing_are_left_out_with_a_warning():
    with pytest.warns(UserWarning, match="no features are made of the columns") as caught:
        found = data().with_features(ITEMS)
    assert found.features.names.tolist() == ["genre=x", "genre=y"]
    message = str(caught[0].message)
    assert caught[0].filename == __file__
    assert "'code' (it has no value that 2 items have), 'same' (it has the same value everywhere)" in message
    assert "'where' (it has the same value everywhere), 'empty' (it has no values), 'nested' (its type is" in message
    assert "title" not in message
    assert message.endswith("Name those that you want in columns=[…]")


def test_a_column_of_mostly_single_values_is_left_out_unless_it_is_named():
    table = pl.DataFrame({"item": [10, 20, 30, 40, 50], "genre": list("xxyyx"), "author": list("aabcd")})
    with pytest.warns(UserWarning, match=r"'author' \(most items have a value of their own\)"):
        assert data().with_features(table).features.n_features == 2
    assert data().with_features(table, columns=["author"]).features.names.tolist() == ["author=a"]
    every = data().with_features(table, columns="author", min_count=1).features
    assert every.names.tolist() == ["author=a", "author=b", "author=c", "author=d"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("code", "it has no value that 2 items have"),
        ("same", "it has the same value everywhere"),
        ("where", "it has the same value everywhere"),
        ("empty", "it has no values"),
        ("nested", "its type is Struct"),
    ],
)
def test_a_column_that_is_named_must_be_a_feature(name, reason):
    with pytest.raises(DataError, match=f"column '{name}' cannot be a feature: {reason}"):
        data().with_features(ITEMS, columns=["genre", name])


def test_no_column_at_all():
    with pytest.raises(DataError, match="no column that can be a feature: it has only 'item', 'title'"):
        data().with_features(ITEMS.select("item", "title"))
    with pytest.raises(DataError, match=r"no column that can be a feature: 'same' \(it has the same value"):
        data().with_features(ITEMS.select("item", "same"))


def test_the_order_of_the_columns_is_that_of_the_table_or_of_the_choice():
    table = pl.DataFrame({"item": [10, 20, 30], "b": [1, 2, 3], "a": [3, 1, 2]})
    assert data().with_features(table).features.names.tolist() == ["b", "a"]
    assert data().with_features(table, columns=["a", "b"]).features.names.tolist() == ["a", "b"]


def test_words_of_titles_can_be_features():
    table = pl.DataFrame({"item": [10, 20, 30], "title": ["red mug", "blue mug", "red pot"]})
    found = data().with_features(table, separators={"title": " "})
    assert found.features.names.tolist() == ["title=mug", "title=red"]


# --- which items -----------------------------------------------------------------------------------------------


def test_items_of_the_table_are_appended_and_everything_else_stays():
    before = data(titles=["A", None, "C", "D"], times=[4, 3, 2, 1])
    table = pl.DataFrame({"item": [70, 10, 30, 5], "title": ["G", "other", "C", None], "genre": list("xyxy")})
    after = before.with_features(table)
    check_form(after)
    assert after.items.values.tolist() == [10, 20, 30, 40, 5, 70]
    assert after.titles.tolist() == ["A", None, "C", "D", None, "G"]
    assert after.times is before.times
    assert after.users == before.users
    assert np.array_equal(after.matrix.toarray()[:, :4], before.matrix.toarray())
    assert after.matrix[:, 4:].nnz == 0
    assert cells(after).keys() == {(70, "genre=x"), (10, "genre=y"), (30, "genre=x"), (5, "genre=y")}
    assert before.features is None


def test_items_of_the_table_can_be_ignored():
    table = pl.DataFrame({"item": [70, 10, 30, 5, 20], "genre": list("xyxyx"), "n": [9, 1, 2, 9, 3]})
    found = data().with_features(table, add_items=False)
    assert found.items == data().items
    assert cells(found) == approximately(
        {(30, "genre=x"): 1, (20, "genre=x"): 1, (10, "n"): -math.sqrt(1.5), (20, "n"): math.sqrt(1.5)}
    )


@pytest.mark.parametrize("read", [Interactions.read, stream])
def test_items_that_a_filter_dropped_stay_dropped_and_new_ones_come_in(read, tmp_path):
    rows = ["ann,1,5", "bob,1,5", "ann,2,5", "bob,2,5", "cat,2,5", "ann,3,5"]
    (tmp_path / "log.csv").write_text("\n".join(["user,item,stars", *rows]) + "\n")
    table = pl.DataFrame({"item": [1, 2, 3, 9], "title": list("ABCD"), "genre": list("xyxx")})
    kept = read(tmp_path / "log.csv", min_item_count=2)
    assert kept.dropped_items.values.tolist() == [3]
    for some in (kept, kept.weighted("log"), kept.select_users([0, 1])):
        found = some.with_features(table)
        assert found.items.values.tolist() == [1, 2, 9]  # 9 nobody has had yet, 3 was dropped
        assert cells(found).keys() == {(1, "genre=x"), (9, "genre=x")}
        assert found.dropped_items == kept.dropped_items
    everything = read(tmp_path / "log.csv").with_features(table)
    assert everything.items.values.tolist() == [1, 2, 3, 9]
    rated = read(tmp_path / "log.csv", rating="stars", min_rating=4, k_core=2)
    assert rated.dropped_items.values.tolist() == [3]


def test_an_item_that_nobody_rated_high_enough_is_no_new_item(tmp_path):
    (tmp_path / "log.csv").write_text("user,item,stars\nann,1,5\nbob,2,5\nbob,3,1\n")
    table = pl.DataFrame({"item": [1, 2, 3, 9], "genre": list("xxyy")})
    found = Interactions.read(tmp_path / "log.csv", rating="stars", min_rating=4).with_features(table, min_count=1)
    assert found.items.values.tolist() == [1, 2, 9]


def test_several_tables_side_by_side():
    first = pl.DataFrame({"item": [10, 20, 50], "genre": list("xxx")})
    second = pl.DataFrame({"item": [40, 50, 60], "n": [1, 2, 3]})
    both = data().with_features(first).with_features(second)
    assert both.items.values.tolist() == [10, 20, 30, 40, 50, 60]
    assert both.features.names.tolist() == ["genre=x", "n"]
    assert both.features.matrix.toarray().T.tolist() == [
        [1, 1, 0, 0, 1, 0],
        approximately([0, 0, 0, -math.sqrt(1.5), 0, math.sqrt(1.5)]),
    ]
    with pytest.raises(DataError, match="the items have the feature 'n' already"):
        both.with_features(second)


def test_strings_as_ids(tmp_path):
    books = Interactions(np.ones((1, 3)), items=["0155", "34", "x"])
    path = tmp_path / "books.csv"
    path.write_text("isbn,author\n0155,A\n34,A\n007,B\n7,B\n")
    found = books.with_features(path, item="isbn")
    assert found.items.values.tolist() == ["0155", "34", "x", "007", "7"]
    path.write_text("isbn,author\n34,A\n7,A\n")  # all like integers, and still strings
    assert books.with_features(path, item="isbn").items.values.tolist() == ["0155", "34", "x", "7"]
    names = [str(uuid.uuid4()) for _ in range(3)]
    table = pd.DataFrame({"item": [uuid.UUID(name) for name in names], "n": [1, 2, 4]})
    assert Interactions(np.ones((1, 3)), items=names).with_features(table).items.values.tolist() == names


# --- errors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (
            {"item": [10, 20, 10], "x": [1, 2, 3]},
            {},
            "table of features: column 'item' has the value 10 in row 3: that item is in the table already",
        ),
        ({"item": [10, None], "x": [1, 2]}, {}, "column 'item' has no value in row 2: drop the row or fill it"),
        (
            {"item": ["10", "20"], "x": [1, 2]},
            {},
            "column 'item' has strings such as '10', and the items of the interactions are integers: cast one",
        ),
        (
            {"item": [1, 2], "x": [1, 2]},
            {},
            r"none of its 2 items is among the 4 of the interactions: its column 'item' has ids such as 1, the "
            "interactions have ids such as 10, 20, 30$",
        ),
        ({"item": [], "x": []}, {}, "the table of features has no rows"),
        ({"movie": [10], "x": [1]}, {"item": "movies"}, "has no column 'movies', .*: set item='movie'"),
        ({"item": [10], "genre": ["a"]}, {"columns": ["genres"]}, "has no column 'genres', .*: set columns='genre'"),
        ({"item": [10], "x": ["a"]}, {"separators": {"y": "|"}}, "has no column 'y'"),
        (
            {"item": [10], "x": ["a"]},
            {"separators": "|"},
            r'separators are given by column, as in \{"genres": "\|"\}, got',
        ),
        ({"item": [10], "x": ["a"]}, {"separators": {"x": ""}}, "the separator of the column 'x' is empty"),
        (
            {"item": [10], "x": ["a"], "y": [1]},
            {"separators": {"x": "|"}, "columns": ["y"]},
            r"separators has the column 'x', which is not in columns=\['y'\]",
        ),
        ({"item": [10], "x": ["a"]}, {"columns": ["item"]}, "'item' has the ids of the items: leave it out"),
        ({"item": [10, 20], "x": [1, 2]}, {"separators": {"x": "|"}}, "'x' has the type Int64, which has no separator"),
        (
            {"item": [5, 10, 20], "x": [1.0, 2.0, float("inf")]},
            {"add_items": False},
            "column 'x' has the value inf in row 3: a number must be finite",
        ),
        (
            {"item": [5, 10, 20], "x": [[1.0, 2.0], None, [1.0]]},
            {},
            "column 'x' has a list of 1 numbers in row 3 and one of 2 before",
        ),
        (
            {"item": [5, 10, 20], "x": [[1.0, 2.0], [1.0, None], [1.0, float("nan")]]},
            {},
            "'x' has a list in row 2 with a number that is missing or not finite",
        ),
    ],
)
def test_errors_name_the_place_and_the_way_out(table, options, message):
    with pytest.raises(DataError, match=message):
        data().with_features(pl.DataFrame(table), **options)


def test_ids_of_another_kind_in_a_text_file(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("item,n\n10,1\nx7,2\n")
    with pytest.raises(DataError, match="'item' has the value 'x7' in row 2: the items of the interactions are int"):
        data().with_features(path)


def test_what_is_no_table():
    with pytest.raises(DataError, match="the table of features is a dict: give a pandas, polars or pyarrow table"):
        data().with_features({"item": [1]})
    with pytest.raises(DataError, match="does not exist"):
        data().with_features("nowhere.csv")


# --- real data -------------------------------------------------------------------------------------------------


def test_genres_and_years_of_films():
    folder = real("ml-1m")
    liked = Interactions.read(
        folder / "interactions.csv.gz", rating="rating", min_rating=4, titles=folder / "items.csv"
    )
    films = pl.read_csv(folder / "items.csv")
    films = films.with_columns(year=pl.col("title").str.extract(r"\((\d{4})\)$").cast(pl.Int32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = liked.with_features(films, separators={"genres": "|"})
    disliked = len(liked.dropped_items)  # rated, and never with 4 or 5: no new films
    assert (found.n_items, films.height, disliked) == (3_883 - disliked, 3_883, 173)
    assert found.features.n_features == 19
    assert found.n_interactions == liked.n_interactions
    assert found.title(3907) == "Prince of Central Park, The (1999)"
    assert (found.items.positions([3907]) >= liked.n_items).all()
    of_toy_story = found.features.take(found.items.positions([1])).matrix
    assert found.features.names[of_toy_story.indices].tolist() == [
        "genres=Animation",
        "genres=Children's",
        "genres=Comedy",
        "year",
    ]
    kept = films.filter(~pl.col("item").is_in(liked.dropped_items.values.tolist()))
    by_hand = kept["genres"].str.split("|").list.len().mean()
    assert of_toy_story.data[:3] == approximately([1 / math.sqrt(by_hand)] * 3)
