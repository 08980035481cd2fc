"""The base of the six models: one fitted inverse, and everything that is computed from it."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae import algebra
from relae._common.progress import Progress
from relae._common.words import in_bytes
from relae.algebra import Dial, Fit
from relae.data import Demand, Features, Interactions, InteractionsLike, MatrixLike, fading_weights
from relae.distributed import Partitions
from relae.errors import ApproximationWarning, DataError, Option, ParameterWarning
from relae.linalg import (
    FLOAT64,
    Arrays,
    Csr,
    Dense,
    Expected,
    Layout,
    Vector,
    csr_from_parts,
    csr_layout,
    csr_parts,
    gram_diagonal,
    scaled_columns,
)
from relae.models._explanation import Explainer
from relae.models._influence import Influence, influence
from relae.models._left_out import LeftOut
from relae.models._parameters import DIALS, FAMILY, FRESH_DAYS, FRESHNESS, TIME, TimeParameters
from relae.models._refresh import compact, drop_items, forget, update
from relae.models._rows import TrainingRows, check_new_items, features_of, with_new_items
from relae.ranking import barred_columns, rank
from relae.recommender import HistoriesLike, History, State, number, text, whole
from relae.solvers import (
    DTYPES,
    FORMS,
    NEIGHBOURS,
    Forecast,
    Inverse,
    NewItems,
    Plan,
    Solver,
    as_solver,
    ensure_memory,
    solve,
)

_Model = TypeVar("_Model", bound="LinearAutoencoder")
_TIMES = Option("timestamp", ...)
_LEAST_DAYS = float(np.nextafter(0.0, 1.0))
_ABSURD = 1000.0  # times the usual l2, or a part of it: beside weights, a mistake in their scale


def suggested_l2(x: Csr, user_norm: float = 0.0) -> float:
    """Return λ = 20·√(mean users per item) · mean square of the values; see `relae.algebra.suggested_l2`.

    With a norm of users, squares count as much as their user does in the Gram.
    """
    weights = algebra.user_weights(np.diff(x.indptr), user_norm)
    return algebra.suggested_l2(np.bincount(x.indices), float(gram_diagonal(x, weights).sum()))


class LinearAutoencoder(Explainer):
    """B = I − P·diag(w): fitted once, ranked for any ξ.

    Attributes
    ----------
    inverse_ : Inverse
        P = (XᵀDX + Λ)⁻¹, with the rows of X and their weights of `TrainingRows`.
    penalty_ : (items,)
        Λ.
    residual_ : float
        ‖(G+Λ)Pv − v‖/‖v‖ of random probes: how exact the inverse is.
    plan_ : Plan
        The solver that was chosen, and what it was forecast to cost.
    fit_ : relae.algebra.Fit
        The parameters of the fit: l2, given or suggested, dropout and user_norm; also as `l2_`, `dropout_` and
        `user_norm_`.
    neighbours_, nearest_by_
        Those of the solver.
    item_features_ : (items, features) CSR, or None
        What the items have in common beside their users, and counts `feature_weight_`.
    demand_ : relae.data.Demand, or None
        The recent demand for each item at the end of the training data; None if that has no times.
    item_squares_ : (items,), or None
        The sum of the squared values of each item, by which the data of the fit is known again; None if the model was
        saved without.
    items_, titles_, item_counts_, n_users_
        What is kept of the training data: see `HistoryRecommender`.
    """

    l2: float | None

    inverse_: Inverse
    penalty_: NDArray[np.float64]
    inverse_diagonal_: NDArray[np.float64]
    residual_: float
    plan_: Plan
    fit_: Fit
    neighbours_: int
    nearest_by_: str
    item_features_: Csr | None
    feature_weight_: float
    item_squares_: NDArray[np.float64] | None
    demand_: Demand | None

    half_life: float | None
    fading: float
    freshness: float
    fresh_days: float

    # parameters of some of the models, neutral constants of the others
    dropout: float
    xi: float
    user_norm: float
    item_norm: float
    propensity: float

    closed_form: ClassVar[bool] = True
    uses_times: ClassVar[bool] = True
    uses_features: ClassVar[bool] = True

    @property
    def dials(self) -> tuple[str, ...]:
        """The dials; those of the demand are none of them for a model that was fitted without times."""
        timeless = "demand_" in self.__dict__ and self.demand_ is None
        return tuple(dial.name for dial in DIALS if not (timeless and dial in (FRESHNESS, FRESH_DAYS)))

    def _set_time(self, values: TimeParameters) -> None:
        """Set the parameters that have to do with time; the others of them have their defaults."""
        strangers = values.keys() - {parameter.name for parameter in TIME}
        if strangers:
            raise TypeError(f"{type(self).__name__} has no parameter {', '.join(sorted(strangers))}")
        for parameter in TIME:
            setattr(self, parameter.name, values.get(parameter.name, parameter.default))

    def fit(
        self,
        data: InteractionsLike | Partitions,
        *,
        item_features: Features | MatrixLike | None = None,
        feature_weight: float = 1.0,
        solver: Solver | str = "auto",
        progress: Progress | None = None,
    ) -> Self:
        """Fit to interactions; an earlier fit is kept until this one is done.

        Parameters
        ----------
        data
            Interactions, or a sparse matrix (users × items) with values that are finite and not negative; a cluster
            also takes `relae.distributed.Partitions`.
        item_features
            Features, or a matrix (items × features), sparse or dense: each feature counts as one more user, who has the
            items that have it. Items without users are then known by their features. Without it, those of the data.
        feature_weight
            How much a feature counts beside a user; 0 leaves features out.
        solver : "auto", "exact", "primal", "dual", "local", or a Solver
            How it is computed. A name is short for the object with its defaults; `Primal(dtype="float64")`,
            `Local(neighbours=100)` (`relae.solvers`) and `Dask(client)` (`relae.distributed`) say more.
        progress
            Called with the name of a stage and the fraction of it that is done.
        """
        solver = as_solver(solver)
        self._check_dials(self.dropout)
        for parameter in TIME:
            parameter.check(getattr(self, parameter.name))
        source = self._aged(data if isinstance(data, Partitions) else self.to_interactions(data))
        features = features_of(item_features, feature_weight, source)
        fit_parameters = Fit(*(getattr(self, name) for name in Fit._fields))
        if isinstance(source, Interactions):
            training = TrainingRows.of(source, fit_parameters, features, feature_weight)
        elif not solver.reads_files:
            raise DataError("partitions are fitted by a cluster: fit(data, solver=Dask(client))")
        else:
            training = TrainingRows.of_partitions(source, fit_parameters)
        usual_l2 = algebra.suggested_l2(training.item_counts, training.total)
        l2 = usual_l2 if self.l2 is None else self.l2
        fit = fit_parameters._replace(l2=l2)
        penalty = algebra.penalty_of(training.diagonal, fit)
        if features is not None:
            check_new_items(training.item_counts, features, l2)
        solution = solve(training.rows, penalty, solver=solver, progress=progress)
        if not solution.plan.exact and len(solver.preference(training.rows.shape)) > 1:
            warn_of_local(solution.plan)
        if isinstance(source, Interactions):
            _warn_of_scale(l2, usual_l2, source.matrix.data)
        inverse = solution.inverse
        if features is not None:
            inverse = with_new_items(inverse, training.item_counts, features, feature_weight, fit)
        self.inverse_, self.plan_, self.residual_ = inverse, solution.plan, solution.residual
        self.penalty_, self.inverse_diagonal_ = penalty, inverse.diagonal()
        self.fit_ = Fit(float(l2), *(None if value is None else float(value) for value in fit[1:]))  # type: ignore[arg-type]
        self.neighbours_, self.nearest_by_ = int(solver.neighbours), solver.nearest_by
        self.item_features_, self.feature_weight_ = features, float(feature_weight)
        self.item_squares_ = training.squares
        if isinstance(source, Partitions):
            self.items_, self.titles_, self.item_counts_ = source.items, None, source.item_counts
            self.n_users_, self.users_, self.demand_ = source.shape[0], None, None
        else:
            self.remember(source)
            self.demand_ = Demand.of(source, self.fresh_days)
        return self

    def _aged(self, data: Interactions | Partitions) -> Any:
        """Return training data with the weights that its age leaves; an error if that needs times and has none."""
        times = None if isinstance(data, Partitions) else data.times
        if times is None and self.freshness:
            raise DataError(Option("freshness", self.freshness), " needs times: read the data with ", _TIMES)
        if self.half_life is None:
            return data
        if isinstance(data, Partitions):
            raise DataError(Option("half_life", self.half_life), " needs interactions in memory, not partitions")
        return data.weighted(half_life=self.half_life)

    @property
    def l2_(self) -> float:
        """λ of the fit: that given, or the suggested one."""
        return self.fit_.l2

    @property
    def dropout_(self) -> float:
        """The dropout of the fit."""
        return self.fit_.dropout

    @property
    def user_norm_(self) -> float:
        """β of the fit."""
        return self.fit_.user_norm

    # --- what is read from the inverse -------------------------------------------------------------------------

    def column_weights(self, xi: float | None = None) -> NDArray[np.float64]:
        """Return w = max(Λ, (1 − ξ)/diag P) : (items,), for the model's ξ or another one."""
        self.check_fitted()
        if xi is None:
            return self._weights_of(self.penalty_, self.inverse_diagonal_)
        return algebra.column_weights(self.penalty_, self.inverse_diagonal_, xi)

    def _weights_of(self, penalty: NDArray[np.float64], diagonal: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return w of the model's dials for some items, from their Λ and diag P."""
        return algebra.column_weights(penalty, diagonal, self.xi)

    def left_out(self, data: Interactions, dials: Sequence[float | Dial | None]) -> LeftOut:
        """Return what ranks items for users of the fit as models fitted without them would, for these dials."""
        self.check_fitted()
        return LeftOut(self, data, [None if each is None else self._as_dials([each])[0] for each in dials])

    @property
    def xi_interval_(self) -> tuple[float, float]:
        """The ξ between which recommendations change for this data."""
        self.check_fitted()
        return algebra.xi_interval(self.penalty_, self.inverse_diagonal_)

    @property
    def free_diagonal_(self) -> NDArray[np.float64]:
        """The diagonal of B without a constraint : (items,); an item is constrained while ξ is below its own."""
        self.check_fitted()
        return algebra.free_diagonal(self.penalty_, self.inverse_diagonal_)

    def _dial(self, xi: float | None = None) -> Dial:
        """Return the model's dials, or those with another ξ."""
        dial = Dial(*(getattr(self, name) for name in Dial._fields))
        return dial if xi is None else dial._replace(xi=xi)

    def _check_dials(self, dropout: float) -> None:
        """Raise a ValueError if a dial has a value that it cannot have with this dropout."""
        algebra.check_dial(self._dial())

    def _input_scaling(self) -> NDArray[np.float64] | None:
        return algebra.input_scaling(self.item_counts_, self._dial())

    def _score_scaling(self) -> NDArray[np.float64] | None:
        return algebra.score_scaling(self.item_counts_, self._dial())

    def score_offset(self) -> Vector | None:
        """Return τ·√(e / max e) : (items,), what recent demand adds to scores; None if τ is 0."""
        if not self.freshness:
            return None
        return algebra.score_offset(self._require_demand(self.freshness).of_half_life(self.fresh_days), self._dial())

    def _require_demand(self, freshness: float | None) -> Demand:
        """Return the demand; a DataError if the model was fitted without times."""
        self.check_fitted()
        if self.demand_ is None:
            raise DataError(
                Option("freshness", freshness),
                " needs the recent demand for items, and the model was fitted without times: fit it with ",
                _TIMES,
            )
        return self.demand_

    def weigh(self, batch: Csr, times: NDArray[np.int64] | None) -> Csr:
        """Return histories in which the r-th latest item counts r^−fading; without times, as they are."""
        if not self.fading or times is None:
            return batch
        owners = np.repeat(np.arange(batch.shape[0]), np.diff(batch.indptr))
        values = (batch.data * fading_weights(owners, times, self.fading)).astype(batch.dtype)
        return sp.csr_array((values, batch.indices, batch.indptr), shape=batch.shape)

    def with_events(self, events: InteractionsLike) -> Self:
        """Return this model with the demand for items after further events; nothing is fitted.

        Events of items that the model does not know are left out. They must be new: events of the fit, or of an earlier
        call, would count twice.
        """
        self.check_fitted()
        interactions = self.to_interactions(events)
        if interactions.times is None or self.demand_ is None:
            what = "the model was fitted" if self.demand_ is None else "these events are"
            raise DataError(f"the demand for items needs times, and {what} without: read the data with ", _TIMES)
        columns = self.items_.positions(interactions.items.values)[interactions.matrix.indices]
        known = columns >= 0
        other = self._share(type(self)(**self.get_params()))
        other.demand_ = self.demand_.with_events(columns[known], interactions.times[known])
        return other

    def _through(self) -> NDArray[np.float64] | None:
        """Return the factor of an item of a history in its own score : (items,); None if all are 1."""
        before, after = self._input_scaling(), self._score_scaling()
        return after if before is None or after is None else before * after

    def weights(self) -> Dense:
        """Return the dense B : (items, items), scaled as in scores, where it fits into memory."""
        self.check_fitted()
        n, itemsize = len(self.items_), self.inverse_.dtype.itemsize
        ensure_memory(
            n * n * itemsize,
            f"the dense B of {n:,} items",
            "use recommend, explain or similar_items, which need no B",
        )
        dense = np.empty((n, n), self.inverse_.dtype)
        for start, stop in self.batches(n):
            dense[start:stop] = self.weight_rows(np.arange(start, stop))
        return dense

    def weight_rows(self, items: NDArray[np.int64]) -> Dense:
        """Return some rows of B, scaled as in scores : (len(items), items)."""
        self.check_fitted()
        rows = self.inverse_.rows(items) * self.score_scale()
        if (scaling := self._input_scaling()) is not None:
            rows *= scaling[items, None].astype(self.score_dtype)
        units = sp.csr_array((np.ones(len(items)), items, np.arange(len(items) + 1)), shape=rows.shape)
        return self.add_history(rows, units)

    # --- recommendations ---------------------------------------------------------------------------------------

    def recommend_path(
        self,
        histories: HistoriesLike,
        xis: Iterable[float | Dial],
        k: int = 10,
        *,
        exclude_seen: bool = True,
        seen: HistoriesLike | None = None,
        times: NDArray[np.int64] | None = None,
        allow: Sequence[Any] | None = None,
        deny: Sequence[Any] | None = None,
        progress: Progress | None = None,
    ) -> list[tuple[NDArray[Any], Dense]]:
        """Recommend for several ξ at the cost of one projection: an (ids, scores) as of `recommend` for each.

        A `Dial` stands for ξ together with the other dials; each α, and each fading, costs a projection.
        """
        self.check_fitted()
        dials = self._as_dials(xis)
        order = sorted(range(len(dials)), key=lambda at: dials[at].input)  # the same projections side by side
        encoded = self.encode(histories, seen, exclude_seen, times)
        model = self.for_many(encoded.matrix.shape[0], dials)
        views = [model._turned(dials[at]) for at in order]
        lists = model.recommend_by(encoded, k, views, exclude_seen, allow, deny, progress)
        return [lists[position] for position in np.argsort(order)]

    def for_many(self, users: int, xis: Iterable[float | Dial] | None = None) -> Self:
        """Return the model in the form that is quickest for so many histories and these dials.

        In the dual form a history that is not a training user's own, or whose items are scaled, costs a product with
        the square of users. Many of them cost less when P is made from it first, if there is memory for that.
        """
        self.check_fitted()
        inputs = {dial.input: dial for dial in ([self._dial()] if xis is None else self._as_dials(xis))}
        if set(inputs) == {Dial(0.0).input}:
            return self
        inverse = self.inverse_.for_many(users * len(inputs))
        if inverse is self.inverse_:
            return self
        other = self._share(type(self)(**self.get_params()))
        other.inverse_ = inverse
        return other

    def with_dials(self, **values: float | None) -> "LinearAutoencoder":
        """Return this model with other dials, by name (`xi`, `item_norm`, …); None leaves one as it is.

        It shares the fitted inverse: no refit, no copy.
        """
        return self._turned(self._dial()._replace(**self._given_dials(values)))

    def _given_dials(self, values: Mapping[str, float | None]) -> dict[str, float]:
        """Return the dials that are not None; a TypeError for an unknown name."""
        strangers = [name for name in values if name not in Dial._fields]
        if strangers:
            raise TypeError(f"there is no dial {', '.join(strangers)}: the dials are {', '.join(self.dials)}")
        if values.get("freshness"):
            self._require_demand(values["freshness"])
        return {name: value for name, value in values.items() if value is not None}

    def with_xi(self, xi: float) -> "LinearAutoencoder":
        """Return this model with another ξ. It shares the fitted inverse: no refit, no copy."""
        return self._turned(self._dial(xi))

    def _turned(self, dial: Dial) -> "LinearAutoencoder":
        """Return this model with these dials."""
        raise NotImplementedError

    def _with_dial(self, kind: "type[_Model]", dial: Dial) -> "_Model":
        """Return a model of another class with these dials, and this fit."""
        values = dial._asdict()
        names = [parameter.name for parameter in kind.PARAMETERS]
        return self._share(kind(**{name: values[name] if name in values else getattr(self, name) for name in names}))

    def _as_dials(self, xis: Iterable[float | Dial]) -> list[Dial]:
        """Return dials; a number is a value of ξ, with the model's α and γ."""
        return [algebra.check_dial(each if isinstance(each, Dial) else self._dial(each)) for each in xis]

    def project(self, batch: Csr) -> Dense:
        """Return (x n^α) P."""
        scaling = self._input_scaling()
        return self.inverse_.project(batch if scaling is None else scaled_columns(batch, scaling))

    def projection_key(self) -> Any:
        return self._dial().input

    def score_scale(self) -> Vector:
        """Return −w n^−α p^−γ: seen items are left out, so that ranking x B = x − (x P)·w is ranking −(x P)·w."""
        weights = self.column_weights()
        if (scaling := self._score_scaling()) is not None:
            weights = weights * scaling
        return -weights.astype(self.score_dtype)

    def add_history(self, scores: Dense, batch: Csr) -> Dense:
        """Add x itself, in place: x B = x − (x P)·w."""
        rows = np.repeat(np.arange(batch.shape[0]), np.diff(batch.indptr))
        values = batch.data
        if (scaling := self._through()) is not None:
            values = values * scaling[batch.indices]
        scores[rows, batch.indices] += values.astype(scores.dtype)
        return scores

    @property
    def holds_histories(self) -> bool:
        """True in the dual form, which holds X beside K⁻¹."""
        return self.inverse_.held_rows is not None

    def users_at_once(self) -> int:
        return int(self.inverse_.batch_bytes / self.inverse_.bytes_per_user)

    @property
    def score_dtype(self) -> np.dtype[np.floating]:
        return self.inverse_.dtype

    def similar_items(self, item: Any, k: int = 10) -> tuple[NDArray[Any], Dense]:
        """Return the k items most similar to one item, by partial correlation −P_ij/√(P_ii·P_jj).

        It says how two items go together once all others are accounted for; it is symmetric, at most 1, and the same
        for every ξ. An item without users and any other one are compared by their features alone.
        """
        column = self.column_of(item)
        row, products = self.inverse_.pairs(column, self.inverse_diagonal_)
        ids, scores = rank(
            row,
            k,
            scale=(-1.0 / np.sqrt(products)).astype(row.dtype),
            barred=barred_columns(len(self.items_), deny=np.array([column])),
        )
        return self.items_.take(ids[0]), scores[0]

    def contributions(
        self, seen: NDArray[np.int64], values: NDArray[np.float64], columns: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return x_i·B_ij, scaled as in scores : (columns, seen)."""
        block = self.inverse_.block(seen, columns).T.astype(np.float64)  # (items, seen)
        weights = self.column_weights()[columns]
        contributions = values * ((columns[:, None] == seen) - block * weights[:, None])
        if (scaling := self._input_scaling()) is not None:
            contributions *= scaling[seen]
        if (scaling := self._score_scaling()) is not None:
            contributions *= scaling[columns, None]
        return np.asarray(contributions)

    def influence(
        self,
        history: History,
        item: Any,
        data: InteractionsLike | None = None,
        *,
        k: int = 10,
        times: NDArray[np.int64] | None = None,
    ) -> Influence:
        """Return the users of the fit who have the largest influence on the score of an item for one history.

        That is the exact change of the score if the user had not been there, with the same l2. Without dropout and
        norms of items, no other user has a larger one; otherwise a first-order estimate chooses some users, for whom it
        is then computed (`Influence.complete`). What the recent demand adds to scores is left out.

        Parameters
        ----------
        data
            The data of the fit; a model in the dual form holds it itself.
        k : int
            How many users.
        times
            That of `recommend`.
        """
        self.check_fitted()
        return influence(self, history, item, data, k, times)

    # --- from this model to another one ------------------------------------------------------------------------

    def compact(
        self,
        data: InteractionsLike | None = None,
        *,
        per_item: int = NEIGHBOURS,
        supports: str = "cosine",
        progress: Progress | None = None,
    ) -> Self:
        """Return a sparse model for cheap serving: each item is explained by `per_item` items, and ξ stays free.

        The closed form is solved again on each support, which loses less than leaving out the other weights.

        Parameters
        ----------
        data
            The training data; a model in the dual form holds it itself.
        per_item : int
            Items of a support, the item itself included.
        supports : "cosine", "count" or "weights"
            The nearest items by co-occurrence, or those with the largest weights of this model.
        """
        self.check_fitted()
        return compact(self, data, per_item, supports, progress, np.random.default_rng(0))

    def update(
        self, new: InteractionsLike, data: InteractionsLike | None = None, *, progress: Progress | None = None
    ) -> Self:
        """Return the model that a fit to the old and the new events would give, with the same l2, for less than a fit.

        Users may be new or come back, and items too. An exact model costs rank × square² flops instead of square³: a
        rank for each new user, two for each who comes back, and one for each item whose penalty changes with dropout.
        It is refused where a fit would be cheaper. A local model solves again for the items whose neighbourhood has
        changed. This model stays as it is.

        Parameters
        ----------
        new
            What users did later. A user of the fit has what `Interactions.joined` makes of the old and the new events.
            A matrix has the model's columns. Old items keep the features of the fit, and new items have none. The rows
            of a matrix, or of Interactions without ids of users, are new users by definition.
        data
            The training data so far, for users who come back and for a local model; a model in the dual form holds it
            itself. Where it is given, the error of the result is measured against all of it.

        Raises
        ------
        DataError
            If a user of the fit comes back and it is not known what they had; or if a fit would be cheaper, or the
            errors of many changes have added up. A model that does not know the users of its fit, such as one of a
            folder without histories, warns that it cannot tell (`UncheckedUsersWarning`).
        """
        self.check_fitted()
        interactions = new if isinstance(new, Interactions) else Interactions(new, items=self.items_)
        return update(self, interactions, data, progress, np.random.default_rng(0))

    def forget(
        self, users: Iterable[Any], data: InteractionsLike | None = None, *, progress: Progress | None = None
    ) -> Self:
        """Return the model that a fit without some users would give, with the same l2, for less than a fit.

        Costs and errors are those of `update`. This model stays as it is.

        Parameters
        ----------
        users
            Their raw ids; row numbers if the users of the fit had none.
        data
            The training data, or the rows of these users alone; a model in the dual form holds them itself.

        Raises
        ------
        DataError
            If it is not known what the users had; and as of `update`.
        """
        self.check_fitted()
        return forget(self, users, data, progress, np.random.default_rng(0))

    def drop_items(
        self, items: Iterable[Any], data: InteractionsLike | None = None, *, progress: Progress | None = None
    ) -> Self:
        """Return the model that a fit without some items would give, with the same l2, for less than a fit.

        Users stay, also those who have no item left. This model stays as it is.

        Parameters
        ----------
        items
            Their raw ids.
        data
            The training data, for a local model and for one with a `user_norm` or a half-life.

        Raises
        ------
        DataError
            As of `update`.
        """
        self.check_fitted()
        return drop_items(self, items, data, progress, np.random.default_rng(0))

    # --- helpers -----------------------------------------------------------------------------------------------

    def _share(self, other: "_Model") -> "_Model":
        """Give the fitted attributes to another model."""
        self.check_fitted()
        other._check_dials(self.dropout_)
        other.__dict__.update({name: value for name, value in self.__dict__.items() if name.endswith("_")})
        return other

    def state(self, form: str) -> State:
        """Add P, in the form asked for, and what was found on the way to it."""
        state = super().state(form)
        kept = self.inverse_.saved_form(form)
        parts: dict[str, Any] = {**self.inverse_.saved_arrays(kept)}
        if self.item_squares_ is not None:
            parts["item_squares"] = self.item_squares_
        facts = {
            **self.fit_._asdict(),
            "neighbours": self.neighbours_,
            "nearest_by": self.nearest_by_,
            "residual": self.residual_,
            "solver": self.plan_.solver,
            "form": kept,
            "dtype": self.inverse_.dtype.name,
            "xi_interval": list(self.xi_interval_),
            "plan": asdict(self.plan_),
        }
        arrays = {"penalty": self.penalty_, "inverse_diagonal": self.inverse_diagonal_, **parts}
        if self.demand_ is not None:
            facts |= {"demand_half_lives": list(self.demand_.half_lives), "demand_at": self.demand_.at}
            arrays["demand"] = self.demand_.counts
        if self.item_features_ is not None:
            facts |= {"features": self.item_features_.shape[1], "feature_weight": self.feature_weight_}
            arrays |= csr_parts("features", self.item_features_)
        return State({**state.facts, **facts}, {**state.arrays, **arrays})

    @classmethod
    def layout(cls, facts: Mapping[str, Any], names: Collection[str]) -> Layout:
        return {
            **super().layout(facts, names),
            "penalty": Expected(FLOAT64, ("items",)),
            "inverse_diagonal": Expected(FLOAT64, ("items",)),
            "item_squares": Expected(FLOAT64, ("items",), optional=True),
            **({"demand": Expected(FLOAT64, ("half-lives", "items"))} if "demand_at" in facts else {}),
            **FORMS[text(facts, "form", *FORMS)].LAYOUT,
            **NewItems.layout(names),
            **(csr_layout("features", "items") if "features" in facts else {}),
        }

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        penalty, diagonal = np.array(arrays["penalty"]), np.array(arrays["inverse_diagonal"])
        for name, vector in (("penalty", penalty), ("inverse_diagonal", diagonal)):
            if not (np.isfinite(vector) & (vector > 0)).all():
                raise ValueError(f"{name} is not a positive number per item")
        self.inverse_ = NewItems.around(FORMS[facts["form"]].from_arrays(arrays, penalty), arrays)
        self.item_features_ = None
        if "features" in facts:
            shape = len(penalty), whole(facts, "features", 1, 2**31)
            self.item_features_ = csr_from_parts("features", arrays, shape)
        self.item_squares_ = np.array(arrays["item_squares"]) if "item_squares" in arrays else None
        self.penalty_, self.inverse_diagonal_ = penalty, diagonal
        self.residual_, self.plan_ = number(facts, "residual", 0), read_plan(facts["plan"])
        # folders once had these as parameters alone
        known = {name: getattr(self, name) for name in Fit._fields if name != "l2"}
        known |= {"neighbours": NEIGHBOURS, "nearest_by": "cosine", "feature_weight": 1.0, **facts}
        self.fit_ = Fit(*(_fitted_number(known, name) for name in Fit._fields))
        self.demand_ = _demand(facts, arrays)
        self.feature_weight_ = number(known, "feature_weight", 0)
        self.neighbours_, self.nearest_by_ = whole(known, "neighbours", 1), text(known, "nearest_by")
        self._check_dials(self.dropout_)

    def facts(self) -> dict[str, str]:
        plan = self.plan_
        return super().facts() | {
            "l2 used": f"{self.l2_:g}",
            "solver": f"{plan.solver}, residual {self.residual_:.0e}",
            "ξ that matter": "{:.3f} to {:.3f}".format(*self.xi_interval_),
        }


for _name, _neutral in {
    **Fit._field_defaults,
    **Dial._field_defaults,
}.items():  # of models that have no parameter of this name
    setattr(LinearAutoencoder, _name, _neutral)


def _demand(facts: Mapping[str, Any], arrays: Arrays) -> Demand | None:
    """Return the demand of a folder, None if it has none; a ValueError if it cannot be."""
    if "demand_at" not in facts:
        return None
    counts = np.array(arrays["demand"])
    if not (np.isfinite(counts) & (counts >= 0)).all():
        raise ValueError("demand is not a number of at least 0 per item")
    half_lives = tuple(number({"a half-life": each}, "a half-life", _LEAST_DAYS) for each in facts["demand_half_lives"])
    if len(half_lives) != len(counts):
        raise ValueError(f"demand has {len(counts)} rows for {len(half_lives)} half-lives")
    return Demand(half_lives, counts, whole(facts, "demand_at", -(2**63), 2**63))


def _fitted_number(facts: Mapping[str, Any], name: str) -> Any:
    """Return a parameter of the fit within its limits; anything else is a ValueError."""
    [parameter] = (each for each in FAMILY if each.name == name)
    if facts[name] is None and parameter.default is None and name != "l2":
        return None
    low, high = -np.inf if parameter.low is None else parameter.low, parameter.high
    ends = (low,) if high is None else (low, high if parameter.below else float(np.nextafter(high, np.inf)))
    return number(facts, name, *ends)


def read_plan(record: dict[str, Any]) -> Plan:
    """Return the plan that `asdict` took apart; a ValueError if one of its figures is not a number."""
    forecasts = tuple(map(_forecast, record["forecasts"]))
    figures = {name: whole(record, name) for name in record if name not in ("chosen", "forecasts")}
    return Plan(**figures, chosen=_forecast(record["chosen"]), forecasts=forecasts)


def _forecast(record: dict[str, Any]) -> Forecast:
    solver, dtype = text(record, "solver"), text(record, "dtype", *DTYPES)
    square, added = whole(record, "square"), whole(record, "added_bytes")
    return Forecast(solver, dtype, square, number(record, "flops", 0), added)


def _warn_of_scale(l2: float, usual_l2: float, weights: NDArray[np.float32]) -> None:
    """Say that a penalty does nothing, or leaves nothing, beside weights of another order of magnitude."""
    if l2 == 0 or 1 / _ABSURD < l2 / usual_l2 < _ABSURD or (weights == 1).all():
        return
    effect = "does nothing" if l2 < usual_l2 else "leaves nothing of them"
    warnings.warn(
        ParameterWarning(
            Option.of_number("l2", l2),
            f" beside weights of {weights.min():g} to {weights.max():g} (median {np.median(weights):g}) {effect}: for "
            f"weights of this size l2 is about {usual_l2:.3g}. Leave l2 out, tune it, or bring the weights to the "
            "order of 1, as by ",
            Option("weighting", "log"),
        ),
        stacklevel=3,
    )


def warn_of_local(plan: Plan) -> None:
    exact = min((each for each in plan.forecasts if each.solver != "local"), key=lambda each: each.added_bytes)
    warnings.warn(
        ApproximationWarning(
            f"an exact fit of {plan.users:,} users × {plan.items:,} items needs {in_bytes(exact.added_bytes)} and "
            f"{in_bytes(plan.available_bytes)} are available: each item is explained by its {plan.chosen.square:,} "
            "nearest items only, an approximation; ",
            Option("solver", "exact"),
            " refuses instead, ",
            Option("solver", "local"),
            " says that it is wanted",
        ),
        stacklevel=3,
    )
