"""Divisions of interactions into what a model may see and what it has to find.

Nothing leaks: a model is fitted to `train`, and item counts, groups and propensities come from `train` alone.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypedDict

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae._common.checks import check_whole, is_number, refuse
from relae.data import Ids, Interactions, Lists, canonical_matrix, entries_of_rows, pattern_of, without_cells
from relae.errors import DataError, DataWarning, Option
from relae.evaluation.paper import StrongLists
from relae.linalg import Csr, as_csr, time_ranks


@dataclass(frozen=True)
class Split:
    """Interactions to fit to, and users whose history is given and whose truth is to be found.

    Attributes
    ----------
    train : Interactions
        What a model may be fitted to. Its items are the columns of the matrices below.
    users : Ids
        The raw ids of the users to judge by.
    histories, truth : (users, items)
        What is given of each of them, and what is hidden; no item is in both.
    protocol : str
        How the division was made, in a few words.
    left_out : mapping of str to int
        Users who could not be judged by, counted by reason.
    truth_order : (stored entries of truth,), optional
        The items of each user's truth in the order of a file; see `Scorer`.
    new_users : bool
        Whether the users to judge by are others than those of train.
    candidates : (columns,), optional
        The only items that may be recommended, by column; all of the truth is among them. Without it, all may.
    seen : (users, items) of bool, optional
        What the users to judge by have had beside history and truth, such as what they rated low: it is neither to be
        found nor a candidate. In a split by time only what they had seen by then.
    seen_later : (users of train, items) of bool, optional
        What the users of train see only after that: no candidate is left out for it, and only `everything` has it.
    history_times, truth_times : (stored entries of histories, of truth), optional
        When each interaction happened, in the unit of `train.times`.
    by_time : bool
        Whether all of the truth is later than the history of the same user.
    """

    train: Interactions
    users: Ids
    histories: Csr
    truth: Csr
    protocol: str
    left_out: Mapping[str, int] = field(default_factory=dict)
    truth_order: NDArray[np.integer] | None = None
    new_users: bool = False
    candidates: NDArray[np.int64] | None = None
    seen: Csr | None = None
    seen_later: Csr | None = None
    history_times: NDArray[np.int64] | None = None
    truth_times: NDArray[np.int64] | None = None
    by_time: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "histories", canonical_matrix(self.histories))
        object.__setattr__(self, "truth", canonical_matrix(self.truth))
        shape = (len(self.users), self.train.n_items)
        for name, matrix in (("histories", self.histories), ("truth", self.truth), ("seen", self.seen)):
            if matrix is not None and matrix.shape != shape:
                raise DataError(
                    f"{name} are {matrix.shape[0]:,} × {matrix.shape[1]:,}, and there are {shape[0]:,} users to judge "
                    f"by and {shape[1]:,} items in train"
                )
        for name, matrix in (("history", self.histories), ("truth", self.truth)):
            times = getattr(self, f"{name}_times")
            if times is not None and times.shape != (matrix.nnz,):
                raise DataError(f"{name}_times has {len(times):,} times for {matrix.nnz:,} interactions: give one each")
        if self.truth.nnz == 0:
            raise DataError(f"none of the {shape[0]:,} users has anything hidden that could be found")
        both = sp.csr_array(self.histories.astype(bool).multiply(self.truth.astype(bool)))
        if both.nnz:
            raise DataError(
                f"{both.nnz:,} items are in the history and in the truth of the same user, such as "
                f"{self._named(*(int(axis[0]) for axis in both.nonzero()))}: remove them from one of the two, "
                "or use ",
                Option("overlap", "drop", python="given_split(…, overlap='drop')"),
            )
        if self.seen is not None:  # what is in the history or the truth is liked
            seen = without_cells(without_cells(pattern_of(self.seen), self.histories), self.truth)
            object.__setattr__(self, "seen", seen if seen.nnz else None)
        if self.candidates is not None:
            object.__setattr__(self, "candidates", _columns(self.candidates, shape[1]))
            outside = np.flatnonzero(~np.isin(self.truth.indices, self.candidates))
            if len(outside):
                user, item = int(_owners(self.truth)[outside[0]]), int(self.truth.indices[outside[0]])
                raise DataError(
                    f"{len(outside):,} interactions to find are with items that are no candidates, such as "
                    f"{self._named(user, item)}: add the items to the candidates, or leave them out of the truth"
                )

    def _named(self, user: int, item: int) -> str:
        ids = self.train.items.take(np.array([item]))[0], self.users.take(np.array([user]))[0]
        return f"item {ids[0]!r} of user {ids[1]!r}"

    @property
    def n_candidates(self) -> int:
        """The number of items that may be recommended, which is the largest cut-off."""
        return self.train.n_items if self.candidates is None else len(self.candidates)

    @property
    def item_counts(self) -> NDArray[np.int64]:
        """Users per item in the training data : (items,)."""
        return np.bincount(self.train.matrix.indices, minlength=self.train.n_items)

    def everything(self) -> Interactions:
        """Return train and all that is known of the users to judge by, for a last fit once all is decided."""
        if self.new_users:
            matrix = sp.vstack([self.train.matrix, self.histories + self.truth], format="csr")
            ids = [*self.train.users.values.tolist(), *self.users.values.tolist()]
            users = Ids(ids) if len(set(ids)) == len(ids) else None  # users by number are others in train and truth
            seen = _stacked(self.train.seen, self.train.n_users, self.seen, *self.histories.shape)
        else:
            rows = self.train.users.positions(self.users.values)
            positions = sp.csr_array(
                (np.ones(len(rows), np.float32), (rows, np.arange(len(rows)))), shape=(self.train.n_users, len(rows))
            )
            matrix, users = self.train.matrix + positions @ self.truth, self.train.users
            seen = _either(self.train.seen, self.seen_later)
        matrix = canonical_matrix(matrix)
        times = self._times_of_everything(matrix)
        return self.train.replace(matrix=matrix, users=users, times=times, seen=seen, weighting="linear")

    def _times_of_everything(self, matrix: Csr) -> NDArray[np.int64] | None:
        """Return the times of the matrix of `everything`; None if those of train or the truth are not known."""
        if self.train.times is None or self.truth_times is None or (self.new_users and self.history_times is None):
            return None
        added = self.train.n_users + np.arange(len(self.users))
        rows = added if self.new_users else self.train.users.positions(self.users.values)
        parts: list[tuple[Csr, NDArray[Any], Any]] = [
            (self.train.matrix, np.arange(self.train.n_users), self.train.times),
            (self.truth, rows, self.truth_times),
            *([(self.histories, rows, self.history_times)] if self.new_users else []),
        ]
        owners = np.concatenate([rows[_owners(part)] for part, rows, _ in parts])
        order = np.lexsort((np.concatenate([part.indices for part, _, _ in parts]), owners))
        times = np.concatenate([times for _, _, times in parts])
        return np.asarray(times[order]) if len(times) == matrix.nnz else None

    def __repr__(self) -> str:
        among = "" if self.candidates is None else f"{self.n_candidates:,} of "
        beside = "" if self.seen is None else f", without {self.seen.nnz:,} pairs seen beside them"
        return (
            f"Split({self.protocol}: {self.train.n_users:,} users to train on, {len(self.users):,} to judge by, "
            f"{self.truth.nnz:,} interactions to find among {among}{self.train.n_items:,} items{beside})"
        )


def hold_out_users(
    data: Interactions, share: float = 0.1, truth_share: float = 0.2, *, rng: np.random.Generator
) -> Split:
    """Strong generalization: hold out a share of the users, and of each of them a share of the items as the truth.

    At least one item of each becomes the truth. Users with a single item are never held out: nothing would be left of
    their history.
    """
    _check_share(share=share, truth_share=truth_share)
    sizes = np.diff(data.matrix.indptr)
    able = np.flatnonzero(sizes >= 2)
    count = round(share * data.n_users)
    if not 0 < count <= len(able) or count == data.n_users:
        raise DataError(
            f"cannot hold out {count:,} of {data.n_users:,} users: {len(able):,} of them have two items or more"
        )
    held = np.sort(rng.choice(able, count, replace=False))
    rows = data.matrix[held]
    is_truth = _first(_ranks_in_rows(rows, rng.random(rows.nnz)), rows, truth_share)
    kept = np.ones(data.n_users, bool)
    kept[held] = False
    users = Ids(data.users.values[held])
    parts = _cells(rows, ~is_truth), _cells(rows, is_truth)
    times = None if data.times is None else data.times[entries_of_rows(data.matrix.indptr, held)]
    return Split(
        data.select_users(kept),
        users,
        *parts,
        "held-out users",
        new_users=True,
        seen=_taken(data.seen, held),
        **_divide_times(times, is_truth),
    )


def hide_items(
    data: Interactions, users: int | None = None, truth_share: float = 0.2, *, rng: np.random.Generator
) -> "tuple[NDArray[np.int64], Csr, Csr, _Times]":
    """Draw users, and of each a share of the items as the truth, as `hold_out_users` does; nobody is taken out of data.

    Returns the rows of the users, in rising order, histories and truth : (users, items), and their times. Users with a
    single item are never drawn; without a number, all others are.
    """
    _check_share(truth_share=truth_share)
    able = np.flatnonzero(np.diff(data.matrix.indptr) >= 2)
    if len(able) == 0:
        raise DataError(f"none of the {data.n_users:,} users has two items, one to hide and one to go by")
    if users is not None:
        check_whole("users", users)
        able = np.sort(rng.choice(able, min(users, len(able)), replace=False))
    rows = data.matrix[able]
    is_truth = _first(_ranks_in_rows(rows, rng.random(rows.nnz)), rows, truth_share)
    times = None if data.times is None else data.times[entries_of_rows(data.matrix.indptr, able)]
    return able, _cells(rows, ~is_truth), _cells(rows, is_truth), _divide_times(times, is_truth)


def hold_out_items(data: Interactions, truth_share: float = 0.2, *, rng: np.random.Generator) -> Split:
    """Weak generalization: hide a share of every user's items (at least one), and train on the rest.

    Users with a single item are trained on and not judged by.
    """
    _check_share(truth_share=truth_share)
    x = data.matrix
    is_truth = _first(_ranks_in_rows(x, rng.random(x.nnz)), x, truth_share)
    is_truth &= np.repeat(np.diff(x.indptr) >= 2, np.diff(x.indptr))
    return _within_users(data, is_truth, "held-out items")


def hold_out_new_items(data: Interactions, share: float = 0.1, *, rng: np.random.Generator) -> Split:
    """Cold start: a share of the items is new to the model, and users are to find theirs of them.

    The items are drawn among those that somebody has. All of their interactions become the truth, and they alone are
    the candidates: how the new items are ranked among themselves is judged, not whether they beat the others. They keep
    their columns and `features` in train, which is all that a model knows of them. A user's other items are the
    history. Users who have none are neither trained on nor judged by; those without a new item are not judged by.

    New items are all as popular as each other, so that a ranking by popularity is one by column: what a model has to
    beat is `relae.baselines.Random`, and with features `ContentKNN`.
    """
    _check_share(share=share)
    counts = np.bincount(data.matrix.indices, minlength=data.n_items)
    able = np.flatnonzero(counts)
    count = round(share * len(able))
    if not 0 < count < len(able):
        raise DataError(f"cannot hold out {count:,} of {data.n_items:,} items: {len(able):,} of them have users")
    new = np.sort(rng.choice(able, count, replace=False))
    is_truth = np.isin(data.matrix.indices, new)
    reasons = "no other items", "no new item"
    return _across(data, is_truth, "held-out new items", reasons, "no user has both new and other items", new)


def leave_last_out(data: Interactions, n: int = 1, *, share: float | None = None) -> Split:
    """Temporal: hide the n latest items of every user, and train on the earlier ones.

    Users with n items or fewer are trained on and not judged by. Of items with equal times, the one in the later
    column is later. Of what a judged user has seen beside the history, only that from before the first hidden item is
    known (without `data.seen_times`: nothing, with a warning).

    Parameters
    ----------
    data
        With times.
    n
        The number of items to hide.
    share
        In place of `n`: the share of each user's items to hide, at least one of two or more.
    """
    check_whole("n", n)
    if share is not None:
        _check_share(share=share)
    x, times = data.matrix, _times(data)
    newest_first = time_ranks(x, times) - 1
    sizes = np.diff(x.indptr)
    if share is None:
        is_truth = (newest_first < n) & np.repeat(sizes > n, sizes)
    else:
        is_truth = _first(newest_first, x, share) & np.repeat(sizes >= 2, sizes)
    first_hidden = np.full(data.n_users, np.iinfo(np.int64).max)
    np.minimum.at(first_hidden, _owners(x)[is_truth], times[is_truth])
    known = data.with_seen_before(first_hidden)
    protocol = f"last {n} of each user" if n > 1 else "last item of each user"
    protocol = protocol if share is None else f"latest {share:.0%} of each user's items"
    return _with_seen_later(_within_users(known, is_truth, protocol, by_time=True), data)


def split_by_time(data: Interactions, at: Any = None, *, share: float = 0.2) -> Split:
    """Temporal: train on what happened before one moment, and find what happened from then on.

    Users without anything before are not judged by; they are counted in `left_out`. Items that nobody had before stay
    in the catalog: a model cannot find them, and that counts against it. Of what users have seen beside their
    histories, only that from before the moment is known (without `data.seen_times`: nothing, with a warning).

    Parameters
    ----------
    data
        With times; a pair that occurs several times counts with its last.
    at
        The moment, in the unit of `data.times`; without it, that of the latest `share` of the interactions.
    """
    times = _times(data)
    if at is None:
        at = find_cut(data, share)
    if not is_number(at):
        raise DataError(
            f"at is a number in the unit of data.times, which run from {times.min():,} to {times.max():,}, got {at!r}"
        )
    is_truth = times >= at
    if is_truth.all() or not is_truth.any():
        raise DataError(
            f"nothing happens {'before' if is_truth.all() else 'at or after'} {at}: "
            f"times run from {times.min()} to {times.max()}"
        )
    reasons = "no history before", "nothing after"
    nobody = f"no user has interactions both before and from {at} on"
    known = data.with_seen_before(at)
    protocol = f"from {data.describe_times(at)[0]} on"
    return _with_seen_later(_across(known, is_truth, protocol, reasons, nobody, by_time=True), data)


def find_cut(data: Interactions, share: float) -> int:
    """Return the moment from which on the latest share of the interactions happened, in the unit of `data.times`."""
    times = _times(data)
    _check_share(share=share)
    hidden = min(max(1, round(share * len(times))), len(times) - 1)
    return int(np.sort(times)[len(times) - hidden])


def given_split(
    train: Interactions | Lists,
    truth: Interactions | Lists,
    histories: Interactions | Lists | None = None,
    *,
    protocol: str | None = None,
    overlap: Literal["refuse", "drop"] = "refuse",
    ordered: bool = False,
) -> Split:
    """Return a division that exists already, as tables or as lists in the order of their files.

    What a user has seen beside the interactions of any of the tables is neither to be found nor a candidate.

    Parameters
    ----------
    train
        What to fit to. Its features go along, and items that it does not have get none.
    truth
        What to find, for some users. Items that are not in train stay in the catalog: no model can find them.
    histories
        What is given of the users in `truth` (strong generalization); without it, their rows of train (weak).
    overlap
        What becomes of interactions to find that are in the history of the same user: an error, or they are dropped
        from the truth, with a warning that counts them.
    ordered
        Of lists: whether each is in the order of time, and the truth later than the history. The split then has times,
        which are places: 0 for the latest item of a history, 1 for the first of the truth. Of interactions with times
        the split has theirs.
    """
    if overlap not in ("refuse", "drop"):
        refuse("overlap", overlap, "be 'refuse' or 'drop'")
    if isinstance(train, Lists) or isinstance(truth, Lists) or isinstance(histories, Lists):
        if not (isinstance(train, Lists) and isinstance(truth, Lists) and isinstance(histories, (Lists, type(None)))):
            raise DataError("train, truth and histories must all be lists, or all be interactions")
        if overlap == "drop":
            truth = _without_pairs(truth, train if histories is None else histories)
        return _of_lists(train, truth, histories, protocol, ordered)
    if ordered:
        raise DataError(Option("ordered"), " is for lists: interactions have times of their own, so leave it out")
    items, titles = train.items, train.titles
    for other in (truth, histories):
        if other is not None and other.items != items:
            new = other.items.positions(items.values)
            added = np.setdiff1d(np.arange(len(other.items)), new)
            if len(added):
                titles = _joined(titles, len(items), other.titles, added)
                items = Ids([*items.values.tolist(), *other.items.values[added].tolist()])
    features = None if train.features is None else train.features.take(train.items.positions(items.values))
    whole = Interactions(
        _on_columns(train, items),
        train.users,
        items,
        titles,
        _times_on_columns(train, items),
        features,
        seen=train.seen_on(items),
        dropped=train.dropped,
        dropped_items=train.dropped_items,
    )
    source = whole
    if histories is not None:
        seen_there = histories.seen_on(items)
        moved = _on_columns(histories, items)
        source = Interactions(moved, histories.users, items, times=_times_on_columns(histories, items), seen=seen_there)
    row = source.users.positions(truth.users.values)
    have = row >= 0
    left_out = {"no history": int(np.count_nonzero(~have))}
    seen = _either(_taken(truth.seen_on(items), np.flatnonzero(have)), _taken(source.seen, row[have]))
    hidden = _on_columns(truth, items)[have]
    known = source.matrix[row[have]]
    times = _times_of_given(truth, items, have, source, row[have])
    if overlap == "drop":
        hidden, times = _drop_overlap(hidden, known, times)
    if histories is not None and not np.array_equal(train.users.values, np.arange(train.n_users)):
        _check_unknown(whole, truth.users.values[have], hidden)  # users by number are others in train and truth
    return Split(
        whole,
        Ids(truth.users.values[have]),
        known,
        hidden,
        protocol or ("given files, users of train" if histories is None else "given files, other users"),
        _counted(left_out),
        new_users=histories is not None,
        seen=seen,
        by_time=_is_later(known, hidden, times),
        **(times or _divide_times(None, np.empty(0, bool))),
    )


def _drop_overlap(truth: Csr, histories: Csr, times: "_Times | None") -> "tuple[Csr, _Times | None]":
    """Return the truth without what is in the histories, and the times of the rest."""
    kept = _without_cells(truth, histories)
    if times is None or times["truth_times"] is None:
        return kept, times
    keys, left = (_owners(each) * np.int64(truth.shape[1]) + each.indices for each in (truth, kept))
    return kept, {**times, "truth_times": times["truth_times"][np.isin(keys, left)]}


def _without_cells(truth: Csr, histories: Csr) -> Csr:
    """Return the truth without what is in the histories."""
    kept = as_csr(truth - truth.multiply(histories.astype(bool)), truth.dtype)
    kept.eliminate_zeros()
    _warn_of_overlap(truth.nnz - kept.nnz, truth.nnz)
    return kept


def _without_pairs(truth: Lists, histories: Lists) -> Lists:
    """Return the truth without what is in the histories, in its order."""
    width = 1 + max(int(part.items.max(initial=-1)) for part in (truth, histories))
    known = np.isin(truth.users * width + truth.items, histories.users * width + histories.items)
    _warn_of_overlap(int(np.count_nonzero(known)), len(known))
    return Lists(truth.users[~known], truth.items[~known], truth.owners)


def _warn_of_overlap(dropped: int, total: int) -> None:
    if dropped:
        warnings.warn(
            DataWarning(
                f"{dropped:,} of {total:,} interactions to find are in the history of the same user and were dropped"
            ),
            stacklevel=4,
        )


def paper_splits(lists: StrongLists) -> tuple[Split, Split]:
    """Return the validation and the test split of the paper's strong protocol; both have the same train."""
    valid = _of_lists(lists.train, lists.valid, lists.valid_in, "the paper's strong split, validation")
    test = _of_lists(lists.train, lists.test, lists.test_in, "the paper's strong split, test")
    return valid, test


