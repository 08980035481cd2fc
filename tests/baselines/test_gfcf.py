"""GF-CF beside a full singular value decomposition in double precision."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from relae import DataError, Interactions, NotFittedError, PrecisionError, UnknownItemsWarning
from relae.baselines import GFCF

from ..oracles import EMPTY_ITEM, EMPTY_USER, brute_force_top_k, csr, example, new_histories

USERS, ITEMS, RANK = 32, 20, 5
X = example(USERS, ITEMS, weighted=True)
NEW = new_histories(7, ITEMS, weighted=True)
NAMES = [f"item {column * 3 % ITEMS}" for column in range(ITEMS)]


def root_inverse(degrees):
    return np.array([1 / np.sqrt(degree) if degree > 0 else 0.0 for degree in degrees])


def dense_weights(x, alpha, rank):
    """W with scores x W: R̃ᵀR̃ + α · D^−½ V Vᵀ D^½, items without users scored 0."""
    x = x.astype(np.float64)
    scale = root_inverse(x.sum(axis=0))
    filtered = root_inverse(x.sum(axis=1))[:, None] * x * scale
    _, values, rows = np.linalg.svd(filtered, full_matrices=False)
    assert rank in (0, len(values)) or values[rank - 1] > values[rank] + 1e-3  # the first ones are well defined
    v = rows[:rank].T
    back = np.sqrt(x.sum(axis=0))
    return filtered.T @ filtered + alpha * scale[:, None] * (v @ v.T) * back


def fitted(alpha=0.3, rank=RANK, items=NAMES):
    return GFCF(alpha, rank).fit(Interactions(csr(X), items=items))


CASES = [(0.3, RANK), (2.0, 1), (0.1, 12), (0.0, RANK)]


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return request.param


@pytest.fixture
def model(case):
    return fitted(*case)


@pytest.fixture
def scores(case):
    return lambda histories: histories.astype(np.float64) @ dense_weights(X, *case)


# --- numbers -----------------------------------------------------------------------------------------------------


def test_scores_of_known_and_new_users(model, scores):
    for histories in (X, NEW):
        found = model.score(csr(histories))
        assert found.dtype == np.float32
        assert np.allclose(found, scores(histories), atol=2e-5)


def test_fewer_users_than_items_and_more(case):
    alpha, rank = case
    for x in (X[:14], np.concatenate([X, X[::-1] * 0.5])):
        rank = min(rank, 6)
        found = GFCF(alpha, rank).fit(csr(x)).score(csr(NEW))
        assert np.allclose(found, NEW @ dense_weights(x, alpha, rank), atol=5e-5)


def test_what_is_kept():
    model = fitted()
    scale = root_inverse(X.sum(axis=0, dtype=np.float64))
    expected = root_inverse(X.sum(axis=1, dtype=np.float64))[:, None] * X * scale
    assert sp.issparse(model.filter_)
    assert np.allclose(model.filter_.toarray(), expected, atol=1e-6)
    assert model.vectors_.shape == (ITEMS, RANK)
    assert np.allclose(model.vectors_.T @ model.vectors_, np.eye(RANK), atol=1e-5)
    lengths = np.linalg.norm(expected @ model.vectors_, axis=0)
    assert np.allclose(lengths, np.linalg.svd(expected)[1][:RANK], atol=1e-5)  # falling
    assert fitted(alpha=0.0).vectors_ is None
    assert model.item_counts_.tolist() == (X > 0).sum(axis=0).tolist()
    assert model.n_users_ == USERS


def test_an_item_nobody_had_is_scored_zero(model):
    assert not X[:, EMPTY_ITEM].any()
    assert (model.score(csr(X))[:, EMPTY_ITEM] == 0).all()
    only = np.zeros((1, ITEMS), np.float32)
    only[0, EMPTY_ITEM] = 1
    assert (model.score(csr(only)) == 0).all()


def test_a_rank_beyond_that_of_the_matrix_gives_finite_scores():
    x = np.repeat(np.eye(3, dtype=np.float32), 4, axis=0) @ (np.arange(12)[None] % 3 == np.arange(3)[:, None])
    found = GFCF(0.5, rank=6).fit(csr(x)).score(csr(x))
    assert np.isfinite(found).all()


def test_a_fit_can_be_repeated():
    assert np.array_equal(fitted().vectors_, fitted().vectors_)
    assert np.array_equal(fitted().score(csr(NEW)), fitted().score(csr(NEW)))


def test_a_second_fit_refits():
    model = fitted()
    other = example(25, 11, weighted=False, seed=9)
    model.fit(Interactions(csr(other), items=[f"x{j}" for j in range(11)]))
    assert np.allclose(model.score(csr(other)), other @ dense_weights(other, 0.3, RANK), atol=2e-5)
    model.set_params(alpha=0.0).fit(csr(X))
    assert model.vectors_ is None
    assert np.allclose(model.score(csr(X)), X @ dense_weights(X, 0.0, RANK), atol=2e-5)


def test_permuting_items_permutes_the_scores():
    order = np.random.default_rng(4).permutation(ITEMS)
    found = GFCF(0.3, RANK).fit(csr(X[:, order])).score(csr(NEW[:, order]))
    assert np.allclose(found, fitted().score(csr(NEW))[:, order], atol=2e-5)


def test_two_tastes_are_kept_apart():
    rng = np.random.default_rng(0)
    same = (np.arange(40)[:, None] < 20) == (np.arange(24)[None] < 12)
    x = ((rng.random((40, 24)) < 0.5) & same).astype(np.float32)
    model = GFCF(0.3, rank=2).fit(csr(x))
    history = np.zeros((2, 24), np.float32)
    history[0, [0, 3]] = history[1, [15, 20]] = 1
    ids, _ = model.recommend(csr(history), 6)
    assert (ids[0] < 12).all()
    assert (ids[1] >= 12).all()


def test_no_square_of_items_is_ever_formed():
    rng = np.random.default_rng(0)
    items = 60_000  # 14 GB as a square
    x = sp.random_array((50, items), density=0.001, rng=rng, dtype=np.float32)
    model = GFCF(0.3, rank=4).fit(x)
    assert model.vectors_.shape == (items, 4)
    assert model.recommend(x.tocsr()[:3], 5)[0].shape == (3, 5)


# --- recommendations ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 5, ITEMS + 3])
@pytest.mark.parametrize("exclude_seen", [True, False])
def test_recommendations_are_the_best_scores(model, scores, k, exclude_seen):
    deny, allow = [4, 9], [*range(12), 15]
    for options, banned in (
        ({}, set()),
        ({"deny": deny}, set(deny)),
        ({"allow": allow, "deny": deny}, set(range(ITEMS)) - set(allow) | set(deny)),
    ):
        ids, values = model.recommend(csr(NEW), k, exclude_seen=exclude_seen, **options)
        own = model.score(csr(NEW))
        for row, history in enumerate(NEW):
            if history.any():
                seen = set(np.flatnonzero(history)) if exclude_seen else set()
                expected_ids, expected = brute_force_top_k(own[row], k, seen | banned)
                assert ids[row].tolist() == expected_ids
                assert np.allclose(values[row], expected)
                known = [column for column in expected_ids if column >= 0]
                assert np.allclose(values[row, : len(known)], scores(NEW)[row, known], atol=2e-5)


def test_raw_ids_and_columns_agree():
    model = fitted()
    histories = [{NAMES[column]: float(row[column]) for column in np.flatnonzero(row)} for row in NEW]
    columns, scores = model.recommend(csr(NEW), 6)
    names, raw_scores = model.recommend(histories, 6, deny=["who?"])
    assert names.tolist() == [[NAMES[column] for column in row] for row in columns]
    assert np.allclose(scores, raw_scores)
    single, _ = model.recommend(histories[3], 6)
    assert single.tolist() == names[3].tolist()
    with pytest.warns(UnknownItemsWarning, match="1 of 2 items"):
        model.recommend([NAMES[0], "who?"], 2)


def test_an_empty_history_gets_the_popular_items(model):
    counts = (X > 0).sum(axis=0)
    popular = sorted(range(ITEMS), key=lambda column: (-counts[column], column))
    ids, scores = model.recommend(csr(NEW[:1]), 4)
    assert ids.tolist() == [popular[:4]]
    assert scores.tolist() == [[0.0] * 4]


def test_batches_make_no_difference(model, monkeypatch):
    whole = model.recommend(csr(X), 5)
    scores = model.score(csr(X))
    monkeypatch.setattr("relae.baselines._graph_filter._BATCH_BYTES", 3.5 * 4 * (USERS + 2 * ITEMS))
    stages = []
    ids, values = model.recommend(csr(X), 5, progress=lambda stage, done: stages.append((stage, done)))
    assert len(stages) == 11
    assert stages[-1] == ("recommend", 1.0)
    assert np.array_equal(ids, whole[0])
    assert np.allclose(values, whole[1])
    assert np.allclose(model.score(csr(X)), scores)
    monkeypatch.setattr("relae.baselines._graph_filter._BATCH_BYTES", 1)
    assert np.array_equal(model.recommend(csr(X[:3]), 5)[0], whole[0][:3])


# --- the habits of an estimator ----------------------------------------------------------------------------------


def test_parameters():
    model = GFCF(0.2, rank=7)
    assert model.get_params() == {"alpha": 0.2, "rank": 7}
    assert repr(model) == "GFCF(alpha=0.2, rank=7)"
    assert repr(GFCF()) == "GFCF()"
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(ValueError, match="GFCF has no parameter 'l2': its parameters are alpha, rank"):
        model.set_params(l2=3)
    with pytest.raises(NotFittedError, match="this GFCF is not fitted yet"):
        model.recommend(csr(NEW))


def test_fit_returns_self_and_keeps_the_parameters():
    model = GFCF(0.2, rank=7)
    assert model.fit(csr(X)) is model
    assert model.get_params() == {"alpha": 0.2, "rank": 7}
    assert all(name.endswith("_") for name in set(vars(model)) - {"alpha", "rank"})


def test_pickle():
    model = fitted()
    other = pickle.loads(pickle.dumps(model))
    assert np.array_equal(other.score(csr(NEW)), model.score(csr(NEW)))


def test_progress_reaches_the_end():
    done = []
    GFCF(0.3, RANK).fit(csr(X), progress=lambda stage, fraction: done.append(fraction))
    assert done == sorted(done)
    assert done[-1] == 1.0
    assert 0 < done[0] < 1


@pytest.mark.parametrize("rank", [0, -1, ITEMS, 256])
def test_an_impossible_rank(rank):
    with pytest.raises(DataError, match=f"rank must lie between 1 and 19 for 32 users × 20 items, got {rank}"):
        GFCF(rank=rank).fit(csr(X))


def test_without_the_low_pass_filter_the_rank_does_not_matter():
    assert np.allclose(GFCF(0.0, rank=256).fit(csr(X)).score(csr(NEW)), NEW @ dense_weights(X, 0.0, 0), atol=2e-5)


@pytest.mark.parametrize("alpha", [-0.1, np.nan, np.inf])
def test_a_bad_alpha(alpha):
    with pytest.raises(ValueError, match="alpha must be a finite number of at least 0"):
        GFCF(alpha, RANK).fit(csr(X))


def test_a_rank_that_is_not_a_whole_number():
    with pytest.raises(ValueError, match="rank must"):
        GFCF(0.3, 2.5).fit(csr(X))


def test_nothing_to_fit():
    with pytest.raises(DataError, match="nothing to fit: 3 users × 4 items"):
        GFCF().fit(np.zeros((3, 4)))


def test_a_fit_that_fails_leaves_the_earlier_one():
    model = fitted()
    expected = model.score(csr(NEW))
    with pytest.raises(DataError):
        model.fit(np.ones((2, 2)))
    assert np.array_equal(model.score(csr(NEW)), expected)


def test_users_without_items_change_nothing():
    assert not X[EMPTY_USER].any()
    rest = np.delete(X, EMPTY_USER, axis=0)
    found = GFCF(0.3, RANK).fit(csr(rest)).score(csr(NEW))
    assert np.allclose(found, fitted(items=None).score(csr(NEW)), atol=2e-5)


def test_singular_vectors_that_are_not_found_leave_an_earlier_fit(monkeypatch):
    model = GFCF(alpha=0.5, rank=RANK).fit(csr(X))
    before = model.score(csr(NEW))

    def endless(*_, **__):
        raise np.linalg.LinAlgError(f"{RANK} singular vectors were found to 1e-02, not to 1e-04")

    monkeypatch.setattr("relae.baselines._graph_filter.right_singular_vectors", endless)
    with pytest.raises(PrecisionError, match=f"{RANK} singular vectors were found to 1e-02.*try another rank"):
        model.fit(csr(X))
    np.testing.assert_array_equal(model.score(csr(NEW)), before)
