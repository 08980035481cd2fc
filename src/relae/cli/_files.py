"""Files that are there whole or not at all."""

import os
from pathlib import Path

from relae.errors import DataError


def write_text(path: Path, text: str) -> None:
    """Write a file atomically; if that fails, what was there is kept."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically; if that fails, what was there is kept."""
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise DataError(f"{path} cannot be written: {error.strerror}; what was there is kept") from error
