"""One opened model with all that is derived from it: made anew by every reload, and never changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.catalog import Catalog, Id
from relae.linalg import Csr
from relae.models import DIALS, LinearAutoencoder
from relae.recommender import HistoryRecommender
from relae.serve import _answers
from relae.serve._answers import Limits, Model
from relae.serve._problem import Problem, shown
from relae.serve._questions import Dials, History
from relae.serve._settings import Settings
from relae.store import Saved, open_model


@dataclass(frozen=True, slots=True)
class Taste:
    """A history on the columns of the model: sorted, each once, with positive weights.

    `seen` are the columns of what the user has had beside the history, sorted, None if there is nothing.
    """

    columns: NDArray[np.int32]
    weights: NDArray[np.float32]
    unknown: Sequence[Id] = ()
    user: Id | None = None
    seen: NDArray[np.int32] | None = None

    def has_had(self, column: int) -> bool:
        """Tell whether an item is in the history, or seen beside it."""
        return column in self.columns or (self.seen is not None and column in self.seen)


class Snapshot:
    """A model, ready to be asked. A request takes one at its start and keeps it, whatever is loaded meanwhile."""

    def __init__(self, saved: Saved, settings: Settings) -> None:
        self.saved = saved
        self.model: HistoryRecommender = saved.model
        self.linear = saved.model if isinstance(saved.model, LinearAutoencoder) else None
        self.own: dict[str, float | None] = {  # where the dials stand
            dial.name: float(getattr(self.model, dial.name)) if dial.name in self.model.dials else None
            for dial in DIALS
        }
        self.histories = saved.histories  # opened here, so that no request reads a file
        self.loaded = datetime.now(UTC).isoformat(timespec="seconds")

        self.catalog = Catalog(self.model)
        self.catalog.prepare()
        self.description = self._describe(settings)

    @classmethod
    def open(cls, settings: Settings, verify: bool | None = None) -> "Snapshot":
        """Open the configured folder."""
        verify = settings.verify if verify is None else verify
        return cls(open_model(settings.path, verify=verify, in_memory=settings.in_memory), settings)

    # --- items -------------------------------------------------------------------------------------------------

    def column(self, item: Id) -> int:
        """Return the column of an item."""
        [column] = self.model.items_.positions([item]).tolist()
        if column < 0:
            raise Problem(
                404, f"item {shown(item)} is unknown to the model: GET /v1/items?q=… finds items by title", "item"
            )
        return int(column)

    def columns(self, items: Sequence[Id] | None) -> NDArray[np.int64] | None:
        """Return the columns of some items, without those that are unknown."""
        if items is None:
            return None
        found = self.model.items_.positions(items)
        return found[found >= 0]

    # --- who is asking -----------------------------------------------------------------------------------------

    def taste(self, who: History | Id) -> Taste:
        """Bring a history, or that of a user, onto the columns."""
        return self._of_history(who) if isinstance(who, History) else self._of_user(who)

    def _of_history(self, history: History) -> Taste:
        columns = self.model.items_.positions(history.ids)
        known = columns >= 0
        unknown: Sequence[Id] = ()
        if not known.all():
            unknown = [history.ids[at] for at in np.flatnonzero(~known).tolist()]
        if history.weights is None:  # an id named twice is one item seen
            distinct = np.unique(columns[known]).astype(np.int32)
            return Taste(distinct, np.ones(len(distinct), np.float32), unknown)
        distinct, places = np.unique(columns[known], return_inverse=True)
        given = np.array(history.weights, dtype=np.float64)[known]
        weights = np.bincount(places, given, minlength=len(distinct)).astype(np.float32)
        positive = weights > 0
        return Taste(distinct[positive].astype(np.int32), weights[positive], unknown)

    def _of_user(self, user: Id) -> Taste:
        if self.histories is None:
            raise Problem(422, "this model was saved without its users: give a history instead", "user")
        [row] = self.histories.users.positions([user]).tolist()
        if row < 0:
            reason = None if self.histories.dropped is None else self.histories.dropped.why(user)
            why = "is unknown to the model" if reason is None else f"was dropped by {reason} before the fit"
            raise Problem(404, f"user {shown(user)} {why}: give a history instead", "user")
        columns, weights = _row(self.histories.matrix, row)
        seen = None if self.histories.seen is None else _row(self.histories.seen, row)[0]
        [name] = self.histories.users.take(np.array([row]))
        return Taste(columns, weights, user=name, seen=seen if seen is not None and len(seen) else None)

    def matrix(self, tastes: Sequence[Taste]) -> Csr:
        """Return tastes as rows : (tastes, items)."""
        indptr = np.cumsum([0, *(len(taste.columns) for taste in tastes)], dtype=np.int32)
        if len(tastes) == 1:
            data, indices = tastes[0].weights, tastes[0].columns
        else:
            data = np.concatenate([taste.weights for taste in tastes])
            indices = np.concatenate([taste.columns for taste in tastes])
        return sp.csr_array((data, indices, indptr), shape=(len(tastes), len(self.catalog.items)))

    def seen(self, tastes: Sequence[Taste]) -> Csr | None:
        """Return what is seen beside the tastes as rows : (tastes, items), None if there is nothing."""
        if all(taste.seen is None for taste in tastes):
            return None
        rows = [np.empty(0, np.int32) if taste.seen is None else taste.seen for taste in tastes]
        indptr = np.cumsum([0, *map(len, rows)], dtype=np.int32)
        indices = np.concatenate(rows)
        return sp.csr_array(
            (np.ones(len(indices), bool), indices, indptr), shape=(len(tastes), len(self.catalog.items))
        )

    # --- the dials ---------------------------------------------------------------------------------------------

    def at(self, dials: Dials) -> HistoryRecommender:
        """Return the model with some dials turned, or as it is."""
        if not dials:
            return self.model
        first = next(iter(dials))
        return self.needs(first, first).with_dials(**dials)

    def standing(self, dials: Dials) -> _answers.Dials:
        """Return the values of all dials: those given, and the model's own for the others."""
        return cast(_answers.Dials, {**self.own, **dials})

    def needs(self, what: str, field: str | None = None) -> LinearAutoencoder:
        """Return the model if it is a linear autoencoder, which alone has dials, explanations and similar items."""
        if self.linear is None:
            raise Problem(422, f"a {type(self.model).__name__} has no {what}: leave it out, or serve an RDLAE", field)
        return self.linear

    def _describe(self, settings: Settings) -> Model:
        info = self.saved.info
        limits: Limits = {
            "history": settings.max_history,
            "k": settings.max_k,
            "batch": settings.max_batch,
            "ids": settings.max_ids,
            "xis": settings.max_xis,
            "results": settings.max_results,
            "explained": settings.max_explained,
            "body_bytes": settings.max_body_bytes,
        }
        return {
            "model": info["model"],
            "parameters": info["parameters"],
            **self.standing({}),
            "dials": list(self.model.dials),
            "xi_interval": None if self.linear is None else list(self.linear.xi_interval_),
            "user_norm": None if self.linear is None else self.linear.user_norm_,
            "title": info["title"],
            "data": info["data"],
            "fitted": {name: value for name, value in info["fitted"].items() if name != "plan"},
            "versions": info["versions"],
            "created": info["created"],
            "users": self.histories is not None,
            "titles": self.catalog.has_titles,
            "limits": limits,
            "loaded": self.loaded,
        }


def _row(matrix: Csr, row: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Return the columns and values of a row."""
    own = slice(*matrix.indptr[row : row + 2].tolist())
    return matrix.indices[own].astype(np.int32, copy=False), matrix.data[own]
