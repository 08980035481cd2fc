"""What comes over HTTP is what the model says."""

from urllib.parse import quote

import numpy as np
import pytest
import scipy.sparse as sp

from relae import RDLAE, store
from relae.evaluation.groups import head_items
from relae.models import DAN, DEQL
from tests.serve.conftest import interactions
from tests.serve.running import ask, serving, serving_another

HISTORY = [7, 37, 107, 207]
OWN = {"xi": 0.3, "item_norm": 0, "propensity": 0, "fading": 0, "freshness": 0, "fresh_days": 7}  # the model's dials


def listed(answer):
    return [entry["item"] for entry in answer["items"]]


def same_list(answer, expected):
    """The ids and scores of `recommend`, without what fills them up."""
    ids, scores = expected
    kept = [(item, score) for item, score in zip(ids, scores, strict=True) if item is not None]
    assert listed(answer) == [item for item, _ in kept]
    np.testing.assert_allclose([entry["score"] for entry in answer["items"]], [score for _, score in kept], rtol=1e-6)


@pytest.mark.parametrize("xi", [None, 0, 0.2, 1.0])
@pytest.mark.parametrize("wish", [{}, {"exclude_seen": False}, {"deny": [17, 27]}, {"allow": [17, 27, 47, 7]}])
@pytest.mark.parametrize("k", [1, 10, 50])
def test_a_recommendation_is_the_models(client, model, xi, wish, k):
    answer = ask(client, "recommend", history=HISTORY, k=k, xi=xi, **wish)
    same_list(answer, (model if xi is None else model.with_xi(xi)).recommend(HISTORY, k, **wish))
    assert answer["xi"] == (0.3 if xi is None else xi)
    assert (answer["k"], answer["known"], answer["unknown"]) == (k, 4, [])
    assert answer["user"] is None
    assert not answer["popular"]


DIALS = [
    {"item_norm": 0.4},
    {"propensity": 0.5},
    {"item_norm": -0.5, "xi": 0.8},
    {"xi": 0, "item_norm": 0.2, "propensity": -1},
]


@pytest.mark.parametrize("dials", DIALS)
@pytest.mark.parametrize("wish", [{}, {"exclude_seen": False}, {"deny": [17, 27]}])
def test_dials_are_turned_for_one_request(client, model, dials, wish):
    own = ask(client, "recommend", history=HISTORY, k=40, **wish)
    answer = ask(client, "recommend", history=HISTORY, k=40, **dials, **wish)
    same_list(answer, model.with_dials(**dials).recommend(HISTORY, 40, **wish))
    assert listed(answer) != listed(own)
    assert {name: answer[name] for name in OWN} == OWN | dials
    assert ask(client, "recommend", history=HISTORY, k=40, **wish) == own


def test_a_model_with_norms_of_its_own(data, folder):
    model = DAN(l2=0.5, dropout=0.3, xi=0.1, user_norm=0.5, item_norm=0.3, propensity=0.2).fit(data)
    with serving_another(model, folder) as client:
        told = client.get("/v1/model").json()
        own = {"xi": 0.1, "item_norm": 0.3, "propensity": 0.2}
        assert {name: told[name] for name in own} == own
        assert (told["user_norm"], told["dials"]) == (0.5, list(OWN))
        for dials in ({}, {"xi": 0.6}, {"item_norm": 0}, {"item_norm": 0, "propensity": 0}):
            answer = ask(client, "recommend", history=HISTORY, **dials)
            same_list(answer, model.with_dials(**dials).recommend(HISTORY))
            assert {name: answer[name] for name in own} == own | dials
        path = ask(client, "path", history=HISTORY, xis=[0, 1])["path"]
        assert [point["items"] for point in path] == [model.with_xi(xi).recommend(HISTORY)[0].tolist() for xi in (0, 1)]


def test_a_model_with_emphasis_keeps_it_until_a_xi_is_asked_for(data, folder):
    model = DEQL(l2=0.5, dropout=0.3, kept=2.0).fit(data)
    plain = RDLAE(l2=0.5, dropout=0.3, xi=0.0).fit(data)
    with serving_another(model, folder) as client:
        own = ask(client, "recommend", history=HISTORY, k=40)
        same_list(own, model.recommend(HISTORY, 40))
        asked = ask(client, "recommend", history=HISTORY, k=40, xi=0)
        same_list(asked, plain.recommend(HISTORY, 40))
        assert listed(own) != listed(asked)
        path = ask(client, "path", history=HISTORY, k=40, xis=[0, 0.1])["path"]
        for point in path:
            assert point["items"] == [each for each in plain.with_xi(point["xi"]).recommend(HISTORY, 40)[0] if each]
        for xi in ({}, {"xi": 0}):
            norms = ask(client, "path", history=HISTORY, k=40, item_norms=[0, 0.4], **xi)["path"]
            for point in norms:
                dials = {"item_norm": point["item_norm"], **xi}
                assert point["items"] == listed(ask(client, "recommend", history=HISTORY, k=40, **dials))
                assert point["items"] == [each for each in model.with_dials(**dials).recommend(HISTORY, 40)[0] if each]


