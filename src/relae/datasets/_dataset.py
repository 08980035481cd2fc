"""One benchmark: its files, its recipe, and how it is read, downloaded and compared with the paper."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from relae.data import Ids, Interactions, Lists, Statistics, TableOptions, positions_in, read_lists
from relae.datasets._online_retail import EMBEDDED, embedded_folder, online_retail
from relae.datasets._raw import Form, Raw
from relae.datasets._sources import data_folders
from relae.errors import DataError, Option

if TYPE_CHECKING:
    import polars as pl

    from relae._common.progress import Progress


@dataclass(frozen=True)
class DatasetFile:
    """A file as it is published; None where a fact is not known, or where no address may be fetched from."""

    name: str
    url: str | None
    md5: str | None = None
    size: int | None = None


@dataclass(frozen=True)
class PaperRow:
    """A row of the paper's Table 1 (`tab:statistics`); the ratings as printed, the density as a share of 1."""

    users: int
    items: int
    ratings: str
    density: float
    gini: float


@dataclass(frozen=True)
class Expected:
    """The counts that the recipe leaves of the published files."""

    users: int
    items: int
    interactions: int


@dataclass(frozen=True)
class Comparison:
    """One figure of Table 1 as printed and as measured, rounded alike; `equal` is None without a printed one."""

    column: str
    paper: str | None
    ours: str

    @property
    def equal(self) -> bool | None:
        """True if the two agree as printed."""
        return None if self.paper is None else self.paper == self.ours


