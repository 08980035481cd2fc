"""The raw formats as they are published, on a few lines of each, whole and broken."""

import gzip
import io
import tarfile
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import relae.datasets._formats as formats
import relae.datasets._sources as places
from relae import datasets
from relae.errors import DataError

from ..data.tables import check_form, same, seen_pairs

# Users 1 and 3 like five films, user 2 only two; 40 is liked by nobody.
LIKES = {1: (10, 20, 30, 50, 60), 2: (10, 20), 3: (60, 50, 30, 20, 10)}
FILMS = {10: "Café, The (1995)", 20: "Heat (1995)", 30: "Up (2009)", 40: "Ishtar (1987)", 50: "Alien", 60: "Ran"}


def rated():
    """Lines of (user, item, rating, time), the films that nobody likes among them."""
    time = 978_300_000
    for user, items in sorted(LIKES.items(), reverse=True):
        for item in items:
            time += 1
            yield user, item, 4 + item % 20 // 10, time
        yield user, 40, 3, time


def zipped(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def ml_20m():
    ratings = "userId,movieId,rating,timestamp\n" + "".join(f"{u},{i},{r}.5,{t}\n" for u, i, r, t in rated())
    movies = "movieId,title,genres\n" + "".join(f'{i},"{title}",Drama|War\n' for i, title in FILMS.items())
    return {"ratings.csv": ratings.encode(), "movies.csv": movies.encode()}


def ml_1m():
    ratings = "".join(f"{u}::{i}::{r}::{t}\n" for u, i, r, t in rated())
    movies = "".join(f"{i}::{title}::Drama|War\n" for i, title in FILMS.items())
    return {"ratings.dat": ratings.encode(), "movies.dat": movies.encode("latin-1")}


def ml_100k():
    ratings = "".join(f"{u}\t{i}\t{r}\t{t}\n" for u, i, r, t in rated())
    movies = "".join(f"{i}|{title}|01-Jan-1995||http://us.imdb.com/|0|0|1\n" for i, title in FILMS.items())
    return {"u.data": ratings.encode(), "u.item": movies.encode("latin-1")}


def plain():
    ratings = "user,item,rating,timestamp\n" + "".join(f"{u},{i},{r},{t}\n" for u, i, r, t in rated())
    movies = "item,title,genres\n" + "".join(f'{i},"{title}",Drama\n' for i, title in FILMS.items())
    return {"interactions.csv.gz": gzip.compress(ratings.encode()), "items.csv": movies.encode()}


def netflix():
    """The files of the Netflix Prize: one per movie."""
    found = {}
    for movie in FILMS:
        lines = [f"{u},{r},2005-09-{t % 28 + 1:02d}" for u, i, r, t in rated() if i == movie]
        found[f"training_set/mv_{movie:07d}.txt"] = f"{movie}:\n{''.join(line + chr(10) for line in lines)}".encode()
    return found


def netflix_titles():
    return "".join(f"{i},{'NULL' if i == 10 else 1995},{title}\n" for i, title in FILMS.items()).encode("latin-1")


def tarred(members, mode="w"):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def netflix_archive():
    inner = tarred(dict(reversed(netflix().items())))
    return tarred({"download/training_set.tar": inner, "download/movie_titles.txt": netflix_titles()}, "w:gz")


def combined():
    files = list(netflix().values())
    return {f"combined_data_{n + 1}.txt": b"".join(files[n::4]) for n in range(4)}


def triplets(likes=LIKES):
    lines = [f"user{u}\tSO{i}\t{n + 1}\n" for u, items in likes.items() for n, i in enumerate(items)]
    return {"train_triplets.txt": "".join(lines).encode()}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Put files into the folder of a data set, and return the data set."""
    monkeypatch.setenv("RELAE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def put(name, members, under="", archive=None):
        folder = tmp_path / "data" / name / under
        folder.mkdir(parents=True, exist_ok=True)
        if archive is not None:
            zipped(folder / archive, {f"{archive.removesuffix('.zip')}/{key}": body for key, body in members.items()})
            return datasets.get(name)
        for key, body in members.items():
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).write_bytes(body)
        return datasets.get(name)

    return put


MOVIELENS = [
    ("ml-20m", ml_20m, {"archive": "ml-20m.zip"}),
    ("ml-20m", ml_20m, {}),
    ("ml-20m", ml_20m, {"under": "ml-20m"}),
    ("ml-1m", ml_1m, {"archive": "ml-1m.zip"}),
    ("ml-1m", ml_1m, {}),
    ("ml-1m", plain, {}),
    ("ml-100k", ml_100k, {"archive": "ml-100k.zip"}),
    ("ml-100k", ml_100k, {"under": "ml-100k"}),
]


@pytest.mark.parametrize("block", [1 << 26, 40])
@pytest.mark.parametrize(("name", "make", "options"), MOVIELENS)
def test_movielens(here, monkeypatch, name, make, options, block):
    monkeypatch.setattr(places, "BLOCK", block)
    dataset = here(name, make(), **options)
    data = dataset.load()
    check_form(data)
    assert data.users.values.tolist() == [1, 3]
    assert data.items.values.tolist() == [10, 20, 30, 50, 60]
    assert data.n_interactions == 10
    assert data.titles.tolist() == [FILMS[item] for item in (10, 20, 30, 50, 60)]
    assert data.seen is None
    whole = dataset.load(seen=True)
    assert same(whole, data)
    assert seen_pairs(whole, FILMS) == {(u, i) for u, i, stars, _ in rated() if stars < 4 and u in (1, 3)}
    first = {(u, i): t for u, i, _, t in rated()}
    assert data.times.tolist() == [first[u, i] for u in (1, 3) for i in (10, 20, 30, 50, 60)]


@pytest.mark.parametrize("end", ["\r\n", "\n\n\n", ""])
def test_ends_of_lines_and_files(here, end):
    members = ml_20m()
    text = members["ratings.csv"].decode().removesuffix("\n")
    text = text.replace("\n", end) + end if end == "\r\n" else text + end
    assert here("ml-20m", {"ratings.csv": text.encode()}).load().n_interactions == 10


def test_titles_are_not_needed(here):
    members = ml_1m()
    del members["movies.dat"]
    assert here("ml-1m", members).load().titles is None


NETFLIX = [
    lambda: {"nf_prize_dataset.tar.gz": netflix_archive()},
    lambda: {"training_set.tar": tarred(netflix()), "movie_titles.txt": netflix_titles()},
    lambda: {**netflix(), "movie_titles.txt": netflix_titles()},
    lambda: {**combined(), "movie_titles.csv": netflix_titles()},
]


@pytest.mark.parametrize("block", [1 << 26, 30])
@pytest.mark.parametrize("make", NETFLIX)
def test_netflix(here, monkeypatch, make, block):
    monkeypatch.setattr(places, "BLOCK", block)
    monkeypatch.setattr(formats, "BLOCK", block)
    dataset = here("netflix", make())
    data = dataset.load()
    check_form(data)
    assert data.users.values.tolist() == [1, 3]
    assert data.items.values.tolist() == [10, 20, 30, 50, 60]
    assert data.titles.tolist() == [FILMS[item] for item in (10, 20, 30, 50, 60)]
    days = {(u, i): np.datetime64(f"2005-09-{t % 28 + 1:02d}T00", "us").astype(int) for u, i, _, t in rated()}
    assert data.times.tolist() == [days[u, i] for u in (1, 3) for i in (10, 20, 30, 50, 60)]
    assert seen_pairs(dataset.load(seen=True), FILMS) == {(1, 40), (3, 40)}
    pairs = dataset.pairs()
    assert pairs.items.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert pairs.users.tolist() == [1, 0] * 5


@pytest.mark.parametrize("archive", [None, "train_triplets.txt.zip"])
@pytest.mark.parametrize("block", [1 << 26, 4_000])
def test_taste_profile(here, monkeypatch, archive, block):
    monkeypatch.setattr(places, "BLOCK", block)
    # 210 listeners of songs 0 to 19; the last 5 of them heard no more than 19 of those, and a rare song 99.
    likes = {u: (*range(20 if u < 205 else 19), *([99] if u >= 205 else [])) for u in range(210)}
    dataset = here("msd", triplets(likes), archive=archive)
    data = dataset.load()
    check_form(data)
    assert data.matrix.shape == (205, 20)
    assert data.n_interactions == 205 * 20
    assert data.users.values.tolist() == sorted(f"user{u}" for u in range(205))
    assert data.history("user7") == sorted(f"SO{i}" for i in range(20))
    assert data.times is None
    pairs = dataset.pairs()
    names = data.users.values[pairs.users].tolist(), data.items.values[pairs.items].tolist()
    assert list(zip(*names, strict=True)) == [(f"user{u}", f"SO{i}") for u in range(205) for i in range(20)]


def test_pairs_keep_the_order_of_the_file(here):
    dataset = here("ml-20m", ml_20m())
    data, pairs = dataset.load(), dataset.pairs()
    found = zip(data.users.values[pairs.users].tolist(), data.items.values[pairs.items].tolist(), strict=True)
    assert list(found) == [(u, i) for u in (3, 1) for i in LIKES[u]]
    assert pairs.owners.tolist() == [0, 1]


def test_a_repeated_pair_counts_once(here):
    members = ml_1m()
    members["ratings.dat"] += b"1::10::5::1\n" + b"2::10::5::1\n" * 9
    dataset = here("ml-1m", members)
    assert dataset.load().n_users == 2
    pairs = dataset.pairs()
    assert len(pairs.users) == 10
    assert pairs.items.tolist() == [4, 3, 2, 1, 0, 0, 1, 2, 3, 4]


@given(st.lists(st.sampled_from(["a", "bb", "", "c\r"]), max_size=12), st.integers(1, 9), st.booleans())
def test_pieces_are_the_lines(lines, block, ended):
    text = "\n".join(lines) + ("\n" if ended else "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "BLOCK", block)
        found = list(places.pieces(io.BytesIO(text.encode()), "x"))
    joined = b"".join(piece.text for piece in found).decode()
    expected = text.rstrip("\r\n").replace("\r\n", "\n")
    assert joined == (expected + "\n" if expected else "")
    number = 1
    for piece in found:
        assert piece.first_line == number
        assert piece.text.endswith(b"\n")
        number += piece.text.count(b"\n")


GOOD_CSV = "userId,movieId,rating,timestamp\n1,2,3.5,1112486027\n"


@pytest.mark.parametrize("block", [1 << 26, 8])
@pytest.mark.parametrize(
    ("name", "file", "content", "message"),
    [
        ("ml-20m", "ratings.csv", GOOD_CSV + "1,2,4\n", r"line 3 cannot be read: '1,2,4'\. A good line is `1,2,3.5"),
        ("ml-20m", "ratings.csv", GOOD_CSV + "1,x,4,5\n2,2,2,2\n", "line 3 cannot be read: '1,x,4,5'"),
        ("ml-20m", "ratings.csv", GOOD_CSV + "1,3,NaN,5\n", "line 3 cannot be read: '1,3,NaN,5'"),
        ("ml-20m", "ratings.csv", GOOD_CSV + "1,3,inf,5\n", "line 3 cannot be read: '1,3,inf,5'"),
        ("ml-20m", "ratings.csv", GOOD_CSV + "1,3,,5\n", "line 3 cannot be read: '1,3,,5'"),
        ("ml-20m", "ratings.csv", GOOD_CSV + "1,3,4,5,6\n", "line 3 cannot be read: '1,3,4,5,6'"),
        ("ml-20m", "ratings.csv", GOOD_CSV + "\n1,3,4,5\n", "line 3 is blank"),
        ("ml-20m", "ratings.csv", GOOD_CSV + "1,99999999999,4,5\n", "line 3 cannot be read: '1,99999999999,4,5'"),
        ("ml-20m", "ratings.csv", GOOD_CSV + "1,3,4,", "line 3 cannot be read: '1,3,4,'"),
        ("ml-20m", "ratings.csv", "user,item,rating,ts\n1,2,3,4\n", "line 1 is 'user,item,rating,ts', not the header"),
        ("ml-20m", "ratings.csv", "1,2,3.5,1112486027\n", "line 1 is '1,2,3.5,1112486027', not the header"),
        ("ml-20m", "ratings.csv", "", "is empty"),
        ("ml-20m", "ratings.csv", "userId,movieId,rating,timestamp\n", "is empty"),
        ("ml-20m", "ratings.csv", GOOD_CSV, "nothing is left of|has no rows"),
        ("ml-1m", "ratings.dat", "1::2::3::4\n1::2:3::4\n", r"line 2 cannot be read: '1::2:3::4'\. .*`1::1193::5"),
        ("ml-1m", "ratings.dat", "1::2::3::4\n1\t2\t3\t4\n", "line 2 cannot be read"),
        ("ml-100k", "u.data", "1\t2\t3\t4\n1\t2\t3\n", r"line 2 cannot be read: '1\\t2\\t3'"),
        ("ml-100k", "u.data", b"1\t2\t3\t4\n\xff\t2\t3\t4\n", "line 2 cannot be read: '�"),
        ("msd", "train_triplets.txt", "a\tSO1\t1\nb\tSO2\n", r"line 2 cannot be read: 'b\\tSO2'"),
        ("msd", "train_triplets.txt", "a\tSO1\tx\n", r"line 1 cannot be read: 'a\\tSO1\\tx'"),
        ("msd", "train_triplets.txt", b"a\tSO\xff\t1\n", "line 1 cannot be read"),
        ("gowalla", "train.txt", "0 1\n1 x\n", "line 2 is not made of non-negative integers"),
        ("netflix", "training_set/mv_0000001.txt", "1:\n7,5,2005-09-06\n7,5\n", r"mv_0000001.txt, line 3 .*'7,5'"),
        ("netflix", "training_set/mv_0000001.txt", "1:\n7,5,2005-09-0", "line 2 cannot be read: '7,5,2005-09-0'"),
        ("netflix", "training_set/mv_0000001.txt", "1:\n7,5,2005-13-06\n", "line 2 cannot be read"),
        ("netflix", "training_set/mv_0000001.txt", "1:\n7,5,2005-02-30\n", "from line 1 on|from line 2 on"),
        ("netflix", "training_set/mv_0000001.txt", "1:\nx:\n7,5,2005-09-06\n", "line 2 cannot be read: 'x:'"),
        ("netflix", "training_set/mv_0000001.txt", "1:\n7:5,2005-09-06\n", "line 2 cannot be read: '7:5,2005-09-06'"),
        ("netflix", "training_set/mv_0000001.txt", "7,5,2005-09-06\n", "line 1 is '7,5,2005-09-06', not a movie's"),
        ("netflix", "training_set/mv_0000001.txt", "1:\n\n7,5,2005-09-06\n", "line 2 is blank"),
    ],
)
def test_broken_lines_are_named(here, monkeypatch, name, file, content, message, block):
    monkeypatch.setattr(places, "BLOCK", block)
    monkeypatch.setattr(formats, "BLOCK", block)
    members = {file: content if isinstance(content, bytes) else content.encode()}
    if name == "gowalla":
        members["test.txt"] = b"0 2\n"
    with pytest.raises(DataError, match=message) as caught:
        here(name, members).load()
    if "nothing is left" not in message:
        assert file.rsplit("/", 1)[-1] in str(caught.value)


def test_a_broken_movie_among_others(here):
    members = netflix()
    members["training_set/mv_0000030.txt"] = b"30:\n1,5,2005-09-06\n1;5;2005-09-06\n"
    with pytest.raises(DataError, match=r"mv_0000030.txt, line 3 cannot be read: '1;5;2005-09-06'"):
        here("netflix", members).load()


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("ml-20m", "ml-20m.zip"),
        ("msd", "train_triplets.txt.zip"),
        ("netflix", "nf_prize_dataset.tar.gz"),
        ("ml-1m", "interactions.csv.gz"),
    ],
)
def test_archives_that_are_none(here, name, file):
    with pytest.raises(DataError, match=f"{file}.*Delete it and get it again"):
        here(name, {file: b"<html>not found</html>"}).load()


def test_cut_archives(here, tmp_path):
    whole = netflix_archive()
    with pytest.raises(DataError, match="is damaged"):
        here("netflix", {"nf_prize_dataset.tar.gz": whole[: len(whole) // 2]}).load()
    zipped(tmp_path / "a.zip", {"ml-20m/ratings.csv": ml_20m()["ratings.csv"]})
    content = bytearray((tmp_path / "a.zip").read_bytes())
    content[60] ^= 0xFF  # inside the compressed data
    with pytest.raises(DataError, match=r"ratings\.csv in .*ml-20m\.zip is damaged"):
        here("ml-20m", {"ml-20m.zip": bytes(content)}).load()


def test_a_zip_of_something_else(here):
    with pytest.raises(DataError, match=r"ml-20m\.zip has no file ratings\.csv, it has ml-20m/README"):
        here("ml-20m", {"README": b"hello"}, archive="ml-20m.zip").load()


@pytest.mark.parametrize(
    ("name", "members", "message"),
    [
        ("ml-1m", {**ml_1m(), "movies.dat": b"10::Heat::Drama\nHeat\n"}, r"movies\.dat, line 2 .*`1::Toy Story"),
        ("ml-20m", {**ml_20m(), "movies.csv": b"id,name\n1,Heat\n"}, r"has the columns \['id', 'name'\], it needs"),
        ("ml-20m", {**ml_20m(), "movies.csv": b"movieId,title\nx,Heat\n"}, r"movies\.csv, line 2 has no number"),
        ("ml-20m", {**ml_20m(), "movies.csv": b"movieId,title\n1,\xff\n"}, r"movies\.csv, line 2 is not UTF-8"),
        ("netflix", {**combined(), "movie_titles.csv": b"1,2003\n"}, r"movie_titles\.csv, line 1 .*Dinosaur Planet"),
    ],
)
def test_broken_titles_are_named(here, name, members, message):
    with pytest.raises(DataError, match=message):
        here(name, members).load()
