"""Lists for users of the fit by the models that fits without them would give, from the one inverse that there is."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae import algebra
from relae.algebra import Dial
from relae.data import Interactions
from relae.errors import DataError, Option
from relae.linalg import Csr, Dense, as_csr, gram_diagonal, scaled_columns, transpose
from relae.ranking import rank
from relae.solvers import Dual, DualInverse, Inverse, NewItems, Rows, solve

if TYPE_CHECKING:
    from relae.models._linear import LinearAutoencoder

_BATCH_BYTES = 48e6  # of one dense array of users × items; about six of them are there at a time
_SAME = 1e-6  # relative: the same squares, added up in another order, differ by far less
_WAY_OUT = "judge it by held-out users instead, as evaluate and hold_out_users do"

Lists = list[NDArray[np.int64]]


class LeftOut:
    """Ranks items for users of the fit as models would that had been fitted without them, each without one.

    Λ, P, users per item and what follows from them are those without the user; l2 is that of the fit.
    """

    def __init__(self, model: "LinearAutoencoder", data: Interactions, dials: Sequence[Dial | None]) -> None:
        self.model, self.data = model, data
        self.views = [model if dial is None else model._turned(dial) for dial in dials]
        self._check()
        inverse = model.inverse_.for_many(2 * data.n_users)
        self.new: NewItems | None = inverse if isinstance(inverse, NewItems) else None
        self.inverse: Inverse = inverse if self.new is None else self.new.base
        self.diagonal = self.inverse.diagonal()
        self.counts = model.item_counts_
        self.most = int(self.counts.max(initial=0))
        self.share = model.dropout_ / (1.0 - model.dropout_)  # what dropout adds of a square to the penalty
        self._features: DualInverse | None = None

    def _check(self) -> None:
        """Raise a DataError where the lists could not be exact, or this is not the data of the fit."""
        model, name = self.model, type(self.model).__name__
        if not model.plan_.exact:
            raise DataError(
                f"leave-one-out is exact for the primal and the dual form only, and this {name} has a small closed "
                f"form per item: fit it with ",
                Option("solver", "exact"),
                f", or {_WAY_OUT}",
            )
        if model.fit_.half_life is not None:
            raise DataError(
                "without a user all interactions may be of another age, which leave-one-out does not follow: leave ",
                Option("half_life", model.fit_.half_life),
                f" out, or {_WAY_OUT}",
            )
        for view in self.views:
            if view.freshness:
                raise DataError(
                    "leave-one-out does not follow how recent demand changes without a user: leave ",
                    Option("freshness", view.freshness),
                    f" out, or {_WAY_OUT}",
                )
        if model.l2_ == 0:
            raise DataError(
                "leave-one-out needs a penalty of items that only one user has: fit with ", Option("l2"), " above 0"
            )
        data = self.data
        if data.items != model.items_:
            raise DataError(f"this is not the data of the fit: its items are {data.items}, and not {model.items_}")
        counts = np.bincount(data.matrix.indices, minlength=data.n_items)
        if data.n_users != model.n_users_ or not np.array_equal(counts, model.item_counts_):
            raise DataError(
                f"this is not the data of the fit: {data.n_users:,} users with {data.n_interactions:,} interactions, "
                f"and the fit had {model.n_users_:,} with {int(model.item_counts_.sum()):,}"
            )
        if model.item_squares_ is not None:
            squares = gram_diagonal(data.matrix)
            others = int(np.count_nonzero(~np.isclose(squares, model.item_squares_, rtol=_SAME, atol=0)))
            if others:
                raise DataError(
                    f"this data has other weights than that of the fit, in {others:,} of {len(counts):,} items: give "
                    "it with the weights of the fit"
                )

    # --- batches -----------------------------------------------------------------------------------------------

    def ranked(
        self,
        users: NDArray[np.int64],
        histories: Csr,
        k: int,
        *,
        times: NDArray[np.int64] | None = None,
        seen: Csr | None = None,
    ) -> Iterator[tuple[int, int, Lists]]:
        """Yield the start and the stop of a batch of users, and for each of the dials their lists : (users, k).

        `users` are rows of the data, and `histories` : (users, items) is the part of each row that is not hidden.
        """
        step = max(1, int(_BATCH_BYTES / (self.inverse.dtype.itemsize * len(self.counts))))
        for start in range(0, len(users), step):
            stop = min(start + step, len(users))
            beside = None if seen is None else seen[start:stop]
            moments = None if times is None else times[histories.indptr[start] : histories.indptr[stop]]
            yield start, stop, self._lists(users[start:stop], histories[start:stop], k, moments, beside)

    def scores(self, users: NDArray[np.int64], histories: Csr) -> Dense:
        """Return the scores of the items that are not in the history, by the model's own dials : (users, items)."""
        change, [view] = _Change(self, as_csr(self.data.matrix[users], self.inverse.dtype)), self.views
        return -change.weights(view) * change.project(change.scaled(view.weigh(histories, None), view._dial()))

    def _lists(
        self, users: NDArray[np.int64], histories: Csr, k: int, times: NDArray[np.int64] | None, seen: Csr | None
    ) -> Lists:
        rows = as_csr(self.data.matrix[users], self.inverse.dtype)
        change = _Change(self, rows)
        skipped = histories if seen is None else histories + seen
        lists: Lists = [np.empty(0, np.int64)] * len(self.views)
        order = sorted(range(len(self.views)), key=lambda at: self.views[at].projection_key())
        projected, key, hints = None, None, None
        for at in order:
            view = self.views[at]
            if projected is None or view.projection_key() != key:
                key = view.projection_key()
                projected = change.project(change.scaled(view.weigh(histories, times), view._dial()))
                np.negative(projected, out=projected)
            scores = change.weights(view)
            scores *= projected
            hints = lists[at] = rank(scores, k, seen=skipped, hints=hints)[0]
        return lists

    def features(self) -> DualInverse:
        """Return the inverse of the features alone, by which items without users are known."""
        if self.new is not None:
            return self.new.other
        if self._features is None:
            model = self.model
            assert model.item_features_ is not None
            rows = transpose(model.item_features_)
            weights = np.full(rows.shape[0], model.feature_weight_)
            penalty = algebra.penalty_of(gram_diagonal(rows, weights), model.fit_)
            solution = solve(Rows(rows, weights), penalty, solver=Dual(dtype=self.inverse.dtype.name))
            assert isinstance(solution.inverse, DualInverse)
            self._features = solution.inverse
        return self._features


