"""Unkind clients: `python -m tests.serve.attacks NAME PORT` attacks a service on this machine until it is ended.

They are programs of their own, so that they share no interpreter lock with the service or with whoever measures it.
Each prints one line when the attack is under way. A connection that the service closes is opened again.
"""

import json
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterator

ADDRESS = "127.0.0.1"
CONNECTIONS = 3_000  # more than a service keeps by default

COMMON = b"Host: localhost\r\nX-API-Key: secret\r\nConnection: close\r\n"
HEAD = b"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nX-API-Key: secret\r\n"


def announce() -> None:
    """Tell whoever started this that the attack is under way."""
    sys.stdout.write("under way\n")
    sys.stdout.flush()


def request(path: str, body: object) -> bytes:
    """Return a whole request with a body."""
    content = json.dumps(body, separators=(",", ":")).encode()
    assert len(content) <= 1 << 20, "more than a service takes"
    return b"POST %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n%b" % (path.encode(), COMMON, len(content), content)


def costly_batch() -> bytes:
    """Return a request for as many lists as are allowed, from as many items as fit into a megabyte."""
    histories = [list(range(at, at + 700)) for at in range(250)]
    return request("/v1/recommend/batch", {"histories": histories, "k": 200})


def costly_reasons() -> bytes:
    """Return a request for as many reasons as are allowed, from a long history."""
    return request("/v1/recommend", {"history": list(range(2_000)), "k": 1000, "explain": True})


def costly_lookups() -> bytes:
    """Return a request with many ids in `allow`, for a list at each of many item norms."""
    body = {"history": [1, 2, 3], "allow": list(range(20_000)), "item_norms": [0.5] * 101, "k": 490}
    return request("/v1/path", body)


def costly_search() -> bytes:
    """Return a search for as many words as fit, all of which are in most titles."""
    words = "+".join(["e", "t", "a", "o", "n", "i", "s", "r", "h", "l", "d"] * 22)
    return f"GET /v1/items?q={words} HTTP/1.1\r\n".encode() + COMMON + b"\r\n"


# --- connections that take up room -----------------------------------------------------------------------------------


def crowd(port: int, hello: bytes, drip: bytes = b"", count: int = CONNECTIONS) -> None:
    """Keep many connections open that say hello, then at most a little every second, and read nothing."""
    connections: list[socket.socket] = []
    announced = False
    while True:
        alive = []
        for connection in connections:
            try:
                if drip:
                    connection.send(drip)
                if connection.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) == b"":
                    raise ConnectionError
                alive.append(connection)
            except BlockingIOError:
                alive.append(connection)
            except OSError:
                connection.close()
        connections = alive
        while len(connections) < count:
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(5)
            try:
                connection.connect((ADDRESS, port))
                connection.sendall(hello)
            except OSError:
                connection.close()
                break
            connections.append(connection)
        if not announced:
            announce()
            announced = True
        time.sleep(1.0)


def silent(port: int) -> None:
    """Connect, and say nothing."""
    crowd(port, b"")


def slow_head(port: int) -> None:
    """Send a head that never ends, a letter at a time."""
    crowd(port, HEAD + b"X-Slow: ", b"a")


def slow_body(port: int) -> None:
    """Send a body that never ends, a letter at a time."""
    crowd(port, HEAD + b"Content-Length: 1000\r\n\r\n", b" ")


def unread(port: int) -> None:
    """Ask for large answers, and read none of them."""
    crowd(port, request("/v1/recommend", {"history": [1, 2], "k": 1000, "explain": True}), count=500)


# --- connections that send without end -------------------------------------------------------------------------------


def stream(port: int, hello: bytes, pieces: Callable[[], Iterator[bytes]], count: int = 4) -> None:
    """Send without end on a few connections, as fast as they take it; answers are read and thrown away."""
    selector = selectors.DefaultSelector()
    announce()
    while True:
        while len(selector.get_map()) < count:
            try:
                connection = socket.create_connection((ADDRESS, port), timeout=5)
                connection.sendall(hello)
            except OSError:
                time.sleep(0.05)
                continue
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, pieces())
        for key, events in selector.select(0.1):
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            try:
                if events & selectors.EVENT_READ and not connection.recv(1 << 16):
                    raise ConnectionError
                if events & selectors.EVENT_WRITE:
                    connection.send(next(key.data))
            except BlockingIOError:
                pass
            except OSError:
                selector.unregister(connection)
                connection.close()


def repeat(piece: bytes) -> Callable[[], Iterator[bytes]]:
    """Return a source of the same piece, again and again."""

    def pieces() -> Iterator[bytes]:
        while True:
            yield piece

    return pieces


def long_line(port: int) -> None:
    """Send a request line without end."""
    stream(port, b"GET /", repeat(b"a" * 1000))


def long_header(port: int) -> None:
    """Send one header without end."""
    stream(port, HEAD + b"X-Long: ", repeat(b"a" * 1000))


def many_headers(port: int) -> None:
    """Send headers without end."""
    stream(port, HEAD, repeat(b"A: b\r\n" * 10_000))


def trailers(port: int) -> None:
    """Send a trailer without end, after a body in chunks."""
    stream(port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nX-Long: ", repeat(b"a" * 1000))


def pipelined(port: int) -> None:
    """Send small requests without end, and wait for no answer."""
    stream(port, b"", repeat(b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5_000))


# --- work ------------------------------------------------------------------------------------------------------------


def abandoned(port: int) -> None:
    """Ask for costly answers, and leave."""
    asked = costly_batch()
    announce()
    while True:
        for _ in range(20):
            try:
                with socket.create_connection((ADDRESS, port), timeout=5) as connection:
                    connection.sendall(asked)
                    time.sleep(0.01)
            except OSError:
                pass
        time.sleep(0.5)


def costly(port: int) -> None:
    """Ask for costly answers on many connections at once, and wait for them."""
    selector = selectors.DefaultSelector()
    kinds = [costly_batch(), costly_reasons(), costly_lookups(), costly_search()]
    announce()
    asked = 0
    while True:
        while len(selector.get_map()) < 12:
            try:
                connection = socket.create_connection((ADDRESS, port), timeout=5)
                connection.sendall(kinds[asked % len(kinds)])
                asked += 1
                selector.register(connection, selectors.EVENT_READ)
            except OSError:
                time.sleep(0.05)
        for key, _ in selector.select(0.1):
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            try:
                if connection.recv(1 << 16):
                    continue
            except OSError:
                pass
            selector.unregister(connection)
            connection.close()


def reloads(port: int) -> None:
    """Ask for a reload on many connections, again and again."""
    stream(port, b"", repeat(request("/v1/reload", {})), count=8)


ATTACKS = {
    attack.__name__: attack
    for attack in (
        silent,
        slow_head,
        slow_body,
        unread,
        long_line,
        long_header,
        many_headers,
        trailers,
        pipelined,
        abandoned,
        costly,
        reloads,
    )
}

if __name__ == "__main__":
    ATTACKS[sys.argv[1]](int(sys.argv[2]))
