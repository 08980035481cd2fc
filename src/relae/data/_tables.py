"""Tables from files and data frames, cut down to the columns that are wanted."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relae.errors import DataError

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl

# The role of a column ("user", "rating") to its name in the table. A role is also the keyword that sets it.
Roles = Mapping[str, str]

_TEXT = {".csv": None, ".tsv": "\t", ".tab": "\t"}
_PARQUET = {".parquet", ".pq"}
_COMPRESSED = {".gz", ".zst"}
# Rows at a time: some tens of megabytes, and long enough that the work per batch does not count.
BATCH_ROWS = 2_000_000


@dataclass(frozen=True)
class Table:
    """A table of which only the column names are known as yet.

    `source` names it in messages; `text` tells that its columns are all strings, whatever they mean;
    `categories` are the columns whose type says that they are categories, also those of numbers. A file can also
    be had in batches, in the order of its rows, by `stream`.
    """

    source: str
    columns: list[str]
    text: bool
    fetch: Callable[[list[str]], pl.DataFrame]
    stream: Callable[[list[str]], Iterator[pl.DataFrame]] | None = None
    estimate: Callable[[], int] | None = None
    categories: frozenset[str] = frozenset()

    def load(self, roles: Roles, *, keywords: bool = True) -> pl.DataFrame:
        """Return some columns, named by their roles; `keywords` tells that the caller can name others."""
        self.check(roles, keywords=keywords)
        return _by_role(self.fetch(_distinct(roles)), roles)

    def batches(self, roles: Roles) -> Iterator[pl.DataFrame]:
        """Return some columns like `load`, some rows at a time; the memory does not grow with the table."""
        self.check(roles)
        stream = self.stream or (lambda columns: iter([self.fetch(columns)]))
        return (_by_role(rows, roles) for rows in stream(_distinct(roles)))

    def estimate_rows(self) -> int:
        """Return about how many rows there are, 0 if that cannot be told without reading them."""
        return 0 if self.estimate is None else self.estimate()

    def check(self, roles: Roles, *, keywords: bool = True) -> None:
        """Raise if a column is missing."""
        for role, column in roles.items():
            if column not in self.columns:
                raise DataError(self._missing(role, column, keywords))

    def _missing(self, role: str, column: str, keywords: bool) -> str:
        lowered = {name.lower(): name for name in self.columns}
        near = get_close_matches(column.lower(), lowered, n=1, cutoff=0.5)
        meant = repr(lowered[near[0]]) if near else "…"
        way_out = f"set {role}={meant}" if keywords else f"rename {meant} to {column!r}"
        there = ", ".join(map(repr, self.columns)) or "none"
        return f"{self.source} has no column {column!r}, its columns are {there}: {way_out}"


def _distinct(roles: Roles) -> list[str]:
    return list(dict.fromkeys(roles.values()))


def _by_role(rows: pl.DataFrame, roles: Roles) -> pl.DataFrame:
    return rows.select(rows[column].alias(role) for role, column in roles.items())


def is_table(path: str | os.PathLike[str]) -> bool:
    """Tell whether the name of a file says that it is a table."""
    return _extension(Path(path)) in _PARQUET | _TEXT.keys()


def open_table(given: Any, source: str) -> Table:
    """Return the table in a file, if that is what is given, or in a frame; `source` names a frame in messages."""
    return open_file(given) if isinstance(given, (str, os.PathLike)) else open_frame(given, source)


def open_file(path: str | os.PathLike[str], separator: str | None = None) -> Table:
    """Return the table in a CSV, TSV (plain, .gz, .zst) or Parquet file."""
    file = existing_file(path)
    extension = _extension(file)
    if extension in _PARQUET:
        return _open_parquet(file)
    if extension in _TEXT or separator is not None:
        return _open_text(file, separator or _TEXT[extension])
    raise DataError(
        f"{file}: the extension {extension!r} is unknown. Known are .csv, .tsv (also .gz, .zst), .parquet; "
        "give separator= if it is a text table with a header, or use Interactions.read_lists "
        "for lines of `user item item …`"
    )


def open_frame(frame: Any, source: str) -> Table:
    """Return the table in a pandas, polars (also lazy) or pyarrow frame."""
    import narwhals as nw

    try:
        table = nw.from_native(frame)
        schema = table.collect_schema()
    except TypeError as error:
        raise DataError(
            f"{source} is a {type(frame).__name__}: give a pandas, polars or pyarrow table, "
            "or use Interactions.read for a file and Interactions.from_matrix for a matrix"
        ) from error
    except nw.exceptions.DuplicateError as error:
        raise DataError(f"{source} has several columns of one name: {' '.join(str(error).split())}") from error
    categories = frozenset(name for name, kind in schema.items() if kind in (nw.Categorical, nw.Enum))
    return Table(source, schema.names(), False, partial(_fetch_frame, table, source), categories=categories)


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file, or say why there is none."""
    file = Path(path)
    if file.is_dir():
        raise DataError(f"{file} is a folder, not a file: name the table in it")
    if not file.exists():
        near = get_close_matches(file.name, _siblings(file), n=1)
        raise DataError(f"{file} does not exist" + (f": did you mean {near[0]!r}?" if near else ""))
    return file


