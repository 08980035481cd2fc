"""Whatever a model folder says, it is refused with a clear message or gives numbers: the process never dies of it."""

import fcntl
import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from relae import PlanError, StoreError, store
from relae.linalg import Expected, check_layout, csr_from_parts
from relae.store import _format, _read

from ..effort import repeat_faults
from .suite import ITEMS, MODELS, USERS, data, fitted, same
from .tampering import seal

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path):
    """A saved model."""
    fitted("RDLAE").save(tmp_path / "model", histories=data())
    return tmp_path / "model"


# --- many, drawn from a seed ---------------------------------------------------------------------------------------


def tamper(what, first, count, folder):
    """Open and use tampered folders in a process of its own."""
    command = [sys.executable, "-m", "tests.store.tampering", what, str(first), str(count), str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
    seeds = done.stdout.splitlines()
    assert done.returncode == 0, f"seed {seeds[-1] if seeds else None} of {what}: {done.stderr[-3000:]}"
    words = seeds[-1].replace(",", "").split()
    refused, worked = int(words[0]), int(words[2])
    assert refused + worked == count
    assert min(refused, worked) > 0  # otherwise nothing was tried
    return refused, worked


@pytest.mark.parametrize("what", ["records", "arrays"])
def test_tampered_folders_do_not_crash(what, tmp_path):
    tamper(what, 0, repeat_faults(40, 120), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("what", "count", "first"), [("records", 15_000, 1000), ("arrays", 5000, 1000)])
def test_thousands_of_tampered_folders_do_not_crash(what, count, first, tmp_path):
    for batch in range(5):  # a new process has forgotten what the others have compiled and mapped
        tamper(what, first + batch * count // 5, count // 5, tmp_path / str(batch))


# --- types and shapes ----------------------------------------------------------------------------------------------


def replaced(folder, name, array, *, holes=0):
    """Put another array in the place of one, with a record that agrees; `holes` more elements that take no room."""
    place = folder / "model.json"
    record = json.loads(place.read_text())
    shape = [array.shape[0] + holes, *array.shape[1:]]
    file = folder / record["folder"] / f"{name}.npy"
    start = _format.header(array.dtype, shape)
    file.write_bytes(start + array.tobytes())
    size = len(start) + int(np.prod(shape)) * array.itemsize
    os.truncate(file, size)
    record["arrays"][name].update(dtype=array.dtype.str, shape=shape, bytes=size)
    place.write_text(seal(record))


@pytest.mark.parametrize("name", ["x_starts", "x_columns", "penalty", "kernel_inverse", "item_counts"])
@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<i4", "<i8", "|u1"])
def test_every_other_type_is_refused_by_name(folder, name, dtype):
    record = json.loads((folder / "model.json").read_text())
    array = np.load(folder / record["folder"] / f"{name}.npy")
    if array.dtype == dtype or (name == "kernel_inverse" and dtype in ("<f4", "<f8")):
        return
    replaced(folder, name, array.astype(dtype))
    with pytest.raises(StoreError, match=rf"corrupt: {name} has the type "):
        store.open_model(folder)


@pytest.mark.parametrize(
    ("name", "shape", "complaint"),
    [
        ("penalty", (ITEMS + 1,), rf"penalty has the shape \({ITEMS + 1},\), and items are {ITEMS}"),
        ("penalty", (ITEMS, 1), r"penalty has the shape \(31, 1\), not 1 dimensions"),
        ("item_counts", (0,), "item_counts is empty"),
        ("kernel_inverse", (USERS, USERS - 1), "and rows are 40"),
        ("x_starts", (USERS + 2,), "x_starts has the shape"),
        ("histories_starts", (0,), "histories_starts is empty"),
    ],
)
def test_other_shapes_are_refused_by_name(folder, name, shape, complaint):
    record = json.loads((folder / "model.json").read_text())
    dtype = record["arrays"].get(name, {"dtype": "<i8"})["dtype"]
    if name not in record["arrays"]:
        fitted("EDLAE").save(folder, histories=data())
    replaced(folder, name, np.ones(shape, dtype))
    with pytest.raises(StoreError, match=complaint):
        store.open_model(folder)


def test_arrays_that_the_model_has_no_use_for(folder):
    place = folder / "model.json"
    record = json.loads(place.read_text())
    record["arrays"]["inverse"] = record["arrays"]["kernel_inverse"]
    place.write_text(seal(record))
    with pytest.raises(StoreError, match="corrupt: the model has no use for inverse"):
        store.open_model(folder)


@pytest.mark.parametrize("name", ["penalty", "item_counts", "x_starts", "items", "titles", "users"])
def test_a_huge_file_full_of_holes_is_refused_before_it_is_copied(folder, name):
    """Four gigabytes and more that take no room on the disk; a copy of one would take them in memory."""
    record = json.loads((folder / "model.json").read_text())
    array = np.load(folder / record["folder"] / f"{name}.npy")
    replaced(folder, name, array, holes=2**32 // array.itemsize)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises((StoreError, PlanError)):
        _ = store.open_model(folder).histories
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 500_000  # kilobytes


def test_a_model_larger_than_memory_is_refused_before_it_is_copied(folder):
    """Its arrays agree with each other, and nothing but their size is wrong."""
    entries = 2**38
    for name, dtype in (("x_values", np.float32), ("x_columns", np.int32)):
        replaced(folder, name, np.zeros(1, dtype), holes=entries - 1)
    with pytest.raises(PlanError, match=r"the model in .* needs 2,199\.0 GB"):
        store.open_model(folder)


def test_equal_names_are_equal_sizes():
    layout = {"a": Expected(("<f8",), ("n", "n+1")), "b": Expected(("<i8",), ("n",), optional=True)}
    check_layout(layout, {"a": ("<f8", (3, 4))})
    check_layout(layout, {"a": ("<f8", (3, 4)), "b": ("<i8", (3,))}, {"n": 3})
    with pytest.raises(ValueError, match="n are 3"):
        check_layout(layout, {"a": ("<f8", (3, 3))})
    with pytest.raises(ValueError, match="n are 5"):
        check_layout(layout, {"a": ("<f8", (3, 4))}, {"n": 5})
    with pytest.raises(KeyError, match="a"):
        check_layout(layout, {"b": ("<i8", (3,))})


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize(
    ("starts", "columns"),
    [
        ([0, 2, 1, 4], [0, 1, 0, 1]),
        ([1, 2, 3, 4], [0, 1, 0, 1]),
        ([0, 1, 2, 3], [0, 1, 0, 1]),
        ([0, 1, 2, 5], [0, 1, 0, 1]),
        ([0, -1, 2, 4], [0, 1, 0, 1]),
        ([0, 2**63 - 1, -(2**63), -1, 4], [0, 1, 0, 1]),  # each step looks forward if it is computed in 64 bits
        ([0, 1, 2, 4], [0, 1, -1, 1]),
        ([0, 1, 2, 4], [0, 1, 0, 2]),
        ([0, 1, 2, 4], [0, 2**31 - 1, 0, 1]),
    ],
)
def test_positions_outside_of_a_matrix_are_refused_even_where_it_stays_on_disk(starts, columns, copy):
    arrays = {
        "m_values": np.ones(len(columns), np.float32),
        "m_columns": np.array(columns, np.int32),
        "m_starts": np.array(starts, np.int64),
    }
    with pytest.raises(ValueError, match="the matrix m"):
        csr_from_parts("m", arrays, (len(starts) - 1, 2), copy=copy)


@pytest.mark.parametrize("name", MODELS)
def test_the_layout_of_a_model_is_that_of_its_arrays(name, tmp_path):
    """No more and no less: what is never saved need not be expected."""
    model = fitted(name)
    model.save(tmp_path / "model")
    record = json.loads((tmp_path / "model" / "model.json").read_text())
    layout = model.layout(record["fitted"], record["arrays"])
    needed = {at for at, expected in layout.items() if not expected.optional}
    assert needed <= record["arrays"].keys() <= layout.keys()


# --- files that are none -------------------------------------------------------------------------------------------


def stand_in(place, kind):
    """Put something else in the place of a file."""
    place.unlink()
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "folder":
        place.mkdir()
    elif kind == "device":
        place.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place))


@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "socket"])
@pytest.mark.parametrize("file", ["model.json", "arrays-*/penalty.npy"])
def test_only_regular_files_are_opened_and_nothing_hangs(tmp_path, monkeypatch, kind, file):
    monkeypatch.chdir(tmp_path)  # the address of a socket has to be short
    fitted("EDLAE").save("m")
    [place] = Path("m").glob(file)
    stand_in(place, kind)
    started = time.monotonic()
    with pytest.raises(StoreError, match=rf"{place.name} cannot be read: it is not a regular file"):
        store.open_model("m")
    assert time.monotonic() - started < 20