def test_weights_count(client, model):
    history = {"7": 3.0, "37": 0.5, "107": 1, "47": 0}
    answer = ask(client, "recommend", history=history, k=10)
    same_list(answer, model.recommend({7: 3.0, 37: 0.5, 107: 1}, 10))
    assert answer["known"] == 3  # a weight of 0 is no interaction


def test_ids_may_be_written_as_text_and_twice(client):
    plain = ask(client, "recommend", history=[7, 37], deny=[17])
    assert ask(client, "recommend", history=["7", 37, 7, "37", 37.0], deny=["17"]) == plain


def test_unknown_items_are_named(client, model):
    answer = ask(client, "recommend", history=[7, 8, "nope", 37, 2**70])
    same_list(answer, model.recommend([7, 37]))
    assert answer["unknown"] == [8, "nope", 2**70]
    assert answer["known"] == 2


def suggested(client, *history):
    """Return the ids that an answer suggests for each unknown one."""
    answer = ask(client, "recommend", history=list(history))
    return {each["unknown"]: [item["item"] for item in each["items"]] for each in answer["suggestions"]}


def test_unknown_items_get_suggestions(client):
    numbered = [entry["item"] for entry in client.get("/v1/items", params={"q": "number"}).json()["items"]]
    assert suggested(client, 7, "017", "star wars", "nope") == {"017": [17], "star wars": [17]}
    assert suggested(client, "27.0", "AMELIE") == {"27.0": [27], "AMELIE": [7]}
    assert suggested(client, "number") == {"number": numbered[:3]}  # the most popular of many
    assert suggested(client, 7, "17") == {}
    assert suggested(client, "", " ", "star " * 101) == {}
    [only] = ask(client, "recommend", history={"Star Wars": 2.0})["suggestions"]
    assert only["items"] == [client.get("/v1/items/17").json()]


def test_suggestions_are_made_for_a_few_unknown_items_of_one_history(client):
    titles = ["star wars", "stargate", "the last starfighter", "amelie"]
    assert list(suggested(client, *titles)) == titles[:3]
    for answer in ask(client, "recommend/batch", histories=[titles, ["star wars"]])["results"]:
        assert "suggestions" not in answer
        assert answer["unknown"]


def test_text_ids_get_suggestions(tmp_path):
    ids = ["0012", "0112", "B00A", "00b00a", *(f"x{at}" for at in range(8))]
    store.save(RDLAE(l2=5.0).fit(interactions(ids)), tmp_path / "model")
    with serving(tmp_path / "model") as client:
        assert suggested(client, 12, "b00a", "112.0") == {12: ["0012"], "b00a": ["B00A", "00b00a"], "112.0": ["0112"]}


@pytest.mark.parametrize("history", [[], {}, ["nope"], {"nope": 2}, {"7": 0}, {"7": 1e-60}])
def test_nothing_known_gives_the_most_popular(client, model, history):
    answer = ask(client, "recommend", history=history, k=5, explain=True)
    assert answer["popular"]
    assert answer["known"] == 0
    assert [entry["popularity"] for entry in answer["items"]] == sorted(model.item_counts_, reverse=True)[:5]
    assert all(entry["because"] == [] for entry in answer["items"])


def test_a_user_has_the_history_of_the_folder(client, data, model):
    for user in (1000, "1017", 1079.0):
        answer = ask(client, "recommend", user=user)
        same_list(answer, model.recommend(data.history(int(user))))
        assert answer["user"] == int(user)
        assert answer["known"] == len(data.history(int(user)))


def test_a_null_counts_as_not_given(client):
    fields = ("user", "k", "xi", "item_norm", "propensity", "allow", "deny", "exclude_seen", "explain")
    assert ask(client, "recommend", history=[7], **dict.fromkeys(fields)) == ask(client, "recommend", history=[7])


def test_items_are_described(client, data, model):
    head = head_items(model.item_counts_)
    items = client.get("/v1/items", params={"limit": 100}).json()
    assert items["total"] == 40
    for entry in items["items"]:
        [column] = data.items.positions([entry["item"]])
        assert entry == {
            "item": data.items.values[column],
            "title": data.titles[column],
            "popularity": model.item_counts_[column],
            "group": "head" if head[column] else "tail",
        }
        assert client.get(f"/v1/items/{entry['item']}").json() == entry
    popularity = [entry["popularity"] for entry in items["items"]]
    assert popularity == sorted(popularity, reverse=True)


