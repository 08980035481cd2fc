"""What the paper reports, and what two exact solvers owe each other, on real data."""

import numpy as np
import pytest

from relae import EASE, RDLAE, Interactions
from relae.baselines import GFCF
from relae.data import read_lists
from relae.evaluation import StrongLists, evaluate, given_split, paper_splits

from ..real_data import real


def test_primal_and_dual_recommend_the_same_on_movielens():
    folder = real("ml-1m")
    data = Interactions.read(folder / "interactions.csv.gz", rating="rating", min_rating=4)
    histories = data.matrix[np.random.default_rng(0).choice(data.n_users, 500, replace=False)]
    ids, scores = zip(
        *(EASE(300.0, solver=solver).fit(data).recommend(histories, 100) for solver in ("primal", "dual")), strict=True
    )
    assert np.mean(ids[0] == ids[1]) >= 0.999
    assert np.allclose(*scores, atol=1e-3)


def test_gfcf_gives_the_papers_figures_on_new_users_of_gowalla():
    folder = real("gowalla-strong")
    parts = StrongLists(*(read_lists(folder / f"{name}.txt") for name in StrongLists._fields))
    _, split = paper_splits(parts)
    model = GFCF(alpha=0.1).fit(split.train)
    expected = {
        "recall_capped@20": 0.2252,
        "ndcg@20": 0.1660,
        "recall_capped@100": 0.4529,
        "ndcg@100": 0.2318,
        "tail_recall_capped@20": 0.1151,
        "tail_ndcg@20": 0.0591,
        "tail_recall_capped@100": 0.2962,
        "tail_ndcg@100": 0.1049,
        "unbiased_recall@20": 0.1734,
        "unbiased_ndcg@20": 0.0343,
        "unbiased_recall@100": 0.3864,
        "unbiased_ndcg@100": 0.0508,
    }
    metrics = dict.fromkeys(name.split("@")[0] for name in expected)
    found = evaluate(model, split, list(metrics), (20, 100), mode="paper")
    assert {name: round(found[name], 4) for name in expected} == expected


@pytest.mark.slow
def test_gowalla_gives_the_papers_figures():
    folder = real("gowalla")
    split = given_split(read_lists(folder / "train.txt"), read_lists(folder / "test.txt"))
    model = RDLAE(l2=80, dropout=0.8, xi=0.09).fit(split.train)
    for mode in ("paper", "standard"):  # every user has truth
        found = evaluate(model, split, ["recall", "ndcg"], (20,), mode=mode)
        assert round(found["recall@20"], 4) == 0.1845
        assert round(found["ndcg@20"], 4) == 0.1539
