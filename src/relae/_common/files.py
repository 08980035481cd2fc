"""Write files whole or not at all, hold a file or folder for one process alone, and open files that are files.

A file is written as `.relae-3f2a9c01.part` beside its target, which it replaces at the end. Its writer holds a lock on
it meanwhile, and the system releases that lock when the process ends, however it ends. So a temporary file whose lock
is free belongs to nobody, and the next writer in the folder removes it; lock files are treated alike.
"""

import os
import platform
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path

from relae._common.interrupts import uninterrupted
from relae.errors import DataError, RelaeError

AnyPath = str | os.PathLike[str]

_LOCK = "relae-lock"
_TEMPORARY = re.compile(r"\.relae-[0-9a-f]{8}\.part|\.(.+\.)?relae-lock", re.DOTALL)
_ATTEMPTS, _PAUSE = 20, 0.01  # at a lock that another process may hold for an instant; seconds


# --- writing -----------------------------------------------------------------------------------------------------


@contextmanager
def atomic_file(path: AnyPath, error: type[RelaeError] | None = DataError) -> Iterator[Path]:
    """Give an empty file beside `path` to write to, which replaces `path` at the end, or is removed if anything fails.

    The new file has the permissions of the old one. Of two processes that write the same file at the same time, the one
    that ends last has its file there, whole.

    Raises
    ------
    error
        If the file cannot be written; what was there is kept. None lets the OSError pass as it is.
    """
    with _explained(path, error):
        target = Path(os.path.realpath(path))
        mode = _mode(target)
        with made_folder(target.parent), _temporary(target.parent) as (part, handle):
            yield part
            if handle is None:
                with part.open("rb+") as file:
                    os.fsync(file.fileno())
            else:
                if mode is not None:
                    os.fchmod(handle, mode)
                os.fsync(handle)
            os.replace(part, target)
            sync_folder(target.parent)


def write_bytes(path: AnyPath, content: bytes, error: type[RelaeError] | None = DataError) -> None:
    """Write a file whole or not at all; see `atomic_file`."""
    with atomic_file(path, error) as part:
        part.write_bytes(content)


def write_text(path: AnyPath, text: str, error: type[RelaeError] | None = DataError) -> None:
    """Write a text in UTF-8 whole or not at all; see `atomic_file`."""
    write_bytes(path, text.encode(), error)


@contextmanager
def scratch_folder(parent: AnyPath | None = None) -> Iterator[Path]:
    """Give an empty folder that is removed at the end, in `parent` or else the system's folder for temporary files.

    Raises
    ------
    OSError
        If it cannot be made.
    """
    with _temporary(Path(tempfile.gettempdir() if parent is None else parent), is_folder=True) as (folder, _):
        yield folder


@contextmanager
def made_folder(folder: Path) -> Iterator[Path]:
    """Make a folder with its parents; those of them that were made and are empty at the end are removed."""
    folder = folder.absolute()
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
    finally:
        with uninterrupted(), suppress(OSError):  # not empty, or not there any more
            for path in missing:
                path.rmdir()


def remove_folder(path: Path) -> None:
    """Remove a folder with all that it holds, as far as possible; what a kill leaves of it, the next writer removes."""
    part = path.with_name(_temporary_name())
    with suppress(OSError):
        path.rename(part)
        _remove(part)


def sync_folder(path: AnyPath) -> None:
    """Wait until the names in a folder are safe on disk, where the system can tell."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            with suppress(OSError):  # some network disks do not know it of folders
                os.fsync(handle)
        finally:
            os.close(handle)


def _temporary_name() -> str:
    return f".relae-{secrets.token_hex(4)}.part"


def _mode(target: Path) -> int | None:
    """Return the permissions of the file that will be replaced, None if there is none."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(None, "it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(None, "it is a device or a pipe, and no file that can be replaced")
    return stat.S_IMODE(status.st_mode)


@contextmanager
def _explained(path: AnyPath, error: type[RelaeError] | None) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        if error is None:
            raise
        reason = problem.strerror or problem
        raise error(f"{os.fspath(path)} cannot be written: {reason}; what was there is kept") from problem


@contextmanager
def _temporary(parent: Path, *, is_folder: bool = False) -> Iterator[tuple[Path, int | None]]:
    """Give a new empty file or folder with a handle that holds its lock; it is gone at the end unless it was moved."""
    remove_orphans(parent)
    part, handle = parent, None
    try:
        with uninterrupted():
            part, handle = _create(parent, is_folder)
        yield part, handle
    finally:
        with uninterrupted():
            if part is not parent:
                _remove(part)  # before its lock is released
            _release(handle)


