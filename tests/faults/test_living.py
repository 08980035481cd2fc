"""Changes of a saved model under kills: the old or the new model, never another, and no trace of the forgotten."""

import os
import shutil

import numpy as np
import pytest

from relae import EASE, Interactions, store

from .commands import listed, model_of
from .server import Faults

pytestmark = pytest.mark.faults

_KILLS = int(os.environ.get("RELAE_KILLS", "20"))  # of each command
_FORGOTTEN = "the-forgotten-one"
_COMMANDS = {
    "update": ("later.csv",),
    "forget": ("--user", _FORGOTTEN, "--user", "p7"),
    "drop": ("--item", "f3"),
    "rollback": (),
}


@pytest.fixture(scope="module")
def faults():
    server = Faults()
    yield server
    server.close()


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A folder with a model that has an earlier version, and a table of later events."""
    folder = tmp_path_factory.mktemp("start")
    rng = np.random.default_rng(0)
    x = np.zeros((120, 40), np.float32)
    for row in x:
        row[rng.choice(40, 7, replace=False)] = 1.0
    data = Interactions(x, [_FORGOTTEN, *(f"p{row}" for row in range(1, 120))], [f"f{column}" for column in range(40)])
    (folder / "later.csv").write_text("user,item\np7,f1\np7,f2\nanother,f3\nanother,new\n")
    model = EASE(5.0).fit(data, solver="primal")
    model.save(folder / "model", histories=data, title="one")
    change = store.Change("drop", ("f39",), model.residual_, model.residual_)
    fewer = data.without_items(["f39"])
    store.save(model.drop_items(["f39"]), folder / "model", histories=fewer, title="one", change=change, keep=2)
    return folder


def is_in(folder, word):
    return any(word.encode() + b"\0" in path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("what", _COMMANDS)
def test_the_old_or_the_new_model(what, faults, start, tmp_path):
    def begin(name):
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        shutil.copytree(start, tmp_path / name)
        return tmp_path / name

    def run(folder, **how):
        words = [folder / word if word == "later.csv" else word for word in _COMMANDS[what]]
        return faults.one(("relae", what, folder / "model", *words), watch=folder, env={}, **how)

    look = model_of("model")
    done, old = begin("done"), look(start)
    whole = run(done)
    whole.check()
    new = look(done)
    assert old != new
    assert is_in(start, _FORGOTTEN)
    rng, killed, finished = np.random.default_rng(4), 0, 0
    for number in range(3 * _KILLS):  # some end before their moment comes
        folder = begin("killed")
        moment = {"step": int(rng.integers(1, whole.steps + 1))}
        if number % 2:
            moment = {"after": float(rng.uniform(0.0, whole.seconds))}
        ended = run(folder, **moment)
        assert ended.was_killed or ended.code == 0, ended
        killed += ended.was_killed
        found = look(folder)
        assert found in (old, new)
        saved = store.open_model(folder / "model", verify=True)
        assert len(saved.history) == (1 if found == old else 2)
        with store.reserve(folder / "model"):  # as the next command does
            pass
        assert look(folder) == found
        assert len(listed(folder)) == len(listed(start if found == old else done))
        finished += found == new
        if what == "forget" and found == new:
            assert not is_in(folder, _FORGOTTEN)
        if found == old:
            run(folder).check()
            assert look(folder) == new
            if what == "forget":
                assert not is_in(folder, _FORGOTTEN)
        if killed == _KILLS:
            break
    assert killed == _KILLS
