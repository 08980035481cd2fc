"""DATA on the command line: a table in one or more files, a folder of lists or a benchmark, whole or divided."""

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from glob import has_magic
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relae import datasets
from relae.cli._columns import Columns
from relae.data import Ids, Interactions, Lists, TableOptions, axis_of, has_tables, options_of, read_lists
from relae.errors import DataError
from relae.evaluation import (
    Split,
    StrongLists,
    given_split,
    hold_out_items,
    hold_out_new_items,
    hold_out_users,
    leave_last_out,
    split_by_time,
    strong_lists,
)
from relae.linalg import fingerprint

SPLITS = ("auto", "paper", "strong", "weak", "last", "time", "new-items")


class Division(NamedTuple):
    """How to divide data, as far as it is said."""

    split: str | None = None
    share: float | None = None
    seed: int | None = None

    def or_else(self, split: str = "auto", share: float = 0.1, seed: int = 0) -> tuple[str, float, int]:
        """Return split, share and seed, with these where nothing is said."""
        return (
            split if self.split is None else self.split,
            share if self.share is None else self.share,
            seed if self.seed is None else self.seed,
        )


@dataclass(frozen=True)
class Divided:
    """Data, and its users to decide by (validation) and to report on (test)."""

    title: str
    data: Interactions  # all of it
    valid: Split
    test: Split  # its train has the validation users and all that is known of them
    low_ratings: str = ""  # what becomes of them, in a line; nothing if there are none

    @property
    def n_items(self) -> int:
        """How many items there are to choose from, for validation and for the test."""
        return min(self.valid.n_candidates, self.test.n_candidates)

    @property
    def lengths(self) -> NDArray[np.integer[Any]]:
        """How many items each user has in all of the data: what the model that is shipped will be asked for."""
        return np.diff(self.data.matrix.indptr)

    @property
    def fingerprint(self) -> str:
        """A sum of what is fitted to and judged by."""
        train = self.valid.train
        more = [] if train.features is None else [train.features.matrix]
        more += [] if self.valid.seen is None else [self.valid.seen]
        return fingerprint(train.matrix, self.valid.histories, self.valid.truth, *more)


def load(source: str, columns: Columns, split: str = "auto", share: float = 0.1, seed: int = 0) -> Divided:
    """Read DATA and divide it.

    Parameters
    ----------
    source
        A file, a folder of files or a pattern of their names; a folder of lists (`train.txt`, `test.txt` and so on); or
        the name of a benchmark.
    split
        "paper" (its own strong split), "strong" (users held out), "weak" (items held out), "last" (the last item of
        each user), "time" (the latest interactions), "new-items" (items that nobody is known to have, for cold start),
        or "auto": as the files divide it, the paper's split where it has one, otherwise strong.
    share
        Of users (strong), items (weak, new-items) or interactions (time), for validation and again for the test.
    seed
        Of what is drawn.
    """
    if split not in SPLITS:
        raise DataError(f"there is no split {split!r}: the splits are {', '.join(SPLITS)}")
    place = _place(source, columns)
    if isinstance(place, _Lists):
        return _of_folder(place.folder, columns, split, share, seed)
    if isinstance(place, _Table):
        if split == "paper":
            raise DataError("the paper's split is of its own data sets: name one of them, or choose another split")
        divided = _divided(place.title, columns.counted(place.read(columns)), split, share, seed)
        return replace(divided, low_ratings=about_low_ratings(source, columns, divided.data, split))
    more = columns.given("half_life", "features")
    more += ["--low-ratings seen"] if columns.low_ratings == "seen" else []
    if split == "paper" or (split == "auto" and place.heldout is not None and not more):
        if place.heldout is None:
            raise DataError(f"the paper has no strong split of {place.title}: choose another --split")
        if more:
            raise DataError(
                f"the paper's split knows nothing of {', '.join(more)}: choose another --split, or leave it out"
            )
        divided = _of_lists(place.title, strong_lists(place.pairs(), place.heldout), columns, place.load())
        return replace(divided, low_ratings=about_low_ratings(source, columns, divided.data, split))
    divided = _divided(place.title, columns.counted(_benchmark(place, columns, judging=True)), split, share, seed)
    return replace(divided, low_ratings=about_low_ratings(source, columns, divided.data, split))


