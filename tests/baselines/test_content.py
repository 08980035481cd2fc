"""Neighbours by features beside dense cosines and loops, and lists by chance."""

import numpy as np
import pytest
import scipy.sparse as sp

import relae
from relae import DataError, Features, Interactions, PlanError
from relae._common import memory
from relae.baselines import ContentKNN, ItemKNN, Popularity, Random
from relae.baselines import _knn as module
from relae.evaluation import evaluate, hold_out_new_items
from relae.tuning import tune

from ..oracles import EMPTY_ITEM, brute_force_top_k, csr, example, new_histories

USERS, ITEMS = 50, 23
X = example(USERS, ITEMS, weighted=True)
NEW = new_histories(7, ITEMS, weighted=True)
RNG = np.random.default_rng(8)
BARE = 6  # an item without features
TAGS = (RNG.random((ITEMS, 9)) < 0.3) * RNG.uniform(0.5, 2.0, (ITEMS, 9)).astype(np.float32)
SIGNED = (RNG.random((ITEMS, 40)) < 0.08) * RNG.normal(size=(ITEMS, 40)).astype(np.float32)
EMBEDDED = RNG.normal(size=(ITEMS, 5)).astype(np.float32)
FEATURES = {"tags": TAGS, "signed": SIGNED, "embedded": EMBEDDED}
for dense in FEATURES.values():
    dense[BARE] = 0


def dense_similarity(features, neighbours):
    """The definition, pair by pair; each column keeps its largest."""
    f = features.astype(np.float64)
    found = np.zeros((len(f), len(f)))
    for j in range(len(f)):
        cosines = {}
        for i in range(len(f)):
            if i != j and f[i] @ f[j] > 1e-9:
                cosines[i] = f[i] @ f[j] / (np.linalg.norm(f[i]) * np.linalg.norm(f[j]))
        for i in sorted(cosines, key=lambda i: (-cosines[i], i))[:neighbours]:
            found[i, j] = cosines[i]
    return found


@pytest.mark.parametrize("kind", FEATURES)
@pytest.mark.parametrize("neighbours", [1, 2, 7, ITEMS - 1, ITEMS + 9])
def test_scores_are_sums_of_the_largest_cosines(kind, neighbours, monkeypatch):
    monkeypatch.setattr(module, "_BATCH_BYTES", 4 * ITEMS * 10)  # three blocks
    model = ContentKNN(neighbours).fit(csr(X), item_features=FEATURES[kind])
    expected = dense_similarity(FEATURES[kind], neighbours)
    assert np.allclose(model.similarity_.toarray(), expected, rtol=1e-5, atol=1e-6)
    assert model.similarity_.has_canonical_format
    assert np.allclose(model.score(csr(NEW)), NEW @ expected, rtol=1e-5, atol=1e-5)
    assert model.score(csr(NEW)).dtype == np.float32
    ids, _ = model.recommend(csr(NEW[1:]), 4, allow=[2, 3, 5, 8])
    for row, history in zip(ids, NEW[1:], strict=True):
        others = {*np.flatnonzero(history), *range(ITEMS)} - {item for item in (2, 3, 5, 8) if not history[item]}
        assert row.tolist() == brute_force_top_k((history @ model.similarity_), 4, others)[0]


def test_the_examples_take_every_way_through():
    assert TAGS.min() == 0
    assert SIGNED.min() < 0 < (SIGNED != 0).mean() < module._DENSE
    assert EMBEDDED.min() < 0
    assert (EMBEDDED != 0).mean() > module._DENSE
    for dense in FEATURES.values():
        assert (dense_similarity(dense, ITEMS) > 0).sum() > ITEMS  # there is something to find


def test_features_are_given_in_any_form_or_are_those_of_the_data():
    expected = ContentKNN(5).fit(csr(X), item_features=TAGS).similarity_.toarray()
    for given in (sp.csc_array(TAGS), sp.coo_matrix(TAGS), Features(TAGS)):
        assert np.array_equal(ContentKNN(5).fit(csr(X), item_features=given).similarity_.toarray(), expected)
    data = Interactions(csr(X), features=TAGS)
    assert np.array_equal(ContentKNN(5).fit(data).similarity_.toarray(), expected)
    other = ContentKNN(5).fit(data, item_features=EMBEDDED).similarity_.toarray()
    assert np.array_equal(other, ContentKNN(5).fit(csr(X), item_features=EMBEDDED).similarity_.toarray())


