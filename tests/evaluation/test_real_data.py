"""What the paper reports, and what two exact solvers owe each other, on real data."""

import numpy as np
import pytest

from relae import EASE, RDLAE, Interactions
from relae.evaluation import find_hits, ndcg, recall

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


@pytest.mark.slow
def test_gowalla_gives_the_papers_figures():
    folder = real("gowalla")
    train = Interactions.read_lists(folder / "train.txt")
    test = Interactions.read_lists(folder / "test.txt", n_users=train.n_users, n_items=train.n_items)
    model = RDLAE(l2=80, dropout=0.8, xi=0.09).fit(train.matrix)
    ranked, _ = model.recommend(train.matrix, k=20)
    hits, sizes = find_hits(ranked, test.matrix), np.diff(test.matrix.indptr)
    assert round(float(np.nanmean(recall(hits, sizes, 20))), 4) == 0.1845
    assert round(float(np.nanmean(ndcg(hits, sizes, 20))), 4) == 0.1539
