"""What a client may send before it is understood, how long it may take, and how many there may be."""

import json
import socket
import subprocess
import sys
import time

import pytest

from relae.serve import Settings
from relae.serve._connections import MAX_HEAD, MAX_HEADERS
from tests.serve.load import read_answer
from tests.serve.running import running

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\n"
BODY = json.dumps({"history": [7, 37]}).encode()


@pytest.fixture(scope="module")
def port(folder):
    """A service with the usual limits."""
    with running(folder, log=False) as (_, client):
        yield client.base_url.port


@pytest.fixture(scope="module")
def hasty(folder):
    """A service that gives its clients one second, and has room for twelve."""
    with running(folder, client_seconds=1, max_connections=12, max_waiting=6) as (_, client):
        yield client.base_url.port


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def rest(connection):
    """Everything until the other side closes, or resets."""
    received = b""
    try:
        while piece := connection.recv(1 << 16):
            received += piece
    except ConnectionResetError:
        pass
    return received


def exchange(port, sent):
    with connect(port) as connection:
        connection.sendall(sent)
        return rest(connection)


def status(answer):
    return int(answer.split()[1]) if answer else None


def refusal(answer, code):
    """The message of an answer that has the one shape of errors."""
    assert status(answer) == code, answer[:200]
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head
    assert b"connection: close" in head
    return json.loads(body)["error"]["message"]


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"a" * (MAX_HEAD + 1) + b" HTTP/1.1\r\n\r\n",
        b"GET /" + b"a" * 200_000,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * (MAX_HEAD + 1) + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 500_000,
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * (MAX_HEADERS + 1) + b"\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nX-Trailer: " + b"a" * 600_000,
        POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n" + b"A: b\r\n" * (MAX_HEADERS + 1),
    ],
    ids=["line", "endless line", "header", "endless header", "headers", "endless trailer", "trailers"],
)
def test_heads_that_are_too_long(port, sent):
    assert "send" in refusal(exchange(port, sent), 431)
    assert status(exchange(port, GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))) == 200


def test_heads_of_a_length_that_is_allowed(port):
    close = b"Connection: close\r\n"
    sent = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + close + b"X: " + b"a" * (MAX_HEAD - 100) + b"\r\n\r\n"
    assert status(exchange(port, sent)) == 200
    many = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + close + b"A: b\r\n" * (MAX_HEADERS - 2) + b"\r\n"
    assert status(exchange(port, many)) == 200


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01\x00", b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"])
def test_what_is_not_http(port, sent):
    assert "HTTP" in refusal(exchange(port, sent), 400)


def test_a_request_for_another_protocol_is_answered_in_http(port):
    sent = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    with connect(port) as connection:
        connection.sendall(sent)
        assert read_answer(connection)[0] == 200


@pytest.mark.parametrize("size", [len(BODY), 60_000, 70_000, 1_000_000])
@pytest.mark.parametrize("chunked", [False, True], ids=["whole", "chunked"])
@pytest.mark.parametrize("expect", [False, True], ids=["at once", "when asked for"])
def test_bodies_of_all_lengths(port, size, chunked, expect):
    body = BODY.ljust(size)
    head = POST + b"Connection: close\r\n" + (b"Expect: 100-continue\r\n" if expect else b"")
    if chunked:
        head += b"Transfer-Encoding: chunked\r\n\r\n"
        pieces = [body[at : at + 7_000] for at in range(0, len(body), 7_000)]
        body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    else:
        head += b"Content-Length: %d\r\n\r\n" % len(body)
    with connect(port) as connection:
        connection.sendall(head)
        if expect:
            assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert status(rest(connection)) == 200


def test_chunks_of_one_byte(port):
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY.ljust(50_000)) + b"0\r\n\r\n"
    assert status(exchange(port, POST + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)) == 200