def _check_unknown(train: Interactions, users: NDArray[Any], truth: Csr) -> None:
    """Raise if train knows a user by the same id, with an item that is to be found."""
    rows = train.users.positions(users)
    known = np.flatnonzero(rows >= 0)
    both = sp.csr_array(train.matrix[rows[known]].astype(bool).multiply(truth[known].astype(bool)))
    if both.nnz:
        raise DataError(
            f"{both.nnz:,} interactions to find are in train too, such as one of user "
            f"{users[known].tolist()[both.nonzero()[0][0]]!r}: leave the users to judge by out of train"
        )


def _joined(
    titles: NDArray[np.object_] | None, n_items: int, others: NDArray[np.object_] | None, added: NDArray[np.int64]
) -> NDArray[np.object_] | None:
    """Return the titles of a catalog with those of the items that are added to it."""
    if titles is None and others is None:
        return None
    ours = np.full(n_items, None) if titles is None else titles
    return np.concatenate([ours, np.full(len(added), None) if others is None else others[added]])


# --- helpers ---------------------------------------------------------------------------------------------------


def _check_share(**shares: float) -> None:
    for name, share in shares.items():
        if not 0 < share < 1:
            refuse(name, share, "lie between 0 and 1")


def _columns(columns: Any, n_items: int) -> NDArray[np.int64]:
    """Return columns in rising order, each once."""
    distinct = np.unique(np.asarray(columns))
    if distinct.dtype.kind not in "iu" or distinct.size == 0 or distinct[0] < 0 or distinct[-1] >= n_items:
        raise DataError(f"candidates must be columns from 0 to {n_items - 1:,}, got {columns!r}")
    return distinct.astype(np.int64)


