"""Columns of a table as ids or numbers, or an error that names the row."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from relae.errors import DataError

if TYPE_CHECKING:
    import polars as pl


_MILLION = 1e6
_ISO_FORMS = ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f%z")


# What the integers of times mean: whole numbers as they were, numbers times a million, or microseconds since 1970.
Scale = Literal["whole", "fraction", "calendar"]


@dataclass(frozen=True)
class Times:
    """Times as integers, and what they mean."""

    values: NDArray[np.int64]
    scale: Scale


# How programs write that a value is missing, and what may have been meant by an id that is written like it.
_GAP_WORDS = (
    *("nan", "NaN", "NAN", "null", "Null", "NULL", "none", "None", "NONE", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaT"),
)


class GapWords:
    """Counts ids that are written like a missing value, such as "nan"; over all parts of a table."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, int]] = {}
        self._first: dict[str, str] = {}

    def count(self, ids: pl.Series, column: Column) -> None:
        """Count those of a column of ids."""
        import polars as pl

        if ids.dtype != pl.String:
            return
        is_gap = ids.is_in(_GAP_WORDS)
        if not is_gap.any():
            return
        self._first.setdefault(column.name, f"{column.source}, row {column.before + (is_gap.arg_max() or 0) + 1:,}")
        counts = self._counts.setdefault(column.name, {})
        for word, number in ids.filter(is_gap).value_counts(sort=True).iter_rows():
            counts[word] = counts.get(word, 0) + number

    def warn(self) -> None:
        """Say what was counted, in a line per column."""
        for name, counts in self._counts.items():
            words = ", ".join(f"{word!r} in {n:,} row{'' if n == 1 else 's'}" for word, n in counts.items())
            warnings.warn(
                f"{self._first[name]}: column {name!r} has {words}, which count as ids like any others: drop these "
                "rows if that means that the value is missing",
                stacklevel=5,
            )


@dataclass(frozen=True)
class Column:
    """The place of a column, for messages; `before` counts the rows of the table that went before these values."""

    source: str
    name: str
    before: int = 0

    def fail(self, problem: str) -> NoReturn:
        """Raise for the column as a whole."""
        raise DataError(f"{self.source}: column {self.name!r} {problem}")

    def refuse(self, bad: pl.Series, values: pl.Series, problem: str, *, rows: pl.Series | None = None) -> None:
        """Raise for the first row that is bad; `problem` says what it is and what to do."""
        if not bad.any():
            return
        first = bad.arg_max() or 0
        row = self.before + first + 1 if rows is None else rows[first]
        count = int(bad.sum())
        others = f" (and {count - 1:,} more)" if count > 1 else ""
        self.fail(f"has {_shown(values[first])} in row {row:,}{others}: {problem}")


def as_ids(values: pl.Series, column: Column, *, text: bool) -> pl.Series:
    """Return a column as Int64 or String ids, missing ones as null.

    Parameters
    ----------
    values
        A column of any type.
    column
        Its place.
    text
        The table is a text file, whose types are a guess: strings become integers if every one of them is
        written the way an integer is, so that no leading zero is lost.
    """
    import polars as pl

    kind = values.dtype
    if kind.is_integer():
        return _as_integers(values)
    if kind.is_float() or kind.is_decimal():
        return _from_numbers(values, column)
    if kind == pl.Binary:
        return _from_bytes(values, column)
    if kind == pl.Object:
        return _from_objects(values, column)
    if kind == pl.Null:
        return values.cast(pl.Int64)
    if kind not in (pl.String, pl.Categorical, pl.Enum):
        column.fail(f"has the type {kind}, which cannot be an id: cast it to integers or strings")
    strings = values.cast(pl.String)
    strings = strings.set(strings == "", None)
    return _canonical_integers(strings) if text else strings


def as_numbers(values: pl.Series, column: Column, rows: pl.Series) -> pl.Series:
    """Return a column as Float64 without gaps; `rows` are the row numbers to name in an error."""
    import polars as pl

    kind = values.dtype
    if not (kind.is_numeric() or kind in (pl.String, pl.Boolean, pl.Null)):
        column.fail(f"has the type {kind}, which is not a number: cast it or choose another column")
    numbers = values.cast(pl.Float64, strict=False)
    if kind == pl.String:
        numbers = values.str.strip_chars().cast(pl.Float64, strict=False)
    unread = numbers.is_null() & values.is_not_null()
    column.refuse(unread, values, "that is not a number; correct or drop the row", rows=rows)
    column.refuse(numbers.is_null(), values, "drop the row or fill it", rows=rows)
    column.refuse(numbers.is_nan(), numbers, "drop the row or fill it", rows=rows)
    return numbers


def as_times(values: pl.Series, column: Column, rows: pl.Series) -> Times:
    """Return a column of times without gaps; `rows` are the row numbers to name in an error.

    Whole numbers stay what they are. If one of them has a fraction, all are multiplied by a million, which
    makes microseconds of seconds and keeps the order. Dates and times, also as ISO text, become microseconds
    since 1970 UTC; without a zone they count as UTC.
    """
    import polars as pl

    kind = values.dtype
    column.refuse(values.is_null(), values, "drop the row, fill it, or leave timestamp away", rows=rows)
    if kind in (pl.String, pl.Categorical, pl.Enum):
        return _times_from_text(values.cast(pl.String), column, rows)
    if kind == pl.Date or isinstance(kind, pl.Datetime):
        return _microseconds(values)
    if not (kind.is_numeric() or kind == pl.Null):
        column.fail(f"has the type {kind}, which is not a time: give numbers, dates or ISO text")
    return _times_from_numbers(values, column, rows)