def _siblings(file: Path) -> list[str]:
    return [other.name for other in file.parent.iterdir()] if file.parent.is_dir() else []


def _extension(file: Path) -> str:
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def _open_parquet(file: Path) -> Table:
    import polars as pl

    with _parquet_errors(file):
        columns = pl.scan_parquet(file, glob=False).collect_schema().names()
    fetch, stream = partial(_fetch_parquet, file), partial(_stream_parquet, file)
    return Table(str(file), columns, False, fetch, stream, partial(_count_parquet, file))


def _fetch_parquet(file: Path, columns: list[str]) -> pl.DataFrame:
    import polars as pl

    with _parquet_errors(file):
        return pl.scan_parquet(file, glob=False).select(columns).collect()


def _stream_parquet(file: Path, columns: list[str]) -> Iterator[pl.DataFrame]:
    import polars as pl

    with _parquet_errors(file):
        yield from pl.scan_parquet(file, glob=False).select(columns).collect_batches(chunk_size=BATCH_ROWS)


def _count_parquet(file: Path) -> int:
    import polars as pl

    with _parquet_errors(file):
        return int(pl.scan_parquet(file, glob=False).select(pl.len()).collect().item())


@contextmanager
def _parquet_errors(file: Path) -> Iterator[None]:
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{file} cannot be read as Parquet: {_first_line(error)}") from error


def _open_text(file: Path, separator: str | None) -> Table:
    import polars as pl

    if separator is not None and len(separator.encode()) != 1:
        raise DataError(f"separator must be one ASCII character, got {separator!r}")
    try:
        first = next(_lines(file, n_rows=1), None)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{file} cannot be read as a text table: {_first_line(error)}") from error
    if first is None:
        raise DataError(f"{file} is empty: it needs a header line and rows")
    # Of the usual separators, the one that the header has most of.
    separator = separator or max(",\t;|", key=first.count)
    header = next(csv.reader([first], delimiter=separator))
    form = file, separator, len(header)
    fetch, stream = partial(_fetch_text, *form), partial(_stream_text, *form)
    return Table(str(file), header, True, fetch, stream, partial(_estimate_text, file))


def _fetch_text(file: Path, separator: str, width: int, columns: list[str]) -> pl.DataFrame:
    import polars as pl

    with _text_errors(file, separator, width):
        # Everything as text: an ISBN must keep its leading zero, and a bad number its row.
        table = pl.read_csv(file, columns=columns, separator=separator, infer_schema=False, glob=False)
    return _without_blank_end(table, file)


def _stream_text(file: Path, separator: str, width: int, columns: list[str]) -> Iterator[pl.DataFrame]:
    import polars as pl

    waiting: pl.DataFrame | None = None  # what may be the end does not go out before it is cut
    with _text_errors(file, separator, width):
        table = pl.scan_csv(file, separator=separator, infer_schema=False, glob=False).select(columns)
        for rows in table.collect_batches(chunk_size=BATCH_ROWS):
            if waiting is not None and not _ends_blank(waiting):
                yield waiting
                waiting = None
            waiting = rows if waiting is None else waiting.vstack(rows)
    if waiting is not None:
        yield _without_blank_end(waiting, file)


