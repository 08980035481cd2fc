"""The raw formats that benchmarks are published in: lines to columns, a block at a time, no loop over lines."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from relae.data import positions_in
from relae.datasets._sources import BLOCK, FileSource, Folder, Piece, pieces, readable, tar_files
from relae.errors import DataError

if TYPE_CHECKING:
    import polars as pl

Titles = dict[int, str]


@dataclass(frozen=True)
class Events:
    """The rows of the raw files in their order, without those below the lowest rating, or all of them with `rating`.

    The columns of `rows` are `user`, `item` and, where the files have it, `timestamp`. Ids that are text are
    numbered by their sorted order, and `users`, `items` are the texts.
    """

    rows: pl.DataFrame
    users: list[str] | None = None
    items: list[str] | None = None


@dataclass(frozen=True)
class Format:
    """Lines of fields: what separates them, what they are, and what a good line looks like."""

    separator: bytes
    columns: Mapping[str, str]  # to the names of polars' types
    pattern: re.Pattern[bytes]
    example: str
    header: bytes | None = None

    def check_header(self, piece: Piece) -> Piece:
        """Return a file's first block without its header, after a check of it."""
        if self.header is None:
            return piece
        first, _, rest = piece.text.partition(b"\n")
        if first.removeprefix(b"\xef\xbb\xbf").strip() != self.header:
            raise DataError(f"{piece.source}, line 1 is {_shown(first)}, not the header `{self.header.decode()}`")
        return Piece(piece.source, 2, rest)

    def parse(self, block: list[Piece], text: bytes | None = None) -> pl.DataFrame:
        """Return the columns of some lines; `text` is what to parse, where that is not all of them."""
        import polars as pl

        content = b"".join(piece.text for piece in block) if text is None else text
        if len(self.separator) > 1:
            content = content.replace(self.separator, b"\x1f")
        try:
            rows = pl.read_csv(
                content,
                has_header=False,
                schema={name: getattr(pl, kind) for name, kind in self.columns.items()},
                separator="\x1f" if len(self.separator) > 1 else self.separator.decode(),
                quote_char=None,
            )
        except pl.exceptions.PolarsError as error:
            self.complain(block, str(error))
        if any(rows[name].null_count() for name in rows.columns) or not _finite(rows):
            self.complain(block, "a field is empty or not a number")
        return rows

    def complain(self, block: list[Piece], problem: str) -> NoReturn:
        """Raise for the first line of a block that is not what it should be."""
        for piece in block:
            for number, line in enumerate(piece.text.removesuffix(b"\n").split(b"\n"), piece.first_line):
                if not self.pattern.fullmatch(line):
                    what = "is blank" if not line.strip() else f"cannot be read: {_shown(line)}"
                    raise DataError(f"{piece.source}, line {number:,} {what}. A good line is `{self.example}`")
        first = problem.splitlines()[0]
        raise DataError(f"{block[0].source}, from line {block[0].first_line:,} on: {first}. A line is `{self.example}`")


_ID, _TIME = rb"\d{1,9}", rb"\d{1,18}"
_RATING = rb"\d{1,3}(\.\d{1,9})?"
_RATED = {"user": "Int32", "item": "Int32", "rating": "Float32", "timestamp": "Int64"}


def _rated(separator: bytes, example: str, header: bytes | None = None) -> Format:
    pattern = re.compile(re.escape(separator).join((_ID, _ID, _RATING, _TIME)))
    return Format(separator, _RATED, pattern, example, header)


RATINGS_CSV = _rated(b",", "1,2,3.5,1112486027", b"userId,movieId,rating,timestamp")
RATINGS_DAT = _rated(b"::", "1::1193::5::978300760")
RATINGS_TAB = _rated(b"\t", r"196\t242\t3\t881250949")
RATINGS_PLAIN = _rated(b",", "1,1193,5,978300760", b"user,item,rating,timestamp")
TRIPLETS = Format(
    b"\t",
    {"user": "String", "item": "String", "plays": "Int64"},
    re.compile(rb"[0-9A-Za-z]+\t[0-9A-Za-z]+\t\d{1,18}"),
    r"b80344d063b5ccb3212f76538f3d9e43d87dca9e\tSOAKIMP12A8C130995\t1",
)
NETFLIX = Format(
    b",",
    {"user": "Int32", "rating": "Float32", "timestamp": "Date"},
    re.compile(rb"\d{1,9}:|\d{1,9},[1-5],\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"),
    "1488844,3,2005-09-06` after a line `1:` with the movie's number",
)


