"""Users × items in files, each with all that its users have."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae._common.files import atomic_file, is_temporary, lock_folder
from relae.data import Ids, Interactions, TableKeywords, TableOptions, options_of
from relae.distributed._cluster import Job, one_core
from relae.errors import DataError, Option
from relae.linalg import Csr, as_csr

Fingerprint = tuple[int, int]
_BUCKETS = 16  # of users, so that no task sees all of them


@dataclass(frozen=True)
class _Counts:
    """Counts per item of one file, or of several."""

    items: Ids
    users_per_item: NDArray[np.int64]
    squares: NDArray[np.float64]


@dataclass(frozen=True)
class Partitions:
    """Interactions in Parquet files that every worker can read, with each user in one file only.

    The rows of the matrix are the users of the first file, sorted, then those of the second, and so on; the columns are
    all items, sorted. A file that changes after this was made is an error wherever it is read.

    Attributes
    ----------
    files : paths, in order
    how : keywords of `Interactions.read` (user, item, weight, …)
    items : Ids
    item_counts : (items,), users per item
    squares : (items,), Σ_u x_uj², the diagonal of the Gram
    users_per_file, interactions_per_file : one number per file
    """

    files: tuple[str, ...]
    fingerprints: tuple[Fingerprint, ...]
    how: dict[str, Any]
    items: Ids
    item_counts: NDArray[np.int64]
    squares: NDArray[np.float64]
    users_per_file: tuple[int, ...]
    interactions_per_file: tuple[int, ...]

    @classmethod
    def from_parquet(
        cls,
        files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        client: Any,
        **options: Unpack[TableKeywords],
    ) -> Self:
        """Count users and items by tasks, one per file.

        Parameters
        ----------
        files
            A glob pattern or the paths; the workers read them under the same names.
        client
            A Dask client.
        options
            Those of `relae.data.TableOptions` that are applied to each row: user, item, rating, min_rating, weight and
            weighting, which a weight needs here: no file alone tells which suits all.

        Raises
        ------
        DataError
            If there are no files, one cannot be used, or a user occurs in two of them.
        """
        checked = TableOptions.checked(**options)
        for name in options:
            if not options_of(TableOptions)[name].by_row:
                raise DataError(
                    Option(name), " needs the rows of all files, and a cluster reads them apart: leave it out"
                )
        if checked.weight is not None and checked.weighting is None:
            raise DataError(
                Option("weight", checked.weight),
                " of files that a cluster reads needs a weighting: set ",
                Option("weighting", ...),
                ", such as 'log' for counts, or read some of the files here to have one chosen",
            )
        paths = _expand(files)
        how = {name: value for name, value in checked.keywords(by_row=True).items() if value is not None}
        job = Job(client)
        opened = [job.submit("open", (at,), _open, path, how) for at, path in enumerate(paths)]
        facts = client.gather([job.submit("facts", (at,), _facts, each) for at, each in enumerate(opened)])
        counted = job.reduce(
            "count", _add_counts, [job.submit("tally", (at,), _counts, e) for at, e in enumerate(opened)]
        )
        split = [job.submit("users", (at,), _users, each) for at, each in enumerate(opened)]
        checks = [job.submit("check-users", (bucket,), _twice, split, bucket) for bucket in range(_BUCKETS)]
        for offence in client.gather(checks):
            if offence is not None:
                name, first, second = offence
                raise DataError(
                    f"user {name!r} occurs in {paths[first]} and in {paths[second]}: a user's rows belong into one "
                    "file; split_by_user(…) writes such files"
                )
        counts: _Counts = counted.result()
        return cls(
            files=tuple(paths),
            fingerprints=tuple(fingerprint for fingerprint, _, _ in facts),
            how=how,
            items=counts.items,
            item_counts=counts.users_per_item,
            squares=counts.squares,
            users_per_file=tuple(users for _, users, _ in facts),
            interactions_per_file=tuple(nonzeros for _, _, nonzeros in facts),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Users and items."""
        return sum(self.users_per_file), len(self.items)

    @property
    def nnz(self) -> int:
        """Interactions."""
        return sum(self.interactions_per_file)

    def blocks(self, job: Job, dtype: str) -> list[Any]:
        """Return the rows of each file, as futures of (users, items) CSR."""
        items = job.submit("items", (), _same, self.items)
        return [
            job.submit("read", (at,), read_rows, path, fingerprint, self.how, items, dtype)
            for at, (path, fingerprint) in enumerate(zip(self.files, self.fingerprints, strict=True))
        ]

    def check_unchanged(self, job: Job) -> None:
        """Raise a DataError if a file is not what it was when this was made."""
        job.client.gather(
            [
                job.submit("same", (at,), _check_same, path, fingerprint)
                for at, (path, fingerprint) in enumerate(zip(self.files, self.fingerprints, strict=True))
            ]
        )


