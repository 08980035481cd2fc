"""Models made from fitted ones: smaller, or with new users, for less than a fit."""

import warnings
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae import algebra
from relae._common.progress import Progress, of_stage
from relae.data import Ids, Interactions
from relae.errors import DataError, UncheckedUsersWarning
from relae.linalg import Csr, as_csr, gram_diagonal, scaled_rows
from relae.models._rows import stacked
from relae.ranking import rank
from relae.recommender import encode
from relae.solvers import (
    TOLERANCE,
    DualInverse,
    Inverse,
    Local,
    LocalInverse,
    NewItems,
    PrimalInverse,
    Supports,
    as_solver,
    by_closeness,
    local_solutions,
    plan,
    solve_local,
    without_new_items,
)

if TYPE_CHECKING:
    from relae.models._linear import LinearAutoencoder

Model = TypeVar("Model", bound="LinearAutoencoder")

_SAME = 1e-6  # relative: the same squares, added up in another order, differ by far less
_WORTHWHILE = 0.25  # new rows beside the rows of the square: with more of them a fit costs no more


# --- smaller -----------------------------------------------------------------------------------------------------


def compact(
    model: Model, data: Any, per_item: int, supports: str, progress: Progress | None, rng: np.random.Generator
) -> Model:
    """Return the model on supports of `per_item` items, where its closed form is solved again."""
    x = _all_rows(model, _training(model, data).matrix)
    if supports in ("cosine", "count"):
        chosen = by_closeness(x, per_item, supports)
    elif supports == "weights":
        chosen = _by_weights(without_new_items(model.inverse_), per_item)
    else:
        raise ValueError(f"supports must be 'cosine', 'count' or 'weights', got {supports!r}")
    users, items = x.shape
    forecast = plan(users, items, x.nnz, solver=Local(per_item, dtype=model.inverse_.dtype.name))
    report = of_stage(progress, "compact")
    found, error = solve_local(x, model.penalty_, report, chosen, rng)
    if not error <= TOLERANCE:
        raise DataError(f"the small systems failed their check (error {error:.1e}): is this the data of the fit?")
    inverse: Inverse = model.inverse_.on(found) if isinstance(model.inverse_, NewItems) else found
    other = model._share(type(model)(**model.get_params()))
    other.inverse_, other.inverse_diagonal_, other.residual_, other.plan_ = inverse, inverse.diagonal(), error, forecast
    other.neighbours_, other.nearest_by_ = per_item, model.nearest_by_ if supports == "weights" else supports
    return other


def _all_rows(model: "LinearAutoencoder", x: Csr) -> Csr:
    """Return the rows that a model is fitted to, features included, times the roots of their weights."""
    features = None if model.item_features_ is None else _with_more_items(model.item_features_, x.shape[1])
    return scaled_rows(*stacked(as_csr(x, model.inverse_.dtype), model.user_norm_, features, model.feature_weight_))


def _with_more_items(features: Csr, n_items: int) -> Csr:
    """Return features for further items, of which none are known."""
    starts = np.pad(features.indptr, (0, n_items - features.shape[0]), mode="edge")
    return sp.csr_array((features.data, features.indices, starts), shape=(n_items, features.shape[1]))


