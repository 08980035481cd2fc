"""A folder of plain arrays and one JSON file, which is there whole or not at all.

    model.json            what is in the folder, with the shape, size and checksum of every array, and its own checksum
    arrays-3f2a9c01/      the arrays as .npy files, and an empty file that says that relae made the folder

A save writes a new folder of arrays beside the old one, sees it safe on disk, and then replaces model.json: that one
rename is the save. Whoever has the old arrays open keeps them, and a reader never sees a mixture.
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

from relae._common.files import is_temporary, lock_folder, open_regular, remove_folder, sync_folder, write_text
from relae._common.interrupts import uninterrupted
from relae._common.progress import Progress
from relae._common.words import in_bytes
from relae.errors import StoreError
from relae.linalg import Blocks
from relae.store._format import ARRAYS, DTYPES, FORMAT, RECORD, VERSION, Record, checksum, header

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
        _remove_arrays(folder)
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
    ) -> None:
        """Save a record and its arrays; whatever happens on the way, an earlier model in the folder is kept."""
        path, needed = self.path, sum(_bytes(array) for array in arrays.values())
        self.check_room(needed)
        before = _current_arrays(path)
        folder = path / f"arrays-{secrets.token_hex(4)}"
        try:
            folder.mkdir()
            (folder / _MARK).touch()
            meter = _Meter(needed, progress)
            entries = {name: _write_array(folder, name, array, meter) for name, array in arrays.items()}
            sync_folder(folder)
            sync_folder(path)
            whole = {"format": FORMAT, "version": VERSION, **record, "folder": folder.name, "arrays": entries}
            text = json.dumps(whole | {"checksum": checksum(whole)}, indent=1)
            write_text(path / RECORD, text, error=None)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise StoreError(
                    f"{path} cannot be written: the disk is full, and the model needs {in_bytes(needed)}; "
                    "what was there is kept"
                ) from error
            raise StoreError(f"{path} cannot be written: {error.strerror or error}; what was there is kept") from error
        finally:
            with uninterrupted():
                _remove_arrays(path, before)  # if it failed, the new ones
        sync_folder(path.resolve().parent)


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


def _remove_arrays(path: Path, before: str | None = None) -> None:
    """Remove the arrays of all saves, finished or not, but those of the record; `before` names some without a mark."""
    kept = _current_arrays(path)
    if kept is None and os.path.lexists(path / RECORD):  # it cannot be read just now: what it names is not known
        return
    for entry in path.iterdir():
        if entry.name != kept and (entry.name == before or _is_arrays(entry)):
            remove_folder(entry)


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
