"""User–item interactions: a sparse matrix with the raw ids of its users and items."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, TypedDict, Unpack

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from relae._common.progress import Progress
from relae._common.table_options import TableKeywords, TableOptions, Weighting
from relae.data._assemble import Assembled, assemble, merge, to_matrix
from relae.data._item_table import FeatureRules, read_features
from relae.data._join import join
from relae.data._lists import Lists, places_from_end, read_lists
from relae.data._matrix import MatrixLike, canonical_matrix, entries_of_rows
from relae.data._moments import describe_times
from relae.data._scan import read_tables
from relae.data._seen import Dropped, Seen, pattern_of
from relae.data._statistics import Statistics, gini, spread_of
from relae.data._tables import FilePath, open_frame, open_table
from relae.data._titles import aligned_titles, find_titles
from relae.data._weighting import choose_weighting
from relae.data._weights import LEAST, ages_of, day_of, faded, recency, reweighted
from relae.data.features import Features, as_features
from relae.data.ids import Ids
from relae.errors import DataError, Option
from relae.linalg import as_csr


class Changes(TypedDict, total=False):
    """The attributes that `Interactions.replace` can replace."""

    matrix: MatrixLike
    users: Ids | Iterable[Any] | None
    items: Ids | Iterable[Any] | None
    titles: Any
    times: ArrayLike | None
    features: Features | MatrixLike | None
    seen: Seen | MatrixLike | None
    seen_times: ArrayLike | None
    dropped: Dropped | None
    dropped_items: Ids | None
    weighting: Weighting


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Interactions:
    """Interactions of users with items, as a matrix that knows the raw ids of its rows and columns.

    Its attributes cannot be set: `replace` returns other interactions. Models and splits share its arrays, so do not
    change these either.

    Parameters
    ----------
    matrix
        Users by items: a SciPy sparse matrix or array, or a two-dimensional NumPy array. Finite and not
        negative; zeros are no interactions and are not stored. It is copied only if it has to be changed.
    users, items
        The raw ids of the rows and columns, in their order; 0, 1, 2, … if not given.
    titles
        The titles of the items: one per column, or a mapping from item ids, or a table (see `from_frame`).
    times
        When each interaction happened: one integer per cell that is not zero, by row, then by column. A sparse
        matrix must then be a CSR with sorted indices and neither duplicates nor stored zeros.
    features
        What the items have in common: Features, or a matrix (items × features), sparse or dense, with a row per
        column of `matrix`. For features in a table see `with_features`.
    seen
        What users have had that is no part of their histories, and is never recommended to them: a matrix of the shape
        of `matrix`, of which any value but 0 counts. Cells that `matrix` has too are part of the history. Or Seen,
        whose items need not be those of the columns.
    seen_times
        When each cell of `seen` was first seen, in the unit of `times` and given like them.
    dropped, dropped_items, weighting
        How the data was made of a table, as below.

    Attributes
    ----------
    matrix : csr_array of float32
        Users by items, indices sorted, no duplicates, no stored zeros.
    users, items : Ids
        The raw ids.
    titles : ndarray of object, or None
        One title per item, None where it is missing.
    times : ndarray of int64, or None
        One per stored entry of `matrix`, in its order: the last time of a pair that occurs several times.
    features : Features, or None
        A row per item, in the order of `items`.
    dropped : Dropped, or None
        The users of a table whom a filter dropped, and which filter it was.
    weighting : str
        How `matrix` was made of the amounts of a table: "linear" if its values are the amounts themselves.
    dropped_items : Ids
        The items of a table that have no interactions left after the filters.
    """

    matrix: sp.csr_array
    users: Ids
    items: Ids
    titles: NDArray[np.object_] | None
    times: NDArray[np.int64] | None
    features: Features | None
    dropped: Dropped | None
    dropped_items: Ids
    weighting: Weighting
    _seen: Seen | None

    def __init__(
        self,
        matrix: MatrixLike,
        users: Ids | Iterable[Any] | None = None,
        items: Ids | Iterable[Any] | None = None,
        titles: Any = None,
        times: ArrayLike | None = None,
        features: Features | MatrixLike | None = None,
        seen: Seen | MatrixLike | None = None,
        seen_times: ArrayLike | None = None,
        *,
        dropped: Dropped | None = None,
        dropped_items: Ids | None = None,
        weighting: Weighting = "linear",
    ) -> None:
        csr = canonical_matrix(matrix)
        rows, columns = _axis("users", users, csr.shape[0]), _axis("items", items, csr.shape[1])
        self._set(
            matrix=csr,
            users=rows,
            items=columns,
            titles=_titles(titles, columns),
            times=None if times is None else _times(times, matrix, csr, "times", "interactions"),
            features=None if features is None else as_features(features, len(columns)),
            _seen=_seen(seen, seen_times, csr, columns),
            dropped=dropped,
            dropped_items=Ids.range(0) if dropped_items is None else dropped_items,
            weighting=weighting,
        )

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_matrix(
        cls,
        matrix: MatrixLike,
        *,
        users: Ids | Iterable[Any] | None = None,
        items: Ids | Iterable[Any] | None = None,
        titles: Any = None,
        times: ArrayLike | None = None,
        features: Features | MatrixLike | None = None,
        seen: Seen | MatrixLike | None = None,
        seen_times: ArrayLike | None = None,
    ) -> Interactions:
        """Return the interactions in a matrix; the parameters are those of the class."""
        return cls(matrix, users, items, titles, times, features, seen, seen_times)

    @classmethod
    def from_frame(cls, frame: Any, **options: Unpack[TableKeywords]) -> Interactions:
        """Return the interactions in a table with a row per event.

        Users and items that lose all their interactions by filters are dropped; `dropped` knows these users. Rows and
        columns are sorted by id, whatever the order of the table. What a user has had that the filters take from the
        history is `seen`: it is never recommended to that user.

        Parameters
        ----------
        frame
            A pandas, polars (eager or lazy) or pyarrow table.
        options
            Which columns to use, what they weigh, and which rows, users and items to drop: see `TableOptions`.

        Raises
        ------
        DataError
            If a column is missing or has values that cannot be used, or if nothing is left.
        """
        checked = TableOptions.checked(**options)
        return cls._titled(assemble(open_frame(frame, "the table"), checked), checked)

    @classmethod
    def read(
        cls,
        path: FilePath | Iterable[FilePath],
        *,
        separator: str | None = None,
        scratch: FilePath | None = None,
        progress: Progress | None = None,
        **options: Unpack[TableKeywords],
    ) -> Interactions:
        """Return the interactions in CSV, TSV (plain, .gz, .zst) or Parquet files with a row per event.

        The ids in a column of a text file are integers if every one is written like one, otherwise strings:
        "0155061224" keeps its zero.

        Several files are one table, whatever their order. They, and a file that is too large for the memory that is
        free, are read in batches, once, and kept as codes in a scratch folder: the peak of memory grows with the
        result, not with the files. It is about four times the size of the result, and the ids. A column of ids has one
        type in all files: integers, or strings. What a text file has counts as integers if all text files together
        have nothing else, and no file has strings. A column that is of numbers in one file and of strings in another
        is an error, because it cannot be told whether 7 and "7" are the same.

        Parameters
        ----------
        path
            A file, of which text has a header line; a folder; a pattern such as "events/2024-*.parquet" ("**" for any
            folders between); or a list of these. Of a folder all tables count, also of folders in it, except names
            that begin with "." or "_". A file that is named twice is read once. Files may differ in their format, and
            in the columns that are not used.
        separator
            What separates the fields of a text file; a tab for .tsv, otherwise found in the header.
        scratch
            A folder for what is read in batches, with room for 8 bytes per row, and 8 more each for weights and times;
            the system's folder for temporary files if not given. What is written there is deleted at the end.
        progress
            Called now and then with a stage, "read" and then "merge", and the fraction of it that is done; in
            text files an estimate.
        options
            Which columns to use, what they weigh, and which rows, users and items to drop: see `TableOptions`.

        Raises
        ------
        DataError
            If there are no files, one cannot be read, a column has different types, or the scratch folder is full; or
            as in `from_frame`, with the file, column, row and value.
        """
        checked = TableOptions.checked(**options)
        return cls._titled(read_tables(path, checked, separator, scratch, progress), checked)

    @classmethod
    def read_lists(
        cls, path: FilePath, *, n_users: int | None = None, n_items: int | None = None, ordered: bool = False
    ) -> Interactions:
        """Return the interactions in a text file with a line `user item item …` per user.

        The numbers are the rows and columns, so that a training and a test file agree. A user may have no
        items; lines of the same user are joined.

        Parameters
        ----------
        path
            The file, in the format of LightGCN's benchmarks.
        n_users, n_items
            Make the matrix at least this large, where another file has higher numbers.
        ordered
            See `from_lists`.

        Raises
        ------
        DataError
            If a line has anything but integers, or a number is too large; with the file and the line.
        """
        lists = read_lists(path)
        extents = _extent(path, lists, "users", n_users), _extent(path, lists, "items", n_items)
        return cls.from_lists(lists, *extents, ordered=ordered)

    @classmethod
    def from_lists(cls, lists: Lists, users: int | Ids, items: int | Ids, *, ordered: bool = False) -> Interactions:
        """Return the interactions in lists; a pair named twice is one.

        Parameters
        ----------
        lists
            Pairs of numbers.
        users, items
            How many there are, if the numbers are the rows and columns; otherwise ids, of which the numbers are some.
        ordered
            Whether the items of each user are in the order of time, the latest last. Then `times` are their places,
            counted back from the end: 0 for the latest item of each user, −1 for the one before it.
        """
        row_ids, column_ids = (axis if isinstance(axis, Ids) else Ids(np.arange(axis)) for axis in (users, items))
        rows, columns = row_ids.positions(lists.users), column_ids.positions(lists.items)
        times = places_from_end(rows) if ordered else None
        cells = merge(rows, columns, None, max(len(column_ids), 1), times)
        return cls(to_matrix(cells, (len(row_ids), len(column_ids))), row_ids, column_ids, times=cells.times)

    @classmethod
    def _titled(cls, assembled: Assembled, options: TableOptions) -> Interactions:
        aligned = None if options.titles is None else find_titles(options.titles, assembled.items, options.item)
        data = cls(
            assembled.matrix,
            assembled.users,
            assembled.items,
            aligned,
            assembled.times,
            seen=assembled.seen,
            dropped=assembled.dropped,
            dropped_items=assembled.dropped_items,
        )
        if options.weight is None:
            return data
        weighting = options.weighting or choose_weighting(data.matrix, options.weight)
        return data if weighting == "linear" else data.weighted(weighting)

    @property
    def n_users(self) -> int:
        """The number of rows."""
        return int(self.matrix.shape[0])

    @property
    def n_items(self) -> int:
        """The number of columns."""
        return int(self.matrix.shape[1])

    @property
    def n_interactions(self) -> int:
        """The number of cells that are not zero."""
        return int(self.matrix.nnz)

    @property
    def seen(self) -> sp.csr_array | None:
        """Items that users have had beside their histories : (users, items) of bool; None if there are none.

        Such as what they rated below `min_rating`. No item of it is recommended to its user.
        """
        return None if self._seen_here is None else self._seen_here.pairs

    @property
    def seen_times(self) -> NDArray[np.int64] | None:
        """The time when each entry of `seen` was first seen, such as first rated low; None if that is not known."""
        return None if self._seen_here is None else self._seen_here.times

    @cached_property
    def _seen_here(self) -> Seen | None:
        """The part of `seen` whose items have a column."""
        return None if self._seen is None else self._seen.on(self.items)

    def seen_on(self, items: Ids) -> sp.csr_array | None:
        """Return `seen` with the columns of other items, such as those of a model; None if there is nothing."""
        seen = None if self._seen is None else self._seen.on(items)
        return None if seen is None else seen.pairs

    @property
    def seen_items(self) -> Ids:
        """The items of all that is seen, those that have no column among them."""
        return Ids.range(0) if self._seen is None else self._seen.items

    def without_seen(self) -> Interactions:
        """Return the same interactions as if all that is `seen` had never been there, so that it can be recommended.

        The published protocols of MovieLens and Netflix, with ratings of 4 and more, are of this kind.
        """
        return self.replace(seen=None)

    def with_seen_before(self, moments: ArrayLike) -> Interactions:
        """Return the same interactions with only that part of `seen` that was seen before a moment.

        Where `seen` has no times, nothing of it is kept, and there is a warning.

        Parameters
        ----------
        moments
            A time in the unit of `times`, or one for each user.
        """
        if self._seen is None:
            return self
        if self._seen.times is None:
            warnings.warn("what users have seen has no times (seen_times), so it counts as not seen", stacklevel=3)
        return self.replace(seen=self._seen.before(moments))

    def __repr__(self) -> str:
        extras = [name for name in ("titles", "times") if getattr(self, name) is not None]
        extras += [] if self.seen is None else [f"{self.seen.nnz:,} pairs seen beside them"]
        extras += [] if self.features is None else [f"{self.features.n_features:,} features"]
        together = " and ".join([", ".join(extras[:-1]), extras[-1]] if extras[1:] else extras)
        return (
            f"Interactions({self.n_users:,} users × {self.n_items:,} items, "
            f"{self.n_interactions:,} interactions{', with ' if extras else ''}{together})"
        )

    @property
    def has_clock(self) -> bool:
        """True if there are times, and they are of a clock and not places in a list; see `ages`."""
        return self.times is not None and day_of(self.times) != 1

    def ages(self, at: int | None = None) -> NDArray[np.float64]:
        """Return the age of each interaction in days : (stored entries,).

        Times are taken for microseconds, milliseconds or seconds since 1970, by their size. Smaller numbers, such as
        places in a file, are no clock: their unit counts as a day.

        Parameters
        ----------
        at
            The moment, in the unit of `times`, at which interactions have that age; the latest of them if not given.
        """
        if self.times is None:
            column = Option("timestamp", "ts", python="Interactions.read(…, timestamp='ts')")
            raise DataError("these interactions have no times: name the column, as in ", column)
        return ages_of(self.times, at)

    def describe_times(self, *moments: int) -> list[str]:
        """Return moments in words: dates in UTC where `times` are a clock (see `ages`), otherwise their numbers."""
        if self.times is None:
            raise DataError("these interactions have no times, and so no clock for moments")
        return describe_times(self.times, moments)

    def statistics(self) -> Statistics:
        """Return statistics of the data set."""
        per_user = np.diff(self.matrix.indptr)
        per_item = np.bincount(self.matrix.indices, minlength=self.n_items)
        return Statistics(
            users=self.n_users,
            items=self.n_items,
            interactions=self.n_interactions,
            density=self.n_interactions / max(self.n_users * self.n_items, 1),
            gini=gini(per_item),
            per_user=spread_of(per_user),
            per_item=spread_of(per_item),
        )

    def history(self, user_id: Any) -> list[Any]:
        """Return the raw ids of a user's items, in the order of the columns."""
        position = int(self.users.positions([user_id])[0])
        if position < 0:
            raise DataError(self.unknown_user(user_id))
        row = slice(*self.matrix.indptr[position : position + 2])
        return list(self.items.take(self.matrix.indices[row]))

    def unknown_user(self, user_id: Any) -> str:
        """Say why a user is not there: dropped by a filter, or in no row of the source."""
        reason = None if self.dropped is None else self.dropped.why(user_id)
        if reason is None:
            return f"there is no user {user_id!r} among the {self.n_users:,}"
        return f"user {user_id!r} was dropped by {reason} and is not among the {self.n_users:,}: relax that filter"

    def title(self, item_id: Any) -> str | None:
        """Return the title of an item, None if it has none or is unknown."""
        position = int(self.items.positions([item_id])[0])
        if self.titles is None or position < 0:
            return None
        title: str | None = self.titles[position]
        return title

    def select_users(self, positions: ArrayLike) -> Interactions:
        """Return some of the users with all of the items, so that the columns stay what they are.

        Parameters
        ----------
        positions
            Row numbers, each at most once, in the order wanted; or one boolean per user.
        """
        rows = _row_numbers(positions, self.n_users)
        times = None if self.times is None else self.times[entries_of_rows(self.matrix.indptr, rows)]
        seen = None if self._seen is None else self._seen.of_users(rows)
        return self.replace(matrix=self.matrix[rows], users=Ids(self.users.values[rows]), times=times, seen=seen)

    def joined(self, events: Interactions, *, amounts: bool | None = None) -> Interactions:
        """Return these interactions and later events, as if the tables of both had been read as one.

        Users and items that are known keep their places, and new ones come after them; users whom a filter dropped are
        new too. A pair that is in both has the later of both times. What users have seen beside their histories is put
        together, without what is part of a history now. New items have no features.

        Parameters
        ----------
        events
            The later events, with the same kinds of ids.
        amounts
            Whether the values are amounts, so that a pair that is in both has their sum, by the weighting of the data;
            otherwise it has the value of the data. By default they are amounts unless all values of both are 1.

        Raises
        ------
        DataError
            If only one of both has times or ids, or if their weightings or the kinds of their ids differ.
        """
        return join(self, events, amounts)

    def without_users(self, users: Iterable[Any]) -> Interactions:
        """Return these interactions without some users: nothing of them is left, not even that a filter dropped them.

        The columns stay what they are. Ids of nobody are ignored.
        """
        ids = list(users)
        rows = self.users.positions(ids)
        kept = np.setdiff1d(np.arange(self.n_users), rows[rows >= 0])
        left = self.select_users(kept)
        if self.users.positional:
            left = left.replace(users=Ids.range(len(kept)))
        return left if self.dropped is None else left.replace(dropped=self.dropped.without(ids))

    def without_items(self, items: Iterable[Any]) -> Interactions:
        """Return these interactions without some items, which users have not seen either. All users stay."""
        columns = self.items.positions(list(items))
        kept = np.setdiff1d(np.arange(self.n_items), columns[columns >= 0])
        ids = Ids.range(len(kept)) if self.items.positional else Ids(self.items.values[kept])
        parts = (np.arange(1, self.matrix.nnz + 1), self.matrix.indices, self.matrix.indptr)
        entries = sp.csr_array(parts, shape=self.matrix.shape)[:, kept].tocsr()
        entries.sort_indices()
        seen = None
        if self._seen_here is not None:
            seen = Seen(as_csr(self._seen_here.pairs[:, kept], bool), ids)
        return self.replace(
            matrix=self.matrix[:, kept],
            items=ids,
            titles=None if self.titles is None else self.titles[kept],
            times=None if self.times is None else self.times[entries.data - 1],
            features=None if self.features is None else self.features.take(kept),
            seen=seen,
        )

    def replace(self, **changes: Unpack[Changes]) -> Interactions:
        """Return interactions with some other attributes, and all the others as they are.

        Parameters
        ----------
        changes
            Parameters of the class, by name. What is not among them is shared, and has to fit: a matrix with other
            users needs their `users` and `seen`, and one with other cells their `times`; None for none of them.

        Raises
        ------
        DataError
            If the parts do not fit together, or as the class.
        """
        matrix = canonical_matrix(changes["matrix"]) if "matrix" in changes else self.matrix
        users = _axis("users", changes.get("users", self.users), matrix.shape[0])
        items = _axis("items", changes.get("items", self.items), matrix.shape[1])
        is_titled = "titles" not in changes and len(items) == self.n_items
        features = changes.get("features", self.features)
        dropped_items = changes.get("dropped_items", self.dropped_items)
        other = object.__new__(Interactions)
        other._set(
            matrix=matrix,
            users=users,
            items=items,
            titles=self.titles if is_titled else _titles(changes.get("titles", self.titles), items),
            times=self._times_after(changes, matrix),
            features=None if features is None else as_features(features, len(items)),
            _seen=_seen(changes.get("seen", self._seen), changes.get("seen_times"), matrix, items),
            dropped=changes.get("dropped", self.dropped),
            dropped_items=Ids.range(0) if dropped_items is None else dropped_items,
            weighting=changes.get("weighting", self.weighting),
        )
        return other

    def _times_after(self, changes: Changes, matrix: sp.csr_array) -> NDArray[np.int64] | None:
        """Return the times for a matrix that `replace` puts in the place of this one."""
        times = changes.get("times", self.times)
        if times is None:
            return None
        if "times" in changes:
            return _times(times, changes.get("matrix", matrix), matrix, "times", "interactions")
        if matrix.nnz != self.n_interactions:
            raise DataError(
                f"there are times of {self.n_interactions:,} interactions and the matrix has {matrix.nnz:,}: give "
                "times too, None for none"
            )
        return self.times

    def weighted(
        self, weighting: Weighting = "linear", *, half_life: float | None = None, fading: float | None = None
    ) -> Interactions:
        """Return the same interactions with other weights, in a fit as in the histories of `recommend`.

        From the amount a and the last time t of a pair comes the weight f(a) · 0.5^((latest − t) / half_life) ·
        r^−fading, where the item is the r-th latest of its user. Without a `weight` column every amount is 1. Age
        leaves at least 1e-6 of f(a): what a user has had stays seen, and where all of it is that old the lists are
        those of the amounts alone.

        Parameters
        ----------
        weighting
            f, which makes 1 of the amount 1: "linear" a, "sqrt" √a, "log" log₂(1 + a), "binary" 1. Of data that were
            read with a weighting, only "linear", which leaves the weights as they are.
        half_life
            After how many days an interaction counts half; see `ages`. None: age does not matter. There is a warning if
            most interactions are so old that they count 1e-6.
        fading
            The power by which the items of a user fade with each that is later, whatever the time between: 0.5 makes
            1, 0.71, 0.58, 0.5, … of the latest ones. Items of the same time share the smallest of their ranks, so that
            all of the latest time count 1. None or 0: the order does not matter.

        Raises
        ------
        DataError
            If a half-life is not positive or fading is below 0, if there are no times for them, or if the values are no
            amounts any more.
        """
        if weighting != "linear" and self.weighting != "linear":
            raise DataError(
                "these weights are those of ",
                Option("weighting", self.weighting),
                " already: read the data with ",
                Option("weighting", weighting),
                " instead",
            )
        x = self.matrix
        age = recency(self.times, half_life) * faded(x, self.times, fading)
        weights = reweighted(x.data, weighting) * np.maximum(age, LEAST)
        values = np.maximum(weights, np.finfo(np.float32).tiny).astype(np.float32)
        matrix = sp.csr_array((values, x.indices, x.indptr), shape=x.shape)
        return self.replace(matrix=matrix, weighting=self.weighting if weighting == "linear" else weighting)

    def with_features(
        self,
        table: Any,
        *,
        item: str = "item",
        columns: str | Iterable[str] | None = None,
        separators: Mapping[str, str] | None = None,
        min_count: int = 2,
        add_items: bool = True,
    ) -> Interactions:
        """Return the same interactions with features of the items, from a table with a row per item.

        A column becomes features by its type:

        - strings and categories: a feature per value, such as "genre=Drama", that is 1 for the items that have it;
        - lists, and strings with a separator: the same for each of their values, divided by √(values per item);
        - booleans, and numbers that are only 0 and 1: one feature, 0 or 1;
        - numbers, dates and times: one feature, minus its mean and divided by its standard deviation;
        - lists of floats, all of one length (embeddings): a feature per place, divided by the norm that lists have.

        What a column is divided by is one number, the same for all items, so that the squares of an item's values add
        up to 1 on average, and columns of every kind weigh the same. Missing values are 0, which for numbers is the
        mean, and items that are not in the table have no features. In a text file a column is of numbers, dates or
        booleans if all its values are, but of strings if a number begins with a needless zero. Numbers that are codes
        have to be cast to strings or categories.

        Features that are there already stay, before the new ones.

        Parameters
        ----------
        table
            A pandas, polars or pyarrow table, or the path of a CSV, TSV (plain, .gz, .zst) or Parquet file.
        item
            Its column of item ids, of the kind of `items`: integers or strings.
        columns
            The columns to use. None: all except `title` and, with a warning, those that tell nothing: the same value
            everywhere, or strings of which most items have their own.
        separators
            For columns of strings that have several values in them, what stands between: {"genres": "|"}.
        min_count
            Leave out values of strings and lists that fewer items have. What one item has alone tells nothing about
            others.
        add_items
            Append the items of the table that have had no interactions yet, sorted by id, so that they can be
            recommended by their features. Items that a filter has dropped stay dropped (`dropped_items`). Where items
            have titles, theirs are those in the column `title`. False: ignore them.

        Raises
        ------
        DataError
            If an item is in the table twice, if the ids are of another kind or none is known, or if a column is
            missing or cannot be used.
        """
        names = None if columns is None else [columns] if isinstance(columns, str) else list(columns)
        between = {} if separators is None else separators
        if not isinstance(between, Mapping):
            raise DataError(f'separators are given by column, as in {{"genres": "|"}}, got {separators!r}')
        rules = FeatureRules(item, names, between, min_count, add_items)
        table_features = read_features(
            open_table(table, "the table of features"), self.items, rules, self.dropped_items
        )
        x, added = self.matrix, len(table_features.items) - self.n_items
        matrix = sp.csr_array((x.data, x.indices, x.indptr), shape=(self.n_users, len(table_features.items)))
        features, titles = table_features.features, self.titles
        if self.features is not None:
            own = self.features.take(np.append(np.arange(self.n_items), np.full(added, -1)))
            features = own.beside(table_features.features)
        if titles is not None:
            titles = np.append(titles, table_features.titles[self.n_items :])
        return self.replace(matrix=matrix, items=table_features.items, titles=titles, features=features)


