"""From the rows of a table to a matrix: merge, filter, number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.data._columns import Column, Times, as_ids, as_numbers, as_times
from relae.data._tables import Roles, Table
from relae.data.ids import Ids
from relae.errors import DataError

if TYPE_CHECKING:
    import polars as pl


_COUNTED = 1 << 24  # codes at a time, because a count makes a copy of them as 64 bits


@dataclass(frozen=True)
class Recipe:
    """How the rows of a table become cells: the keywords of `Interactions.from_frame`."""

    user: str
    item: str
    weight: str | None
    rating: str | None
    min_rating: float | None
    min_user_count: int
    min_item_count: int
    k_core: int
    timestamp: str | None = None

    def __post_init__(self) -> None:
        if self.user == self.item:
            raise DataError(f"user and item both name the column {self.user!r}")
        if self.min_rating is not None and self.rating is None:
            raise DataError(f"min_rating={self.min_rating!r} needs the column of the ratings: set rating=…")
        if self.rating is not None and self.min_rating is None:
            raise DataError(
                f"rating={self.rating!r} needs a threshold: set min_rating=…, "
                f"or weight={self.rating!r} for matrix values that are sums of ratings"
            )

    @property
    def roles(self) -> Roles:
        """The columns to load."""
        named = {
            "user": self.user,
            "item": self.item,
            "weight": self.weight,
            "rating": self.rating,
            "timestamp": self.timestamp,
        }
        return {role: name for role, name in named.items() if name is not None}


@dataclass(frozen=True)
class Cells:
    """The nonzero cells of a matrix, sorted by user, then item; arrays of one length."""

    users: NDArray[np.integer[Any]]
    items: NDArray[np.integer[Any]]
    values: NDArray[np.float32]
    times: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def where(self, kept: NDArray[np.bool_]) -> Cells:
        """Return some of the cells."""
        if kept.all():
            return self
        times = None if self.times is None else self.times[kept]
        return Cells(self.users[kept], self.items[kept], self.values[kept], times)


@dataclass(frozen=True)
class Events:
    """The rows of a table, or of a part of it, that count: ids without gaps, checked numbers; all of one length."""

    users: pl.Series
    items: pl.Series
    weights: NDArray[np.float64] | None
    times: Times | None

    def __len__(self) -> int:
        return len(self.users)


class Losses:
    """What each filter removed, for the message when nothing is left."""

    def __init__(self, source: str, n_rows: int) -> None:
        self.source, self.n_rows, self.steps = source, n_rows, list[str]()

    def record_rated(self, recipe: Recipe, kept: int) -> None:
        """Count the rows that the first filter left."""
        if recipe.min_rating is not None:
            self.record(f"min_rating={recipe.min_rating:g}", self.n_rows, kept, "rows")

    def record(self, step: str, before: int, after: int, unit: str) -> None:
        """Count what a filter left, and raise if that is nothing."""
        if before > after:
            self.steps.append(f"{step} removed {before - after:,} {unit}")
        if after == 0:
            raise DataError(
                f"{self.source}: nothing is left of {self.n_rows:,} rows: {', '.join(self.steps)}. Relax a filter"
            )


@dataclass(frozen=True)
class Assembled:
    """The matrix of a table, its users and items, and the time of each stored entry."""

    matrix: sp.csr_array
    users: Ids
    items: Ids
    times: NDArray[np.int64] | None


def assemble(table: Table, recipe: Recipe) -> Assembled:
    """Return the matrix of a table, with its users, items and times."""
    rows = table.load(recipe.roles)
    if rows.height == 0:
        raise DataError(f"{table.source} has no rows")
    losses = Losses(table.source, rows.height)
    found = parse(rows, recipe, table.source, text=table.text)
    losses.record_rated(recipe, len(found))
    users, user_codes = _encode(found.users)
    items, item_codes = _encode(found.items)
    times = None if found.times is None else found.times.values
    cells = merge(user_codes, item_codes, found.weights, len(items), times)
    return number(keep(cells, recipe, losses), users, items)


def parse(rows: pl.DataFrame, recipe: Recipe, source: str, *, text: bool, before: int = 0) -> Events:
    """Return the rows with a high enough rating; `before` tells how many rows of the source went before these."""
    places = {role: Column(source, name, before) for role, name in recipe.roles.items()}
    ids = [as_ids(rows[role], places[role], text=text).alias(role) for role in ("user", "item")]
    rows = rows.with_columns(ids).with_row_index("row", offset=before + 1)
    if recipe.rating is not None:
        rows = rows.filter(as_numbers(rows["rating"], places["rating"], rows["row"]) >= recipe.min_rating)
    for role in ("user", "item"):
        places[role].refuse(rows[role].is_null(), rows[role], "drop the row or fill it", rows=rows["row"])
    weights = None if recipe.weight is None else _weights(rows, places["weight"])
    times = None if recipe.timestamp is None else as_times(rows["timestamp"], places["timestamp"], rows["row"])
    return Events(rows["user"], rows["item"], weights, times)


def merge(
    users: NDArray[np.int64],
    items: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    n_items: int,
    times: NDArray[np.int64] | None = None,
) -> Cells:
    """Return one cell per pair: the sum of its weights, or 1 however often it occurs, and its last time."""
    keys = users * n_items + items
    if weights is None and times is None:
        keys = np.sort(keys)
        starts = starts_of(keys)
        values, last = np.ones(len(starts), dtype=np.float32), None
    else:
        # The weights too are sorted, so that the order of the rows cannot change the last bit of a sum.
        order = np.argsort(keys) if weights is None else np.lexsort((weights, keys))
        keys = keys[order]
        starts = starts_of(keys)
        ones = np.ones(len(starts), dtype=np.float32)
        values = ones if weights is None else _single(np.add.reduceat(weights[order], starts))
        last = None if times is None else np.maximum.reduceat(times[order], starts)
    keys = keys[starts]
    rows = keys // n_items
    return Cells(rows, keys - rows * n_items, values, last)


def to_matrix(cells: Cells, shape: tuple[int, int]) -> sp.csr_array:
    """Return the cells as a matrix."""
    indptr = np.zeros(shape[0] + 1, dtype=np.int64)
    np.cumsum(count(cells.users, shape[0]), out=indptr[1:])
    return sp.csr_array((cells.values, cells.items, indptr), shape=shape)


def positions_in(vocabulary: pl.Series, ids: pl.Series) -> pl.Series:
    """Return for each id its position in a vocabulary of distinct ids, null where it has none."""
    import polars as pl

    positions = pl.DataFrame({"id": vocabulary, "position": np.arange(len(vocabulary))})
    # A join hashes: no sort of all rows, and for strings by far the fastest.
    found = pl.DataFrame({"id": ids}).join(positions, on="id", how="left", maintain_order="left")
    return found["position"]


def _weights(rows: pl.DataFrame, place: Column) -> NDArray[np.float64]:
    weights = as_numbers(rows["weight"], place, rows["row"])
    place.refuse(weights.is_infinite(), weights, "a weight must be finite; drop the row", rows=rows["row"])
    place.refuse(weights < 0, weights, "a weight must not be negative; drop the row", rows=rows["row"])
    return weights.to_numpy()


def _encode(ids: pl.Series) -> tuple[pl.Series, NDArray[np.int64]]:
    """Return the sorted distinct ids, and for each row the position of its id among them."""
    vocabulary = ids.unique().sort()
    return vocabulary, positions_in(vocabulary, ids).to_numpy()


def starts_of(keys: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return where a new value begins in a sorted array."""
    new = np.empty(len(keys), dtype=bool)
    new[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    return np.flatnonzero(new)


def _single(values: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    if np.isinf(single).any():
        raise DataError(f"the weights of a pair sum to {values.max():g}, too large for float32: scale them down")
    return single


def keep(cells: Cells, recipe: Recipe, losses: Losses) -> Cells:
    """Apply the filters on counts, in the order that is documented."""
    cells = _step(losses, "weights of zero", cells, cells.where(cells.values > 0))
    if recipe.min_item_count > 1:
        kept = cells.where(_frequent(cells.items, recipe.min_item_count))
        cells = _step(losses, f"min_item_count={recipe.min_item_count}", cells, kept)
    if recipe.min_user_count > 1:
        kept = cells.where(_frequent(cells.users, recipe.min_user_count))
        cells = _step(losses, f"min_user_count={recipe.min_user_count}", cells, kept)
    if recipe.k_core > 1:
        cells = _step(losses, f"k_core={recipe.k_core}", cells, _core(cells, recipe.k_core))
    return cells


def _step(losses: Losses, name: str, before: Cells, after: Cells) -> Cells:
    losses.record(name, len(before), len(after), "interactions")
    return after


def count(codes: NDArray[np.integer[Any]], n: int) -> NDArray[np.int64]:
    """Return how often each of the codes 0 to n-1 occurs."""
    counts = np.zeros(n, dtype=np.int64)
    for start in range(0, len(codes), _COUNTED):
        counts += np.bincount(codes[start : start + _COUNTED], minlength=n)
    return counts


def _frequent(codes: NDArray[np.integer[Any]], minimum: int) -> NDArray[np.bool_]:
    """Tell which cells belong to a user (or item) that has enough of them."""
    enough = count(codes, int(codes.max(initial=-1)) + 1) >= minimum
    return np.asarray(enough[codes])


def _core(cells: Cells, k: int) -> Cells:
    """Return the largest set of cells in which every user and every item has at least k."""
    while True:
        before = len(cells)
        cells = cells.where(_frequent(cells.items, k))
        cells = cells.where(_frequent(cells.users, k))
        if len(cells) == before or len(cells) == 0:
            return cells


def number(cells: Cells, users: pl.Series, items: pl.Series) -> Assembled:
    """Return the matrix of the users and items that still have cells."""
    user_ids, user_codes = _compact(cells.users, users)
    item_ids, item_codes = _compact(cells.items, items)
    compact = Cells(user_codes, item_codes, cells.values)
    return Assembled(to_matrix(compact, (len(user_ids), len(item_ids))), user_ids, item_ids, cells.times)


def _compact(codes: NDArray[Any], vocabulary: pl.Series) -> tuple[Ids, NDArray[Any]]:
    used = count(codes, len(vocabulary)) > 0
    if used.all():
        return Ids(vocabulary.to_numpy()), codes
    renumbered = (np.cumsum(used) - 1).astype(codes.dtype)
    return Ids(vocabulary.to_numpy()[used]), renumbered[codes]
