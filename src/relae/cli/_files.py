"""Files that are there whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from relae.errors import DataError


def write_text(path: Path, text: str) -> None:
    """Write a file atomically; if that fails, what was there is kept."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically; if that fails, what was there is kept."""
    with whole_file(path) as part:
        part.write_bytes(content)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give an empty file beside `path` to write to; it takes its place at the end, and whatever fails, it goes."""
    with _part_of(path) as part:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(path)


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written, before there is anything to write."""
    with _part_of(path):
        pass


@contextmanager
def _part_of(path: Path) -> Iterator[Path]:
    """Give an empty file beside `path`, which is gone at the end unless it was moved."""
    part = path.with_name(f".{path.name}.part")
    try:
        if path.is_dir():
            raise IsADirectoryError(None, "it is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        part.touch()
        yield part
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}; what was there is kept") from error
    finally:
        with suppress(OSError):  # where nothing can be made, nothing is left
            part.unlink(missing_ok=True)