def _times_from_numbers(values: pl.Series, column: Column, rows: pl.Series) -> Times:
    import polars as pl

    whole = True
    if values.dtype.is_integer():
        integers = values.cast(pl.Int64, strict=False)
    else:
        floats = values.cast(pl.Float64)
        column.refuse(floats.is_nan(), floats, "drop the row, fill it, or leave timestamp away", rows=rows)
        whole = bool((floats.floor() == floats).all())
        integers = (floats if whole else (floats * _MILLION).round()).cast(pl.Int64, strict=False)
    column.refuse(integers.is_null(), values, "a time must fit into 64 bits; correct the row", rows=rows)
    return Times(integers.to_numpy(), "whole" if whole else "fraction")


def whole_as_fractions(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return whole times as they would have been if one among them had a fraction."""
    return np.rint(times.astype(np.float64) * _MILLION).astype(np.int64)


def _times_from_text(texts: pl.Series, column: Column, rows: pl.Series) -> Times:
    import polars as pl

    texts = texts.str.strip_chars()
    column.refuse(texts == "", texts, "drop the row, fill it, or leave timestamp away", rows=rows)
    for number in (pl.Int64, pl.Float64):
        numbers = texts.cast(number, strict=False)
        if numbers.null_count() == 0:
            return _times_from_numbers(numbers, column, rows)
    iso_times = read_iso_times(texts)
    problem = "that is neither a number nor a time such as 2020-01-31 or 2020-01-31T12:00:00Z; correct or drop the row"
    # If most are numbers, the odd one out is what is not a number.
    unread = numbers.is_null() if iso_times.null_count() > numbers.null_count() else iso_times.is_null()
    column.refuse(unread, texts, problem, rows=rows)
    return _microseconds(iso_times)


def read_iso_times(texts: pl.Series) -> pl.Series:
    """Return dates and times in UTC, null where a text is neither."""
    import polars as pl

    iso = texts.str.replace(" ", "T", literal=True).str.replace(r"[zZ]$", "+00:00")
    times = pl.Series(values=[None], dtype=pl.Datetime("us")).new_from_index(0, len(iso))
    for form in _ISO_FORMS:
        parsed = iso.str.strptime(pl.Datetime("us"), form, strict=False)
        times = times.zip_with(times.is_not_null(), parsed.dt.replace_time_zone(None))
    return times


def _microseconds(values: pl.Series) -> Times:
    import polars as pl

    return Times(values.cast(pl.Datetime("us")).to_physical().to_numpy(), "calendar")


def _as_integers(values: pl.Series) -> pl.Series:
    """Return integers as Int64, or as strings if one is too large (a 64-bit hash without sign)."""
    import polars as pl

    integers = values.cast(pl.Int64, strict=False)
    return integers if integers.null_count() == values.null_count() else values.cast(pl.String)


def _canonical_integers(strings: pl.Series) -> pl.Series:
    integers, canonical = read_integers(strings)
    return integers if canonical.all() else strings


def read_integers(strings: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return strings as Int64, and which of them are written the way an integer is."""
    import polars as pl

    integers = strings.cast(pl.Int64, strict=False)
    # eq_missing, because == has no answer for what could not be cast.
    return integers, integers.cast(pl.String).eq_missing(strings)


def _from_numbers(values: pl.Series, column: Column) -> pl.Series:
    """Return whole numbers as Int64: what pandas makes of integers that once had gaps."""
    import polars as pl

    if values.dtype.is_float():
        values = values.fill_nan(None)
    integers = values.cast(pl.Int64, strict=False)
    broken = (integers.is_null() | (integers.cast(values.dtype) != values)) & values.is_not_null()
    column.refuse(broken.fill_null(True), values, "ids are whole numbers or strings; cast the column to strings")
    return integers


def _from_bytes(values: pl.Series, column: Column) -> pl.Series:
    import polars as pl

    try:
        strings = values.cast(pl.String)
    except pl.exceptions.PolarsError:
        unread = pl.Series([value is not None and not _is_text(value) for value in values])
        column.refuse(unread, values, "these bytes are not UTF-8 text; cast the column to strings")
        raise
    return strings.set(strings == "", None)


def _from_objects(values: pl.Series, column: Column) -> pl.Series:
    import polars as pl

    listed = values.to_list()
    strange = [value is not None and not isinstance(value, UUID) for value in listed]
    if any(strange):
        position = strange.index(True)
        column.fail(
            f"has an object of the type {type(listed[position]).__name__} in row {column.before + position + 1:,}: "
            "cast it to integers or strings"
        )
    return pl.Series(values.name, [None if value is None else str(value) for value in listed], dtype=pl.String)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _shown(value: Any) -> str:
    return "no value" if value is None else f"the value {value!r}"