def _counted(reasons: dict[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in reasons.items() if count}


def _times(data: Interactions) -> NDArray[Any]:
    if data.times is None:
        column = Option("timestamp", "ts", python="Interactions.read(…, timestamp='ts')")
        raise DataError("these interactions have no times: name the column, as in ", column)
    return data.times


def _owners(x: Csr) -> NDArray[np.int64]:
    return np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))


def _ranks_in_rows(x: Csr, keys: NDArray[Any]) -> NDArray[np.int64]:
    """Return the place of each stored entry among those of its row, by rising key (then column)."""
    sizes = np.diff(x.indptr)
    order = np.lexsort((keys, _owners(x)))
    rank = np.empty(x.nnz, np.int64)
    rank[order] = np.arange(x.nnz) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank


def _first(ranks: NDArray[np.int64], x: Csr, share: float) -> NDArray[np.bool_]:
    """Return which entries are among the first share of their row; at least one is."""
    counts = np.maximum(1, (share * np.diff(x.indptr)).astype(np.int64))
    return np.asarray(ranks < counts[_owners(x)])


def _cells(x: Csr, mask: NDArray[np.bool_]) -> Csr:
    """Return the chosen stored entries of a matrix, all rows kept."""
    indptr = np.concatenate([[0], np.cumsum(np.bincount(_owners(x)[mask], minlength=x.shape[0]))])
    return as_csr(sp.csr_array((x.data[mask], x.indices[mask], indptr), shape=x.shape), x.dtype)