def test_some_requests_at_once_are_answered_in_their_order(port):
    with connect(port) as connection:
        paths = [b"/healthz", b"/nowhere", b"/readyz", b"/v1/items/7", b"/v1/items/8"]
        close = [b"Connection: close\r\n" if path == paths[-1] else b"" for path in paths]
        connection.sendall(
            b"".join(b"GET %b HTTP/1.1\r\nHost: localhost\r\n%b\r\n" % pair for pair in zip(paths, close, strict=True))
        )
        lines = [line for line in rest(connection).split(b"\r\n") if b"HTTP/1.1 " in line]
    assert [int(line.split(b"HTTP/1.1 ")[1][:3]) for line in lines] == [200, 404, 200, 200, 404]


def test_too_many_requests_at_once_end_the_connection(port):
    started = time.monotonic()
    with connect(port) as connection:
        try:
            connection.sendall(GET * 100_000)
        except OSError:
            pass
        else:
            rest(connection)
    assert time.monotonic() - started < 20


# --- time ------------------------------------------------------------------------------------------------------------


def test_a_slow_head(hasty):
    with connect(hasty) as connection:
        connection.sendall(POST + b"X-Slow: ")
        started = time.monotonic()
        answer = b""
        connection.settimeout(0.2)
        while not answer:  # a letter now and then does not help
            connection.send(b"a")
            try:
                answer = connection.recv(1000)
            except TimeoutError:
                assert time.monotonic() - started < 20
    assert "1 seconds" in refusal(answer, 408)


def test_a_slow_body(hasty):
    with connect(hasty) as connection:
        connection.sendall(POST + b"Content-Length: 100\r\n\r\n{")
        assert "send it again" in refusal(rest(connection), 408)


def test_a_silent_connection(hasty):
    with connect(hasty) as connection:
        started = time.monotonic()
        assert rest(connection) == b""
        assert time.monotonic() - started < 20


def test_an_idle_connection_is_kept(hasty):
    with connect(hasty) as connection:
        for _ in range(2):
            connection.sendall(GET)
            assert read_answer(connection)[0] == 200
            time.sleep(1.5)


def test_an_answer_that_is_not_read(folder):
    # larger than what the system itself holds for a connection
    with running(folder, client_seconds=1, max_batch=2_000, max_results=80_000) as (process, client):
        content = json.dumps({"histories": [[7]] * 2_000, "k": 40}).encode()
        asked = b"POST /v1/recommend/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(content)
        connections = []
        for _ in range(2):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", client.base_url.port))
            connection.sendall(asked + content)
            connections.append(connection)
        assert process.said("connections closed")["too_slow"] >= 1
        assert client.get("/healthz").status_code == 200
        for connection in connections:
            connection.close()


# --- number ----------------------------------------------------------------------------------------------------------


def test_silent_connections_keep_nobody_out(hasty):
    with connect(hasty) as known:
        known.sendall(GET)
        assert read_answer(known)[0] == 200
        crowd = []
        try:
            for _ in range(50):
                crowd.append(connect(hasty))
                with connect(hasty) as connection:  # one that speaks is answered, however many are silent
                    connection.sendall(GET)
                    assert read_answer(connection)[0] == 200
            known.sendall(GET)  # one that was answered before stays rather than those who never said a word
            assert read_answer(known)[0] == 200
        finally:
            for connection in crowd:
                connection.close()


def test_no_more_connections_than_there_may_be_files():
    code = (
        "from relae.serve import Settings; from relae.serve._listening import fit_to_system; "
        "from relae.serve._log import configure; configure(); "
        "found = fit_to_system(Settings(path='m')); print(found.max_connections, found.max_waiting)"
    )
    for limits, expected in (("ulimit -n 400", "272 136"), ("ulimit -S -n 400", "2000 1000")):
        command = ["bash", "-c", f'{limits}; exec "$@"', "-", sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.strip() == expected
        assert ("ulimit -n" in done.stderr) == (limits == "ulimit -n 400")


def test_there_is_always_room_beside_those_who_wait():
    with pytest.raises(ValueError, match="max_connections must be larger than max_waiting"):
        Settings(path="m", max_waiting=2_000)
