"""A model comes back from its folder as it was, and never from a folder that is not whole."""

import errno
import json
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import relae
from relae import RDLAE, DataError, NotFittedError, StoreError, store
from relae.data import decode_texts, encode_texts
from relae.models import Dial
from relae.solvers import as_solver
from relae.store import _folder, _format, _read

from ..effort import FULL, repeat, repeat_faults
from .suite import ITEMS, MODELS, NEW, TITLES, USERS, data, fitted, same


@pytest.fixture
def folder(tmp_path):
    """A saved model."""
    fitted("RDLAE").save(tmp_path / "model", histories=data(), title="an example")
    return tmp_path / "model"


# --- there and back ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", ["str", "int"])
@pytest.mark.parametrize("name", MODELS)
def test_every_model_comes_back_as_it_was(name, ids, tmp_path):
    model = fitted(name, ids)
    model.save(tmp_path / "model")
    assert same(model, relae.load(tmp_path / "model", verify=True))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_knows_whether_its_folder_tells_what_each_user_has(name, tmp_path):
    model = fitted(name)
    model.save(tmp_path / "model")
    arrays = {path.stem: np.load(path) for path in (tmp_path / "model").glob("arrays-*/*.npy")}
    starts = [array for name, array in arrays.items() if name.endswith("_starts")]
    columns = [array for name, array in arrays.items() if name.endswith("_columns")]
    x = data().matrix
    told = any(np.array_equal(x.indptr, each) for each in starts) and any(
        np.array_equal(x.indices, each) for each in columns
    )
    assert relae.load(tmp_path / "model").holds_histories == told


DIALS = (*Dial._fields, "kept")  # which need no fit
WORDS = {"nearest_by": "count", "merge": "early"}


@pytest.mark.parametrize("name", [name for name in MODELS if name != "Popularity"])  # it has no parameters
def test_parameters_are_for_the_next_fit_and_leave_this_one_alone(name, tmp_path):
    model = pickle.loads(pickle.dumps(fitted(name)))
    others = {
        parameter: WORDS[parameter] if parameter in WORDS else 7 if value is None else 3 * value + 1
        for parameter, value in model.get_params().items()
        if parameter not in DIALS
    }
    model.set_params(**others)
    model.save(tmp_path / "model")
    opened = relae.load(tmp_path / "model")
    assert opened.get_params() == model.get_params()
    for found in (model, opened):
        assert np.array_equal(found.score(NEW), fitted(name).score(NEW))
        assert np.array_equal(found.recommend(NEW)[0], fitted(name).recommend(NEW)[0])


@pytest.mark.parametrize("name", ["DAN", "DEQL", "GFCF", "GFCF without vectors", "IALS", "Random"])
def test_a_folder_that_tells_less_of_the_fit_is_taken_by_its_parameters(name):
    """Folders once had these as parameters alone."""
    model = fitted(name)
    state = model.state("fitted")
    later = (
        "alpha",
        "seed",
        "unobserved_weight",
        "frequency_exponent",
        "dropout",
        "user_norm",
        "neighbours",
        "nearest_by",
    )
    facts = {fact: value for fact, value in state.facts.items() if fact not in later}
    assert len(facts) < len(state.facts)
    opened = type(model)(**model.get_params())
    opened.restore(facts, state.arrays)
    assert same(opened, model)


@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_primal_form_of_either_solver(solver, dtype, tmp_path):
    model = RDLAE(3.0, 0.4, 0.42).fit(data(), solver=as_solver(solver, dtype=dtype))
    model.save(tmp_path / "model", form="primal")
    found = relae.load(tmp_path / "model")
    assert found.inverse_.solver == "primal"
    assert found.plan_ == model.plan_
    tolerance = {"float32": 1e-4, "float64": 1e-9}[dtype]
    assert np.allclose(found.score(NEW), model.score(NEW), rtol=tolerance, atol=tolerance)
    assert found.with_xi(1.0).recommend(NEW, k=5)[0].tolist() == model.with_xi(1.0).recommend(NEW, k=5)[0].tolist()