class _Change:
    """The part of a model that changes without each of some users: a row per user, of the model without this user."""

    def __init__(self, left: LeftOut, rows: Csr) -> None:
        self.left, self.rows = left, rows
        self.owners = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        model = left.model
        weights = algebra.row_weights(np.diff(rows.indptr), model.fit_)
        self.row_weights = np.ones(rows.shape[0]) if weights is None else weights
        # whether the most popular items have one user less
        top = left.counts == left.most
        self.lower = np.bincount(self.owners[top[rows.indices]], minlength=rows.shape[0]) == np.count_nonzero(top)
        self._alone = self._find_alone()
        if left.share == 0:
            self._projected = left.inverse.project(rows)  # x P
            values = rows.data.astype(np.float64) * self._projected[self.owners, rows.indices]
            leverage = self.row_weights * np.bincount(self.owners, weights=values, minlength=rows.shape[0])
            self._factor = self.row_weights / (1.0 - leverage)
            self.diagonal = algebra.left_out_diagonal(left.diagonal, self._projected, self._factor)
        else:
            self._inverses: list[NDArray[np.float64]] = []
            self.diagonal = np.empty(rows.shape, left.inverse.dtype)
            for row in range(rows.shape[0]):
                self._leave_out(row)
        self._put_new_diagonal()

    def _leave_out(self, row: int) -> None:
        """Keep what a user with dropout needs: L⁻¹ of the change on the user's items, and the diagonal of P₋."""
        left, span = self.left, slice(self.rows.indptr[row], self.rows.indptr[row + 1])
        items, values = self.rows.indices[span].astype(np.int64), self.rows.data[span].astype(np.float64)
        strip = left.inverse.rows(items)  # P_S : (items of the user, items)
        factor = algebra.left_out_factor(strip[:, items], values, float(self.row_weights[row]), left.share)
        self._inverses.append(factor)
        self.diagonal[row] = algebra.left_out_diagonal_of_rank(left.diagonal, strip, factor)

    def _find_alone(self) -> NDArray[np.int64]:
        """Return the entries of the rows with items that no other user has, and that are known by features then."""
        features = self.left.model.item_features_
        if features is None:
            return np.empty(0, np.int64)
        known = np.diff(features.indptr) > 0
        return np.flatnonzero((self.left.counts[self.rows.indices] == 1) & known[self.rows.indices])

    def _put_new_diagonal(self) -> None:
        left = self.left
        if left.new is not None:
            self.diagonal[:, left.new.items] = left.new.other_diagonal[left.new.items]
        if len(self._alone):
            columns = self.rows.indices[self._alone]
            diagonal = left.features().diagonal() if left.new is None else left.new.other_diagonal
            self.diagonal[self.owners[self._alone], columns] = diagonal[columns]

    def scaled(self, histories: Csr, dial: Dial) -> Csr:
        """Return histories times n^α, with the users per item that there are without the user."""
        scaling = algebra.input_scaling(np.maximum(self.left.counts - 1, 0), dial)
        return histories if scaling is None else scaled_columns(histories, scaling)

    def project(self, histories: Csr) -> Dense:
        """Return q P₋ : (users, items), each q with the P₋ of its own user."""
        left = self.left
        if left.share == 0:
            owners = np.repeat(np.arange(histories.shape[0]), np.diff(histories.indptr))
            products = histories.data.astype(np.float64) * self._projected[owners, histories.indices]
            overlap = np.bincount(owners, weights=products, minlength=histories.shape[0])
            out = left.inverse.project(histories)
            out += (self._factor * overlap).astype(out.dtype)[:, None] * self._projected
        else:
            out = left.inverse.project(self._corrected(histories))
        if left.new is not None:
            out[:, left.new.items] = left.new.other.project_onto(histories, left.new.items)
        for at in self._alone:
            row, column = self.owners[at], self.rows.indices[at : at + 1].astype(np.int64)
            out[row, column] = left.features().project_onto(histories[row : row + 1], column)[0]
        return out

    def _corrected(self, histories: Csr) -> Csr:
        """Return q + z with (q + z) P = q P₋, where z has the items of the user's row."""
        values = np.zeros(self.rows.nnz)
        for row, factor in enumerate(self._inverses):
            span = slice(self.rows.indptr[row], self.rows.indptr[row + 1])
            own = slice(histories.indptr[row], histories.indptr[row + 1])
            items = self.rows.indices[span].astype(np.int64)
            known, amounts = histories.indices[own].astype(np.int64), histories.data[own].astype(np.float64)
            values[span] = algebra.left_out_correction(self.left.inverse.block(items, known) @ amounts, factor)
            values[self.rows.indptr[row] + np.searchsorted(items, known)] += amounts
        parts = (values.astype(self.left.inverse.dtype), self.rows.indices, self.rows.indptr)
        return sp.csr_array(parts, shape=self.rows.shape)

    def weights(self, view: "LinearAutoencoder") -> Dense:
        """Return w n^−α p^−γ without each user : (users, items)."""
        left, dial = self.left, view._dial()
        penalty = np.broadcast_to(left.model.penalty_.astype(self.diagonal.dtype), self.diagonal.shape)
        if left.share:
            squares = self.rows.data.astype(np.float64) ** 2
            penalty = penalty.copy()
            penalty[self.owners, self.rows.indices] = left.model.penalty_[self.rows.indices] - left.share * squares
        diagonal: Any = self.diagonal  # in the precision of the inverse
        out = np.asarray(view._weights_of(penalty, diagonal), dtype=self.diagonal.dtype)
        for lower in (False, True):
            some = np.flatnonzero(self.lower == lower)
            others, own = left_out_scaling(left.counts, dial, lower)
            if len(some) == 0 or others is None or own is None:
                continue
            cells = np.flatnonzero(self.lower[self.owners] == lower)
            where = self.owners[cells], self.rows.indices[cells]
            fixed = out[where] * own[self.rows.indices[cells]]
            out[some] *= others.astype(out.dtype)
            out[where] = fixed
        return out


def left_out_scaling(counts: NDArray[np.int64], dial: Dial, lower: bool) -> tuple[Any, Any]:
    """Return n^−α p^−γ without a user : (items,) of items that the user does not have, and of those in the row.

    `lower` says that the largest count is one less, because the user has all of the most popular items.
    """
    most = int(counts.max(initial=0)) - lower
    both = np.minimum(counts, most), np.maximum(counts - 1, 0)
    scalings = [algebra.score_scaling(np.append(each, most), dial) for each in both]
    return tuple(None if each is None else each[:-1] for each in scalings)  # type: ignore[return-value]