@pytest.mark.parametrize("dials", [{}, {"xi": 0.9}, *DIALS])
def test_reasons_are_the_models(client, model, data, dials):
    chosen = model.with_dials(**dials)
    answer = ask(client, "recommend", history=HISTORY, k=40, explain=True, **dials)
    for entry in answer["items"]:
        explanation = chosen.explain(HISTORY, entry["item"])
        positive = int(np.count_nonzero(explanation.contributions > 0))
        because = entry["because"]
        assert [reason["item"] for reason in because] == explanation.items[: min(3, positive)]
        np.testing.assert_allclose([r["contribution"] for r in because], explanation.contributions[: len(because)])
        np.testing.assert_allclose([r["share"] for r in because], explanation.shares[: len(because)])
        assert all(reason["title"] == data.title(reason["item"]) for reason in because)


@pytest.mark.parametrize("dials", [{}, {"xi": 0.9}, *DIALS])
def test_an_explanation_is_the_models(client, model, dials):
    chosen = model.with_dials(**dials)
    answer = ask(client, "explain", history=HISTORY, item="47", **dials)
    explanation = chosen.explain(HISTORY, 47)
    assert answer["item"] == client.get("/v1/items/47").json()
    assert {name: answer[name] for name in OWN} == OWN | dials
    assert answer["score"] == pytest.approx(explanation.score)
    everything = ask(client, "recommend", history=HISTORY, k=40, **dials)["items"]
    assert answer["score"] == pytest.approx(
        next(entry["score"] for entry in everything if entry["item"] == 47), rel=1e-5
    )
    assert [reason["item"] for reason in answer["because"]] == explanation.items
    np.testing.assert_allclose([reason["contribution"] for reason in answer["because"]], explanation.contributions)
    assert sum(reason["contribution"] for reason in answer["because"]) == pytest.approx(answer["score"])


def test_explaining_a_user(client, data):
    by_user, by_history = (
        ask(client, "explain", item=47, user=1003),
        ask(client, "explain", item=47, history=data.history(1003)),
    )
    assert by_user == by_history


def test_a_batch_is_its_single_questions(client):
    histories = [HISTORY, [], {"7": 2.0}, ["nope", 17], *([[10 * at + 7] for at in range(40)])]
    wish = {"k": 7, "xi": 0.6, "item_norm": 0.3, "propensity": 0.1, "deny": [27], "explain": True}
    batch = ask(client, "recommend/batch", histories=histories, **wish)
    single = [ask(client, "recommend", history=history, **wish) | {"suggestions": []} for history in histories]
    assert [result | {"suggestions": []} for result in batch["results"]] == single
    users = list(range(1000, 1080))
    batch = ask(client, "recommend/batch", users=users, **wish)
    single = [ask(client, "recommend", user=user, **wish) for user in users]
    assert [result | {"suggestions": []} for result in batch["results"]] == single
    assert ask(client, "recommend/batch", histories=[]) == {"results": []}


def test_a_path_is_the_lists_of_its_xis(client, model, data):
    head = head_items(model.item_counts_)
    path = ask(client, "path", history=HISTORY, k=5, xis=[0, 0.25, 1], deny=[17])["path"]
    assert [point["xi"] for point in path] == [0, 0.25, 1]
    for point in path:
        recommended = ask(client, "recommend", history=HISTORY, k=5, xi=point["xi"], deny=[17])
        columns = data.items.positions(point["items"])
        assert point["items"] == listed(recommended)
        assert point["popularity"] == pytest.approx(model.item_counts_[columns].mean())
        assert point["tail_share"] == pytest.approx(1 - head[columns].mean())


def test_a_path_along_the_item_norm(client):
    norms = [0.4, -0.5, 0, 0.4, 2]
    for still in ({}, {"xi": 0.8, "propensity": 0.3}):
        path = ask(client, "path", history=HISTORY, k=5, item_norms=norms, **still)["path"]
        assert [point["item_norm"] for point in path] == norms
        for point in path:
            dials = still | {"item_norm": point["item_norm"]}
            recommended = ask(client, "recommend", history=HISTORY, k=5, **dials)
            assert {name: point[name] for name in OWN} == OWN | dials
            assert point["items"] == listed(recommended)


