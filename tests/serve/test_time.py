"""Time over HTTP: the order of a history, saved times of users, and what is wanted now."""

import numpy as np
import pytest

from relae import EASE, Interactions
from tests.serve.running import ask, serving


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(4)
    x = rng.random((40, 12)) < 0.4
    times = 10**9 + rng.permutation(x.sum()) * 50_000
    return Interactions(x.astype(float), users=[f"u{at}" for at in range(40)], times=times)


@pytest.fixture(scope="module")
def model(log):
    return EASE(2.0, fading=0.7, freshness=0.1).fit(log)


@pytest.fixture(scope="module")
def client(log, model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("timed") / "model"
    model.save(folder, histories=log)
    with serving(folder) as client:
        yield client


def listed(answer):
    return [(entry["item"], pytest.approx(entry["score"], rel=1e-5)) for entry in answer["items"]]


def expected(model, history, k=5):
    ids, scores = model.recommend(history, k)
    return list(zip(ids.tolist(), scores.tolist(), strict=True))


def test_the_latest_item_of_a_list_is_the_last(client, model):
    first, second = (ask(client, history=history, k=5) for history in ([1, 4, 9], [9, 4, 1]))
    assert listed(first) == expected(model, [1, 4, 9])
    assert listed(second) == expected(model, [9, 4, 1])
    assert listed(first) != listed(second)


def test_events_have_times(client, model):
    events = [{"item": 4, "at": 1e9}, {"item": 9, "at": 2e9}, {"item": 1, "at": -5}]
    assert listed(ask(client, history=events, k=5)) == expected(model, [1, 4, 9])
    assert listed(ask(client, history=[{"item": 9, "at": 7}, 1, 4], k=5)) == expected(model, [1, 4, 9])
    batch = ask(client, "recommend/batch", histories=[events, [9, 4, 1]], k=5)
    lists = batch["results"]
    assert [listed(each) for each in lists] == [expected(model, [1, 4, 9]), expected(model, [9, 4, 1])]


def test_a_user_by_id_fades_too(client, model, log):
    row = 3
    entries = slice(*log.matrix.indptr[row : row + 2])
    order = log.matrix.indices[entries][np.argsort(log.times[entries])].tolist()
    assert listed(ask(client, user="u3", k=4)) == expected(model, order, 4)


@pytest.mark.parametrize("dials", [{"freshness": 0}, {"freshness": 2, "fresh_days": 1}, {"fading": 0}, {"fading": 2}])
def test_the_dials_are_live(client, model, dials):
    answer = ask(client, history=[1, 4, 9], k=5, **dials)
    assert listed(answer) == expected(model.with_dials(**dials), [1, 4, 9])
    assert {name: answer[name] for name in dials} == dials


def test_a_model_without_times_has_no_freshness(log, tmp_path):
    EASE(2.0).fit(log.replace(times=None)).save(tmp_path / "model")
    with serving(tmp_path / "model") as client:
        assert ask(client, history=[1])["freshness"] == 0
        error = ask(client, history=[1], freshness=0.5, status=422)["error"]
        assert error == {
            "message": "the model was fitted without times and has no freshness: leave it out",
            "field": "freshness",
        }


def test_the_demand_is_a_reason(client, model):
    explained = ask(client, "explain", history=[1, 4, 9], item=2)
    by_hand = model.explain([1, 4, 9], 2)
    assert explained["demand"] == pytest.approx(by_hand.demand)
    total = sum(reason["contribution"] for reason in explained["because"]) + explained["demand"]
    assert explained["score"] == pytest.approx(total, rel=1e-5)
    for entry in ask(client, history=[1, 4, 9], k=3, explain=True)["items"]:
        assert entry["demand_share"] == pytest.approx(model.explain([1, 4, 9], entry["item"]).demand_share, rel=1e-4)
    timeless = ask(client, history=[1, 4, 9], k=3, explain=True, freshness=0)
    assert not any("demand_share" in entry for entry in timeless["items"])


@pytest.mark.parametrize(
    ("history", "message"),
    [
        ([{"item": 4}], 'history[0] must be an id, or an item with its time such as {"item": 260, "at": 978300019}'),
        ([{"item": 4, "at": "noon"}], "history[0].at must lie between -4e+15 and 4e+15, got"),
        ([{"item": 4, "at": 1e300}], "history[0].at must lie between -4e+15 and 4e+15, got 1e+300"),
        ([{"item": 4, "at": 1, "by": 2}], "history[0] must be an id, or an item with its time"),
    ],
)
def test_events_that_are_none(client, history, message):
    error = ask(client, history=history, status=422)["error"]
    assert message in error["message"]
    assert error["field"] == "history"
