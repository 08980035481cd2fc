"""What the paper reports, and what two exact solvers owe each other, on real data."""

import numpy as np
import pytest

from relae import EASE, RDLAE, Interactions
from relae.baselines import GFCF
from relae.data import read_lists
from relae.evaluation import StrongLists, evaluate, paper_splits
from relae.experiments.paper import popularity_order

from ..real_data import real


def test_primal_and_dual_recommend_the_same_on_movielens():
    folder = real("ml-1m")
    data = Interactions.read(folder / "interactions.csv.gz", rating="rating", min_rating=4)
    data = data.select_users(np.random.default_rng(0).choice(data.n_users, 1_500, replace=False))
    histories = data.matrix[:500]
    ids, scores = zip(
        *(EASE(300.0).fit(data, solver=solver).recommend(histories, 100) for solver in ("primal", "dual")), strict=True
    )
    assert np.mean(ids[0] == ids[1]) >= 0.999
    assert np.allclose(*scores, atol=1e-3)


# Table 2, new users of Gowalla: all users, tail, unbiased
FIGURES = {
    "recall_capped@20": (0.2252, 0.2499),
    "ndcg@20": (0.1660, 0.1900),
    "recall_capped@100": (0.4529, 0.4594),
    "ndcg@100": (0.2318, 0.2510),
    "tail_recall_capped@20": (0.1151, 0.1210),
    "tail_ndcg@20": (0.0591, 0.0587),
    "tail_recall_capped@100": (0.2962, 0.3173),
    "tail_ndcg@100": (0.1049, 0.1079),
    "unbiased_recall@20": (0.1734, 0.1923),
    "unbiased_ndcg@20": (0.0343, 0.0373),
    "unbiased_recall@100": (0.3864, 0.3976),
    "unbiased_ndcg@100": (0.0508, 0.0528),
}


@pytest.mark.parametrize(
    ("model", "column"),
    [(GFCF(alpha=0.1), 0), pytest.param(RDLAE(l2=70, dropout=0.5, xi=0.4), 1, marks=pytest.mark.slow)],
    ids=["GFCF", "RDLAE"],
)
def test_gowalla_gives_the_papers_figures(model, column):
    folder = real("gowalla-strong")
    parts = StrongLists(*(read_lists(folder / f"{name}.txt") for name in StrongLists._fields))
    _, split = paper_splits(parts)
    metrics = dict.fromkeys(name.split("@")[0] for name in FIGURES)
    found = evaluate(model.fit(split.train), split, list(metrics), (20, 100), mode="paper", item_order=popularity_order)
    assert {name: round(found[name], 4) for name in FIGURES} == {name: row[column] for name, row in FIGURES.items()}