def read_ratings(source: FileSource, name: str, form: Format, min_rating: float | None) -> Events:
    """Return the ratings in a text file that are at least `min_rating`; without it all of them."""
    frames = []
    for piece in pieces(source.open(name), source.label(name)):
        body = form.check_header(piece) if piece.first_line == 1 else piece
        if body.text:
            frames.append(_rated_at_least(form.parse([body]), min_rating))
    return Events(_joined(frames, source.label(name), form))


def read_triplets(source: FileSource, name: str) -> Events:
    """Return who played which song, from lines of user, song and number of plays."""
    frames = []
    users, items = dict[str, int](), dict[str, int]()
    for piece in pieces(source.open(name), source.label(name)):
        rows = TRIPLETS.parse([piece])
        frames.append(rows.select(_numbered(rows["user"], users), _numbered(rows["item"], items)))
    rows = _joined(frames, source.label(name), TRIPLETS)
    return Events(rows.select(_ranked(rows["user"], users), _ranked(rows["item"], items)), sorted(users), sorted(items))


def read_netflix(files: Iterable[Piece], source: str, min_rating: float | None) -> Events:
    """Return the ratings in files that have a line `movie:` before the lines `user,rating,date` of each movie.

    The rows are sorted by movie, each movie's in the order of its file, in whatever order the files come. Without
    `min_rating` all of them are returned.
    """
    frames, movie = [], None
    for block in _blocks(files):
        rows, movie = _netflix_block(block, movie)
        frames.append(_rated_at_least(rows, min_rating))
    rows = _joined(frames, source, NETFLIX)
    return Events(rows if rows["item"].is_sorted() else rows.sort("item", maintain_order=True))


def netflix_pieces(folder: Path, names: list[str]) -> Iterator[Piece]:
    """Yield the files of the Netflix Prize in a folder."""
    source = Folder(folder)
    for name in names:
        yield from pieces(source.open(name), source.label(name))


def netflix_tar_pieces(file: Path, titles: Titles) -> Iterator[Piece]:
    """Yield the movies' files in the archive of the Netflix Prize; the titles go into `titles` on the way."""
    with file.open("rb") as stream:
        for name, content in tar_files(stream, str(file)):
            label = f"{name} in {file}"
            if name.startswith("mv_"):
                yield from pieces(io.BytesIO(content), label)
            elif name == "movie_titles.txt":
                titles.update(netflix_titles(content, label))


