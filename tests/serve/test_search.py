"""Items are found over HTTP by what people type."""


def found(client, query, **more):
    answer = client.get("/v1/items", params={"q": query, **more}).json()
    return [entry["title"] for entry in answer["items"]], answer["total"]


def test_searching_over_http(client):
    assert found(client, "star") == (["Star Wars", "Stargate", "The Last Starfighter"], 3)
    assert found(client, "fighter last") == (["The Last Starfighter"], 1)
    assert found(client, "AMÉLIE") == found(client, "amelie") == (["Amélie (2001)"], 1)
    assert found(client, "okami")[1] == 1
    assert found(client, "!!!") == (["!!!"], 1)
    assert found(client, "nothing like it") == ([], 0)
    assert found(client, "item number 1")[0][0] != "Item number 1"  # there is none: its place has another title
    assert found(client, "item", limit=2)[1] == 33
    assert len(found(client, "item", limit=2)[0]) == 2
    assert found(client, "") == found(client, "  ")


def test_an_id_finds_its_item_first(client):
    titles, total = found(client, "17")
    assert titles[0] == "Star Wars"  # the item 17
    assert "Item number 17" in titles
    assert total == len(titles)
    assert found(client, "67") == ([None], 1)  # without a title, by its id
