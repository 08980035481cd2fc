"""A folder of plain arrays and one JSON file, which is there whole or not at all.

    model.json            what is in the folder, with the shape, size and checksum of every array, and its own checksum
    arrays-3f2a9c01/      the arrays as .npy files, and an empty file that says that relae made the folder

A save writes a new folder of arrays beside the old one, sees it safe on disk, and then replaces model.json: that one
rename is the save. Whoever has the old arrays open keeps them, and a reader never sees a mixture.

A change of a model can keep earlier versions of it:

    earlier-7d11c05e.json the model.json of an earlier version, which names its own arrays
    history.jsonl         the changes

model.json lists the versions that are kept: any other is removed by the next writer. To go back is one rename, too.
"""

import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae._common.files import (
    is_temporary,
    lock_folder,
    open_regular,
    remove_folder,
    sync_folder,
    write_bytes,
    write_text,
)
from relae._common.interrupts import uninterrupted
from relae._common.progress import Progress
from relae._common.words import in_bytes
from relae.errors import StoreError
from relae.linalg import Blocks
from relae.store._format import ARRAYS, DTYPES, EARLIER, FORMAT, RECORD, VERSION, Record, checksum, header
from relae.store._history import Change, append_line, digest_of_arrays, remove_other_lines

_MARK = ".relae-arrays"  # an empty file, by which arrays are told from a folder of somebody else
_CHUNK = 1 << 24


# --- write -------------------------------------------------------------------------------------------------------


@contextmanager
def reserve(path: str | os.PathLike[str]) -> Iterator["ReservedFolder"]:
    """Hold a folder for a save: only a new or empty one, or that of a relae model, is taken.

    What saves that were killed have left in it is removed, so that its room on the disk is free again.

    Raises
    ------
    StoreError
        If the folder holds something else, another process is saving to it, or it cannot be written to.
    """
    folder = Path(path)
    _check_content(folder)
    with lock_folder(folder, StoreError):
        _remove_others(folder)
        yield ReservedFolder(folder)


@dataclass(frozen=True)
class ReservedFolder:
    """A folder that `reserve` holds for a save."""

    path: Path

    def check_room(self, needed: int) -> None:
        """Raise a StoreError if the disk has no room for a model of so many bytes."""
        free = shutil.disk_usage(self.path).free
        if needed > free:
            raise StoreError(
                f"the model needs {in_bytes(needed)} on disk and {in_bytes(free)} are free at {self.path}: "
                "make room, or name another place; nothing was written"
            )

    def write(
        self,
        record: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any] | Blocks],
        progress: Progress | None = None,
        change: Change | None = None,
        keep: int = 0,
    ) -> None:
        """Save a record and its arrays; whatever happens on the way, an earlier model in the folder is kept.

        Parameters
        ----------
        change
            The change that has made this model of the one in the folder, for its history; without it, a new history
            begins and no earlier version is kept.
        keep
            How many earlier versions stay, that of now included.
        """
        path, needed = self.path, sum(_bytes(array) for array in arrays.values())
        self.check_room(needed)
        before, old = _current_arrays(path), None if change is None else _record_of_ours(path)
        folder = path / f"arrays-{secrets.token_hex(4)}"
        try:
            folder.mkdir()
            (folder / _MARK).touch()
            meter = _Meter(needed, progress)
            entries = {name: _write_array(folder, name, array, meter) for name, array in arrays.items()}
            sync_folder(folder)
            sync_folder(path)
            whole = {"format": FORMAT, "version": VERSION, **record, "folder": folder.name, "arrays": entries}
            if change is not None:
                whole["earlier"] = self._keep(old, keep)
                line = change.line(None if old is None else digest_of_arrays(old), digest_of_arrays(whole))
                whole["history"] = append_line(path, old, line)
            write_text(path / RECORD, _with_checksum(whole), error=None)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise StoreError(
                    f"{path} cannot be written: the disk is full, and the model needs {in_bytes(needed)}; "
                    "what was there is kept"
                ) from error
            raise StoreError(f"{path} cannot be written: {error.strerror or error}; what was there is kept") from error
        finally:
            with uninterrupted():
                _remove_others(path, before)  # if it failed, the new ones
        sync_folder(path.resolve().parent)

    def _keep(self, old: Record | None, keep: int) -> list[str]:
        """Keep the record of the version of now, and return the arrays of all versions that stay, the last one first.

        It has its own name until model.json is replaced, and a version of the same arrays as that is none.
        """
        if old is None or keep == 0:
            return []
        write_bytes(self.path / _earlier(old["folder"]), (self.path / RECORD).read_bytes(), error=None)
        return [old["folder"], *old.get("earlier", [])][:keep]

    def roll_back(self) -> Record:
        """Go back to the version before this one, which is removed, and return its record.

        Raises
        ------
        StoreError
            If there is none, or it is not whole.
        """
        path, record = self.path, _record_of_ours(self.path)
        if record is None:
            raise StoreError(f"{path} has no {RECORD} of a model")
        versions = _versions(record)
        if not versions:
            raise StoreError(
                f"{path} keeps no earlier version: `relae update` and `relae drop` keep one unless told otherwise, and "
                "`relae forget` removes them all"
            )
        before = _read_version(path, versions[0])
        now, then = (float(each["fitted"].get("residual", 0.0)) for each in (record, before))
        line = Change("rollback", (), now, then).line(digest_of_arrays(record), digest_of_arrays(before))
        whole = {**before, "earlier": versions[1:], "history": append_line(path, record, line)}
        write_text(path / RECORD, _with_checksum(whole), error=StoreError)
        with uninterrupted():
            _remove_others(path)
        return whole