def _estimate_text(file: Path) -> int:
    lengths = [len(line.encode()) + 1 for line in _lines(file, n_rows=1_001)]
    size = file.stat().st_size * (4 if file.suffix.lower() in _COMPRESSED else 1)
    return size * len(lengths) // sum(lengths)


@contextmanager
def _text_errors(file: Path, separator: str, width: int) -> Iterator[None]:
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        broken = _broken_row(file, separator, width) or _first_line(error)
        raise DataError(f"{file} cannot be read as a text table: {broken}") from error


def _without_blank_end(table: pl.DataFrame, file: Path) -> pl.DataFrame:
    """Drop the rows that polars makes of blank lines at the end of a file."""
    if not _ends_blank(table):
        return table
    blank = 0
    for line in _lines(file):
        blank = 0 if line.strip() else blank + 1
    return table.head(max(table.height - blank, 0))


def _ends_blank(table: pl.DataFrame) -> bool:
    return all(value is None for row in table.tail(1).rows() for value in row)


def _lines(file: Path, n_rows: int | None = None) -> Iterator[str]:
    """Return the lines of a text file, through polars because it knows the compressions."""
    import polars as pl

    try:
        table = pl.scan_csv(
            file,
            has_header=False,
            n_rows=n_rows,
            separator="\x1f",  # in no table, so that a line is one field
            quote_char=None,
            infer_schema=False,
            encoding="utf8-lossy",
            glob=False,
        )
        for rows in table.collect_batches(chunk_size=BATCH_ROWS):
            yield from (line or "" for line in rows.to_series())
    except pl.exceptions.NoDataError:
        return


def _broken_row(file: Path, separator: str, width: int) -> str | None:
    """Say which row polars stumbled over, for it does not say so itself; None if that is not found."""
    import polars as pl

    row = -1
    try:
        for number, line in enumerate(_lines(file)):
            if "\ufffd" in line:
                return f"row {number:,} is not UTF-8: {line[:80]!r}. Convert the file"
        for fields in csv.reader(_lines(file), delimiter=separator, strict=True):
            row += 1
            if len(fields) > width:
                text = separator.join(fields)[:80]
                return f"row {row:,} has {len(fields)} fields and the header {width}: {text!r}"
    except csv.Error:
        return f"a quote that opens in row {row + 1:,} is never closed, or closes in the middle of a field"
    except (pl.exceptions.PolarsError, OSError):
        pass
    return None


def _fetch_frame(table: nw.DataFrame[Any] | nw.LazyFrame[Any], source: str, columns: list[str]) -> pl.DataFrame:
    import narwhals as nw
    import polars as pl

    chosen = table.select(columns)
    eager = chosen.collect() if isinstance(chosen, nw.LazyFrame) else chosen
    return pl.DataFrame([_polars_series(eager[column], source).alias(column) for column in columns])


def _polars_series(series: nw.Series[Any], source: str) -> pl.Series:
    """Return one column as polars; from pandas without pyarrow, which need not be there."""
    import polars as pl

    if not series.implementation.is_pandas_like():
        return series.to_polars()
    values = series.to_numpy()
    if values.dtype.kind in "mM":  # or a time in nanoseconds would turn into an integer below
        values = values.astype(f"{values.dtype.kind}8[us]")
    if values.dtype.kind in "iufbmM":
        return pl.Series(np.ascontiguousarray(values))
    objects = values.astype(object)
    objects[series.is_null().to_numpy()] = None
    try:
        return pl.Series([_plain(value) for value in objects])
    except (TypeError, pl.exceptions.PolarsError) as error:
        kinds = sorted({type(value).__name__ for value in objects if value is not None})
        raise DataError(
            f"{source}: column {series.name!r} mixes values of the types {', '.join(kinds)}: cast it to one"
        ) from error


def _plain(value: Any) -> Any:
    """Return what a cell of pandas has for several values as a list, which polars knows."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, (set, frozenset)) else value


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
