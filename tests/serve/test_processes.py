"""Starting, stopping, and what happens to workers."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx
import numpy as np
import psutil
import pytest

from relae import RDLAE, store
from relae.errors import RelaeError
from relae.serve import Settings, run
from tests.serve.running import Process, running, until
from tests.serve.test_operations import values


def children(process):
    return [child for child in psutil.Process(process.popen.pid).children() if child.is_running()]


@pytest.mark.parametrize(("workers", "sig"), [(1, signal.SIGINT), (2, signal.SIGTERM)])
def test_a_stop_is_graceful(folder, workers, sig):
    with running(folder, workers=workers) as (process, client):
        family = [process.popen.pid, *(child.pid for child in children(process))]
        host, port = client.base_url.host, client.base_url.port
        body = json.dumps({"history": [7, 37]}).encode()
        # a request under way: its body comes only after the stop was asked for
        with socket.create_connection((host, port)) as under_way:
            under_way.sendall(
                f"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            )
            under_way.sendall(body[:5])
            time.sleep(0.3)
            process.tell(sig)
            until(lambda: _refuses(host, port))
            under_way.sendall(body[5:])
            answer = under_way.recv(100_000)
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert process.ended() == 0
        assert [line["event"] for line in process.rest()].count("stopped") == (1 if workers == 1 else 3)
        assert not any(map(psutil.pid_exists, family))


def _refuses(host, port):
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return True
    return False


def test_two_workers_share_the_work_and_the_counting(folder):
    with running(folder, workers=2) as (process, client):
        assert len(children(process)) == 2
        expected = client.post("/v1/recommend", json={"history": [7]}).json()

        def ask():
            for _ in range(25):
                alone = {"Connection": "close"}  # a new connection each time
                assert client.post("/v1/recommend", json={"history": [7]}, headers=alone).json() == expected

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        name = 'relae_requests_total{method="POST",route="/v1/recommend",status="200"}'
        assert {values(client)[name] for _ in range(8)} == {101}  # whoever answers, it is that of both
        assert sum(name.startswith("relae_model_info") for name in values(client)) == 1
        process.tell(signal.SIGTERM)
        assert process.ended() == 0
        answered = {line["request_id"].split("-")[0] for line in process.rest() if line["event"] == "request"}
        assert len(answered) == 2, "one worker did all the work"


@pytest.mark.faults
def test_a_worker_that_dies_is_replaced_however_often(folder):
    with running(folder, workers=2) as (process, client):
        for _ in range(7):  # more often than workers may end before they are ready
            first, second = (child.pid for child in children(process))
            os.kill(first, signal.SIGKILL)
            assert process.said("a worker ended")["pid"] == first
            new = process.said("ready")["pid"]
            assert {child.pid for child in children(process)} == {second, new}
            for _ in range(3):
                assert client.get("/v1/model").status_code == 200
        assert process.popen.poll() is None


@pytest.mark.faults
def test_a_worker_that_is_stopped_is_replaced(folder):
    with running(folder, workers=2, hang_seconds=2) as (process, client):
        first, second = (child.pid for child in children(process))
        os.kill(first, signal.SIGSTOP)
        assert process.said("a worker hangs")["pid"] == first
        assert process.said("a worker ended")["pid"] == first
        new = process.said("ready")["pid"]
        assert {child.pid for child in children(process)} == {second, new}
        for _ in range(10):
            assert client.get("/v1/model", headers={"Connection": "close"}).status_code == 200


ENDLESS = """
import re
from relae.serve import _handlers
plain = _handlers.search
def search(snapshot, query):
    while query.q == "for ever":
        pass
    if query.q == "without the loop":  # holds the interpreter, so that nothing else runs in the process
        re.match(r"(a+)+$", "a" * 60 + "b")
    return plain(snapshot, query)
