"""Item-based neighbours beside a dense cosine and loops, and beside implicit."""

import numpy as np
import pytest
import scipy.sparse as sp

import relae
from relae import DataError, Interactions, PlanError
from relae._common import memory
from relae.baselines import ItemKNN
from relae.linalg import similarity

from ..oracles import EMPTY_ITEM, csr, example, new_histories

USERS, ITEMS = 50, 23
X = example(USERS, ITEMS, weighted=True)
NEW = new_histories(7, ITEMS, weighted=True)


def dense_similarity(x, neighbours, nearest_by="cosine", shrink=0.0):
    """The definition, pair by pair; each column keeps its largest."""
    x = x.astype(np.float64)
    n = x.shape[1]
    found = np.zeros((n, n))
    for j in range(n):
        column = {}
        for i in range(n):
            together = x[:, i] @ x[:, j]
            if i != j and together > 0:
                size = np.sqrt((x[:, i] @ x[:, i] + shrink) * (x[:, j] @ x[:, j] + shrink))
                column[i] = together / size if nearest_by == "cosine" else together
        for i in sorted(column, key=lambda i: (-column[i], i))[:neighbours]:
            found[i, j] = column[i]
    return found


@pytest.mark.parametrize("nearest_by", ["cosine", "count"])
@pytest.mark.parametrize("neighbours", [1, 2, 7, ITEMS - 1, ITEMS + 9])
@pytest.mark.parametrize("shrink", [0.0, 12.5])
def test_scores_are_sums_of_the_nearest_similarities(nearest_by, neighbours, shrink, monkeypatch):
    monkeypatch.setattr(similarity, "BLOCK", 10)
    model = ItemKNN(neighbours, nearest_by, shrink).fit(csr(X))
    expected = dense_similarity(X, neighbours, nearest_by, shrink)
    assert np.allclose(model.similarity_.toarray(), expected, rtol=1e-5)
    assert model.similarity_.has_canonical_format
    assert np.allclose(model.score(csr(NEW)), NEW @ expected, rtol=1e-5, atol=1e-5)
    assert model.score(csr(NEW)).dtype == np.float32


def test_ties_go_to_the_lower_column():
    x = np.ones((4, 9), np.float32)
    found = ItemKNN(3).fit(csr(x)).similarity_.toarray()
    assert np.array_equal(found > 0, dense_similarity(x, 3) > 0)


def test_shrinking_is_more_users_with_nothing_else():
    alone = np.concatenate([X, *[np.eye(ITEMS, dtype=np.float32)] * 6])
    found = ItemKNN(5, shrink=6).fit(csr(X)).similarity_
    assert np.allclose(found.toarray(), ItemKNN(5).fit(csr(alone)).similarity_.toarray(), rtol=1e-5)


def test_permuting_items_permutes_the_scores():
    order = np.random.default_rng(4).permutation(ITEMS)
    found = ItemKNN(6).fit(csr(X[:, order])).score(csr(NEW[:, order]))
    assert np.allclose(found, ItemKNN(6).fit(csr(X)).score(csr(NEW))[:, order], rtol=1e-5)


@pytest.mark.filterwarnings("ignore:Method expects CSR input")
@pytest.mark.parametrize("neighbours", [3, 12, 60])
def test_implicit_has_the_same_neighbours_and_lists(neighbours):
    nearest_neighbours = pytest.importorskip("implicit.nearest_neighbours")
    x = np.delete(example(300, 61, weighted=True, seed=5), EMPTY_ITEM, axis=1)  # by which implicit divides
    theirs = nearest_neighbours.CosineRecommender(K=neighbours + 1)  # an item is a neighbour of itself there
    theirs.fit(sp.csr_matrix(x), show_progress=False)
    ours = ItemKNN(neighbours).fit(csr(x))
    others = theirs.similarity.toarray()
    np.fill_diagonal(others, 0.0)
    assert np.allclose(ours.similarity_.toarray(), others.T, rtol=1e-5)  # there, the history's items have neighbours
    if neighbours == x.shape[1]:  # and then it makes no difference
        histories = new_histories(9, x.shape[1], weighted=True)[1:]
        ids, scores = ours.recommend(csr(histories), 5)
        their_ids, their_scores = theirs.recommend(np.arange(8), sp.csr_matrix(histories), N=5)
        assert np.allclose(scores, their_scores, rtol=1e-5)
        assert np.array_equal(ids, their_ids)


