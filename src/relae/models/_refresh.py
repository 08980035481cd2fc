"""Models made from fitted ones for less than a fit: smaller, or with other users and items."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae import algebra
from relae._common.checks import refuse
from relae._common.progress import Fraction, Progress, of_stage
from relae.data import (
    Demand,
    Ids,
    Interactions,
    InteractionsLike,
    as_interactions,
    has_amounts,
    joined_ids,
    joined_items,
    joined_titles,
)
from relae.errors import DataError, UncheckedUsersWarning
from relae.linalg import Csr, as_csr, gram_diagonal, scaled_rows
from relae.models._rows import check_new_items, stacked, with_new_items
from relae.recommender import Histories, encode
from relae.solvers import (
    TOLERANCE,
    Change,
    Local,
    Rows,
    as_solver,
    by_closeness,
    check_updated,
    plan,
    residual,
    solve_local,
)

if TYPE_CHECKING:
    from relae.models._linear import LinearAutoencoder

Model = TypeVar("Model", bound="LinearAutoencoder")

_SAME = 1e-6  # relative: the same squares, added up in another order, differ by far less


# --- smaller -----------------------------------------------------------------------------------------------------


def compact(
    model: Model, data: Any, per_item: int, supports: str, progress: Progress | None, rng: np.random.Generator
) -> Model:
    """Return the model on supports of `per_item` items, where its closed form is solved again."""
    x = _all_rows(model, training_data(model, data).matrix)
    if supports in ("cosine", "count"):
        support_sets = by_closeness(x, per_item, supports)
    elif supports == "weights":
        support_sets = model.inverse_.supports_by_weights(per_item)
    else:
        refuse("supports", supports, "be 'cosine', 'count' or 'weights'")
    users, items = x.shape
    forecast = plan(users, items, x.nnz, solver=Local(per_item, dtype=model.inverse_.dtype.name))
    report = of_stage(progress, "compact")
    local_inverse, error = solve_local(x, model.penalty_, report, support_sets, rng)
    if not error <= TOLERANCE:
        raise DataError(f"the small systems failed their check (error {error:.1e}): is this the data of the fit?")
    inverse = model.inverse_.in_form(local_inverse)
    other = model._share(type(model)(**model.get_params()))
    other.inverse_, other.inverse_diagonal_, other.residual_, other.plan_ = inverse, inverse.diagonal(), error, forecast
    other.neighbours_, other.nearest_by_ = per_item, model.nearest_by_ if supports == "weights" else supports
    return other


def _all_rows(model: "LinearAutoencoder", x: Csr) -> Csr:
    """Return the rows that a model is fitted to, features included, times the roots of their weights."""
    features = None if model.item_features_ is None else _with_more_items(model.item_features_, x.shape[1])
    return scaled_rows(*stacked(as_csr(x, model.inverse_.dtype), model.fit_, features, model.feature_weight_))


def _with_more_items(features: Csr, n_items: int) -> Csr:
    """Return features for further items, of which none are known."""
    starts = np.pad(features.indptr, (0, n_items - features.shape[0]), mode="edge")
    return sp.csr_array((features.data, features.indices, starts), shape=(n_items, features.shape[1]))


def training_data(model: "LinearAutoencoder", data: InteractionsLike | None) -> Interactions:
    """Return the data that the model was fitted to, on its columns."""
    held = model.inverse_.held_rows
    if data is None and held is not None:
        features = 0 if model.item_features_ is None else model.item_features_.shape[1]
        return Interactions(held[features:], items=model.items_)
    if data is None:
        raise DataError("the model does not hold its training data in this form: give it as data")
    interactions = model._aged(as_interactions(data, model.items_))
    encoded = encode(interactions, model.items_)
    counts, squares = np.bincount(encoded.matrix.indices, minlength=len(model.items_)), gram_diagonal(encoded.matrix)
    if encoded.unknown or not np.array_equal(counts, model.item_counts_):
        raise DataError(
            f"this is not the data of the fit: {interactions.n_users:,} users with {interactions.n_interactions:,} "
            f"interactions, and the fit had {model.n_users_:,} with {int(model.item_counts_.sum()):,}"
        )
    known = squares if model.item_squares_ is None else model.item_squares_
    others = np.flatnonzero(~np.isclose(squares, known, rtol=_SAME, atol=0))
    if len(others):
        first = others[0]
        raise DataError(
            f"this data has other weights than that of the fit, in {len(others):,} of {len(counts):,} items: the "
            f"squares of item {model.items_.values.tolist()[first]!r} add up to {squares[first]:g}, and in the fit to "
            f"{known[first]:g}; give it with the weights of the fit"
        )
    return Interactions(encoded.matrix, items=model.items_)


# --- with other users and items ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Step:
    """The rows that leave a model and that come, on the items of the model after it; see `relae.solvers.Change`."""

    gone: Csr
    come: Csr
    returning: int
    gone_at: NDArray[np.int64]
    items: Ids
    columns: NDArray[np.int64]
    """Where the items of the model are among those after it, −1 for those that are dropped."""
    gone_lengths: NDArray[np.int64] | None = None
    """How many items the rows that leave had, if some of them are dropped."""

    @classmethod
    def of_rows(cls, model: "LinearAutoencoder", gone: Csr, come: Csr, returning: int, at: Any, items: Ids) -> "_Step":
        """Return the step by rows of users, without those who come back and are the same as before."""
        moved = _differ(gone[:returning], come[:returning])
        leave, stay = np.append(moved, np.ones(gone.shape[0] - returning, bool)), int(moved.sum())
        arrive = np.append(moved, np.ones(come.shape[0] - returning, bool))
        gone, come = (as_csr(x[np.flatnonzero(which)], x.dtype) for x, which in ((gone, leave), (come, arrive)))
        return cls(gone, come, stay, np.asarray(at)[leave], items, np.arange(len(model.items_)))

    @property
    def kept(self) -> NDArray[np.int64]:
        """The items of the model that stay."""
        return np.flatnonzero(self.columns >= 0)

    def on_items_after(self, values: NDArray[Any], fill: float) -> NDArray[Any]:
        """Return values per item of the model, as the items are after the step : (items,)."""
        return np.pad(values[self.kept], (0, len(self.items) - len(self.kept)), constant_values=fill)


def _apply(
    model: Model, step: _Step, training: Interactions | None, progress: Fraction | None, rng: np.random.Generator
) -> Model:
    """Return the model after a step: P, Λ and all that is counted by item."""
    dtype = model.inverse_.dtype
    gone, come = as_csr(step.gone, dtype), as_csr(step.come, dtype)
    gone_lengths = np.diff(gone.indptr) if step.gone_lengths is None else step.gone_lengths
    gone_weights = algebra.row_weights(gone_lengths, model.fit_)
    come_weights = algebra.row_weights(np.diff(come.indptr), model.fit_)
    before = step.on_items_after(model.penalty_, model.l2_)
    growth = _penalty_part(come, model.fit_) - _penalty_part(gone, model.fit_)
    growth[np.abs(growth) < _SAME**2 * before] = 0.0
    penalty = before + growth
    bare = int(np.count_nonzero(penalty <= _SAME * before))
    if bare:
        raise DataError(
            f"{bare:,} items would have no users left and no penalty, because l2 is {model.l2_:g}: fit again with an l2"
        )
    change = Change(
        gone,
        come,
        gone_weights,
        come_weights,
        step.returning,
        step.gone_at,
        model.n_users_,
        before,
        growth,
        partial(_rows_after, model, step, training),
        model.neighbours_,
        model.nearest_by_,
    )
    plain, dropped = model.inverse_.plain, np.flatnonzero(step.columns < 0)
    if len(dropped):
        inverse, residual_bound = plain.without_items(dropped, change, model.residual_, progress, rng)
    else:
        inverse, residual_bound = plain.changed(change, model.residual_, progress, rng)
    other = model._share(type(model)(**model.get_params()))
    other.residual_ = residual_bound
    if training is not None and inverse.solver != Local.name:
        other.residual_ = residual(inverse, Rows(_rows_after(model, step, training)), penalty, rng)
        check_updated(other.residual_)
    other.items_, other.n_users_ = step.items, model.n_users_ + come.shape[0] - gone.shape[0]
    counted = np.bincount(come.indices, minlength=len(step.items)) - np.bincount(
        gone.indices, minlength=len(step.items)
    )
    other.item_counts_ = step.on_items_after(model.item_counts_, 0) + counted
    if (other.item_counts_ < 0).any():
        raise DataError("these users had items that nobody had in the fit: is this the data of the fit?")
    if model.item_squares_ is not None:
        squares = step.on_items_after(model.item_squares_, 0.0) + gram_diagonal(come) - gram_diagonal(gone)
        other.item_squares_ = np.where(other.item_counts_ > 0, np.maximum(squares, 0.0), 0.0)
    if model.titles_ is not None:
        other.titles_ = np.append(model.titles_[step.kept], np.full(len(step.items) - len(step.kept), None))
    if model.item_features_ is not None:
        features = _with_more_items(as_csr(model.item_features_[step.kept], np.float32), len(step.items))
        other.item_features_ = features
        check_new_items(other.item_counts_, features, model.l2_)
        inverse = with_new_items(inverse, other.item_counts_, features, model.feature_weight_, model.fit_)
    other.inverse_, other.penalty_, other.inverse_diagonal_ = inverse, penalty, inverse.diagonal()
    other.plan_ = plan(
        other.n_users_,
        len(step.items),
        int(other.item_counts_.sum()),
        solver=as_solver(
            model.inverse_.solver, dtype=dtype.name, neighbours=model.neighbours_, nearest_by=model.nearest_by_
        ),
    )
    return other


def _penalty_part(rows: Csr, fit: algebra.Fit) -> NDArray[np.float64]:
    """Return what rows add to the penalty : (items,)."""
    return algebra.penalty_of(gram_diagonal(rows), fit._replace(l2=1.0)) - 1.0


def _differ(x: Csr, y: Csr) -> NDArray[np.bool_]:
    """Return which rows of two matrices differ : (rows,)."""
    return np.asarray(np.diff(as_csr(x != y, bool).indptr) > 0)


def _rows_after(model: "LinearAutoencoder", step: _Step, training: Interactions | None) -> Csr:
    """Return all rows of a fit after a step, times the roots of their weights."""
    if training is None:
        raise DataError("the model does not hold its training data in this form: give it as data")
    x = training.matrix
    left = x[np.setdiff1d(np.arange(x.shape[0]), step.gone_at)][:, step.kept]
    n = len(step.items)
    wide = sp.csr_array((left.data, left.indices, left.indptr), shape=(left.shape[0], n))
    features = model.item_features_
    if features is not None:
        features = _with_more_items(as_csr(features[step.kept], np.float32), n)
    users = as_csr(sp.vstack([wide, step.come]), model.inverse_.dtype)
    return scaled_rows(*stacked(users, model.fit_, features, model.feature_weight_))


def known_data(model: "LinearAutoencoder", data: InteractionsLike | None) -> Interactions | None:
    """Return the training data with the ids of its users, as far as it is given or held by the model."""
    if data is not None:
        return as_interactions(data, model.items_)
    if model.inverse_.held_rows is None:
        return None
    held, users = training_data(model, None), model.users_
    return held if users is None or len(users) != held.n_users else held.replace(users=users)


def update(model: Model, new: Any, data: Any, progress: Progress | None, rng: np.random.Generator) -> Model:
    """Return the model that a fit to the old and the new events with the same l2 would give."""
    if model.fit_.half_life is not None:
        raise DataError(
            f"this model was fitted with a half-life of {model.fit_.half_life:g} days, so that later events change the "
            "weight of all earlier ones: fit it again"
        )
    added, known = model.to_interactions(new), known_data(model, data)
    _check_features(model, added)
    used = np.bincount(added.matrix.indices, minlength=added.n_items) > 0
    names, columns = joined_items(model.items_, added.items, used)
    if len(names) > len(model.items_) and model.l2_ == 0:
        raise DataError(
            f"{len(names) - len(model.items_):,} items are new and l2 is 0, so that nothing keeps their weights: fit "
            "again with an l2"
        )
    back = _who_come_back(model, added, known)
    training = None if known is None else training_data(model, data)
    nobody = Histories(sp.csr_array((0, len(names)), dtype=np.float32), raw=True)
    earlier, later, at = nobody, encode(added, names), np.empty(0, np.int64)
    if len(back):
        if known is None or known.users.positional:
            raise DataError(
                f"{len(back):,} of {added.n_users:,} users are users of the fit, such as "
                f"{added.users.take(back[:1])[0]!r}, and the model does not know what they had: give the data of the "
                "fit as data, or leave them out with new.select_users(model.users_.positions(new.users.values) < 0)"
            )
        at = known.users.positions(added.users.values[back])
        theirs = known.select_users(at)
        earlier, later = encode(theirs, names), encode(theirs.joined(added, amounts=has_amounts(known, added)), names)
    step = _Step.of_rows(model, earlier.matrix, later.matrix, len(back), at, names)
    other = _apply(model, step, training, of_stage(progress, "update"), rng)
    other.n_users_ = model.n_users_ + added.n_users - len(back)
    other.titles_ = joined_titles(model.titles_, added.titles, len(model.items_), columns, len(names))
    other.users_ = _all_users(model, added, back)
    if model.demand_ is not None and later.times is not None:
        demand = model.demand_.for_items(len(names))
        if earlier.times is not None:
            demand = demand.without_events(earlier.matrix.indices, earlier.times)
        other.demand_ = demand.with_events(later.matrix.indices, later.times)
    return other


def _who_come_back(model: "LinearAutoencoder", added: Interactions, known: Interactions | None) -> NDArray[np.int64]:
    """Return which users are users of the fit. Rows without ids are new users by definition."""
    if added.users.positional:
        return np.empty(0, np.int64)
    users = known.users if known is not None and not known.users.positional else model.users_
    if users is None:
        warnings.warn(
            f"this model does not know the ids of the {model.n_users_:,} users it was fitted to (it was saved without "
            f"histories, or fitted by a cluster), and one of them among these {added.n_users:,} users would count "
            "twice: make sure that all are new, or fit again to all of the data",
            UncheckedUsersWarning,
            stacklevel=4,
        )
        return np.empty(0, np.int64)
    return np.empty(0, np.int64) if users.positional else np.flatnonzero(users.positions(added.users.values) >= 0)


def _all_users(model: "LinearAutoencoder", added: Interactions, back: NDArray[np.int64]) -> Ids | None:
    """Return the ids of the old and the new users, of those who have any; None where the old ones are not known."""
    old, new = model.users_, added.users
    if old is None or (new.positional and not old.positional):
        return old
    if old.positional:
        return Ids.range(len(old) + len(new)) if new.positional else new
    return joined_ids(old, new, np.ones(len(new), bool))[0]


def _check_features(model: "LinearAutoencoder", added: Interactions) -> None:
    if added.features is None:
        return
    unknown = model.items_.positions(added.items.values) < 0
    described = int(np.count_nonzero(np.diff(added.features.matrix.indptr)[unknown]))
    if described:
        raise DataError(
            f"{described:,} items that are new to the model have features, which need a fit: fit again to all of the "
            "data, or give the new users without features"
        )


def forget(model: Model, users: Iterable[Any], data: Any, progress: Progress | None, rng: np.random.Generator) -> Model:
    """Return the model that a fit without some users with the same l2 would give."""
    ids, known = list(dict.fromkeys(users)), known_data(model, data)
    if known is None or (known.users.positional and not (model.users_ is None or model.users_.positional)):
        raise DataError(
            "the model does not hold what its users had, which has to be taken from it: give the data of the fit, or "
            "the rows of these users, as data; a folder that was saved with histories has them"
        )
    at = known.users.positions(ids)
    strangers = [each for each, row in zip(ids, at.tolist(), strict=True) if row < 0 and not _was_dropped(known, each)]
    if strangers or not ids:
        what = f"user {strangers[0]!r} is unknown" if strangers else "no user is named"
        raise DataError(f"{what}: these are {known.n_users:,} users, {known.users}")
    at = at[at >= 0]
    if len(at) == model.n_users_:
        raise DataError(f"these are all {model.n_users_:,} users of the fit: remove the model")
    is_whole = known.n_users == model.n_users_
    if not is_whole and model.fit_.half_life is not None:
        raise DataError("the weights of a fit with a half-life depend on all of its data: give all of it as data")
    training = training_data(model, data) if is_whole else Interactions(encode(known, model.items_).matrix)
    gone = training.matrix[at]
    after = known.without_users(ids)
    if model.fit_.half_life is not None and _latest(after) != _latest(known):
        raise DataError(
            "the latest event of the fit is of these users, and with a half-life the weight of all others depends on "
            "it: fit again to the others"
        )
    nobody = sp.csr_array((0, gone.shape[1]), dtype=gone.dtype)
    step = _Step.of_rows(model, gone, nobody, 0, at, model.items_)
    other = _apply(model, step, training if is_whole else None, of_stage(progress, "forget"), rng)
    if model.users_ is not None:
        left = np.setdiff1d(np.arange(len(model.users_)), model.users_.positions(ids))
        other.users_ = Ids.range(other.n_users_) if model.users_.positional else Ids(model.users_.values[left])
    other.demand_ = _demand_after(model, after if is_whole else None, encode(known.select_users(at), model.items_))
    return other


def _was_dropped(data: Interactions, user: Any) -> bool:
    return data.dropped is not None and data.dropped.why(user) is not None


def _latest(data: Interactions) -> int | None:
    return None if data.times is None else int(data.times.max(initial=np.iinfo(np.int64).min))


def _demand_after(model: "LinearAutoencoder", after: Interactions | None, gone: Histories) -> Demand | None:
    """Return the demand without the events of some users: counted again from all others, or without theirs."""
    if model.demand_ is None:
        return None
    if after is not None and after.times is not None and after.n_interactions:
        on_columns = encode(after, model.items_)
        data = Interactions(on_columns.matrix, times=on_columns.times)
        return Demand.of(data, *model.demand_.half_lives)
    if gone.times is None:
        raise DataError("the model has the recent demand for items, and the data has no times: give it with times")
    return model.demand_.without_events(gone.matrix.indices, gone.times)


def drop_items(
    model: Model, items: Iterable[Any], data: Any, progress: Progress | None, rng: np.random.Generator
) -> Model:
    """Return the model that a fit without some items with the same l2 would give."""
    ids, known = list(dict.fromkeys(items)), known_data(model, data)
    dropped = model.items_.positions(ids)
    strangers = [each for each, column in zip(ids, dropped.tolist(), strict=True) if column < 0]
    if strangers or not ids:
        what = f"item {strangers[0]!r} is unknown" if strangers else "no item is named"
        raise DataError(f"{what}: the model has {len(model.items_):,} items, {model.items_}")
    n = len(model.items_)
    kept = np.setdiff1d(np.arange(n), dropped)
    if len(kept) == 0 or model.item_counts_[kept].sum() == 0:
        raise DataError("nothing would be left without these items: remove the model")
    training = None if known is None else training_data(model, data)
    after = None if known is None else known.without_items(ids)
    if model.fit_.half_life is not None and (after is None or known is None or _latest(after) != _latest(known)):
        raise DataError(
            "with a half-life the weight of all events depends on the latest one, which may be of these items: give "
            "the data of the fit as data, or fit again"
        )
    columns = np.full(n, -1)
    columns[kept] = np.arange(len(kept))
    names = Ids.range(len(kept)) if model.items_.positional else Ids(model.items_.values[kept])
    none = sp.csr_array((0, len(kept)), dtype=model.inverse_.dtype)
    step = _Step(none, none, 0, np.empty(0, np.int64), names, columns)
    if model.user_norm_ != 0:  # users who have fewer items weigh more
        if training is None:
            raise DataError(
                f"with a user_norm of {model.user_norm_:g} the users of these items would have another weight, and the "
                "model does not hold what its users had: give the data of the fit as data, or fit again"
            )
        has = np.flatnonzero(np.diff(sp.csr_array(training.matrix[:, np.sort(dropped)]).indptr))
        rows = as_csr(training.matrix[has][:, kept], model.inverse_.dtype)
        step = _Step(rows, rows, len(has), has, names, columns, np.diff(training.matrix.indptr)[has])
    other = _apply(model, step, training, of_stage(progress, "drop"), rng)
    if model.demand_ is not None:
        other.demand_ = model.demand_.of_items(kept)
        if after is not None and after.times is not None and after.n_interactions:
            on_columns = encode(after, names)
            other.demand_ = Demand.of(
                Interactions(on_columns.matrix, times=on_columns.times), *model.demand_.half_lives
            )
    return other