def test_a_link_to_a_regular_file_is_as_good_as_the_file(folder):
    [place] = folder.glob("arrays-*/penalty.npy")
    place.rename(folder.parent / "elsewhere.npy")
    place.symlink_to(folder.parent / "elsewhere.npy")
    assert same(store.open_model(folder, verify=True).model, fitted("RDLAE"))


@pytest.mark.skipif(not hasattr(fcntl, "F_SETLEASE"), reason="this system has no leases")
def test_a_file_that_another_process_holds_is_not_waited_for(folder):
    """A lease makes others wait for up to 45 seconds when they open the file."""
    [place] = folder.glob("arrays-*/penalty.npy")
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import fcntl, os, signal, sys\n"
            "signal.signal(signal.SIGIO, signal.SIG_IGN)\n"
            "fcntl.fcntl(os.open(sys.argv[1], os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)\n"
            "print('held', flush=True)\n"
            "sys.stdin.read()",
            str(place),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        if holder.stdout.readline() != b"held\n":
            pytest.skip("this disk has no leases")
        started = time.monotonic()
        with pytest.raises(StoreError, match="cannot be read"):
            store.open_model(folder)
        assert time.monotonic() - started < 20
    finally:
        holder.communicate(b"")


def test_a_disk_that_does_not_answer_is_given_up_on(folder, monkeypatch):
    """Only a network disk can hang in this way: a call that never returns stands for it."""
    answer = threading.Event()
    monkeypatch.setattr(_read, "_SECONDS", 0.2)
    monkeypatch.setattr(_read, "open_regular", lambda place: answer.wait())
    try:
        with pytest.raises(StoreError, match=r"could not be opened within 0\.2 seconds: its disk does not answer"):
            store.open_model(folder)
    finally:
        answer.set()


def test_a_record_that_is_too_long(folder):
    os.truncate(folder / "model.json", 2**33)
    with pytest.raises(StoreError, match="more than 33,554,432 bytes"):
        store.open_model(folder)
