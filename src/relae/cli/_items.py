"""Look up items by id; suggest similar ids for those that are unknown."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae.catalog import Catalog
from relae.cli._console import error_console
from relae.data import Ids
from relae.errors import DataError
from relae.ranking import check_k

_EXAMPLES = 3  # similar ids shown for an unknown one
_NAMED = 5  # unknown items shown by id
_USUAL_K = 10  # the default of --k, which is reduced without a note


def find_column(catalog: Catalog, item: str) -> int:
    """Return the column of an item; raise with similar ids if it is unknown."""
    [column] = catalog.items.positions([item])
    if column < 0:
        hint = suggest(catalog, item) or suggest_examples(catalog, item)
        raise DataError(f"item {item!r} is unknown to the model{hint}")
    return int(column)


def find_columns(catalog: Catalog, items: Sequence[str] | None, option: str) -> NDArray[np.int64] | None:
    """Return the columns of the known items of an option; list the unknown ones on stderr."""
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
        error_console().print(
            f"{len(unknown):,} of {len(items):,} items of {option} are unknown to the model, and ignored: "
            f"{name_unknown(catalog, unknown)}",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )
    return columns[columns >= 0]


def limit_k(catalog: Catalog, k: int, option: str) -> int:
    """Return k, reduced to the number of items if there are fewer; print a note on stderr then."""
    count = len(catalog.items)
    if check_k(k) > max(count, _USUAL_K):
        error_console().print(f"{option} {k:,} is cut to the {count:,} items that there are", style="yellow")
    return min(k, count)


def name_unknown(catalog: Catalog, unknown: Sequence[Any]) -> str:
    """Return the first unknown items as text, each with similar known items."""
    others = ", …" if len(unknown) > _NAMED else ""
    return ", ".join(f"{clean_text(item)}{suggest(catalog, item)}" for item in unknown[:_NAMED]) + others


def suggest(catalog: Catalog, unknown: Any) -> str:
    """Return a hint with known items similar to an unknown id; an empty text if there are none."""
    names = (f"{catalog.ids[at]} {clean_text(catalog.titles[at])}".rstrip() for at in catalog.suggest(unknown))
    listed = ", ".join(names)
    return f" (did you mean {listed}?)" if listed else ""


def suggest_examples(catalog: Catalog, text: str) -> str:
    """Return a hint with the number of items, and some ids similar to `text`."""
    return f": it has {len(catalog.items):,} items{suggest_similar_ids(text, catalog.items)}"


def suggest_similar_ids(text: str, ids: Ids) -> str:
    """Return a hint with ids similar to `text`, or else with a few of all ids."""
    if alike := ids.alike(text):
        return f"; did you mean {', '.join(map(str, alike))}?"
    if ids.kind == "int" or len(ids) > 200_000:  # similar numbers say nothing, and many ids take long
        return f", such as {', '.join(map(str, ids.values[:_EXAMPLES]))}"
    close = get_close_matches(text, ids.values.tolist(), n=_EXAMPLES) or ids.values[:_EXAMPLES].tolist()
    return f", such as {', '.join(close)}"


def clean_text(text: Any) -> str:
    """Return a title or an id on one line, without control characters; an empty text for None."""
    if text is None:
        return ""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in str(text)).split())
