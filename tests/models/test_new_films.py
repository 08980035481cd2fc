"""ML-1M with genres and years: films that nobody has seen yet."""

import numpy as np
import polars as pl
import pytest

from relae import RDLAE, Interactions
from relae.baselines import ContentKNN, Popularity, Random
from relae.evaluation import evaluate, hold_out_new_items, hold_out_users

from ..real_data import real


@pytest.fixture(scope="module")
def films():
    folder = real("ml-1m")
    table = pl.read_csv(next(folder.glob("items.csv*")))
    table = table.with_columns(year=pl.col("title").str.extract(r"\((\d{4})\)").cast(pl.Int32))
    log = Interactions.read(next(folder.glob("interactions.csv*")), rating="rating", min_rating=4)
    return log.with_features(table, separators={"genres": "|"})


def test_new_films_are_found_by_their_features(films):
    split = hold_out_new_items(films, 0.1, rng=np.random.default_rng(0))
    model = RDLAE(200, 0.3, 0.3).fit(split.train, feature_weight=10)
    ours = evaluate(model, split, ["recall"], [20])["recall@20"]
    chance, popular, alike = (
        evaluate(each.fit(split.train), split, ["recall"], [20])["recall@20"]
        for each in (Random(), Popularity(), ContentKNN())
    )
    assert ours > 3 * max(chance, popular)
    assert ours > alike
    assert ours > 0.28


def test_features_cost_nothing_where_nothing_is_new(films):
    split = hold_out_users(films, 0.1, rng=np.random.default_rng(0))
    with_them, without = (
        evaluate(RDLAE(200, 0.3, 0.3).fit(split.train, feature_weight=weight), split, ["ndcg"], [100])["ndcg@100"]
        for weight in (10.0, 0.0)
    )
    assert with_them > 0.995 * without
