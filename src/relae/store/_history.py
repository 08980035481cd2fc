"""The changes of a saved model, a line of JSON each: what changed, when, and how exact the result is.

    history.jsonl         one line per change; model.json says how many of them are its own, and what they add up to

A change appends its line before it replaces model.json, so that a kill leaves at most a line that does not count, which
the next writer removes. No line has an id: it has a digest of the ids with a salt, which is told to whoever makes the
change, and kept nowhere. With the salt and the ids the digest can be made again; without the salt nobody can try ids.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from relae._common.files import open_regular, write_bytes
from relae.errors import StoreError
from relae.store._format import HISTORY, Record


def digest_of(ids: Iterable[Any], salt: str) -> str:
    """Return the digest of some ids, in any order, with a salt."""
    text = "\n".join([salt, *sorted(str(each) for each in ids)])
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Change:
    """A change of a saved model, for its history.

    Attributes
    ----------
    what : "update", "forget", "drop" or "rollback"
    ids
        The users or items that changed; only a digest of them is kept.
    before, after : float
        The errors of the model (`residual_`) before and after it.
    salt : str
        Of the digest; drawn if not given.
    """

    what: str
    ids: tuple[Any, ...]
    before: float
    after: float
    salt: str = field(default_factory=lambda: secrets.token_hex(16))

    def line(self, arrays_before: str | None, arrays_after: str) -> Record:
        """Return what the history says of this change, with the digests of all arrays before and after."""
        return {
            "what": self.what,
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "rows": len(self.ids),
            "ids": digest_of(self.ids, self.salt),
            "residual": {"before": self.before, "after": self.after},
            "arrays": {"before": arrays_before, "after": arrays_after},
        }


def digest_of_arrays(record: Mapping[str, Any]) -> str:
    """Return one digest of all arrays of a record."""
    sums = {name: entry.get("sha256") for name, entry in record["arrays"].items()}
    return hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()


def read_history(path: Path, record: Mapping[str, Any]) -> list[Record]:
    """Return the changes that a record counts as its own.

    Raises
    ------
    StoreError
        If the file is not there, or is not what the record says.
    """
    content = _own_part(path, record)
    try:
        return [json.loads(line) for line in content.splitlines()]
    except ValueError as error:
        raise StoreError(f"{path / HISTORY} is corrupt: {error}") from error


def _own_part(path: Path, record: Mapping[str, Any]) -> bytes:
    """Return the bytes of the lines that a record counts as its own, after a check of their checksum."""
    known = record.get("history")
    if known is None:
        return b""
    try:
        with open_regular(path / HISTORY) as file:
            lines = file.read().splitlines(keepends=True)
        content = b"".join(lines[: known["lines"]])
        agrees = hashlib.sha256(content).hexdigest() == known["sha256"]
    except (OSError, TypeError, KeyError):
        agrees = False
    if not agrees:
        raise StoreError(f"{path / HISTORY} is not the history of this model: it was changed, or not copied with it")
    return content


def append_line(path: Path, record: Mapping[str, Any] | None, line: Record) -> Record:
    """Write the history of a record with one more line, and return what the next record says of it."""
    content = b"" if record is None else _own_part(path, record)
    content += json.dumps(line).encode() + b"\n"
    write_bytes(path / HISTORY, content, error=None)
    return {"lines": content.count(b"\n"), "sha256": hashlib.sha256(content).hexdigest()}


def remove_other_lines(path: Path, record: Mapping[str, Any]) -> None:
    """Remove lines that a record does not count as its own, such as that of a change that was killed."""
    file = path / HISTORY
    if record.get("history") is None:
        file.unlink(missing_ok=True)
        return
    try:
        content = _own_part(path, record)
        if file.stat().st_size != len(content):
            write_bytes(file, content, error=None)
    except (StoreError, OSError):  # what was changed by others is left, and said where the history is shown
        return
