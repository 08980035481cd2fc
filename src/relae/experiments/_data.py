"""DATA of an experiment: a table, a folder of lists, a benchmark or interactions in memory; whole or divided."""

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from glob import has_magic
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae import datasets
from relae._common.words import in_count
from relae.data import Ids, Interactions, Lists, TableOptions, axis_of, has_tables, options_of, read_lists
from relae.errors import DataError, Option, Text
from relae.evaluation import (
    Split,
    StrongLists,
    end_at_zero,
    find_cut,
    follow,
    given_split,
    hold_out_items,
    hold_out_new_items,
    hold_out_users,
    leave_last_out,
    split_by_time,
    strong_lists,
)
from relae.experiments._columns import Columns
from relae.linalg import fingerprint

SPLITS = ("auto", "paper", "strong", "weak", "last", "time", "new-items")

DataSource = str | os.PathLike[str] | Interactions | Any
"""A file, a folder, a pattern of names, the name of a benchmark, interactions, or a data frame."""


class Division(NamedTuple):
    """A division of data into train, validation and test.

    Attributes
    ----------
    split : str
        "paper" (its own strong split), "strong" (users held out), "weak" (items held out), "last" (the last items of
        each user), "time" (the latest interactions), "new-items" (items that nobody is known to have, for cold start),
        or "auto": of a table or interactions with times "time", of files as they divide it, of a benchmark the paper's
        split where it has one, otherwise strong.
    share : float
        Of users (strong), items (weak, new-items) or interactions (time), for validation and again for the test.
    seed : int
        Of what is drawn at random.
    last : int
        With "last", the number of items of each user that are held out for the test, and before them for validation.
    """

    split: str = "auto"
    share: float = 0.1
    seed: int = 0
    last: int = 1


@dataclass(frozen=True)
class DividedData:
    """Data with validation users, who decide, and test users, who are reported on.

    Attributes
    ----------
    title : str
    data : Interactions
        All of it.
    valid, test : Split
        The training part of `test` has the validation users and all that is known of them.
    low_ratings : Text or None
        A line about what happens to low ratings; None if there are none.
    periods : Text or None
        Lines about the time of train, validation and test; None if they are not divided by time.
    """

    title: str
    data: Interactions
    valid: Split
    test: Split
    low_ratings: Text | None = None
    periods: Text | None = None

    @property
    def n_items(self) -> int:
        """The number of candidates, the smaller of validation and test."""
        return min(self.valid.n_candidates, self.test.n_candidates)

    @property
    def lengths(self) -> NDArray[np.integer[Any]]:
        """The number of items of each user in all of the data, as the final model will be given them.

        Where the test is later than that, nothing of it is known yet.
        """
        known = self.test.train if self.test.by_time else self.data
        return np.diff(known.matrix.indptr)

    @property
    def fingerprint(self) -> str:
        """A checksum of the training and validation data."""
        return _fingerprint(self.valid)

    @property
    def test_fingerprint(self) -> str:
        """A checksum of the training and test data."""
        return _fingerprint(self.test)


def divide_data(source: DataSource, columns: Columns, division: Division | None = None) -> DividedData:
    """Read data and divide it; see `DataSource`, `Columns` and `Division`."""
    division = Division() if division is None else division
    if division.split not in SPLITS:
        raise DataError(f"there is no split {division.split!r}: the splits are {', '.join(SPLITS)}")
    if division.last != 1 and division.split != "last":
        raise DataError(
            Option("last", division.last), " is for ", Option("split", "last"), ": leave it out, or add the other"
        )
    origin = _find_origin(source, columns)
    if division.split == "paper" and not isinstance(origin, datasets.Dataset):
        raise DataError("the paper's split is of its own data sets: name one of them, or choose another split")
    if isinstance(origin, _ListFolder):
        return _divide_folder(origin.folder, columns, division)
    if isinstance(origin, datasets.Dataset) and _has_paper_split(origin, columns, division.split):
        assert origin.heldout is not None
        divided = _divide_lists(origin.title, strong_lists(origin.pairs(), origin.heldout), columns, origin.load())
    else:
        by_time = _is_judged_by_time(origin, columns, division)
        data = columns.apply_weighted(_read(origin, columns, judging=True))
        divided = _divide_by_time(origin.title, data, division) if by_time else _divide(origin.title, data, division)
        division = division._replace(split="time") if by_time else division
    return replace(divided, low_ratings=describe_low_ratings(source, columns, divided.data, division.split))


