"""From histories to recommendations: everything that does not depend on how a model scores."""

import inspect
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from relae._common.progress import Progress
from relae.data import Ids, Interactions, decode_texts, encode_texts
from relae.errors import DataError, NotFittedError, UnknownItemsWarning
from relae.linalg import BYTES, INT64, Arrays, Csr, Dense, Expected, Layout, Vector
from relae.ranking import barred_columns, check_k, rank
from relae.recommender._estimator import Estimator
from relae.recommender._histories import Histories, encode
from relae.recommender._space import Range
from relae.recommender._state import State, whole
from relae.solvers import ensure_memory


class Recommender(Protocol):
    """What evaluation and the service ask of a model: histories in, the best k items of each out."""

    def recommend(self, histories: Any, k: int = 10) -> tuple[NDArray[Any], Dense]:
        """Return (users, k) columns for a sparse matrix of histories, −1 where there are fewer, and their scores."""
        ...

    def score(self, histories: Any) -> Dense:
        """Return the scores of all items : (users, items)."""
        ...


class HistoryRecommender(Estimator, ABC):
    """A model that scores items for histories, of known users and, if it `folds_in`, of new ones alike.

    A subclass fits itself, calls `_remember`, and says how a batch of histories is scored.

    Attributes
    ----------
    items_ : Ids
        Raw ids of the columns.
    titles_ : (items,) of object, or None
    item_counts_ : (items,)
        Users per item in the training data.
    n_users_ : int
    users_ : Ids, or None
        Raw ids of the users of the fit, as far as they had any; None if the model cannot tell who they were.
    """

    SPACE: ClassVar[Mapping[str, Range]] = {}  # the parameters worth tuning
    folds_in: ClassVar[bool] = True  # whether it scores users whom it has not been fitted to

    items_: Ids
    titles_: NDArray[np.object_] | None
    item_counts_: NDArray[np.int64]
    n_users_: int
    _user_ids_: Ids | Callable[[], Ids] | None = None  # what decodes them where they are still in a folder

    # --- what a model says of itself ---------------------------------------------------------------------------

    @abstractmethod
    def fit(self, data: Any, *, progress: Progress | None = None) -> Self:
        """Fit to interactions, or to a sparse matrix (users × items)."""

    @abstractmethod
    def _project(self, batch: Csr) -> Dense:
        """What `_scale` turns into scores of items that are not in the history : (users, items)."""

    def _space(self) -> Mapping[str, Range]:
        """What a search goes through: the `SPACE`, without parameters that another one has put out of use."""
        return self.SPACE

    def _most(self, data: Interactions) -> Mapping[str, int]:
        """The most of a parameter that data allow, by name: where a search has to end."""
        return {}

    def _scale(self) -> Vector | None:
        """A factor per column for what `_project` returns."""
        return None

    def _looks_from(self) -> Any:
        """Models that share what they have fitted and are equal in this have the same projections."""
        return None

    def for_many(self, users: int, xis: Iterable[Any] | None = None) -> "HistoryRecommender":
        """Return the model in the form that is quickest for so many histories, and these dials if it has any."""
        return self

    def _with_history(self, scores: Dense, batch: Csr) -> Dense:
        """Complete the scores for items that are in the history; may work in place."""
        return scores

    @abstractmethod
    def _users_at_once(self) -> int:
        """How many histories to score at a time."""

    @property
    def holds_histories(self) -> bool:
        """Whether what is fitted, and so a folder of it, tells what each user of the fit has, though not who it is."""
        return False

    @property
    @abstractmethod
    def _dtype(self) -> np.dtype[np.floating]:
        """The type of scores."""

    def _interactions(self, data: Interactions | Any) -> Interactions:
        """Return what to fit to; nothing to fit to is an error."""
        interactions = data if isinstance(data, Interactions) else Interactions(data)
        if interactions.n_interactions == 0:
            raise DataError(
                f"there is nothing to fit: {interactions.n_users:,} users × {interactions.n_items:,} items, "
                "no interactions"
            )
        return interactions

    def _remember(self, interactions: Interactions) -> None:
        """Keep what recommendations need of the training data."""
        self.items_, self.titles_ = interactions.items, interactions.titles
        self.item_counts_ = np.bincount(interactions.matrix.indices, minlength=interactions.n_items)
        self.n_users_ = interactions.n_users
        self._user_ids_ = interactions.users

    @property
    def users_(self) -> Ids | None:
        """The raw ids of the users of the fit; None if the model cannot tell who they were."""
        if callable(self._user_ids_):
            self._user_ids_ = self._user_ids_()
        return self._user_ids_

    # --- on disk -----------------------------------------------------------------------------------------------

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        form: str = "fitted",
        histories: Interactions | None = None,
        title: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Save the model as a folder that `relae.load` opens; see `relae.store.save`."""
        from relae.store import save

        save(self, path, form=form, histories=histories, title=title, progress=progress)

    def _state(self, form: str) -> State:
        """What the fit has found, as plain arrays and a few facts; `form` is of the linear autoencoders."""
        arrays: dict[str, Any] = {"items": self.items_.encode(), "item_counts": self.item_counts_}
        if self.titles_ is not None:
            arrays["titles"] = encode_texts(self.titles_)
        return State({"users": self.n_users_}, arrays)

    @classmethod
    def _layout(cls, facts: Mapping[str, Any], names: Collection[str]) -> Layout:
        """Return what `_restore` expects of its arrays, where these facts and arrays of these names were saved."""
        return {
            "item_counts": Expected(INT64, ("items",)),
            "items": Expected(INT64 + BYTES, ("",)),
            "titles": Expected(BYTES, ("",), optional=True),
        }

    def _restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        """Take up what `_state` gave, in arrays of the layout; a ValueError or KeyError if it cannot have given that.

        Every position by which arrays are read later has to be checked here: compiled code trusts it.
        """
        counts = np.array(arrays["item_counts"])
        items = Ids.decode(arrays["items"], len(counts))
        titles = decode_texts(arrays["titles"], len(counts)) if "titles" in arrays else None
        if counts.min() < 0:
            raise ValueError("item_counts has numbers below 0")
        self.items_, self.titles_, self.item_counts_, self.n_users_ = items, titles, counts, whole(facts, "users")

    # --- recommendations ---------------------------------------------------------------------------------------

    def recommend(
        self,
        histories: Any,
        k: int = 10,
        *,
        exclude_seen: bool = True,
        seen: Any = None,
        allow: Sequence[Any] | None = None,
        deny: Sequence[Any] | None = None,
        progress: Progress | None = None,
    ) -> tuple[NDArray[Any], Dense]:
        """Recommend k items to each history.

        Users need not be known from training: a history is all that counts. A history without a known item gets
        the items with the most users, with a score of 0.

        Parameters
        ----------
        histories
            A sparse matrix (users × items), and columns are returned; or Interactions, one list of raw ids, a mapping
            from raw ids to weights, or a list of such histories, and raw ids are returned.
        k : int
            Exactly so many columns come back; where there are fewer items to recommend, the rest is
            −1 (or None for raw ids) with a score of −inf.
        exclude_seen : bool
            Leave out the items of the history, and all else that the user has seen.
        seen
            What each user has had beside the history and is not to get either, such as what was rated low: one for each
            history, in the form of histories. Interactions know it themselves: see `Interactions.seen`.
        allow, deny
            Items (columns or raw ids, as the histories are) that alone, or never, are recommended. Unknown raw ids
            are ignored.

        Returns
        -------
        ids, scores : (users, k) each; (k,) for a single history
        """
        self._check_fitted()
        given = self.encode(histories, seen, exclude_seen)
        [result] = self._ranked(given, k, [self], exclude_seen, allow, deny, progress)
        return result

    def _ranked(
        self,
        given: Histories,
        k: int,
        views: Sequence["HistoryRecommender"],
        exclude_seen: bool = True,
        allow: Sequence[Any] | None = None,
        deny: Sequence[Any] | None = None,
        progress: Progress | None = None,
    ) -> list[tuple[NDArray[Any], Dense]]:
        """Recommend by several models that share what they have fitted; those side by side share projections."""
        k = check_k(k)
        barred = barred_columns(len(self.items_), self._columns(allow, given.raw), self._columns(deny, given.raw))
        users = given.matrix.shape[0]
        if k > len(self.items_):  # longer than lists can be, and perhaps than memory is
            ensure_memory(
                float(users) * k * len(views) * (8 + self._dtype.itemsize),
                f"a table of k={k:,} places for {users:,} users",
                f"there are {len(self.items_):,} items, so that a larger k gives nothing more",
            )
        results = [(np.empty((users, k), np.int64), np.empty((users, k), self._dtype)) for _ in views]
        scales, places = [view._scale() for view in views], [view._looks_from() for view in views]
        for start, stop in self._batches(users):
            batch = given.matrix[start:stop]
            beside = None if given.seen is None else given.seen[start:stop]
            skipped = batch if beside is None else batch + beside
            empty = np.flatnonzero(np.diff(batch.indptr) == 0)
            popular = self._popular(k, barred, None if beside is None else beside[empty]) if len(empty) else None
            best: tuple[NDArray[np.int64], Dense] | tuple[None, None] = None, None
            for at, (view, scale, (ids, scores)) in enumerate(zip(views, scales, results, strict=True)):
                if at == 0 or places[at] != places[at - 1]:
                    projected = view._project(batch)
                if exclude_seen:
                    best = rank(projected, k, scale=scale, seen=skipped, barred=barred, hints=best[0])
                else:
                    scaled = projected.copy() if scale is None else projected * scale
                    best = rank(view._with_history(scaled, batch), k, barred=barred, hints=best[0])
                ids[start:stop], scores[start:stop] = best
                if popular is not None:
                    ids[start + empty] = popular
                    scores[start + empty] = np.where(popular < 0, -np.inf, 0.0)
            if progress is not None:
                progress("recommend", stop / users)
        return [self._returned(given, ids, scores) for ids, scores in results]

    def _popular(self, k: int, barred: NDArray[np.bool_] | None, seen: Csr | None) -> NDArray[np.int64]:
        """Return the items with the most users : (1, k); for users who have seen something : (users, k)."""
        counts = self.item_counts_[None].astype(np.float64)
        rows = counts if seen is None else np.repeat(counts, seen.shape[0], axis=0)
        return rank(rows, k, seen=seen, barred=barred)[0]

    def score(self, histories: Any) -> Dense:
        """Return the scores of all items, seen ones included : (users, items); (items,) for a single history."""
        given = self.encode(histories)
        users, n = given.matrix.shape
        ensure_memory(
            float(users) * n * self._dtype.itemsize,
            f"the scores of {users:,} users × {n:,} items",
            "score fewer users at a time, or use recommend",
        )
        scale = self._scale()
        scores = np.empty((users, n), self._dtype)
        for start, stop in self._batches(users):
            batch = given.matrix[start:stop]
            scores[start:stop] = self._project(batch)
            if scale is not None:
                scores[start:stop] *= scale
            self._with_history(scores[start:stop], batch)
        return scores[0] if given.single else scores

    def encode(self, histories: Any, seen: Any = None, exclude_seen: bool = True) -> Histories:
        """Bring histories onto the model's columns; items it has never seen are left out, counted and warned of.

        `seen` and `exclude_seen` are those of `recommend`.
        """
        self._check_fitted()
        if seen is not None and not exclude_seen:
            raise ValueError("seen tells what is not to be recommended: leave it out, or leave exclude_seen=False out")
        given = encode(histories, self.items_, seen)
        if not exclude_seen:
            given = replace(given, seen=None)
        if given.unknown:
            total = given.unknown + given.matrix.nnz
            message = f"{given.unknown:,} of {total:,} items in the histories are unknown to the model and were ignored"
            alike = self.items_.alike(given.stranger) if given.single and given.stranger is not None else []
            if alike:
                message += f": {given.stranger!r}, did you mean {' or '.join(map(repr, alike))}?"
            warnings.warn(message, UnknownItemsWarning, stacklevel=_frames_inside() + 1)
        return given

    # --- small change ------------------------------------------------------------------------------------------

    def _check_fitted(self) -> None:
        if "items_" not in self.__dict__:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit(data) first")

    def _batches(self, count: int) -> Iterator[tuple[int, int]]:
        size = max(1, self._users_at_once())
        for start in range(0, count, size):
            yield start, min(start + size, count)

    def _column_of(self, item: Any) -> int:
        self._check_fitted()
        [column] = self.items_.positions([item])
        if column < 0:
            raise DataError(f"item {item!r} is unknown to the model: it has {len(self.items_):,} items, {self.items_}")
        return int(column)

    def _columns(self, items: Sequence[Any] | None, raw: bool) -> NDArray[np.int64] | None:
        if items is None:
            return None
        if raw:
            found = self.items_.positions(items)
            return found[found >= 0]
        columns = np.asarray(items)
        whole = columns.size == 0 or columns.dtype.kind in "iu"
        if not whole or (columns.size and (columns.min() < 0 or columns.max() >= len(self.items_))):
            raise DataError(f"allow and deny must be columns from 0 to {len(self.items_) - 1:,}, got {items!r}")
        return columns.astype(np.int64)

    def _returned(self, given: Histories, columns: NDArray[np.int64], scores: Dense) -> tuple[NDArray[Any], Dense]:
        ids: NDArray[Any] = self.items_.take(columns) if given.raw else columns
        return (ids[0], scores[0]) if given.single else (ids, scores)

    def _facts(self) -> dict[str, str]:
        """What a reader wants to know of a fitted model, by name."""
        return {"fitted to": f"{self.n_users_:,} users × {len(self.items_):,} items"}

    def _repr_html_(self) -> str:
        """Return a small table for notebooks: the parameters, and what was fitted."""
        rows = {name: repr(value) for name, value in self.get_params().items()}
        rows |= self._facts() if "items_" in self.__dict__ else {"fitted to": "nothing yet"}
        cells = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in rows.items()
        )
        return f"<table><caption><b>{escape(type(self).__name__)}</b></caption>{cells}</table>"


def _frames_inside() -> int:
    """How many frames of this package lie between here and the caller's code."""
    depth, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("relae."):
        depth, frame = depth + 1, frame.f_back
    return depth - 1  # this helper itself does not count