def read(source: str, columns: Columns, *, judging: bool = False) -> tuple[str, Interactions]:
    """Return the title of DATA and all of its interactions.

    `judging` tells that models are judged by them: a benchmark then has what its published protocol has, unless the
    columns say otherwise.
    """
    place = _place(source, columns)
    if isinstance(place, _Table):
        return place.title, columns.applied(place.read(columns))
    if not isinstance(place, _Lists):
        return place.title, columns.applied(_benchmark(place, columns, judging=judging))
    folder = place.folder
    lists = _lists(folder)
    if "test_in" in lists:
        plain = _of_folder(folder, Columns(), "auto", 0.1, 0).data
        return folder.name, columns.applied(plain)
    return folder.name, columns.applied(_whole(folder, lists))


def about_low_ratings(source: str, columns: Columns, data: Interactions, split: str = "") -> str:
    """Say in a line what becomes of low ratings where models are judged by this data; nothing if it has none."""
    named = None if Path(source).exists() or has_magic(source) else datasets.get(source)
    lowest = columns.min_rating if named is None else named.preparation.min_rating
    if lowest is None:
        return ""
    if data.seen is not None:
        other = "--low-ratings ignored makes them candidates, as published protocols do"
        rated = f"rated below {lowest:g}{' before the split' if split in ('last', 'time') else ''}"
        return f"low ratings: what a user {rated} is neither to be found nor a candidate; {other}"
    why = f", as in the published protocol of {named.title}" if named is not None else ""
    return f"low ratings: what a user rated below {lowest:g} is a candidate{why}; --low-ratings seen leaves it out"


def shape(data: Interactions) -> tuple[int, int, int]:
    """Return rows, columns and entries of what a linear model is fitted to, where each feature counts as a user."""
    found = data.features
    rows, entries = (0, 0) if found is None else (found.n_features, int(found.matrix.nnz))
    return data.n_users + rows, data.n_items, data.n_interactions + entries


@dataclass(frozen=True)
class _Table:
    """A table: a file, a folder of files, or a pattern of their names."""

    source: str

    @property
    def title(self) -> str:
        """The last part of the name as text, also where it is not UTF-8."""
        return os.fsencode(Path(self.source).name).decode(errors="replace")

    def read(self, columns: Columns) -> Interactions:
        """Return its interactions."""
        if columns.low_ratings is not None and columns.min_rating is None:
            raise DataError("--low-ratings is for ratings below --min-rating, which is not given: leave it out")
        data = Interactions.read(self.source, **columns.keywords())
        return data.without_seen() if columns.low_ratings == "ignored" else data


@dataclass(frozen=True)
class _Lists:
    """A folder with train.txt and test.txt."""

    folder: Path


def _place(source: str, columns: Columns) -> _Table | _Lists | datasets.Dataset:
    """Return the table, the folder of lists or the benchmark that a name stands for."""
    path = Path(source)
    is_table = _is_table(path)
    if columns.given("overlap") and (is_table or not path.is_dir()):
        raise DataError(f"--overlap is for a folder with train.txt and test.txt, and {source} is none: leave it out")
    if is_table:
        return _Table(source)
    if (path / "model.json").exists():
        raise DataError(
            f"{source} is a model, not data: name a table, a folder with train.txt and test.txt or a benchmark"
        )
    if not path.is_dir() and source not in datasets.names():
        raise DataError(
            f"{source!r} is neither a file nor a folder nor a benchmark; the benchmarks are "
            f"{', '.join(datasets.names())}"
        )
    given = columns.given(*(name for name in options_of(TableOptions) if name != "item" or columns.features is None))
    if given:
        raise DataError(f"{source} is no table and has no columns to choose from: leave {', '.join(given)} out")
    if columns.low_ratings is not None and (path.is_dir() or not datasets.get(source).rates):
        raise DataError(f"{source} has no ratings: leave --low-ratings out")
    return _Lists(path) if path.is_dir() else datasets.get(source)


def _is_table(path: Path) -> bool:
    """Tell whether a path is a file (also a pipe, such as <(zcat log.csv.gz)), a pattern, or a folder of tables."""
    if not path.is_dir():
        return path.exists() or has_magic(str(path))
    others = ("model.json", *(f"{name}.txt" for name in StrongLists._fields))
    return not any((path / name).exists() for name in others) and has_tables(path)