def _kept(data: Interactions, mask: NDArray[np.bool_]) -> Interactions:
    """Return interactions with only the chosen stored entries, and their times."""
    return data.replace(matrix=_cells(data.matrix, mask), times=None if data.times is None else data.times[mask])


class _Times(TypedDict):
    """The times of a split, as keywords of `Split`."""

    history_times: NDArray[np.int64] | None
    truth_times: NDArray[np.int64] | None


def _divide_times(times: NDArray[np.int64] | None, is_truth: NDArray[np.bool_]) -> _Times:
    if times is None:
        return {"history_times": None, "truth_times": None}
    return {"history_times": times[~is_truth], "truth_times": times[is_truth]}


def _within_users(data: Interactions, is_truth: NDArray[np.bool_], protocol: str, *, by_time: bool = False) -> Split:
    """Return the split that hides some cells of the users that are trained on."""
    if not is_truth.any():
        raise DataError(f"none of the {data.n_users:,} users has enough items for a history and a truth")
    train = _kept(data, ~is_truth)
    truth = _cells(data.matrix, is_truth)
    judged = np.diff(truth.indptr) > 0
    users = data.users if judged.all() else Ids(data.users.values[judged])
    histories = train.matrix if judged.all() else train.matrix[judged]
    left_out = _counted({"too few items": int(np.count_nonzero(~judged))})
    return Split(
        train,
        users,
        histories,
        truth[judged],
        protocol,
        left_out,
        seen=_taken(data.seen, np.flatnonzero(judged)),
        by_time=by_time,
        **_times_of_judged(data, is_truth, judged),
    )


