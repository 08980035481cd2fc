"""Whose turn it is: work for clients that have left is dropped, nobody waits for ever, and what hangs is noticed."""

import asyncio
import json
import socket
import threading
import time

import httpx
import pytest

from relae.serve import _handlers
from relae.serve._shared import SharedCall
from tests.serve.running import serving, until
from tests.serve.test_operations import values
from tests.serve.test_refusals import refused

BATCH = {"histories": [[7]] * 160, "k": 5}  # ten parts


class Gate:
    """Lets the first call of a function wait, and counts all of them."""

    def __init__(self, monkeypatch, name):
        self.calls, self._open, plain = 0, threading.Event(), getattr(_handlers, name)

        def gated(*args):
            self.calls += 1
            assert self._open.wait(60)
            return plain(*args)

        monkeypatch.setattr(_handlers, name, gated)

    def open(self):
        self._open.set()


@pytest.fixture
def gate(monkeypatch):
    gate = Gate(monkeypatch, "search")
    yield gate
    gate.open()


def send(client, path, body=None):
    """Send a request, and return its connection."""
    content = b"" if body is None else json.dumps(body).encode()
    method = "GET" if body is None else "POST"
    connection = socket.create_connection((client.base_url.host, client.base_url.port), timeout=60)
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n"
    connection.sendall(head.encode() + content)
    return connection


def left(client):
    """How many requests ended because their clients left."""
    name = 'relae_requests_total{method="GET",route="/v1/items",status="499"}'
    return values(client).get(name, 0)


def test_work_for_clients_that_have_left_is_dropped(folder, gate):
    with serving(folder) as client:
        first = send(client, "/v1/items")  # has begun
        until(lambda: gate.calls == 1)
        others = [send(client, "/v1/items") for _ in range(50)]
        for connection in (first, *others):
            connection.close()
        until(lambda: left(client) == 51)  # while the first one is still under way
        gate.open()
        assert client.get("/v1/items").status_code == 200
        assert gate.calls == 2, "work was done for nobody"


def test_the_rest_of_a_batch_is_dropped_when_its_client_leaves(folder, monkeypatch):
    with serving(folder) as client:
        gate = Gate(monkeypatch, "recommend_part")
        connection = send(client, "/v1/recommend/batch", BATCH)
        until(lambda: gate.calls == 1)
        connection.close()
        name = 'relae_requests_total{method="POST",route="/v1/recommend/batch",status="499"}'
        until(lambda: values(client).get(name) == 1)
        gate.open()
        assert client.post("/v1/recommend", json={"history": [7]}).status_code == 200
        assert gate.calls == 1
        assert len(client.post("/v1/recommend/batch", json=BATCH).json()["results"]) == 160
        assert gate.calls == 11


def test_nobody_waits_longer_than_is_allowed(folder, gate):
    with serving(folder, wait_seconds=1) as client:
        first = send(client, "/v1/items")
        until(lambda: gate.calls == 1)
        answer = client.get("/v1/items")
        assert answer.headers["retry-after"] == "5"
        assert "waited for 1 seconds" in refused(answer, 503)["message"]
        gate.open()
        assert first.recv(1000).startswith(b"HTTP/1.1 200")  # what has begun is not given up
        first.close()
        assert gate.calls == 1


def test_a_stop_does_not_wait_for_clients_that_have_left(folder, gate):
    with serving(folder) as client:
        first = send(client, "/v1/items")
        until(lambda: gate.calls == 1)
        for connection in [first, *(send(client, "/v1/items") for _ in range(20))]:
            connection.close()
        until(lambda: left(client) == 21)
        gate.open()
        started = time.monotonic()
    assert time.monotonic() - started < 20
    assert gate.calls == 1


def test_a_call_without_an_end_is_told_by_the_health_check(folder, gate):
    with serving(folder, hang_seconds=1) as client:
        connection = send(client, "/v1/items")
        until(lambda: client.get("/healthz").status_code == 503)
        assert "restart" in refused(client.get("/healthz"), 503)["message"]
        gate.open()
        until(lambda: client.get("/healthz").status_code == 200)
        connection.close()


def test_a_body_that_nobody_wants_and_is_too_large(folder, gate):
    with serving(folder, max_body_bytes=1000) as client:
        asked = send(client, "/v1/items")
        until(lambda: gate.calls == 1)
        with socket.create_connection((client.base_url.host, client.base_url.port), timeout=60) as connection:
            connection.sendall(
                b"GET /v1/items HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000
            )
            assert connection.recv(1000).startswith(b"HTTP/1.1 413")
        gate.open()
        asked.close()


# --- what is done once for many --------------------------------------------------------------------------------------


def test_those_who_ask_while_it_runs_share_the_next_one():
    begun = []

    async def scenario():
        go_on = asyncio.Event()

        async def work():
            begun.append(number := len(begun) + 1)
            await go_on.wait()
            return number

        shared = SharedCall(work)
        first = asyncio.create_task(shared())
        await asyncio.sleep(0.01)
        others = [asyncio.create_task(shared()) for _ in range(20)]
        await asyncio.sleep(0.01)
        others.pop().cancel()  # one who leaves does not end it for the others
        await asyncio.sleep(0.01)
        assert begun == [1]
        go_on.set()
        return await first, await asyncio.gather(*others), await shared()

    assert asyncio.run(scenario()) == (1, [2] * 19, 3)


def test_an_error_is_everybodys_and_is_not_kept():
    async def scenario():
        async def fails():
            raise ZeroDivisionError

        shared = SharedCall(fails)
        return await asyncio.gather(shared(), shared(), return_exceptions=True), await asyncio.gather(
            shared(), return_exceptions=True
        )

    first, second = asyncio.run(scenario())
    assert [type(each) for each in (*first, *second)] == [ZeroDivisionError] * 3


def test_many_reloads_become_few(folder):
    with serving(folder, api_key="secret") as client:
        answers = []

        def ask():
            with httpx.Client(base_url=client.base_url, timeout=60, trust_env=False) as own:
                answers.append(own.post("/v1/reload", headers={"X-API-Key": "secret"}).status_code)

        threads = [threading.Thread(target=ask) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [200] * 40
        assert values(client)['relae_reloads_total{result="good"}'] < 20
