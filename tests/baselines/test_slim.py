"""SLIM beside scikit-learn's elastic net, column by column, and the conditions of its optimum."""

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet

from relae.baselines import SLIM

from ..oracles import EMPTY_ITEM, csr, example, new_histories

USERS, ITEMS = 32, 20
X = example(USERS, ITEMS, weighted=True)
NEW = new_histories(7, ITEMS, weighted=True)
CASES = [(0.1, 2.0, 50), (0.5, 10.0, 50), (0.0, 1.0, 50), (0.3, 1.0, 4)]


def dense_weights(x, l1, l2, count):
    x = x.astype(np.float64)
    lengths = np.linalg.norm(x, axis=0)
    weights = np.zeros((x.shape[1], x.shape[1]))
    for j in range(x.shape[1]):
        with np.errstate(divide="ignore", invalid="ignore"):
            cosines = np.nan_to_num(x.T @ x[:, j] / lengths)
        cosines[j] = 0
        support = [i for i in np.argsort(-cosines, kind="stable")[:count] if cosines[i] > 0]
        if support:
            share = l1 / (l1 + l2)
            net = ElasticNet(
                (l1 + l2) / len(x), l1_ratio=share, positive=True, fit_intercept=False, tol=1e-12, max_iter=100_000
            )
            weights[support, j] = net.fit(x[:, support], x[:, j]).coef_
    return weights


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("looked_up", [True, False])
@pytest.mark.filterwarnings("ignore::UserWarning")  # scikit-learn would rather have an l1
def test_weights_are_those_of_an_elastic_net(case, looked_up, monkeypatch):
    if not looked_up:
        monkeypatch.setattr("relae.baselines._slim.SQUARE_BYTES", 0)
    model = SLIM(*case).fit(csr(X))
    expected = dense_weights(X, *case)
    assert np.allclose(model.similarity_.toarray(), expected, atol=2e-4)
    assert np.allclose(model.score(csr(NEW)), NEW @ expected, atol=1e-3)


def test_no_weight_below_zero_and_none_for_itself():
    weights = SLIM(0.1, 1.0).fit(csr(X)).similarity_.toarray()
    assert (weights >= 0).all()
    assert (weights.diagonal() == 0).all()
    assert not weights[EMPTY_ITEM].any()
    assert not weights[:, EMPTY_ITEM].any()


def test_a_higher_l1_leaves_less_weight_for_every_item():
    sums = [SLIM(l1, 1.0).fit(csr(X)).similarity_.sum(axis=0) for l1 in (0.0, 0.3, 1.0, 1e6)]
    for less, more in zip(sums[1:], sums[:-1], strict=True):
        assert (less <= more + 1e-4).all()
        assert less.sum() < more.sum()
    assert sums[-1].sum() == 0


def test_permuting_items_permutes_the_scores():
    order = np.random.default_rng(4).permutation(ITEMS)
    scores = SLIM(0.1, 2.0).fit(csr(X[:, order])).score(csr(NEW[:, order]))
    assert np.allclose(scores, SLIM(0.1, 2.0).fit(csr(X)).score(csr(NEW))[:, order], atol=5e-4)
