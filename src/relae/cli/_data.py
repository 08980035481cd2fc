"""DATA on the command line: a table, a folder of lists or the name of a benchmark, whole or divided."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from relae.data import Interactions, Lists, datasets, read_lists
from relae.errors import DataError
from relae.evaluation import (
    Split,
    StrongLists,
    given_split,
    hold_out_items,
    hold_out_users,
    leave_last_out,
    split_by_time,
    strong_lists,
)

SPLITS = ("auto", "paper", "strong", "weak", "last", "time")


@dataclass(frozen=True)
class Columns:
    """How to read a table."""

    user: str = "user"
    item: str = "item"
    rating: str | None = None
    min_rating: float | None = None
    weight: str | None = None
    timestamp: str | None = None
    titles: Path | None = None
    min_user_count: int = 0
    min_item_count: int = 0

    def but(self, given: Mapping[str, Any]) -> Self:
        """Return these columns with others in the place of some."""
        return replace(self, **given)

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> Self:
        """Return the columns that a run has saved."""
        titles = saved.get("titles")
        return cls(**{**saved, "titles": None if titles is None else Path(titles)})


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

    @property
    def fingerprint(self) -> str:
        """A sum of what is fitted to and judged by."""
        digest = hashlib.md5(usedforsecurity=False)
        for matrix in (self.valid.train.matrix, self.valid.histories, self.valid.truth):
            digest.update(matrix.indptr.astype(np.int64).tobytes())
            digest.update(matrix.indices.astype(np.int64).tobytes())
            digest.update(matrix.data.tobytes())
        return digest.hexdigest()


def load(source: str, columns: Columns, split: str = "auto", share: float = 0.1, seed: int = 0) -> Divided:
    """Read DATA and divide it.

    Parameters
    ----------
    source
        A file, a folder of lists (`train.txt`, `test.txt` and so on) or the name of a benchmark.
    split
        "paper" (its own strong split), "strong" (users held out), "weak" (items held out), "last" (the last item of
        each user), "time" (the latest interactions), or "auto": as the files divide it, the paper's split where it has
        one, otherwise strong.
    share
        Of users (strong), items (weak) or interactions (time), for validation and again for the test.
    seed
        Of what is drawn.
    """
    if split not in SPLITS:
        raise DataError(f"there is no split {split!r}: the splits are {', '.join(SPLITS)}")
    place = _place(source, columns)
    if isinstance(place, Path):
        if place.is_dir():
            return _of_folder(place, split, share, seed)
        if split == "paper":
            raise DataError("the paper's split is of its own data sets: name one of them, or choose another split")
        return _divided(place.name, _table(place, columns), split, share, seed)
    if split == "paper" or (split == "auto" and place.heldout is not None):
        if place.heldout is None:
            raise DataError(f"the paper has no strong split of {place.title}: choose another --split")
        return _of_lists(place.title, strong_lists(place.pairs(), place.heldout), place.load())
    return _divided(place.title, place.load(), split, share, seed)


def read(source: str, columns: Columns) -> tuple[str, Interactions]:
    """Return the title of DATA and all of its interactions."""
    place = _place(source, columns)
    if not isinstance(place, Path):
        return place.title, place.load()
    if not place.is_dir():
        return place.name, _table(place, columns)
    lists = _lists(place)
    if "test_in" in lists:
        return place.name, _of_folder(place, "auto", 0.1, 0).data
    return place.name, _whole(lists)


def _place(source: str, columns: Columns) -> Path | datasets.Dataset:
    """Return the file, the folder or the benchmark that a name stands for."""
    path = Path(source)
    if path.is_file():
        return path
    if (path / "model.json").exists():
        raise DataError(
            f"{source} is a model, not data: name a table, a folder with train.txt and test.txt or a benchmark"
        )
    if not path.is_dir() and source not in datasets.names():
        raise DataError(
            f"{source!r} is neither a file nor a folder nor a benchmark; the benchmarks are "
            f"{', '.join(datasets.names())}"
        )
    if columns != Columns():
        given = [name for name, value in vars(columns).items() if value != getattr(Columns(), name)]
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise DataError(f"{source} is no table and has no columns to choose from: leave {options} out")
    return path if path.is_dir() else datasets.get(source)


def _table(path: Path, columns: Columns) -> Interactions:
    return Interactions.read(
        path,
        user=columns.user,
        item=columns.item,
        rating=columns.rating,
        min_rating=columns.min_rating,
        weight=columns.weight,
        timestamp=columns.timestamp,
        titles=columns.titles,
        min_user_count=columns.min_user_count,
        min_item_count=columns.min_item_count,
    )


def _divided(title: str, data: Interactions, split: str, share: float, seed: int) -> Divided:
    rng = np.random.default_rng(seed)
    divide: dict[str, Callable[[Interactions], Split]] = {
        "strong": lambda part: hold_out_users(part, share, rng=rng),
        "weak": lambda part: hold_out_items(part, share, rng=rng),
        "last": leave_last_out,
        "time": lambda part: split_by_time(part, share=share),
    }
    chosen = divide["strong" if split == "auto" else split]
    test = chosen(data)
    return Divided(title, data, chosen(test.train), test)


def _of_folder(folder: Path, split: str, share: float, seed: int) -> Divided:
    """Divide a folder of lists: by users if it has test_in.txt, otherwise within users."""
    lists = _lists(folder)
    if "test_in" in lists:
        missing = [name for name in StrongLists._fields if name not in lists]
        if missing or split not in ("auto", "strong"):
            way_out = f"it lacks {', '.join(missing)}.txt" if missing else "its split is strong"
            raise DataError(f"{folder} is divided by users, as test_in.txt says: {way_out}")
        return _of_lists(folder.name, StrongLists(**lists))
    data = _whole(lists)
    whole = {name: Interactions.from_lists(part, data.n_users, data.n_items) for name, part in lists.items()}
    if split not in ("auto", "weak"):
        return _divided(folder.name, data, split, share, seed)
    if "valid" in whole:
        valid = given_split(whole["train"], whole["valid"])
    else:
        valid = hold_out_items(whole["train"], share, rng=np.random.default_rng(seed))
    return Divided(folder.name, data, valid, given_split(valid.everything(), whole["test"]))


def _lists(folder: Path) -> dict[str, Lists]:
    """Return the files of a folder of lists, by name."""
    lists = {
        name: read_lists(folder / f"{name}.txt") for name in StrongLists._fields if (folder / f"{name}.txt").is_file()
    }
    if "train" not in lists or "test" not in lists:
        raise DataError(f"{folder} has no train.txt and test.txt with a line `user item item …` per user")
    return lists


def _whole(lists: Mapping[str, Lists]) -> Interactions:
    """Return all lists of a folder whose users are the same in each."""
    n_users = 1 + max(int(part.owners.max()) for part in lists.values())
    return Interactions.from_lists(_joined(*lists.values()), n_users, _n_items(*lists.values()))


def _of_lists(title: str, lists: StrongLists, data: Interactions | None = None) -> Divided:
    n_items = _n_items(*lists)
    parts = [Interactions.from_lists(part, 1 + int(part.owners.max()), n_items) for part in lists]
    train, valid_in, valid, test_in, test = parts
    to_decide = given_split(train, valid, valid_in, protocol="validation users of the given split")
    to_report = given_split(to_decide.everything(), test, test_in, protocol="test users of the given split")
    return Divided(title, to_report.everything() if data is None else data, to_decide, to_report)


def _n_items(*parts: Lists) -> int:
    return 1 + max(int(part.items.max(initial=-1)) for part in parts)


def _joined(*parts: Lists) -> Lists:
    users, items = (np.concatenate([getattr(part, name) for part in parts]) for name in ("users", "items"))
    return Lists(users, items, np.unique(np.concatenate([part.owners for part in parts])))