def _by_weights(inverse: Inverse, per_item: int) -> Supports:
    """Supports of the items with the largest |P_ij|, and so |B_ij|, of each column j; P is symmetric."""

    def chosen(items: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        members = np.zeros((len(items), per_item), np.int32)
        sizes = np.empty(len(items), np.int64)
        step = max(1, int(inverse.batch_bytes / inverse.bytes_per_user))
        for start in range(0, len(items), step):
            block = items[start : start + step]
            values = np.abs(inverse.rows(block))
            values[np.arange(len(block)), block] = np.inf  # the item itself
            best, _ = rank(values, per_item)
            for row, found in enumerate(best):
                kept = np.sort(found[found >= 0])
                members[start + row, : len(kept)], sizes[start + row] = kept, len(kept)
        return members, sizes

    return chosen


def _training(model: "LinearAutoencoder", data: Any) -> Interactions:
    """Return the data that the model was fitted to, on its columns."""
    own = without_new_items(model.inverse_)
    if data is None and isinstance(own, DualInverse):
        features = 0 if model.item_features_ is None else model.item_features_.shape[1]
        return Interactions(own.x[features:], items=model.items_)
    if data is None:
        raise DataError("the model does not hold its training data in this form: give it as data")
    given = data if isinstance(data, Interactions) else Interactions(data, items=model.items_)
    found = encode(given, model.items_)
    counts, squares = np.bincount(found.matrix.indices, minlength=len(model.items_)), gram_diagonal(found.matrix)
    if found.unknown or not np.array_equal(counts, model.item_counts_):
        raise DataError(
            f"this is not the data of the fit: {given.n_users:,} users with {given.n_interactions:,} interactions, "
            f"and the fit had {model.n_users_:,} with {int(model.item_counts_.sum()):,}"
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
    return Interactions(found.matrix, items=model.items_)


# --- with new users ----------------------------------------------------------------------------------------------


def update(model: Model, new: Any, data: Any, progress: Progress | None, rng: np.random.Generator) -> Model:
    """Return the model that a fit to the old and the new users with the same l2 would give."""
    added = model.to_interactions(new)
    _check_new_users(model, added, data)
    if isinstance(model.inverse_, NewItems):
        raise DataError(
            f"{len(model.inverse_.items):,} items of this model have no users and are known by their features alone, "
            "which new users would change: fit again to all of the data"
        )
    _check_features(model, added)
    names, titles = _grown(model, added)
    u = as_csr(encode(added, names).matrix, model.inverse_.dtype)
    _, row_weights = stacked(u, model.user_norm_)
    weighted = scaled_rows(u, row_weights)
    more = len(names) - len(model.items_)
    growth = algebra.penalty(gram_diagonal(u), 1.0, model.dropout_) - 1.0
    if more and model.l2_ == 0:
        raise DataError(
            f"{more:,} items are new and l2 is 0, so that nothing keeps their weights: fit again with an l2"
        )
    before = np.concatenate([model.penalty_, np.full(more, model.l2_)])
    penalty = before + growth
    other = model._share(type(model)(**model.get_params()))
    if isinstance(model.inverse_, LocalInverse):
        other.inverse_, error = _local_update(model, u, penalty, data, progress, rng)
        other.residual_ = max(model.residual_, error)
    else:
        rows = _with_growth(weighted, growth)
        assert isinstance(model.inverse_, PrimalInverse | DualInverse)
        old = model.inverse_.with_items(before[len(model.items_) :])
        _check_worthwhile(old, rows, model.dropout_)
        other.inverse_ = old.with_rows(u, row_weights) if isinstance(old, DualInverse) else old.with_rows(rows)
        other.residual_ = model.residual_ + _step_error(old, other.inverse_, rows, rng)
        if not other.residual_ <= TOLERANCE:
            raise DataError(f"the update failed its check (error {other.residual_:.1e}): fit again to all of the data")
    other.penalty_, other.inverse_diagonal_ = penalty, other.inverse_.diagonal()
    if model.item_features_ is not None:
        other.item_features_ = _with_more_items(model.item_features_, len(names))
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
    """Refuse users of the fit, who would count twice. Rows without ids are new users by definition."""
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


def _with_growth(u: Csr, growth: NDArray[np.floating]) -> Csr:
    """Return the new users and, for each item whose penalty grows, a row that adds its growth to the diagonal."""
    grown = np.flatnonzero(growth > 0)
    if len(grown) == 0:
        return u
    roots = np.sqrt(growth[grown]).astype(u.dtype)
    extra = sp.csr_array((roots, grown.astype(np.int32), np.arange(len(grown) + 1)), shape=(len(grown), u.shape[1]))
    return as_csr(sp.vstack([u, extra]), u.dtype)


def _check_worthwhile(inverse: PrimalInverse | DualInverse, rows: Csr, dropout: float) -> None:
    if isinstance(inverse, DualInverse) and dropout > 0:
        raise DataError("with dropout new users change every weight of the dual form: fit again to all of the data")
    side = inverse.n_items if isinstance(inverse, PrimalInverse) else len(inverse.kernel_inverse)
    if rows.shape[0] > _WORTHWHILE * side:
        why = " (with dropout every item that the new users have counts as one)" if dropout > 0 else ""
        raise DataError(
            f"an update by {rows.shape[0]:,} rows{why} costs no less than a fit with a square of {side:,}: "
            "fit again to all of the data"
        )


def _step_error(old: Any, new: Any, rows: Csr, rng: np.random.Generator) -> float:
    """The largest ‖P'v + PUᵀUP'v − Pv‖ / ‖Pv‖ over a few random v: what the step itself has lost."""
    if isinstance(old, DualInverse):
        rows = as_csr(rows, np.float64)
    vectors = rng.standard_normal((new.n_items, 4)).astype(new.dtype)
    before, after = old.apply(vectors).astype(np.float64), new.apply(vectors).astype(np.float64)
    back = after + old.apply((rows.T @ (rows @ after)).astype(new.dtype)) - before
    return float((np.linalg.norm(back, axis=0) / np.linalg.norm(before, axis=0)).max())


def _local_update(
    model: "LinearAutoencoder",
    u: Csr,
    penalty: NDArray[np.float64],
    data: Any,
    progress: Progress | None,
    rng: np.random.Generator,
) -> tuple[LocalInverse, float]:
    """Solve again for the items that share a user with an item of the new users: only their neighbourhoods change."""
    old = _training(model, data).matrix
    n = u.shape[1]
    users = sp.vstack([sp.csr_array((old.data, old.indices, old.indptr), (old.shape[0], n)), u])
    whole = _all_rows(model, as_csr(users, u.dtype))
    touched = np.zeros(n, bool)
    touched[u.indices] = True
    has = sp.csr_array((np.ones(len(whole.indices), np.float32), whole.indices, whole.indptr), shape=whole.shape)
    concerned = has @ touched.astype(np.float32) > 0  # users, and features, which may be negative
    changed = touched.copy()
    changed[whole[np.flatnonzero(concerned)].indices] = True
    items = np.flatnonzero(changed)
    report = of_stage(progress, "update")
    supports = by_closeness(whole, model.neighbours_, model.nearest_by_)
    solved, error = local_solutions(whole, penalty, items, supports, report, rng)
    if not error <= TOLERANCE:
        raise DataError(f"the update failed its check (error {error:.1e}): fit again to all of the data")
    assert isinstance(model.inverse_, LocalInverse)
    was = sp.csc_array(model.inverse_.columns)
    starts = np.pad(was.indptr, (0, n - was.shape[1]), mode="edge")
    kept = sp.csc_array((was.data, was.indices, starts), shape=(n, n))
    order = np.empty(n, np.int64)
    order[np.flatnonzero(~changed)], order[items] = np.arange(n - len(items)), n - len(items) + np.arange(len(items))
    columns = sp.hstack([kept[:, np.flatnonzero(~changed)], solved], format="csc")[:, order]
    return LocalInverse(as_csr(columns.tocsr(), u.dtype)), error
