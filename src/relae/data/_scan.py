"""Interactions from files: one that fits into memory at once, all others as a stream.

The rows of a stream are read in batches, and their ids replaced by codes. Their codes go to buckets on disk, all rows
of a user to the same one. A bucket at a time is merged to cells, which are put together at the end. What stays in
memory is the ids, one batch, one bucket, and the cells.
"""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae._common.files import scratch_folder
from relae._common.memory import available_memory
from relae._common.progress import Progress
from relae._common.table_options import TableOptions
from relae.data._assemble import (
    Assembled,
    Cells,
    Events,
    Kept,
    Losses,
    Pairs,
    assemble,
    count,
    join,
    keep,
    merge,
    number,
    parse,
    starts_of,
)
from relae.data._columns import GapWords, Scale, whole_as_fractions
from relae.data._numbering import Codes, Numbering, Ranking
from relae.data._tables import FilePath, Table, existing_file, is_table, open_file, reading_memory
from relae.errors import DataError

_BUCKET_ROWS = 2_000_000
_MOST_BUCKETS = 1024


def read_tables(
    paths: FilePath | Iterable[FilePath],
    options: TableOptions,
    separator: str | None = None,
    scratch: FilePath | None = None,
    progress: Progress | None = None,
) -> Assembled:
    """Return the matrix of the rows of some files, as if they were one table."""
    report = progress or (lambda stage, fraction: None)
    listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files = find_tables(listed)
    if len(files) == 1 and fits_memory(files[0]):
        assembled = assemble(open_file(files[0], separator), options)
        report("merge", 1.0)
        return assembled
    others = ", …" if len(listed) > 1 else ""
    source = str(files[0]) if len(files) == 1 else f"{listed[0]}{others} ({len(files):,} files)"
    return _stream([open_file(file, separator) for file in files], source, options, scratch, report)


def fits_memory(file: Path) -> bool:
    """Return whether a file can be read at once, with half of the free memory left; True for pipes."""
    return not file.is_file() or reading_memory(file) < available_memory() / 2


def _stream(
    tables: list[Table], source: str, options: TableOptions, scratch: FilePath | None, report: Progress
) -> Assembled:
    """Return the matrix of all rows of some tables, which are in memory some at a time."""
    for table in tables:  # all of them before the first is read, which may take long
        table.check(options.roles)
    expected_rows = sum(table.estimate_rows() for table in tables)
    with _scratch_folder(scratch) as folder:
        buckets = _Buckets(folder, options, expected_rows)
        users, items = Numbering(options.user), Numbering(options.item)
        losses = _distribute(tables, options, users, items, buckets, source, report)
        ranked = users.finish(), items.finish()
        parts, low = _merge_all(buckets, *ranked, report)
    assembled = number(_filtered(parts, low, options, losses, len(ranked[0])), ranked[0].ids, ranked[1].ids)
    report("merge", 1.0)
    return assembled


def _filtered(parts: list[Cells], low: list[Pairs], options: TableOptions, losses: Losses, n_users: int) -> Kept:
    rated_low = join(low)
    low.clear()
    # The cells have no name of their own, so that they are gone when a filter has made fewer of them.
    return keep(_interleave(parts, n_users), rated_low, options, losses, n_users)


def find_tables(paths: list[FilePath]) -> list[Path]:
    """Return the files that are meant by paths, folders and patterns; each once."""
    if not paths:
        raise DataError("there are no files to read: give a path, a folder, a pattern or a list of them")
    files: dict[Path, Path] = {}
    for path in paths:
        for file in _expand(Path(path)):
            files.setdefault(file.resolve(), file)
    return list(files.values())


def has_tables(folder: Path) -> bool:
    """Return whether a folder, or a folder in it, has files that are tables."""
    return any(True for _ in _tables_in(folder))