def is_judged_by_time(source: DataSource, columns: Columns, division: Division) -> bool:
    """Return whether `divide_data` cuts this data in time; the data is not read."""
    return _is_judged_by_time(_find_origin(source, columns), columns, division)


def read_data(source: DataSource, columns: Columns, *, judging: bool = False) -> tuple[str, Interactions]:
    """Return the title of data and all of its interactions.

    With `judging`, a benchmark has the interactions of its published protocol, unless the columns say otherwise.
    """
    origin = _find_origin(source, columns)
    if not isinstance(origin, _ListFolder):
        return origin.title, columns.apply(_read(origin, columns, judging=judging))
    lists = _read_folder(origin.folder)
    if "test_in" in lists:
        plain = Columns(ordered=columns.ordered)
        return origin.title, columns.apply(_divide_folder(origin.folder, plain, Division()).data)
    return origin.title, columns.apply(_join_folder(origin.folder, lists, columns.ordered))


def describe_low_ratings(source: DataSource, columns: Columns, data: Interactions, split: str = "") -> Text | None:
    """Return a line about low ratings where models are judged by this data; None if it has none."""
    named = None
    if isinstance(source, str) and not (Path(source).exists() or has_magic(source)):
        named = datasets.get(source)
    lowest = columns.min_rating if named is None else named.preparation.min_rating
    if lowest is None:
        return None
    if data.seen is not None:
        rated = f"rated below {lowest:g}{' before the split' if split in ('last', 'time') else ''}"
        return Text(
            f"low ratings: what a user {rated} is neither to be found nor a candidate; ",
            Option("low_ratings", "ignored"),
            " makes them candidates, as published protocols do",
        )
    why = f", as in the published protocol of {named.title}" if named is not None else ""
    return Text(
        f"low ratings: what a user rated below {lowest:g} is a candidate{why}; ",
        Option("low_ratings", "seen"),
        " leaves it out",
    )


def matrix_shape(data: Interactions) -> tuple[int, int, int]:
    """Return rows, columns and entries of what a linear model is fitted to, where each feature counts as a user."""
    features = data.features
    rows, entries = (0, 0) if features is None else (features.n_features, int(features.matrix.nnz))
    return data.n_users + rows, data.n_items, data.n_interactions + entries


# --- where data is -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """A table: a file, a folder of files, a pattern of their names, or a data frame."""

    source: Any

    @property
    def title(self) -> str:
        """The last part of the name as text, also where it is not UTF-8."""
        if not isinstance(self.source, (str, os.PathLike)):
            return "the table"
        return os.fsencode(Path(self.source).name).decode(errors="replace")

    def read(self, columns: Columns) -> Interactions:
        if columns.low_ratings is not None and columns.min_rating is None:
            needed = Option("min_rating")
            raise DataError(
                Option("low_ratings"), " is for ratings below ", needed, ", which is not given: leave it out"
            )
        is_path = isinstance(self.source, (str, os.PathLike))
        data = (Interactions.read if is_path else Interactions.from_frame)(self.source, **columns.keywords())
        return data.without_seen() if columns.low_ratings == "ignored" else data


@dataclass(frozen=True)
class _Memory:
    """Interactions in memory."""

    data: Interactions
    title: str = "interactions"


@dataclass(frozen=True)
class _ListFolder:
    """A folder with train.txt and test.txt."""

    folder: Path

    @property
    def title(self) -> str:
        return self.folder.name


