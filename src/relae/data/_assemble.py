"""From the rows of a table to a matrix: merge, filter, number."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae._common.table_options import TableOptions
from relae.data._columns import Column, GapWords, Times, as_ids, as_numbers, as_times
from relae.data._seen import Dropped, Seen, pattern
from relae.data._tables import Table
from relae.data.ids import Ids
from relae.errors import DataError, DataWarning, Option, Text

if TYPE_CHECKING:
    import polars as pl


_COUNTED = 1 << 24  # codes at a time, because a count makes a copy of them as 64 bits


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
class Pairs:
    """Users and items by their codes, and times where the table has them; arrays of one length."""

    users: NDArray[np.integer[Any]]
    items: NDArray[np.integer[Any]]
    times: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.users)

    def where(self, kept: NDArray[np.bool_]) -> Pairs:
        """Return some of the pairs."""
        times = None if self.times is None else self.times[kept]
        return Pairs(self.users[kept], self.items[kept], times)

    def keys(self, n_items: int) -> NDArray[np.int64]:
        """Return a number per pair, in the order of user, then item."""
        return self.users.astype(np.int64) * n_items + self.items

    def distinct(self, n_items: int) -> Pairs:
        """Return each pair once, with its first time, sorted by user, then item."""
        keys, times = self.keys(n_items), None
        if self.times is None:
            keys = np.unique(keys)
        else:
            order = np.argsort(keys)
            keys = keys[order]
            starts = starts_of(keys)
            keys, times = keys[starts], np.minimum.reduceat(self.times[order], starts)
        users = keys // n_items
        return Pairs(users.astype(self.users.dtype), (keys - users * n_items).astype(self.items.dtype), times)


@dataclass(frozen=True)
class Events:
    """The rows of a table, or of a part of it, that count: ids without gaps, checked numbers; all of one length.

    `low_users`, `low_items` and `low_times` are of the other rows, those whose rating is too low; their times have the
    scale of `times`.
    """

    users: pl.Series
    items: pl.Series
    weights: NDArray[np.float64] | None
    times: Times | None
    low_users: pl.Series
    low_items: pl.Series
    low_times: NDArray[np.int64] | None

    def __len__(self) -> int:
        return len(self.users)


class Losses:
    """Counts of what each filter removed, for the message when nothing is left."""

    def __init__(self, source: str, n_rows: int) -> None:
        self.source, self.n_rows, self.steps = source, n_rows, list[Text]()

    def record_rated(self, options: TableOptions, kept: int) -> None:
        """Count the rows that the first filter left."""
        if options.min_rating is not None:
            self.record(options.filter_option("min_rating"), self.n_rows, kept, "rows")

    def record(self, step: Option | str, before: int, after: int, unit: str) -> None:
        """Count what a filter left, and raise if that is nothing."""
        if before > after:
            self.steps.append(Text(step, f" removed {before - after:,} {unit}"))
        if after == 0:
            raise DataError(
                f"{self.source}: nothing is left of {self.n_rows:,} rows: ",
                Text.join(", ", self.steps),
                ". Relax a filter",
            )


class DroppedUsers:
    """The filter that took the last cell of each user without cells."""

    def __init__(self, n_users: int) -> None:
        self._left = np.ones(n_users, dtype=bool)
        self._reasons = np.zeros(n_users, dtype=np.uint8)
        self._filters: list[str] = []

    def record(self, step: Option | str, users: NDArray[np.integer[Any]]) -> None:
        """Record the users who have no cell after a filter; `users` are those of the cells that are left."""
        left = count(users, len(self._left)) > 0
        gone = self._left & ~left
        if gone.any():
            self._reasons[gone] = len(self._filters)
            self._filters.append(str(step))
        self._left = left

    def dropped(self, users: pl.Series) -> Dropped | None:
        """Return who was dropped; `users` are the ids of all."""
        if self._left.all():
            return None
        gone = ~self._left
        return Dropped(Ids(users.to_numpy()[gone]), self._reasons[gone], tuple(self._filters))


@dataclass(frozen=True)
class Kept:
    """The result of the filters: cells, other items that their users have had, and the users without cells."""

    cells: Cells
    beside: Pairs
    dropped_users: DroppedUsers


@dataclass(frozen=True)
class Assembled:
    """The matrix of a table, its users and items, the time of each stored entry, and what the filters dropped.

    `dropped_items` are in the table, and have no interactions left.
    """

    matrix: sp.csr_array
    users: Ids
    items: Ids
    times: NDArray[np.int64] | None
    seen: Seen | None
    dropped: Dropped | None
    dropped_items: Ids


def assemble(table: Table, options: TableOptions) -> Assembled:
    """Return the matrix of a table, with its users, items and times."""
    rows = table.load(options.roles)
    if rows.height == 0:
        raise DataError(f"{table.source} has no rows")
    losses = Losses(table.source, rows.height)
    gaps = GapWords()
    events = parse(rows, options, table.source, gaps, text=table.text)
    gaps.warn()
    losses.record_rated(options, len(events))
    users, user_codes, low_users = _encode(events.users, events.low_users)
    items, item_codes, low_items = _encode(events.items, events.low_items)
    times = None if events.times is None else events.times.values
    cells = merge(user_codes, item_codes, events.weights, len(items), times)
    low = Pairs(low_users, low_items, events.low_times).distinct(len(items))
    return number(keep(cells, low, options, losses, len(users)), users, items)


def parse(
    rows: pl.DataFrame, options: TableOptions, source: str, gaps: GapWords, *, text: bool, before: int = 0
) -> Events:
    """Return the rows by their ratings; `before` tells how many rows of the source went before these.

    Ids that are written like a missing value are counted by `gaps`.
    Of a row with too low a rating only the ids and the time are looked at; without one of the ids it tells nothing.
    """
    columns = {role: Column(source, name, before) for role, name in options.roles.items()}
    ids = [as_ids(rows[role], columns[role], text=text).alias(role) for role in ("user", "item")]
    for values in ids:
        gaps.count(values, columns[values.name])
    rows = rows.with_columns(ids).with_row_index("row", offset=before + 1)
    low = rows.clear()
    if options.rating is not None:
        enough = as_numbers(rows["rating"], columns["rating"], rows["row"]) >= options.min_rating
        rows, low = rows.filter(enough), rows.filter(~enough).drop_nulls(["user", "item"])
    for role in ("user", "item"):
        columns[role].refuse(rows[role].is_null(), rows[role], "drop the row or fill it", rows=rows["row"])
    weights = None if options.weight is None else _weights(rows, columns["weight"])
    times, low_times = None, None
    if options.timestamp is not None:
        timed = rows if low.is_empty() else rows.vstack(low)  # together, because one fraction changes the scale of all
        all_times = as_times(timed["timestamp"], columns["timestamp"], timed["row"])
        times, low_times = Times(all_times.values[: rows.height], all_times.scale), all_times.values[rows.height :]
    return Events(rows["user"], rows["item"], weights, times, low["user"], low["item"], low_times)


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
    joined = pl.DataFrame({"id": ids}).join(positions, on="id", how="left", maintain_order="left")
    return joined["position"]


def _weights(rows: pl.DataFrame, column: Column) -> NDArray[np.float64]:
    weights = as_numbers(rows["weight"], column, rows["row"])
    column.refuse(weights.is_infinite(), weights, "a weight must be finite; drop the row", rows=rows["row"])
    column.refuse(weights < 0, weights, "a weight must not be negative; drop the row", rows=rows["row"])
    return weights.to_numpy()


def _encode(ids: pl.Series, others: pl.Series) -> tuple[pl.Series, NDArray[np.int64], NDArray[np.int64]]:
    """Return the sorted distinct ids of both, and for each row the position of its id among them."""
    distinct = ids.unique() if others.is_empty() else ids.unique().append(others.unique()).unique()
    vocabulary = distinct.sort()
    return vocabulary, positions_in(vocabulary, ids).to_numpy(), positions_in(vocabulary, others).to_numpy()


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


def keep(cells: Cells, low: Pairs, options: TableOptions, losses: Losses, n_users: int) -> Kept:
    """Apply the filters on counts, in the order that is documented; `low` are distinct pairs with too low a rating."""
    dropped_users = DroppedUsers(n_users)
    if len(low):
        dropped_users.record(options.filter_option("min_rating"), cells.users)

    def step(name: Option | str, after: Cells) -> Cells:
        losses.record(name, len(cells), len(after), "interactions")
        if len(after) < len(cells):
            dropped_users.record(name, after.users)
        return after

    cells = step("weights of zero", cells.where(cells.values > 0))
    before = Pairs(cells.users, cells.items, cells.times)
    if options.min_item_count > 1:
        kept = cells.where(_frequent(cells.items, options.min_item_count))
        cells = step(options.filter_option("min_item_count"), kept)
    if options.min_user_count > 1:
        kept = cells.where(_frequent(cells.users, options.min_user_count))
        cells = step(options.filter_option("min_user_count"), kept)
        _warn_of_one_pass(cells, options)
    if options.k_core > 1:
        cells = step(options.filter_option("k_core"), _core(cells, options.k_core))
    return Kept(cells, _beside(cells, before, low), dropped_users)


def _beside(cells: Cells, before: Pairs, low: Pairs) -> Pairs:
    """Return the other items that the users of some cells have had: items that filters dropped, and low ratings."""
    n_users, n_items = (
        1 + max(int(cells_of.max(initial=-1)), int(low_of.max(initial=-1)))
        for cells_of, low_of in ((before.users, low.users), (before.items, low.items))
    )
    if len(cells) == len(before):
        dropped = before.where(np.zeros(len(before), dtype=bool))
    else:
        # Filters on counts drop whole users and whole items: a missing cell of a user who is left had a dropped item.
        dropped = before.where(
            (count(cells.users, n_users) > 0)[before.users] & (count(cells.items, n_items) == 0)[before.items]
        )
    if len(low) == 0:
        return dropped
    low = low.where((count(cells.users, n_users) > 0)[low.users])
    low = low.where(~_among(low.keys(n_items), Pairs(cells.users, cells.items).keys(n_items)))
    return join([dropped, low]).distinct(n_items)


def join(parts: Sequence[Pairs]) -> Pairs:
    """Return the pairs of all parts; either all of them have times or none."""
    times = [part.times for part in parts if part.times is not None]
    return Pairs(
        np.concatenate([part.users for part in parts]),
        np.concatenate([part.items for part in parts]),
        np.concatenate(times) if times else None,
    )


def _among(numbers: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which numbers are among sorted ones."""
    at = np.minimum(np.searchsorted(keys, numbers), len(keys) - 1)
    return np.asarray(keys[at] == numbers)