def test_ties_go_to_the_lower_column():
    alike = np.tile([1.0, 0.0, 2.0], (9, 1))
    found = ContentKNN(3).fit(np.ones((2, 9)), item_features=alike).similarity_.toarray()
    assert np.array_equal(found > 0, dense_similarity(alike, 3) > 0)


@pytest.mark.parametrize("kind", FEATURES)
def test_permuting_items_permutes_the_scores(kind):
    order = np.random.default_rng(4).permutation(ITEMS)
    found = ContentKNN(6).fit(csr(X[:, order]), item_features=FEATURES[kind][order]).score(csr(NEW[:, order]))
    expected = ContentKNN(6).fit(csr(X), item_features=FEATURES[kind]).score(csr(NEW))
    assert np.allclose(found, expected[:, order], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", FEATURES)
def test_the_length_of_a_row_and_the_order_of_features_make_no_difference(kind):
    f = FEATURES[kind]
    longer = f[:, ::-1] * np.random.default_rng(5).uniform(0.1, 50, (ITEMS, 1))
    found, expected = (ContentKNN(5).fit(csr(X), item_features=given).similarity_.toarray() for given in (longer, f))
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_the_users_of_an_item_are_features_like_any_other():
    found = ContentKNN(7).fit(csr(X), item_features=csr(X.T))
    assert np.allclose(found.similarity_.toarray(), ItemKNN(7).fit(csr(X)).similarity_.toarray(), rtol=1e-5)


@pytest.mark.parametrize("kind", FEATURES)
def test_an_item_that_nobody_has_is_scored_and_one_without_features_is_not(kind):
    model = ContentKNN(30).fit(csr(X), item_features=FEATURES[kind])
    assert model.item_counts_[EMPTY_ITEM] == 0
    assert model.score(csr(X))[:, EMPTY_ITEM].any()
    assert not model.score(csr(X))[:, BARE].any()
    assert model.similarity_[[BARE]].nnz == 0


@pytest.mark.parametrize("features", [[[2.0]], [[-2.0]], [[0.0]]], ids=str)
def test_one_item(features):
    model = ContentKNN().fit(np.ones((3, 1)), item_features=np.array(features))
    assert model.similarity_.shape == (1, 1)
    assert model.similarity_.nnz == 0


def test_opposites_are_not_neighbours():
    features = np.array([[1.0, 0], [-1, 0], [0, 1], [-1, 1e-3]])
    found = ContentKNN(3).fit(np.ones((2, 4)), item_features=features).similarity_.toarray()
    assert np.allclose(found, dense_similarity(features, 3), atol=1e-6)
    assert (found > 0).sum() == 4


def test_no_features():
    for data in (csr(X), Interactions(csr(X))):
        with pytest.raises(DataError, match=r"no features of items to compare: give item_features .*with_features"):
            ContentKNN().fit(data)
    with pytest.raises(DataError, match="22 rows of features for 23 items"):
        ContentKNN().fit(csr(X), item_features=TAGS[1:])


@pytest.mark.parametrize("neighbours", [0, 2.5, True])
def test_bad_parameters(neighbours):
    with pytest.raises(ValueError, match=f"neighbours must be a whole number of at least 1, got {neighbours}"):
        ContentKNN(neighbours).fit(csr(X), item_features=TAGS)


def test_too_many_neighbours_for_the_memory(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    with pytest.raises(PlanError, match=r"22 neighbours of each of 23 items needs .* fit with fewer neighbours"):
        ContentKNN().fit(csr(X), item_features=TAGS)


@pytest.mark.parametrize("kind", FEATURES)
def test_progress_reaches_the_end(kind, monkeypatch):
    monkeypatch.setattr(module, "_BATCH_BYTES", 4 * ITEMS * 8)
    done = []
    model = ContentKNN(3)
    model.fit(csr(X), item_features=FEATURES[kind], progress=lambda stage, fraction: done.append((stage, fraction)))
    assert done == [("neighbours", at / ITEMS) for at in ((ITEMS,) if kind == "tags" else (8, 16, ITEMS))]


def test_a_saved_model_comes_back_without_the_features(tmp_path):
    data = Interactions(csr(X), items=[f"item {j}" for j in range(ITEMS)], features=EMBEDDED)
    model = ContentKNN(4).fit(data)
    model.save(tmp_path / "model")
    found = relae.load(tmp_path / "model", verify=True)
    assert type(found) is ContentKNN
    assert found.get_params() == {"neighbours": 4}
    assert np.array_equal(found.score(csr(NEW)), model.score(csr(NEW)))


# --- new items ---------------------------------------------------------------------------------------------------


def tastes(users=200, items=60, seed=0):
    """Users who like one of three kinds of items, and features that tell the kind, among others that tell nothing."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, items)
    liked = rng.integers(0, 3, users)[:, None] == kind
    x = rng.random((users, items)) < np.where(liked, 0.4, 0.05)
    features = np.column_stack([np.eye(3)[kind], rng.normal(0, 0.3, (items, 2))])
    return Interactions(csr(x.astype(np.float32)), features=features)


def test_new_items_are_found_by_their_features_and_by_nothing_else():
    split = hold_out_new_items(tastes(), 0.2, rng=np.random.default_rng(0))
    found = {
        type(model).__name__: evaluate(model.fit(split.train), split, ["ndcg"], [3])["ndcg@3"]
        for model in (ContentKNN(), ItemKNN(), Popularity(), Random())
    }
    assert found["ContentKNN"] > 0.45
    assert max(found["ItemKNN"], found["Popularity"], found["Random"]) < 0.3
    assert found["ItemKNN"] == found["Popularity"]  # all ties


def test_neighbours_can_be_tuned_by_new_items():
    split = hold_out_new_items(tastes(), 0.2, rng=np.random.default_rng(0))
    found = tune(ContentKNN(), split, objective="ndcg@3", budget=3, metrics=())
    values = {
        trial.parameters["neighbours"]: evaluate(ContentKNN(**trial.parameters).fit(split.train), split, ["ndcg"], [3])
        for trial in found.trials
    }
    assert len(values) == 3
    assert found.chosen_model().neighbours == max(values, key=lambda neighbours: values[neighbours]["ndcg@3"])


# --- by chance ---------------------------------------------------------------------------------------------------


def test_a_history_gets_the_same_list_every_time_and_others_get_others():
    model = Random().fit(csr(X))
    scores = model.score(csr(X))
    assert scores.shape == X.shape
    assert ((scores >= 0) & (scores < 1)).all()
    histories = {tuple(np.flatnonzero(row)) for row in X}
    assert len({row.tobytes() for row in scores}) == len(histories) < USERS  # two are twins
    backwards = Random().fit(csr(X)).score(csr((X[::-1] > 0).astype(np.float32)))  # weights do not count
    assert np.array_equal(backwards[::-1], scores)
    assert np.array_equal(model.score(csr(X[7:8])), scores[7:8])
    assert not np.isclose(Random(1).fit(csr(X)).score(csr(X)), scores).any()


def test_every_item_has_the_same_chance():
    x = np.random.default_rng(1).random((3000, 12)) < 0.5
    x = np.concatenate([x, np.zeros((3000, 8))], axis=1).astype(np.float32)
    x[:, 0] = np.arange(3000) + 1  # nobody is without a history
    unique = np.unique(x[:, 1:] > 0, axis=0, return_index=True)[1]
    ids, _ = Random().fit(csr(x)).recommend(csr(x[unique]), 1, allow=np.arange(12, 20))
    counts = np.bincount(ids.ravel(), minlength=20)[12:]
    assert counts.sum() == len(unique) > 1000
    assert (np.abs(counts - len(unique) / 8) < 5 * np.sqrt(len(unique) / 8)).all()


def test_batches_of_chance_make_no_difference(monkeypatch):
    model = Random(3).fit(csr(X))
    whole = model.recommend(csr(X), 5)[0]
    monkeypatch.setattr(Random, "users_at_once", lambda self: 7)
    assert np.array_equal(model.recommend(csr(X), 5)[0], whole)


@pytest.mark.parametrize("seed", [-1, 0.5, None, True])
def test_bad_seeds(seed):
    with pytest.raises(ValueError, match="seed must be a whole number of at least 0"):
        Random(seed).fit(csr(X))


def test_chance_can_be_saved(tmp_path):
    model = Random(5).fit(csr(X))
    model.save(tmp_path / "model")
    found = relae.load(tmp_path / "model", verify=True)
    assert repr(found) == "Random(seed=5)"
    assert np.array_equal(found.score(csr(NEW)), model.score(csr(NEW)))
