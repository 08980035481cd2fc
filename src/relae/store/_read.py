"""Read a model folder; everything in it is checked before it is used.

The record is read first, and checked against what the model expects; then the files against the record. Only then is an
array mapped. Whatever a folder says, it can at most give wrong numbers: it runs no code, reads no file of others, and
neither hangs nor ends the process.
"""

import hashlib
import json
import math
import os
import re
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from relae._common.files import open_regular
from relae.errors import StoreError
from relae.store._format import ARRAYS, DTYPES, FORMAT, RECORD, VERSION, Record, checksum, header

_LARGEST_RECORD = 1 << 25  # bytes; that of a long training has some hundred thousand
_SECONDS = 30.0  # to open the files of a folder, which takes milliseconds where its disk is there

_PIECE = 1 << 26  # bytes read at a time

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class FileState:
    """The state of a file: if it differs, the file was changed."""

    inode: tuple[int, int]
    size: int
    changed: int  # nanoseconds

    @classmethod
    def of(cls, file: int | Path) -> "FileState":
        """Return the state of an open file, or of the one at a path."""
        status = os.stat(file)
        return cls((status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns)


def read(
    path: Path, check: Callable[[Record], _Result], *, verify: bool = False, in_memory: bool = False
) -> tuple[Record, _Result, dict[str, NDArray[Any]], dict[str, FileState]]:
    """Return the record of a folder, what `check` makes of it, the arrays, and the state of their files.

    Arrays are mapped and not read, unless they shall be in memory: then there are no files to look after.

    Parameters
    ----------
    check
        Called with the record before any array is opened; raises a StoreError if the record cannot be.
    verify
        Read all arrays, and check their checksums. Without it the checksum of the record, and the header and size of
        every file, are checked.
    in_memory
        Read all arrays, so that nothing that happens to the files matters any more.

    Raises
    ------
    StoreError
        If there is no model, or it is corrupt, or cannot be opened in time.
    """
    while True:
        record = _in_time(path, _read_record)
        checked = check(record)
        try:
            with ExitStack() as stack:
                files, states = _in_time(path, _open_files, record, stack)
                take = _read_array if in_memory else _map
                arrays = {name: take(file, record["arrays"][name], verify) for name, file in files.items()}
            return record, checked, arrays, {} if in_memory else states
        except FileNotFoundError as error:
            if _in_time(path, _read_record) == record:  # otherwise a save has come between
                raise StoreError(f"{path} lacks {error.filename}: it was not copied whole; copy it again") from error
        except OSError as error:
            raise StoreError(f"{error.filename or path} cannot be read: {error.strerror or error}") from error


def _in_time(path: Path, work: Callable[..., _Result], *arguments: Any) -> _Result:
    """Return what `work` returns; a StoreError if it takes too long, as on a network disk that does not answer.

    No system call can be told to give up on a disk: the thread that waits for it is left behind.
    """
    outcome: Future[_Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(work(path, *arguments))
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name=f"open {path}", daemon=True).start()
    try:
        return outcome.result(_SECONDS)
    except TimeoutError:
        if outcome.done():  # an error of the work itself
            raise
        raise StoreError(
            f"{path} could not be opened within {_SECONDS:g} seconds: its disk does not answer; try again, or copy the "
            "model to another one"
        ) from None


# --- the record ----------------------------------------------------------------------------------------------------


def _read_record(path: Path) -> Record:
    file_path = path / RECORD
    try:
        with open_regular(file_path) as file:
            content = file.read(_LARGEST_RECORD + 1)
    except (FileNotFoundError, NotADirectoryError):
        what = f"{path} has no {RECORD}" if path.is_dir() else f"there is no model folder {path}"
        raise StoreError(f"{what}: `relae fit … --out {path}` or model.save makes one") from None
    except OSError as error:
        raise StoreError(f"{file_path} cannot be read: {error.strerror or error}") from error
    if len(content) > _LARGEST_RECORD:
        raise StoreError(f"{file_path} is not the record of a model: it has more than {_LARGEST_RECORD:,} bytes")
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{file_path} is corrupt: it is not JSON ({error}); copy or save the model again") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise StoreError(f"{file_path} is not the record of a model: its format is not {FORMAT!r}")
    version = record.get("version")
    if isinstance(version, int) and version > VERSION:
        raise StoreError(
            f"{path} has the format {version} of a newer relae, and this one reads up to {VERSION}: upgrade relae"
        )
    claimed = record.pop("checksum", None)
    try:
        agrees = claimed == checksum(record)
    except (ValueError, RecursionError):
        agrees = False
    if not agrees:
        raise StoreError(f"{file_path} is corrupt: its checksum does not agree; copy or save the model again")
    _check_record(file_path, record)
    return record


def _check_record(path: Path, record: Record) -> None:
    """Refuse a record that names anything but plain arrays inside the folder."""
    arrays, folder = record.get("arrays"), record.get("folder")
    sound = record.get("version") == VERSION and isinstance(folder, str) and ARRAYS.fullmatch(folder) is not None
    if not (sound and isinstance(arrays, dict) and all(map(_is_array, arrays, arrays.values()))):
        raise StoreError(f"{path} is corrupt: it does not describe plain arrays; copy or save the model again")


def _is_array(name: str, entry: Any) -> bool:
    shape = entry.get("shape") if isinstance(entry, dict) else None
    if not isinstance(shape, list) or not 1 <= len(shape) <= 2 or entry.get("dtype") not in DTYPES:
        return False
    if re.fullmatch(r"[a-z_]{1,40}", name) is None or not all(
        type(side) is int and 0 <= side < 2**63 for side in shape
    ):
        return False
    return type(entry.get("bytes")) is int and entry["bytes"] == _size(entry)


def _size(entry: Record) -> int:
    """Return the bytes that the file of an array has."""
    dtype = np.dtype(entry["dtype"])
    return len(header(dtype, entry["shape"])) + math.prod(entry["shape"]) * dtype.itemsize


# --- the arrays ----------------------------------------------------------------------------------------------------


def _open_files(path: Path, record: Record, stack: ExitStack) -> tuple[dict[str, BufferedReader], dict[str, FileState]]:
    """Open all arrays until the stack closes, and check their sizes and headers."""
    files, states = {}, {}
    for name, entry in record["arrays"].items():
        file_path = path / record["folder"] / f"{name}.npy"
        files[name] = stack.enter_context(open_regular(file_path))
        states[name] = FileState.of(files[name].fileno())  # before it is checked: what changes later is noticed
        _check_header(file_path, files[name], states[name].size, entry)
    return files, states


def _check_header(path: Path, file: BufferedReader, size: int, entry: Record) -> None:
    expected = _size(entry)
    if size != expected:
        raise StoreError(
            f"{path} is corrupt: it has {size:,} bytes and should have {expected:,}; copy or save the model again"
        )
    start = header(np.dtype(entry["dtype"]), entry["shape"])
    if file.read(len(start)) != start:
        raise StoreError(
            f"{path} is corrupt: its header is not that of {entry['dtype']} of shape {tuple(entry['shape'])}; "
            "copy or save the model again"
        )


def _map(file: BufferedReader, entry: Record, verify: bool) -> NDArray[Any]:
    if verify:
        file.seek(0)
        if not agrees(file, entry):
            raise _wrong_content(file)
    dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.asarray(np.memmap(file, dtype, "r", offset=len(header(dtype, shape)), shape=shape))


def _read_array(file: BufferedReader, entry: Record, verify: bool) -> NDArray[Any]:
    """Return an array in memory; what is checked is what was read, whatever happens to the file."""
    dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
    array = np.empty(shape, dtype)
    start = header(dtype, shape)
    file.seek(len(start))
    view = memoryview(array.reshape(-1).view(np.uint8))
    read = 0
    while read < len(view) and (count := file.readinto(view[read : read + _PIECE])):
        read += count
    digest = hashlib.sha256(start)
    if verify:
        digest.update(view)
    if read < len(view) or (verify and digest.hexdigest() != entry.get("sha256")):
        raise _wrong_content(file)
    array.flags.writeable = False
    return array


def agrees(file: BufferedReader, entry: Record) -> bool:
    """Return whether a file has the content that a record says."""
    return hashlib.file_digest(file, "sha256").hexdigest() == entry.get("sha256")


def _wrong_content(file: BufferedReader) -> StoreError:
    return StoreError(f"{file.name} is corrupt: its checksum does not agree; copy or save the model again")


def overwritten(path: Path, record: Record, states: dict[str, FileState]) -> Path | None:
    """Return a file of a mapped model that was overwritten in place since, None if there is none.

    One that was replaced by another file, or removed, is not overwritten: the mapping keeps what it had. A file whose
    time has changed and whose size has not is read again; if its content is what the record says, its state is noted.
    """
    for name, before in states.items():
        file_path: Path = path / record["folder"] / f"{name}.npy"
        try:
            now = FileState.of(file_path)
            if now == before or now.inode != before.inode:
                continue
            if now.size != before.size:
                return file_path
            with open_regular(file_path) as file:
                if not agrees(file, record["arrays"][name]):
                    return file_path
            states[name] = now
        except FileNotFoundError:
            continue
    return None
