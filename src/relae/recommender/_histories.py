"""Histories as users give them, and as the kernel wants them."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.data import Ids, Interactions, MatrixLike, canonical_matrix
from relae.errors import DataError
from relae.linalg import Csr, as_csr

ItemId: TypeAlias = int | str | np.integer[Any] | np.str_
History: TypeAlias = Sequence[ItemId] | AbstractSet[ItemId] | Mapping[Any, float] | NDArray[Any]
"""What one user has had: raw ids of items, or a mapping from raw ids to weights."""
RawHistories: TypeAlias = Interactions | History | Sequence[History]
"""Histories by raw ids: of the users of interactions, of one user, or of several."""
HistoriesLike: TypeAlias = MatrixLike | RawHistories
"""What a model recommends to: a matrix (users × items) with the columns of the model, or histories by raw ids."""


@dataclass(frozen=True)
class Histories:
    """Histories on the columns of a model.

    `raw` tells whether they came as raw ids, so that raw ids are due in return; `single` whether it was one
    history and not a batch; `unknown` counts the items that the model has never seen, and `stranger` is the first of
    them in lists. `seen` is what users have had beside their histories, None if there is nothing. `times` has a number
    per stored entry of `matrix`, which rises with time: the time of the interaction, or its place in a list.
    """

    matrix: Csr  # (users, items)
    raw: bool
    single: bool = False
    unknown: int = 0
    seen: Csr | None = None  # (users, items) of bool
    stranger: Any = None
    times: NDArray[np.int64] | None = None

    def batch(self, start: int, stop: int) -> tuple[Csr, NDArray[np.int64] | None]:
        """Return some of the histories and their times."""
        first, last = self.matrix.indptr[start], self.matrix.indptr[stop]
        return self.matrix[start:stop], None if self.times is None else self.times[first:last]


def encode(
    histories: HistoriesLike,
    items: Ids,
    seen: HistoriesLike | None = None,
    times: NDArray[np.int64] | None = None,
) -> Histories:
    """Bring histories onto the columns of `items`.

    Parameters
    ----------
    histories
        A sparse matrix (users × items) or a NumPy array of that shape; Interactions; one history as a sequence of raw
        ids or a mapping from raw ids to weights; or a sequence of such histories.
    seen
        What each user has had beside the history, in any of these forms; Interactions know it themselves.
    times
        For a sparse matrix in canonical form: when each stored entry happened. Interactions know it themselves, and a
        list is in the order of time, the latest item last. Sets and mappings have no order.
    """
    encoded = _encode(histories, items)
    if times is not None:
        encoded = replace(encoded, times=_check_times(times, histories, encoded))
    if seen is None:
        return encoded
    beside = _encode(seen, items).matrix.astype(bool)
    if beside.shape != encoded.matrix.shape:
        raise DataError(
            f"seen is of {beside.shape[0]:,} users and the histories are of {encoded.matrix.shape[0]:,}: give as many"
        )
    return replace(encoded, seen=as_csr(beside if encoded.seen is None else encoded.seen + beside, bool))


def _encode(histories: Any, items: Ids) -> Histories:
    if isinstance(histories, Interactions):
        if histories.items is items or histories.items == items:
            return Histories(histories.matrix, raw=True, seen=histories.seen_on(items), times=histories.times)
        return _moved(histories, items)
    if sp.issparse(histories) and cast(Any, histories).ndim == 1:  # a row of a csr_array
        return replace(_encode(cast(Any, histories).reshape(1, -1), items), single=True)
    if not isinstance(histories, (Sequence, Mapping)) and hasattr(histories, "__array__"):  # a data frame's column
        histories = np.atleast_1d(np.asarray(histories))
    if isinstance(histories, (set, frozenset)):
        histories = dict.fromkeys(histories, 1.0)  # which has no order either
    if sp.issparse(histories) or (isinstance(histories, np.ndarray) and histories.ndim == 2):
        histories = cast(Any, histories)
        if histories.shape[1] != len(items):
            raise DataError(
                f"the histories have {histories.shape[1]:,} columns and the model has {len(items):,} items: "
                "give a matrix with the model's columns, or histories as lists of raw ids"
            )
        return Histories(canonical_matrix(histories), raw=False)
    if isinstance(histories, (str, bytes)) or not isinstance(histories, (Sequence, Mapping, np.ndarray)):
        raise DataError(
            f"histories must be a sparse matrix, a list of item ids or a list of such lists, got {histories!r}"
        )
    single = isinstance(histories, Mapping) or not all(_is_history(entry) for entry in histories)
    if single and any(_is_history(entry) for entry in histories):
        raise DataError("histories mix item ids with lists of item ids: give one list, or a list of lists")
    single = single or len(histories) == 0
    matrix, times, unknown = _from_lists([histories] if single else list(histories), items)
    stranger = next(iter(unknown), None)
    return Histories(matrix, raw=True, single=single, unknown=len(unknown), stranger=stranger, times=times)


def _check_times(times: Any, histories: Any, encoded: Histories) -> NDArray[np.int64]:
    """Return the times of a matrix; a DataError unless there is one per stored entry, in one order."""
    if encoded.raw:
        raise DataError("times belong to a sparse matrix: lists are in the order of time, and Interactions have times")
    array = np.asarray(times)
    if array.dtype.kind not in "iu" or array.shape != encoded.matrix.data.shape or histories.nnz != encoded.matrix.nnz:
        raise DataError(
            f"times are one integer for each of the {encoded.matrix.nnz:,} entries of the histories, which must be a "
            f"CSR in canonical form, got {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64, copy=False)


def _is_history(entry: Any) -> bool:
    return isinstance(entry, (Sequence, Mapping, np.ndarray, set, frozenset)) and not isinstance(entry, (str, bytes))


def _from_lists(histories: list[Any], items: Ids) -> tuple[Csr, NDArray[np.int64] | None, list[Any]]:
    """Return histories as a matrix, the place of each entry in its list, and the ids that are unknown."""
    ids: list[Any] = []
    weights: list[float] = []
    for history in histories:
        ids.extend(history)
        weights.extend(history.values() if isinstance(history, Mapping) else [1.0] * len(history))
    rows = np.repeat(np.arange(len(histories)), [len(history) for history in histories])
    columns = items.positions(ids)
    try:
        values = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"the weights of a history must be numbers: {error}") from error
    if not (np.isfinite(values).all() and (values >= 0).all()):
        worst = int(np.flatnonzero(~(np.isfinite(values) & (values >= 0)))[0])
        raise DataError(f"the weight of item {ids[worst]!r} is {weights[worst]}: give a finite number of at least 0")
    known = columns >= 0
    matrix = _cells(values[known], rows[known], columns[known], (len(histories), len(items)))
    listed = np.array([not isinstance(history, Mapping) for history in histories], dtype=bool)
    matrix.data[np.repeat(listed, np.diff(matrix.indptr))] = 1.0  # an id named twice is one item seen
    canonical = canonical_matrix(matrix)
    ordered = [isinstance(history, (Sequence, np.ndarray)) for history in histories]
    times = None
    if any(ordered):
        order = np.arange(len(ids)) * np.repeat(ordered, [len(history) for history in histories])
        times = _times_of_cells(rows[known], columns[known], order[known], canonical)
    return canonical, times, [ids[at] for at in np.flatnonzero(~known)]


def _times_of_cells(
    rows: NDArray[Any], columns: NDArray[Any], times: NDArray[np.int64], matrix: Csr
) -> NDArray[np.int64]:
    """Return the latest time of each stored entry of a matrix, from those of its cells in any order."""
    width = np.int64(matrix.shape[1])
    owners = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    entries = owners * width + matrix.indices
    cells = rows * width + columns
    at = np.searchsorted(entries, cells)
    kept = at < len(entries)
    kept[kept] = entries[at[kept]] == cells[kept]  # a weight of 0 is no entry
    latest = np.full(len(entries), np.iinfo(np.int64).min)
    np.maximum.at(latest, at[kept], times[kept])
    return latest


def _cells(values: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int]) -> Any:
    return sp.coo_array((values, (rows, columns)), shape=shape).tocsr()


def _moved(interactions: Interactions, items: Ids) -> Histories:
    """Put the columns of other interactions where the model has them."""
    target: NDArray[np.int64] = items.positions(interactions.items.values)
    source = sp.coo_array(interactions.matrix)
    column = target[source.col]
    known = column >= 0
    matrix = _cells(source.data[known], source.row[known], column[known], (interactions.n_users, len(items)))
    unknown = int(np.count_nonzero(~known))
    canonical, times = canonical_matrix(matrix), None
    if interactions.times is not None:
        times = _times_of_cells(source.row[known], column[known], interactions.times[known], canonical)
    return Histories(canonical, raw=True, unknown=unknown, seen=interactions.seen_on(items), times=times)
