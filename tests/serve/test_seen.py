"""What a known user has seen beside the history never comes back over HTTP, and who was dropped is told so."""

import numpy as np
import polars as pl
import pytest

from relae import Interactions
from relae.models import RDLAE
from relae.solvers import Auto

from ..oracles import brute_force_top_k
from .running import serving

ITEMS = 24


def ratings():
    """Eighty users with ratings of 1 to 5; user 900 has only low ones, and user 901 a single high one."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((80, ITEMS)) < 0.5)
    stars = rng.integers(1, 6, len(users))
    rows = [*zip(users.tolist(), items.tolist(), stars.tolist(), strict=True), (900, 3, 1), (900, 4, 2), (901, 3, 5)]
    return pl.DataFrame(rows, ["user", "item", "stars"], orient="row")


@pytest.fixture(scope="module")
def rated():
    """What each user has rated at all."""
    return dict(ratings().group_by("user").agg("item").rows())


@pytest.fixture(scope="module")
def data():
    return Interactions.from_frame(ratings(), rating="stars", min_rating=4, min_user_count=2)


@pytest.fixture(scope="module")
def model(data):
    return RDLAE(5.0, 0.3, 0.3).fit(data, solver=Auto(dtype="float64"))


@pytest.fixture(scope="module")
def client(model, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    model.save(path, histories=data)
    with serving(path, log=False) as found:
        yield found


def listed(answer):
    return [entry["item"] for entry in answer["items"]]


def expected(model, data, user, k, banned):
    scores = model.score(data.select_users(data.users.positions([user])))[0]
    return [column for column in brute_force_top_k(scores, k, set(banned))[0] if column >= 0]


def test_a_user_gets_nothing_that_the_user_has_rated(client, model, data, rated):
    assert model.items_.values.tolist() == list(range(ITEMS))
    lower = 0
    for user in data.users.values.tolist():
        had = set(rated[user])
        lower += len(had) - len(data.history(user))
        answer = client.post("/v1/recommend", json={"user": user, "k": ITEMS}).json()
        assert listed(answer) == expected(model, data, user, ITEMS, had)
        assert answer["known"] == len(data.history(user))
    assert lower > 100


def test_in_a_batch_each_user_has_seen_something_else(client, model, data, rated):
    users = data.users.values.tolist()
    results = client.post("/v1/recommend/batch", json={"users": users, "k": 6}).json()["results"]
    assert [listed(each) for each in results] == [expected(model, data, user, 6, rated[user]) for user in users]


@pytest.mark.parametrize("along", [{"xis": [0.0, 0.5, 1.0]}, {"item_norms": [0.0, 0.2]}])
def test_along_a_path(client, rated, along):
    path = client.post("/v1/path", json={"user": 5, "k": ITEMS, **along}).json()["path"]
    assert all(set(point["items"]) == set(range(ITEMS)) - set(rated[5]) for point in path)


def test_all_of_it_comes_back_if_that_is_asked_for(client):
    answer = client.post("/v1/recommend", json={"user": 5, "k": ITEMS, "exclude_seen": False}).json()
    assert sorted(listed(answer)) == list(range(ITEMS))


def test_a_history_without_a_user_has_seen_nothing_else(client, data):
    history = data.history(5)
    answer = client.post("/v1/recommend", json={"history": history, "k": ITEMS}).json()
    assert set(listed(answer)) == set(range(ITEMS)) - set(history)


def test_an_explanation_tells_whether_the_user_has_seen_the_item(client, data, rated):
    liked, low = data.history(5), sorted(set(rated[5]) - set(data.history(5)))
    new = sorted(set(range(ITEMS)) - set(rated[5]))
    for items, seen in ((liked, True), (low, True), (new, False)):
        assert len(items) > 0
        answers = [client.post("/v1/explain", json={"user": 5, "item": item}).json() for item in items]
        assert [answer["seen"] for answer in answers] == [seen] * len(items)
    assert client.post("/v1/explain", json={"history": liked, "item": low[0]}).json()["seen"] is False


@pytest.mark.parametrize(
    ("user", "why"),
    [
        (900, "was dropped by min_rating=4 before the fit"),
        ("901", "was dropped by min_user_count=2 before the fit"),
        (902, "is unknown to the model"),
    ],
)
def test_a_user_who_was_dropped_is_told_from_a_stranger(client, user, why):
    answer = client.post("/v1/recommend", json={"user": user})
    assert answer.status_code == 404
    assert answer.json()["error"]["field"] == "user"
    assert f"{why}: give a history instead" in answer.json()["error"]["message"]