def _check_content(path: Path) -> None:
    """Raise if a folder holds anything but a relae model or the remains of a killed save."""
    if not path.is_dir():
        return
    if (path / RECORD).exists():
        if _record_of_ours(path) is None and not _is_damaged_model(path):
            raise StoreError(
                f"{path} is not the folder of a relae model: its {RECORD} is another program's, or damaged; name a "
                "new folder, or remove that file"
            )
        return
    strange = sorted(entry.name for entry in path.iterdir() if not (is_temporary(entry) or _is_arrays(entry)))
    if strange:
        raise StoreError(f"{path} is no model folder, it holds {', '.join(strange[:3])}: name a new folder")


def _record_of_ours(path: Path) -> Record | None:
    """Return what the record of a folder says, None if it is not of a relae model."""
    try:
        with open_regular(path / RECORD) as file:
            record = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.get("format") == FORMAT else None


def _is_damaged_model(path: Path) -> bool:
    """Return whether the record of a folder can no longer be read, but arrays beside it say that they are ours."""
    try:
        with open_regular(path / RECORD) as file:
            json.load(file)
    except (ValueError, RecursionError):
        return any((entry / _MARK).exists() for entry in path.iterdir() if ARRAYS.fullmatch(entry.name))
    except OSError:
        pass
    return False


def _current_arrays(path: Path) -> str | None:
    """Return the name of the arrays that the record of a folder names."""
    record = _record_of_ours(path)
    name = "" if record is None else str(record.get("folder"))
    return name if ARRAYS.fullmatch(name) else None


def _is_arrays(path: Path) -> bool:
    """Return whether a folder was made by a save: it has the mark of one, or was left before the mark was written."""
    if not ARRAYS.fullmatch(path.name) or not path.is_dir() or path.is_symlink():
        return False
    return (path / _MARK).exists() or not any(path.iterdir())


def _remove_others(path: Path, before: str | None = None) -> None:
    """Remove all that saves have left, finished or not, and that the record does not name.

    These are arrays, records of earlier versions and lines of the history; `before` names arrays without a mark.
    """
    current, record = _current_arrays(path), _record_of_ours(path)
    if current is None and os.path.lexists(path / RECORD):  # it cannot be read just now: what it names is not known
        return
    versions = [] if record is None else _versions(record)
    kept = {current, *versions}
    for entry in path.iterdir():
        if entry.name not in kept and (entry.name == before or _is_arrays(entry)):
            remove_folder(entry)
        elif EARLIER.fullmatch(entry.name) and entry.name not in {_earlier(version) for version in versions}:
            entry.unlink(missing_ok=True)
    if record is not None:
        remove_other_lines(path, record)


def _versions(record: Record) -> list[str]:
    """Return the arrays of the earlier versions that a record names, the last one first."""
    names = record.get("earlier", [])
    return [str(name) for name in names if ARRAYS.fullmatch(str(name))] if isinstance(names, list) else []


def _earlier(arrays: str) -> str:
    """Return the name of the record of an earlier version with these arrays."""
    return f"earlier-{arrays.removeprefix('arrays-')}.json"


def _with_checksum(record: Record) -> str:
    whole = {name: value for name, value in record.items() if name != "checksum"}
    return json.dumps(whole | {"checksum": checksum(whole)}, indent=1)


def _read_version(path: Path, arrays: str) -> Record:
    """Return the record of an earlier version; a StoreError unless it and its arrays are there."""
    file_path = path / _earlier(arrays)
    try:
        with open_regular(file_path) as file:
            record = json.load(file)
        claimed = record.pop("checksum")
        whole = claimed == checksum(record) and record["folder"] == arrays
        sizes = all(
            (path / arrays / f"{name}.npy").stat().st_size == entry["bytes"] for name, entry in record["arrays"].items()
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise StoreError(f"{file_path} cannot be gone back to: {error}; the model stays as it is") from error
    if not (whole and sizes):
        raise StoreError(f"{file_path} cannot be gone back to: it is not whole; the model stays as it is")
    return dict(record)


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
    return len(header(dtype, array.shape)) + int(np.prod(array.shape, dtype=np.int64)) * dtype.itemsize


def _portable(dtype: np.dtype[Any]) -> np.dtype[Any]:
    little = dtype.newbyteorder("<")
    if little.str not in DTYPES:
        raise TypeError(f"an array of {dtype} cannot be saved: it may be {', '.join(DTYPES)}")
    return little


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
    yield header(dtype, array.shape)
    for block in array if isinstance(array, Blocks) else [array]:
        plain = np.ascontiguousarray(block, dtype)  # a copy only of what is not in this shape already
        view = memoryview(plain.reshape(-1).view(np.uint8))
        for start in range(0, len(view), _CHUNK):
            yield view[start : start + _CHUNK]
