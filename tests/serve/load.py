"""Clients that measure: health checks at fixed moments, and requests without a pause of which none may be lost."""

import asyncio
import json
import random
import socket
import threading
import time
from collections import Counter

import numpy as np

GET_HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Probe:
    """Health checks on new connections at fixed moments, however long the earlier ones take, so that none hides a wait.

    Each counts from the moment at which it was due. One that fails counts as `inf`.
    """

    def __init__(self, port, *, every=0.02):
        self._port, self._every = port, every
        self.seconds: list[float] = []

    def run(self, seconds):
        """Probe for a while, and return this probe."""
        asyncio.run(self._run(seconds))
        return self

    async def _run(self, seconds):
        loop = asyncio.get_running_loop()
        start, tasks = loop.time(), []
        for number in range(round(seconds / self._every)):
            due = start + number * self._every
            await asyncio.sleep(due - loop.time())
            tasks.append(loop.create_task(self._ask(loop.time())))
        await asyncio.gather(*tasks)

    async def _ask(self, due):
        answer = b""
        try:
            async with asyncio.timeout(30):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                writer.write(GET_HEALTH)
                answer = await reader.read()
                writer.close()
        except (OSError, TimeoutError):
            pass
        waited = asyncio.get_running_loop().time() - due
        self.seconds.append(waited if answer.startswith(b"HTTP/1.1 200") else float("inf"))

    def percentile(self, q):
        return float(np.percentile(self.seconds, q, method="higher"))

    def __str__(self):
        p50, p95, p99, most = (1000 * self.percentile(q) for q in (50, 95, 99, 100))
        return f"{len(self.seconds)} checks: p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms, max {most:.1f} ms"


class Load:
    """Threads that ask without a pause, each on a connection that it keeps or renews, and count what comes back.

    A request is lost if it was sent, even in part, and the connection ended without its whole answer. One whose
    connection was refused was not sent. To find the port closed is no loss either: it is asked again a moment later.
    """

    def __init__(self, port, body, *, threads=4, headers="", timeout=60):
        content = json.dumps(body).encode()
        head = f"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {len(content)}\r\n"
        self._request = {
            kept: (head + ("" if kept else "Connection: close\r\n") + "\r\n").encode() + content
            for kept in (True, False)
        }
        self._port, self._timeout = port, timeout
        self.answers: Counter[int] = Counter()
        self.refused, self.lost, self.bodies = 0, [], set()
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(threads)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def answered(self):
        return sum(self.answers.values())

    def _ask(self, number):
        choice = random.Random(number)
        connection = None
        while not self._stop.is_set():
            if connection is None:
                try:
                    connection = socket.create_connection(("127.0.0.1", self._port), timeout=self._timeout)
                except ConnectionRefusedError:
                    self.refused += 1
                    time.sleep(0.01)
                    continue
                except OSError as error:
                    self.lost.append(repr(error))
                    continue
            kept = choice.random() < 0.9
            try:
                connection.sendall(self._request[kept])
                status, closes, body = read_answer(connection)
            except (OSError, ValueError) as error:
                self.lost.append(repr(error))
                closes = True
            else:
                with self._lock:
                    self.answers[status] += 1
                    self.bodies.add(body)
            if closes or not kept:
                connection.close()
                connection = None
        if connection is not None:
            connection.close()


def read_answer(connection):
    """Return the status of an answer, whether it ends the connection, and its body."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += _some(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:"))
    while len(body) < length:
        body += _some(connection)
    return int(lines[0].split()[1]), b"connection: close" in lines, body


def _some(connection):
    piece = connection.recv(1 << 16)
    if not piece:
        raise ConnectionError("the connection ended before the answer did")
    return piece