_handlers.search = search
"""


@pytest.mark.faults
def test_a_worker_with_an_endless_call_is_replaced(folder, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(ENDLESS)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    with running(folder, workers=2, hang_seconds=2, env={"PYTHONPATH": path}) as (process, client):
        for query in ("for ever", "without the loop"):
            before = {child.pid for child in children(process)}
            with pytest.raises(httpx.TransportError):
                client.get("/v1/items", params={"q": query})
            hanging = process.said("a worker hangs")["pid"]
            new = process.said("ready")["pid"]
            assert {child.pid for child in children(process)} == before - {hanging} | {new}
            assert client.get("/v1/items", params={"q": "star"}).status_code == 200


@pytest.mark.faults
def test_one_process_with_an_endless_call_can_be_stopped(folder, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(ENDLESS)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    with running(folder, hang_seconds=1, stop_seconds=1, env={"PYTHONPATH": path}) as (process, client):
        with socket.create_connection((client.base_url.host, client.base_url.port), timeout=60) as connection:
            connection.sendall(b"GET /v1/items?q=for+ever HTTP/1.1\r\nHost: localhost\r\n\r\n")
            until(lambda: client.get("/healthz").status_code == 503)
            process.tell(signal.SIGTERM)
            assert process.ended() == 1
        assert "stopped" in [line["event"] for line in process.rest()]


@pytest.mark.faults
def test_one_that_cannot_be_replaced_does_not_stop_the_others(model, tmp_path):
    path = tmp_path / "live"
    store.save(model, path)
    with running(path, workers=2) as (process, client):
        (path / "model.json").write_bytes(b"garbage")
        os.kill(children(process)[0].pid, signal.SIGKILL)
        for _ in range(2):
            assert "not JSON" in process.said("the worker cannot start")["reason"]
            assert client.post("/v1/recommend", json={"history": [7]}).status_code == 200
        (path / "model.json").unlink()  # a save does not replace what it does not know
        store.save(model, path)
        process.said("ready")
        assert len(children(process)) == 2


@pytest.mark.faults
def test_workers_end_with_their_supervisor(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # for what it cannot tidy up any more
    with running(folder, workers=2) as (process, _):
        workers = [child.pid for child in children(process)]
        process.popen.kill()
        assert process.ended() == -signal.SIGKILL
        until(lambda: not any(map(psutil.pid_exists, workers)))


def test_workers_that_cannot_start_are_given_up(folder):
    code = (
        "from relae.serve import Settings, run, _processes; _processes.sys.executable = '/bin/false'; "
        f"run(Settings(path={str(folder)!r}, port=0, workers=2))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "RelaeError: the workers end as soon as they start" in done.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stop_while_starting(folder, workers):
    process = Process(folder, workers=workers)
    process.said("listening")
    process.tell(signal.SIGTERM)
    assert process.ended() == 0
    assert process.rest()[-1]["event"] == "stopped"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_folder_without_a_model_is_said_at_once(tmp_path, workers):
    with pytest.raises(RelaeError, match="nothing-here"):
        run(Settings(path=tmp_path / "nothing-here", port=0, workers=workers))


def test_a_port_that_is_taken(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RelaeError, match=f"port {port}.*in use"):
            run(Settings(path=folder, port=port))
    with pytest.raises(RelaeError, match=r"no\.such\.host"):
        run(Settings(path=folder, host="no.such.host.invalid", port=0))


def test_an_open_address_without_a_key_and_the_dual_form_are_pointed_out(tmp_path):
    x = (np.random.default_rng(0).random((10, 30)) < 0.3).astype(np.float32)
    store.save(RDLAE(l2=5.0).fit(x, solver="dual"), tmp_path / "dual")
    with running(tmp_path / "dual", host="0.0.0.0") as (process, client):
        assert client.get("/healthz").status_code == 200
        assert any("set an API key" in line["event"] for line in process.lines)
        assert any("dual form" in line["event"] for line in process.lines)


def test_on_ipv6(folder):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("there is no IPv6 here")
    with running(folder, host="::1") as (_, client):
        assert client.get("/healthz").status_code == 200


def test_without_the_extra_the_way_to_it_is_named(folder):
    code = (
        "import sys; sys.modules['uvicorn'] = None; from relae.serve import Settings, run, create_app\n"
        "for start in (run, create_app):\n"
        "    try: start(Settings(path='x'))\n"
        "    except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["RelaeError uvicorn is not installed: pip install 'relae[serve]'"] * 2


@pytest.mark.faults
def test_a_damaged_cache_of_the_compiler_is_a_warning_and_the_service_comes_up(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    rank = "import numpy; from relae.linalg import top_k; top_k(numpy.ones((1, 3), numpy.float32), 2)"
    subprocess.run([sys.executable, "-c", rank], timeout=240, check=True)  # one kernel that a service needs
    kept = list(tmp_path.rglob("*.nbi"))
    assert kept
    for place in kept:
        place.write_bytes(b"")
    with running(folder, warnings="default") as (process, client):
        warned = [line for line in process.lines if line["level"] == "warning"]
        assert any(f"the compiled kernels in {tmp_path}" in line["event"] for line in warned)
        assert client.get("/readyz").status_code == 200


def test_settings_come_without_the_extra():
    code = "import sys; import relae.serve; assert not {'starlette', 'msgspec', 'uvicorn', 'numba'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)
