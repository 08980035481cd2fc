"""A folder of plain arrays and one JSON file, which is there whole or not at all.

    model.json            what is in the folder, with the shape, size and checksum of every array, and its own checksum
    arrays-3f2a9c01/      the arrays as .npy files

A save writes a new folder of arrays beside the old one, sees it safe on disk, and then replaces model.json: that one
rename is the save. Whoever has the old arrays open keeps them, and a reader never sees a mixture.
"""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae.errors import StoreError
from relae.linalg import Blocks
from relae.solvers import Progress, gigabytes

FORMAT, VERSION = "relae-model", 1
RECORD = "model.json"

_DTYPES = ("<f4", "<f8", "<i4", "<i8", "|u1")
_ARRAYS = re.compile(r"arrays-[0-9a-f]{8}")
_OURS = re.compile(r"arrays-[0-9a-f]{8}|\.model\.json\.[0-9a-f]{8}")  # what an interrupted save leaves
_CHUNK = 1 << 24

Record = dict[str, Any]


# --- write -------------------------------------------------------------------------------------------------------


def write(
    path: Path,
    record: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any] | Blocks],
    progress: Progress | None = None,
) -> None:
    """Save a record and its arrays; whatever happens on the way, an earlier model in the folder is kept."""
    needed = sum(_bytes(array) for array in arrays.values())
    try:
        check_place(path, needed)
        with _own(path):
            token = secrets.token_hex(4)
            folder, part = path / f"arrays-{token}", path / f".{RECORD}.{token}"
            try:
                folder.mkdir()
                meter = _Meter(needed, progress)
                entries = {name: _write_array(folder, name, array, meter) for name, array in arrays.items()}
                _sync_folder(folder)
                whole = {"format": FORMAT, "version": VERSION, **record, "folder": folder.name, "arrays": entries}
                _write_file(part, json.dumps(whole | {"checksum": _checksum(whole)}, indent=1).encode())
                _sync_folder(path)
                part.replace(path / RECORD)
            except BaseException:
                part.unlink(missing_ok=True)
                shutil.rmtree(folder, ignore_errors=True)
                raise
            _sync_folder(path)
            _sync_folder(path.resolve().parent)
            _clear(path, folder.name)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreError(
                f"{path} cannot be written: the disk is full, and the model needs {gigabytes(needed)}; "
                "what was there is kept"
            ) from error
        raise StoreError(f"{path} cannot be written: {error.strerror or error}; what was there is kept") from error


def check_place(path: Path, needed: int = 0) -> None:
    """Raise a StoreError if a model of so many bytes cannot be saved here, as far as that can be known before."""
    place = path.absolute()
    while not place.exists() and not place.is_symlink():
        place = place.parent
    if not place.is_dir():
        raise StoreError(f"{path} cannot be made: {place} is a file, and a model is a folder; name another place")
    if not os.access(place, os.W_OK | os.X_OK):
        raise StoreError(f"{path} cannot be made: {place} may not be written to; name another place")
    if place == path.absolute():
        strange = sorted(entry.name for entry in path.iterdir() if not _OURS.fullmatch(entry.name))
        if strange and RECORD not in strange:
            raise StoreError(f"{path} is no model folder, it holds {', '.join(strange[:3])}: name a new folder")
    free = shutil.disk_usage(place).free
    if needed > free:
        raise StoreError(
            f"the model needs {gigabytes(needed)} on disk and {gigabytes(free)} are free at {place}: "
            "make room, or name another place; nothing was written"
        )


@contextmanager
def _own(path: Path) -> Iterator[None]:
    """Hold the folder alone: a second save at the same time is refused. The lock ends with its process."""
    is_new = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    try:
        with _locked(path):
            yield
    except BaseException:
        if is_new:
            with suppress(OSError):  # it is not empty: another process has saved to it
                path.rmdir()
        raise


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    if os.name != "posix":  # two saves at once are the caller's business
        yield
        return
    import fcntl

    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise StoreError(f"another process is saving to {path}: wait for it, or name another folder") from None
    finally:
        os.close(handle)