InteractionsLike: TypeAlias = Interactions | MatrixLike
"""What a model can be fitted to: interactions, or a matrix (users × items), whose ids are row and column numbers."""


def as_interactions(data: InteractionsLike, items: Ids | None = None) -> Interactions:
    """Return interactions as they are, or those in a matrix, of which `items` are the ids of the columns."""
    return data if isinstance(data, Interactions) else Interactions(data, items=items)


def _axis(name: str, ids: Ids | Iterable[Any] | None, length: int) -> Ids:
    if ids is None:
        return Ids.range(length)
    axis = ids if isinstance(ids, Ids) else Ids(ids)
    if len(axis) != length:
        raise DataError(f"{len(axis):,} ids of {name} for a matrix with {length:,} {name}: give one per {name[:-1]}")
    return axis


def _titles(titles: Any, items: Ids) -> NDArray[np.object_] | None:
    if titles is None:
        return None
    if isinstance(titles, (list, tuple, np.ndarray)):
        return aligned_titles(titles, items)
    return find_titles(titles, items)


def _seen(seen: Any, times: ArrayLike | None, matrix: sp.csr_array, items: Ids) -> Seen | None:
    """Return pairs that are no part of the history, with their times."""
    if isinstance(seen, Seen):
        if times is not None:
            raise DataError("seen_times are the times of a matrix, and this seen has its own: give a matrix")
        if seen.pairs.shape[0] != matrix.shape[0]:
            raise DataError(
                f"seen is of {seen.pairs.shape[0]:,} users and the matrix of {matrix.shape[0]:,}: give the seen of "
                "the same users, or None",
                field="seen",
            )
        return seen
    if seen is None:
        if times is not None:
            raise DataError("seen_times are the times of seen, which is not given: give both")
        return None
    pairs = pattern_of(seen)
    if pairs.shape != matrix.shape:
        raise DataError(f"seen is {_by(pairs.shape)} and the matrix {_by(matrix.shape)}: give one cell for each of its")
    first = None if times is None else _times(times, seen, pairs, "seen_times", "pairs in seen")
    return Seen(pairs, items, first).without(matrix)