@dataclass(frozen=True)
class Dataset:
    """A benchmark: its files, its recipe, and its interactions once the files are there.

    Attributes
    ----------
    name, title : str
        What it is called on the command line, and in print.
    files : tuple of DatasetFile
        The files as published; none for a data set that comes with the package.
    licence, citation, homepage, recipe : str
        In words.
    paper : PaperRow or None
        Its row of the paper's Table 1.
    heldout : int or None
        The users held out for validation, and again for the test, in the paper's strong protocol.
    expected : Expected or None
        What the recipe leaves, where that is known.
    note : str
        What a reader of the figures should know.
    by_hand : str
        Where to find files that have no address to download from.
    preparation : TableOptions
        The recipe as options: the lowest rating that counts, and the least users per item and items per user.
    """

    name: str
    title: str
    files: tuple[DatasetFile, ...]
    licence: str
    citation: str
    homepage: str
    recipe: str
    paper: PaperRow | None = None
    heldout: int | None = None
    expected: Expected | None = None
    note: str = ""
    by_hand: str = ""
    preparation: TableOptions = field(default=TableOptions(), repr=False)
    forms: tuple[Form, ...] = field(default=(), repr=False)

    @property
    def embedded(self) -> bool:
        """True if it comes with the package."""
        return not self.files

    @property
    def present(self) -> bool:
        """True if its files are here, in any form that can be read."""
        return self.embedded or self._find() is not None

    @property
    def rates(self) -> bool:
        """True if its raw files have ratings, some of which are too low to count."""
        return self.preparation.min_rating is not None

    def folder(self) -> Path:
        """Return the folder with its files; if there is none, the one to put them into.

        That is `NAME` in the folder that RELAE_DATA names, and `relae/NAME` in the user's cache.
        """
        if self.embedded:
            return Path(str(EMBEDDED))
        folders = data_folders(self.name)
        return next((folder for folder in folders if self._find([folder]) is not None), folders[0])

    def load(self, *, seen: bool = False) -> Interactions:
        """Return the interactions that the recipe leaves, with titles and times where the raw files have them.

        Parameters
        ----------
        seen
            Keep what users rated lower than the recipe counts as `Interactions.seen`, so that it is never recommended
            to them. The published protocols do not know it: figures to compare with theirs are made without.

        Raises
        ------
        DataError
            If files are missing, with where to get them and put them; or if a line cannot be read.
        """
        if self.embedded:
            return online_retail()
        if not self.forms:
            return self._from_lists()
        return self._assembled(self._raw(seen=seen))

    def pairs(self) -> Lists:
        """Return the interactions that the recipe leaves as pairs, in the order of the raw files.

        Users are numbered in the order of their sorted ids. Items have the numbers of the columns of `load()`;
        in LightGCN's files, users and items have the numbers there, and the test file follows the training
        file. The paper's strong split is made of this.

        Raises
        ------
        DataError
            As `load`.
        """
        if self.embedded:
            with embedded_folder() as folder:
                rows = _read_parquet(folder / "interactions.parquet")
            return _pairs(rows["user"], rows["item"], online_retail())
        if not self.forms:
            train, test = self.weak()
            users, items = np.concatenate([train.users, test.users]), np.concatenate([train.items, test.items])
            return Lists(users, items, np.union1d(train.owners, test.owners))
        raw = self._raw()
        data = self._assembled(raw, named=False)
        return _pairs(raw.events.rows["user"], raw.events.rows["item"], data)

    def weak(self) -> tuple[Lists, Lists]:
        """Return the published training and test pairs, the paper's weak split.

        Raises
        ------
        DataError
            If the paper has no weak split of this data set, or as `load`.
        """
        if self.embedded or self.forms:
            from relae.datasets._benchmarks import BENCHMARKS

            divided = [dataset.title for dataset in BENCHMARKS if not dataset.embedded and not dataset.forms]
            raise DataError(f"the paper has no weak split of {self.title}; it has one of {', '.join(divided)}")
        folder = self._present_folder()
        return read_lists(folder / "train.txt"), read_lists(folder / "test.txt")

    def compare(self, statistics: Statistics) -> list[Comparison]:
        """Return the columns of the paper's Table 1 beside measured ones, in the paper's rounding."""
        paper = self.paper
        millions = paper is not None and paper.ratings.endswith("M")
        count = statistics.interactions
        ours = (
            f"{statistics.users:,}",
            f"{statistics.items:,}",
            f"{count / 1e6:.1f}M" if millions else f"{count:,}",
            f"{statistics.density:.2%}",
            f"{statistics.gini:.2f}",
        )
        printed: tuple[str | None, ...] = (None,) * len(ours)
        if paper is not None:
            rounded = (f"{paper.density:.2%}", f"{paper.gini:.2f}")
            printed = (f"{paper.users:,}", f"{paper.items:,}", paper.ratings, *rounded)
        columns = ("users", "items", "ratings", "density", "Gini of items")
        return [Comparison(*row) for row in zip(columns, printed, ours, strict=True)]

    def download(self, progress: Progress | None = None, force: bool = False) -> None:
        """Fetch the files into RELAE_DATA, or else the user's cache.

        What is there already is checked and kept; an interrupted download goes on where it stopped.

        Parameters
        ----------
        progress
            Called with the stage in words and the fraction of it that is done.
        force
            Fetch the files even if they are there; the old ones are replaced when the new ones are complete.

        Raises
        ------
        DataError
            If a file has no address, cannot be fetched, or is not what it should be.
        """
        if self.embedded or (self.present and not force and not self._has_published_files()):
            return
        from relae.datasets._download import Remote, fetch

        target = self.folder() if self.present and not force else data_folders(self.name)[0]
        for file in self.files:
            path = target / file.name
            if path.exists() and (file.url is None or not force):
                _check_kept(path, file.md5, progress)
            elif file.url is None:
                raise DataError(self._missing())
            else:
                fetch(Remote(file.url, path, file.md5, file.size), progress)

    def _has_published_files(self) -> bool:
        return all((self.folder() / file.name).exists() for file in self.files)

    def _find(self, folders: list[Path] | None = None) -> tuple[Path, Form | None] | None:
        """Return the folder that has the files, and in which form."""
        for folder in data_folders(self.name) if folders is None else folders:
            for path in (folder, folder / self.name, folder / "download"):
                if not self.forms and all((path / file.name).is_file() for file in self.files):
                    return path, None
                for form in self.forms:
                    if form.found_in(path):
                        return path, form
        return None

    def _present_folder(self) -> Path:
        location = self._find()
        if location is None:
            raise DataError(self._missing())
        return location[0]

    def _raw(self, *, seen: bool = False) -> Raw:
        location = self._find()
        if location is None or location[1] is None:
            raise DataError(self._missing())
        return location[1].read(location[0], None if seen else self.preparation.min_rating)

    def _missing(self) -> str:
        folder = self.folder()
        missing = [file for file in self.files if not (folder / file.name).exists()]
        listed = ", ".join(
            f"{folder / file.name}" + ("" if file.url is None else f" (from {file.url})") for file in missing
        )
        files_are = "a file that is" if len(missing) == 1 else f"{len(missing)} files that are"
        if self.by_hand:
            return f"{self.title} needs {files_are} not here: {listed}. {self.by_hand}"
        them = "it" if len(missing) == 1 else "them"
        return (
            f"{self.title} needs {files_are} not here: {listed}. Run `relae datasets get {self.name}`, or fetch "
            f"{them} yourself and put {them} there"
        )

    def _assembled(self, raw: Raw, *, named: bool = True) -> Interactions:
        """Apply the counts of the recipe; `named` tells to put ids that are text in the place of their numbers."""
        events = raw.events
        columns = {name: name for name in ("rating", "timestamp") if name in events.rows.columns}
        options = replace(
            self.preparation,
            rating=columns.get("rating"),
            min_rating=self.preparation.min_rating if "rating" in columns else None,
            timestamp=columns.get("timestamp"),
            titles=raw.titles,
        )
        data = Interactions.from_frame(events.rows, **options.keywords())
        if not named or events.users is None or events.items is None:
            return data
        users = Ids(np.array(events.users, dtype=object)[data.users.values])
        items = Ids(np.array(events.items, dtype=object)[data.items.values])
        dropped = data.dropped
        if dropped is not None:
            dropped = replace(dropped, users=Ids(np.array(events.users, dtype=object)[dropped.users.values]))
        return Interactions(data.matrix, users, items, data.titles, data.times, dropped=dropped)

    def _from_lists(self) -> Interactions:
        pairs = self.pairs()
        return Interactions.from_lists(pairs, int(pairs.owners.max()) + 1, int(pairs.items.max(initial=-1)) + 1)


