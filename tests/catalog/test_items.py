"""An item's record, its reasons and the suggestions for an unknown id are built in one place."""

import numpy as np
import polars as pl
import pytest

from relae import RDLAE, Interactions
from relae.catalog import Catalog

TITLES = {1: "Star Wars", 2: "Stargate", 3: "Amélie (2001)", 4: None, 5: "The Last Starfighter"}


@pytest.fixture(scope="module")
def model():
    pairs = [(user, item) for user in range(12) for item in TITLES if (user * item) % (item + 1) < item]
    log = pl.DataFrame(pairs, schema=["user", "item"], orient="row")
    titles = pl.DataFrame({"item": list(TITLES), "title": list(TITLES.values())})
    data = Interactions.from_frame(log, user="user", item="item", titles=titles)
    return RDLAE(l2=1.0).fit(data)


@pytest.fixture
def catalog(model):
    return Catalog(model)


def test_a_record_says_what_the_model_knows(catalog, model):
    records = [catalog.record(column) for column in range(len(model.items_))]
    assert [record["item"] for record in records] == model.items_.values.tolist()
    assert [record["title"] for record in records] == [TITLES[record["item"]] for record in records]
    assert [record["popularity"] for record in records] == model.item_counts_.tolist()
    assert [record["group"] for record in records].count("head") == 1
    assert records[catalog.popular[0]]["group"] == "head"


def test_a_list_ends_where_there_are_no_more_items(catalog):
    items = catalog.recommended([2, 0, -1], [0.5, 0.25, -np.inf])
    assert [(entry["item"], entry["score"]) for entry in items] == [(3, 0.5), (1, 0.25)]


def test_reasons_are_those_of_the_model(catalog, model):
    explanations = model.explain_all([1, 2, 3], [4, 5])
    every = catalog.reasons(explanations)
    assert [[reason["item"] for reason in reasons] for reasons in every] == [each.items for each in explanations]
    for reasons, explanation in zip(every, explanations, strict=True):
        assert sum(reason["contribution"] for reason in reasons) == pytest.approx(explanation.score)
        assert all(reason["title"] == TITLES[reason["item"]] for reason in reasons)
    for few, reasons in zip(catalog.reasons(explanations, 2), every, strict=True):
        assert few == [reason for reason in reasons[:2] if reason["contribution"] > 0]


@pytest.mark.parametrize(
    ("unknown", "items"),
    [("03", [3]), ("5.0", [5]), ("star wars", [1]), ("amelie", [3]), ("STARGATE!", [2]), ("sta", []), (9, [])],
)
def test_suggestions_are_ids_alike_and_titles_with_all_words(catalog, unknown, items):
    assert [catalog.ids[column] for column in catalog.suggest(unknown)] == items
    assert [each["unknown"] for each in catalog.suggestions([unknown])] == ([unknown] if items else [])


def test_an_item_without_a_title_is_found_by_its_id(catalog):
    assert [catalog.ids[column] for column in catalog.search("4")] == [4]
    assert catalog.search("").tolist() == catalog.popular.tolist()
