"""Open tables in files and data frames, and load only the columns that are needed."""

from __future__ import annotations

import csv
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relae._common.limits import LIBRARY_BYTES, free_address_space
from relae.data.ids import is_unicode
from relae.errors import DataError, Option, Text

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl

FilePath = str | os.PathLike[str]
# From the role of a column ("user", "rating") to its name in the table. The option that sets the name is called
# like the role.
Roles = Mapping[str, str]
# Polars reads a path, or the bytes of a file that it cannot open by name or that can be read only once (a pipe).
Content = Path | bytes

_TEXT = {".csv": None, ".tsv": "\t", ".tab": "\t"}  # extension: separator; None means that the header shows it
_PARQUET = {".parquet", ".pq"}
# From a keyword of `with_features` to the option of the commands, where their names differ.
_OPTIONS_OF_FEATURES = {"columns": "feature_columns", "separators": "separator"}
_COMPRESSED = {".gz", ".zst"}
_PARQUET_MAGIC = b"PAR1"
_TEXT_PER_COMPRESSED = 4  # bytes of text per byte of a compressed file, roughly
_SPACE_PER_TEXT = 6  # bytes of address space to read one byte of text, roughly
# Rows per batch: some tens of megabytes, and so many that the fixed cost of a batch does not matter.
BATCH_ROWS = 2_000_000


@dataclass(frozen=True)
class Table:
    """A table whose column names are known and whose values are loaded later.

    Attributes
    ----------
    source : str
        The name of the table in messages.
    columns : list of str
    text : bool
        True if every column is read as strings, numbers as well.
    fetch
        Loads some columns at once.
    stream
        Loads some columns in batches, in the order of the rows; None for a data frame.
    estimate
        Returns about how many rows there are; None if that is unknown without reading them.
    categories
        The columns of a categorical type, also if the categories are numbers.
    """

    source: str
    columns: list[str]
    text: bool
    fetch: Callable[[list[str]], pl.DataFrame]
    stream: Callable[[list[str]], Iterator[pl.DataFrame]] | None = None
    estimate: Callable[[], int] | None = None
    categories: frozenset[str] = frozenset()

    def load(self, roles: Roles, *, keywords: bool = True) -> pl.DataFrame:
        """Return some columns, renamed to their roles; with `keywords`, an error advises the option to set."""
        self.check(roles, keywords=keywords)
        return _rename_to_roles(self.fetch(_column_names(roles)), roles)

    def batches(self, roles: Roles) -> Iterator[pl.DataFrame]:
        """Yield the columns like `load`, in batches of rows; a file of any size needs the same memory."""
        self.check(roles)
        stream = self.stream or (lambda columns: iter([self.fetch(columns)]))
        return (_rename_to_roles(rows, roles) for rows in stream(_column_names(roles)))

    def estimate_rows(self) -> int:
        """Return about how many rows there are; 0 if that is unknown without reading them."""
        return 0 if self.estimate is None else self.estimate()

    def check(self, roles: Roles, *, keywords: bool = True) -> None:
        """Raise a DataError if a column is missing."""
        for role, column in roles.items():
            if column not in self.columns:
                raise DataError(self._describe_missing(role, column, keywords))

    def _describe_missing(self, role: str, column: str, keywords: bool) -> Text:
        """Return the message for a missing column, with the most similar name as advice."""
        names = ", ".join(map(repr, self.columns)) or "none"
        padded = next((name for name in self.columns if name.strip() == column and name != column), None)
        if padded is not None:
            return Text(
                f"{self.source} has no column {column!r} but {padded!r}, with blanks in its header: remove them there, "
                "or ",
                Text("set ", _role_option(role, padded)) if keywords else "rename it",
                f"; its columns are {names}",
            )
        lowered = {name.lower(): name for name in self.columns}
        near = get_close_matches(column.lower(), lowered, n=1, cutoff=0.5)
        meant = lowered[near[0]] if near else ...  # `...` is shown as …
        rename = Text(f"rename {'…' if meant is ... else repr(meant)} to {column!r}")
        way_out = Text("set ", _role_option(role, meant)) if keywords else rename
        return Text(f"{self.source} has no column {column!r}, its columns are {names}: ", way_out)


