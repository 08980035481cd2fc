"""Starts commands in a hundredth of a second, and kills them at any moment: `python -m tests.faults.server`.

It has imported everything and compiled the kernels, and forks a child per command; the child is a process like any
other. Requests and answers are lines of JSON on its standard input and output; `Faults` speaks with it.
"""

import importlib
import json
import mmap
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_STEPS = frozenset(
    [
        *("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "os.listdir"),
        *("os.scandir", "shutil.rmtree", "fcntl.flock"),
    ]
)
_ROOT = Path(__file__).parents[2]
_ONE_CORE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "2"}


@dataclass(frozen=True)
class Run:
    """How a process ended."""

    code: int  # minus the signal, if one ended it
    out: str
    err: str
    steps: int  # what it did to files under the folder that was watched
    seconds: float

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL

    def check(self) -> "Run":
        """Return the run, which has to have succeeded."""
        assert self.code == 0, self
        return self


class Faults:
    """Runs commands, and has them killed after some seconds or before the n-th thing that they do to a file."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.faults.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
            env={**os.environ, **_ONE_CORE},
        )
        assert self._answer() == "ready"

    def run(
        self,
        *commands: Sequence[object],
        watch: Path,
        after: float | None = None,
        step: int | None = None,
        sig: int = signal.SIGKILL,
        apart: float = 0.0,
        env: dict[str, str] | None = None,
    ) -> list[Run]:
        """Run commands side by side, started `apart` seconds apart; each is killed after seconds, or before a step."""
        request = {
            "commands": [[str(part) for part in command] for command in commands],
            "watch": str(watch),
            "after": after,
            "step": step,
            "sig": int(sig),
            "apart": apart,
            "env": env or {},
        }
        return [Run(**run) for run in self._ask(request)]

    def one(self, command: Sequence[object], **how: Any) -> Run:
        """Run a single command."""
        [run] = self.run(command, **how)
        return run

    def load(self, *modules: str) -> None:
        """Import modules before any command does, which would take seconds each time."""
        self._ask({"import": modules})

    def close(self) -> None:
        """End the server."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _ask(self, request: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the server of processes has ended"
        return json.loads(line)


# --- the server --------------------------------------------------------------------------------------------------


def serve() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    _import()
    if os.fork():  # a forked process compiles kernels for one core, and has no threads that its children would lack
        sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
    _compile()
    answers.write('"ready"\n')
    answers.flush()
    for line in sys.stdin:
        request = json.loads(line)
        if "import" in request:
            answer: Any = [importlib.import_module(name).__name__ for name in request["import"]]
        else:
            answer = _run_all(request)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _import() -> None:
    import relae.cli

    for path in Path(relae.cli.__file__).parent.rglob("*.py"):
        name = ".".join(path.relative_to(Path(relae.cli.__file__).parent).with_suffix("").parts)
        if name not in ("_serve", "_cluster", "__init__") and not name.endswith(".__init__"):
            importlib.import_module(f"relae.cli.{name}")
    for name in ("relae.models", "relae.baselines", "relae.datasets._download"):
        importlib.import_module(name)


def _compile() -> None:
    import numpy as np

    from relae import EASE, Interactions
    from relae.baselines import ItemKNN
    from relae.evaluation import evaluate, hold_out_users

    matrix = (np.random.default_rng(0).random((30, 12)) < 0.3).astype(np.float32)
    for model in (EASE().fit(matrix), EASE().fit(matrix, solver="dual"), ItemKNN(3).fit(matrix)):
        model.recommend(matrix[:3], 2)
    EASE().fit(matrix).compact(matrix, per_item=4)
    split = hold_out_users(Interactions(matrix), share=0.3, rng=np.random.default_rng(0))
    evaluate(EASE().fit(split.train), split, ks=[3], xis=[0.0, 0.5])


def _run_all(request: dict[str, Any]) -> list[dict[str, Any]]:
    runs = []
    for number, command in enumerate(request["commands"]):
        time.sleep(request["apart"] if number else 0.0)
        runs.append(_Child(command, request))
    deadline = None if request["after"] is None else runs[-1].started + request["after"]
    while any(run.status is None for run in runs):
        if deadline is not None and time.perf_counter() >= deadline:
            for run in runs:
                if run.status is None:
                    os.kill(run.pid, request["sig"])
            deadline = None
        for run in runs:
            run.poll()
        time.sleep(0.0005)
    return [run.record() for run in runs]


class _Child:
    def __init__(self, command: list[str], request: dict[str, Any]) -> None:
        self.started, self.status, self.seconds = time.perf_counter(), None, 0.0
        self._out, self._err = (os.fdopen(os.memfd_create("stream"), "rb") for _ in range(2))
        self._steps = mmap.mmap(-1, 8)  # shared with the child
        self.pid = os.fork()
        if self.pid == 0:
            _be(command, request, self._out.fileno(), self._err.fileno(), self._steps)

    def poll(self) -> None:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status, self.seconds = os.waitstatus_to_exitcode(status), time.perf_counter() - self.started

    def record(self) -> dict[str, Any]:
        texts = []
        for file in (self._out, self._err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        [steps] = struct.unpack("q", self._steps[:8])
        return {"code": self.status, "out": texts[0], "err": texts[1], "steps": steps, "seconds": self.seconds}


def _be(command: list[str], request: dict[str, Any], out: int, err: int, steps: mmap.mmap) -> None:
    """Be the command; this never returns."""
    code = 70
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.environ.update(request["env"])
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        _count_steps(request, steps)
        code = _call(command)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _call(command: list[str]) -> int:
    """Run `relae …`, or a function `module:name` with texts."""
    module, _, name = command[0].partition(":")
    try:
        if name:
            getattr(importlib.import_module(module), name)(*command[1:])
            return 0
        from relae.cli import main

        sys.argv = command
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    return 0


def _count_steps(request: dict[str, Any], steps: mmap.mmap) -> None:
    """Count what is done to files under a folder, and send a signal before the step that is wished."""
    wanted, watched, done = request["step"], request["watch"].rstrip("/"), 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal done
        if event not in _STEPS:
            return
        path = arguments[0] if arguments else None
        if event != "fcntl.flock" and not str(os.fspath(path) if isinstance(path, os.PathLike) else path).startswith(
            watched
        ):
            return
        done += 1
        steps[:8] = struct.pack("q", done)
        if done == wanted:
            os.kill(os.getpid(), request["sig"])

    sys.addaudithook(hook)


if __name__ == "__main__":
    serve()