_Origin = _Table | _Memory | _ListFolder | datasets.Dataset


def _find_origin(source: DataSource, columns: Columns) -> _Origin:
    """Return the table, the folder of lists, the benchmark or the interactions that a source stands for."""
    if isinstance(source, Interactions):
        _refuse_columns(columns, "interactions in memory have")
        return _Memory(source)
    if not isinstance(source, (str, os.PathLike)):
        return _Table(source)
    path, name = Path(source), os.fspath(source)
    is_table = _is_table(path)
    for option in columns.changed("overlap", "ordered") if is_table or not path.is_dir() else ():
        raise DataError(option, f" is for a folder with train.txt and test.txt, and {name} is none: leave it out")
    if is_table:
        return _Table(name)
    if (path / "model.json").exists():
        raise DataError(
            f"{name} is a model, not data: name a table, a folder with train.txt and test.txt or a benchmark"
        )
    if not path.is_dir() and name not in datasets.names():
        raise DataError(
            f"{name!r} is neither a file nor a folder nor a benchmark; the benchmarks are {', '.join(datasets.names())}"
        )
    _refuse_columns(columns, f"{name} is no table and has")
    if columns.low_ratings is not None and (path.is_dir() or not datasets.get(name).rates):
        raise DataError(f"{name} has no ratings: leave ", Option("low_ratings"), " out")
    return _ListFolder(path) if path.is_dir() else datasets.get(name)


def _refuse_columns(columns: Columns, subject: str) -> None:
    """Raise if columns of a table are named where there are none."""
    names = [name for name in options_of(TableOptions) if name != "item" or columns.features is None]
    changed = columns.changed(*names)
    if changed:
        raise DataError(f"{subject} no columns to choose from: leave ", Text.join(", ", changed), " out")


def _is_table(path: Path) -> bool:
    """Return whether a path is a file (also a pipe, such as <(zcat log.csv.gz)), a pattern, or a folder of tables."""
    if not path.is_dir():
        return path.exists() or has_magic(str(path))
    others = ("model.json", *(f"{name}.txt" for name in StrongLists._fields))
    return not any((path / name).exists() for name in others) and has_tables(path)


def _read(origin: _Table | _Memory | datasets.Dataset, columns: Columns, *, judging: bool) -> Interactions:
    """Return all interactions; low ratings of a benchmark are `seen`, except in its published protocol."""
    if isinstance(origin, _Memory):
        return origin.data.without_seen() if columns.low_ratings == "ignored" else origin.data
    if isinstance(origin, _Table):
        return origin.read(columns)
    return origin.load(seen=columns.low_ratings == "seen" or (columns.low_ratings is None and not judging))


def _has_paper_split(dataset: datasets.Dataset, columns: Columns, split: str) -> bool:
    """Return whether a benchmark is divided as in the paper; an error if it cannot be and is asked for."""
    more = columns.changed("features")
    more += [Option("low_ratings", "seen")] if columns.low_ratings == "seen" else []
    if split == "auto":
        return dataset.heldout is not None and not more
    if split != "paper":
        return False
    if dataset.heldout is None:
        raise DataError(f"the paper has no strong split of {dataset.title}: choose another ", Option("split"))
    if more:
        parts = (Text.join(", ", more), ": choose another ", Option("split"), ", or leave it out")
        raise DataError("the paper's split knows nothing of ", *parts)
    return True


# --- division ----------------------------------------------------------------------------------------------------


def _divide(title: str, data: Interactions, division: Division) -> DividedData:
    split, share, seed, last = division
    rng = np.random.default_rng(seed)
    ways: dict[str, Callable[[Interactions], Split]] = {
        "strong": lambda part: hold_out_users(part, share, rng=rng),
        "weak": lambda part: hold_out_items(part, share, rng=rng),
        "last": lambda part: leave_last_out(part, last),
        "new-items": lambda part: hold_out_new_items(part, share, rng=rng),
    }
    hold_out = ways["strong" if split == "auto" else split]
    test = hold_out(data)
    return DividedData(title, data, hold_out(test.train), test)


