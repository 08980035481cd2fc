"""One column of a table of items as features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.data._assemble import positions_in
from relae.data._columns import Column, read_iso_times
from relae.linalg import Csr

if TYPE_CHECKING:
    import polars as pl

_SAME = "it has the same value everywhere"


@dataclass(frozen=True)
class ItemColumn:
    """The values of a column, the numbers of their rows, the column of the source, and the rules of the caller.

    `text` tells that strings may stand for anything, `category` that its type is that of categories, `complete` that
    every item has a row, `named` that the column was asked for by name.
    """

    values: pl.Series
    numbers: pl.Series
    origin: Column
    text: bool
    category: bool
    separator: str | None
    min_count: int
    complete: bool
    named: bool


@dataclass(frozen=True)
class Block:
    """The features of one column: a row per row of the table."""

    names: Sequence[str]
    matrix: Csr


def as_features_of(column: ItemColumn) -> Block | str:
    """Return the features of a column by its type, or in words why it has none."""
    import polars as pl

    values = _typed(column)
    kind = values.dtype
    if values.null_count() == len(values) or kind == pl.List(pl.Null):
        return "it has no values"
    if isinstance(kind, (pl.List, pl.Array)):
        if kind.inner.is_float() or (isinstance(kind, pl.Array) and kind.inner.is_numeric()):
            return _embedding(values, column)
        if kind.inner.is_integer() or kind.inner in (pl.String, pl.Categorical, pl.Enum, pl.Boolean):
            return _categories(values, column)
    if kind == pl.String:
        return _categories(values, column)
    if kind == pl.Boolean:
        return _flag(values, column)
    if kind.is_temporal():  # whatever the unit, it goes with the standard deviation
        return _standardized(values.to_physical().cast(pl.Float64), column)
    if kind.is_numeric():
        return _number(values, column)
    return f"its type is {kind}"


def _typed(column: ItemColumn) -> pl.Series:
    """Return the values with the type that they are meant to have."""
    import polars as pl

    values = column.values
    if column.separator is not None:
        if values.dtype not in (pl.String, pl.Categorical, pl.Enum):
            column.origin.fail(
                f"has the type {values.dtype}, which has no separator {column.separator!r}: leave it away"
            )
        return values.cast(pl.String).str.split(column.separator).list.eval(pl.element().str.strip_chars())
    if column.category and values.dtype.is_float():  # which is what pandas makes of integers with gaps
        integers = values.fill_nan(None).cast(pl.Int64, strict=False)
        values = integers if (integers == values.fill_nan(None)).all() else values.fill_nan(None)
    if column.category or values.dtype in (pl.Categorical, pl.Enum):
        return values.cast(pl.String)
    return _read(values) if column.text else values


def _read(strings: pl.Series) -> pl.Series:
    """Return strings of a text file as numbers, booleans or times, if all of them are."""
    import polars as pl

    stripped = strings.str.strip_chars()
    texts = stripped.set(stripped == "", None)
    numbers = texts.cast(pl.Float64, strict=False)
    is_code = texts.str.contains(r"^[+-]?0\d").any()
    if numbers.null_count() == texts.null_count() and not is_code:
        return numbers
    lowered = texts.str.to_lowercase()
    if lowered.drop_nulls().is_in(["true", "false"]).all():
        return lowered == "true"
    times = read_iso_times(texts)
    return times if times.null_count() == texts.null_count() else strings


def _categories(values: pl.Series, column: ItemColumn) -> Block | str:
    """Return a feature per value: 1/√c̄ for items that have it, where c̄ is the mean number of values of an item."""
    import polars as pl

    pairs = _pairs(values)
    often = pairs["value"].value_counts().filter(pl.col("count") >= column.min_count)["value"].sort()
    kept = pairs.filter(pl.col("value").is_in(often.implode()))
    items, items_before = kept["row"].n_unique(), pairs["row"].n_unique()
    if items_before == 0:
        return "it has no values"
    if items == 0:
        return f"it has no value that {column.min_count:,} items have"
    if len(often) == 1 and items == len(values) and column.complete:
        return _SAME
    if not column.named and 2 * items < items_before:
        return "most items have a value of their own"
    each = np.full(len(kept), np.sqrt(items / len(kept)))
    cells = (each, (kept["row"].to_numpy(), positions_in(often, kept["value"]).to_numpy()))
    matrix = sp.csr_array(sp.coo_array(cells, shape=(len(values), len(often))))
    return Block([f"{column.origin.name}={value}" for value in often], matrix)


def _pairs(values: pl.Series) -> pl.DataFrame:
    """Return the different pairs of a row and a value that it has."""
    import polars as pl

    pairs = pl.DataFrame({"row": np.arange(len(values)), "value": values})
    if values.dtype != pl.String:
        pairs = pairs.explode("value")
    return pairs.cast({"value": pl.String}).drop_nulls().filter(pl.col("value") != "").unique()


def _flag(values: pl.Series, column: ItemColumn) -> Block | str:
    flags = values.fill_null(False).to_numpy()
    same = not flags.any() or (flags.all() and column.complete)
    return _SAME if same else _single(flags.astype(np.float64), column)


def _number(values: pl.Series, column: ItemColumn) -> Block | str:
    import polars as pl

    floats = values.cast(pl.Float64).fill_nan(None)
    column.origin.refuse(
        floats.is_infinite().fill_null(False),
        floats,
        "a number must be finite; correct it or leave it empty",
        rows=column.numbers,
    )
    if floats.drop_nulls().is_in([0.0, 1.0]).all():
        return _flag(floats == 1.0, column)
    return _standardized(floats, column)


def _standardized(floats: pl.Series, column: ItemColumn) -> Block | str:
    """Return one feature, (value − mean) / standard deviation, 0 where the value is missing."""
    values = floats.drop_nulls().sort().to_numpy()  # sorted: the order of the rows must not change the last bit
    if len(values) == 0 or values[0] == values[-1]:
        return _SAME
    largest = np.abs(values).max()  # so that no square can overflow
    mean, deviation = (values / largest).mean(), (values / largest).std()
    scores = (floats.to_numpy() / largest - mean) / deviation  # NaN where there is no value
    return _single(np.where(np.isnan(scores), 0.0, scores), column)


def _embedding(values: pl.Series, column: ItemColumn) -> Block | str:
    """Return a feature per dimension, all divided by the root mean square of the norms."""
    import polars as pl

    lists = values.cast(pl.List(pl.Float64))
    lengths = lists.list.len()
    has_value = (lengths > 0).fill_null(False)
    if not has_value.any():
        return "it has no values"
    size = int(lengths.filter(has_value)[0])
    longer = has_value & (lengths != size)
    if longer.any():
        at = int(longer.to_numpy().argmax())
        column.origin.fail(
            f"has a list of {lengths[at]:,} numbers in row {column.numbers[at]:,} and one of {size:,} before: give all "
            "items as many"
        )
    broken = has_value & ~lists.list.eval(pl.element().is_finite().fill_null(False)).list.all()
    if broken.any():
        row = column.numbers[int(broken.to_numpy().argmax())]
        column.origin.fail(
            f"has a list in row {row:,} with a number that is missing or not finite: correct or empty it"
        )
    vectors = np.zeros((len(values), size))
    vectors[has_value.to_numpy()] = lists.filter(has_value).explode().to_numpy().reshape(-1, size)
    squares = np.sort(np.square(vectors).sum(axis=1))[-int(has_value.sum()) :]
    if squares[-1] == 0:
        return _SAME
    matrix = sp.csr_array(vectors / np.sqrt(squares.mean()))
    return Block([f"{column.origin.name}[{at}]" for at in range(size)], matrix)


def _single(values: NDArray[np.float64], column: ItemColumn) -> Block:
    return Block([column.origin.name], sp.csr_array(values[:, None]))
