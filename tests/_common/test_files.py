"""Files are there whole or not at all, one process has a place alone, and a process that is killed leaves nothing."""

import multiprocessing
import os
import signal
import stat
import time
from contextlib import suppress

import pytest

from relae._common.files import (
    atomic_file,
    lock_file,
    lock_folder,
    remove_folder,
    remove_orphans,
    scratch_folder,
    write_text,
)
from relae.errors import DataError, StoreError

_PROCESSES = multiprocessing.get_context("forkserver")  # this process may have threads
_PROCESSES.set_forkserver_preload([__name__])


class Other:
    """Another process, which enters a context and stays in it until it is told to go on, or killed."""

    def __init__(self, enter, *arguments):
        self._told, inside = _PROCESSES.Pipe()
        self.process = _PROCESSES.Process(target=self._work, args=(inside, enter, arguments))
        self.process.start()
        self.said = self._told.recv()

    @staticmethod
    def _work(pipe, enter, arguments):
        try:
            with enter(*arguments) as given:
                if isinstance(given, os.PathLike) and os.path.isfile(given):
                    given.write_text("theirs")
                pipe.send(os.fspath(given) if given is not None else "")
                pipe.recv()
        except DataError as error:
            pipe.send(str(error))

    def go_on(self):
        self._told.send(None)
        self.process.join(30)
        assert self.process.exitcode == 0

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join(30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.join(30)


def names(folder):
    return sorted(os.listdir(folder))


# --- one file ----------------------------------------------------------------------------------------------------


def test_a_file_is_replaced_at_the_end(tmp_path):
    path = tmp_path / "new" / "folder" / "a.txt"
    with atomic_file(path) as part:
        part.write_text("one")
        assert not path.exists()
        assert part.parent == path.parent
    assert path.read_text() == "one"
    write_text(path, "zwei ξ")
    assert path.read_text(encoding="utf-8") == "zwei ξ"
    assert names(path.parent) == ["a.txt"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_whatever_fails_the_old_file_stays_and_no_other(error, tmp_path):
    (tmp_path / "a.txt").write_text("old")
    for path in (tmp_path / "a.txt", tmp_path / "b" / "c" / "a.txt"):
        with pytest.raises(error), atomic_file(path) as part:
            raise error(part.write_text("new"))
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_errors_of_the_system_are_in_words(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match=r"folder cannot be written: it is a folder; what was there is kept"):
        write_text(tmp_path / "folder", "text")
    write_text(tmp_path / "file", "mine")
    with pytest.raises(StoreError, match=r"cannot be written: .*; what was there is kept"):
        write_text(tmp_path / "file" / "a.txt", "text", StoreError)
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        write_text(tmp_path / "file" / "a.txt", "text", None)
    with (
        pytest.raises(DataError, match=r"cannot be made: .*file is a file, and no folder"),
        lock_folder(tmp_path / "file"),
    ):
        pass
    assert names(tmp_path) == ["file", "folder"]


def test_a_device_or_a_pipe_is_not_replaced(tmp_path):
    """For root, a rename onto /dev/null would end the device."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    for name in ("pipe", "null"):
        with pytest.raises(DataError, match="it is a device or a pipe, and no file that can be replaced"):
            write_text(tmp_path / name, "text")
        with pytest.raises(DataError, match="it is a device or a pipe"), lock_file(tmp_path / name):
            pass
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_permissions_are_kept_and_a_link_stays_a_link(tmp_path):
    (tmp_path / "secret").write_text("old")
    (tmp_path / "secret").chmod(0o600)
    (tmp_path / "link").symlink_to("secret")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "secret").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "other", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o640


def test_two_processes_that_write_one_file_do_not_meet(tmp_path):
    path = tmp_path / "a.txt"
    with Other(atomic_file, path) as other:
        write_text(path, "ours")
        assert path.read_text() == "ours"
        other.go_on()
    assert path.read_text() == "theirs"
    assert names(tmp_path) == ["a.txt"]


# --- what a killed process leaves --------------------------------------------------------------------------------


def test_what_a_killed_process_leaves_is_removed_by_the_next_writer(tmp_path):
    for enter, place in ((atomic_file, "a.txt"), (lock_file, "b.txt"), (lock_folder, ""), (scratch_folder, "")):
        with Other(enter, tmp_path / place) as other:
            other.kill()
    assert len(names(tmp_path)) > 0
    write_text(tmp_path / "other.txt", "text")
    assert names(tmp_path) == ["other.txt"]


def test_what_a_living_process_writes_is_left_alone(tmp_path):
    with (
        Other(atomic_file, tmp_path / "a.txt") as first,
        Other(lock_file, tmp_path / "b.txt") as second,
        Other(scratch_folder, tmp_path) as third,
    ):
        remove_orphans(tmp_path)
        assert len(names(tmp_path)) == 3
        for each in (first, second, third):
            each.go_on()
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "theirs"


def test_names_that_are_not_ours_are_left_alone(tmp_path):
    others = [
        ".relae",
        ".a.part",
        "relae-00000000.part",
        ".relae-0000000g.part",
        ".relae-00000000.part.txt",
        "relae-lock",
    ]
    for name in others:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".relae-00000000.part").symlink_to("relae-lock")
    remove_orphans(tmp_path)
    assert names(tmp_path) == sorted([*others, ".relae-00000000.part"])


def test_a_folder_is_removed_at_once_and_the_rest_by_the_next_writer(tmp_path, monkeypatch):
    (tmp_path / "arrays").mkdir()
    (tmp_path / "arrays" / "x.npy").write_text("x")

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", interrupted)
        with pytest.raises(KeyboardInterrupt):
            remove_folder(tmp_path / "arrays")
    assert not (tmp_path / "arrays").exists()
    write_text(tmp_path / "a.txt", "text")
    assert names(tmp_path) == ["a.txt"]


def _write_often(path, seconds):
    ends = time.monotonic() + seconds
    count = 0
    while time.monotonic() < ends:
        with atomic_file(path) as part:
            part.write_text(f"{os.getpid()}\n" * 100)
        count += 1
    return count


def test_many_writers_in_one_folder_do_not_take_each_others_files(tmp_path):
    """Each of them looks for what is left in the folder before it writes, while the others write."""
    with _PROCESSES.Pool(4) as pool:
        waiting = [pool.apply_async(_write_often, (tmp_path / f"{number % 2}.txt", 1.0)) for number in range(4)]
        counts = [each.get(60) for each in waiting]
    assert min(counts) > 0
    assert names(tmp_path) == ["0.txt", "1.txt"]
    assert {len(set((tmp_path / name).read_text().split())) for name in names(tmp_path)} == {1}


# --- locks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lock", "what"), [(lock_folder, "folder"), (lock_file, "file")])
def test_a_second_process_is_told_who_has_the_place(lock, what, tmp_path):
    place = tmp_path / "place"
    with Other(lock, place) as other:
        holder = rf"process {other.process.pid} on .+"
        said = rf"another process is saving to {place} \({holder}\): wait for it, or name another {what}$"
        with pytest.raises(DataError, match=said), lock(place):
            pass
        other.go_on()
    with lock(place):
        pass
    assert names(tmp_path) == []


@pytest.mark.parametrize("lock", [lock_folder, lock_file])
def test_the_lock_of_a_killed_process_is_free(lock, tmp_path):
    with Other(lock, tmp_path / "place") as other:
        other.kill()
    with lock(tmp_path / "place"):
        pass
    assert not (tmp_path / "place").exists() or names(tmp_path / "place") == []


def test_a_lock_by_another_name_of_the_same_file(tmp_path):
    (tmp_path / "link").symlink_to("file")
    with lock_file(tmp_path / "file"), pytest.raises(DataError, match="another process"), lock_file(tmp_path / "link"):
        pass


def test_locks_leave_nothing_but_what_was_made_meanwhile(tmp_path):
    with lock_folder(tmp_path / "a" / "b"):
        assert names(tmp_path / "a" / "b") == [".relae-lock"]
    assert names(tmp_path) == []
    with lock_folder(tmp_path / "a" / "b"):
        (tmp_path / "a" / "b" / "mine").touch()
    assert names(tmp_path / "a" / "b") == ["mine"]


def _count_in_turn(path, seconds):
    """Read a number, wait, and write the next one, whenever the lock is to be had."""
    ends = time.monotonic() + seconds
    count = 0
    while time.monotonic() < ends:
        with suppress(DataError), lock_file(path):
            number = int(path.read_text())
            time.sleep(0.0005)
            path.write_text(str(number + 1))
            count += 1
    return count


def test_no_two_processes_hold_a_lock_at_once(tmp_path):
    """Locks that are removed when they are released are the ones that are easy to get wrong."""
    path = tmp_path / "count"
    path.write_text("0")
    with _PROCESSES.Pool(3) as pool:
        waiting = [pool.apply_async(_count_in_turn, (path, 1.5)) for _ in range(3)]
        counted = sum(each.get(60) for each in waiting)
    assert counted > 0
    assert int(path.read_text()) == counted
    assert names(tmp_path) == ["count"]
