"""A scan of files, however the rows are spread over them, is a read of all their rows together."""

import gzip
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relae.data import Interactions, _numbering, _scan, _tables
from relae.errors import DataError

from ..effort import repeat
from .tables import check_form, dropped_users, same, stream, tables

FOLDERS = itertools.count()
WRITERS = {
    "parquet": pl.DataFrame.write_parquet,
    "csv": pl.DataFrame.write_csv,
    "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "csv.gz": lambda frame, path: path.write_bytes(gzip.compress(frame.write_csv().encode())),
}
TEXT = [name for name in WRITERS if name != "parquet"]
in_folders = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=repeat(15, 60)
)


@pytest.fixture
def tiny(monkeypatch):
    """Batches, buckets and codes so small that a few rows have many of each."""
    monkeypatch.setattr(_tables, "BATCH_ROWS", 3)
    monkeypatch.setattr(_scan, "_BUCKET_ROWS", 2)
    monkeypatch.setattr(_numbering, "_OWN", 4)


@pytest.fixture
def folder(tmp_path):
    """A new folder at each call, also within one test."""
    return lambda: _made(tmp_path / str(next(FOLDERS)))


def _made(path):
    path.mkdir()
    return path


def spread(frame: pl.DataFrame, folder: Path, places: list[int], formats: list[str]) -> Path:
    """Write each row to the file of its place; files without rows have a header only."""
    for number, form in enumerate(formats):
        rows = frame.filter(pl.Series(places) == number)
        WRITERS[form](rows, folder / f"{number}.{form}")
    return folder


@st.composite
def scattered(draw, formats=tuple(WRITERS)):
    """A table, the file of each of its rows, and the formats of the files."""
    frame = draw(tables())
    chosen = draw(st.lists(st.sampled_from(formats), min_size=1, max_size=4))
    places = draw(st.lists(st.integers(0, len(chosen) - 1), min_size=frame.height, max_size=frame.height))
    return frame, places, chosen


def outcome(work):
    """What some work gives: interactions, or the end of its message, which does not name the file."""
    try:
        return work()
    except DataError as error:
        return str(error).split(": ", 1)[1]


def agree(scanned, read):
    if isinstance(read, str) or isinstance(scanned, str):
        assert scanned == read
        return
    check_form(scanned)
    assert same(scanned, read)
    assert (scanned.times is None) == (read.times is None)
    assert scanned.times is None or np.array_equal(scanned.times, read.times)
    assert dropped_users(scanned) == dropped_users(read)
    assert (scanned._seen is None) == (read._seen is None)
    if read._seen is not None:
        assert scanned._seen.items == read._seen.items
        assert np.array_equal(scanned._seen.pairs.indptr, read._seen.pairs.indptr)
        assert np.array_equal(scanned._seen.pairs.indices, read._seen.pairs.indices)
        assert (scanned._seen.times is None) == (read._seen.times is None)
        assert read._seen.times is None or np.array_equal(scanned._seen.times, read._seen.times)


@pytest.mark.filterwarnings("ignore:min_item_count=.* is one pass")
@in_folders
@given(
    scattered(("parquet",)), st.booleans(), st.integers(1, 5), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)
)
def test_parquet_files_are_one_table(tiny, folder, case, weighted, lowest, users, items, k):
    frame, places, formats = case
    options = {
        "weight": "weight" if weighted else None,
        "weighting": "linear" if weighted else None,
        "rating": "rating",
        "min_rating": lowest,
        "min_user_count": users,
        "min_item_count": items,
        "k_core": k,
        "timestamp": "rating",
    }
    path = spread(frame, folder(), places, formats)
    agree(
        outcome(lambda: stream(path, **options)),
        outcome(lambda: Interactions.from_frame(frame, **options)),
    )


@in_folders
@given(scattered(tuple(TEXT)))
def test_text_files_are_one_table(tiny, folder, case):
    frame, places, formats = case
    whole = folder() / "whole.csv"
    frame.write_csv(whole)
    path = spread(frame, folder(), places, formats)
    options = {"weight": "weight", "weighting": "linear", "timestamp": "rating"}
    agree(
        outcome(lambda: stream(path, **options)),
        outcome(lambda: Interactions.read(whole, **options)),
    )


