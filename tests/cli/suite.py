"""The command line in a process of its own, or in this one where a second each would be too long."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from relae.cli import main; main()"]


def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    given = {"capture_output": True, "text": True, "timeout": 300, "check": False} | options
    return subprocess.run([*COMMAND, *map(str, arguments)], **given)


def shown(*arguments: object, **options: object) -> str:
    """Return what a command shows; it has to succeed, and to say nothing of errors."""
    done = run(*arguments, **options)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    def line(self) -> str:
        """The one line that says what is wrong, and nothing else on either stream."""
        assert (self.code, self.out) == (2, ""), self
        assert self.err.startswith("relae: "), self
        assert self.err.endswith("\n"), self
        assert self.err.count("\n") == 1, self
        return self.err.removeprefix("relae: ").rstrip("\n")


class Shell:
    """Calls the command line in this process."""

    def __init__(self, capture: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self._capture, self._patch = capture, patch

    def __call__(self, *arguments: object) -> Done:
        import warnings

        from relae.cli import main

        self._patch.setattr(sys, "argv", ["relae", *map(str, arguments)])
        self._patch.setattr(warnings, "showwarning", warnings.showwarning)
        self._capture.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = self._capture.readouterr()
        assert "Traceback" not in said.err
        return Done(ended.value.code, said.out, said.err)

    def ok(self, *arguments: object) -> str:
        """Return what a command shows; it has to succeed."""
        done = self(*arguments)
        assert done.code == 0, done
        return done.out


def files(folder: Path) -> list[str]:
    """Everything in a folder, hidden or not."""
    return sorted(os.listdir(folder))