def test_the_primal_form_is_made_in_blocks(tmp_path, monkeypatch):
    from relae.linalg import parts

    model = fitted("RDLAE")
    model.save(tmp_path / "whole", form="primal")
    heights = []
    rows = type(model.inverse_).rows
    monkeypatch.setattr(parts, "_BLOCK_BYTES", 7 * 4 * ITEMS)
    monkeypatch.setattr(type(model.inverse_), "rows", lambda self, at: heights.append(len(at)) or rows(self, at))
    model.save(tmp_path / "parts", form="primal")
    assert heights == [7, 7, 7, 7, 3]
    whole, made = relae.load(tmp_path / "whole"), relae.load(tmp_path / "parts")
    assert np.allclose(whole.inverse_.square, made.inverse_.square, rtol=1e-6)


def test_a_primal_model_has_no_dual_form(tmp_path):
    with pytest.raises(ValueError, match="has the primal form"):
        fitted("EDLAE").save(tmp_path / "model", form="dual")
    with pytest.raises(ValueError, match="form must be 'auto', 'fitted', 'primal', 'dual' or 'local', got 'dense'"):
        fitted("EDLAE").save(tmp_path / "model", form="dense")
    assert not (tmp_path / "model").exists()


def test_a_model_that_is_not_fitted_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        RDLAE().save(tmp_path / "model")


def test_a_model_of_somebody_else_cannot_be_saved(tmp_path):
    class Mine(RDLAE):
        pass

    with pytest.raises(StoreError, match="a Mine cannot be saved"):
        Mine(3.0).fit(data()).save(tmp_path / "model")


def test_what_the_record_says(folder):
    saved = store.open_model(folder)
    info, model = saved.info, fitted("RDLAE")
    assert (info["title"], info["model"], info["parameters"]) == ("an example", "RDLAE", model.get_params())
    assert info["fitted"]["residual"] == model.residual_
    assert info["fitted"]["xi_interval"] == list(model.xi_interval_)
    assert info["data"]["users"] == USERS
    assert info["data"]["interactions"] == data().n_interactions
    assert info["data"]["gini"] == data().statistics().gini
    assert info["versions"]["relae"] == relae.__version__
    assert saved.size == sum(path.stat().st_size for path in folder.glob("arrays-*/*"))


def test_users_are_known_by_their_ids(folder, tmp_path):
    found = store.open_model(folder).histories
    assert found.users == data().users
    assert (found.matrix != data().matrix).nnz == 0
    assert found.history("user 3") == data().history("user 3")
    assert found.title("ïtem 0") == TITLES[0]
    fitted("RDLAE").save(tmp_path / "nobody")
    assert store.open_model(tmp_path / "nobody").histories is None


def test_histories_with_other_columns_are_moved(tmp_path):
    other = relae.Interactions(np.eye(3), items=["ïtem 6", "ïtem 3", "ïtem 999"])
    fitted("RDLAE").save(tmp_path / "model", histories=other)
    found = store.open_model(tmp_path / "model").histories
    assert [found.history(user) for user in (0, 1, 2)] == [["ïtem 6"], ["ïtem 3"], []]


def test_numpy_reads_the_arrays_and_no_pickle_is_among_them(folder):
    model = fitted("RDLAE")
    files = {path.stem: np.load(path, allow_pickle=False) for path in folder.glob("arrays-*/*.npy")}
    assert np.array_equal(files["penalty"], model.penalty_)
    assert np.array_equal(files["kernel_inverse"], model.inverse_.kernel_inverse)
    for path in folder.rglob("*"):
        if path.is_file():
            with pytest.raises((pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError)):
                pickle.loads(path.read_bytes())


def test_arrays_are_mapped_and_cannot_be_written(folder):
    square = relae.load(folder).inverse_.kernel_inverse
    assert not square.flags.writeable
    assert not square.flags.owndata


def test_checksums_are_those_of_the_files(folder):
    import hashlib

    entries = json.loads((folder / "model.json").read_text())["arrays"]
    for path in folder.glob("arrays-*/*.npy"):
        assert hashlib.sha256(path.read_bytes()).hexdigest() == entries.pop(path.stem)["sha256"]
    assert entries == {}