@in_folders
@given(scattered(), st.randoms())
def test_formats_mix_and_order_does_not_matter(tiny, folder, case, random):
    frame, places, formats = case
    files = sorted(spread(frame, folder(), places, formats).iterdir())
    random.shuffle(files)
    scanned = stream(files, rating="rating", min_rating=0)
    agree(scanned, Interactions.from_frame(frame))


@pytest.mark.parametrize(
    "ids",
    [
        [7, 2**40, -3, 0, 2**40, 3],
        [2**64 - 1, 5, 2**63],
        ["7", "007", "x", "7", "-3", str(2**40)],
        ["7", "8", "9"],
        [1.0, 2.0, float(2**40)],
        [b"x", b"7"],
    ],
    ids=str,
)
def test_ids_of_every_type(tiny, tmp_path, ids):
    kind = pl.UInt64 if 2**63 in ids else None
    frame = pl.DataFrame({"user": pl.Series(ids, dtype=kind), "item": pl.Series(ids[::-1], dtype=kind)})
    for row in range(frame.height):
        frame[row : row + 1].write_parquet(tmp_path / f"{row}.parquet")
    agree(stream(tmp_path), Interactions.from_frame(frame))


def test_text_is_integers_only_if_all_of_it_is(tiny, tmp_path):
    (tmp_path / "a.csv").write_text("user,item\n1,1\n2,2\n")
    assert stream(tmp_path).users.values.tolist() == [1, 2]
    (tmp_path / "b.csv").write_text("user,item\n01,1\n1,3\n")
    data = stream(tmp_path)
    assert data.users.values.tolist() == ["01", "1", "2"]
    assert data.items.values.tolist() == [1, 2, 3]
    assert data.matrix.toarray().tolist() == [[1, 0, 0], [1, 0, 1], [0, 1, 0]]


