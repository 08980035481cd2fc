"""Fingerprints: other data are told apart, and how numbers are stored does not matter."""

import numpy as np
import pytest
import scipy.sparse as sp

from relae.linalg import fingerprint

X = sp.csr_array(np.array([[1, 0, 2], [0, 3, 0]], np.float32))


def test_the_width_of_indices_does_not_matter():
    wide = sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape)
    assert wide.indices.dtype != X.indices.dtype
    assert fingerprint(wide, np.arange(3)) == fingerprint(X.copy(), np.arange(3))


@pytest.mark.parametrize(
    "others",
    [
        (sp.csr_array(np.array([[1, 0, 2], [0, 4, 0]], np.float32)),),
        (sp.csr_array(np.array([[1, 2, 0], [0, 3, 0]], np.float32)),),
        (sp.csr_array(np.array([[1, 0, 2], [0, 3, 0], [0, 0, 0]], np.float32)),),
        (sp.csr_array(np.array([[1, 0, 2, 0], [0, 3, 0, 0]], np.float32)),),
        (X, np.arange(3)),
        (X, X),
        (),
    ],
)
def test_other_data_are_told_apart(others):
    assert fingerprint(*others) != fingerprint(X)