def _blocks(files: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Yield pieces in blocks that are large enough to be parsed together."""
    block, size = list[Piece](), 0
    for piece in files:
        block.append(piece)
        size += len(piece.text)
        if size >= BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def _netflix_block(block: list[Piece], movie: int | None) -> tuple[pl.DataFrame, int | None]:
    """Return the rows of some pieces, and the movie that the last of them belongs to.

    `movie` is that of the lines before the first `movie:`, if the block goes on in the middle of a file.
    """
    import polars as pl

    for piece in block:  # each file says itself which movie it is of
        first = piece.text.partition(b"\n")[0]
        if piece.first_line == 1 and not re.fullmatch(rb"\d{1,9}:", first):
            raise DataError(f"{piece.source}, line 1 is {_shown(first)}, not a movie's number and a colon, as in `1:`")
    content = b"".join(piece.text for piece in block)
    array = np.frombuffer(content, dtype=np.uint8)
    newlines, colons = np.flatnonzero(array == ord("\n")), np.flatnonzero(array == ord(":"))
    lines = np.searchsorted(newlines, colons)  # of the colons, counted from 0
    starts = np.concatenate([[0], newlines + 1])[lines]
    ends = newlines[lines] + 1
    if not (ends == colons + 2).all():
        NETFLIX.complain(block, "a colon in the middle of a line")
    movies, texts, end = ([] if movie is None else [movie]), [], 0
    for start, next_end in zip(starts.tolist(), ends.tolist(), strict=True):
        texts.append(content[end:start])
        if not content[start : next_end - 2].isdigit():
            NETFLIX.complain(block, "a movie that is not a number")
        movies.append(int(content[start : next_end - 2]))
        end = next_end
    texts.append(content[end:])
    edges = np.concatenate([[-1], lines, [len(newlines)]])
    counts = np.diff(edges) - 1  # of the ratings before the first `movie:`, and after each
    if movie is None:
        counts = counts[1:]
    items = pl.Series("item", np.repeat(np.array(movies, dtype=np.int32), counts))
    body = b"".join(texts)
    rows = NETFLIX.parse(block, body) if body else _no_rows(NETFLIX)
    return rows.with_columns(items), movies[-1]


def csv_titles(source: FileSource, name: str, item: str) -> Titles:
    """Return the titles in a CSV file with the columns of item ids and `title`."""
    label = source.label(name)
    with source.open(name) as stream, readable(label):
        text = _decoded(stream.read(), "utf-8-sig", label)
    reader = csv.DictReader(io.StringIO(text))
    columns = {item, "title"}
    if not columns <= set(reader.fieldnames or ()):
        raise DataError(f"{label} has the columns {reader.fieldnames}, it needs {item!r} and 'title'")
    titles = {}
    for row in reader:
        if not (row[item] or "").isdigit() or row["title"] is None:
            raise DataError(f"{label}, line {reader.line_num:,} has no number or no title: {str(row)[:100]}")
        titles[int(row[item])] = row["title"]
    return titles


def separated_titles(source: FileSource, name: str, separator: str) -> Titles:
    """Return the titles in lines of `item`, `title` and more, in Latin-1."""
    label = source.label(name)
    with source.open(name) as stream, readable(label):
        return _titles(stream.read(), separator, 1, label)


def netflix_titles(content: bytes, label: str) -> Titles:
    """Return the titles in lines `movie,year,title` in Latin-1; the title may have commas."""
    return _titles(content, ",", 2, label)


def _titles(content: bytes, separator: str, at: int, label: str) -> Titles:
    titles = {}
    for number, line in enumerate(content.decode("latin-1").splitlines(), 1):
        fields = line.split(separator, at + 1 if at == 1 else at)
        if not line.strip():
            continue
        if len(fields) <= at or not fields[0].strip().isdigit():
            good = separator.join(("1", "Toy Story (1995)", "…") if at == 1 else ("1", "2003", "Dinosaur Planet"))
            raise DataError(f"{label}, line {number:,} cannot be read: {line[:80]!r}. A good line is `{good}`")
        titles[int(fields[0])] = fields[at]
    return titles


def _decoded(content: bytes, encoding: str, label: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{label}, line {line:,} is not UTF-8") from error


def _rated_at_least(rows: pl.DataFrame, min_rating: float | None) -> pl.DataFrame:
    """Return the rows with high enough ratings, which are then of no more use; without `min_rating` all as they are."""
    return rows if min_rating is None else rows.filter(rows["rating"] >= min_rating).drop("rating")


def _joined(frames: list[pl.DataFrame], source: str, form: Format) -> pl.DataFrame:
    import polars as pl

    if not frames:
        raise DataError(f"{source} is empty: it needs lines such as `{form.example}`")
    return pl.concat(frames)


def _no_rows(form: Format) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(schema={name: getattr(pl, kind) for name, kind in form.columns.items()})


def _finite(rows: pl.DataFrame) -> bool:
    return "rating" not in rows.columns or bool(rows["rating"].is_finite().all())


def _numbered(texts: pl.Series, numbers: dict[str, int]) -> pl.Series:
    """Return texts as numbers by their first appearance; new ones join the dictionary."""
    import polars as pl

    distinct = texts.unique()
    known = pl.Series([numbers.setdefault(text, len(numbers)) for text in distinct.to_list()], dtype=pl.Int32)
    positions = positions_in(distinct, texts)
    return known.gather(positions).alias(texts.name)


def _ranked(codes: pl.Series, numbers: dict[str, int]) -> pl.Series:
    """Return numbers by first appearance as numbers by sorted text."""
    import polars as pl

    order = np.argsort(np.array(list(numbers), dtype=object), kind="stable")
    ranks = np.empty(len(order), dtype=np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return pl.Series(codes.name, ranks[codes.to_numpy()])


def _shown(line: bytes) -> str:
    return repr(line[:80].decode(errors="replace") + ("…" if len(line) > 80 else ""))
