"""What those who run the service see of it: health, metrics, log."""

import json
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from relae import RDLAE, store
from relae.baselines import GFCF, ItemKNN, LastItemKNN, Markov, Popularity, Trending
from relae.models import NextItem
from relae.serve import _handlers, _service
from tests.serve.running import answers, running, serving, until


def values(client):
    """The metrics by name and labels."""
    text = client.get("/metrics").text
    return {name: float(value) for name, value in re.findall(r"^(relae_\S*?(?:\{.*\})?) (\S+)$", text, re.M)}


def test_health(client):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}


def test_not_ready_before_the_first_recommendation(folder, monkeypatch):
    warm_up, go_on = _service._warm_up, threading.Event()

    def slow(snapshot):
        assert go_on.wait(60)
        warm_up(snapshot)

    monkeypatch.setattr(_service, "_warm_up", slow)
    with serving(folder, wait=False) as client:
        until(lambda: answers(client))
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert answer.json()["error"]["message"]
        go_on.set()
        until(lambda: client.get("/readyz").status_code == 200)


@pytest.mark.parametrize(
    ("kind", "timed"),
    [
        *((kind, False) for kind in (RDLAE(l2=5.0), Popularity(), GFCF(rank=4), ItemKNN())),
        *((kind, True) for kind in (RDLAE(l2=5.0), NextItem(5.0), LastItemKNN(), Markov(), Trending())),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, bool) else "with times" if value else "",
)
def test_once_ready_nothing_is_left_to_compile(kind, timed, data, tmp_path):
    if timed:
        data = data.replace(times=1_700_000_000 + 3_600 * np.arange(data.n_interactions))
    store.save(kind.fit(data), tmp_path / "model", histories=data)
    command = [sys.executable, "-m", "tests.serve.compilations", str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["statuses"]["200"] > 40
    assert seen["late"] == []


def test_requests_are_counted_by_route_and_status(folder):
    with serving(folder) as client:
        before = values(client)
        for item in (7, 17, 27, "unknown"):
            client.get(f"/v1/items/{item}")
        client.post("/v1/recommend", json={"history": [7], "k": 0})
        client.get("/made/up/by/the/caller")
        after = values(client)
        grown = {name: value - before.get(name, 0) for name, value in after.items()}
        assert grown['relae_requests_total{method="GET",route="/v1/items/{item}",status="200"}'] == 3
        assert grown['relae_requests_total{method="GET",route="/v1/items/{item}",status="404"}'] == 1
        assert grown['relae_requests_total{method="POST",route="/v1/recommend",status="422"}'] == 1
        assert grown['relae_requests_total{method="GET",route="other",status="404"}'] == 1
        assert grown['relae_request_seconds_count{route="/v1/items/{item}"}'] == 4
        assert grown['relae_request_seconds_bucket{le="+Inf",route="/v1/items/{item}"}'] == 4
        assert not any("made" in name for name in after)
        [info] = [name for name in after if name.startswith("relae_model_info")]
        assert 'model="RDLAE"' in info
        assert "Films" not in client.get("/metrics").text
        assert after['relae_reloads_total{result="good"}'] == after['relae_reloads_total{result="bad"}'] == 0


def test_request_ids(client):
    assert client.get("/healthz", headers={"X-Request-ID": "abc-123"}).headers["x-request-id"] == "abc-123"
    first, second = (client.get("/healthz").headers["x-request-id"] for _ in range(2))
    assert first != second
    odd = client.get("/healthz", headers={"X-Request-ID": 'a" b'}).headers["x-request-id"]
    assert odd != 'a" b'


def test_the_log_is_json_and_keeps_secrets(folder):
    with running(folder, api_key="topsecret") as (process, client):
        key = {"X-API-Key": "topsecret", "X-Request-ID": "traced"}
        client.post("/v1/recommend", json={"history": [7, "mysterious"]}, headers=key)
        client.get("/v1/items", params={"q": "private words"}, headers=key)
        client.get("/v1/items/mysterious", headers=key)
        client.get("/v1/model", headers={"Authorization": "Bearer guessed"})
        client.get("/nowhere%0A{}")
        process.tell(signal.SIGTERM)
        assert process.ended() == 0
        lines = process.rest()
    requests = [line for line in lines if line["event"] == "request" and line["path"] != "/readyz"]
    assert [(line["method"], line["path"], line["status"]) for line in requests] == [
        ("POST", "/v1/recommend", 200),
        ("GET", "/v1/items", 200),
        ("GET", "/v1/items/{item}", 404),
        ("GET", "/v1/model", 401),
        ("GET", "/nowhere\n{}", 404),
    ]
    for line in requests:
        assert line["client"] == "127.0.0.1"
        assert line["ms"] > 0
        assert line["time"].endswith("+00:00")
    assert requests[0]["request_id"] == "traced"
    text = json.dumps(lines)
    for secret in ("topsecret", "guessed", "mysterious", "private"):
        assert secret not in text
    assert [line["event"] for line in lines if line["event"] != "request"] == ["listening", "ready", "stopped"]


def test_a_service_without_a_log(folder):
    with running(folder, log=False) as (process, client):
        assert client.get("/v1/model").status_code == 200
        process.tell(signal.SIGTERM)
        assert process.ended() == 0
        assert [line["event"] for line in process.rest()] == ["listening", "ready", "stopped"]


def test_what_nobody_foresaw_is_an_error_of_ours(folder, monkeypatch, caplog):
    def broken(*args):
        raise ZeroDivisionError("secret details")

    monkeypatch.setattr(_handlers, "search", broken)
    with serving(folder) as client:
        answer = client.get("/v1/items")
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert answer.json()["error"]["message"]
        assert values(client)['relae_requests_total{method="GET",route="/v1/items",status="500"}'] == 1
        assert client.get("/v1/model").status_code == 200
    assert "ZeroDivisionError" in caplog.text
