"""What the six models share: one fitted inverse, and everything that is read from it."""

import inspect
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from relae import algebra
from relae.data import Ids, Interactions
from relae.errors import DataError, NotFittedError, UnknownItemsWarning
from relae.linalg import Csr, Dense
from relae.models._estimator import Estimator
from relae.models._histories import Histories, encode
from relae.ranking import barred_columns, rank
from relae.solvers import Inverse, Plan, Progress, ensure_memory, solve

_Model = TypeVar("_Model", bound="LinearAutoencoder")


@dataclass(frozen=True)
class Explanation:
    """Why an item has its score: what each item of the history adds to it, the largest first.

    `score` is the sum of `contributions`, which can be negative.
    """

    item: Any
    score: float
    items: list[Any]
    contributions: NDArray[np.float64]

    @property
    def shares(self) -> NDArray[np.float64]:
        """Each contribution as a part of what all positive ones add up to."""
        positive = self.contributions.clip(min=0).sum()
        return self.contributions / positive if positive > 0 else np.zeros_like(self.contributions)


def suggested_l2(x: Csr) -> float:
    """λ = 20·√(mean users per item) · mean square of the values: where to start when nothing was tuned.

    The best λ is flat over a factor of two, and grows with the square root of the counts: this one lies within a
    factor of about two of the authors' tuned λ on most of their data sets. Tuning does better.
    """
    users_per_item = x.nnz / int(np.count_nonzero(np.bincount(x.indices)))
    return float(20.0 * np.sqrt(users_per_item) * np.mean(x.data.astype(np.float64) ** 2))