def count(codes: NDArray[np.integer[Any]], n: int) -> NDArray[np.int64]:
    """Return how often each of the codes 0 to n-1 occurs."""
    counts = np.zeros(n, dtype=np.int64)
    for start in range(0, len(codes), _COUNTED):
        counts += np.bincount(codes[start : start + _COUNTED], minlength=n)
    return counts


def _warn_of_one_pass(cells: Cells, options: TableOptions) -> None:
    """Warn of items that have become too rare because users were dropped after them."""
    counts = count(cells.items, int(cells.items.max(initial=-1)) + 1)
    least = options.min_item_count
    rare = int(np.count_nonzero((counts > 0) & (counts < least)))
    if rare and options.k_core < least:
        warnings.warn(
            DataWarning(
                Option("min_item_count", least),
                " is one pass, before ",
                Option("min_user_count", options.min_user_count),
                f": after both, {rare:,} of {np.count_nonzero(counts):,} items have fewer than {least} users. To drop "
                "items and users until all have enough, use ",
                Option("k_core", max(least, options.min_user_count)),
            ),
            stacklevel=5,
        )


def _frequent(codes: NDArray[np.integer[Any]], minimum: int) -> NDArray[np.bool_]:
    """Return which cells belong to a user (or item) that has enough of them."""
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


