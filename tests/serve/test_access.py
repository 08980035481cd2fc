"""Who may ask, from where, and what the page may do."""

import asyncio
import re
import socket

import pytest

from relae.serve import Settings
from relae.serve._middleware import LimitHosts
from tests.serve.running import serving
from tests.serve.test_refusals import refused

KEY = "kéy with spaces"
ORIGIN = "https://shop.example"


@pytest.fixture(scope="module")
def locked(folder):
    with serving(folder, api_key=KEY, cors=(ORIGIN,)) as client:
        yield client


EVERYTHING = [
    ("POST", "/v1/recommend"),
    ("POST", "/v1/recommend/batch"),
    ("POST", "/v1/path"),
    ("POST", "/v1/explain"),
    ("GET", "/v1/items"),
    ("GET", "/v1/items/7"),
    ("GET", "/v1/similar/7"),
    ("GET", "/v1/model"),
    ("POST", "/v1/reload"),
]


@pytest.mark.parametrize(("method", "path"), EVERYTHING)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-API-Key": "wrong"},
        {"X-API-Key": ""},
        {"X-API-Key": KEY.encode()[:-1]},
        {"X-API-Key": b"\xff\xfe"},
        {"Authorization": KEY.encode()},
        {"Authorization": b"Basic " + KEY.encode()},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer wrong", "X-API-Key": KEY.encode()},
    ],
    ids=str,
)
def test_without_the_key_nothing_is_answered(locked, method, path, headers):
    answer = locked.request(method, path, headers=headers, json={"history": [7]} if method == "POST" else None)
    assert "Authorization: Bearer" in refused(answer, 401)["message"]
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "headers",
    [
        {"X-API-Key": KEY.encode()},
        {"Authorization": b"Bearer " + KEY.encode()},
        {"Authorization": b"bearer  " + KEY.encode()},
        {"Authorization": b"Basic xyz", "X-API-Key": KEY.encode()},
    ],
    ids=str,
)
def test_with_the_key_all_is_answered(locked, headers):
    assert locked.get("/v1/model", headers=headers).status_code == 200
    assert locked.post("/v1/recommend", headers=headers, json={"history": [7]}).status_code == 200


def test_the_list_of_questions_is_complete(locked):
    paths = locked.get("/openapi.json").json()["paths"]
    told = {(method.upper(), path) for path, methods in paths.items() for method in methods if path.startswith("/v1")}
    assert told == {(method, path.replace("/7", "/{item}")) for method, path in EVERYTHING}


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/metrics", "/openapi.json"])
def test_some_things_are_open(locked, path):
    assert locked.get(path).status_code == 200


def test_the_key_is_told_nowhere(locked, folder):
    assert KEY not in repr(Settings(path=folder, api_key=KEY))
    for path in ("/openapi.json", "/metrics"):
        assert KEY not in locked.get(path).text


def test_the_schema_tells_of_the_key(client, locked):
    schema = locked.get("/openapi.json").json()
    assert set(schema["components"]["securitySchemes"]) == {"bearer", "header"}
    assert schema["paths"]["/v1/model"]["get"]["security"] == [{"bearer": []}, {"header": []}]
    assert "securitySchemes" not in client.get("/openapi.json").json()["components"]


def test_a_reload_needs_a_key(client):
    assert "SIGHUP" in refused(client.post("/v1/reload"), 403)["message"]


# --- names of the service --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8000",
        "relae.localhost",
        "localhost.",
        "127.0.0.1:1",
        "[::1]:8000",
        "[::1]",
        "192.168.1.7",
    ],
)
def test_over_loopback_it_answers_to_local_names(client, host):
    for path in ("/", "/healthz", "/v1/model"):
        assert client.get(path, headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", ""]
)
@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/metrics", "/openapi.json", "/v1/model", "/v1/recommend", "/nowhere"]
)
def test_over_loopback_it_answers_to_no_others(client, host, path):
    answer = client.request("POST" if "recommend" in path else "GET", path, headers={"Host": host})
    assert "--allowed-host" in refused(answer, 421)["message"]


def test_a_second_name_does_not_help(client):
    with socket.create_connection((client.base_url.host, client.base_url.port), timeout=60) as connection:
        connection.sendall(b"GET /v1/model HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 421")


