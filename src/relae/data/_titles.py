"""Titles of items from wherever they are, aligned with the columns of a matrix."""

from __future__ import annotations

import warnings
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
        return _checked(titles_by_id(items, list(source), source.values()), items, list(source), "the mapping")
    table = open_table(source, "the table of titles")
    ids_column = item_column if item_column in table.columns else "item"
    rows = table.load({"item": ids_column, "title": "title"}, keywords=False)
    ids = as_ids(rows["item"], Column(table.source, ids_column), text=table.text)
    listed = ids.to_list()
    return _checked(titles_by_id(items, listed, rows["title"].to_list()), items, listed, table.source)


def _checked(titles: TitleArray, items: Ids, ids: list[Any], source: str) -> TitleArray:
    """Return titles whose ids are mostly those of items; an error if none is, a warning if few are."""
    known = len(set(items.positions(ids).tolist()) - {-1})
    if 2 * known >= min(len(ids), len(items)):
        return titles
    examples = (
        f"it has ids such as {ids[0]!r}, the interactions have ids such as {items.examples()}. "
        "Write them in the same way in both"
    )
    if known == 0:
        raise DataError(f"{source}: none of its {len(ids):,} titles is of one of the {len(items):,} items: {examples}")
    warnings.warn(
        f"{source}: its {len(ids):,} titles are of only {known:,} of the {len(items):,} items: {examples}",
        stacklevel=4,
    )
    return titles


def aligned_titles(titles: Iterable[Any], items: Ids) -> TitleArray:
    """Return titles that are already in the order of the items, after a check of their number."""
    listed = list(titles)
    if len(listed) != len(items):
        raise DataError(f"{len(listed):,} titles for {len(items):,} items: give one per item, None if it has none")
    if all(title is None or (type(title) is str and title) for title in listed):
        return np.fromiter(listed, dtype=object, count=len(listed))
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
