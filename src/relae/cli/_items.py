"""Items on the terminal: look-ups that say which items are unknown, and which may be meant."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae.catalog import Catalog
from relae.cli._console import errors
from relae.data import Ids
from relae.errors import DataError
from relae.ranking import check_k

_EXAMPLES = 3  # ids that are shown where one is unknown
_NAMED = 5  # unknown items that are named
_USUAL_K = 10  # the default, which is cut without a word


def find_column(catalog: Catalog, item: str) -> int:
    """Return the column of an item; an error says which one may be meant."""
    [column] = catalog.items.positions([item])
    if column < 0:
        hint = suggest(catalog, item) or show_examples(catalog, item)
        raise DataError(f"item {item!r} is unknown to the model{hint}")
    return int(column)


def find_columns(catalog: Catalog, items: Sequence[str] | None, option: str) -> NDArray[np.int64] | None:
    """Return the columns of those items of an option that are known; a line on stderr names the others."""
    if items is None:
        return None
    columns = catalog.items.positions(items)
    unknown = [item for item, column in zip(items, columns.tolist(), strict=True) if column < 0]
    if option == "--allow" and len(unknown) == len(items):
        raise DataError(
            "--allow names no item that the model knows, so that there is nothing to recommend"
            f"{': ' if unknown else ''}{name_unknown(catalog, unknown)}"
        )
    if unknown:
        errors().print(
            f"{len(unknown):,} of {len(items):,} items of {option} are unknown to the model, and ignored: "
            f"{name_unknown(catalog, unknown)}",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )
    return columns[columns >= 0]


def limit_k(catalog: Catalog, k: int, option: str) -> int:
    """Return k, or the number of items if there are fewer, which a line on stderr says."""
    count = len(catalog.items)
    if check_k(k) > max(count, _USUAL_K):
        errors().print(f"{option} {k:,} is cut to the {count:,} items that there are", style="yellow")
    return min(k, count)


def name_unknown(catalog: Catalog, unknown: Sequence[Any]) -> str:
    """Return some unknown items, each with what may be meant by it."""
    others = ", …" if len(unknown) > _NAMED else ""
    return ", ".join(f"{readable(item)}{suggest(catalog, item)}" for item in unknown[:_NAMED]) + others


def suggest(catalog: Catalog, unknown: Any) -> str:
    """Return the items that may be meant by an unknown id as a hint, or nothing."""
    names = (f"{catalog.ids[at]} {readable(catalog.titles[at])}".rstrip() for at in catalog.suggest(unknown))
    listed = ", ".join(names)
    return f" (did you mean {listed}?)" if listed else ""


def show_examples(catalog: Catalog, text: str) -> str:
    """Return how many items there are, and some ids that look like `text`."""
    return f": it has {len(catalog.items):,} items{show_similar_ids(text, catalog.items)}"


def show_similar_ids(text: str, ids: Ids) -> str:
    """Return the ids that look like `text`, or a few of all, as a hint."""
    if alike := ids.alike(text):
        return f"; did you mean {', '.join(map(str, alike))}?"
    if ids.kind == "int" or len(ids) > 200_000:  # a number is like any other number
        return f", such as {', '.join(map(str, ids.values[:_EXAMPLES]))}"
    close = get_close_matches(text, ids.values.tolist(), n=_EXAMPLES) or ids.values[:_EXAMPLES].tolist()
    return f", such as {', '.join(close)}"


def readable(text: Any) -> str:
    """Return a title or an id on one line, without control characters; nothing if there is none."""
    if text is None:
        return ""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in str(text)).split())