@given(st.lists(st.none() | st.text()))
def test_texts_come_back(texts):
    expected = [text.replace("\0", " ").encode(errors="replace").decode() or None if text else None for text in texts]
    assert list(decode_texts(encode_texts(texts), len(texts))) == expected


def test_progress_ends_at_one(tmp_path):
    calls = []
    fitted("RDLAE").save(tmp_path / "model", form="primal", progress=lambda *call: calls.append(call))
    assert {stage for stage, _ in calls} == {"save"}
    fractions = [fraction for _, fraction in calls]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


# --- saving again --------------------------------------------------------------------------------------------------


def names(folder):
    return sorted(entry.name.split("-")[0] for entry in folder.iterdir())


def test_a_second_save_replaces_the_first_and_open_models_live_on(folder):
    before = relae.load(folder)
    scores = before.score(NEW)
    fitted("EDLAE").save(folder)
    assert same(relae.load(folder), fitted("EDLAE"))
    assert np.array_equal(before.score(NEW), scores)
    assert names(folder) == ["arrays", "model.json"]


def leave(folder, size=4):
    """Leave what a save leaves that is killed: arrays, a part of the record, a lock, and a removal half done."""
    arrays = folder / "arrays-00000000"
    arrays.mkdir(parents=True)
    (arrays / _folder._MARK).touch()
    (arrays / "inverse.npy").write_bytes(bytes(size))
    (folder / "arrays-00000001").mkdir()  # killed before it could say that it is ours
    (folder / ".relae-00000002.part").write_bytes(b"{")
    (folder / ".relae-00000003.part").mkdir()
    (folder / ".relae-00000003.part" / "x_data.npy").write_bytes(b"half")
    (folder / ".relae-lock").write_text("1 on another-machine\n")


def test_what_an_interrupted_save_left_is_cleared(folder):
    leave(folder)
    assert same(relae.load(folder), fitted("RDLAE"))
    fitted("EDLAE").save(folder)
    assert names(folder) == ["arrays", "model.json"]


def test_what_a_first_save_left_is_no_obstacle(tmp_path):
    leave(tmp_path / "model")
    fitted("EDLAE").save(tmp_path / "model")
    assert names(tmp_path / "model") == ["arrays", "model.json"]
    assert same(relae.load(tmp_path / "model"), fitted("EDLAE"))


def test_what_an_interrupted_save_left_is_cleared_before_the_room_is_measured(folder, monkeypatch):
    """Otherwise a small disk would stay full for ever, and no save could make room."""
    leave(folder, 50_000)

    def usage(place):
        used = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        return shutil._ntuple_diskusage(60_000, used, max(0, 60_000 - used))

    monkeypatch.setattr(shutil, "disk_usage", usage)
    fitted("EDLAE").save(folder)
    assert names(folder) == ["arrays", "model.json"]


FOREIGN = {
    "another program's record": {"model.json": '{"format": "keras", "layers": 3}', "arrays-12345678/mine.npy": "mine"},
    "a record that is no object": {"model.json": "[1, 2]"},
    "a record that is no JSON": {"model.json": "my model", "arrays-12345678/mine.npy": "mine"},
    "arrays of somebody else": {"arrays-12345678/mine.npy": "mine"},
    "a link to arrays": {"arrays-12345678 -> ../elsewhere": ""},
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_folder_of_another_program_is_refused_and_left_as_it_is(content, tmp_path):
    folder = tmp_path / "model"
    (tmp_path / "elsewhere").mkdir()
    for name, text in content.items():
        name, _, link = name.partition(" -> ")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(link) if link else (folder / name).write_text(text)
    before = sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
    with pytest.raises(StoreError, match=r"is no model folder|is not the folder of a relae model"):
        fitted("EDLAE").save(folder)
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) == before
    assert all((folder / name).read_text() == text for name, text in content.items() if text)


