"""From a table with a row per item to features on the columns of a matrix."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.data._columns import Column, as_ids, read_integers
from relae.data._feature_columns import Block, ItemColumn, as_features_of
from relae.data._tables import Table
from relae.data._titles import TitleArray, titles_by_id
from relae.data.features import Features
from relae.data.ids import Ids
from relae.errors import DataError, DataWarning, Option

if TYPE_CHECKING:
    import polars as pl

_WORDS = {"int": "integers", "str": "strings"}


@dataclass(frozen=True)
class FeatureRules:
    """Rules for turning a table into features: the keywords of `Interactions.with_features`."""

    item: str
    columns: Sequence[str] | None
    separators: Mapping[str, str]
    min_count: int
    add_items: bool

    def __post_init__(self) -> None:
        for name, separator in self.separators.items():
            if not separator:
                raise DataError(f"the separator of the column {name!r} is empty: give what stands between its values")
            if self.columns is not None and name not in self.columns:
                raise DataError(
                    Option("separator", python="separators"),
                    f" has the column {name!r}, which is not in ",
                    Option("feature_columns", ",".join(self.columns), python=f"columns={self.columns!r}"),
                )
        if self.item in (self.columns or ()):
            raise DataError(
                f"the column {self.item!r} has the ids of the items: leave it out of ",
                Option("feature_columns", python="columns"),
            )

    def chosen(self, table: Table) -> list[str]:
        """Return the columns to look at, after a check that they are there."""
        named = {"item": [self.item], "columns": self.columns or [], "separators": self.separators}
        for role, names in named.items():
            for name in names:
                table.check({role: name})
        if self.columns is not None:
            return list(dict.fromkeys(self.columns))
        others = {self.item} | ({"title"} - self.separators.keys())
        return [name for name in table.columns if name not in others]


@dataclass(frozen=True)
class ItemTable:
    """The items of a matrix, then those that only the table has; titles and features of all of them."""

    items: Ids
    titles: TitleArray
    features: Features


def read_features(table: Table, items: Ids, rules: FeatureRules, dropped: Ids) -> ItemTable:
    """Return the features in a table, on the columns of `items` and of those that it adds; `dropped` ones are not."""
    import polars as pl

    names = rules.chosen(table)
    titles = ["title"] if "title" in table.columns else []
    rows = table.fetch(list(dict.fromkeys([rules.item, *names, *titles])))
    if rows.height == 0:
        raise DataError(f"{table.source} has no rows")
    numbers = pl.Series(np.arange(1, rows.height + 1))
    ids = _ids(rows[rules.item], Column(table.source, rules.item), items, text=table.text)
    known = pl.Series(items.positions(ids.to_numpy()) >= 0)
    if not known.any():
        raise DataError(
            f"{table.source}: none of its {rows.height:,} items is among the {len(items):,} of the interactions: its "
            f"column {rules.item!r} has ids such as {ids[0]!r}, the interactions have ids such as {items.examples()}"
        )
    used = known | pl.Series(dropped.positions(ids.to_numpy()) < 0) if rules.add_items else known
    items = _extended(items, ids.filter(used & ~known).sort())
    rows, numbers, ids = rows.filter(used), numbers.filter(used), ids.filter(used)
    complete = len(ids) == len(items)
    columns = [_item_column(rows[name], numbers, table, rules, complete) for name in names]
    features = _placed(_useful(columns, table), items.positions(ids.to_numpy()), len(items))
    texts = rows["title"].to_list() if titles else [None] * len(ids)
    return ItemTable(items, titles_by_id(items, ids.to_list(), texts), features)


def _ids(values: pl.Series, column: Column, items: Ids, *, text: bool) -> pl.Series:
    """Return the ids of the table, which are of the kind of `items` and differ."""
    ids = as_ids(values, column, text=text and items.kind == "int")
    column.refuse(ids.is_null(), values, "drop the row or fill it")
    kind = "int" if ids.dtype.is_integer() else "str"
    if kind != items.kind:
        expected = f"the items of the interactions are {_WORDS[items.kind]}"
        if text:  # which are integers if all of them are
            column.refuse(~read_integers(ids)[1], ids, f"{expected}; correct or drop the row")
        column.fail(f"has {_WORDS[kind]} such as {ids[0]!r}, and {expected}: cast one of the two")
    column.refuse(~ids.is_first_distinct(), ids, "that item is in the table already; give it one row")
    return ids


def _extended(items: Ids, new: pl.Series) -> Ids:
    return Ids(np.concatenate([items.values, new.to_numpy()])) if len(new) else items


def _item_column(
    values: pl.Series, numbers: pl.Series, table: Table, rules: FeatureRules, complete: bool
) -> ItemColumn:
    column = Column(table.source, values.name)
    separator = rules.separators.get(values.name)
    return ItemColumn(
        values,
        numbers,
        column,
        text=table.text,
        category=values.name in table.categories,
        separator=separator,
        min_count=rules.min_count,
        complete=complete,
        named=rules.columns is not None or separator is not None,
    )


def _useful(columns: Sequence[ItemColumn], table: Table) -> list[Block]:
    """Return the features of the columns that have any; a column that was named must have them."""
    blocks, without = [], []
    for column in columns:
        features = as_features_of(column)
        if not isinstance(features, str):
            blocks.append(features)
        elif column.named:
            column.origin.fail(f"cannot be a feature: {features}")
        else:
            without.append(f"{column.origin.name!r} ({features})")
    if not blocks:
        reasons = ", ".join(without) or f"it has only {', '.join(map(repr, table.columns))}"
        raise DataError(f"{table.source} has no column that can be a feature: {reasons}")
    if without:
        warnings.warn(
            DataWarning(
                f"{table.source}: no features are made of the columns {', '.join(without)}. Name those that you want "
                "in ",
                Option("feature_columns", python="columns=[…]"),
            ),
            stacklevel=4,
        )
    return blocks


def _placed(blocks: Sequence[Block], rows: NDArray[np.int64], n_items: int) -> Features:
    """Return the blocks side by side, each row of the table in the row of its item."""
    side_by_side = sp.hstack([block.matrix for block in blocks], format="coo")
    matrix = sp.coo_array(
        (side_by_side.data, (rows[side_by_side.row], side_by_side.col)), shape=(n_items, side_by_side.shape[1])
    )
    return Features(matrix, [name for block in blocks for name in block.names])
