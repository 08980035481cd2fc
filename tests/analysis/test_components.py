"""The parts of B that high- and low-ranked components make up, against a dense decomposition."""

import numpy as np
import pytest

from relae import LAE
from relae.analysis import components
from relae.errors import DataError
from relae.evaluation import head_items
from relae.solvers import Auto

from .suite import dense_parts, shop

SMALL = {"popular": 6, "unpopular": 14}


@pytest.mark.parametrize("shape", [(90, 140), (140, 90)], ids=["wide", "tall"])
def test_exact_parts_are_those_of_a_dense_decomposition(shape):
    data = shop(*shape)
    found = components(data, 5.0, rng=np.random.default_rng(0), **SMALL)
    columns = data.items.positions(found.items)
    high, low = dense_parts(data.matrix.toarray().astype(np.float64), columns, 5.0, found.group)
    assert found.exact
    assert found.group == round(0.2 * found.rank)
    np.testing.assert_allclose(found.high, high, atol=1e-9)
    np.testing.assert_allclose(found.low, low, atol=1e-9)


def test_two_halves_are_the_whole_solution():
    data = shop(141, 90)
    found = components(data, 5.0, rng=np.random.default_rng(0), share=0.5, **SMALL)
    assert found.rank == 2 * found.group
    columns = data.items.positions(found.items)
    expected = LAE(5.0).fit(data, solver=Auto(dtype="float64")).weights()[np.ix_(columns, columns)]
    np.testing.assert_allclose(found.high + found.low, expected, atol=1e-9)


def test_items_are_of_head_and_tail_by_falling_popularity():
    data = shop(90, 140)
    counts = np.bincount(data.matrix.indices, minlength=140)
    found = components(data, rng=np.random.default_rng(4), **SMALL)
    columns = data.items.positions(found.items)
    head = head_items(counts)
    assert head[columns[:6]].all()
    assert not head[columns[6:]].any()
    assert len(set(columns)) == 20
    np.testing.assert_array_equal(found.counts, counts[columns])
    assert (np.diff(found.counts[:6]) <= 0).all()
    assert (np.diff(found.counts[6:]) <= 0).all()


@pytest.mark.parametrize("shape", [(300, 450), (450, 300)], ids=["wide", "tall"])
def test_the_filter_is_close_to_the_exact_parts(shape):
    """The edges of the filter are where an estimate of the spectrum puts them: with about 1% of 300 ranks.

    Three components of the 60 may be on the wrong side, and as many are blurred: √(6/60) ≈ 0.3 of a part of equal
    components, as the low one nearly is; little of the high one, which the largest make up.
    """
    data = shop(*shape)
    exact = components(data, rng=np.random.default_rng(0), **SMALL)
    found = components(data, rng=np.random.default_rng(0), exact_limit=0, **SMALL)
    assert exact.exact
    assert not found.exact
    assert found.items == exact.items
    assert found.group == pytest.approx(exact.group, rel=0.03)
    for part, tolerance in (("high", 0.05), ("low", 0.3)):
        ours, theirs = getattr(found, part), getattr(exact, part)
        assert np.linalg.norm(ours - theirs) <= tolerance * np.linalg.norm(theirs)
        assert found.weight(ours) == pytest.approx(exact.weight(theirs), rel=0.25)


def test_weights_are_means_over_pairs_of_different_items():
    found = components(shop(90, 140), rng=np.random.default_rng(0), **SMALL)
    pairs = {"pp": [], "pu": [], "uu": []}
    for i in range(20):
        for j in range(20):
            if i != j:
                pairs["".join(sorted("p" if at < 6 else "u" for at in (i, j)))].append(abs(found.high[i, j]))
    assert found.weight(found.high) == pytest.approx([np.mean(values) for values in pairs.values()])


def test_the_frame_has_a_row_per_pair():
    found = components(shop(90, 140), rng=np.random.default_rng(0), **SMALL)
    frame = found.to_polars()
    assert frame.height == 400
    row = frame.row(3 * 20 + 7, named=True)
    assert (row["item"], row["other"], row["group"], row["other_group"]) == (
        *(found.items[at] for at in (3, 7)),
        "popular",
        "unpopular",
    )
    assert (row["high"], row["low"]) == (found.high[3, 7], found.low[3, 7])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"popular": 200}, DataError, "cannot draw 200 popular items: there are"),
        ({"unpopular": 0}, DataError, "cannot draw 0 unpopular items"),
        ({"share": 0.6}, ValueError, r"share must lie in \(0, 0.5\]"),
        ({"l2": 0.0}, ValueError, "l2 must be a finite number above 0"),
    ],
)
def test_what_makes_no_sense_is_an_error(options, error, message):
    with pytest.raises(error, match=message):
        components(shop(90, 140), rng=np.random.default_rng(0), **(SMALL | options))
