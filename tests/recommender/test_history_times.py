"""The order of a history reaches the model, in whatever form the history comes."""

import numpy as np
import pytest
import scipy.sparse as sp

from relae import Interactions
from relae.baselines import Popularity
from relae.data import Ids
from relae.errors import DataError
from relae.recommender import encode

ITEMS = Ids(["a", "b", "c", "d"])


def places(encoded):
    """Return the items of each row from the earliest to the latest."""
    rows = []
    for start, stop in zip(encoded.matrix.indptr[:-1], encoded.matrix.indptr[1:], strict=True):
        order = np.argsort(encoded.times[start:stop], kind="stable")
        rows.append("".join(ITEMS.take(encoded.matrix.indices[start:stop][order])))
    return rows


def test_lists_are_in_the_order_of_time():
    assert places(encode(["c", "a", "b"], ITEMS)) == ["cab"]
    assert places(encode([["d", "a"], ["b", "z", "a", "b"]], ITEMS)) == ["da", "ab"]  # the last place of b counts
    assert places(encode(np.array(["c", "a"]), ITEMS)) == ["ca"]


def test_sets_and_mappings_have_no_order():
    assert encode({"c": 1.0, "a": 2.0}, ITEMS).times is None
    mixed = encode([{"c", "a"}, ["d", "b"]], ITEMS)
    assert mixed.times[:2].tolist() == [0, 0]
    assert places(mixed)[1] == "db"


def test_interactions_bring_their_times_to_other_columns():
    other = Interactions(np.array([[1, 1, 1]]), items=["c", "a", "x"], times=[7, 9, 8])
    assert places(encode(other, ITEMS)) == ["ca"]
    same = Interactions(np.array([[1, 0, 1, 0]]), items=ITEMS, times=[9, 7])
    assert encode(same, ITEMS).times.tolist() == [9, 7]


def test_a_matrix_has_times_beside_it():
    matrix = sp.csr_array(np.array([[1.0, 0, 1, 1], [0, 1, 0, 0]]))
    assert places(encode(matrix, ITEMS, times=np.array([5, 6, 4, 1]))) == ["dac", "b"]
    with pytest.raises(DataError, match="one integer for each of the 4 entries of the histories"):
        encode(matrix, ITEMS, times=np.array([5, 6]))
    with pytest.raises(DataError, match="lists are in the order of time"):
        encode(["a"], ITEMS, times=np.array([5]))


def test_a_model_weighs_batches_with_the_times_of_their_rows():
    class Latest(Popularity):
        """Recommend nothing, and note what `weigh` is told."""

        def users_at_once(self):
            return 2

        def weigh(self, batch, times):
            seen.append((batch.indices.tolist(), times.tolist()))
            return batch

    seen = []
    x = Interactions(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 0]]), times=[4, 3, 2, 1, 0])
    model = Latest().fit(x)
    model.recommend(x, 1)
    assert seen == [([0, 1, 1, 2], [4, 3, 2, 1]), ([0], [0])]
    seen.clear()
    model.score(x)
    assert seen == [([0, 1, 1, 2], [4, 3, 2, 1]), ([0], [0])]
