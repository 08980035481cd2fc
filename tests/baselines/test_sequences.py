"""The rivals of the next-item model, against loops."""

from itertools import pairwise

import numpy as np
import pytest

from relae import DataError, Interactions
from relae.baselines import LastItemKNN, Markov

from ..oracles import csr

SEQUENCES = [[0, 1, 2, 4], [1, 2, 3], [2, 1, 3], [4], [0, 1, 4, 3], [3, 0, 1]]
ITEMS = 6


def interactions():
    x, times = np.zeros((len(SEQUENCES), ITEMS), np.float32), np.zeros((len(SEQUENCES), ITEMS), np.int64)
    for user, sequence in enumerate(SEQUENCES):
        x[user, sequence], times[user, sequence] = 1, 100 * user + np.arange(len(sequence))
    return Interactions(csr(x), times=times[x > 0])


DATA = interactions()


@pytest.mark.parametrize("shrink", [0.0, 3.0])
def test_a_chain_counts_what_came_right_after(shrink):
    counts = np.zeros((ITEMS, ITEMS))
    for sequence in SEQUENCES:
        for before, after in pairwise(sequence):
            counts[before, after] += 1
    popularity = DATA.matrix.sum(axis=0) / DATA.matrix.nnz
    model = Markov(shrink).fit(DATA)
    for history in ([0, 1], [1, 0], [4], [5, 2, 3], [3, 5]):
        last = history[-1]
        total = counts[last].sum() + shrink
        expected = (counts[last] + shrink * popularity) / total if total else popularity
        np.testing.assert_allclose(model.score(history), expected, atol=1e-6)
    both = model.score({0: 1.0, 1: 1.0})
    np.testing.assert_allclose(both, model.score([0]) + model.score([1]), atol=1e-6)


@pytest.mark.parametrize("last", [1, 2])
def test_the_latest_items_vote_for_their_neighbours(last):
    gram = (DATA.matrix.T @ DATA.matrix).toarray()
    spread = np.sqrt(np.maximum(np.diag(gram), 1e-30))
    cosine = gram / np.outer(spread, spread) * (1 - np.eye(ITEMS))
    model = LastItemKNN(ITEMS, last).fit(DATA)
    expected = sum(cosine[item] / rank for rank, item in enumerate([2, 1, 0][:last], 1))
    np.testing.assert_allclose(model.score([0, 1, 2]), expected, atol=2e-6)
    ids, _ = model.recommend([5], 5)  # nobody has it: by popularity
    assert ids.tolist() == np.lexsort((np.arange(ITEMS), -model.item_counts_))[:5].tolist()
    fitted_without_times = LastItemKNN(ITEMS, last).fit(DATA.matrix)
    np.testing.assert_allclose(fitted_without_times.score([0, 1, 2]), model.score([0, 1, 2]))


def test_times_are_needed():
    with pytest.raises(DataError, match="Markov learns from the order of interactions, and these have no times"):
        Markov().fit(DATA.matrix)