def test_a_damaged_record_is_replaced_where_the_arrays_are_ours(folder):
    (folder / "model.json").write_bytes(b"gar\xffbage")
    fitted("EDLAE").save(folder)
    assert same(relae.load(folder), fitted("EDLAE"))
    assert names(folder) == ["arrays", "model.json"]
    (folder / "model.json").write_text('{"format": "keras"}')  # this is another program's, and whole
    with pytest.raises(StoreError, match="is not the folder of a relae model"):
        fitted("LAE").save(folder)


def test_folders_of_others_beside_a_model_stay(folder):
    """A name alone does not make arrays ours."""
    (folder / "arrays-12345678").mkdir()
    (folder / "arrays-12345678" / "mine.npy").write_text("mine")
    (folder / "notes.txt").write_text("mine too")
    fitted("EDLAE").save(folder)
    assert (folder / "arrays-12345678" / "mine.npy").read_text() == "mine"
    assert (folder / "notes.txt").read_text() == "mine too"
    assert same(relae.load(folder), fitted("EDLAE"))


def test_arrays_that_the_record_names_need_no_mark_to_be_replaced(folder):
    for mark in folder.glob(f"arrays-*/{_folder._MARK}"):
        mark.unlink()
    fitted("EDLAE").save(folder)
    assert names(folder) == ["arrays", "model.json"]


def test_a_folder_with_anything_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("…")
    with pytest.raises(StoreError, match=r"is no model folder, it holds thesis\.tex"):
        fitted("EDLAE").save(tmp_path)
    with pytest.raises(StoreError, match="is a file, and no folder"):
        fitted("EDLAE").save(tmp_path / "thesis.tex")
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_too_little_room_is_said_before_anything_is_written(folder, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 100))
    with pytest.raises(StoreError, match=r"needs \d+ kB on disk and \d+ B are free"):
        fitted("EDLAE").save(folder)
    assert same(relae.load(folder), fitted("RDLAE"))