def _is_judged_by_time(origin: _Origin, columns: Columns, division: Division) -> bool:
    """Return whether all that happened last is the test: by request, or because a table has times."""
    if division.split != "auto":
        return division.split == "time"
    if isinstance(origin, _Memory):
        return origin.data.times is not None
    return isinstance(origin, _Table) and columns.timestamp is not None


def _divide_by_time(title: str, data: Interactions, division: Division) -> DividedData:
    """Divide by two moments: the latest share of the interactions is the test, the latest share of the rest validation.

    Validation is what it would have been on the day of the test: without the users and items that came later.
    """
    try:
        at = find_cut(data, division.share)
        test = split_by_time(data, at)
        past = _drop_later_items(test.train)
        valid_at = find_cut(past, division.share)
        valid = split_by_time(past, valid_at)
    except DataError as error:
        if division.split == "time":
            raise
        way_out = (Option("split", "strong"), " judges by users who were held out")
        raise DataError("the data cannot be judged by time, because ", error, ": ", *way_out) from error
    return DividedData(title, data, valid, test, periods=_describe_periods(data, valid_at, at, test, division.split))


def _drop_later_items(data: Interactions) -> Interactions:
    """Return interactions without the items that have none; items that features tell of are known, and stay.

    The size of a catalog has its say in a choice: in what counts as head and tail, and in the ranges that are searched.
    """
    known = np.unique(data.matrix.indices)
    if len(known) == data.n_items or data.features is not None:
        return data
    x = data.matrix
    matrix = sp.csr_array((x.data, np.searchsorted(known, x.indices), x.indptr), shape=(data.n_users, len(known)))
    titles = None if data.titles is None else data.titles[known]
    return data.replace(matrix=matrix, items=Ids(data.items.values[known]), titles=titles)


def _describe_periods(data: Interactions, valid_at: int, at: int, test: Split, split: str) -> Text:
    """Return the periods of train, validation and test, and who and what has no past before the test."""
    start, end = data.describe_times(valid_at, at)
    text = Text(
        f"judged by time: trained on what came before {start}, validated on {start} to {end}, tested on what came later"
    )
    if split == "auto":
        text = Text(text, "; ", Option("split", "strong"), " judges by users who were held out")
    assert data.times is not None
    wanted = np.unique(data.matrix.indices[data.times >= at])
    users, items = test.left_out.get("no history before", 0), int(np.count_nonzero(test.item_counts[wanted] == 0))
    lost = [
        *([(in_count(users, "user"), "these users are not judged by")] if users else []),
        *([(in_count(items, "item"), "no model can find these items")] if items else []),
    ]
    if not lost:
        return text
    who, so = " and ".join(each for each, _ in lost), ", and ".join(each for _, each in lost)
    verb = "has" if users + items == 1 else "have"
    return Text(text, f"\n{who} of the test period {verb} no past: {so}")


def _divide_folder(folder: Path, columns: Columns, division: Division) -> DividedData:
    """Divide a folder of lists: by users if it has test_in.txt, otherwise within users."""
    lists = _read_folder(folder)
    if "test_in" in lists:
        missing = [name for name in StrongLists._fields if name not in lists]
        if missing or division.split not in ("auto", "strong"):
            way_out = f"it lacks {', '.join(missing)}.txt" if missing else "its split is strong"
            raise DataError(f"{folder} is divided by users, as test_in.txt says: {way_out}")
        return _divide_lists(folder.name, StrongLists(**lists), columns)
    plain, ordered = _join_folder(folder, lists, columns.ordered), columns.ordered
    parts = {
        name: Interactions.from_lists(part, plain.users, plain.items, ordered=ordered) for name, part in lists.items()
    }
    data, train = columns.apply_weighted(plain), columns.apply_weighted(parts["train"])
    if division.split == "time":
        raise DataError(
            f"{folder} has no clock, so that it cannot be cut at one moment: use ",
            Option("split", "last"),
            " for the last items of each user" if ordered else Text(" with ", Option("ordered", True)),
        )
    if division.split not in ("auto", "weak"):
        return _divide(folder.name, data, division)
    if "valid" in parts:
        valid = given_split(train, follow(parts["valid"]), overlap=columns.overlap)
    elif ordered:
        valid = _end_histories(leave_last_out(train, share=division.share))
    else:
        valid = hold_out_items(train, division.share, rng=np.random.default_rng(division.seed))
    test = given_split(end_at_zero(valid.everything()), follow(parts["test"]), overlap=columns.overlap)
    return DividedData(folder.name, data, valid, test)