def _benchmark(dataset: datasets.Dataset, columns: Columns, *, judging: bool) -> Interactions:
    """Return a benchmark; what its users rated low they have seen, but for the published protocols."""
    return dataset.load(seen=columns.low_ratings == "seen" or (columns.low_ratings is None and not judging))


def _divided(title: str, data: Interactions, split: str, share: float, seed: int) -> Divided:
    rng = np.random.default_rng(seed)
    divide: dict[str, Callable[[Interactions], Split]] = {
        "strong": lambda part: hold_out_users(part, share, rng=rng),
        "weak": lambda part: hold_out_items(part, share, rng=rng),
        "last": leave_last_out,
        "time": lambda part: split_by_time(part, share=share),
        "new-items": lambda part: hold_out_new_items(part, share, rng=rng),
    }
    chosen = divide["strong" if split == "auto" else split]
    test = chosen(data)
    return Divided(title, data, chosen(test.train), test)


def _of_folder(folder: Path, columns: Columns, split: str, share: float, seed: int) -> Divided:
    """Divide a folder of lists: by users if it has test_in.txt, otherwise within users."""
    lists = _lists(folder)
    if "test_in" in lists:
        missing = [name for name in StrongLists._fields if name not in lists]
        if missing or split not in ("auto", "strong"):
            way_out = f"it lacks {', '.join(missing)}.txt" if missing else "its split is strong"
            raise DataError(f"{folder} is divided by users, as test_in.txt says: {way_out}")
        return _of_lists(folder.name, StrongLists(**lists), columns)
    plain = _whole(folder, lists)
    whole = {name: Interactions.from_lists(part, plain.users, plain.items) for name, part in lists.items()}
    data, whole["train"] = columns.counted(plain), columns.counted(whole["train"])
    if split not in ("auto", "weak"):
        return _divided(folder.name, data, split, share, seed)
    if "valid" in whole:
        valid = given_split(whole["train"], whole["valid"], overlap=columns.overlap)
    else:
        valid = hold_out_items(whole["train"], share, rng=np.random.default_rng(seed))
    test = given_split(valid.everything(), whole["test"], overlap=columns.overlap)
    return Divided(folder.name, data, valid, test)


def _lists(folder: Path) -> dict[str, Lists]:
    """Return the files of a folder of lists, by name."""
    lists = {
        name: read_lists(folder / f"{name}.txt") for name in StrongLists._fields if (folder / f"{name}.txt").is_file()
    }
    if "train" not in lists or "test" not in lists:
        raise DataError(
            f"{folder} has no train.txt and test.txt with a line `user item item …` per user, and no tables either"
        )
    return lists


def _whole(folder: Path, lists: Mapping[str, Lists]) -> Interactions:
    """Return all lists of a folder whose users are the same in each."""
    joined = _joined(*lists.values())
    users, items = _axis(folder, "users", joined.owners), _axis(folder, "items", joined.items)
    return Interactions.from_lists(joined, users, items)


def _axis(title: str | Path, what: str, *numbers: NDArray[np.int64]) -> int | Ids:
    """Return how many users or items there are, or their ids where the numbers are not positions, which is told."""
    axis = axis_of(*numbers)
    if isinstance(axis, Ids):
        warnings.warn(
            f"{title}: the numbers of {what} go up to {axis.values[-1]:,}, and only {len(axis):,} of them occur: they "
            "are taken for ids, not for positions",
            stacklevel=2,
        )
    return axis


def _of_lists(title: str, lists: StrongLists, columns: Columns, data: Interactions | None = None) -> Divided:
    items = _axis(title, "items", *(part.items for part in lists))
    parts = [Interactions.from_lists(part, axis_of(part.owners), items) for part in lists]
    train, valid_in, valid, test_in, test = columns.counted(parts[0]), *parts[1:]
    divide = partial(given_split, overlap=columns.overlap)
    to_decide = divide(train, valid, valid_in, protocol="validation users of the given split")
    to_report = divide(to_decide.everything(), test, test_in, protocol="test users of the given split")
    return Divided(title, to_report.everything() if data is None else data, to_decide, to_report)


def _joined(*parts: Lists) -> Lists:
    users, items = (np.concatenate([getattr(part, name) for part in parts]) for name in ("users", "items"))
    return Lists(users, items, np.unique(np.concatenate([part.owners for part in parts])))
