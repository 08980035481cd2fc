"""Mask, filter, top-k."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from relae.ranking import barred_columns, rank

from .oracles import brute_force_top_k, csr

COLUMNS = st.none() | st.lists(st.integers(0, 5))


@given(COLUMNS, COLUMNS)
def test_barred_columns(allow, deny):
    found = barred_columns(6, *(None if columns is None else np.array(columns, np.int64) for columns in (allow, deny)))
    if allow is None and deny is None:
        assert found is None
    else:
        barred = [column in (deny or ()) or (allow is not None and column not in allow) for column in range(6)]
        assert found.tolist() == barred


@given(
    hnp.arrays(np.float64, (3, 6), elements=st.floats(-2, 2)),
    st.none() | hnp.arrays(np.float64, 6, elements=st.floats(-2, 2)),
    st.none() | hnp.arrays(bool, (3, 6)),
    st.none() | hnp.arrays(bool, 6),
    st.integers(1, 8),
)
def test_rank(values, scale, seen, barred, k):
    before = [None if array is None else array.copy() for array in (values, scale, barred)]
    found, best = rank(values, k, scale=scale, seen=None if seen is None else csr(seen), barred=barred)
    for row in range(3):
        scores = values[row] if scale is None else values[row] * scale
        banned = set() if barred is None else set(np.flatnonzero(barred))
        if seen is not None:
            banned |= set(np.flatnonzero(seen[row]))
        columns, expected = brute_force_top_k(scores, k, banned)
        assert found[row].tolist() == columns
        assert best[row].tolist() == expected
    for array, copy in zip((values, scale, barred), before, strict=True):
        assert array is copy is None or np.array_equal(array, copy)


@pytest.mark.parametrize("k", [0, -1, 2.5, 1.0, True, np.True_, "1", None])
def test_bad_k(k):
    with pytest.raises(ValueError, match="k must be a whole number of at least 1"):
        rank(np.ones((1, 3)), k)
