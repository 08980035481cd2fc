"""The benchmarks of the field: where they come from, how they are prepared, and what they then look like."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from relae.data._lists import Lists, read_lists
from relae.data._places import data_folders
from relae.data._raw import Form, Raw, movielens_forms, netflix_forms, triplet_forms
from relae.data._weights import Weighting
from relae.data.ids import Ids
from relae.data.interactions import Interactions, Statistics
from relae.errors import DataError

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
    """What the recipe leaves of the published files."""

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
        """Whether the two agree as printed."""
        return None if self.paper is None else self.paper == self.ours


@dataclass(frozen=True)
class Preparation:
    """The recipe as numbers: ratings first, then items, then users, each filter once."""

    min_rating: float | None = None
    min_item_count: int = 0
    min_user_count: int = 0


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
    preparation: Preparation = field(default=Preparation(), repr=False)
    forms: tuple[Form, ...] = field(default=(), repr=False)

    @property
    def embedded(self) -> bool:
        """Whether it comes with the package."""
        return not self.files

    @property
    def present(self) -> bool:
        """Whether its files are here, in any form that can be read."""
        return self.embedded or self._find() is not None

    def folder(self) -> Path:
        """Return the folder with its files; if there is none, the one to put them into.

        That is `NAME` in the folder that RELAE_DATA names, and `relae/NAME` in the user's cache.
        """
        if self.embedded:
            return Path(str(files("relae.data") / "online_retail"))
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
            with _embedded_folder() as folder:
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
            raise DataError(
                f"the paper has no weak split of {self.title}; it has one of "
                + ", ".join(dataset.title for dataset in _ALL if not dataset.embedded and not dataset.forms)
            )
        folder = self._found()
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
        from relae.data._download import Remote, fetch

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
            for place in (folder, folder / self.name, folder / "download"):
                if not self.forms and all((place / file.name).is_file() for file in self.files):
                    return place, None
                for form in self.forms:
                    if form.found_in(place):
                        return place, form
        return None

    def _found(self) -> Path:
        found = self._find()
        if found is None:
            raise DataError(self._missing())
        return found[0]

    @property
    def rates(self) -> bool:
        """Whether its raw files have ratings, some of which are too low to count."""
        return self.preparation.min_rating is not None

    def _raw(self, *, seen: bool = False) -> Raw:
        found = self._find()
        if found is None or found[1] is None:
            raise DataError(self._missing())
        return found[1].read(found[0], None if seen else self.preparation.min_rating)

    def _missing(self) -> str:
        folder = self.folder()
        wanted = [file for file in self.files if not (folder / file.name).exists()]
        listed = ", ".join(
            f"{folder / file.name}" + ("" if file.url is None else f" (from {file.url})") for file in wanted
        )
        files_are = "a file that is" if len(wanted) == 1 else f"{len(wanted)} files that are"
        if self.by_hand:
            return f"{self.title} needs {files_are} not here: {listed}. {self.by_hand}"
        them = "it" if len(wanted) == 1 else "them"
        return (
            f"{self.title} needs {files_are} not here: {listed}. Run `relae datasets get {self.name}`, or fetch "
            f"{them} yourself and put {them} there"
        )

    def _assembled(self, raw: Raw, *, named: bool = True) -> Interactions:
        """Apply the counts of the recipe; `named` tells to put ids that are text in the place of their numbers."""
        events, preparation = raw.events, self.preparation
        rated = "rating" in events.rows.columns
        data = Interactions.from_frame(
            events.rows,
            rating="rating" if rated else None,
            min_rating=preparation.min_rating if rated else None,
            min_item_count=preparation.min_item_count,
            min_user_count=preparation.min_user_count,
            timestamp="timestamp" if "timestamp" in events.rows.columns else None,
            titles=raw.titles,
        )
        if not named or events.users is None or events.items is None:
            return data
        users = Ids(np.array(events.users, dtype=object)[data.users.values])
        items = Ids(np.array(events.items, dtype=object)[data.items.values])
        named_data = Interactions(data.matrix, users, items, data.titles, data.times)
        if data.dropped is not None:
            texts = Ids(np.array(events.users, dtype=object)[data.dropped.users.values])
            named_data.dropped = replace(data.dropped, users=texts)
        return named_data

    def _from_lists(self) -> Interactions:
        pairs = self.pairs()
        return Interactions.from_lists(pairs, int(pairs.owners.max()) + 1, int(pairs.items.max(initial=-1)) + 1)


def names() -> list[str]:
    """Return the names of all data sets."""
    return [dataset.name for dataset in _ALL]


def get(name: str) -> Dataset:
    """Return a data set by its name.

    Raises
    ------
    DataError
        If there is none of that name; with the names that there are.
    """
    for dataset in _ALL:
        if name.lower() in (dataset.name, dataset.title.lower()):
            return dataset
    near = get_close_matches(name.lower(), names(), n=1, cutoff=0.5)
    meant = f"did you mean {near[0]!r}? " if near else ""
    raise DataError(f"there is no data set {name!r}: {meant}There are {', '.join(names())}")


def online_retail(
    weight: Literal["quantity", "invoices"] | None = None, weighting: Weighting | None = None
) -> Interactions:
    """Return a year of a British gift shop: 4,339 customers, 3,665 products with titles, 266,802 pairs.

    "Online Retail" of the UCI Machine Learning Repository (Daqing Chen, 2015, doi 10.24432/C5BW33), under
    CC BY 4.0, aggregated to pairs of customer and product.

    Parameters
    ----------
    weight
        The amount of a pair: the pieces bought ("quantity"), the invoices they are on ("invoices"), or 1.
    weighting
        What an amount counts, as of `Interactions.read`; chosen by the data if not given.
    """
    with _embedded_folder() as folder:
        return Interactions.read(
            folder / "interactions.parquet", weight=weight, weighting=weighting, titles=folder / "items.parquet"
        )


_embedded_folder = partial(as_file, files("relae.data") / "online_retail")


def _read_parquet(file: Path) -> pl.DataFrame:
    import polars as pl

    return pl.read_parquet(file, columns=["user", "item"])


def _pairs(users: pl.Series, items: pl.Series, data: Interactions) -> Lists:
    """Return the rows whose user and item are in the data, numbered as there; of repeated pairs the first."""
    import polars as pl

    from relae.data._assemble import positions_in

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
    """Raise if a file that is there already is not what it should be."""
    from relae.data._download import md5_of

    if md5 is None:
        return
    report = progress or (lambda stage, fraction: None)
    found = md5_of(file, partial(report, f"checking {file.name}"))
    if found != md5:
        raise DataError(
            f"{file} is there, but its MD5 sum is {found} and not {md5}: it is damaged or another version. "
            "Fetch it anew (--force on the command line, force=True in Python), or move it away"
        )


_GROUPLENS = "https://files.grouplens.org/datasets/movielens"
_LIKED = "Ratings of 4 and more count as interactions, then users with at least 5 of them"
_HARPER = (
    "F. Maxwell Harper and Joseph A. Konstan. The MovieLens Datasets: History and Context. "
    "ACM Transactions on Interactive Intelligent Systems 5(4), 2015"
)
_NO_REDISTRIBUTION = (
    "Research use with acknowledgement; neither redistribution nor commercial use without permission of GroupLens."
)
_FOUR_AND_FIVE = Preparation(min_rating=4, min_user_count=5)
_LIGHTGCN = "https://raw.githubusercontent.com/gusye1234/LightGCN-PyTorch/master/data"
_AS_PUBLISHED = "The 10-core train.txt and test.txt as LightGCN publishes them, taken together"


def _lightgcn_files(name: str, train: str, test: str, sizes: tuple[int, int] | None = None) -> tuple[DatasetFile, ...]:
    train_size, test_size = sizes or (None, None)
    return (
        DatasetFile("train.txt", f"{_LIGHTGCN}/{name}/train.txt", train, train_size),
        DatasetFile("test.txt", f"{_LIGHTGCN}/{name}/test.txt", test, test_size),
    )


_ALL = (
    Dataset(
        name="ml-20m",
        title="ML-20M",
        files=(DatasetFile("ml-20m.zip", f"{_GROUPLENS}/ml-20m.zip", "cd245b17a1ae2cc31bb14903e1204af3", 198_702_078),),
        licence=(
            "Research use with acknowledgement, redistribution under the same terms; no commercial use without "
            "permission of GroupLens."
        ),
        citation=_HARPER,
        homepage="https://grouplens.org/datasets/movielens/20m/",
        recipe=f"{_LIKED} (Mult-VAE).",
        paper=PaperRow(136_677, 20_108, "10.0M", 0.0036, 0.90),
        heldout=10_000,
        expected=Expected(136_677, 20_720, 9_990_682),
        note=(
            "The recipe leaves 20,720 items. The paper's 20,108 are those that the training users of the strong "
            "split have; its density goes with them."
        ),
        preparation=_FOUR_AND_FIVE,
        forms=movielens_forms("ml-20m.zip", "ratings.csv", "movies.csv"),
    ),
    Dataset(
        name="netflix",
        title="Netflix",
        files=(DatasetFile("nf_prize_dataset.tar.gz", None, "a8f23d2d76461211c6b4c0ca6df2547d"),),
        licence=(
            "Research use with acknowledgement; neither redistribution nor commercial use without permission of "
            "Netflix."
        ),
        citation="James Bennett and Stan Lanning. The Netflix Prize. KDD Cup and Workshop, 2007",
        homepage="https://archive.org/details/nf_prize_dataset.tar",
        recipe=f"{_LIKED} (Mult-VAE).",
        paper=PaperRow(463_435, 17_769, "56.9M", 0.0069, 0.86),
        heldout=40_000,
        expected=Expected(463_435, 17_769, 56_880_037),
        by_hand=(
            "Netflix no longer offers it: fetch nf_prize_dataset.tar.gz by hand from "
            "https://archive.org/details/nf_prize_dataset.tar and put it there, or the files combined_data_1.txt "
            "to combined_data_4.txt (and movie_titles.csv) of "
            "https://www.kaggle.com/datasets/netflix-inc/netflix-prize-data, then run `relae datasets get netflix` "
            "to check it"
        ),
        preparation=_FOUR_AND_FIVE,
        forms=netflix_forms(),
    ),
    Dataset(
        name="msd",
        title="MSD",
        files=(
            DatasetFile(
                "train_triplets.txt.zip",
                "http://millionsongdataset.com/sites/default/files/challenge/train_triplets.txt.zip",
            ),
        ),
        licence="Published for research by The Echo Nest and LabROSA; the terms are on the homepage.",
        citation=(
            "Thierry Bertin-Mahieux, Daniel P. W. Ellis, Brian Whitman and Paul Lamere. The Million Song Dataset. "
            "ISMIR 2011"
        ),
        homepage="http://millionsongdataset.com/tasteprofile/",
        recipe=(
            "Whoever played a song interacted with it; songs with at least 200 listeners, then users with at least "
            "20 songs (Mult-VAE)."
        ),
        paper=PaperRow(571_355, 41_140, "33.6M", 0.0036, 0.56),
        heldout=50_000,
        expected=Expected(571_355, 41_140, 33_633_450),
        note="By the paper's own counts the density is 0.14%.",
        preparation=Preparation(min_item_count=200, min_user_count=20),
        forms=triplet_forms(),
    ),
    Dataset(
        name="gowalla",
        title="Gowalla",
        files=_lightgcn_files(
            "gowalla",
            "5eec1eb2edb8dd648377d348b8e136cf",
            "c04e2c4bcd2389f53ed8281816166149",
            (4_633_414, 1_372_559),
        ),
        licence="Published for research by SNAP (loc-gowalla); the files name no licence.",
        citation=(
            "Eunjoon Cho, Seth A. Myers and Jure Leskovec. Friendship and Mobility: User Movement in Location-Based "
            "Social Networks. KDD 2011"
        ),
        homepage="https://snap.stanford.edu/data/loc-gowalla.html",
        recipe=f"{_AS_PUBLISHED}.",
        paper=PaperRow(29_858, 40_981, "1,027,370", 0.0001, 0.44),
        heldout=3_000,
        expected=Expected(29_858, 40_981, 1_027_370),
        note=(
            "By the paper's own counts the density is 0.08%. Its Gini, 0.44, is that of train.txt alone; of all "
            "interactions it is 0.43."
        ),
    ),
    Dataset(
        name="yelp2018",
        title="Yelp2018",
        files=_lightgcn_files("yelp2018", "1b8b5d22a227e01d6de002c53d32b4c4", "0d57d7399862c32152b045ec5d2698e7"),
        licence="From the Yelp Dataset, which is for academic use under Yelp's terms; the files name no licence.",
        citation="Xiang Wang, Xiangnan He, Meng Wang, Fuli Feng and Tat-Seng Chua. Neural Graph Collaborative "
        "Filtering. SIGIR 2019",
        homepage="https://business.yelp.com/data/resources/open-dataset/",
        recipe=f"{_AS_PUBLISHED}.",
        paper=PaperRow(31_668, 38_048, "1,561,406", 0.0013, 0.51),
        heldout=3_000,
        expected=Expected(31_668, 38_048, 1_561_406),
    ),
    Dataset(
        name="amazon-book",
        title="Amazon-book",
        files=_lightgcn_files("amazon-book", "c916ecac04ca72300a016228258b41ed", "30f8ccfea18d25007ba9fb9aba4e174d"),
        licence="From the Amazon reviews of J. McAuley, for academic use; the files name no licence.",
        citation=(
            "Ruining He and Julian McAuley. Ups and Downs: Modeling the Visual Evolution of Fashion Trends with "
            "One-Class Collaborative Filtering. WWW 2016"
        ),
        homepage="https://cseweb.ucsd.edu/~jmcauley/datasets.html",
        recipe=f"{_AS_PUBLISHED}.",
        paper=PaperRow(52_643, 91_599, "2,984,108", 0.0006, 0.46),
        heldout=5_000,
        expected=Expected(52_643, 91_599, 2_984_108),
    ),
    Dataset(
        name="ml-1m",
        title="ML-1M",
        files=(DatasetFile("ml-1m.zip", f"{_GROUPLENS}/ml-1m.zip", "c4d9eecfca2ab87c1945afe126590906"),),
        licence=_NO_REDISTRIBUTION,
        citation=_HARPER,
        homepage="https://grouplens.org/datasets/movielens/1m/",
        recipe=f"{_LIKED}.",
        expected=Expected(6_034, 3_533, 575_272),
        preparation=_FOUR_AND_FIVE,
        forms=movielens_forms("ml-1m.zip", "ratings.dat", "movies.dat"),
    ),
    Dataset(
        name="ml-100k",
        title="ML-100k",
        files=(DatasetFile("ml-100k.zip", f"{_GROUPLENS}/ml-100k.zip", "0e33842e24a9c977be4e0107933c0723", 4_924_029),),
        licence=_NO_REDISTRIBUTION,
        citation=_HARPER,
        homepage="https://grouplens.org/datasets/movielens/100k/",
        recipe=f"{_LIKED}; of 943 users, 1,682 films and 100,000 ratings.",
        preparation=_FOUR_AND_FIVE,
        forms=movielens_forms("ml-100k.zip", "u.data", "u.item"),
    ),
    Dataset(
        name="online-retail",
        title="Online Retail",
        files=(),
        licence="CC BY 4.0, with the attribution that comes with it.",
        citation=("Daqing Chen. Online Retail. UCI Machine Learning Repository, 2015, doi 10.24432/C5BW33"),
        homepage="https://doi.org/10.24432/C5BW33",
        recipe="Purchases of a year, aggregated to pairs of customer and product; comes with the package.",
        expected=Expected(4_339, 3_665, 266_802),
    ),
)

__all__ = [
    "Comparison",
    "Dataset",
    "DatasetFile",
    "Expected",
    "PaperRow",
    "Preparation",
    "get",
    "names",
    "online_retail",
]
