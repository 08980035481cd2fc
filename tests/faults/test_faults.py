"""Whatever is written is there whole or not at all: under kills, beside a second writer, and on a full disk."""

import os
import shutil
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from ..datasets.server import serving
from .commands import CASES, FIRST, SECOND, Case, Shop, listed
from .server import Faults

pytestmark = pytest.mark.faults

_KILLS = int(os.environ.get("RELAE_KILLS", "30"))  # of each command


@pytest.fixture(scope="module")
def faults():
    server = Faults()
    yield server
    server.close()


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    with serving({"/first": FIRST, "/second": SECOND}) as site:
        yield Shop.make(tmp_path_factory.mktemp("shop"), site)


@pytest.fixture(params=CASES, scope="module")
def place(request, faults, shop, tmp_path_factory):
    """A command with its results, the earlier and the new one, as they are when nothing goes wrong."""
    case = CASES[request.param]
    if case.modules:
        if find_spec(case.modules[0]) is None:
            pytest.skip(f"{case.modules[0]} is not installed")
        faults.load(*case.modules)
    return Place(case, faults, shop, tmp_path_factory.mktemp("place"))


class Place:
    """A command, and what it leaves when nothing goes wrong: without an earlier result, and over one."""

    def __init__(self, case: Case, faults: Faults, shop: Shop, folder: Path) -> None:
        self.case, self.faults, self.shop, self._folder = case, faults, shop, folder
        empty = self.fresh("empty")
        if case.setup is not None:
            faults.one(case.setup(shop, empty), watch=empty, env=case.env(shop)).check()
        self.names = {"empty": listed(empty)}
        old = self.begin("old", "empty")
        self._start(self.case.old, old, case.old_env or case.env).check()
        self.old, self.names["old"] = case.look(old), listed(old)
        new = self.begin("new", "old")
        run = self.start(new).check()
        self.new, self.names["new"] = case.look(new), listed(new)
        self.steps, self.seconds = run.steps, run.seconds
        first = self.begin("first", "empty")
        self.start(first).check()
        self.first, self.names["first"] = case.look(first), listed(first)

    @property
    def is_function(self) -> bool:
        """Whether it is called from Python, and not from the command line."""
        return ":" in str(self.case.new(self.shop, Path())[0])

    def fresh(self, name: str) -> Path:
        path = self._folder / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def begin(self, name: str, state: str, where: Path | None = None) -> Path:
        """Return a folder in the state "empty" or "old"."""
        path = self._folder / name if where is None else where / name
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self._folder / state, path, symlinks=True)
        return path

    def start(self, path: Path, **how):
        return self._start(self.case.new, path, self.case.env, **how)

    def _start(self, command, path, env, **how):
        return self.faults.one(command(self.shop, path), watch=path, env=env(self.shop), **how)

    def check_intact(self, path: Path, state: str) -> None:
        """Each part of the result is what it was, or what it should become; a list may be on its way."""
        found, before = self.case.look(path), self.old if state == "old" else {}
        after = self.new if state == "old" else self.first
        for part in {*found, *before}:
            value, was, becomes = (each.get(part) for each in (found, before, after))
            on_its_way = isinstance(value, list) and isinstance(becomes, list) and value == becomes[: len(value)]
            assert value in (was, becomes) or (on_its_way and len(value) >= len(was or ())), part

    def check_tidy(self, path: Path) -> None:
        """Nothing is there but results and what a command goes on from."""
        assert not set(listed(path)) - set(self.names["old"]) - set(self.names["new"]) - set(self.case.resumes)

    def check_done(self, path: Path, state: str) -> None:
        """The new result is there, and nothing else."""
        assert self.case.look(path) == (self.new if state == "old" else self.first)
        assert listed(path) == self.names["new" if state == "old" else "first"]


# --- kills -------------------------------------------------------------------------------------------------------


def kill_often(place: Place, kills: int, seed: int) -> None:
    """Kill at random moments and before random steps; the next start ends well each time, and leaves nothing."""
    rng = np.random.default_rng(seed)
    killed = 0
    for number in range(2 * kills):  # some end before their moment comes
        state = "empty" if number % 4 == 3 else "old"
        path = place.begin("killed", state)
        moment = {"step": int(rng.integers(1, place.steps + 1))}
        if number % 2:
            moment = {"after": float(rng.uniform(0.0, place.seconds))}
        run = place.start(path, **moment)
        killed += run.was_killed
        assert run.was_killed or run.code == 0, run
        place.check_intact(path, state)
        place.start(path).check()
        place.check_done(path, state)
        if killed == kills:
            return
    pytest.fail(f"only {killed} of {kills} were killed in time")


@pytest.mark.slow
def test_many_kills(place):
    kill_often(place, _KILLS, seed=2)