def _tables_in(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*"):
        # Not such as _SUCCESS and .part-0.parquet.crc: what writers of folders leave beside the tables.
        if is_table(file) and file.is_file() and not any(part[0] in "._" for part in file.relative_to(folder).parts):
            yield file


def _expand(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(_tables_in(path))
        if not files:
            raise DataError(f"{path} has no files that end in .parquet, .csv or .tsv (also .gz, .zst)")
        return files
    if glob.has_magic(str(path)) and not path.exists():
        names = sorted(glob.glob(str(path), recursive=True))
        # A pattern that names no extension, such as "events/*", means the tables.
        files = [Path(name) for name in names if os.path.isfile(name) and (path.suffix or is_table(name))]
        if not files:
            raise DataError(f"no file matches {path}")
        return files
    return [existing_file(path)]


def _distribute(
    tables: list[Table],
    options: TableOptions,
    users: Numbering,
    items: Numbering,
    buckets: _Buckets,
    source: str,
    report: Progress,
) -> Losses:
    """Read all rows, and put those that count into their buckets."""
    n_rows = n_kept = 0
    gaps = GapWords()
    for table in tables:
        before = 0
        for rows in table.batches(options.roles):
            events = parse(rows, options, table.source, gaps, text=table.text, before=before)
            for axis, role, ids in ((users, "user", events.users), (items, "item", events.items)):
                axis.note(table.source, rows[role].dtype, ids.dtype, text=table.text)
            if len(events) > 0:
                buckets.add(users.encode(events.users), items.encode(events.items), events, table.source)
            if len(events.low_users) > 0:
                buckets.add_low(users.encode(events.low_users), items.encode(events.low_items), events, table.source)
            before += rows.height
            n_rows, n_kept = n_rows + rows.height, n_kept + len(events)
            report("read", min(n_rows / buckets.expected_rows, 1.0))
    if n_rows == 0:
        raise DataError(f"{source} has no rows" if len(tables) == 1 else f"{source}: none has rows")
    gaps.warn()
    losses = Losses(source, n_rows)
    losses.record_rated(options, n_kept)
    report("read", 1.0)
    return losses


def _merge_all(buckets: _Buckets, users: Ranking, items: Ranking, report: Progress) -> tuple[list[Cells], list[Pairs]]:
    """Return the cells of each bucket, and the distinct pairs with too low a rating."""
    merged, low = [], []
    for bucket in range(buckets.count):
        merged.append(_merge_bucket(buckets, bucket, users, items))
        rows = buckets.take_low(bucket)
        ranks = users.ranks(rows["user"]), items.ranks(rows["item"])
        low.append(Pairs(*ranks, _field(rows, "time")).distinct(len(items)))
        report("merge", (bucket + 1) / (buckets.count + 1))
    return merged, low


def _merge_bucket(buckets: _Buckets, bucket: int, users: Ranking, items: Ranking) -> Cells:
    rows = buckets.take(bucket)
    ranks = users.ranks(rows["user"]).astype(np.int64), items.ranks(rows["item"]).astype(np.int64)
    cells = merge(*ranks, _field(rows, "weight"), len(items), _field(rows, "time"))
    return Cells(cells.users.astype(np.int32), cells.items.astype(np.int32), cells.values, cells.times)


def _field(rows: NDArray[Any], name: str) -> NDArray[Any] | None:
    return rows[name] if name in (rows.dtype.names or ()) else None


def _interleave(parts: list[Cells], n_users: int) -> Cells:
    """Return the cells of several parts, each sorted, of which no two share a user; empties the list."""
    counts = sum(count(part.users, n_users) for part in parts)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    n_cells = int(offsets[-1])
    has_times = parts[0].times is not None
    whole = Cells(
        np.repeat(np.arange(n_users, dtype=np.int32), counts),
        np.empty(n_cells, dtype=np.int32),
        np.empty(n_cells, dtype=np.float32),
        np.empty(n_cells, dtype=np.int64) if has_times else None,
    )
    while parts:
        part = parts.pop()
        starts = starts_of(part.users)
        lengths = np.diff(starts, append=len(part))
        # The cells of a user stay together: all of them move by the same distance.
        targets = np.arange(len(part)) + np.repeat(offsets[part.users[starts]] - starts, lengths)
        whole.items[targets] = part.items
        whole.values[targets] = part.values
        if whole.times is not None and part.times is not None:
            whole.times[targets] = part.times
    return whole


class _Buckets:
    """Rows of codes and numbers in files of a folder: all rows of a user in one bucket."""

    def __init__(self, folder: Path, options: TableOptions, expected_rows: int) -> None:
        self._folder = folder
        self.expected_rows = max(expected_rows, 1)
        self._bits = (min(self.expected_rows // _BUCKET_ROWS, _MOST_BUCKETS - 1)).bit_length()
        fields: list[tuple[str, type]] = [("user", np.int32), ("item", np.int32)]
        fields += [("weight", np.float64)] if options.weight is not None else []
        fields += [("time", np.int64)] if options.timestamp is not None else []
        self._row = np.dtype(fields)
        self._low_row = np.dtype([field for field in fields if field[0] != "weight"])
        self._timestamp = options.timestamp
        self._scales: dict[Scale, str] = {}  # to the first source that has it

    @property
    def count(self) -> int:
        """The number of buckets."""
        return 1 << self._bits

    def add(self, users: Codes, items: Codes, events: Events, source: str) -> None:
        """Append the rows of a batch, each to the bucket of its user."""
        rows = np.empty(len(users), dtype=self._row)
        rows["user"], rows["item"] = users, items
        if events.weights is not None:
            rows["weight"] = events.weights
        if events.times is not None:
            rows["time"] = events.times.values
        self._append(rows, events, source, "")

    def add_low(self, users: Codes, items: Codes, events: Events, source: str) -> None:
        """Append the rows of a batch with too low a rating."""
        rows = np.empty(len(users), dtype=self._low_row)
        rows["user"], rows["item"] = users, items
        if events.low_times is not None:
            rows["time"] = events.low_times
        self._append(rows, events, source, "-low")

    def _append(self, rows: NDArray[Any], events: Events, source: str, kind: str) -> None:
        """Append each row to the bucket of its user."""
        scale: Scale = "whole" if events.times is None else events.times.scale
        self._note_scale(scale, source)
        # Multiplied, so that ids with a pattern, such as multiples of a thousand, spread like others.
        mixed = rows["user"].astype(np.uint32) * np.uint32(0x9E3779B1)
        buckets = (mixed.astype(np.uint64) >> np.uint64(32 - self._bits)).astype(np.uint16)
        rows = rows[np.argsort(buckets, kind="stable")]
        ends = np.cumsum(np.bincount(buckets, minlength=self.count))
        starts = np.append(0, ends[:-1])
        with _scratch_errors(self._folder.parent):
            for bucket, (start, end) in enumerate(zip(starts, ends, strict=True)):
                with open(self._file(bucket, scale, kind), "ab") as file:
                    rows[start:end].tofile(file)

    def take(self, bucket: int) -> NDArray[Any]:
        """Return the rows of a bucket, and delete them from the disk."""
        return self._take(bucket, self._row, "")

    def take_low(self, bucket: int) -> NDArray[Any]:
        """Return the rows of a bucket with too low a rating, and delete them from the disk."""
        return self._take(bucket, self._low_row, "-low")

    def _take(self, bucket: int, dtype: np.dtype[Any], kind: str) -> NDArray[Any]:
        arrays = [np.empty(0, dtype=dtype)]
        for scale in self._scales:
            file = self._file(bucket, scale, kind)
            if not file.exists():  # a scale may be that of low ratings alone, or of others alone
                continue
            rows = np.fromfile(file, dtype=dtype)
            if scale == "whole" and "fraction" in self._scales:
                rows["time"] = whole_as_fractions(rows["time"])
            arrays.append(rows)
            file.unlink()
        return np.concatenate(arrays)

    def _note_scale(self, scale: Scale, source: str) -> None:
        self._scales.setdefault(scale, source)
        if "calendar" in self._scales and len(self._scales) > 1:
            [other] = [first for name, first in self._scales.items() if name != "calendar"]
            raise DataError(
                f"column {self._timestamp!r} has numbers in {other} and dates in {self._scales['calendar']}: "
                "give times of one type in all files"
            )

    def _file(self, bucket: int, scale: Scale, kind: str) -> Path:
        return self._folder / f"{bucket}-{scale}{kind}"


@contextmanager
def _scratch_folder(parent: FilePath | None) -> Iterator[Path]:
    with ExitStack() as stack:
        with _scratch_errors(Path(tempfile.gettempdir() if parent is None else parent)):
            folder = stack.enter_context(scratch_folder(parent))
        yield folder


@contextmanager
def _scratch_errors(where: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{where} cannot hold the scratch files, 8 to 24 bytes per row ({error.strerror or error}): "
            "set scratch= to a folder with room"
        ) from error
