"""What a request may cost is in proportion to what it asks for."""

import pytest

from relae.serve._snapshot import Snapshot
from tests.serve.running import serving_another
from tests.serve.test_refusals import refused


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("recommend", {"history": [7]}),
        ("recommend/batch", {"histories": [[7 + 10 * (at % 40)] for at in range(100)]}),
        ("path", {"history": [7], "item_norms": [0.0, 0.5, 1.0]}),
        ("path", {"history": [7], "xis": [0.0, 0.5, 1.0]}),
    ],
)
def test_ids_are_looked_up_once_per_request(client, monkeypatch, path, body):
    lookups, plain = [], Snapshot.find_columns

    def counting(self, items):
        lookups.append(items)
        return plain(self, items)

    monkeypatch.setattr(Snapshot, "find_columns", counting)
    answer = client.post(f"/v1/{path}", json=body | {"allow": [7, 17, 27], "deny": [17]})
    assert answer.status_code == 200
    assert lookups == [[7, 17, 27], [17]]


def test_lists_are_ranked_no_longer_than_the_catalog(folder, model):
    ranked, plain = [], type(model).recommend

    class Spy(type(model)):
        def recommend(self, histories, k=10, **options):
            ranked.append(k)
            return plain(self, histories, k, **options)

    spy = model._share(Spy(**model.get_params()))
    with serving_another(spy, folder) as client:
        ranked.clear()
        answer = client.post("/v1/recommend", json={"history": [7], "k": 1000}).json()
        assert ranked == [40]
        assert (answer["k"], len(answer["items"])) == (1000, 39)
        # what counts towards the limit are the items that there are: 40 of them, not 1,000
        assert client.post("/v1/recommend/batch", json={"histories": [[7]] * 100, "k": 1000}).status_code == 200


def test_the_reasons_of_many_items_are_refused(client):
    few = {"histories": [[7]] * 25, "k": 40, "explain": True}
    assert client.post("/v1/recommend/batch", json=few).status_code == 200
    error = refused(client.post("/v1/recommend/batch", json=few | {"histories": [[7]] * 26}), 413)
    assert error["field"] == "explain"
    assert "26 lists of 40 are 1,040 items" in error["message"]
