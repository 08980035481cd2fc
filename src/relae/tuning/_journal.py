"""Trials on disk, a line each: a kill at any moment loses at most the trial under way."""

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from relae._common.files import lock_file
from relae.errors import DataError
from relae.tuning._trial import Trial


class Journal:
    """A file whose first line says what is searched, and every other one is a finished trial.

    A line counts when its newline is there; a line that was cut off is removed before the next one is written. The
    file is locked until it is closed: a second journal of the same file is an error meanwhile.

    Parameters
    ----------
    path
        The file; made if it is not there.
    purpose
        What is searched: data, split, metrics. A journal of another purpose is an error.
    """

    def __init__(self, path: str | os.PathLike[str], purpose: Mapping[str, Any]) -> None:
        self.path, self.purpose = Path(path), json.loads(json.dumps(purpose))
        self.trials: list[Trial] = []
        with ExitStack() as stack:
            stack.enter_context(lock_file(self.path))
            is_new = not self.path.exists()
            try:
                self._file = stack.enter_context(open(self.path, "a+b", buffering=0))
                self._file.seek(0)
                content = self._file.readall()
                self._size = content.rfind(b"\n") + 1  # bytes of complete lines
                self._read(content[: self._size])
                self._file.truncate(self._size)
                if self._size == 0:
                    self._write(json.dumps(self.purpose))
            except OSError as error:
                if is_new:
                    self.path.unlink(missing_ok=True)
                raise DataError(f"the journal {self.path} cannot be written: {error.strerror}") from error
            self._open = stack.pop_all()

    def _read(self, content: bytes) -> None:
        try:
            purpose, self.trials = read_journal(content.decode("utf-8")) if content else (self.purpose, [])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{self.path} is no journal of a search ({error}): name another folder") from error
        if purpose != self.purpose:
            different = sorted(key for key in {*purpose, *self.purpose} if purpose.get(key) != self.purpose.get(key))
            raise DataError(
                f"{self.path} is the journal of another search, which differs in {', '.join(different)}: "
                "name another folder, or remove it"
            )

    def of(self, names: Collection[str]) -> list[Trial]:
        """Return the trials, each of which has to be a fit with parameters of these names."""
        if any(set(trial.parameters) != set(names) for trial in self.trials):
            raise DataError(f"{self.path} is the journal of a search over another kind of model: name another folder")
        return list(self.trials)

    def checkpoint(self, setting: Mapping[str, Any]) -> Path:
        """Return the file for a training with these parameters; it goes when a trial is written."""
        digest = hashlib.md5(json.dumps(setting).encode(), usedforsecurity=False).hexdigest()
        return self.path.with_name(f"{self.path.stem}-{digest[:8]}.checkpoint")

    def append(self, trial: Trial) -> None:
        """Write a trial and see it safe on disk."""
        try:
            self._write(trial.to_json())
        except OSError as error:
            raise DataError(
                f"the journal {self.path} cannot be written: {error.strerror}; its {len(self.trials)} trials are kept"
            ) from error
        self.trials.append(trial)
        for left in self.path.parent.glob(f"{self.path.stem}-*.checkpoint"):
            left.unlink(missing_ok=True)

    def _write(self, line: str) -> None:
        """Append a line, all of it or nothing."""
        content = memoryview(line.encode() + b"\n")
        try:
            written = 0
            while written < len(content):
                written += self._file.write(content[written:]) or 0
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(self._size)
            raise
        self._size += written

    def close(self) -> None:
        """Close the file."""
        self._open.close()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_journal(text: str) -> tuple[Any, list[Trial]]:
    """Return the purpose and the trials of a journal; a last line that was cut off does not count."""
    lines = text[: text.rfind("\n") + 1].splitlines()
    return json.loads(lines[0]), [Trial.from_json(line) for line in lines[1:]]
