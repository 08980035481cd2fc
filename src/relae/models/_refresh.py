"""Models made from fitted ones: smaller, or with new users, for less than a fit."""

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp

from relae import algebra
from relae._common.checks import refuse
from relae._common.progress import Progress, of_stage
from relae.data import Ids, Interactions, InteractionsLike, as_interactions
from relae.errors import DataError, UncheckedUsersWarning
from relae.linalg import Csr, as_csr, gram_diagonal, scaled_rows
from relae.models._rows import stacked
from relae.recommender import encode
from relae.solvers import (
    TOLERANCE,
    Local,
    NewRows,
    as_solver,
    by_closeness,
    plan,
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
    x = _all_rows(model, _training(model, data).matrix)
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


def _training(model: "LinearAutoencoder", data: InteractionsLike | None) -> Interactions:
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


# --- with new users ----------------------------------------------------------------------------------------------


def update(model: Model, new: Any, data: Any, progress: Progress | None, rng: np.random.Generator) -> Model:
    """Return the model that a fit to the old and the new users with the same l2 would give."""
    if model.fit_.half_life is not None:
        raise DataError(
            f"this model was fitted with a half-life of {model.fit_.half_life:g} days, so that later events change the "
            "weight of all earlier ones: fit it again"
        )
    added = model.to_interactions(new)
    _check_new_users(model, added, data)
    _check_features(model, added)
    names, titles = _grown(model, added)
    u = as_csr(encode(added, names).matrix, model.inverse_.dtype)
    _, row_weights = stacked(u, model.fit_)
    more = len(names) - len(model.items_)
    growth = algebra.penalty_of(gram_diagonal(u), model.fit_._replace(l2=1.0)) - 1.0
    if more and model.l2_ == 0:
        raise DataError(
            f"{more:,} items are new and l2 is 0, so that nothing keeps their weights: fit again with an l2"
        )
    before = np.concatenate([model.penalty_, np.full(more, model.l2_)])
    all_rows = partial(_old_and_new, model, u, data)
    rows = NewRows(u, row_weights, before, growth, all_rows, model.neighbours_, model.nearest_by_)
    inverse, residual = model.inverse_.updated(rows, model.residual_, of_stage(progress, "update"), rng)
    other = model._share(type(model)(**model.get_params()))
    other.inverse_, other.residual_ = inverse, residual
    other.penalty_, other.inverse_diagonal_ = before + growth, inverse.diagonal()
    if model.item_features_ is not None:
        other.item_features_ = _with_more_items(model.item_features_, len(names))
    if model.demand_ is not None:
        cells = encode(added, names)
        known = model.demand_.for_items(len(names))
        times = np.empty(0, np.int64) if cells.times is None else cells.times
        other.demand_ = known.with_events(cells.matrix.indices[: len(times)], times)
    other.items_, other.titles_, other.n_users_ = names, titles, model.n_users_ + added.n_users
    other.users_ = _all_users(model, added)
    other.item_counts_ = np.pad(model.item_counts_, (0, more)) + np.bincount(u.indices, minlength=len(names))
    if model.item_squares_ is not None:
        other.item_squares_ = np.pad(model.item_squares_, (0, more)) + gram_diagonal(u)
    other.plan_ = plan(
        other.n_users_,
        len(names),
        int(other.item_counts_.sum()),
        solver=as_solver(
            model.inverse_.solver,
            dtype=model.inverse_.dtype.name,
            neighbours=model.neighbours_,
            nearest_by=model.nearest_by_,
        ),
    )
    return other


def _check_new_users(model: "LinearAutoencoder", added: Interactions, data: Any) -> None:
    """Raise a DataError for users of the fit, who would count twice. Rows without ids are new users by definition."""
    if added.users.positional:
        return
    users = data.users if isinstance(data, Interactions) and not data.users.positional else model.users_
    if users is None:
        warnings.warn(
            f"this model does not know the ids of the {model.n_users_:,} users it was fitted to (it was saved without "
            f"histories, or fitted by a cluster), and one of them among these {added.n_users:,} users would count "
            "twice: make sure that all are new, or fit again to all of the data",
            UncheckedUsersWarning,
            stacklevel=4,
        )
        return
    if users.positional:
        return
    known = np.flatnonzero(users.positions(added.users.values) >= 0)
    if len(known):
        raise DataError(
            f"{len(known):,} of {added.n_users:,} users are users of the fit and would count twice, such as "
            f"{added.users.take(known[:1])[0]!r}: an update takes new users only; fit again to all of the data, or "
            "leave them out with new.select_users(model.users_.positions(new.users.values) < 0)"
        )


def _all_users(model: "LinearAutoencoder", added: Interactions) -> Ids | None:
    """Return the ids of the old and the new users, of those who have any; None where the old ones are not known."""
    old, new = model.users_, added.users
    if old is None or (new.positional and not old.positional):
        return old
    if old.positional:
        return Ids.range(len(old) + len(new)) if new.positional else new
    if old.kind != new.kind:
        return Ids([str(value) for ids in (old, new) for value in ids.values.tolist()])
    return Ids(np.concatenate([old.values, new.values]))


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


def _grown(model: "LinearAutoencoder", added: Interactions) -> tuple[Ids, Any]:
    """Return the ids of the old items and then of the new ones, and all titles."""
    unknown = np.flatnonzero(model.items_.positions(added.items.values) < 0)
    used = unknown[np.bincount(added.matrix.indices, minlength=added.n_items)[unknown] > 0]
    if len(used) == 0:
        return model.items_, model.titles_
    if added.items.kind != model.items_.kind:
        raise DataError(f"the new items are {added.items}, and those of the model are {model.items_}")
    names = Ids(np.concatenate([model.items_.values, added.items.values[used]]))
    if model.titles_ is None and added.titles is None:
        return names, None
    nothing = np.full(len(model.items_), None, dtype=object)
    theirs = np.full(len(used), None, dtype=object) if added.titles is None else added.titles[used]
    return names, np.concatenate([nothing if model.titles_ is None else model.titles_, theirs])


def _old_and_new(model: "LinearAutoencoder", new: Csr, data: Any) -> Csr:
    """Return all rows of a fit to the old and the new users, times the roots of their weights."""
    old, n = _training(model, data).matrix, new.shape[1]
    users = sp.vstack([sp.csr_array((old.data, old.indices, old.indptr), (old.shape[0], n)), new])
    return _all_rows(model, as_csr(users, new.dtype))