def _times_of_judged(data: Interactions, is_truth: NDArray[np.bool_], judged: NDArray[np.bool_]) -> _Times:
    """Return the times of the histories and the truth of some users."""
    entries = entries_of_rows(data.matrix.indptr, np.flatnonzero(judged))
    return _divide_times(None if data.times is None else data.times[entries], is_truth[entries])


def _across(
    data: Interactions,
    is_truth: NDArray[np.bool_],
    protocol: str,
    reasons: tuple[str, str],
    nobody: str,
    candidates: NDArray[np.int64] | None = None,
    *,
    by_time: bool = False,
) -> Split:
    """Return the split that hides some cells and judges by the users who have hidden ones and others.

    `reasons` are why users are left out: nothing but hidden cells, or none; `nobody` says that this is true of all.
    """
    history, truth = _cells(data.matrix, ~is_truth), _cells(data.matrix, is_truth)
    known = np.diff(history.indptr) > 0
    judged = known & (np.diff(truth.indptr) > 0)
    if not judged.any():
        raise DataError(nobody)
    counts = np.count_nonzero(~known), np.count_nonzero(known & ~judged)
    return Split(
        _kept(data, ~is_truth).select_users(known),
        Ids(data.users.values[judged]),
        history[judged],
        truth[judged],
        protocol,
        _counted(dict(zip(reasons, map(int, counts), strict=True))),
        candidates=candidates,
        seen=_taken(data.seen, np.flatnonzero(judged)),
        by_time=by_time,
        **_times_of_judged(data, is_truth, judged),
    )


