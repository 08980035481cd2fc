"""Changes of a saved model: earlier versions, the history, and what is left of a user who was forgotten."""

import json
import shutil

import numpy as np
import pytest

import relae
from relae import EASE, RDLAE, Interactions, StoreError, store
from relae.solvers import Primal

from ..models.test_living import USERS, any_rank, events, world  # noqa: F401


def kept(folder):
    """Names of all that is in a folder, without the random parts."""
    return sorted(path.name[:7] for path in folder.iterdir())


@pytest.fixture
def folder(tmp_path):
    data = world(1)
    EASE(6.0).fit(data, solver=Primal(dtype="float64")).save(tmp_path / "model", histories=data, title="a shop")
    return tmp_path / "model"


def changed(folder, what, model, histories, ids, keep):
    before = store.open_model(folder)
    change = store.Change(what, tuple(ids), before.model.residual_, model.residual_)
    store.save(model, folder, histories=histories, title="a shop", change=change, keep=keep)
    return change


def updated(folder, later, keep=2):
    saved = store.open_model(folder)
    model = saved.model.update(later, saved.histories)
    return changed(folder, "update", model, saved.histories.joined(later), later.users.values, keep)


def test_versions_are_kept_and_gone_back_to(folder):
    scores = [relae.load(folder).weights()]
    for round_ in range(3):
        updated(folder, events({f"user {round_}": ["item 1", "item 39"]}, 1_700_000_000 + round_))
        scores.append(relae.load(folder).weights())
    saved = store.open_model(folder, verify=True)
    assert (saved.earlier, len(saved.history)) == (2, 3)
    assert kept(folder) == ["arrays-", "arrays-", "arrays-", "earlier", "earlier", "history", "model.j"]
    for before in (2, 1):
        store.roll_back(folder)
        saved = store.open_model(folder, verify=True)
        assert np.array_equal(saved.model.weights(), scores[before])
        assert saved.earlier == before - 1
    assert [line["what"] for line in saved.history] == ["update"] * 3 + ["rollback"] * 2
    for line, next_line in zip(saved.history, saved.history[1:], strict=False):
        assert line["arrays"]["after"] == next_line["arrays"]["before"]
    with pytest.raises(StoreError, match="keeps no earlier version: `relae update` and `relae drop` keep one"):
        store.roll_back(folder)
    assert kept(folder) == ["arrays-", "history", "model.j"]
    assert np.array_equal(relae.load(folder).weights(), scores[1])


def test_a_line_is_a_certificate(folder):
    change = updated(folder, events({"user 3": ["item 1"], "new": ["item 2"]}))
    [line] = store.open_model(folder).history
    assert line["rows"] == 2
    assert line["ids"] == store.digest_of(["new", "user 3"], change.salt)
    assert line["ids"] != store.digest_of(["new", "user 4"], change.salt)
    assert change.salt not in (folder / "history.jsonl").read_text()
    assert change.salt not in (folder / "model.json").read_text()
    assert 0 < line["residual"]["after"] < 1e-10
    assert line == json.loads((folder / "history.jsonl").read_text())


def test_a_new_fit_begins_a_new_history(folder):
    updated(folder, events({"user 3": ["item 1"]}))
    relae.load(folder).save(folder)
    assert store.open_model(folder).history == []
    assert kept(folder) == ["arrays-", "model.j"]


def test_lines_and_versions_that_do_not_count_are_removed(folder):
    updated(folder, events({"user 3": ["item 1"]}))
    saved = store.open_model(folder)
    (folder / "history.jsonl").write_text((folder / "history.jsonl").read_text() + "{}\n")  # of a killed change
    (folder / "earlier-00000000.json").write_text("{}")
    assert len(saved.history) == 1
    with store.reserve(folder):
        pass
    assert (folder / "history.jsonl").read_text().count("\n") == 1
    assert not (folder / "earlier-00000000.json").exists()
    assert store.open_model(folder).earlier == 1


