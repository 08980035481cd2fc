"""From the raw files of a benchmark, in whichever form they lie in a folder, to its events and titles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from relae.datasets._formats import (
    RATINGS_CSV,
    RATINGS_DAT,
    RATINGS_PLAIN,
    RATINGS_TAB,
    Events,
    Titles,
    csv_titles,
    netflix_pieces,
    netflix_tar_pieces,
    netflix_titles,
    read_netflix,
    read_ratings,
    read_triplets,
    separated_titles,
)
from relae.datasets._sources import FileSource, Folder, Zip, readable


@dataclass(frozen=True)
class Raw:
    """The content of the raw files."""

    events: Events
    titles: Titles | None


@dataclass(frozen=True)
class Form:
    """One form in which a data set may lie in a folder: the files it needs, and how to read them.

    `read` takes the folder and the lowest rating that counts; without that it returns all rows with their ratings.
    """

    needs: tuple[str, ...]
    read: Callable[[Path, float | None], Raw]

    def found_in(self, folder: Path) -> bool:
        """Return whether all the files are there; a name may be a pattern."""
        return all(any(folder.glob(name)) for name in self.needs)


def movielens_forms(archive: str, ratings: str, movies: str) -> tuple[Form, ...]:
    """Return the forms of a MovieLens data set: as published, extracted, or as plain tables."""
    return (
        Form((archive,), lambda folder, least: _movielens(Zip(folder / archive), ratings, movies, least)),
        Form((ratings,), lambda folder, least: _movielens(Folder(folder), ratings, movies, least)),
        Form(("interactions.csv.gz",), lambda folder, least: _plain(Folder(folder), least)),
    )


def netflix_forms() -> tuple[Form, ...]:
    """Return the forms of the Netflix Prize: the archive, the same extracted, or the files of Kaggle."""
    combined = tuple(f"combined_data_{number}.txt" for number in range(1, 5))
    return (
        Form(
            ("nf_prize_dataset.tar.gz",), lambda folder, least: _netflix_tar(folder, "nf_prize_dataset.tar.gz", least)
        ),
        Form(("training_set.tar",), lambda folder, least: _netflix_tar(folder, "training_set.tar", least)),
        Form(("training_set/mv_*.txt",), _netflix_movies),
        Form(combined, lambda folder, least: _netflix_files(folder, list(combined), least)),
    )


def triplet_forms() -> tuple[Form, ...]:
    """Return the forms of the Taste Profile: zipped or not."""
    name = "train_triplets.txt"
    return (
        Form((f"{name}.zip",), lambda folder, _: Raw(read_triplets(Zip(folder / f"{name}.zip"), name), None)),
        Form((name,), lambda folder, _: Raw(read_triplets(Folder(folder), name), None)),
    )


def _movielens(source: FileSource, ratings: str, movies: str, min_rating: float | None) -> Raw:
    form = {"ratings.csv": RATINGS_CSV, "ratings.dat": RATINGS_DAT, "u.data": RATINGS_TAB}[ratings]
    events = read_ratings(source, ratings, form, min_rating)
    if not source.has(movies):
        return Raw(events, None)
    if movies.endswith(".csv"):
        return Raw(events, csv_titles(source, movies, "movieId"))
    return Raw(events, separated_titles(source, movies, "::" if movies.endswith(".dat") else "|"))


def _plain(source: FileSource, min_rating: float | None) -> Raw:
    events = read_ratings(source, "interactions.csv.gz", RATINGS_PLAIN, min_rating)
    return Raw(events, csv_titles(source, "items.csv", "item") if source.has("items.csv") else None)


def _netflix_tar(folder: Path, name: str, min_rating: float | None) -> Raw:
    titles: Titles = {}
    events = read_netflix(netflix_tar_pieces(folder / name, titles), str(folder / name), min_rating)
    return Raw(events, titles or _netflix_titles(folder))


def _netflix_movies(folder: Path, min_rating: float | None) -> Raw:
    names = sorted(f"training_set/{file.name}" for file in (folder / "training_set").glob("mv_*.txt"))
    return _netflix_files(folder, names, min_rating)


def _netflix_files(folder: Path, names: list[str], min_rating: float | None) -> Raw:
    events = read_netflix(netflix_pieces(folder, names), str(folder), min_rating)
    return Raw(events, _netflix_titles(folder))


def _netflix_titles(folder: Path) -> Titles | None:
    for name in ("movie_titles.txt", "movie_titles.csv"):
        source = Folder(folder)
        if source.has(name):
            with source.open(name) as stream, readable(source.label(name)):
                return netflix_titles(stream.read(), source.label(name))
    return None
