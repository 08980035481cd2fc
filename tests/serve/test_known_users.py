"""A model that knows only the users of its fit, served."""

import numpy as np
import pytest

from relae import Interactions
from relae.baselines import LightGCN, Mark

from ..oracles import brute_force_top_k, csr, example
from .running import serving

X = example(12, 8, weighted=False)
DATA = Interactions(csr(X), [f"user {u}" for u in range(12)], [f"item {i}" for i in range(8)])


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    trained = LightGCN(dim=3)
    trained._take({name: rng.random((size, 3), np.float32) for name, size in (("users", 12), ("items", 8))}, DATA)
    trained.curve_, trained.epochs_, trained.best_epoch_, trained.stopped_ = [Mark(1, 0.1, 0.7, 0.2)], 1, 1, "epochs"
    return trained


@pytest.fixture(scope="module")
def client(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model"
    model.save(path, histories=DATA)
    with serving(path, log=False) as found:
        yield found


def test_users_are_answered_by_id_and_by_their_whole_history(model, client):
    scores = model.user_factors_ @ model.item_factors_.T
    for user in (0, 7):
        seen = np.flatnonzero(X[user])
        expected = [f"item {column}" for column in brute_force_top_k(scores[user], 3, seen)[0] if column >= 0]
        for question in ({"user": f"user {user}"}, {"history": [f"item {column}" for column in seen]}):
            answer = client.post("/v1/recommend", json={**question, "k": 3})
            assert [item["item"] for item in answer.json()["items"]] == expected


def test_anybody_else_is_refused_in_words(client):
    answer = client.post("/v1/recommend", json={"history": ["item 1"], "k": 3})
    assert answer.status_code == 422
    assert "knows the 12 users that it was fitted to" in answer.json()["error"]["message"]
    assert client.post("/v1/recommend", json={"history": [], "k": 2}).json()["popular"] is True