def _by(shape: tuple[int, ...]) -> str:
    return f"{shape[0]:,} × {shape[1]:,}"


def _times(times: ArrayLike, source: Any, matrix: sp.csr_array, name: str, cells: str) -> NDArray[np.int64]:
    """Return times that are in the order of the entries, after a check that they can be.

    `name` is the argument, and `cells` what it has the times of.
    """
    array = np.asarray(times)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size > 0):
        raise DataError(f"{name} are one integer for each of the {cells}, got {array.dtype} of shape {array.shape}")
    is_dense = isinstance(source, np.ndarray)
    if not is_dense and not (source.format == "csr" and source.has_canonical_format and source.nnz == matrix.nnz):
        raise DataError(
            f"{name} need a matrix whose entries have one order: make it a CSR, then call its sum_duplicates() and "
            "eliminate_zeros(), and give one time per entry of its data"
        )
    if len(array) != matrix.nnz:
        raise DataError(f"{len(array):,} {name} for {matrix.nnz:,} {cells}: give one per cell that is not zero")
    return array.astype(np.int64, copy=False)


def _extent(path: FilePath, lists: Lists, name: str, length: int | None) -> int:
    """Return how many users or items a file has, or the wanted number if it is enough."""
    numbers = lists.owners if name == "users" else lists.items
    largest = int(numbers.max(initial=-1))
    if length is not None and length <= largest:
        raise DataError(
            f"{path} has the {name[:-1]} {largest}, so n_{name} must be at least {largest + 1}, got {length}"
        )
    return largest + 1 if length is None else length


def _row_numbers(positions: ArrayLike, n_users: int) -> NDArray[np.int64]:
    rows = np.asarray(positions)
    if rows.dtype == bool:
        if rows.shape != (n_users,):
            raise DataError(f"a choice of users by booleans needs {n_users:,} of them, got shape {rows.shape}")
        return np.flatnonzero(rows)
    if rows.size == 0:
        return np.empty(0, dtype=np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise DataError(f"positions of users are a list of integers, got {rows.dtype} of shape {rows.shape}")
    if rows.min() < 0 or rows.max() >= n_users:
        raise DataError(f"positions of users lie in [0, {n_users:,}), got {rows.min():,} to {rows.max():,}")
    return rows.astype(np.int64, copy=False)