def _role_option(role: str, column: Any) -> Option:
    """Return the option that names the column of a role; the column `...` is shown as …"""
    name = _OPTIONS_OF_FEATURES.get(role, role)
    return Option(name, column, python=None if name == role else f"{role}={'…' if column is ... else repr(column)}")


def _column_names(roles: Roles) -> list[str]:
    return list(dict.fromkeys(roles.values()))


def _rename_to_roles(rows: pl.DataFrame, roles: Roles) -> pl.DataFrame:
    return rows.select(rows[column].alias(role) for role, column in roles.items())


def is_table(path: FilePath) -> bool:
    """Return whether a file has the extension of a table."""
    return _extension(Path(path)) in _PARQUET | _TEXT.keys()


def open_table(table: Any, source: str) -> Table:
    """Open a table from the path of a file or from a data frame; `source` names the frame in messages."""
    return open_file(table) if isinstance(table, (str, os.PathLike)) else open_frame(table, source)


def open_file(path: FilePath, separator: str | None = None) -> Table:
    """Open a CSV, TSV (plain, .gz, .zst) or Parquet file, or a pipe with such content."""
    file = existing_file(path)
    extension = _extension(file)
    _check_address_space(file)
    content = _readable(file)
    # A pipe has no extension: its first bytes show whether it is Parquet.
    is_pipe = not file.is_file() and extension not in _PARQUET | _TEXT.keys()
    if extension in _PARQUET or (is_pipe and isinstance(content, bytes) and content.startswith(_PARQUET_MAGIC)):
        return _open_parquet(str(file), content)
    if extension in _TEXT or separator is not None or is_pipe:
        return _open_text(str(file), content, separator or _TEXT.get(extension))
    raise DataError(
        f"{file}: the extension {extension!r} is unknown. Known are .csv, .tsv (also .gz, .zst), .parquet; "
        "convert it to one of these, or in Python give separator= for a text table with a header, and use "
        "Interactions.read_lists for lines of `user item item …`"
    )


def open_frame(frame: Any, source: str) -> Table:
    """Open a pandas, polars (also lazy) or pyarrow table."""
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


