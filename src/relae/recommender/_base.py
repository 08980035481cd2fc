"""From histories to recommendations: everything that does not depend on how a model scores."""

import inspect
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any, ClassVar, Protocol, Self, overload

import numpy as np
from numpy.typing import NDArray

from relae._common.progress import Progress
from relae.data import Ids, Interactions, InteractionsLike, SparseMatrix, as_interactions, decode_texts, encode_texts
from relae.errors import DataError, NotFittedError, Option, ParameterError, UnknownItemsWarning
from relae.linalg import BYTES, INT64, Arrays, Csr, Dense, Expected, Layout, Vector
from relae.ranking import barred_columns, check_k, rank
from relae.recommender._estimator import Estimator
from relae.recommender._histories import Histories, HistoriesLike, RawHistories, encode
from relae.recommender._space import Range
from relae.recommender._state import State, whole
from relae.solvers import ensure_memory

_BATCH_BYTES = 64e6  # of scores at a time


class SimpleRecommender(Protocol):
    """The least that can be evaluated: histories in, the best k items of each out.

    If it has `items_`, the raw ids of its columns, these may be in another order than those of a split.
    """

    def recommend(self, histories: Csr, k: int = 10) -> tuple[NDArray[Any], Dense]:
        """Return (users, k) columns for a sparse matrix of histories, −1 where there are fewer, and their scores."""
        ...


class Recommender(Protocol):
    """All that `evaluate` asks of a model; every `HistoryRecommender` is one."""

    @property
    def dials(self) -> tuple[str, ...]:
        """The parameters that `recommend_path` takes; none if it is empty."""
        ...

    @property
    def items_(self) -> Ids | None:
        """The raw ids of the columns; None if they are those of the split."""
        ...

    def for_many(self, users: int, xis: Iterable[Any] | None = None) -> "Recommender":
        """Return the model in the form that is fastest for this number of histories and these dials."""
        ...

    def recommend(
        self,
        histories: Csr,
        k: int = 10,
        *,
        seen: Csr | None = None,
        times: NDArray[np.int64] | None = None,
        allow: Sequence[Any] | None = None,
        progress: Progress | None = None,
    ) -> tuple[NDArray[Any], Dense]:
        """Return (users, k) columns for a sparse matrix of histories, −1 where there are fewer, and their scores."""
        ...

    def recommend_path(
        self,
        histories: Csr,
        xis: Iterable[Any],
        k: int = 10,
        *,
        seen: Csr | None = None,
        times: NDArray[np.int64] | None = None,
        allow: Sequence[Any] | None = None,
        progress: Progress | None = None,
    ) -> list[tuple[NDArray[Any], Dense]]:
        """Return what `recommend` does for each setting of the dials."""
        ...