class _Meter:
    """Counts bytes towards a whole."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total, self._progress, self._done = max(total, 1), progress, 0

    def add(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress("save", min(1.0, self._done / self._total))


def _bytes(array: NDArray[Any] | Blocks) -> int:
    dtype = _portable(array.dtype)
    return len(_header(dtype, array.shape)) + int(np.prod(array.shape, dtype=np.int64)) * dtype.itemsize


def _portable(dtype: np.dtype[Any]) -> np.dtype[Any]:
    little = dtype.newbyteorder("<")
    if little.str not in _DTYPES:
        raise TypeError(f"an array of {dtype} cannot be saved: it may be {', '.join(_DTYPES)}")
    return little


def _header(dtype: np.dtype[Any], shape: Iterable[int]) -> bytes:
    """Return how an .npy file with such an array begins, always in the same bytes."""
    text = repr({"descr": dtype.str, "fortran_order": False, "shape": tuple(int(side) for side in shape)})
    length = -(-(len(text) + 11) // 64) * 64 - 10
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + text.ljust(length - 1).encode("ascii") + b"\n"


def _write_array(folder: Path, name: str, array: NDArray[Any] | Blocks, meter: _Meter) -> Record:
    dtype = _portable(array.dtype)
    digest = hashlib.sha256()
    with (folder / f"{name}.npy").open("xb") as file:
        for chunk in _chunks(array, dtype):
            digest.update(chunk)
            file.write(chunk)
            meter.add(len(chunk))
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
    return {"dtype": dtype.str, "shape": list(array.shape), "bytes": size, "sha256": digest.hexdigest()}


def _chunks(array: NDArray[Any] | Blocks, dtype: np.dtype[Any]) -> Iterator[bytes | memoryview]:
    yield _header(dtype, array.shape)
    for block in array if isinstance(array, Blocks) else [array]:
        plain = np.ascontiguousarray(block, dtype)  # a copy only of what is not in this shape already
        view = memoryview(plain.reshape(-1).view(np.uint8))
        for start in range(0, len(view), _CHUNK):
            yield view[start : start + _CHUNK]


def _write_file(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    """See the names in a folder safe on disk, where the system can."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _clear(path: Path, kept: str) -> None:
    """Remove the arrays of earlier saves, finished or not."""
    for entry in path.iterdir():
        if entry.name != kept and _OURS.fullmatch(entry.name):
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)


def _checksum(record: Mapping[str, Any]) -> str:
    """Return the sum of what a record says, however it is laid out."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


# --- read --------------------------------------------------------------------------------------------------------


def read(path: Path, *, verify: bool = False) -> tuple[Record, dict[str, NDArray[Any]]]:
    """Return the record of a folder and its arrays, which are read from disk only where they are looked at.

    The record's own checksum, and the header and size of every file, are always checked; the content of the arrays
    with `verify`.
    """
    while True:
        record = _read_record(path)
        try:
            return record, {name: _open_array(path, record, name, verify) for name in record["arrays"]}
        except FileNotFoundError as error:
            if _read_record(path) == record:  # otherwise a save has come between
                raise StoreError(f"{path} lacks {error.filename}: it was not copied whole; copy it again") from error
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error


def _read_record(path: Path) -> Record:
    place = path / RECORD
    try:
        content = place.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        what = f"{path} has no {RECORD}" if path.is_dir() else f"there is no model folder {path}"
        raise StoreError(f"{what}: `relae fit … --out {path}` or model.save makes one") from None
    except OSError as error:
        raise StoreError(f"{place} cannot be read: {error.strerror or error}") from error
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{place} is corrupt: it is not JSON ({error}); copy or save the model again") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise StoreError(f"{place} is not the record of a model: its format is not {FORMAT!r}")
    version = record.get("version")
    if isinstance(version, int) and version > VERSION:
        raise StoreError(
            f"{path} has the format {version} of a newer relae, and this one reads up to {VERSION}: upgrade relae"
        )
    claimed = record.pop("checksum", None)
    try:
        agrees = claimed == _checksum(record)
    except (ValueError, RecursionError):
        agrees = False
    if not agrees:
        raise StoreError(f"{place} is corrupt: its checksum does not agree; copy or save the model again")
    _check_record(place, record)
    return record


def _check_record(place: Path, record: Record) -> None:
    """Refuse a record that names anything but plain arrays inside the folder."""
    arrays = record.get("arrays")
    sound = record.get("version") == VERSION and _ARRAYS.fullmatch(str(record.get("folder"))) is not None
    if not (sound and isinstance(arrays, dict) and all(map(_is_array, arrays, arrays.values()))):
        raise StoreError(f"{place} is corrupt: it does not describe plain arrays; copy or save the model again")


def _is_array(name: str, entry: Any) -> bool:
    shape = entry.get("shape") if isinstance(entry, dict) else None
    if not isinstance(shape, list) or not 1 <= len(shape) <= 2 or entry.get("dtype") not in _DTYPES:
        return False
    return re.fullmatch(r"[a-z_]{1,40}", name) is not None and all(type(side) is int and side >= 0 for side in shape)


def _open_array(path: Path, record: Record, name: str, verify: bool) -> NDArray[Any]:
    entry = record["arrays"][name]
    place = path / record["folder"] / f"{name}.npy"
    dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
    header = _header(dtype, shape)
    count = 1
    for side in shape:
        count *= side
    expected = len(header) + count * dtype.itemsize
    with place.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size != expected:
            raise StoreError(
                f"{place} is corrupt: it has {size:,} bytes and should have {expected:,}; copy or save the model again"
            )
        if file.read(len(header)) != header:
            raise StoreError(
                f"{place} is corrupt: its header is not that of {entry['dtype']} of shape {shape}; "
                "copy or save the model again"
            )
        if verify:
            file.seek(0)
            if hashlib.file_digest(file, "sha256").hexdigest() != entry.get("sha256"):
                raise StoreError(f"{place} is corrupt: its checksum does not agree; copy or save the model again")
        if count == 0:
            return np.empty(shape, dtype)
        return np.asarray(np.memmap(file, dtype, "r", offset=len(header), shape=shape))
