"""What a recommender gets for free: it only has to say how a batch of histories is scored."""

import numpy as np
import pytest

from relae import Interactions, NotFittedError, UnknownItemsWarning
from relae.recommender import Estimator, HistoryRecommender, Parameter, encode

from ..oracles import brute_force_top_k, csr, example, new_histories

ITEMS = 12
X = example(20, ITEMS, weighted=True)
NEW = new_histories(6, ITEMS, weighted=True)


class Counting(HistoryRecommender):
    """Scores are x·XᵀX, times a factor per column, plus a bonus for what is in the history."""

    PARAMETERS = (Parameter("bonus", 0.0, low=0), Parameter("batch", 2, whole=True))

    def __init__(self, bonus=0.0, batch=2):
        self.bonus, self.batch = bonus, batch

    def fit(self, data, *, progress=None):
        interactions = self.to_interactions(data)
        x = interactions.matrix.toarray()
        self.gram_ = x.T @ x
        self.remember(interactions)
        return self

    def project(self, batch):
        return np.ascontiguousarray(batch @ self.gram_)

    def score_scale(self):
        return np.arange(1, ITEMS + 1, dtype=np.float32)

    def add_history(self, scores, batch):
        scores += self.bonus * (batch.toarray() > 0)
        return scores

    def users_at_once(self):
        return self.batch

    @property
    def score_dtype(self):
        return np.dtype(np.float32)


def expected_scores(histories, bonus):
    scores = histories.astype(np.float64) @ (X.T.astype(np.float64) @ X) * np.arange(1, ITEMS + 1)
    return scores + bonus * (histories > 0)


@pytest.mark.parametrize("batch", [0, 1, 4, 100])
def test_scores_and_lists_come_from_the_projection_the_scale_and_the_history(batch):
    model = Counting(bonus=1000.0, batch=batch).fit(csr(X))
    scores = expected_scores(NEW, 1000.0)
    assert np.allclose(model.score(csr(NEW)), scores, rtol=1e-5)
    for exclude_seen in (True, False):
        ids, values = model.recommend(csr(NEW), 5, exclude_seen=exclude_seen)
        for row in range(1, len(NEW)):
            seen = set(np.flatnonzero(NEW[row])) if exclude_seen else set()
            expected_ids, expected = brute_force_top_k(scores[row], 5, seen)
            assert ids[row].tolist() == expected_ids
            assert np.allclose(values[row], expected, rtol=1e-5)


def test_it_is_an_estimator():
    model = Counting(bonus=2.0)
    assert isinstance(model, Estimator)
    assert repr(model) == "Counting(bonus=2.0)"
    for call in (lambda: model.recommend(csr(NEW)), lambda: model.score(csr(NEW)), lambda: model.encode([1])):
        with pytest.raises(NotFittedError, match="this Counting is not fitted yet"):
            call()


def test_a_recommender_that_does_not_say_how_it_scores_cannot_be_made():
    class Half(HistoryRecommender):
        def fit(self, data, *, progress=None):
            return self

    with pytest.raises(TypeError, match="abstract"):
        Half()


def test_what_is_remembered_of_the_data():
    data = Interactions(csr(X), items=[f"i{i}" for i in range(ITEMS)], titles=[f"The {i}" for i in range(ITEMS)])
    model = Counting().fit(data)
    assert model.items_ is data.items
    assert model.titles_.tolist() == data.titles.tolist()
    assert model.n_users_ == 20
    assert model.item_counts_.tolist() == (X > 0).sum(axis=0).tolist()


def test_encoding_counts_what_is_unknown():
    data = Interactions(csr(X), items=[f"i{i}" for i in range(ITEMS)])
    given = encode([["i3", "who"], {"i1": 2.0, "what": 1.0, "why": 1.0}], data.items)
    assert (given.unknown, given.raw, given.single) == (3, True, False)
    assert given.matrix.toarray()[[0, 1], [3, 1]].tolist() == [1.0, 2.0]
    assert given.matrix.nnz == 2
    with pytest.warns(UnknownItemsWarning, match="3 of 5 items in the histories are unknown") as record:
        Counting().fit(data).recommend([["i3", "who"], {"i1": 2.0, "what": 1.0, "why": 1.0}], 2)
    assert record[0].filename == __file__


def test_interactions_with_other_columns_are_moved():
    data = Interactions(csr(X), items=[f"i{i}" for i in range(ITEMS)])
    order = np.random.default_rng(0).permutation(ITEMS)
    other = Interactions(csr(NEW[:, order]), items=[f"i{i}" for i in order])
    assert np.array_equal(encode(other, data.items).matrix.toarray(), NEW)
