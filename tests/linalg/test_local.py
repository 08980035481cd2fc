"""Neighbours of items beside all pairs, where sums on the way are 0: signs cancel, and tiny products vanish."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from relae import EASE
from relae.baselines import ItemKNN
from relae.linalg import as_csr, labelled, most_similar, nearest, transpose
from relae.solvers import Local

from ..oracles import csr

TINY = float(np.finfo(np.float32).tiny)
EXACT = st.sampled_from([-2.0, -1.0, 0.0, 0.0, 1.0, 2.0])


def all_pairs(dense, weights, count):
    """Members and closeness of each item, by the definition; the item itself is infinitely close."""
    found = []
    for j in range(dense.shape[1]):
        sums = [dense[:, i] @ dense[:, j] for i in range(dense.shape[1])]
        others = [i for i, total in enumerate(sums) if i != j and total > 0]
        others.sort(key=lambda i: (-sums[i] * weights[i], i))
        close = {j: np.inf} | {i: sums[i] * weights[i] for i in others[: count - 1]}
        found.append({i: close[i] for i in sorted(close)})
    return found


def found_by(dense, weights, count):
    x = as_csr(csr(dense), dense.dtype)
    members, sizes, close = nearest(transpose(x), labelled(x, weights), np.arange(dense.shape[1]), count)
    return [
        dict(zip(row[:size].tolist(), values[:size].tolist(), strict=True))
        for row, size, values in zip(members, sizes, close, strict=True)
    ]


@given(
    hnp.arrays(np.float32, st.tuples(st.integers(1, 12), st.integers(1, 9)), elements=EXACT),
    st.integers(1, 10),
)
def test_neighbours_of_any_signs(dense, count):
    weights = np.arange(1.0, 1 + dense.shape[1])
    assert found_by(dense, weights, count) == all_pairs(dense, weights, count)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 20, 400])
def test_sums_that_cancel_again_and_again(dtype, count):
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (48, 400)).astype(dtype)
    weights = np.random.default_rng(1).choice([0.5, 1.0, 2.0], 400)
    assert found_by(signs, weights, count) == all_pairs(signs, weights, count)


def test_products_that_vanish():
    dense = np.full((40, 300), np.float32(TINY))
    dense[3, :6] = 1.0
    dense[4, 5:9] = 1.0
    expected = [{i: np.inf if i == j else 1.0 for i in range(6)} for j in range(5)]
    found = found_by(dense, np.ones(300), 300)
    assert [{i: close for i, close in row.items() if close == np.inf or close > 0.5} for row in found[:5]] == expected
    assert found_by(dense, np.ones(300), 6)[:5] == expected
    assert found_by(dense[5:], np.ones(300), 20) == [{j: np.inf} for j in range(300)]


def test_similarities_of_signed_rows():
    signs = np.random.default_rng(2).choice([-1.0, 0.0, 1.0], (30, 200)).astype(np.float32)
    found = most_similar(csr(signs), np.ones(200), 15)
    for j, row in enumerate(all_pairs(signs, np.ones(200), 16)):
        del row[j]
        assert dict(zip(found[[j]].indices.tolist(), found[[j]].data.tolist(), strict=True)) == row


def test_models_with_signed_features_and_tiny_weights():
    rng = np.random.default_rng(0)
    x = (rng.random((100, 600)) < 0.01).astype(np.float32)
    x[rng.integers(0, 100, 600), np.arange(600)] = 1.0  # no item is new
    features = rng.choice([-1.0, 1.0], (600, 48))
    together = np.concatenate([x, features.T.astype(np.float32)])
    norms = np.sqrt((together**2).sum(axis=0, dtype=np.float64))
    expected = [list(row) for row in all_pairs(together, 1 / norms, 20)]
    local = EASE(20.0).fit(csr(x), item_features=features, solver=Local(20))
    columns = local.inverse_.columns.tocsc()
    same = [sorted(columns[:, [j]].indices.tolist()) == support for j, support in enumerate(expected)]
    assert np.mean(same) > 0.99  # cosines that differ by rounding only are in either order
    compact = EASE(20.0).fit(csr(x), item_features=features, solver="dual").compact(per_item=20)
    assert np.allclose(compact.inverse_.columns.toarray(), columns.toarray(), atol=1e-5)
    assert ItemKNN(20).fit(csr(x * np.float32(TINY))).similarity_.nnz == 0