def _expand(files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    if isinstance(files, (str, os.PathLike)):
        paths = sorted(glob(os.fspath(files)))
        if not paths:
            raise DataError(f"no file matches {os.fspath(files)!r}")
    else:
        paths = [os.fspath(path) for path in files]
        if not paths:
            raise DataError("no files were given")
    return [os.path.abspath(path) for path in paths]


def _same(value: Any) -> Any:
    return value


def fingerprint_of(path: str) -> Fingerprint:
    """Return the size and the time of the last change of a file."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read by a worker: {error.strerror}") from error
    return status.st_size, status.st_mtime_ns


def read_file(path: str, expected: Fingerprint, how: dict[str, Any]) -> Interactions:
    """Return the interactions of a file that is still what it was."""
    _check_same(path, expected)
    data = Interactions.read(path, **how)
    _check_same(path, expected)
    return data


def _check_same(path: str, expected: Fingerprint) -> None:
    fingerprint = fingerprint_of(path)
    if fingerprint != expected:
        raise DataError(
            f"{path} changed under way: it had {expected[0]:,} bytes at the start and has {fingerprint[0]:,}, written "
            "at another time; start again with the files as they are now"
        )


def read_rows(path: str, expected: Fingerprint, how: dict[str, Any], items: Ids, dtype: str) -> Csr:
    """Return the rows of a file, with a column for each of `items`; those that are not among them are left out."""
    with one_core():
        return on_columns(read_file(path, expected, how), items, dtype)


def on_columns(data: Interactions, items: Ids, dtype: str) -> Csr:
    """Return a matrix with a column for each of `items`; an item that is not among them is left out."""
    columns = items.positions(data.items.values)
    matrix = data.matrix
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    kept = columns[matrix.indices] >= 0
    cells = (matrix.data[kept], (rows[kept], columns[matrix.indices[kept]]))
    return as_csr(sp.csr_array(cells, shape=(matrix.shape[0], len(items))), np.dtype(dtype))


def _open(path: str, how: dict[str, Any]) -> tuple[str, Fingerprint, Interactions]:
    expected = fingerprint_of(path)
    return path, expected, read_file(path, expected, how)


def _facts(opened: tuple[str, Fingerprint, Interactions]) -> tuple[Fingerprint, int, int]:
    _, fingerprint, data = opened
    return fingerprint, data.n_users, data.n_interactions


def _counts(opened: tuple[str, Fingerprint, Interactions]) -> _Counts:
    data = opened[2]
    columns, n = data.matrix.indices, data.n_items
    squares = np.bincount(columns, data.matrix.data.astype(np.float64) ** 2, n).astype(np.float64, copy=False)
    return _Counts(data.items, np.bincount(columns, minlength=n), squares)


def _add_counts(parts: list[_Counts]) -> _Counts:
    kinds = {part.items.kind for part in parts}
    if len(kinds) > 1:
        raise DataError("the items of some files are integers and those of others are strings: write them alike")
    items = Ids(np.unique(np.concatenate([part.items.values for part in parts])))
    users_per_item, squares = np.zeros(len(items), np.int64), np.zeros(len(items))
    for part in parts:
        at = items.positions(part.items.values)
        users_per_item[at] += part.users_per_item
        squares[at] += part.squares
    return _Counts(items, users_per_item, squares)


def _users(opened: tuple[str, Fingerprint, Interactions]) -> list[NDArray[Any]]:
    """Return the users of a file, in buckets that are the same for every file."""
    values = opened[2].users.values
    buckets = _bucket(values, _BUCKETS)
    return [values[buckets == bucket] for bucket in range(_BUCKETS)]


def _bucket(values: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Return a number below `count` for each id, the same in every process."""
    import polars as pl

    series = pl.Series(values if values.dtype != object else list(values))
    return (series.hash(seed=0) % count).to_numpy().astype(np.int64)


def _twice(split: list[list[NDArray[Any]]], bucket: int) -> tuple[Any, int, int] | None:
    """Return a user that two files have, and which; None if there is none."""
    values = np.concatenate([buckets[bucket] for buckets in split])
    files = np.repeat(np.arange(len(split)), [len(buckets[bucket]) for buckets in split])
    order = np.argsort(values, kind="stable")
    same = np.flatnonzero(values[order[1:]] == values[order[:-1]])
    if not len(same):
        return None
    at = int(same[0])
    name = values[order[at]]
    return name.item() if hasattr(name, "item") else name, int(files[order[at]]), int(files[order[at + 1]])


# --- files by user -----------------------------------------------------------------------------------------------


def split_by_user(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    client: Any,
    folder: str | os.PathLike[str],
    *,
    user: str = "user",
    parts: int,
) -> list[str]:
    """Write the rows of Parquet files again, into `parts` files in each of which its users are whole.

    The folder has to be one that all workers see; returns the paths of the new files.
    """
    paths = _expand(files)
    with new_folder(folder) as target:
        job = Job(client)
        pieces = [
            job.submit("split", (at,), _split, path, str(target), at, user, parts) for at, path in enumerate(paths)
        ]
        joined = [job.submit("join", (part,), _join, pieces, str(target), part) for part in range(parts)]
        written = client.gather(joined)
        for piece in target.glob("piece-*"):
            piece.unlink()
    return [path for path in written if path is not None]


@contextmanager
def new_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Hold a new or empty folder, which only this process and its workers fill."""
    target = Path(folder).absolute()
    with lock_folder(target):
        if not all(map(is_temporary, target.iterdir())):
            raise DataError(f"{target} is not empty: name a new folder")
        yield target


def _split(path: str, folder: str, at: int, user: str, parts: int) -> list[str | None]:
    import polars as pl

    rows = pl.read_parquet(path, glob=False)
    if user not in rows.columns:
        raise DataError(f"{path} has no column {user!r}: it has {', '.join(rows.columns)}")
    buckets = rows[user].hash(seed=0) % parts
    written: list[str | None] = []
    for part in range(parts):
        part_rows = rows.filter(buckets == part)
        name = os.path.join(folder, f"piece-{at:05d}-{part:05d}.parquet")
        if len(part_rows):
            write_atomically(part_rows, name)
        written.append(name if len(part_rows) else None)
    return written


def _join(pieces: list[list[str | None]], folder: str, part: int) -> str | None:
    import polars as pl

    names = [name for written in pieces if (name := written[part]) is not None]
    if not names:
        return None
    target = os.path.join(folder, f"part-{part:05d}.parquet")
    write_atomically(pl.concat([pl.read_parquet(name, glob=False) for name in names]), target)
    return target


def write_atomically(table: Any, path: str) -> None:
    """Write a Parquet file that is there as a whole or not at all."""
    with atomic_file(path) as part:
        table.write_parquet(part)
