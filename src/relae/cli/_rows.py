"""Write many rows frame by frame: CSV, JSON lines or Parquet, to a file or to stdout."""

import io
import os
import re
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from queue import Empty, Full, Queue
from typing import IO, Any

import polars as pl

from relae._common.files import atomic_file, lock_file
from relae.data import Ids
from relae.errors import DataError

Schema = dict[str, Any]
"""The type of each column, by its name."""

_EXTENSIONS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_MAX_WAITING = 2  # frames in the queue of the writer


def choose_format(out: Path | None, option: str | None) -> str:
    """Return the format of the rows: from the option, or else from the extension of the file."""
    if option == "parquet" and out is None:
        raise DataError("Parquet goes to a file: name it with --out, or choose --format csv or jsonl")
    if option is not None:
        return option
    if out is None:
        return "csv"
    if out.suffix.lower() not in _EXTENSIONS:
        raise DataError(f"{out}: the extension {out.suffix!r} is none of .parquet, .csv, .jsonl: choose a --format")
    return _EXTENSIONS[out.suffix.lower()]


def write_rows(frames: Iterable[pl.DataFrame], schema: Schema, out: Path | None, kind: str) -> int:
    """Write frames one after the other, holding few of them at a time, and return the number of rows."""
    counter = _RowCounter(frames)
    if out is None:
        _write_text(counter, schema, sys.stdout.buffer, kind)
        sys.stdout.buffer.flush()
        return counter.rows
    with lock_file(out), atomic_file(out) as part:
        if kind == "parquet":
            _write_parquet(counter, schema, part)
        else:
            with part.open("wb") as file:
                _write_text(counter, schema, file, kind)
    return counter.rows


def get_id_type(ids: Ids) -> type[pl.DataType]:
    """Return the polars type of a column of ids."""
    return pl.Int64 if ids.kind == "int" else pl.String


def make_id_series(ids: Ids) -> pl.Series:
    """Return all ids as a series, to gather columns of ids from."""
    return pl.Series(ids.values if ids.kind == "int" else ids.values.tolist(), dtype=get_id_type(ids))


class _RowCounter:
    """An iterator over frames that counts their rows."""

    def __init__(self, frames: Iterable[pl.DataFrame]) -> None:
        self._frames, self.rows = frames, 0

    def __iter__(self) -> Iterator[pl.DataFrame]:
        for frame in self._frames:
            self.rows += frame.height
            yield frame


def _write_text(frames: Iterable[pl.DataFrame], schema: Schema, file: IO[bytes], kind: str) -> None:
    """Write text frame by frame; nothing is written if the first frame fails."""
    empty = pl.DataFrame(schema=schema)
    for number, frame in enumerate(chain(frames, [empty])):
        text = io.BytesIO()  # not the file itself: polars would hide a broken pipe in an error of its own
        if kind == "csv":
            frame.write_csv(text, include_header=number == 0)
        else:
            frame.write_ndjson(text)
        file.write(text.getbuffer())


def _write_parquet(frames: Iterable[pl.DataFrame], schema: Schema, part: Path) -> None:
    """Write row groups frame by frame; polars writes in another thread, so that this one can be interrupted."""
    from polars.io.plugins import register_io_source

    _restore_interrupts()
    waiting: Queue[pl.DataFrame | None] = Queue(_MAX_WAITING)

    def source(*_: Any) -> Iterator[pl.DataFrame]:
        while (frame := waiting.get()) is not None:
            yield frame

    def sink() -> None:
        register_io_source(source, schema=schema).sink_parquet(part, engine="streaming")

    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(sink)
        with _close_queue(waiting, written):
            for frame in frames:
                _put(waiting, frame, written)
                if written.done():  # it has failed, for example because the disk is full
                    break
        try:
            written.result()
        except pl.exceptions.PolarsError as error:
            raise _convert_to_os_error(error) from error


def _restore_interrupts() -> None:
    """Restore Python's handler of Ctrl-C: polars replaces it at its first query, and its writer then panics."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not None and threading.current_thread() is threading.main_thread():
        pl.LazyFrame({"": [0]}).collect(engine="streaming")
        signal.signal(signal.SIGINT, handler)


def _convert_to_os_error(error: pl.exceptions.PolarsError) -> OSError:
    """Return the operating system's error that a polars error wraps."""
    number = re.search(r"\(os error (\d+)\)", str(error))
    return OSError(None, str(error)) if number is None else OSError(int(number[1]), os.strerror(int(number[1])))


@contextmanager
def _close_queue(waiting: "Queue[pl.DataFrame | None]", written: "Future[None]") -> Iterator[None]:
    """Tell the writer at the end that there are no more frames, even after an error."""
    try:
        yield
    except BaseException:
        while True:  # discard the waiting frames
            try:
                waiting.get_nowait()
            except Empty:
                break
        raise
    finally:
        _put(waiting, None, written)


def _put(waiting: "Queue[pl.DataFrame | None]", frame: pl.DataFrame | None, written: "Future[None]") -> None:
    """Put a frame into the queue when there is room, unless the writer has ended."""
    while not written.done():
        try:
            return waiting.put(frame, timeout=0.1)
        except Full:
            continue
