"""Sources of raw files: a folder, a zip or a tar; and their lines in blocks."""

from __future__ import annotations

import gzip
import os
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Protocol, cast

from relae.errors import DataError

# Large enough for polars to be fast, small enough that a hundred million lines need little memory.
BLOCK = 1 << 26


def data_folders(name: str) -> list[Path]:
    """Return the folders that may hold a data set: in `RELAE_DATA` where it is set, and in the user's cache."""
    root = os.environ.get("RELAE_DATA")
    folders = [] if not root else [Path(root).expanduser() / name]
    return [*folders, _user_cache() / "relae" / name]


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


class FileSource(Protocol):
    """A container of named files."""

    def open(self, name: str) -> IO[bytes]:
        """Return a file, decompressed."""
        ...

    def has(self, name: str) -> bool:
        """Return whether a file is there."""
        ...

    def label(self, name: str) -> str:
        """Return what to call a file in messages."""
        ...


@dataclass(frozen=True)
class Folder:
    """A folder; files that end in .gz are decompressed."""

    path: Path

    def open(self, name: str) -> IO[bytes]:
        """Return a file, decompressed."""
        file = self.path / name
        try:
            return cast(IO[bytes], gzip.open(file)) if file.suffix == ".gz" else file.open("rb")
        except OSError as error:
            raise DataError(f"{file} cannot be read: {error.strerror or error}") from error

    def has(self, name: str) -> bool:
        """Return whether a file is there."""
        return (self.path / name).is_file()

    def label(self, name: str) -> str:
        """Return what to call a file in messages."""
        return str(self.path / name)


@dataclass(frozen=True)
class Zip:
    """A zip archive, whose files are found by their last name."""

    path: Path

    def open(self, name: str) -> IO[bytes]:
        """Return a file, decompressed."""
        try:
            archive = zipfile.ZipFile(self.path)
            with archive:  # which stays open until the file in it is closed
                member = self._member(archive, name)
                if member is None:
                    listed = ", ".join(archive.namelist()[:8]) or "nothing"
                    raise DataError(f"{self.path} has no file {name}, it has {listed}. Delete it and get it again")
                return archive.open(member)
        except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError) as error:
            raise DataError(f"{self.path} cannot be read as a zip ({error}). Delete it and get it again") from error

    def has(self, name: str) -> bool:
        """Return whether a file is there."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                return self._member(archive, name) is not None
        except (zipfile.BadZipFile, OSError):
            return False

    def label(self, name: str) -> str:
        """Return what to call a file in messages."""
        return f"{name} in {self.path}"

    @staticmethod
    def _member(archive: zipfile.ZipFile, name: str) -> str | None:
        entries = [entry for entry in archive.namelist() if PurePosixPath(entry).name == name]
        return min(entries, key=len, default=None)


@dataclass(frozen=True)
class Piece:
    """Some whole lines of a file, and the number of the first of them; each ends with a newline."""

    source: str
    first_line: int
    text: bytes


def pieces(stream: IO[bytes], source: str) -> Iterator[Piece]:
    """Yield a file in blocks of whole lines; blank lines at its end are left out."""
    number, rest = 1, b""
    with stream, readable(source):
        while chunk := stream.read(BLOCK):
            lines, newline, tail = (rest + chunk).rpartition(b"\n")
            # Trailing newlines may be those of the end of the file, so they wait for what comes.
            kept = lines.rstrip(b"\r\n")
            rest = lines[len(kept) :] + newline + tail
            if kept:
                text = kept + b"\n"
                rest = rest[1:] if rest[:1] == b"\n" else rest[2:]
                yield Piece(source, number, text.replace(b"\r\n", b"\n"))
                number += text.count(b"\n")
        rest = rest.rstrip(b"\r\n")
        if rest:
            yield Piece(source, number, (rest + b"\n").replace(b"\r\n", b"\n"))


def tar_files(stream: IO[bytes], source: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a tar, also of the tars in it, as (name, content), reading it once from end to end."""
    with readable(source), tarfile.open(fileobj=stream, mode="r|*") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is None:
                continue
            if member.name.endswith(".tar"):
                yield from tar_files(content, f"{PurePosixPath(member.name).name} in {source}")
            else:
                yield PurePosixPath(member.name).name, content.read()


@contextmanager
def readable(source: str) -> Iterator[None]:
    """Turn what goes wrong inside an archive into an error that names it."""
    try:
        yield
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise DataError(f"{source} is damaged ({error}). Delete it and get it again") from error
