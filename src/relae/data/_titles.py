"""Titles of items from wherever they are, aligned with the columns of a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae.data._columns import Column, as_ids
from relae.data._tables import open_table
from relae.data.ids import Ids
from relae.errors import DataError

TitleArray = NDArray[np.object_]


def find_titles(source: Any, items: Ids, item_column: str = "item") -> TitleArray:
    """Return the title of each item, None where there is none.

    Parameters
    ----------
    source
        A mapping from item ids to titles; or a table, or the path of one, with a column of ids (named like
        that of the interactions, or `item`) and a column `title`. The first title of an item counts.
    items
        The items of the matrix. Titles of other items are ignored.
    item_column
        The column of the interactions that holds the items.
    """
    if isinstance(source, Mapping):
        return titles_by_id(items, list(source), source.values())
    table = open_table(source, "the table of titles")
    ids_column = item_column if item_column in table.columns else "item"
    rows = table.load({"item": ids_column, "title": "title"}, keywords=False)
    ids = as_ids(rows["item"], Column(table.source, ids_column), text=table.text)
    return titles_by_id(items, ids.to_list(), rows["title"].to_list())


def aligned_titles(titles: Iterable[Any], items: Ids) -> TitleArray:
    """Return titles that are already in the order of the items, after a check of their number."""
    listed = list(titles)
    if len(listed) != len(items):
        raise DataError(f"{len(listed):,} titles for {len(items):,} items: give one per item, None if it has none")
    return titles_by_id(items, items.values, listed)


def titles_by_id(items: Ids, ids: Iterable[Any], titles: Iterable[Any]) -> TitleArray:
    """Return the first title of each item, None where there is none; ids of other items are ignored."""
    aligned = np.full(len(items), None, dtype=object)
    for position, title in zip(items.positions(ids).tolist(), titles, strict=True):
        if position >= 0 and aligned[position] is None and not _is_missing(title):
            aligned[position] = str(title)
    return aligned


def _is_missing(title: Any) -> bool:
    # NaN is what pandas has for a missing string.
    return title is None or title == "" or title != title
