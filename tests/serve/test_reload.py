"""A new model takes over while requests are answered, and a bad one does not."""

import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from relae import EASE, RDLAE, store
from tests.serve.running import running, serving, until
from tests.serve.test_operations import values
from tests.serve.test_refusals import refused
from tests.store.tampering import seal

KEY = {"X-API-Key": "secret"}
QUESTION = {"history": [7, 37], "k": 5}


@pytest.fixture(scope="module")
def models(data):
    return {"first": RDLAE(l2=5.0, dropout=0.3, xi=0.3).fit(data), "second": EASE(l2=200.0).fit(data)}


@pytest.fixture
def live(models, tmp_path):
    """A folder that can be written anew."""
    path = tmp_path / "live"
    store.save(models["first"], path, title="first")
    return path


def broken_folders(path, models):
    """A folder at `path`, broken in one way after the other."""
    description = path / "model.json"
    good = description.read_bytes()
    for bad in (b"", b"garbage", good[: len(good) // 2], good.replace(b'"version": 1', b'"version": 99')):
        description.write_bytes(bad)
        yield
    description.unlink()
    yield
    store.save(models["first"], path)
    for array in path.rglob("*.npy"):
        array.write_bytes(array.read_bytes()[:100])
        break
    yield
    shutil.rmtree(path)
    yield


def same(client, model):
    answer = client.post("/v1/recommend", json=QUESTION, headers=KEY).json()
    ids, scores = model.recommend(QUESTION["history"], QUESTION["k"])
    assert [entry["item"] for entry in answer["items"]] == ids.tolist()
    np.testing.assert_allclose([entry["score"] for entry in answer["items"]], scores, rtol=1e-6)


def test_a_good_model_takes_over(live, models):
    with serving(live, api_key="secret") as client:
        same(client, models["first"])
        store.save(models["second"], live, title="second")
        same(client, models["first"])  # not before it is told to
        answer = client.post("/v1/reload", headers=KEY)
        assert answer.status_code == 200
        assert (answer.json()["model"], answer.json()["title"]) == ("EASE", "second")
        assert client.get("/v1/model", headers=KEY).json() == answer.json()
        same(client, models["second"])
        assert values(client)['relae_reloads_total{result="good"}'] == 1


def test_a_bad_model_does_not(live, models):
    with serving(live, api_key="secret") as client:
        before = client.get("/v1/model", headers=KEY).json()
        count = 0
        for _ in broken_folders(live, models):
            count += 1
            error = refused(client.post("/v1/reload", headers=KEY), 409)
            assert str(live) in error["message"]
            assert "old model stays" in error["message"]
            assert client.get("/v1/model", headers=KEY).json() == before
            same(client, models["first"])
            assert client.get("/readyz").status_code == 200
        assert values(client)['relae_reloads_total{result="bad"}'] == count == 7
        store.save(models["second"], live, title="second")
        assert client.post("/v1/reload", headers=KEY).status_code == 200
        same(client, models["second"])


def test_a_model_that_cannot_answer_does_not_take_over(live, models, monkeypatch):
    with serving(live, api_key="secret") as client:
        monkeypatch.setattr(EASE, "recommend", lambda *args, **more: 1 / 0)
        store.save(models["second"], live)
        assert "ZeroDivisionError" in refused(client.post("/v1/reload", headers=KEY), 409)["message"]
        same(client, models["first"])


class Load:
    """Threads that keep asking, and note every answer that is not one of the models'."""

    def __init__(self, client, models, threads=4):
        expected = {tuple(model.recommend(QUESTION["history"], QUESTION["k"])[0].tolist()) for model in models.values()}
        self.answers, self.failures, self._stop = 0, [], threading.Event()
        self._seen = set()

        def ask():
            while not self._stop.is_set():
                try:
                    answer = client.post("/v1/recommend", json=QUESTION, headers=KEY)
                    items = tuple(entry["item"] for entry in answer.json()["items"])
                    assert answer.status_code == 200
                    assert items in expected
                    self._seen.add(items)
                    self.answers += 1
                except Exception as error:
                    self.failures.append(error)

        self._threads = [threading.Thread(target=ask) for _ in range(threads)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert self.failures == []
        assert len(self._seen) == 2, "only one model was ever seen"


def test_twenty_reloads_under_load(live, models):
    with serving(live, api_key="secret") as client, Load(client, models) as load:
        for turn in range(20):
            name = "second" if turn % 2 == 0 else "first"
            if turn == 11:
                (live / "model.json").write_bytes(b"garbage")
                assert client.post("/v1/reload", headers=KEY).status_code == 409
                (live / "model.json").unlink()  # a save does not replace what it does not know
                continue
            store.save(models[name], live, title=name)
            answered = load.answers
            assert client.post("/v1/reload", headers=KEY).json()["title"] == name
            until(lambda at=answered: load.answers > at + 4)
        same(client, models["first"])  # the twentieth


def test_a_signal_reloads_one_worker(live, models):
    with running(live, api_key="secret") as (process, client), Load(client, models):
        for name, model in (("second", "EASE"), ("first", "RDLAE")):
            store.save(models[name], live, title=name)
            process.tell(signal.SIGHUP)
            assert process.said("reloaded")["model"] == model
            same(client, models[name])
        (live / "model.json").write_bytes(b"garbage")
        process.tell(signal.SIGHUP)
        assert "not JSON" in process.said("reload failed")["reason"]
        same(client, models["first"])


def test_a_pipe_or_a_wrong_type_in_the_folder_neither_hangs_nor_ends_the_service(live, models):
    with running(live, api_key="secret") as (process, client):
        [place] = live.glob("arrays-*/penalty.npy")
        content = place.read_bytes()
        place.unlink()
        os.mkfifo(place)
        process.tell(signal.SIGHUP)
        assert "penalty.npy cannot be read: it is not a regular file" in process.said("reload failed")["reason"]
        place.unlink()
        place.write_bytes(content)
        record = json.loads((live / "model.json").read_text())
        record["arrays"]["item_counts"]["dtype"] = "<f8"
        (live / "model.json").write_text(seal(record))
        process.tell(signal.SIGHUP)
        assert "item_counts has the type <f8, not <i8" in process.said("reload failed")["reason"]
        same(client, models["first"])
        process.tell(signal.SIGTERM)
        assert process.ended() == 0


@pytest.mark.skipif(not psutil.LINUX, reason="looks into /proc")
def test_the_old_model_is_let_go(live, models):
    def mapped(process):
        return sum(str(live) in line for line in Path(f"/proc/{process.popen.pid}/maps").read_text().splitlines())

    with running(live, api_key="secret") as (process, client):
        before = mapped(process)
        assert before > 0
        for _ in range(5):
            store.save(models["first"], live)
            assert client.post("/v1/reload", headers=KEY).status_code == 200
        until(lambda: mapped(process) == before)


def test_a_reload_reaches_all_workers(live, models):
    with running(live, api_key="secret", workers=2) as (process, client), Load(client, models):
        store.save(models["second"], live, title="second")
        assert client.post("/v1/reload", headers=KEY).json()["title"] == "second"
        pids = [process.said("reloaded")["pid"] for _ in range(3)]  # the one that was asked, then both
        assert len(set(pids)) == 2
        for _ in range(20):
            same(client, models["second"])
        store.save(models["first"], live, title="first")
        process.tell(signal.SIGHUP)
        assert len({process.said("reloaded")["pid"] for _ in range(2)}) == 2
        for _ in range(20):
            same(client, models["first"])
        (live / "model.json").write_bytes(b"garbage")
        assert client.post("/v1/reload", headers=KEY).status_code == 409
        for _ in range(20):
            same(client, models["first"])


# --- files that are overwritten --------------------------------------------------------------------------------------


def overwrite(live, *, shorter):
    """Change a file of the model in its place, as `cp` or `rsync --inplace` do it."""
    [file] = live.rglob("inverse.npy")
    with file.open("r+b") as handle:
        if shorter:
            handle.truncate(100)
        else:
            handle.write(b"x" * 1000)
    return file.name


@pytest.mark.parametrize("shorter", [False, True])
def test_a_model_that_was_overwritten_is_not_used_any_more(live, models, shorter):
    with serving(live, api_key="secret") as client:
        same(client, models["first"])
        name = overwrite(live, shorter=shorter)
        until(lambda: client.get("/readyz").status_code == 503)
        assert client.get("/healthz").status_code == 200
        error = refused(client.post("/v1/recommend", json=QUESTION, headers=KEY), 503)
        assert name in error["message"]
        assert "save the model again, and reload" in error["message"]
        store.save(models["second"], live)
        assert client.post("/v1/reload", headers=KEY).status_code == 200
        assert client.get("/readyz").status_code == 200
        same(client, models["second"])


def test_a_model_in_memory_can_be_overwritten(live, models):
    with serving(live, api_key="secret", in_memory=True) as client:
        overwrite(live, shorter=True)
        time.sleep(1.5)
        same(client, models["first"])
        shutil.rmtree(live)
        same(client, models["first"])