@pytest.mark.slow
def test_a_kill_before_every_step(place):
    """Every file that is opened, made, moved, removed or locked: the process ends just before."""
    for step in range(1, place.steps + 1):
        path = place.begin("stepped", "old")
        run = place.start(path, step=step)
        assert run.was_killed or run.code == 0, run
        place.check_intact(path, "old")
        place.start(path).check()
        place.check_done(path, "old")


# --- SIGTERM -----------------------------------------------------------------------------------------------------


def terminate_often(place: Place, times: int, seed: int) -> None:
    """A command that is told to end leaves what was there, what it can go on from, and nothing else."""
    if place.is_function:
        return  # without the command line nothing listens to the signal
    rng = np.random.default_rng(seed)
    for _ in range(times):
        path = place.begin("terminated", "old")
        run = place.start(path, step=int(rng.integers(1, place.steps + 1)), sig=signal.SIGTERM)
        assert run.code in (0, 143), run
        if run.code == 143:
            assert run.err.splitlines()[-1] == "relae: terminated", run
            assert "Traceback" not in run.err
        place.check_intact(path, "old")
        place.check_tidy(path)


@pytest.mark.slow
def test_sigterm_often(place):
    terminate_often(place, 30, seed=2)


# --- two writers -------------------------------------------------------------------------------------------------


def write_twice(place: Place, times: int, seed: int) -> None:
    """One has the place, and the other is told so; or they come after each other. Their results are not mixed."""
    rng = np.random.default_rng(seed)
    case, shop = place.case, place.shop
    for number in range(times):
        path = place.begin("shared", "empty")
        differ = number % 2 and not case.goes_on
        commands = [case.old(shop, path) if differ else case.new(shop, path), case.new(shop, path)]
        apart = float(rng.uniform(0.0, 0.5 * place.seconds)) * (number % 3 > 0)
        runs = place.faults.run(*commands, watch=path, env=case.env(shop), apart=apart)
        assert any(run.code == 0 for run in runs), runs
        for run in runs:
            refused = "another process is saving to" in run.err
            assert run.code == 0 or (refused and (place.is_function or run.code == 2)), run
            assert run.code == 0 or place.is_function or run.err.count("\n") == 1, run
        assert case.look(path) in ([place.old, place.first] if differ else [place.first])
        assert listed(path) in ([place.names["old"], place.names["first"]] if differ else [place.names["first"]])


def test_a_few_of_each(place):
    """The same as the slow tests do at length."""
    kill_often(place, place.case.kills, seed=1)
    terminate_often(place, 1, seed=1)
    write_twice(place, 2, seed=1)


@pytest.mark.slow
def test_two_writers_often(place):
    write_twice(place, 30, seed=2)


# --- a full disk -------------------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path):
    """A disk of eight megabytes, where this user may make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("this user may not mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path, free: int) -> Path:
    """Leave so many bytes of a disk."""
    filler = disk / "filler"
    filler.unlink(missing_ok=True)
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free - free)
    return filler


def fill_disk(place: Place, disk: Path, sizes: list[int]) -> None:
    for free in sizes:
        path = place.begin("place", "old", disk)
        filler = fill(disk, free)
        run = place.start(path)
        if run.code:
            assert place.is_function or run.code == 2, run
            assert "DataError" in run.err if place.is_function else run.err.splitlines()[-1].startswith("relae: "), run
            place.check_intact(path, "old")
            place.check_tidy(path)
        filler.unlink()
        place.start(path).check()
        place.check_done(path, "old")
        shutil.rmtree(path)


def test_a_full_disk(place, disk):
    fill_disk(place, disk, [0, 1 << 14])


@pytest.mark.slow
def test_a_disk_that_fills_up_at_any_moment(place, disk):
    fill_disk(place, disk, [pages << 12 for pages in (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)])


def test_a_killed_save_does_not_keep_a_small_disk_full(faults, shop, disk):
    """What it left takes the room that the next save needs: it is cleared before the room is measured."""
    fit = CASES["fit"]
    steps = faults.one(fit.old(shop, disk), watch=disk).check().steps
    for step in range(steps, 0, -1):
        faults.one(fit.new(shop, disk), watch=disk, step=step)
        if len(list((disk / "model").glob("arrays-*/inverse.npy"))) == 2:
            break
    assert len(list((disk / "model").glob("arrays-*/inverse.npy"))) == 2  # the old model, and what the killed save left
    filler = fill(disk, 3 << 12)
    faults.one(fit.new(shop, disk), watch=disk).check()
    filler.unlink()
    assert len(list((disk / "model").glob("arrays-*"))) == 1
    assert [name for name in listed(disk) if ".relae" in name] == ["model/arrays/.relae-arrays"]