def _create(parent: Path, is_folder: bool) -> tuple[Path, int | None]:
    for _ in range(_ATTEMPTS):
        part = parent / _temporary_name()
        if is_folder:
            part.mkdir(mode=0o700)
        else:
            parent.mkdir(parents=True, exist_ok=True)  # another process may have removed it, as it was empty
        with suppress(FileNotFoundError):  # until it is locked, it looks like one that belongs to nobody
            if not is_folder:
                part.touch(exist_ok=False)
            if os.name != "posix":
                return part, None
            handle = os.open(part, os.O_RDONLY if is_folder else os.O_RDWR)
            if _take(handle) is not False and _is_at(handle, part):
                return part, handle
            _release(handle)
    raise OSError(None, "other processes remove its temporary files")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


# --- locks -------------------------------------------------------------------------------------------------------


@contextmanager
def lock_folder(path: AnyPath, error: type[RelaeError] = DataError) -> Iterator[None]:
    """Hold a folder for this process alone. It is made if it is not there, and removed again if it is left empty.

    The lock ends with the process, however it ends. Where the system or the disk knows no locks, nothing is held.

    Raises
    ------
    error
        If another process holds the folder, or it cannot be written to.
    """
    folder = Path(os.path.realpath(path))
    existing = next(existing for existing in (folder, *folder.parents) if os.path.lexists(existing))
    if not existing.is_dir():
        raise error(f"{os.fspath(path)} cannot be made: {existing} is a file, and no folder; name another place")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise error(f"{os.fspath(path)} cannot be made: {existing} may not be written to; name another place")
    with _locked(folder / f".{_LOCK}", path, "folder", error):
        yield


@contextmanager
def lock_file(path: AnyPath, error: type[RelaeError] = DataError) -> Iterator[None]:
    """Hold a file, whether it is there or not, for this process alone; see `lock_folder`."""
    with _explained(path, error):
        target = Path(os.path.realpath(path))
        _mode(target)
    with _locked(target.with_name(f".{target.name}.{_LOCK}"), path, "file", error):
        yield


def is_temporary(path: Path) -> bool:
    """Return whether a name is that of a temporary file, a temporary folder or a lock of relae."""
    return _TEMPORARY.fullmatch(path.name) is not None


def remove_orphans(folder: AnyPath) -> None:
    """Remove the temporary files, temporary folders and locks in a folder whose processes have ended."""
    if os.name != "posix":
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in list(entries):
            if is_temporary(Path(entry)):
                with suppress(OSError):  # another process was quicker, or it is another user's
                    _remove_orphan(Path(entry.path), entry.is_dir(follow_symlinks=False))


def _remove_orphan(path: Path, is_folder: bool) -> None:
    handle = os.open(path, (os.O_RDONLY if is_folder else os.O_RDWR) | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if _take(handle) and _is_at(handle, path):
            _remove(path)
    finally:
        _release(handle)


@contextmanager
def _locked(path: Path, wanted: AnyPath, what: str, error: type[RelaeError]) -> Iterator[None]:
    if os.name != "posix":
        yield
        return
    handle = None
    with ExitStack() as stack:
        with _explained(wanted, error):
            stack.enter_context(made_folder(path.parent))
            remove_orphans(path.parent)
        try:
            with _explained(wanted, error), uninterrupted():
                handle = _acquire(path)
            if handle is None:
                raise error(
                    f"another process is saving to {os.fspath(wanted)}{_holder(path)}: wait for it, or name another "
                    f"{what}"
                )
            yield
        finally:
            with uninterrupted():
                if handle is not None:
                    _remove(path)  # before it is released: whoever waits for it then sees that it is gone
                    _release(handle)


def _acquire(path: Path) -> int | None:
    """Return a handle that holds a lock file, None if another process does."""
    for _ in range(_ATTEMPTS):
        with suppress(FileNotFoundError):  # another process removed the folder, which was empty
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o666)
            if _take(handle) is not False and _is_at(handle, path):
                with suppress(OSError):  # on a full disk the lock has no words, and holds
                    os.ftruncate(handle, 0)
                    os.write(handle, f"{os.getpid()} on {platform.node()}\n".encode())
                return handle
            _release(handle)
        time.sleep(_PAUSE)
    return None


def _holder(path: Path) -> str:
    """Return which process holds a lock file, in words; nothing if it does not say."""
    try:
        number, _, node = path.read_text(encoding="utf-8", errors="replace").strip().partition(" on ")
    except OSError:
        return ""
    return f" (process {number} on {node})" if number.isdigit() else ""


def _take(handle: int) -> bool | None:
    """Take the lock of an open file; False if another process has it, None where there are no locks."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _release(handle: int | None) -> None:
    """Close a file; its lock ends also for processes that were forked meanwhile."""
    if handle is None:
        return
    import fcntl

    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    """Return whether an open file is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


# --- reading -----------------------------------------------------------------------------------------------------


def open_regular(path: AnyPath) -> BufferedReader:
    """Open a file for reading; an OSError, and never a wait, if it is a pipe, a device or anything else but a file."""
    if stat.S_ISREG(os.stat(path).st_mode):
        file = open(path, "rb", opener=_open_at_once)  # noqa: SIM115
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # it may be another one by now
            return file
        file.close()
    raise OSError(None, "it is not a regular file", os.fspath(path))


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