def _read_parquet(file: Path) -> pl.DataFrame:
    import polars as pl

    return pl.read_parquet(file, columns=["user", "item"])


def _pairs(users: pl.Series, items: pl.Series, data: Interactions) -> Lists:
    """Return the rows whose user and item are in the data, numbered as there; of repeated pairs the first."""
    import polars as pl

    rows = pl.DataFrame(
        {
            "user": positions_in(pl.Series(data.users.values.tolist(), dtype=users.dtype), users),
            "item": positions_in(pl.Series(data.items.values.tolist(), dtype=items.dtype), items),
        }
    ).drop_nulls()
    if rows.height > data.n_interactions:
        rows = rows.unique(maintain_order=True, keep="first")
    return Lists(rows["user"].to_numpy(), rows["item"].to_numpy(), np.arange(data.n_users))


def _check_kept(file: Path, md5: str | None, progress: Progress | None) -> None:
    """Raise if an existing file has another checksum than the published one."""
    from relae.datasets._download import md5_of

    if md5 is None:
        return
    report = progress or (lambda stage, fraction: None)
    actual = md5_of(file, partial(report, f"checking {file.name}"))
    if actual != md5:
        raise DataError(
            f"{file} is there, but its MD5 sum is {actual} and not {md5}: it is damaged or another version. "
            "Fetch it anew with ",
            Option("force", True),
            ", or move it away",
        )