def test_a_write_that_fails_keeps_the_old_model(folder):
    """A limit on the size of files stands for a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with pytest.raises(StoreError, match=r"cannot be written: File too large; what was there is kept"):
            fitted("EDLAE").save(folder)
        with pytest.raises(StoreError, match="cannot be written"):
            fitted("EDLAE").save(folder.parent / "new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert same(relae.load(folder), fitted("RDLAE"))
    assert names(folder) == ["arrays", "model.json"]
    assert not (folder.parent / "new").exists()


def test_an_interrupt_keeps_the_old_model(folder):
    def interrupt(stage, fraction):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted("EDLAE").save(folder, progress=interrupt)
    assert same(relae.load(folder), fitted("RDLAE"))
    assert names(folder) == ["arrays", "model.json"]


def test_two_saves_at_once(folder):
    def meanwhile(stage, fraction):
        with pytest.raises(StoreError, match="another process is saving"):
            fitted("LAE").save(folder)

    fitted("EDLAE").save(folder, progress=meanwhile)
    assert same(relae.load(folder), fitted("EDLAE"))


def test_a_folder_that_is_held_for_a_long_fit(folder):
    with store.reserve(folder) as place:
        with pytest.raises(StoreError, match=rf"another process is saving to .*\(process {os.getpid()} on .*\): wait"):
            fitted("LAE").save(folder)
        store.save(fitted("EDLAE"), place)
    fitted("LAE").save(folder)
    assert same(relae.load(folder), fitted("LAE"))


def test_a_record_that_cannot_be_read_just_now_costs_no_arrays(folder, monkeypatch):
    """Such as when a process has too many files open, in the moment in which a save fails."""

    def refuse(path):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

    def interrupt(stage, fraction):
        monkeypatch.setattr(_folder, "open_regular", refuse)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted("EDLAE").save(folder, progress=interrupt)
    monkeypatch.undo()
    assert same(relae.load(folder, verify=True), fitted("RDLAE"))
    fitted("EDLAE").save(folder)
    assert names(folder) == ["arrays", "model.json"]


def test_an_interrupt_after_the_rename_keeps_the_new_model(folder, monkeypatch):
    """The record names the new arrays: they must not be removed, though the save did not come to its end."""
    replace = os.replace

    def interrupted(*arguments):
        replace(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted("EDLAE").save(folder)
    assert same(relae.load(folder, verify=True), fitted("EDLAE"))
    assert names(folder) == ["arrays", "model.json"]


def test_a_reader_beside_a_writer_sees_one_model_or_the_other(folder, monkeypatch):
    """The writer replaces the model after the reader has seen the old record."""
    opened = _read._open_files
    saves = iter([True])

    def late(*arguments):
        if next(saves, False):
            fitted("EDLAE").save(folder)
        return opened(*arguments)

    monkeypatch.setattr(_read, "_open_files", late)
    assert same(relae.load(folder), fitted("EDLAE"))


KILLED = """
import sys
import numpy as np
from relae import EASE, store
square, again = int(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(1)
model = EASE(5.0).fit((rng.random((3 * square, square)) < 0.05).astype(np.float32))
for seed in range(again):
    model.titles_ = np.array([f"save {seed}"] * square, dtype=object)
    store.save(model, sys.argv[1])
    if seed == 1:
        print("ready", flush=True)
"""


def test_a_kill_at_any_moment_leaves_the_old_or_the_new_model(tmp_path):
    folder = tmp_path / "model"
    square = 400
    rng = np.random.default_rng(0)
    last = -1
    for _ in range(repeat(4, 20)):
        saver = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(folder), str(square), "100000"], stdout=subprocess.PIPE
        )
        assert saver.stdout is not None
        assert saver.stdout.readline() == b"ready\n"
        time.sleep(0.1 * rng.random())
        saver.kill()
        saver.communicate()
        saved = store.open_model(folder, verify=True)
        assert len(saved.model.items_) == square
        number = int(saved.model.titles_[0].split()[1])
        assert list(saved.model.titles_) == [f"save {number}"] * square
        last = max(last, number)
    assert last > 0  # the kills came between saves, not before all of them


# --- what is not whole ---------------------------------------------------------------------------------------------


def opened(folder):
    """The model, or None where opening it is an error of ours."""
    try:
        saved = store.open_model(folder, verify=True)
        _ = saved.histories
    except StoreError:
        return None
    return saved.model


def flips(size):
    """Bytes, and a bit of each to flip, another one from byte to byte: of every third byte, or of all, or all bits."""
    bits = (0x01, 0x20, 0x80)
    if FULL:
        return [(at, bit) for at in range(size) for bit in bits]
    return [(at, bits[turn % 3]) for turn, at in enumerate(range(0, size, repeat_faults(3, 1)))]


@pytest.mark.parametrize("name", ["EDLAE", "RDLAE"])
def test_bytes_of_the_record_flipped(name, tmp_path):
    folder, model = tmp_path / "model", fitted(name)
    model.save(folder, histories=data())
    place = folder / "model.json"
    content = place.read_bytes()
    tried = refused = 0
    for at, flip in flips(len(content)):
        place.write_bytes(content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :])
        found = opened(folder)
        tried += 1
        refused += found is None
        assert found is None or same(found, model), (at, flip)
    assert 3 * refused > tried >= len(content) // repeat_faults(3, 1)
    place.write_bytes(content)
    assert same(opened(folder), model)


def test_bytes_of_the_headers_flipped(folder):
    for place in folder.glob("arrays-*/*.npy"):
        content = place.read_bytes()
        for at, flip in flips(128):
            place.write_bytes(content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :])
            with pytest.raises(StoreError, match=r"is corrupt: its header"):
                store.open_model(folder)
        place.write_bytes(content)
    assert same(opened(folder), fitted("RDLAE"))


@pytest.mark.parametrize("name", ["RDLAE", "local"])
def test_bytes_of_the_arrays_flipped(name, folder):
    fitted(name).save(folder, histories=data())
    rng = np.random.default_rng(0)
    for place in folder.glob("arrays-*/*.npy"):
        content = place.read_bytes()
        for at in rng.integers(128, len(content), 8):
            place.write_bytes(content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
            with pytest.raises(StoreError, match="its checksum does not agree"):
                store.open_model(folder, verify=True)
            with suppress(StoreError, DataError), np.errstate(all="ignore"):
                saved = store.open_model(folder)  # an error or other numbers, but never the end of the process
                saved.model.recommend(NEW, k=3)
                saved.model.explain([saved.model.items_.values[0]], saved.model.items_.values[1])
                saved.model.similar_items(saved.model.items_.values[0])
                _ = saved.histories
        place.write_bytes(content)


def test_files_cut_short_lengthened_or_missing(folder):
    for place in folder.glob("arrays-*/*.npy"):
        content = place.read_bytes()
        for damaged in (b"", content[:60], content[:-1], content + b"\0"):
            place.write_bytes(damaged)
            with pytest.raises(StoreError, match="is corrupt: it has"):
                store.open_model(folder)
        place.unlink()
        with pytest.raises(StoreError, match=rf"lacks .*{place.name}"):
            store.open_model(folder)
        place.write_bytes(content)
    assert same(opened(folder), fitted("RDLAE"))


def rewritten(folder, change):
    """Change a record, and make its checksum agree."""
    place = folder / "model.json"
    record = json.loads(place.read_text())
    del record["checksum"]
    change(record)
    place.write_text(json.dumps(record | {"checksum": _format.checksum(record)}))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda r: r.update(version=2), "newer relae"),
        (lambda r: r.update(version="1"), "corrupt"),
        (lambda r: r.update(format="other"), "not the record of a model"),
        (lambda r: r.update(folder="../arrays-00000000"), "corrupt"),
        (lambda r: r.update(folder="/etc"), "corrupt"),
        (lambda r: r["arrays"].update({"../../x": r["arrays"]["items"]}), "corrupt"),
        (lambda r: r["arrays"]["penalty"].update(dtype="|O"), "corrupt"),
        (lambda r: r["arrays"]["penalty"].update(shape=[10**12]), "corrupt"),
        (lambda r: r["arrays"]["penalty"].update(shape=[-1]), "corrupt"),
        (lambda r: r["arrays"].pop("penalty"), "corrupt: there is no 'penalty'"),
        (lambda r: r["arrays"].pop("x_starts"), "corrupt"),
        (lambda r: r.update(model="Popen"), "corrupt"),
        (lambda r: r.update(model="LinearAutoencoder"), "corrupt"),
        (lambda r: r.update(parameters={"l2": 3, "no such": 1}), "corrupt"),
        (lambda r: r.update(parameters=None), "corrupt"),
        (lambda r: r["fitted"].update(form="local"), "corrupt"),
        (lambda r: r["fitted"].update(form="primal"), "corrupt"),
        (lambda r: r["fitted"].update(users="many"), "corrupt"),
        (lambda r: r.pop("fitted"), "corrupt"),
        (lambda r: r.pop("data"), "corrupt"),
    ],
)
def test_a_record_that_says_what_cannot_be(folder, change, complaint):
    rewritten(folder, change)
    with pytest.raises(StoreError, match=complaint):
        store.open_model(folder)


@pytest.mark.parametrize(
    "content", [b"", b"null", b"[]", b"{}", b"[" * 100_000, b"\xff\xfe", b'{"format": "relae-model"}']
)
def test_a_record_that_is_none(folder, content):
    (folder / "model.json").write_bytes(content)
    with pytest.raises(StoreError):
        store.open_model(folder)


def test_no_model_here(tmp_path):
    with pytest.raises(StoreError, match="there is no model folder"):
        relae.load(tmp_path / "nowhere")
    with pytest.raises(StoreError, match=r"has no model\.json"):
        relae.load(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError):
        relae.load(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
def test_no_permission(folder):
    folder.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="Permission denied"):
            fitted("EDLAE").save(folder)
    finally:
        folder.chmod(0o700)


def test_a_copied_folder_works(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "elsewhere")
    assert same(relae.load(tmp_path / "elsewhere", verify=True), fitted("RDLAE"))


def test_a_path_can_be_a_string(tmp_path):
    fitted("LAE").save(str(tmp_path / "a" / "b"))
    assert same(relae.load(str(tmp_path / "a" / "b")), fitted("LAE"))
    assert Path(tmp_path / "a" / "b" / "model.json").exists()