def existing_file(path: FilePath) -> Path:
    """Return the path of a file; raise a DataError if it is a folder or does not exist."""
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
    """Return the last extension in lower case, without .gz and .zst: ".csv" for `log.CSV.gz`."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def reading_memory(file: Path) -> int:
    """Return about how many bytes of address space it takes to read a whole file."""
    is_compressed = _extension(file) in _PARQUET or file.suffix.lower() in _COMPRESSED
    text_bytes = file.stat().st_size * (_TEXT_PER_COMPRESSED if is_compressed else 1)
    return text_bytes * _SPACE_PER_TEXT


def _check_address_space(file: Path) -> None:
    """Raise a DataError if the limit of address space is too small for a file: polars would end the process."""
    free = free_address_space()
    if free is None or not file.is_file():
        return
    needed = reading_memory(file) + (0 if "polars" in sys.modules else LIBRARY_BYTES)
    if needed > free:
        raise DataError(
            f"reading {file} takes about {needed / 1e9:.1f} GB of address space, and the limit of this process "
            f"(ulimit -v) leaves {free / 1e9:.1f} GB: raise the limit"
        )


def _readable(file: Path) -> Content:
    """Return a path that polars can read, or the bytes of a file that it cannot open by name or read twice."""
    try:
        if file.is_file() and is_unicode(str(file)):
            return file
        return file.read_bytes()
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from error


def _open_parquet(source: str, content: Content) -> Table:
    import polars as pl

    with _parquet_errors(source):
        columns = pl.scan_parquet(content, glob=False).collect_schema().names()
    file = source, content
    fetch, stream = partial(_fetch_parquet, *file), partial(_stream_parquet, *file)
    return Table(source, columns, False, fetch, stream, partial(_count_parquet, *file))


def _fetch_parquet(source: str, content: Content, columns: list[str]) -> pl.DataFrame:
    import polars as pl

    with _parquet_errors(source):
        return pl.scan_parquet(content, glob=False).select(columns).collect()


def _stream_parquet(source: str, content: Content, columns: list[str]) -> Iterator[pl.DataFrame]:
    import polars as pl

    with _parquet_errors(source):
        yield from pl.scan_parquet(content, glob=False).select(columns).collect_batches(chunk_size=BATCH_ROWS)


def _count_parquet(source: str, content: Content) -> int:
    import polars as pl

    with _parquet_errors(source):
        return int(pl.scan_parquet(content, glob=False).select(pl.len()).collect().item())


@contextmanager
def _parquet_errors(source: str) -> Iterator[None]:
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{source} cannot be read as Parquet: {_first_line(error)}") from error


@dataclass(frozen=True)
class _Text:
    """A text table: its name in messages, its content, the separator, and the number of fields in the header."""

    source: str
    content: Content
    separator: str
    width: int


def _open_text(source: str, content: Content, separator: str | None) -> Table:
    import polars as pl

    if separator is not None and len(separator.encode()) != 1:
        raise DataError(f"separator must be one ASCII character, got {separator!r}")
    try:
        first = next(_lines(content, n_rows=1), None)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{source} cannot be read as a text table: {_first_line(error)}") from error
    if first is None:
        raise DataError(f"{source} is empty: it needs a header line and rows")
    _check_encoding(source, first)
    # By default, the usual separator that occurs most often in the header.
    separator = separator or max(",\t;|", key=first.count)
    header = next(csv.reader([first], delimiter=separator))
    _check_header(source, header)
    text = _Text(source, content, separator, len(header))
    fetch, stream = partial(_fetch_text, text), partial(_stream_text, text)
    return Table(source, header, True, fetch, stream, partial(_estimate_text, text))


def _check_encoding(source: str, first: str) -> None:
    """Raise a DataError if the first line looks like UTF-16, or if lines end with CR alone."""
    if "\0" in first:
        raise DataError(
            f"{source} is no UTF-8 text, its first line has NUL characters: if it is UTF-16, convert it, as by "
            f"`iconv -f UTF-16 -t UTF-8 {shlex.quote(source)}`"
        )
    if "\r" in first.rstrip("\r"):
        raise DataError(
            f"{source} ends its lines with CR alone: convert it, as by `tr '\\r' '\\n' < {shlex.quote(source)}`"
        )


def _check_header(source: str, header: list[str]) -> None:
    """Raise a DataError if columns have the same name; blank names, from commas at the end of a line, are allowed."""
    repeated = next((name for name in header if name.strip() and header.count(name) > 1), None)
    if repeated is not None:
        numbers = [str(number) for number, name in enumerate(header, 1) if name == repeated]
        raise DataError(
            f"{source} has several columns named {repeated!r}, in the places {', '.join(numbers)}: rename all but one"
        )


def _fetch_text(text: _Text, columns: list[str]) -> pl.DataFrame:
    import polars as pl

    with _text_errors(text):
        # Read all as text: an ISBN keeps its leading zero, and an error can name the row of a bad number.
        table = pl.read_csv(text.content, columns=columns, separator=text.separator, infer_schema=False, glob=False)
    return _drop_blank_end(table, text)


def _stream_text(text: _Text, columns: list[str]) -> Iterator[pl.DataFrame]:
    import polars as pl

    # Blank rows are dropped at the end of the file only. So a batch is held until the next one is there, and a batch
    # that ends with a blank row is joined to the next one.
    held: pl.DataFrame | None = None
    with _text_errors(text):
        table = pl.scan_csv(text.content, separator=text.separator, infer_schema=False, glob=False).select(columns)
        for rows in table.collect_batches(chunk_size=BATCH_ROWS):
            if held is not None and not _ends_blank(held):
                yield held
                held = None
            held = rows if held is None else held.vstack(rows)
    if held is not None:
        yield _drop_blank_end(held, text)


def _estimate_text(text: _Text) -> int:
    """Return about how many rows there are, from the mean length of the first 1,000."""
    lengths = [len(line.encode()) + 1 for line in _lines(text.content, n_rows=1_001)]
    size = len(text.content) if isinstance(text.content, bytes) else text.content.stat().st_size
    is_compressed = Path(text.source).suffix.lower() in _COMPRESSED
    return size * (_TEXT_PER_COMPRESSED if is_compressed else 1) * len(lengths) // sum(lengths)


@contextmanager
def _text_errors(text: _Text) -> Iterator[None]:
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = _describe_broken_row(text) or _first_line(error)
        raise DataError(f"{text.source} cannot be read as a text table: {reason}") from error


def _drop_blank_end(table: pl.DataFrame, text: _Text) -> pl.DataFrame:
    """Drop the empty rows that polars returns for blank lines at the end of a file."""
    if not _ends_blank(table):
        return table
    blank = 0
    for line in _lines(text.content):
        blank = 0 if line.strip() else blank + 1
    return table.head(max(table.height - blank, 0))


def _ends_blank(table: pl.DataFrame) -> bool:
    return all(value is None for row in table.tail(1).rows() for value in row)


def _lines(content: Content, n_rows: int | None = None) -> Iterator[str]:
    """Yield the lines of a text file; polars reads them, because it can decompress."""
    import polars as pl

    try:
        table = pl.scan_csv(
            content,
            has_header=False,
            n_rows=n_rows,
            separator="\x1f",  # occurs in no table, so each line is one field
            quote_char=None,
            infer_schema=False,
            encoding="utf8-lossy",
            glob=False,
        )
        for rows in table.collect_batches(chunk_size=BATCH_ROWS):
            yield from (line or "" for line in rows.to_series())
    except pl.exceptions.NoDataError:
        return


def _describe_broken_row(text: _Text) -> str | None:
    """Return a message that names the row which polars could not read; None if that row is not found."""
    import polars as pl

    row = -1
    try:
        for number, line in enumerate(_lines(text.content)):
            if "\ufffd" in line:
                return f"row {number:,} is not UTF-8: {line[:80]!r}. Convert the file"
        for fields in csv.reader(_lines(text.content), delimiter=text.separator, strict=True):
            row += 1
            if len(fields) > text.width:
                shown = text.separator.join(fields)[:80]
                return f"row {row:,} has {len(fields)} fields and the header {text.width}: {shown!r}"
    except csv.Error:
        return f"a quote that opens in row {row + 1:,} is never closed, or closes in the middle of a field"
    except (pl.exceptions.PolarsError, OSError):
        pass
    return None


def _fetch_frame(table: nw.DataFrame[Any] | nw.LazyFrame[Any], source: str, columns: list[str]) -> pl.DataFrame:
    import narwhals as nw
    import polars as pl

    selected = table.select(columns)
    eager = selected.collect() if isinstance(selected, nw.LazyFrame) else selected
    return pl.DataFrame([_polars_series(eager[column], source).alias(column) for column in columns])


def _polars_series(series: nw.Series[Any], source: str) -> pl.Series:
    """Convert one column to polars; a pandas column without pyarrow, which may not be installed."""
    import polars as pl

    if not series.implementation.is_pandas_like():
        return series.to_polars()
    values = series.to_numpy()
    if values.dtype.kind in "mM":  # times to microseconds: nanoseconds would become integers below
        values = values.astype(f"{values.dtype.kind}8[us]")
    if values.dtype.kind in "iufbmM":
        return pl.Series(np.ascontiguousarray(values))
    objects = values.astype(object)
    objects[series.is_null().to_numpy()] = None
    try:
        return pl.Series([_as_list(value) for value in objects])
    except (TypeError, pl.exceptions.PolarsError) as error:
        kinds = sorted({type(value).__name__ for value in objects if value is not None})
        raise DataError(
            f"{source}: column {series.name!r} mixes values of the types {', '.join(kinds)}: cast it to one"
        ) from error


def _as_list(value: Any) -> Any:
    """Convert an array or a set in a pandas cell to a list, which polars can read; return other values as they are."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, (set, frozenset)) else value


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