def _with_seen_later(split: Split, data: Interactions) -> Split:
    """Return a split of data with what the users of train have seen there, but not yet in train."""
    seen = _taken(data.seen, data.users.positions(split.train.users.values))
    if seen is None or split.train.seen is None:
        return replace(split, seen_later=seen)
    return replace(split, seen_later=without_cells(seen, split.train.seen))


def _taken(seen: Csr | None, rows: NDArray[np.int64]) -> Csr | None:
    """Return some rows of what is seen."""
    return None if seen is None else seen[rows]


def _either(one: Csr | None, other: Csr | None) -> Csr | None:
    """Return what is seen in one or the other of two matrices."""
    return other if one is None else one if other is None else as_csr(one + other, bool)


def _stacked(above: Csr | None, rows_above: int, below: Csr | None, rows_below: int, n_items: int) -> Csr | None:
    """Return what is seen by some users, and below it what is seen by others."""
    if above is None and below is None:
        return None
    nothing = [sp.csr_array((rows, n_items), dtype=bool) for rows in (rows_above, rows_below)]
    parts = [empty if part is None else part for part, empty in zip((above, below), nothing, strict=True)]
    return as_csr(sp.vstack(parts, format="csr"), bool)


def _on_columns(data: Interactions, items: Ids) -> Csr:
    """Return the matrix with its columns where `items` has them."""
    if data.items is items or data.items == items:
        return data.matrix
    cells = sp.coo_array(data.matrix)
    columns = items.positions(data.items.values)[cells.col]
    moved = sp.csr_array((cells.data, (cells.row, columns)), shape=(data.n_users, len(items)))
    return as_csr(moved, data.matrix.dtype)


