"""What cannot be answered is refused: a 4xx in one shape, with a message that names the value and the way out."""

import json
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relae._common.checks import check_whole
from relae.serve import _handlers
from relae.serve._problem import show_value
from tests.effort import repeat
from tests.serve.running import serving, until

DIALS = ("xi", "item_norm", "propensity")
POSTS = ("/v1/recommend", "/v1/recommend/batch", "/v1/path", "/v1/explain")


def refused(answer, status=422):
    """The error of an answer that has the one shape."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert list(body) == ["error"]
    assert set(body["error"]) == {"message", "field"}
    assert body["error"]["message"]
    return body["error"]


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ("", None, "not valid JSON"),
        ('{"history": [7', None, "not valid JSON"),
        ('{"history": [7]} and more', None, "trailing"),
        ('{"history": [NaN]}', None, "not valid JSON"),
        ('{"history": ["\\ud800"]}', None, "not valid JSON"),
        ("[" * 5000, None, "recursion"),
        ("[]", None, 'such as {"history"'),
        ("null", None, "got null"),
        ("{}", "history", "neither history nor user is given"),
        ('{"history": null}', "history", "neither"),
        ('{"history": [7], "user": 1000}', "history", "both history and user are given"),
        ('{"history": [7], "K": 5}', None, 'no field "K"'),
        ('{"history": 7}', "history", "list of ids"),
        ('{"history": "7"}', "history", 'got "7"'),
        ('{"history": [7, 2.5]}', "history", "history[1] must be an id"),
        ('{"history": [true]}', "history", "got true"),
        ('{"history": [null]}', "history", "got null"),
        ('{"history": [[7]]}', "history", "got [7]"),
        ('{"history": {"7": "1"}}', "history", 'weight of item "7"'),
        ('{"history": {"7": -1}}', "history", "got -1"),
        ('{"history": {"7": 1e999}}', "history", "Infinity"),
        ('{"history": {"7": 1e10}}', "history", "1,000,000,000"),
        ('{"history": {"7": true}}', "history", "got true"),
        ('{"user": [1000]}', "user", "must be an id"),
        ('{"user": 1000.5}', "user", "got 1000.5"),
        ('{"history": [7], "k": 0}', "k", "from 1 to 1,000, got 0"),
        ('{"history": [7], "k": 1001}', "k", "got 1001"),
        ('{"history": [7], "k": 1e300}', "k", "whole number"),
        ('{"history": [7], "k": "10"}', "k", 'got "10"'),
        ('{"history": [7], "k": true}', "k", "got true"),
        ('{"history": [7], "xi": 1.01}', "xi", "between 0 and 1, got 1.01"),
        ('{"history": [7], "xi": -1e-9}', "xi", "between 0 and 1"),
        ('{"history": [7], "xi": "0.5"}', "xi", "between 0 and 1"),
        ('{"history": [7], "xi": true}', "xi", "got true"),
        ('{"history": [7], "item_norm": 2.01}', "item_norm", "between -1 and 2, got 2.01"),
        ('{"history": [7], "item_norm": "rare"}', "item_norm", "between -1 and 2"),
        ('{"history": [7], "propensity": -1.01}', "propensity", "got -1.01"),
        ('{"history": [7], "propensity": true}', "propensity", "got true"),
        ('{"history": [7], "allow": 7}', "allow", "list of ids"),
        ('{"history": [7], "deny": [7, {}]}', "deny", "deny[1] must be an id"),
        ('{"history": [7], "exclude_seen": 0}', "exclude_seen", "true or false"),
        ('{"history": [7], "explain": "yes"}', "explain", "true or false"),
    ],
)
def test_a_refusal_says_why(client, body, field, words):
    error = refused(client.post("/v1/recommend", content=body))
    assert error["field"] == field
    assert words in error["message"]


@pytest.mark.parametrize(
    ("path", "body", "field", "words"),
    [
        ("recommend/batch", {}, "histories", "neither"),
        ("recommend/batch", {"histories": [[7]], "users": [1000]}, "histories", "both"),
        ("recommend/batch", {"histories": {"7": 1}}, "histories", "list of histories"),
        ("recommend/batch", {"histories": [[7], 7]}, "histories", "histories[1]"),
        ("recommend/batch", {"histories": [[7], [7, None]]}, "histories", "histories[1][1]"),
        ("recommend/batch", {"histories": [[7]] * 257}, "histories", "257 entries, and at most 256"),
        ("recommend/batch", {"users": 1000}, "users", "list of ids"),
        ("path", {"history": [7], "xis": []}, "xis", "list of numbers"),
        ("path", {"history": [7], "xis": [0.5, 2]}, "xis", "got 2"),
        ("path", {"history": [7], "xis": 0.5}, "xis", "list of numbers"),
        ("path", {"history": [7], "xis": [0.5] * 102}, "xis", "at most 101"),
        ("path", {"history": [7], "xi": 0.5}, "xi", "give item_norms"),
        ("path", {"history": [7], "xi": 0.5, "xis": [0.5]}, "xi", "takes no xi"),
        ("path", {"history": [7], "item_norms": []}, "item_norms", "from -1 to 2"),
        ("path", {"history": [7], "item_norms": [0, 3]}, "item_norms", "got 3"),
        ("path", {"history": [7], "item_norms": [0] * 102}, "item_norms", "at most 101"),
        ("path", {"history": [7], "item_norms": [0], "xis": [0]}, "xis", "leave one of them out"),
        ("path", {"history": [7], "item_norms": [0], "item_norm": 0}, "item_norm", "leave one of them out"),
        ("path", {"history": [7], "explain": True}, None, 'no field "explain"'),
        ("explain", {"history": [7]}, "item", "missing"),
        ("explain", {"history": [7], "item": {}}, "item", "must be an id"),
        ("explain", {"history": [7], "item": 7, "k": 5}, None, 'no field "k"'),
    ],
)
def test_the_other_questions_are_checked_too(client, path, body, field, words):
    error = refused(client.post(f"/v1/{path}", json=body))
    assert error["field"] == field
    assert words in error["message"]


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/items?limit=0", "limit"),
        ("/v1/items?limit=1001", "limit"),
        ("/v1/items?limit=ten", "limit"),
        ("/v1/items?limit=" + "9" * 5000, "limit"),
        ("/v1/items?q=" + "x" * 501, "q"),
        ("/v1/similar/7?k=-1", "k"),
        ("/v1/similar/7?k=1.0", "k"),
        ("/v1/similar/7?k=٣", "k"),
        ("/v1/similar/7?k=", "k"),
    ],
)
def test_queries_are_checked(client, path, field):
    assert refused(client.get(path))["field"] == field


def test_norms_reach_as_far_as_the_models_do(model, client):
    for name in ("item_norm", "propensity"):
        for end, beyond in ((-1, -1.001), (2, 2.001)):
            assert client.post("/v1/recommend", json={"history": [7], name: end}).status_code == 200
            assert refused(client.post("/v1/recommend", json={"history": [7], name: beyond}))["field"] == name
            model.with_dials(**{name: end})
            with pytest.raises(ValueError, match=name):
                model.with_dials(**{name: beyond})


def test_what_is_not_there(client, odd_client):
    assert refused(client.get("/v1/items/8"), 404)["message"].startswith('item "8" is unknown')
    assert refused(client.get("/v1/items/"), 404)["field"] == "item"
    assert refused(client.get("/v1/similar/nope"), 404)["field"] == "item"
    assert refused(client.post("/v1/explain", json={"history": [7], "item": 8}), 404)["field"] == "item"
    assert "999" in refused(client.post("/v1/recommend", json={"user": 999}), 404)["message"]
    error = refused(client.post("/v1/recommend/batch", json={"users": [1000, "nobody"]}), 404)
    assert error["field"] == "users"
    assert 'users[1]: user "nobody"' in error["message"]
    assert "without its users" in refused(odd_client.post("/v1/recommend", json={"user": 1000}))["message"]


def test_places_and_methods_that_are_not_there(client):
    assert "/nowhere" in refused(client.get("/nowhere"), 404)["message"]
    assert refused(client.get("/v1/"), 404)
    assert refused(client.get("/static/../_app.py"), 404)
    for path, method, allowed in (("/v1/model", "DELETE", "GET"), ("/v1/recommend", "GET", "POST")):
        answer = client.request(method, path)
        assert method in refused(answer, 405)["message"]
        assert answer.headers["allow"] == allowed
    for path in ("/docs", "/redoc"):
        assert refused(client.get(path), 404)  # they would load from another host


def test_limits_are_those_of_the_settings(folder):
    limits = {"max_history": 3, "max_k": 5, "max_batch": 2, "max_ids": 4, "max_xis": 2, "max_results": 6}
    limits |= {"max_explained": 3}
    with serving(folder, **limits) as client:
        told = client.get("/v1/model").json()["limits"]
        assert told | {"body_bytes": 0} == {name.removeprefix("max_"): most for name, most in limits.items()} | {
            "body_bytes": 0
        }
        for path, good, bad, field in (
            ("recommend", {"history": [7] * 3}, {"history": [7] * 4}, "history"),
            ("recommend", {"history": {"7": 1}}, {"history": dict.fromkeys("abcd", 1)}, "history"),
            ("recommend", {"history": [], "k": 5}, {"history": [], "k": 6}, "k"),
            ("recommend", {"history": [], "deny": [7] * 4}, {"history": [], "deny": [7] * 5}, "deny"),
            ("recommend", {"history": [], "allow": [7] * 4}, {"history": [], "allow": [7] * 5}, "allow"),
            ("recommend/batch", {"histories": [[], []], "k": 3}, {"histories": [[], [], []], "k": 1}, "histories"),
            ("recommend/batch", {"users": [1000, 1001], "k": 3}, {"users": [1000] * 3, "k": 1}, "users"),
            ("path", {"history": [7], "xis": [0, 1], "k": 3}, {"history": [7], "xis": [0, 0, 1], "k": 1}, "xis"),
        ):
            assert client.post(f"/v1/{path}", json=good).status_code == 200
            assert refused(client.post(f"/v1/{path}", json=bad))["field"] == field
        # each of the values is allowed, and their product is more than one answer holds
        explained = {"history": [7], "explain": True}
        for path, good, bad, field in (
            ("recommend/batch", {"histories": [[], []], "k": 3}, {"histories": [[], []], "k": 4}, "k"),
            ("recommend", explained | {"k": 3}, explained | {"k": 4}, "explain"),
            ("path", {"history": [7], "xis": [0, 1], "k": 3}, {"history": [7], "xis": [0, 1], "k": 4}, "k"),
            ("path", {"history": [7], "item_norms": [0], "k": 5}, {"history": [7], "item_norms": [0, 1], "k": 4}, "k"),
        ):
            assert client.post(f"/v1/{path}", json=good).status_code == 200
            assert refused(client.post(f"/v1/{path}", json=bad), 413)["field"] == field
        assert refused(client.get("/v1/items?limit=6"))["field"] == "limit"
        assert client.post("/v1/recommend", json={"history": [7]}).json()["k"] == 5  # 10 would be too many


def test_bodies_that_are_too_large(folder):
    with serving(folder, max_body_bytes=2000) as client:
        fits = json.dumps({"history": [7]}).ljust(2000)
        assert client.post("/v1/recommend", content=fits).status_code == 200
        for body in (fits + " ", "x" * 10_000_000):
            assert "2,000 bytes" in refused(client.post("/v1/recommend", content=body), 413)["message"]
            pieces = (body[at : at + 65_536].encode() for at in range(0, len(body), 65_536))
            refused(client.post("/v1/recommend", content=pieces), 413)  # chunked: no length is declared
            assert client.post("/v1/recommend", content=fits).status_code == 200  # on the same connection


def test_too_many_at_once_are_turned_away(folder, monkeypatch):
    go_on, plain = threading.Event(), _handlers.search

    def slow(*args):
        assert go_on.wait(60)
        return plain(*args)

    monkeypatch.setattr(_handlers, "search", slow)
    with serving(folder, max_waiting=2) as client:
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(client.get("/v1/items"))) for _ in range(5)]
        for thread in threads:
            thread.start()
        until(lambda: len(answers) == 3)
        assert client.get("/healthz").status_code == 200  # the loop itself is free
        go_on.set()
        for thread in threads:
            thread.join()
    assert sorted(answer.status_code for answer in answers) == [200, 200, 503, 503, 503]
    turned_away = next(answer for answer in answers if answer.status_code == 503)
    assert turned_away.headers["retry-after"] == "1"
    refused(turned_away, 503)


# --- whatever is sent ------------------------------------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
not_ids = st.none() | st.booleans() | st.floats().filter(lambda x: x != x or x % 1) | st.lists(scalars, max_size=2)
not_a_list = st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.dictionaries(st.text(), st.none())
not_norms = st.booleans() | st.floats(max_value=-1.001) | st.floats(min_value=2.001) | st.text(max_size=5)
wrong = {
    "history": st.booleans()
    | st.integers()
    | st.text(max_size=9)
    | st.lists(not_ids, min_size=1, max_size=3)
    | st.dictionaries(st.text(max_size=3), st.floats(max_value=-0.001) | st.text() | st.none(), min_size=1, max_size=3),
    "user": not_ids.filter(lambda value: value is not None),
    "item": not_ids,
    "k": st.booleans() | st.integers(max_value=0) | st.integers(min_value=1001) | st.text(max_size=5) | st.just(1.5),
    "xi": st.booleans() | st.floats(max_value=-0.001) | st.floats(min_value=1.001) | st.text(max_size=5),
    "xis": not_a_list | st.just([]) | st.lists(st.floats(min_value=1.001) | st.text(), min_size=1, max_size=3),
    "item_norm": not_norms,
    "propensity": not_norms,
    "item_norms": not_a_list | st.just([]) | st.lists(not_norms, min_size=1, max_size=3),
    "allow": not_a_list | st.lists(not_ids, min_size=1, max_size=3),
    "deny": not_a_list | st.lists(not_ids, min_size=1, max_size=3),
    "exclude_seen": st.integers() | st.floats() | st.text(max_size=5),
    "explain": st.integers() | st.floats() | st.text(max_size=5),
    "histories": not_a_list | st.lists(st.integers() | st.none() | st.text(), min_size=1, max_size=3),
    "users": not_a_list | st.lists(not_ids, min_size=1, max_size=3),
}
good = {
    "/v1/recommend": (
        {"history": [7, 37], "k": 5},
        ("history", "k", *DIALS, "allow", "deny", "exclude_seen", "explain"),
    ),
    "/v1/recommend/batch": ({"histories": [[7]], "k": 5}, ("histories", "users", "k", *DIALS, "allow", "explain")),
    "/v1/path": (
        {"history": [7], "k": 5},
        ("history", "user", "k", "xis", "item_norms", "item_norm", "propensity", "allow", "deny", "exclude_seen"),
    ),
    "/v1/explain": ({"history": [7], "item": 17}, ("history", "user", "item", *DIALS)),
}


@st.composite
def malformed(draw):
    """A path, and a body that cannot be right for it."""
    path = draw(st.sampled_from(POSTS))
    question, fields = good[path]
    kind = draw(st.sampled_from(["bytes", "cut", "not an object", "stranger", "wrong", "wrong", "wrong"]))
    if kind == "bytes":
        return path, b"\xff" + draw(st.binary(max_size=50))
    if kind == "cut":
        whole = json.dumps(question).encode()
        return path, whole[: draw(st.integers(0, len(whole) - 1))]
    if kind == "not an object":
        return path, json.dumps(draw(anything.filter(lambda value: not isinstance(value, dict)))).encode()
    if kind == "stranger":
        stranger = draw(st.text(max_size=10).filter(lambda name: name not in wrong))
        return path, json.dumps({**question, stranger: draw(anything)}).encode()
    field = draw(st.sampled_from(fields))
    return path, json.dumps({**question, field: draw(wrong[field])}).encode()


@given(malformed())
@settings(max_examples=repeat(200, 1000))
def test_malformed_bodies_are_refused(client, question):
    path, body = question
    answer = client.post(path, content=body)
    assert 400 <= answer.status_code < 500, (body, answer.text)
    refused(answer, answer.status_code)


@given(st.sampled_from(POSTS), st.dictionaries(st.sampled_from(sorted(wrong)), anything, max_size=5))
@settings(max_examples=repeat(100, 300))
def test_no_question_is_too_much(client, path, question):
    answer = client.post(path, content=json.dumps(question).encode())
    assert answer.status_code in (200, 404, 422), (question, answer.text)


@given(anything)
def test_any_value_can_be_shown(value):
    assert len(show_value(value)) <= 80


def test_an_error_of_the_model_names_its_parameter(client, monkeypatch):
    def search(*_args, **_options):
        check_whole("k", 0)

    monkeypatch.setattr(_handlers, "search", search)
    error = refused(client.get("/v1/items", params={"q": "tea"}))
    assert error == {"message": "k must be a whole number of at least 1, got 0", "field": "k"}
