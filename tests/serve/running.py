"""A service on a real socket: in a thread of its own, or in processes of its own."""

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import asdict, replace
from unittest.mock import patch

import httpx
import uvicorn

from relae.serve import Settings, create_app
from relae.serve._snapshot import Snapshot
from relae.store import open_model

PATIENCE = 60  # seconds; nothing takes so long unless it fails

RUN = "import json, sys; from relae.serve import Settings, run; run(Settings(**json.loads(sys.argv[1])))"


@contextmanager
def serving(path, *, wait=True, **settings):
    """Run the application in a thread until it is ready, and return a client of it."""
    app = create_app(Settings(path=path, **settings))
    server = uvicorn.Server(uvicorn.Config(app, ws="none", log_config=None, lifespan="on"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            with httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as client:
                if wait:
                    until(lambda: answers(client, "/readyz"))
                yield client
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def serving_another(model, folder, **settings):
    """Serve a model in the place of the one in a folder that was fitted to the same data."""
    saved = open_model(folder)
    told = {"model": type(model).__name__, "parameters": model.get_params()}
    found = replace(saved, model=model, info={**saved.info, **told})
    with (
        patch.object(Snapshot, "open", lambda settings: Snapshot(found, settings)),
        serving(folder, **settings) as client,
    ):
        yield client


class Process:
    """`run(settings)` as a program: what it says on stderr, and what becomes of it."""

    def __init__(self, path, warnings="error", env=None, **settings):
        told = asdict(Settings(path=path, **{"port": 0} | settings)) | {"path": str(path)}
        self.lines: list[dict] = []
        self._arrived: queue.SimpleQueue = queue.SimpleQueue()
        self.popen = subprocess.Popen(
            [sys.executable, "-W", warnings, "-c", RUN, json.dumps(told)],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | (env or {}),
        )
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        with self.popen.stderr as stderr:
            for line in stderr:
                self._arrived.put(line)

    def said(self, event):
        """Wait for a line about an event that is not yet waited for."""
        deadline = time.monotonic() + PATIENCE
        while True:
            line = self._arrived.get(timeout=max(0.01, deadline - time.monotonic()))
            found = json.loads(line)  # every line is JSON
            self.lines.append(found)
            if found["event"].startswith(event):
                return found

    def rest(self):
        """Return the lines that nobody waited for, once it has ended."""
        self.reader.join()
        while not self._arrived.empty():
            self.lines.append(json.loads(self._arrived.get()))
        return self.lines

    def tell(self, sig):
        os.kill(self.popen.pid, sig)

    def ended(self):
        """Wait for its end, and return the exit code."""
        return self.popen.wait(PATIENCE)


@contextmanager
def running(path, **settings):
    """Run a service as a program until it is ready; return it with a client."""
    process = Process(path, **settings)
    try:
        url = process.said("listening")["url"]
        for _ in range(settings.get("workers", 1)):
            process.said("ready")
        with httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as client:
            yield process, client
    finally:
        if process.popen.poll() is None:
            process.tell(signal.SIGTERM)
        try:
            process.ended()
        except subprocess.TimeoutExpired:
            process.popen.kill()
            process.ended()
            raise
        finally:
            process.reader.join()


def until(condition):
    """Wait for something to be true."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)


def answers(client, path="/healthz"):
    """Tell whether a service is there."""
    try:
        return client.get(path).status_code == 200
    except httpx.TransportError:
        return False


def ask(client, path="recommend", status=200, **question):
    """Return the answer to a question as JSON, which must have this status."""
    answer = client.post(f"/v1/{path}", json=question)
    assert answer.status_code == status, answer.text
    return answer.json()