def _times_on_columns(data: Interactions, items: Ids) -> NDArray[np.int64] | None:
    """Return the times of interactions in the order of `_on_columns`."""
    if data.times is None or data.items is items or data.items == items:
        return data.times
    columns = items.positions(data.items.values)[data.matrix.indices]
    return np.asarray(data.times[np.lexsort((columns, _owners(data.matrix)))])


def _times_of_given(
    truth: Interactions, items: Ids, have: NDArray[np.bool_], source: Interactions, rows: NDArray[np.int64]
) -> _Times | None:
    """Return the times of the users to judge by: those of `truth` at `have`, and of `source` at `rows`."""
    times = _times_on_columns(truth, items)
    if times is None or source.times is None:
        return None
    hidden = entries_of_rows(truth.matrix.indptr, np.flatnonzero(have))
    return _Times(
        history_times=source.times[entries_of_rows(source.matrix.indptr, rows)],
        truth_times=times[hidden],
    )


def _is_later(histories: Csr, truth: Csr, times: _Times | None) -> bool:
    """Return whether all of the truth is known to be later than the history of the same user."""
    if times is None or times["history_times"] is None:
        return False
    latest = np.full(histories.shape[0], np.iinfo(np.int64).min)
    np.maximum.at(latest, _owners(histories), times["history_times"])
    return bool((np.asarray(times["truth_times"]) > latest[_owners(truth)]).all())