def number(kept: Kept, users: pl.Series, items: pl.Series) -> Assembled:
    """Return the matrix of the users and items that still have cells."""
    cells = kept.cells
    user_ids, user_codes = _compact(cells.users, users)
    item_ids, item_codes = _compact(cells.items, items)
    compact = Cells(user_codes, item_codes, cells.values)
    matrix = to_matrix(compact, (len(user_ids), len(item_ids)))
    seen = None
    if len(kept.beside):
        seen_items, columns = _compact(kept.beside.items, items)
        rows = _ranks(cells.users, len(users))[kept.beside.users]
        # The pairs are sorted, so that their times are in the order of the entries.
        seen = Seen(pattern(rows, columns, (len(user_ids), len(seen_items))), seen_items, kept.beside.times)
    gone = count(cells.items, len(items)) == 0
    dropped_items = Ids(items.to_numpy()[gone])
    return Assembled(matrix, user_ids, item_ids, cells.times, seen, kept.dropped_users.dropped(users), dropped_items)


def _compact(codes: NDArray[Any], vocabulary: pl.Series) -> tuple[Ids, NDArray[Any]]:
    used = count(codes, len(vocabulary)) > 0
    if used.all():
        return Ids(vocabulary.to_numpy()), codes
    return Ids(vocabulary.to_numpy()[used]), _ranks(codes, len(vocabulary))[codes]


def _ranks(codes: NDArray[Any], n: int) -> NDArray[Any]:
    """Return for each of the codes 0 to n-1 how many smaller ones occur."""
    used = count(codes, n) > 0
    return (np.cumsum(used) - used).astype(codes.dtype)