def _end_histories(split: Split) -> Split:
    """Return a split within users whose times are places, with the latest item of each history at 0."""
    histories = Interactions(split.histories, items=split.train.items, times=split.history_times)
    truth = Interactions(split.truth, items=split.train.items, times=split.truth_times)
    return replace(
        split,
        train=end_at_zero(split.train),
        history_times=end_at_zero(histories).times,
        truth_times=follow(truth).times,
    )


def _read_folder(folder: Path) -> dict[str, Lists]:
    """Return the files of a folder of lists, by name."""
    paths = {name: folder / f"{name}.txt" for name in StrongLists._fields}
    lists = {name: read_lists(path) for name, path in paths.items() if path.is_file()}
    if "train" not in lists or "test" not in lists:
        raise DataError(
            f"{folder} has no train.txt and test.txt with a line `user item item …` per user, and no tables either"
        )
    return lists


def _join_folder(folder: Path, lists: Mapping[str, Lists], ordered: bool) -> Interactions:
    """Return all lists of a folder whose users are the same in each; what is `ordered` continues from list to list."""
    users, items = (np.concatenate([getattr(part, name) for part in lists.values()]) for name in ("users", "items"))
    joined = Lists(users, items, np.unique(np.concatenate([part.owners for part in lists.values()])))
    axes = _read_axis(folder, "users", joined.owners), _read_axis(folder, "items", joined.items)
    return Interactions.from_lists(joined, *axes, ordered=ordered)


def _read_axis(title: str | Path, what: str, *numbers: NDArray[np.int64]) -> int | Ids:
    """Return the number of users or items, or their ids where the numbers are not positions, with a warning."""
    axis = axis_of(*numbers)
    if isinstance(axis, Ids):
        warnings.warn(
            f"{title}: the numbers of {what} go up to {axis.values[-1]:,}, and only {len(axis):,} of them occur: they "
            "are taken for ids, not for positions",
            stacklevel=2,
        )
    return axis


def _divide_lists(title: str, lists: StrongLists, columns: Columns, data: Interactions | None = None) -> DividedData:
    """Divide by users as five lists do; `data` is all of it, if the test part does not already have it."""
    items = _read_axis(title, "items", *(part.items for part in lists))
    ordered = columns.ordered
    parts = [Interactions.from_lists(part, axis_of(part.owners), items, ordered=ordered) for part in lists]
    train, valid_in, valid, test_in, test = columns.apply_weighted(parts[0]), *parts[1:]
    valid, test = follow(valid), follow(test)
    divide = partial(given_split, overlap=columns.overlap)
    validation = divide(train, valid, valid_in, protocol="validation users of the given split")
    known = end_at_zero(validation.everything()) if ordered else validation.everything()
    final = divide(known, test, test_in, protocol="test users of the given split")
    if data is None:
        data = end_at_zero(final.everything()) if ordered else final.everything()
    return DividedData(title, data, validation, final)


def _fingerprint(split: Split) -> str:
    more = [] if split.train.features is None else [split.train.features.matrix]
    more += [] if split.seen is None else [split.seen]
    return fingerprint(split.train.matrix, split.histories, split.truth, *more)