def _of_lists(
    train: Lists, truth: Lists, histories: Lists | None, protocol: str | None, ordered: bool = False
) -> Split:
    parts = [part for part in (train, truth, histories) if part is not None]
    n_items = 1 + max(int(part.items.max(initial=-1)) for part in parts)
    judged = [train, truth] if histories is None else [truth, histories]
    n_users = 1 + max(int(part.owners.max(initial=-1)) for part in judged)
    n_train = n_users if histories is None else 1 + int(train.owners.max(initial=-1))
    training = Interactions.from_lists(train, n_train, n_items, ordered=ordered)
    hidden = Interactions.from_lists(truth, n_users, n_items, ordered=ordered)
    known = training if histories is None else Interactions.from_lists(histories, n_users, n_items, ordered=ordered)
    truth_matrix = hidden.matrix
    return Split(
        training,
        Ids.range(n_users),
        known.matrix,
        truth_matrix,
        protocol or ("given lists, users of train" if histories is None else "given lists, other users"),
        truth_order=_in_order(truth, truth_matrix),
        new_users=histories is not None,
        history_times=known.times,
        truth_times=None if hidden.times is None else follow(hidden).times,
        by_time=ordered,
    )


def follow(data: Interactions) -> Interactions:
    """Return interactions whose times are places, with those of each user counted from 1 on: after a history."""
    return data if data.times is None else data.replace(times=data.times - _edges(data, np.minimum) + 1)


def end_at_zero(data: Interactions) -> Interactions:
    """Return interactions whose times are places, with the latest of each user at 0."""
    return data if data.times is None else data.replace(times=data.times - _edges(data, np.maximum))


def _edges(data: Interactions, function: Any) -> NDArray[np.int64]:
    """Return the first (minimum) or the last (maximum) time of the user of each stored entry."""
    x = data.matrix
    sizes = np.diff(x.indptr)
    edges = function.reduceat(data.times, x.indptr[:-1][sizes > 0]) if x.nnz else np.empty(0, np.int64)
    return np.repeat(edges, sizes[sizes > 0])


def _in_order(lists: Lists, matrix: Csr) -> NDArray[np.int64]:
    """Return the columns of each row of `matrix` in the order of the lists it was made from."""
    cells = lists.users * np.int64(matrix.shape[1]) + lists.items
    first = np.sort(np.unique(cells, return_index=True)[1])
    users, items = lists.users[first], lists.items[first]
    return np.asarray(items[np.argsort(users, kind="stable")])