def test_a_path_at_another_item_norm(client, model):
    path = ask(client, "path", history=HISTORY, item_norm=0.4, propensity=0.2)["path"]
    assert [point["item_norm"] for point in path] == [0.4] * 21
    assert [point["propensity"] for point in path] == [0.2] * 21
    for point in (path[0], path[7], path[-1]):
        turned = model.with_dials(xi=point["xi"], item_norm=0.4, propensity=0.2)
        assert point["items"] == turned.recommend(HISTORY)[0].tolist()


def test_a_path_spreads_over_the_interval_that_matters(client, model):
    path = ask(client, "path", history=HISTORY)["path"]
    np.testing.assert_allclose([point["xi"] for point in path], np.linspace(*model.xi_interval_, 21))
    assert len(path[0]["items"]) == 10
    assert path[0]["items"] == model.with_xi(0.0).recommend(HISTORY)[0].tolist()
    assert path[-1]["items"] == model.with_xi(1.0).recommend(HISTORY)[0].tolist()


def test_a_path_without_items_has_no_popularity(client):
    [point] = ask(client, "path", history=[7], xis=[0.5], allow=[])["path"]
    assert point == OWN | {"xi": 0.5, "popularity": None, "tail_share": None, "items": []}


@pytest.mark.parametrize("k", [1, 10, 100])
def test_similar_items_are_the_models(client, model, k):
    answer = client.get("/v1/similar/37", params={"k": k}).json()
    ids, scores = model.similar_items(37, k)
    count = min(k, 39)
    assert answer["item"]["item"] == 37
    assert listed(answer) == ids[:count].tolist()
    np.testing.assert_allclose([entry["similarity"] for entry in answer["items"]], scores[:count], rtol=1e-6)


def test_ids_that_are_hard_on_urls(odd_client, odd_ids):
    for item in odd_ids:
        place = quote(item, safe="")
        assert odd_client.get(f"/v1/items/{place}").json()["item"] == item
        assert odd_client.get(f"/v1/similar/{place}").json()["item"]["item"] == item
    assert odd_client.get("/v1/items/a/b").json()["item"] == "a/b"
    answer = ask(odd_client, "recommend", history=odd_ids[:3])
    assert answer["known"] == 3


def test_what_the_model_is(client, model, folder):
    told = client.get("/v1/model").json()
    saved = store.open_model(folder).info
    for name in ("model", "parameters", "title", "data", "versions", "created"):
        assert told[name] == saved[name]
    assert told["fitted"]["l2"] == saved["fitted"]["l2"]
    assert told["xi"] == model.xi
    assert told["xi_interval"] == list(model.xi_interval_)
    assert {name: told[name] for name in OWN} == OWN
    assert (told["dials"], told["user_norm"]) == (list(OWN), 0)
    assert told["users"] is True
    assert told["titles"] is True
    assert told["limits"]["k"] == 1000


def test_models_without_xi(plain, data):
    model, client = plain
    told = client.get("/v1/model").json()
    assert told["dials"] == []
    assert {told[name] for name in ("xi_interval", "user_norm", *OWN)} == {None}
    answer = ask(client, "recommend", history=[7, 37], k=5)
    same_list(answer, model.recommend([7, 37], 5))
    assert {answer[each] for each in OWN} == {None}
    name = type(model).__name__
    for question in ({"xi": 0.5}, {"item_norm": 0.2}, {"propensity": 0}, {"explain": True}):
        refused = client.post("/v1/recommend", json={"history": [7], **question})
        assert refused.status_code == 422
        assert name in refused.json()["error"]["message"]
        assert refused.json()["error"]["field"] in question
    for refused in (
        client.post("/v1/path", json={"history": [7]}),
        client.post("/v1/explain", json={"history": [7], "item": 7}),
        client.get("/v1/similar/7"),
    ):
        assert refused.status_code == 422
        assert name in refused.json()["error"]["message"]


def test_a_model_in_the_dual_form(tmp_path):
    x = sp.random_array((15, 60), density=0.3, rng=np.random.default_rng(0), format="csr", dtype=np.float32)
    x.data[:] = 1
    model = RDLAE(l2=5.0).fit(x, solver="dual")
    store.save(model, tmp_path / "dual")
    assert store.open_model(tmp_path / "dual").info["fitted"]["form"] == "dual"
    with serving(tmp_path / "dual") as client:
        for dials in ({"xi": 0.8}, {"item_norm": 0.3}):
            answer = ask(client, "recommend", history=[1, 2, 3], **dials)
            same_list(answer, model.with_dials(**dials).recommend([1, 2, 3]))
        told = client.get("/v1/model").json()
        assert (told["users"], told["titles"]) == (False, False)
        assert client.get("/v1/items/5").json()["title"] is None