class LinearAutoencoder(Estimator):
    """B = I − P·diag(w): fitted once, ranked for any ξ.

    Attributes
    ----------
    inverse_ : Inverse
        P = (XᵀX + Λ)⁻¹.
    penalty_ : (items,)
        Λ.
    residual_ : float
        ‖(G+Λ)Pv − v‖/‖v‖ of random probes: how exact the inverse is.
    plan_ : Plan
        The solver that was chosen, and what it was forecast to cost.
    l2_ : float
        The penalty used: `l2`, or the suggested one.
    items_ : Ids
        Raw ids of the columns.
    titles_ : (items,) of object, or None
    item_counts_ : (items,)
        Users per item in the training data.
    """

    l2: float | None
    solver: str
    dtype: str

    inverse_: Inverse
    penalty_: NDArray[np.float64]
    inverse_diagonal_: NDArray[np.float64]
    residual_: float
    plan_: Plan
    l2_: float
    items_: Ids
    titles_: NDArray[np.object_] | None
    item_counts_: NDArray[np.int64]
    n_users_: int

    # parameters of some of the models, constants of the others
    dropout: float
    xi: float

    def fit(self, data: Interactions | Any, *, progress: Progress | None = None) -> Self:
        """Fit to interactions; an earlier fit is kept until this one is done.

        Parameters
        ----------
        data
            Interactions, or a sparse matrix (users × items) with values that are finite and not negative.
        progress
            Called with the name of a stage and the fraction of it that is done.
        """
        algebra.check_xi(self.xi)
        interactions = data if isinstance(data, Interactions) else Interactions(data)
        x = interactions.matrix
        if x.nnz == 0:
            raise DataError(f"there is nothing to fit: {x.shape[0]:,} users × {x.shape[1]:,} items, no interactions")
        gram_diagonal = _gram_diagonal(x)
        l2 = suggested_l2(x) if self.l2 is None else self.l2
        penalty = algebra.penalty(gram_diagonal, l2, self.dropout)
        solution = solve(x, penalty, solver=self.solver, dtype=self.dtype, progress=progress)
        self.inverse_, self.plan_, self.residual_ = solution.inverse, solution.plan, solution.residual
        self.penalty_, self.inverse_diagonal_, self.l2_ = penalty, solution.inverse.diagonal(), float(l2)
        self.items_, self.titles_ = interactions.items, interactions.titles
        self.item_counts_ = np.bincount(x.indices, minlength=x.shape[1])
        self.n_users_ = interactions.n_users
        return self

    # --- what is read from the inverse -------------------------------------------------------------------------

    def column_weights(self, xi: float | None = None) -> NDArray[np.float64]:
        """Return w = max(Λ, (1 − ξ)/diag P) : (items,), for the model's ξ or another one."""
        self._check_fitted()
        return algebra.column_weights(self.penalty_, self.inverse_diagonal_, self.xi if xi is None else xi)

    @property
    def xi_interval_(self) -> tuple[float, float]:
        """The ξ between which recommendations change for this data."""
        self._check_fitted()
        return algebra.xi_interval(self.penalty_, self.inverse_diagonal_)

    def weights(self) -> Dense:
        """Return the dense B : (items, items), where it fits into memory."""
        self._check_fitted()
        n, itemsize = len(self.items_), self.inverse_.dtype.itemsize
        ensure_memory(
            n * n * itemsize,
            f"the dense B of {n:,} items",
            "use recommend, explain or similar_items, which need no B",
        )
        scale = -self.column_weights().astype(self.inverse_.dtype)
        dense = np.empty((n, n), self.inverse_.dtype)
        for start, stop in self._batches(n):
            np.multiply(self.inverse_.rows(np.arange(start, stop)), scale, out=dense[start:stop])
        dense.flat[:: n + 1] += 1
        return dense

    # --- recommendations ---------------------------------------------------------------------------------------

    def recommend(
        self,
        histories: Any,
        k: int = 10,
        *,
        exclude_seen: bool = True,
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
            Leave out the items of the history.
        allow, deny
            Items (columns or raw ids, as the histories are) that alone, or never, are recommended. Unknown raw ids
            are ignored.

        Returns
        -------
        ids, scores : (users, k) each; (k,) for a single history
        """
        [result] = self.recommend_path(
            histories, [self.xi], k, exclude_seen=exclude_seen, allow=allow, deny=deny, progress=progress
        )
        return result

    def recommend_path(
        self,
        histories: Any,
        xis: Iterable[float],
        k: int = 10,
        *,
        exclude_seen: bool = True,
        allow: Sequence[Any] | None = None,
        deny: Sequence[Any] | None = None,
        progress: Progress | None = None,
    ) -> list[tuple[NDArray[Any], Dense]]:
        """Recommend for several ξ at the price of one projection: an (ids, scores) as of `recommend` for each."""
        given = self.encode(histories)
        scales = [-self.column_weights(xi).astype(self.inverse_.dtype) for xi in xis]
        barred = barred_columns(len(self.items_), self._columns(allow, given.raw), self._columns(deny, given.raw))
        users = given.matrix.shape[0]
        popular, _ = rank(self.item_counts_[None].astype(np.float64), k, barred=barred)
        results = [(np.empty((users, k), np.int64), np.empty((users, k), self.inverse_.dtype)) for _ in scales]
        for start, stop in self._batches(users):
            batch = given.matrix[start:stop]
            projected = self.inverse_.project(batch)
            empty = np.flatnonzero(np.diff(batch.indptr) == 0)
            for scale, (ids, scores) in zip(scales, results, strict=True):
                if exclude_seen:
                    best = rank(projected, k, scale=scale, seen=batch, barred=barred)
                else:
                    best = rank(_with_history(projected * scale, batch), k, barred=barred)
                ids[start:stop], scores[start:stop] = best
                ids[start + empty] = popular
                scores[start + empty] = np.where(popular < 0, -np.inf, 0.0)
            if progress is not None:
                progress("recommend", stop / users)
        return [self._returned(given, ids, scores) for ids, scores in results]

    def score(self, histories: Any) -> Dense:
        """Return the scores x·B of all items, seen ones included : (users, items); (items,) for a single history."""
        given = self.encode(histories)
        users, n = given.matrix.shape
        ensure_memory(
            float(users) * n * self.inverse_.dtype.itemsize,
            f"the scores of {users:,} users × {n:,} items",
            "score fewer users at a time, or use recommend",
        )
        scale = -self.column_weights().astype(self.inverse_.dtype)
        scores = np.empty((users, n), self.inverse_.dtype)
        for start, stop in self._batches(users):
            batch = given.matrix[start:stop]
            scores[start:stop] = _with_history(self.inverse_.project(batch) * scale, batch)
        return scores[0] if given.single else scores

    def similar_items(self, item: Any, k: int = 10) -> tuple[NDArray[Any], Dense]:
        """Return the k items most similar to one item, by partial correlation −P_ij/√(P_ii·P_jj).

        It says how two items go together once all others are accounted for; it is symmetric, at most 1, and the same
        for every ξ.
        """
        column = self._column_of(item)
        spread = 1.0 / np.sqrt(self.inverse_diagonal_)
        scale = (-spread[column] * spread).astype(self.inverse_.dtype)
        ids, scores = rank(
            self.inverse_.rows(np.array([column])),
            k,
            scale=scale,
            barred=barred_columns(len(self.items_), deny=np.array([column])),
        )
        return self.items_.take(ids[0]), scores[0]

    def explain(self, history: Any, item: Any) -> Explanation:
        """Return what each item of one history adds to the score of `item`: x_i·B_ij, which sum to the score."""
        given = self.encode(history)
        if given.matrix.shape[0] != 1:
            raise DataError(f"explain takes one history, got {given.matrix.shape[0]:,}")
        column = self._column_of(item)
        seen, values = given.matrix.indices, given.matrix.data.astype(np.float64)
        row = self.inverse_.rows(np.array([column]))[0, seen].astype(np.float64)  # P is symmetric
        contributions = values * ((seen == column) - row * self.column_weights()[column])
        order = np.argsort(-contributions, kind="stable")
        [name] = self.items_.take(np.array([column]))
        return Explanation(
            item=name,
            score=float(contributions.sum()),
            items=list(self.items_.take(seen[order])),
            contributions=contributions[order],
        )

    def encode(self, histories: Any) -> Histories:
        """Bring histories onto the model's columns; items it has never seen are left out, counted and warned of."""
        self._check_fitted()
        given = encode(histories, self.items_)
        if given.unknown:
            total = given.unknown + given.matrix.nnz
            message = f"{given.unknown:,} of {total:,} items in the histories are unknown to the model and were ignored"
            warnings.warn(message, UnknownItemsWarning, stacklevel=_frames_inside() + 1)
        return given

    # --- small change ------------------------------------------------------------------------------------------

    def _share(self, other: "_Model") -> "_Model":
        """Give the fitted attributes to another model."""
        self._check_fitted()
        algebra.check_xi(other.xi)
        other.__dict__.update({name: value for name, value in self.__dict__.items() if name.endswith("_")})
        return other

    def _check_fitted(self) -> None:
        if "inverse_" not in self.__dict__:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit(data) first")

    def _batches(self, count: int) -> Iterator[tuple[int, int]]:
        size = max(1, int(self.inverse_.batch_bytes / self.inverse_.bytes_per_user))
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


def _frames_inside() -> int:
    """How many frames of this package lie between here and the caller's code."""
    depth, frame = 0, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("relae."):
        depth, frame = depth + 1, frame.f_back
    return depth - 1  # this helper itself does not count


def _gram_diagonal(x: Csr) -> NDArray[np.float64]:
    """Σ_u x_uj² : (items,)."""
    squares = x.data.astype(np.float64) ** 2
    return np.bincount(x.indices, weights=squares, minlength=x.shape[1]).astype(np.float64, copy=False)


def _with_history(scores: Dense, histories: Csr) -> Dense:
    """Add x itself to −(x P)·w, in place: x B = x − (x P)·w."""
    rows = np.repeat(np.arange(histories.shape[0]), np.diff(histories.indptr))
    scores[rows, histories.indices] += histories.data
    return scores
