"""The next item over HTTP: the order of a history counts, and its explanation sums to the score."""

import numpy as np
import pytest

from relae import Interactions
from relae.models import NextItem
from tests.serve.running import ask, serving


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(4)
    x = rng.random((40, 12)) < 0.4
    return Interactions(x.astype(float), users=[f"u{at}" for at in range(40)], times=rng.permutation(x.sum()))


@pytest.fixture(scope="module")
def model(log):
    return NextItem(2.0).fit(log)


@pytest.fixture(scope="module")
def client(log, model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("next") / "model"
    model.save(folder, histories=log)
    with serving(folder) as client:
        yield client


@pytest.mark.parametrize("history", [[1, 4, 9], [9, 4, 1]])
def test_lists_and_their_reasons(client, model, history):
    ids, scores = model.recommend(history, 5)
    items = ask(client, history=history, k=5, explain=True)["items"]
    assert [entry["item"] for entry in items] == ids.tolist()
    assert [entry["score"] for entry in items] == pytest.approx(scores.tolist(), rel=1e-5)
    explained = ask(client, "explain", history=history, item=int(ids[0]))
    assert sum(reason["contribution"] for reason in explained["because"]) == pytest.approx(scores[0], rel=1e-4)


def test_a_user_by_id_is_in_the_order_of_time(client, model, log):
    entries = slice(*log.matrix.indptr[3:5])
    order = log.matrix.indices[entries][np.argsort(log.times[entries])].tolist()
    ids, _ = model.recommend(order, 4)
    assert [entry["item"] for entry in ask(client, user="u3", k=4)["items"]] == ids.tolist()


def test_it_has_no_dials(client):
    described = client.get("/v1/model").json()
    assert (described["model"], described["dials"], described["user_norm"]) == ("NextItem", [], None)
    assert "has no xi" in ask(client, history=[1], xi=0.5, status=422)["error"]["message"]