def test_a_row_that_a_filter_drops_still_tells_the_type(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user,item,stars\n1,1,5\n01,1,1\n")
    options = {"rating": "stars", "min_rating": 4}
    agree(stream(path, **options), Interactions.read(path, **options))


def test_integers_in_text_go_with_either_type(tmp_path):
    (tmp_path / "a.csv").write_text("user,item\n1,1\n")
    pl.DataFrame({"user": [1, 2], "item": ["1", "x"]}).write_parquet(tmp_path / "b.parquet")
    data = stream(tmp_path)
    assert data.users.values.tolist() == [1, 2]
    assert data.items.values.tolist() == ["1", "x"]
    assert data.matrix.toarray().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("other", ["b.parquet", "b.csv"])
def test_numbers_in_one_file_and_strings_in_another_are_refused(tmp_path, other):
    pl.DataFrame({"user": [1], "item": [1]}).write_parquet(tmp_path / "a.parquet")
    strings = pl.DataFrame({"user": ["x"], "item": [1]})
    WRITERS[other[2:]](strings, tmp_path / other)
    with pytest.raises(DataError, match=rf"'user' has numbers in .*a\.parquet and strings in .*{other}: cast it"):
        stream(tmp_path)


def test_a_file_without_rows_has_no_say_in_the_type(tmp_path):
    pl.DataFrame({"user": [1], "item": [1]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame(schema={"user": pl.String, "item": pl.Boolean}).write_parquet(tmp_path / "b.parquet")
    assert stream(tmp_path).users.values.tolist() == [1]


@pytest.mark.parametrize(
    ("first", "second"),
    [([1, 2], [3, 4]), ([1.0, 2.0], [2.5, 3.0]), ([1.5, 2.25], [3.0, 4.0]), ([1e12, 2.0], [0.5, 7.0])],
)
def test_times_have_one_scale_in_all_files(tiny, tmp_path, first, second):
    frames = [pl.DataFrame({"user": [1, 2], "item": [1, 1], "at": times}) for times in (first, second)]
    for number, frame in enumerate(frames):
        frame.write_parquet(tmp_path / f"{number}.parquet")
    agree(stream(tmp_path, timestamp="at"), Interactions.from_frame(pl.concat(frames), timestamp="at"))


@pytest.mark.parametrize(("low", "high"), [([1, 2], [3, 4]), ([1.5, 2.0], [3.0, 4.0]), ([1.0, 2.0], [2.5, 3.0])])
def test_times_of_low_ratings_have_the_scale_of_the_others(tiny, tmp_path, low, high):
    """Also if a file has nothing but low ratings, and it alone has fractions."""
    frames = [
        pl.DataFrame({"user": [1, 1], "item": [1, 2], "at": low, "stars": [1, 1]}),
        pl.DataFrame({"user": [1, 2], "item": [3, 2], "at": high, "stars": [5, 5]}),
    ]
    for number, frame in enumerate(frames):
        frame.write_parquet(tmp_path / f"{number}.parquet")
    options = {"timestamp": "at", "rating": "stars", "min_rating": 4}
    scanned = stream(tmp_path, **options)
    agree(scanned, Interactions.from_frame(pl.concat(frames), **options))
    scale = 1_000_000 if any(at % 1 for at in low + high) else 1
    assert scanned.times.tolist() == [at * scale for at in high[::-1][1:] + high[1:]]
    assert scanned.seen_times.tolist() == [low[1] * scale]  # item 1 has no column


def test_dates_in_one_file_and_numbers_in_another_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("user,item,at\n1,1,2020-01-31\n")
    (tmp_path / "b.csv").write_text("user,item,at\n1,1,5\n")
    with pytest.raises(DataError, match=r"'at' has numbers in .*b\.csv and dates in .*a\.csv: give times of one type"):
        stream(tmp_path, timestamp="at")


@pytest.mark.parametrize("order", list(itertools.permutations([1, 2, 3])))
def test_weights_sum_to_the_same_bit_in_any_order(tiny, tmp_path, order):
    """Small weights count only if they are added to each other first: then they tip the rounding to float32."""
    parts = {1: [2.0**-30], 2: [2.0**24 + 1], 3: [2.0**-30] * 5}
    for number, part in enumerate(order):
        pl.DataFrame({"user": 1, "item": 1, "weight": parts[part]}).write_parquet(tmp_path / f"{number}.parquet")
    assert stream(tmp_path, weight="weight", weighting="linear").matrix.data.tolist() == [2.0**24 + 2]


@pytest.mark.parametrize("blank", [1, 4, 9])
def test_blank_lines_at_the_end_are_no_rows(tiny, tmp_path, blank):
    path = tmp_path / "a.csv"
    path.write_text("user,item\n1,2\n3,4\n" + "\n" * blank)
    assert stream(path).n_interactions == 2


def test_paths_folders_and_patterns(tmp_path):
    frame = pl.DataFrame({"user": [1, 2], "item": [5, 6]})
    (tmp_path / "deep").mkdir()
    (tmp_path / "_temporary").mkdir()
    for name in ("b.csv", "a.parquet", "deep/c.tsv", ".hidden.csv", "_temporary/d.csv"):
        WRITERS[name.rsplit(".")[-1]](frame, tmp_path / name)
    for name in ("_SUCCESS", "notes.txt"):
        (tmp_path / name).write_text("no table")

    def found(*paths):
        files = _scan.find_tables([tmp_path / path for path in paths])
        return [file.relative_to(tmp_path).as_posix() for file in files]

    assert found(".") == ["a.parquet", "b.csv", "deep/c.tsv"]
    assert found("a.parquet") == ["a.parquet"]
    assert found("*.csv") == ["b.csv"]
    assert found("*") == ["a.parquet", "b.csv"]
    assert found("**/*.[ct]sv") == ["_temporary/d.csv", "b.csv", "deep/c.tsv"]
    assert found("deep", "b.csv", "*.csv", "deep/../b.csv") == ["deep/c.tsv", "b.csv"]


def test_a_file_named_twice_counts_once(tmp_path):
    (tmp_path / "odd[1].csv").write_text("user,item,weight\n1,5,2\n")
    data = stream([tmp_path / "odd[1].csv", str(tmp_path)], weight="weight", weighting="linear")
    assert data.matrix.data.tolist() == [2]


def test_errors_name_the_file_the_column_and_the_row(tiny, tmp_path):
    def fails(message, paths=tmp_path, **options):
        with pytest.raises(DataError, match=message):
            stream(paths, **options)

    fails("has no files that end in .parquet, .csv or .tsv")
    fails(r"no file matches .*\*\.csv", tmp_path / "*.csv")
    fails("there are no files to read", [])
    fails("a.csv does not exist", tmp_path / "a.csv")
    rows = "".join(f"{row},1,1\n" for row in range(10))
    (tmp_path / "a.csv").write_text("user,item,weight\n" + rows)
    (tmp_path / "b.csv").write_text("user,thing\n1,1\n")
    fails(r"b\.csv has no column 'item', its columns are 'user', 'thing': set item=…")
    for bad, problem in {
        ",1,1": "'user' has no value",
        "1,,1": "'item' has no value",
        "1,1,x": "'weight' has the value 'x'",
        "1,1,-1": "'weight' has the value -1.0",
        "1,1,inf": "'weight' has the value inf",
    }.items():
        (tmp_path / "b.csv").write_text(f"user,item,weight\n{rows}{bad}\n")
        fails(rf"b\.csv: column {problem} in row 11: ", weight="weight")
    (tmp_path / "b.csv").write_text(f"user,item,weight\n{rows}1,2,3,4\n")
    fails("b.csv cannot be read as a text table: row 11 has 4 fields and the header 3", weight="weight")
    (tmp_path / "b.csv").write_text("")
    fails("b.csv is empty")
    (tmp_path / "b.csv").unlink()
    pl.DataFrame({"user": [1.0] * 7 + [2.5], "item": 1}).write_parquet(tmp_path / "b.parquet")
    fails(r"b\.parquet: column 'user' has the value 2.5 in row 8: ids are whole numbers")
    pl.DataFrame({"user": [1.0] * 7 + [float("nan")], "item": 1}).write_parquet(tmp_path / "b.parquet")
    fails(r"b\.parquet: column 'user' has no value in row 8: ")
    (tmp_path / "b.parquet").write_bytes(b"no Parquet")
    fails("b.parquet cannot be read as Parquet")


def test_nothing_left(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("user,item,stars\n")
    with pytest.raises(DataError, match=r"\(2 files\): none has rows"):
        stream(tmp_path)
    (tmp_path / "a.csv").write_text("user,item,stars\n1,1,1\n")
    with pytest.raises(DataError, match=r"\(2 files\): nothing is left of 1 rows: min_rating=4 removed 1 rows"):
        stream(tmp_path, rating="stars", min_rating=4)


def test_titles(tmp_path):
    (tmp_path / "a.csv").write_text("user,item\n1,5\n1,6\n")
    assert stream(tmp_path, titles={5: "five"}).titles.tolist() == ["five", None]


def test_progress_rises_to_one_in_each_stage(tiny, tmp_path):
    frame = pl.DataFrame({"user": np.arange(50), "item": np.arange(50) % 7})
    for form in WRITERS:
        WRITERS[form](frame, tmp_path / f"a.{form}")
    seen = []
    stream(tmp_path, progress=lambda stage, fraction: seen.append((stage, fraction)))
    assert [stage for stage, _ in itertools.groupby(seen, key=lambda step: step[0])] == ["read", "merge"]
    for stage in ("read", "merge"):
        fractions = [fraction for name, fraction in seen if name == stage]
        assert fractions == sorted(fractions)
        assert fractions[-1] == 1.0
        assert len(set(fractions)) > 3


@pytest.mark.parametrize("form", WRITERS)
def test_progress_within_one_file(tiny, tmp_path, form):
    frame = pl.DataFrame({"user": np.arange(200), "item": 1})
    WRITERS[form](frame, tmp_path / f"a.{form}")
    seen = []
    stream(tmp_path, progress=lambda stage, fraction: seen.append(fraction) if stage == "read" else None)
    assert seen[0] < 0.1
    assert 0.1 < seen[len(seen) // 2] < 0.9 or form == "csv.gz"  # how well a file is compressed can only be guessed


def test_the_scratch_folder_is_left_as_it_was(tiny, tmp_path):
    scratch = _made(tmp_path / "scratch")
    used = []
    (tmp_path / "a.csv").write_text("user,item,weight\n1,1,1\n2,2,2\n3,3,3\n4,4,4\n5,5,bad\n")
    stream(tmp_path / "a.csv", scratch=scratch, progress=lambda *_: used.append(len(list(scratch.rglob("*")))))
    assert max(used) > 1
    with pytest.raises(DataError, match="the value 'bad' in row 5"):
        stream(tmp_path / "a.csv", weight="weight", scratch=scratch)
    assert list(scratch.iterdir()) == []
    with pytest.raises(DataError, match=r"nowhere cannot hold the scratch files.*: set scratch= to a folder with room"):
        stream(tmp_path / "a.csv", scratch=tmp_path / "nowhere")


FULL = """
import resource, sys
from relae.data import Interactions

resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))  # bytes that a file may have
Interactions.read(sys.argv[1])
"""


def test_a_full_disk_is_an_error_with_a_way_out(tmp_path):
    pytest.importorskip("resource")
    for name in ("a", "b"):
        pl.DataFrame({"user": np.arange(1_000), "item": 1}).write_parquet(tmp_path / f"{name}.parquet")
    done = subprocess.run([sys.executable, "-c", FULL, tmp_path], capture_output=True, text=True, check=False)
    assert "DataError" in done.stderr
    assert "cannot hold the scratch files" in done.stderr
    assert "set scratch= to a folder with room" in done.stderr


PEAKS = """
import sys
from relae.data import Interactions, _scan, _tables
import polars as pl

_tables.BATCH_ROWS = _scan._BUCKET_ROWS = 100_000
folder = sys.argv[1]

def peak():  # in MiB; not that of getrusage, which begins with the peak of the parent
    with open("/proc/self/status") as lines:
        [line] = [line for line in lines if line.startswith("VmHWM")]
    return int(line.split()[1]) // 1024

_scan.fits_memory = lambda file: False
Interactions.read(folder + "/0.parquet")
peaks = [peak()]
Interactions.read(folder)
peaks.append(peak())
Interactions.from_frame(pl.scan_parquet(folder + "/*.parquet"))
peaks.append(peak())
print(*peaks)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is known from /proc")
def test_memory_does_not_grow_with_the_rows(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(8):
        users, items = rng.integers(0, 300, 500_000), rng.integers(0, 200, 500_000)
        pl.DataFrame({"user": users, "item": items}).write_parquet(tmp_path / f"{number}.parquet")
    done = subprocess.run([sys.executable, "-c", PEAKS, tmp_path], capture_output=True, text=True, check=True)
    one, all_files, in_memory = map(int, done.stdout.split())
    assert all_files - one < 40
    assert in_memory - all_files > 80  # what the rows need if they are held: the measure can see it


@pytest.mark.parametrize(("free", "batches"), [(1e12, 0), (10, 1)])
def test_one_file_is_streamed_only_where_memory_is_short(monkeypatch, tmp_path, free, batches):
    pl.DataFrame({"user": [1, 2], "item": [5, 6]}).write_csv(tmp_path / "a.csv")
    calls = []
    streamed = _scan._stream
    monkeypatch.setattr(_scan, "available_memory", lambda: free)
    monkeypatch.setattr(_scan, "_stream", lambda *given: calls.append(given) or streamed(*given))
    data = [Interactions.read(path) for path in (tmp_path / "a.csv", tmp_path, str(tmp_path / "*.csv"))]
    assert len(calls) == batches * len(data)
    assert all(same(each, data[0]) for each in data)


def test_progress_of_a_file_that_is_read_at_once(tmp_path):
    pl.DataFrame({"user": [1, 2], "item": [5, 6]}).write_csv(tmp_path / "a.csv")
    seen = []
    Interactions.read(tmp_path / "a.csv", progress=lambda *step: seen.append(step))
    assert seen[-1] == ("merge", 1.0)
