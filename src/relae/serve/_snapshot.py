"""One opened model with all that is derived from it: made anew by every reload, and never changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.catalog import Catalog, Id
from relae.linalg import Csr
from relae.models import dial_values
from relae.recommender import HistoryRecommender
from relae.serve import _requests, _responses
from relae.serve._problem import Problem, show_value
from relae.serve._settings import Settings
from relae.store import Saved, open_model


@dataclass(frozen=True, slots=True)
class History:
    """A history on the columns of the model: sorted, each once, with positive weights.

    `seen` are the columns of other items that the user has had, sorted, None if there are none. `times` has a number
    for each column that rises with time, None if the order is not known.
    """

    columns: NDArray[np.int32]
    weights: NDArray[np.float32]
    unknown: Sequence[Id] = ()
    user: Id | None = None
    seen: NDArray[np.int32] | None = None
    times: NDArray[np.int64] | None = None

    def has(self, column: int) -> bool:
        """Tell whether the user has had an item, in the history or beside it."""
        return column in self.columns or (self.seen is not None and column in self.seen)


class Snapshot:
    """A model, ready for requests. A request takes one at its start and keeps it, whatever is loaded meanwhile."""

    def __init__(self, saved: Saved, settings: Settings) -> None:
        self.saved = saved
        self.model: HistoryRecommender = saved.model
        self.histories = saved.histories  # opened here, so that no request reads a file
        self.loaded = datetime.now(UTC).isoformat(timespec="seconds")
        self.catalog = Catalog(self.model)
        self.catalog.prepare()
        self._dials = dial_values(self.model)
        self.description = self._describe(settings)

    @classmethod
    def open(cls, settings: Settings, verify: bool | None = None) -> "Snapshot":
        """Open the configured folder."""
        verify = settings.verify if verify is None else verify
        return cls(open_model(settings.path, verify=verify, in_memory=settings.in_memory), settings)

    # --- items and histories -----------------------------------------------------------------------------------

    def find_column(self, item: Id) -> int:
        """Return the column of an item."""
        [column] = self.catalog.items.positions([item]).tolist()
        if column < 0:
            hint = "GET /v1/items?q=… finds items by title"
            raise Problem(404, f"item {show_value(item)} is unknown to the model: {hint}", "item")
        return int(column)

    def find_columns(self, items: Sequence[Id] | None) -> NDArray[np.int64] | None:
        """Return the columns of some items, without those that are unknown."""
        if items is None:
            return None
        columns = self.catalog.items.positions(items)
        return columns[columns >= 0]

    def find_history(self, history: _requests.History | None, user: Id | None) -> History:
        """Return a history, or that of a user, on the columns."""
        return self._find_user(cast(Id, user)) if history is None else self._encode(history)

    def _encode(self, history: _requests.History) -> History:
        ids = _in_order(history) if isinstance(history, list) else list[Id](history)
        columns = self.catalog.items.positions(ids)
        known = columns >= 0
        unknown: Sequence[Id] = ()
        if not known.all():
            unknown = [ids[at] for at in np.flatnonzero(~known).tolist()]
            columns = columns[known]
        if isinstance(history, list):  # an id that occurs twice is one item seen, at its last place
            distinct, last = np.unique(columns[::-1], return_index=True)
            return History(distinct.astype(np.int32), np.ones(len(distinct), np.float32), unknown, times=-last)
        distinct, position = np.unique(columns, return_inverse=True)
        values = np.array(list(history.values()), dtype=np.float64)[known]
        weights = np.bincount(position, values, minlength=len(distinct)).astype(np.float32)
        positive = weights > 0
        return History(distinct[positive].astype(np.int32), weights[positive], unknown)

    def _find_user(self, user: Id) -> History:
        if self.histories is None:
            raise Problem(422, "this model was saved without its users: give a history instead", "user")
        [row] = self.histories.users.positions([user]).tolist()
        if row < 0:
            reason = None if self.histories.dropped is None else self.histories.dropped.why(user)
            why = "is unknown to the model" if reason is None else f"was dropped by {reason} before the fit"
            raise Problem(404, f"user {show_value(user)} {why}: give a history instead", "user")
        columns, weights = _row(self.histories.matrix, row)
        seen = None if self.histories.seen is None else _row(self.histories.seen, row)[0]
        own = slice(*self.histories.matrix.indptr[row : row + 2].tolist())
        times = None if self.histories.times is None else self.histories.times[own]
        [name] = self.histories.users.take(np.array([row]))
        return History(columns, weights, user=name, seen=seen if seen is not None and len(seen) else None, times=times)

    def stack(self, histories: Sequence[History]) -> Csr:
        """Return histories as rows : (histories, items)."""
        rows = [history.columns for history in histories]
        return self._stack(rows, [history.weights for history in histories])

    def stack_times(self, histories: Sequence[History]) -> NDArray[np.int64] | None:
        """Return the times of the items of histories, in the order of `stack`; None if no order is known."""
        if all(history.times is None for history in histories):
            return None
        parts = [np.zeros(len(each.columns), np.int64) if each.times is None else each.times for each in histories]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def stack_seen(self, histories: Sequence[History]) -> Csr | None:
        """Return the items seen beside the histories as rows : (histories, items), None if there are none."""
        if all(history.seen is None for history in histories):
            return None
        rows = [np.empty(0, np.int32) if history.seen is None else history.seen for history in histories]
        return self._stack(rows, [np.ones(len(row), bool) for row in rows])

    def _stack(self, rows: list[NDArray[np.int32]], values: list[NDArray[Any]]) -> Csr:
        indptr = np.cumsum([0, *map(len, rows)], dtype=np.int32)
        cells = (values[0], rows[0]) if len(rows) == 1 else (np.concatenate(values), np.concatenate(rows))
        return sp.csr_array((*cells, indptr), shape=(len(rows), len(self.catalog.items)))

    # --- abilities ---------------------------------------------------------------------------------------------

    def require(self, ability: bool, what: str, field: str | None = None) -> Any:
        """Return the model if it has an ability; a problem otherwise."""
        if not ability:
            raise Problem(422, f"a {type(self.model).__name__} has no {what}: leave it out, or serve an RDLAE", field)
        return self.model

    def with_dials(self, dials: Mapping[str, float]) -> Any:
        """Return the model with other values of some dials, or as it is."""
        for name in dials:
            if self.model.dials and name not in self.model.dials:
                raise Problem(422, f"the model was fitted without times and has no {name}: leave it out", name)
            self.require(name in self.model.dials, name, name)
        return self.model.with_dials(**dials) if dials else self.model

    def dial_values(self, dials: Mapping[str, float]) -> _responses.Dials:
        """Return the values of all dials: the given ones, and the model's own for the others."""
        return cast(_responses.Dials, {**self._dials, **dials})

    # --- description -------------------------------------------------------------------------------------------

    def _describe(self, settings: Settings) -> _responses.Model:
        info, model = self.saved.info, cast(Any, self.model)
        limits = {name: getattr(settings, f"max_{name}") for name in _responses.Limits.__annotations__}
        return {
            "model": info["model"],
            "parameters": info["parameters"],
            **self.dial_values({}),
            "dials": list(model.dials),
            "xi_interval": list(model.xi_interval_) if "xi" in model.dials else None,
            "user_norm": model.user_norm_ if "xi" in model.dials else None,
            "title": info["title"],
            "data": info["data"],
            "fitted": {name: value for name, value in info["fitted"].items() if name != "plan"},
            "versions": info["versions"],
            "created": info["created"],
            "users": self.histories is not None,
            "titles": self.catalog.has_titles,
            "limits": cast(_responses.Limits, limits),
            "loaded": self.loaded,
        }


def _row(matrix: Csr, row: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return the columns and values of a row."""
    own = slice(*matrix.indptr[row : row + 2].tolist())
    return matrix.indices[own].astype(np.int32, copy=False), matrix.data[own]


def _in_order(history: Sequence[Id | _requests.Event]) -> list[Id]:
    """Return the ids of a history from the earliest to the latest; those without a time come first, as listed."""
    ids = [entry for entry in history if not isinstance(entry, _requests.Event)]
    events = [entry for entry in history if isinstance(entry, _requests.Event)]
    return ids + [event.item for event in sorted(events, key=lambda event: event.at)]
