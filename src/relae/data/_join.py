"""Later events of users who are known, of new users and of new items, joined to interactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.data._matrix import canonical_matrix
from relae.data._seen import Dropped, Seen, pattern
from relae.data._weights import joined_amounts
from relae.data.features import Features
from relae.data.ids import Ids
from relae.errors import DataError, Option

if TYPE_CHECKING:
    from relae.data.interactions import Interactions


def join(before: Interactions, events: Interactions, amounts: bool | None) -> Interactions:
    """Return all interactions, as if the tables of both had been read as one; see `Interactions.joined`."""
    if (before.times is None) != (events.times is None) and events.n_interactions:
        which, other = ("these events", "the data") if events.times is None else ("the data", "these events")
        raise DataError(f"{which} have no times, and {other} have: read both with ", Option("timestamp", ...))
    amounts = has_amounts(before, events) if amounts is None else amounts
    if amounts and before.weighting != events.weighting:
        raise DataError(
            "these events have ",
            Option("weighting", events.weighting),
            ", and the data ",
            Option("weighting", before.weighting),
            ": read both alike",
        )
    users, rows = joined_ids(before.users, events.users, np.ones(events.n_users, bool))
    used = np.bincount(events.matrix.indices, minlength=events.n_items) > 0
    items, columns = joined_items(before.items, events.items, used)
    shape = len(users), len(items)
    matrix, times = _cells(before, events, rows, columns, shape, amounts)
    seen = _seen(before, events, rows, items, shape[0])
    return before.replace(
        matrix=matrix,
        users=users,
        items=items,
        titles=joined_titles(before.titles, events.titles, len(before.items), columns, len(items)),
        times=times,
        features=_wider(before.features, len(items)),
        seen=None if seen is None else seen.without(matrix),
        dropped=_still_dropped(before.dropped, events.users),
    )


def joined_ids(before: Ids, later: Ids, used: NDArray[np.bool_]) -> tuple[Ids, NDArray[np.int64]]:
    """Return old ids and then the used ones that are new, and the place of each later id, −1 for those not used."""
    if later.positional:
        positions = np.where(used, len(before) + np.cumsum(used) - 1, -1)
        if before.positional:
            return Ids.range(len(before) + int(used.sum())), positions
        raise DataError(f"these rows have no ids, and those of the data are {before}: give ids to both")
    if before.positional and len(before):
        raise DataError(f"the data has no ids of its rows, and these rows have {later}: give ids to both")
    positions = before.positions(later.values)
    new = np.flatnonzero((positions < 0) & used)
    positions[new] = len(before) + np.arange(len(new))
    if len(new) == 0:
        return before, positions
    values: list[Any] = [*before.values.tolist(), *later.values[new].tolist()]
    return Ids(values if before.kind == later.kind else [str(value) for value in values]), positions


def joined_items(before: Ids, later: Ids, used: NDArray[np.bool_]) -> tuple[Ids, NDArray[np.int64]]:
    """Return `joined_ids` of items: columns without names are those of the same number, and kinds must agree."""
    if before.positional and later.positional:
        n = max(len(before), int(np.flatnonzero(used).max(initial=-1)) + 1)
        return before if n == len(before) else Ids.range(n), np.where(
            np.arange(len(later)) < n, np.arange(len(later)), -1
        )
    positions = before.positions(later.values)
    new = used & (positions < 0)
    if not new.any():
        return before, positions
    if before.kind != later.kind and before.kind == "int":
        raise DataError(f"the new items are {later}, and those of the model are {before}")
    return joined_ids(before, later, used)


def joined_titles(
    before: NDArray[Any] | None, later: NDArray[Any] | None, old: int, columns: NDArray[np.int64], n_items: int
) -> NDArray[np.object_] | None:
    """Return the titles of old items and then of new ones, None where there is none."""
    if before is None and later is None:
        return None
    titles = np.full(n_items, None, dtype=object)
    if later is not None:
        titles[columns[columns >= 0]] = later[columns >= 0]
    if before is not None:
        known = np.array([title is not None for title in before], dtype=bool)
        titles[:old][known] = before[known]
    return titles


def has_amounts(*parts: Interactions) -> bool:
    """Return whether the values of interactions are amounts: whether any of them is not 1."""
    return any(bool((part.matrix.data != 1).any()) for part in parts)


def _cells(
    before: Interactions,
    events: Interactions,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    shape: tuple[int, int],
    amounts: bool,
) -> tuple[sp.csr_array, NDArray[np.int64] | None]:
    """Return the cells of both: amounts of a cell that is in both are added, if they are any; and the latest times."""
    old, new = sp.coo_array(before.matrix), sp.coo_array(events.matrix)
    keys = np.concatenate([old.row.astype(np.int64) * shape[1] + old.col, rows[new.row] * shape[1] + columns[new.col]])
    values = np.concatenate([old.data, new.data]).astype(np.float64)
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    twice = np.diff(np.append(starts, len(keys))) > 1
    cells = values[starts]
    if amounts:
        cells[twice] = joined_amounts(cells[twice], values[starts[twice] + 1], before.weighting)
    indptr = np.searchsorted(keys[starts], np.arange(shape[0] + 1) * shape[1])
    matrix = sp.csr_array((cells.astype(np.float32), keys[starts] % shape[1], indptr), shape=shape)
    times = None
    if before.times is not None and events.times is not None:
        times = np.maximum.reduceat(np.concatenate([before.times, events.times])[order], starts) if len(keys) else keys
    elif before.times is not None:
        times = before.times
    return canonical_matrix(matrix), times


def _seen(before: Interactions, events: Interactions, rows: NDArray[np.int64], items: Ids, n_users: int) -> Seen | None:
    """Return what the users of both have seen beside their histories, on the items of both."""
    pairs = list[tuple[NDArray[Any], NDArray[Any]]]()
    for data, positions in ((before, np.arange(before.n_users)), (events, rows)):
        on = data.seen_on(items)
        if on is not None:
            cells = sp.coo_array(on)
            pairs.append((positions[cells.row], cells.col))
    if not pairs:
        return None
    users, columns = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    return Seen(pattern(users, columns, (n_users, len(items))), items)


def _wider(features: Features | None, n_items: int) -> Features | None:
    """Return features for further items, of which none are known."""
    if features is None or features.n_items == n_items:
        return features
    return features.take(np.append(np.arange(features.n_items), np.full(n_items - features.n_items, -1)))


def _still_dropped(dropped: Dropped | None, users: Ids) -> Dropped | None:
    """Return the users whom filters dropped and who are not among some users."""
    return dropped if dropped is None else dropped.without(users.values)