def test_names_that_are_allowed(folder):
    with serving(folder, allowed_hosts=("recommend.example",)) as client:
        for host, status in (("Recommend.Example:443", 200), ("localhost", 200), ("evil.example", 421)):
            assert client.get("/v1/model", headers={"Host": host}).status_code == status
    with serving(folder, allowed_hosts=("*",)) as client:
        assert client.get("/v1/model", headers={"Host": "evil.example"}).status_code == 200
    with serving(folder, host="my-machine") as client:
        assert client.get("/v1/model", headers={"Host": "my-machine:8000"}).status_code == 200


def test_from_elsewhere_it_answers_to_all_names_unless_told(folder):
    async def asked(allowed, server):
        async def app(scope, receive, send):
            passed.append(scope)

        async def send(message):
            sent.append(message.get("status"))

        passed, sent = [], []
        scope = {"type": "http", "headers": [(b"host", b"shop.example")], "server": server}
        await LimitHosts(app, "0.0.0.0", allowed)(scope, None, send)
        return len(passed), sent[:1]

    for allowed, server, expected in (
        ((), ("10.0.0.7", 8000), (1, [])),
        ((), ("/run/relae.sock", None), (1, [])),
        ((), None, (1, [])),
        ((), ("127.0.0.1", 8000), (0, [421])),
        ((), ("::1", 8000), (0, [421])),
        (("recommend.example",), ("10.0.0.7", 8000), (0, [421])),
        (("shop.example",), ("10.0.0.7", 8000), (1, [])),
    ):
        assert asyncio.run(asked(allowed, server)) == expected, (allowed, server)


# --- other origins ---------------------------------------------------------------------------------------------------

PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}


def test_no_cors_unless_asked_for(client):
    for answer in (
        client.get("/v1/model", headers={"Origin": ORIGIN}),
        client.options("/v1/recommend", headers={"Origin": ORIGIN, **PREFLIGHT}),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.status_code == 405


def test_cors_for_the_origins_that_were_named(locked):
    answer = locked.options("/v1/recommend", headers={"Origin": ORIGIN, **PREFLIGHT})  # browsers send no key with it
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == ORIGIN
    assert "authorization" in answer.headers["access-control-allow-headers"].lower()
    key = {"X-API-Key": KEY.encode()}
    assert locked.get("/v1/model", headers={"Origin": ORIGIN, **key}).headers["access-control-allow-origin"] == ORIGIN
    assert locked.get("/v1/model", headers={"Origin": ORIGIN}).headers["access-control-allow-origin"] == ORIGIN  # 401
    other = {"Origin": "https://elsewhere.example"}
    assert "access-control-allow-origin" not in locked.get("/v1/model", headers={**other, **key}).headers
    assert locked.options("/v1/recommend", headers={**other, **PREFLIGHT}).status_code == 400


# --- the page --------------------------------------------------------------------------------------------------------


def test_the_page_may_only_talk_to_its_own_service(client):
    page = client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["x-content-type-options"] == "nosniff"


def test_what_the_page_loads_is_there(client):
    text = client.get("/").text
    names = re.findall(r'(?:src|href)="/?(static/[^"]+)"', text)
    assert names
    for name in names:
        answer = client.get(f"/{name}")
        assert answer.status_code == 200
        kind = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}[name.rpartition(".")[2]]
        assert answer.headers["content-type"].startswith(kind)
        again = client.get(f"/{name}", headers={"If-None-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


def test_head_requests(client):
    for path in ("/", "/healthz", "/readyz"):
        answer = client.head(path)
        assert (answer.status_code, answer.content) == (200, b"")


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"port": 70_000}, "port"),
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"max_k": 0}, "max_k"),
        ({"max_waiting": -1}, "max_waiting"),
        ({"threads": 0}, "threads"),
        ({"api_key": "  "}, "empty"),
        ({"cors": ("shop.example",)}, "https://shop.example"),
        ({"cors": ("https://shop.example/",)}, "origin"),
        ({"stop_seconds": -1}, "stop_seconds"),
        ({"client_seconds": 0}, "client_seconds"),
        ({"wait_seconds": 0}, "wait_seconds"),
        ({"hang_seconds": 0}, "hang_seconds"),
        ({"allowed_hosts": ("https://shop.example",)}, "without scheme and port"),
        ({"allowed_hosts": ("",)}, "allowed host"),
    ],
)
def test_settings_are_checked(wrong, words):
    with pytest.raises(ValueError, match=words):
        Settings(path="model", **wrong)
