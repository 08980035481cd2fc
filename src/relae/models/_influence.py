"""The training users that a score rests on: how it would change if one of them had not been there."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae import algebra
from relae._common.checks import check_whole
from relae.errors import DataError
from relae.linalg import as_csr, scaled_columns, scaled_rows
from relae.models._refresh import known_data, training_data
from relae.solvers import Local

if TYPE_CHECKING:
    from relae.models._linear import LinearAutoencoder

_CANDIDATES = 4  # times as many users as wanted are solved for, where a first guess chooses them
_FEWEST = 64


@dataclass(frozen=True)
class Influence:
    """The users of a fit without whom a score would change most.

    Attributes
    ----------
    item
        The raw id of the item.
    score : float
        Its score, without what the recent demand adds.
    users : list
        The raw ids of users, or their row numbers if the data has no ids; those with the largest changes first.
    changes : (users,)
        The score in a fit without the user, minus the score. These are exact.
    complete : bool
        Whether no other user has a larger change. Otherwise a first-order estimate has chosen the users for which it
        was solved.
    """

    item: Any
    score: float
    users: list[Any]
    changes: NDArray[np.float64]
    complete: bool


def influence(model: "LinearAutoencoder", history: Any, item: Any, data: Any, k: int, times: Any) -> Influence:
    """Return the k users of the fit whose absence would change the score of an item most."""
    check_whole("k", k)
    inverse, column = model.inverse_.plain, model.column_of(item)
    if inverse.solver == Local.name:
        raise DataError("a local model solves a small system per item: influence needs an exact model")
    encoded = model.encode(history, times=times)
    if encoded.matrix.shape[0] != 1:
        raise DataError(f"influence is on the score of one history, got {encoded.matrix.shape[0]:,}")
    known = known_data(model, data)
    if known is None:
        raise DataError("the model does not hold its training data in this form: give it as data")
    x = training_data(model, data).matrix
    question = _Question(model, model.weigh(encoded.matrix, encoded.times), column)
    guesses = question.guess(as_csr(x, inverse.dtype))
    is_exact = model.fit_.dropout == 0 and not (model.item_norm or model.propensity)
    count = min(x.shape[0], max(_CANDIDATES * k, _FEWEST) if not is_exact else k)
    likely = np.argsort(-np.abs(guesses), kind="stable")[:count]
    changes = np.array([question.without(x[[row]]) - question.score for row in likely.tolist()])
    order = np.argsort(-np.abs(changes), kind="stable")[:k]
    rows = likely[order]
    users = rows.tolist() if known.users.positional else known.users.take(rows).tolist()
    return Influence(model.items_.take([column])[0], question.score, users, changes[order], is_exact)


class _Question:
    """The score of one item for one history, and what is needed to compute it without a user."""

    def __init__(self, model: "LinearAutoencoder", history: Any, column: int) -> None:
        self.model, self.column, self.history = model, column, history
        self.inverse, self.rate = model.inverse_.plain, model.fit_.dropout / (1.0 - model.fit_.dropout)
        scaling = algebra.input_scaling(model.item_counts_, model._dial())
        query = history if scaling is None else scaled_columns(history, scaling)
        self.query = np.zeros(len(model.items_))
        self.query[query.indices] = query.data
        self.projected = self.inverse.project(as_csr(query, self.inverse.dtype))[0].astype(np.float64)  # q P
        self.row = self.inverse.rows(np.array([column]))[0].astype(np.float64)  # of P
        self.score = float(
            self._score(
                self.projected[column],
                model.penalty_[column],
                self.row[column],
                self.query[column],
                model._score_scaling(),
            )
        )

    def _score(self, projected: Any, penalty: Any, diagonal: Any, own: Any, scaling: Any) -> Any:
        weights = self.model._weights_of(np.atleast_1d(penalty), np.atleast_1d(diagonal))
        values = own - projected * weights
        return (values if scaling is None else values * scaling[self.column])[() if np.ndim(projected) else 0]

    def guess(self, x: Any) -> NDArray[np.float64]:
        """Return the changes without each user : (users,); exact without dropout and norms of items.

        What dropout adds to the penalty is taken in the first order. One projection, and a few sparse products.
        """
        weights = algebra.row_weights(np.diff(x.indptr), self.model.fit_)
        rows = scaled_rows(x, weights)
        squares = sp.csr_array((x.data.astype(np.float64) ** 2, x.indices, x.indptr), shape=x.shape)
        left, right = rows @ self.projected, rows @ self.row
        rest = np.maximum(1.0 - self.inverse.leverages(rows), 1e-9)
        projected = left * right / rest + self.rate * (squares @ (self.projected * self.row))
        diagonal = right**2 / rest + self.rate * (squares @ self.row**2)
        penalty = self.rate * squares[:, [self.column]].toarray()[:, 0]
        model, column = self.model, self.column
        scores = self._score(
            self.projected[column] + projected,
            np.maximum(model.penalty_[column] - penalty, 1e-300),
            self.row[column] + diagonal,
            self.query[column],
            model._score_scaling(),
        )
        return np.asarray(scores - self.score)

    def without(self, x: Any) -> float:
        """Return the score in a fit without a user, by the user's own small system.

        With U = [√d x, √c x_i e_i], d the weight of the user and c = dropout/(1 − dropout):
        P₋ = P + P Uᵀ (I − U P Uᵀ)⁻¹ U P and Λ₋ = Λ − c x².
        """
        items, values, column = x.indices.astype(np.int64), x.data.astype(np.float64), self.column
        weights = algebra.row_weights(np.array([len(items)]), self.model.fit_)
        u = values[None] * (1.0 if weights is None else np.sqrt(weights[0]))
        if self.rate:
            u = np.vstack([u, np.diag(np.sqrt(self.rate) * values)])
        counts = self.model.item_counts_.copy()
        counts[items] -= 1
        dial = self.model._dial()
        projected, at, own = self.projected[items], self.projected[column], self.query[column]
        if (scaling := algebra.input_scaling(counts, dial)) is not None:  # n^α of the history changes too
            had = self.history.indices.astype(np.int64)
            moved = scaled_columns(self.history, scaling).data.astype(np.float64) - self.query[had]
            changed = np.flatnonzero(moved)
            if len(changed):
                block = self.inverse.block(had[changed], np.append(items, column)).astype(np.float64)
                shift = moved[changed] @ block
                projected, at = projected + shift[:-1], at + shift[-1]
                own = own + moved[had == column].sum()
        inner = np.eye(len(u)) - u @ self.inverse.block(items, items).astype(np.float64) @ u.T
        solved = np.linalg.solve(inner, u @ self.row[items])
        square = values[items == column].sum() ** 2
        return float(
            self._score(
                at + (u @ projected) @ solved,
                self.model.penalty_[column] - self.rate * square,
                self.row[column] + (u @ self.row[items]) @ solved,
                own,
                algebra.score_scaling(counts, dial),
            )
        )