class HistoryRecommender(Estimator, ABC):
    """A model that scores items for histories, of known users and, if it `folds_in`, of new ones alike.

    A subclass fits itself, calls `remember`, and says how a batch of histories is scored.

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

    # What a model can do: stated by its class, and asked nowhere else.
    folds_in: ClassVar[bool] = True
    """Scores users whom it has not been fitted to."""
    trains: ClassVar[bool] = False
    """Learns by epochs: `fit` takes `validation`, `checkpoint` and `time_budget`, and leaves a `curve_`."""
    uses_features: ClassVar[bool] = False
    """Uses features of items: `fit` takes `item_features` and `feature_weight`."""
    closed_form: ClassVar[bool] = False
    """Is solved and not trained: `fit` takes `solver`."""
    uses_times: ClassVar[bool] = False
    """Scores depend on the order of a history, which `weigh` is told."""
    explains: ClassVar[bool] = False
    """Has `explain`, `explain_all` and `similar_items`."""

    @property
    def dials(self) -> tuple[str, ...]:
        """Parameters that can be changed on a fitted model by `with_dials`, and compared by `recommend_path`."""
        return ()

    items_: Ids
    titles_: NDArray[np.object_] | None
    item_counts_: NDArray[np.int64]
    n_users_: int
    _user_ids_: Ids | Callable[[], Ids] | None = None

    # --- what a model implements -------------------------------------------------------------------------------

    @abstractmethod
    def fit(self, data: InteractionsLike, *, progress: Progress | None = None) -> Self:
        """Fit to interactions, or to a sparse matrix (users × items).

        What else it takes, always by keyword, follows from the facts above: see `fit_options`.
        """

    @classmethod
    def fit_options(cls) -> tuple[str, ...]:
        """Return the names of what `fit` takes beside data and progress."""
        return (
            *(("validation", "checkpoint", "time_budget") if cls.trains else ()),
            *(("item_features", "feature_weight") if cls.uses_features else ()),
            *(("solver",) if cls.closed_form else ()),
        )

    def fit_with(self, data: InteractionsLike, *, progress: Progress | None = None, **options: Any) -> Self:
        """Fit with those of the options that `fit` takes and that are not None."""
        taken = {name: options[name] for name in self.fit_options() if options.get(name) is not None}
        return self.fit(data, progress=progress, **taken)

    def weigh(self, batch: Csr, times: NDArray[np.int64] | None) -> Csr:
        """Return histories weighed by the time of their items, for `project`; the same cells, none of them 0.

        `times` has a number per stored entry, which rises with time; None if the order is not known.
        """
        return batch

    @abstractmethod
    def project(self, batch: Csr) -> Dense:
        """Return projections of histories; times `score_scale` they are scores of unseen items : (users, items)."""

    def search_space(self) -> Mapping[str, Range]:
        """Return the ranges to search: the `SPACE`, without parameters that have no effect beside others."""
        return self.SPACE

    def limits(self, data: Interactions) -> Mapping[str, int]:
        """Return the largest values that the data allow, by parameter: a search ends there."""
        return {}

    def left_out(self, data: Interactions, dials: Sequence[Any]) -> Any:
        """Return what ranks items for users of the fit as models fitted without them would; None is the model's dial.

        A DataError if that cannot be exact; see `relae.evaluation.leave_one_out`.
        """
        raise DataError(
            f"leave-one-out needs a closed form, which {type(self).__name__} does not have: judge it by held-out users "
            "instead, as evaluate and hold_out_users do"
        )

    def score_scale(self) -> Vector | None:
        """Return a factor per column for what `project` returns : (items,); None for none."""
        return None

    def score_offset(self) -> Vector | None:
        """Return what is added to the scores of each column, whatever the history : (items,); None for nothing."""
        return None

    def projection_key(self) -> Any:
        """Return a value that is equal for models with the same fit and the same projections."""
        return None

    def for_many(self, users: int, xis: Iterable[Any] | None = None) -> "HistoryRecommender":
        """Return the model in the form that is fastest for this number of histories and these dials."""
        return self

    def with_dials(self, **values: float | None) -> "HistoryRecommender":
        """Return this model with other values of its `dials`, without a refit; None leaves a dial as it is."""
        raise self._no_dials(values)

    def recommend_path(
        self,
        histories: HistoriesLike,
        xis: Iterable[Any],
        k: int = 10,
        *,
        exclude_seen: bool = True,
        seen: HistoriesLike | None = None,
        times: NDArray[np.int64] | None = None,
        allow: Sequence[Any] | None = None,
        deny: Sequence[Any] | None = None,
        progress: Progress | None = None,
    ) -> list[tuple[NDArray[Any], Dense]]:
        """Recommend at several settings of the `dials`: what `recommend` returns for each of them."""
        raise self._no_dials(["ξ"])

    def _no_dials(self, names: Iterable[str]) -> ValueError:
        return ValueError(f"{type(self).__name__} has no {' or '.join(names)} to change on a fitted model")

    def add_history(self, scores: Dense, batch: Csr) -> Dense:
        """Complete the scores for items that are in the history; may work in place."""
        return scores

    def users_at_once(self) -> int:
        """Return how many histories to score at a time."""
        return int(_BATCH_BYTES / (self.score_dtype.itemsize * len(self.items_)))

    @property
    def holds_histories(self) -> bool:
        """True if the fitted arrays, and so a saved folder, contain the history of each user, without the ids."""
        return False

    @property
    def score_dtype(self) -> np.dtype[np.floating]:
        """The type of scores."""
        return np.dtype(np.float64)

    def to_interactions(self, data: InteractionsLike) -> Interactions:
        """Return data as Interactions; a DataError if there are none."""
        interactions = as_interactions(data)
        if interactions.n_interactions == 0:
            raise DataError(
                f"there is nothing to fit: {interactions.n_users:,} users × {interactions.n_items:,} items, "
                "no interactions"
            )
        return interactions

    def remember(self, interactions: Interactions) -> None:
        """Keep what recommendations need of the training data."""
        self.items_, self.titles_ = interactions.items, interactions.titles
        self.item_counts_ = np.bincount(interactions.matrix.indices, minlength=interactions.n_items)
        self.n_users_ = interactions.n_users
        self.users_ = interactions.users

    @property
    def users_(self) -> Ids | None:
        """The raw ids of the users of the fit; None if the model does not know them."""
        if callable(self._user_ids_):
            self._user_ids_ = self._user_ids_()
        return self._user_ids_

    @users_.setter
    def users_(self, ids: Ids | Callable[[], Ids] | None) -> None:
        """Set the ids, or a function that decodes them when they are first asked for."""
        self._user_ids_ = ids

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
        import relae  # imported late, because `store` imports this package

        relae.store.save(self, path, form=form, histories=histories, title=title, progress=progress)

    def state(self, form: str) -> State:
        """Return the fit as plain arrays and a few facts; `form` is that of a linear autoencoder's inverse."""
        arrays: dict[str, Any] = {"items": self.items_.encode(), "item_counts": self.item_counts_}
        if self.titles_ is not None:
            arrays["titles"] = encode_texts(self.titles_)
        return State({"users": self.n_users_}, arrays)

    @classmethod
    def layout(cls, facts: Mapping[str, Any], names: Collection[str]) -> Layout:
        """Return what `restore` expects of its arrays, where these facts and arrays of these names were saved."""
        return {
            "item_counts": Expected(INT64, ("items",)),
            "items": Expected(INT64 + BYTES, ("",)),
            "titles": Expected(BYTES, ("",), optional=True),
        }

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        """Restore the fit from what `state` returned; a ValueError or KeyError if it is not valid.

        Every position by which arrays are read later has to be checked here: compiled code trusts it.
        """
        counts = np.array(arrays["item_counts"])
        items = Ids.decode(arrays["items"], len(counts))
        titles = decode_texts(arrays["titles"], len(counts)) if "titles" in arrays else None
        if counts.min() < 0:
            raise ValueError("item_counts has numbers below 0")
        self.items_, self.titles_, self.item_counts_, self.n_users_ = items, titles, counts, whole(facts, "users")

    # --- recommendations ---------------------------------------------------------------------------------------

    @overload
    def recommend(
        self,
        histories: SparseMatrix,
        k: int = 10,
        *,
        exclude_seen: bool = True,
        seen: HistoriesLike | None = None,
        times: NDArray[np.int64] | None = None,
        allow: Sequence[Any] | None = None,
        deny: Sequence[Any] | None = None,
        progress: Progress | None = None,
    ) -> tuple[NDArray[np.int64], Dense]: ...

    @overload
    def recommend(
        self,
        histories: RawHistories,
        k: int = 10,
        *,
        exclude_seen: bool = True,
        seen: HistoriesLike | None = None,
        times: NDArray[np.int64] | None = None,
        allow: Sequence[Any] | None = None,
        deny: Sequence[Any] | None = None,
        progress: Progress | None = None,
    ) -> tuple[NDArray[Any], Dense]: ...

    def recommend(
        self,
        histories: HistoriesLike,
        k: int = 10,
        *,
        exclude_seen: bool = True,
        seen: HistoriesLike | None = None,
        times: NDArray[np.int64] | None = None,
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
        times
            When each entry of a sparse matrix happened, in the order of its data, for models that use it
            (`uses_times`). Lists are in the order of time, the latest item last, and Interactions have times.
        allow, deny
            Items (columns or raw ids, as the histories are) that alone, or never, are recommended. Unknown raw ids
            are ignored.

        Returns
        -------
        ids, scores : (users, k) each; (k,) for a single history
        """
        self.check_fitted()
        encoded = self.encode(histories, seen, exclude_seen, times)
        [result] = self.recommend_by(encoded, k, [self], exclude_seen, allow, deny, progress)
        return result

    def recommend_by(
        self,
        histories: Histories,
        k: int,
        views: Sequence["HistoryRecommender"],
        exclude_seen: bool = True,
        allow: Sequence[Any] | None = None,
        deny: Sequence[Any] | None = None,
        progress: Progress | None = None,
    ) -> list[tuple[NDArray[Any], Dense]]:
        """Recommend by several models with the same fit; neighbours in the sequence share projections."""
        k = check_k(k)
        barred = barred_columns(
            len(self.items_), self._columns(allow, histories.raw), self._columns(deny, histories.raw)
        )
        users = histories.matrix.shape[0]
        if k > len(self.items_):  # longer than lists can be, and perhaps than memory is
            ensure_memory(
                float(users) * k * len(views) * (8 + self.score_dtype.itemsize),
                f"a table of {k:,} places for {users:,} users",
                f"there are {len(self.items_):,} items, so that a larger k gives nothing more",
            )
        results = [(np.empty((users, k), np.int64), np.empty((users, k), self.score_dtype)) for _ in views]
        scales, keys = [view.score_scale() for view in views], [view.projection_key() for view in views]
        offsets = [view.score_offset() for view in views]
        for start, stop in self.batches(users):
            batch, times = histories.batch(start, stop)
            beside = None if histories.seen is None else histories.seen[start:stop]
            skipped = batch if beside is None else batch + beside
            empty = np.flatnonzero(np.diff(batch.indptr) == 0)
            seen_of_empty = None if beside is None else beside[empty]
            popular = None
            best: tuple[NDArray[np.int64], Dense] | tuple[None, None] = None, None
            for at, (view, scale, offset, (ids, scores)) in enumerate(
                zip(views, scales, offsets, results, strict=True)
            ):
                if len(empty) and (popular is None or offset is not None or offsets[at - 1] is not None):
                    popular = self._popular(k, barred, seen_of_empty, offset)
                if at == 0 or keys[at] != keys[at - 1]:
                    weighed = view.weigh(batch, times)
                    projected = view.project(weighed)
                if exclude_seen:
                    best = rank(projected, k, scale=scale, seen=skipped, barred=barred, hints=best[0], offset=offset)
                else:
                    scaled = projected.copy() if scale is None else projected * scale
                    best = rank(view.add_history(scaled, weighed), k, barred=barred, hints=best[0], offset=offset)
                ids[start:stop], scores[start:stop] = best
                if popular is not None:
                    ids[start + empty] = popular
                    scores[start + empty] = np.where(popular < 0, -np.inf, 0.0 if offset is None else offset[popular])
            if progress is not None:
                progress("recommend", stop / users)
        return [self._returned(histories, ids, scores) for ids, scores in results]

    def _popular(
        self, k: int, barred: NDArray[np.bool_] | None, seen: Csr | None, offset: Vector | None
    ) -> NDArray[np.int64]:
        """Return the items with the largest offsets, or the most users : (1, k), or (users, k) where some are seen."""
        counts = (self.item_counts_ if offset is None else offset)[None].astype(np.float64)
        rows = counts if seen is None else np.repeat(counts, seen.shape[0], axis=0)
        return rank(rows, k, seen=seen, barred=barred)[0]

    def score(self, histories: HistoriesLike) -> Dense:
        """Return the scores of all items, seen ones included : (users, items); (items,) for a single history."""
        encoded = self.encode(histories)
        users, n = encoded.matrix.shape
        ensure_memory(
            float(users) * n * self.score_dtype.itemsize,
            f"the scores of {users:,} users × {n:,} items",
            "score fewer users at a time, or use recommend",
        )
        scale, offset = self.score_scale(), self.score_offset()
        scores = np.empty((users, n), self.score_dtype)
        for start, stop in self.batches(users):
            batch = self.weigh(*encoded.batch(start, stop))
            scores[start:stop] = self.project(batch)
            if scale is not None:
                scores[start:stop] *= scale
            self.add_history(scores[start:stop], batch)
            if offset is not None:
                scores[start:stop] += offset.astype(scores.dtype)
        return scores[0] if encoded.single else scores

    def encode(
        self,
        histories: HistoriesLike,
        seen: HistoriesLike | None = None,
        exclude_seen: bool = True,
        times: NDArray[np.int64] | None = None,
    ) -> Histories:
        """Bring histories onto the model's columns; items it has never seen are left out, counted and warned of.

        `seen`, `exclude_seen` and `times` are those of `recommend`.
        """
        self.check_fitted()
        if seen is not None and not exclude_seen:
            raise ParameterError(
                Option("seen"),
                " tells what is not to be recommended: leave it out, or leave ",
                Option("exclude_seen", False),
                " out",
            )
        encoded = encode(histories, self.items_, seen, times)
        if not exclude_seen:
            encoded = replace(encoded, seen=None)
        if encoded.unknown:
            total = encoded.unknown + encoded.matrix.nnz
            message = (
                f"{encoded.unknown:,} of {total:,} items in the histories are unknown to the model and were ignored"
            )
            alike = self.items_.alike(encoded.stranger) if encoded.single and encoded.stranger is not None else []
            if alike:
                message += f": {encoded.stranger!r}, did you mean {' or '.join(map(repr, alike))}?"
            warnings.warn(message, UnknownItemsWarning, stacklevel=_frames_inside() + 1)
        return encoded

    # --- helpers -----------------------------------------------------------------------------------------------

    def check_fitted(self) -> None:
        """Raise a NotFittedError if there is no fit yet."""
        if "items_" not in self.__dict__:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit(data) first")

    def batches(self, count: int) -> Iterator[tuple[int, int]]:
        """Yield the start and stop of batches of at most `users_at_once` of `count` histories."""
        size = max(1, self.users_at_once())
        for start in range(0, count, size):
            yield start, min(start + size, count)

    def column_of(self, item: Any) -> int:
        """Return the column of a raw id; a DataError if it is unknown."""
        self.check_fitted()
        [column] = self.items_.positions([item])
        if column < 0:
            raise DataError(f"item {item!r} is unknown to the model: it has {len(self.items_):,} items, {self.items_}")
        return int(column)

    def _columns(self, items: Sequence[Any] | None, raw: bool) -> NDArray[np.int64] | None:
        if items is None:
            return None
        if raw:
            positions = self.items_.positions(items)
            return positions[positions >= 0]
        columns = np.asarray(items)
        whole = columns.size == 0 or columns.dtype.kind in "iu"
        if not whole or (columns.size and (columns.min() < 0 or columns.max() >= len(self.items_))):
            raise DataError(f"allow and deny must be columns from 0 to {len(self.items_) - 1:,}, got {items!r}")
        return columns.astype(np.int64)

    def _returned(self, histories: Histories, columns: NDArray[np.int64], scores: Dense) -> tuple[NDArray[Any], Dense]:
        ids: NDArray[Any] = self.items_.take(columns) if histories.raw else columns
        return (ids[0], scores[0]) if histories.single else (ids, scores)

    def facts(self) -> dict[str, str]:
        """Return the main facts of a fitted model, as texts by name."""
        return {"fitted to": f"{self.n_users_:,} users × {len(self.items_):,} items"}

    def _repr_html_(self) -> str:
        """Return a small table for notebooks: the parameters, and what was fitted."""
        rows = {name: repr(value) for name, value in self.get_params().items()}
        rows |= self.facts() if "items_" in self.__dict__ else {"fitted to": "nothing yet"}
        cells = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in rows.items()
        )
        return f"<table><caption><b>{escape(type(self).__name__)}</b></caption>{cells}</table>"


def _frames_inside() -> int:
    """Return the number of frames of this package between here and the caller's code."""
    depth, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("relae."):
        depth, frame = depth + 1, frame.f_back
    return depth - 1  # this helper itself does not count