def test_a_history_that_was_changed_is_not_believed(folder):
    updated(folder, events({"user 3": ["item 1"]}))
    text = (folder / "history.jsonl").read_text()
    (folder / "history.jsonl").write_text(text.replace('"rows": 1', '"rows": 2'))
    with pytest.raises(StoreError, match="is not the history of this model"):
        store.open_model(folder).history  # noqa: B018
    with pytest.raises(StoreError, match="is not the history of this model"):
        updated(folder, events({"user 3": ["item 2"]}, 1_700_000_009))
    assert relae.load(folder).n_users_ == USERS


def test_a_version_that_is_not_whole_is_not_gone_back_to(folder):
    updated(folder, events({"user 3": ["item 1"]}))
    [name] = store.open_model(folder).info["earlier"]
    before = relae.load(folder).weights()
    shutil.rmtree(folder / name)
    with pytest.raises(StoreError, match=r"cannot be gone back to: .*; the model stays as it is"):
        store.roll_back(folder)
    assert np.array_equal(relae.load(folder).weights(), before)


@pytest.mark.parametrize("solver", ["primal", "dual"])
@pytest.mark.parametrize("kind", ["text", "numbers"])
def test_nothing_of_a_forgotten_user_is_left(tmp_path, solver, kind):
    """The id, the row of the history, its times, what was seen, and all of that in earlier versions."""
    folder, data = tmp_path / "model", world(2)
    if kind == "numbers":
        data = data.replace(users=np.arange(USERS) * 7_777_777_777 + 1_234_567_890_123)
    who = data.users.values[5]
    RDLAE(5.0, 0.3).fit(data, solver=solver).save(folder, histories=data)
    times = data.select_users([5]).times
    later = events({"somebody": ["item 1"]}) if kind == "text" else events({7: ["item 1"]})
    updated(folder, later, keep=3)  # a version with the user is kept beside that of now
    assert store.open_model(folder).earlier == 1
    trace = [str(who).encode() + b"\0"] if kind == "text" else [np.int64(who).tobytes()]
    trace += [times.tobytes()]

    def traces():
        files = [path for path in folder.rglob("*") if path.is_file()]
        return [path.name for path in files if any(part in path.read_bytes() for part in trace)]

    assert len(traces()) >= 4  # ids and times of two versions: the test can fail
    saved = store.open_model(folder)
    forgotten = saved.model.forget([who], saved.histories)
    left = saved.histories.without_users([who])
    changed(folder, "forget", forgotten, left, [who], 0)
    assert traces() == []
    after = store.open_model(folder, verify=True)
    assert who not in after.histories.users.values.tolist()
    assert who not in after.model.users_.values.tolist()
    assert after.model.n_users_ == USERS
    assert after.earlier == 0
    refit = RDLAE(relae.load(folder).l2_, 0.3).fit(data.joined(later).without_users([who]), solver=solver)
    assert np.allclose(after.model.weights(), refit.weights(), atol=1e-5)
    assert np.array_equal(after.model.item_counts_, refit.item_counts_)
    assert np.allclose(after.model.demand_.counts, refit.demand_.counts)
    assert (after.histories.matrix != left.matrix).nnz == 0
    if solver == "dual":
        assert (after.model.inverse_.held_rows != left.matrix).nnz == 0


def test_the_weighting_of_histories_is_kept(tmp_path):
    x = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 4.0]])
    data = Interactions(x, ["a", "b"], ["x", "y", "z"]).weighted("log")
    EASE(3.0).fit(data).save(tmp_path / "model", histories=data)
    histories = store.open_model(tmp_path / "model").histories
    assert histories.weighting == "log"
    more = Interactions(np.array([[3.0]]), ["a"], ["y"]).weighted("log")
    assert histories.joined(more).matrix.toarray()[0, 1] == pytest.approx(np.log2(1 + 5))