def test_an_item_nobody_had_is_near_to_nothing():
    model = ItemKNN(30).fit(csr(X))
    assert model.similarity_[[EMPTY_ITEM]].nnz == 0
    assert not model.score(csr(X))[:, EMPTY_ITEM].any()


def test_one_item():
    model = ItemKNN().fit(np.ones((3, 1)))
    assert model.similarity_.shape == (1, 1)
    assert model.similarity_.nnz == 0


def test_no_square_of_items_is_ever_formed():
    x = sp.random_array((400, 300_000), density=1e-4, rng=np.random.default_rng(0), dtype=np.float32).tocsr()
    model = ItemKNN(20).fit(x)
    assert model.similarity_.shape == (300_000, 300_000)  # 360 GB as a square
    assert np.bincount(model.similarity_.indices).max() == 20
    for item in x.indices[::3000]:
        together = (x[:, [item]].T @ x).toarray()[0]
        cosine = together / np.sqrt(np.maximum((x**2).sum(axis=0), 1e-30) * (x[:, [item]] ** 2).sum())
        cosine[item] = 0.0
        assert np.allclose(np.sort(model.similarity_[:, [item]].data), np.sort(cosine)[-20:], rtol=1e-5)


def test_progress_reaches_the_end(monkeypatch):
    monkeypatch.setattr(similarity, "BLOCK", 8)
    done = []
    ItemKNN(3).fit(csr(X), progress=lambda stage, fraction: done.append((stage, fraction)))
    assert done == [("neighbours", 8 / ITEMS), ("neighbours", 16 / ITEMS), ("neighbours", 1.0)]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"neighbours": 0}, "neighbours must be a whole number of at least 1, got 0"),
        ({"neighbours": 2.5}, "neighbours must be a whole number of at least 1, got 2.5"),
        ({"neighbours": True}, "neighbours must be a whole number of at least 1, got True"),
        ({"nearest_by": "distance"}, "nearest_by must be 'cosine' or 'count', got 'distance'"),
        ({"shrink": -1}, "shrink must be a finite number of at least 0, got -1"),
        ({"shrink": np.nan}, "shrink must be a finite number of at least 0, got nan"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        ItemKNN(**parameters).fit(csr(X))


def test_nothing_to_fit():
    with pytest.raises(DataError, match="nothing to fit: 3 users × 4 items"):
        ItemKNN().fit(np.zeros((3, 4)))


def test_too_many_neighbours_for_the_memory(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(PlanError, match=r"22 neighbours of each of 23 items needs .* fit with fewer neighbours"):
        ItemKNN().fit(csr(X))


def test_a_saved_model_comes_back(tmp_path):
    data = Interactions(csr(X), items=[f"item {j}" for j in range(ITEMS)])
    model = ItemKNN(4, shrink=2.0).fit(data)
    model.save(tmp_path / "model")
    found = relae.load(tmp_path / "model", verify=True)
    assert found.get_params() == model.get_params()
    assert np.array_equal(found.score(csr(NEW)), model.score(csr(NEW)))


def test_what_cannot_have_been_saved_is_not_taken_up():
    state = ItemKNN(4).fit(csr(X)).state("fitted")
    with pytest.raises(ValueError, match="the rows of the matrix similarity"):
        ItemKNN(4).restore(state.facts, {**state.arrays, "similarity_starts": state.arrays["similarity_starts"] + 1})
