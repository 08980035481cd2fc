"""Small tables, and the slow and obvious way from a table to a matrix."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from unittest.mock import patch

import numpy as np
import polars as pl
from hypothesis import strategies as st

from relae.data import Features, Ids, Interactions

USERS = st.one_of(
    st.lists(st.integers(-5, 5), min_size=1, max_size=25),
    st.lists(st.sampled_from(["ann", "bob", "Åsa", "李", "0155", "a b"]), min_size=1, max_size=25),
)


@st.composite
def tables(draw):
    """A table of a few rows: integers or strings as ids, whole or fractional weights, ratings of 1 to 5."""
    users = draw(USERS)
    rows = len(users)
    column = {"min_size": rows, "max_size": rows}
    return pl.DataFrame(
        {
            "user": users,
            "item": draw(st.lists(st.integers(0, 6), **column)),
            "weight": draw(st.lists(st.floats(0, 100, width=32), **column)),
            "rating": draw(st.lists(st.integers(1, 5), **column)),
        }
    )


def as_dict(data: Interactions) -> dict:
    """The cells by raw ids."""
    coo = data.matrix.tocoo()
    users, items = data.users.take(coo.row), data.items.take(coo.col)
    return dict(zip(zip(users, items, strict=True), coo.data.tolist(), strict=True))


def summed(table: pl.DataFrame) -> dict:
    """The cells of a table with weights, by a loop."""
    sums = defaultdict(float)
    for row in sorted(table.select("user", "item", "weight").rows()):
        sums[row[:2]] += row[2]
    cells = {pair: float(np.float32(value)) for pair, value in sums.items()}
    return {pair: value for pair, value in cells.items() if value > 0}


def core(pairs: set, k: int) -> set:
    """The k-core by dropping one offender at a time, which is maximal in whatever order."""
    pairs = set(pairs)
    while True:
        users, items = Counter(u for u, _ in pairs), Counter(i for _, i in pairs)
        offender = next((p for p in sorted(pairs, key=str) if users[p[0]] < k or items[p[1]] < k), None)
        if offender is None:
            return pairs
        pairs.remove(offender)


def same(left: Interactions, right: Interactions) -> bool:
    """Whether two data sets agree in everything."""
    a, b = left.matrix, right.matrix
    titles = (
        left.titles is right.titles is None
        if left.titles is None or right.titles is None
        else left.titles.tolist() == right.titles.tolist()
    )
    return (
        left.users == right.users
        and left.items == right.items
        and a.shape == b.shape
        and np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.indices, b.indices)
        and np.array_equal(a.data, b.data)
        and titles
        and same_features(left.features, right.features)
    )


def seen_pairs(data: Interactions, items: Iterable | None = None) -> set:
    """What users have had beside their histories, by raw ids; with `items` also items that are no columns."""
    axis = data.items if items is None else Ids(sorted(set(items)))
    found = data.seen_on(axis)
    if found is None:
        return set()
    assert found.dtype == bool
    assert found.indices.dtype == np.int32
    assert found.has_canonical_format
    assert found.data.all()
    cells = found.tocoo()
    return set(zip(data.users.take(cells.row), axis.take(cells.col), strict=True))


def dropped_users(data: Interactions) -> dict:
    """The users whom filters dropped, with the filter."""
    if data.dropped is None:
        return {}
    return {user: data.dropped.why(user) for user in data.dropped.users.values.tolist()}


def same_features(left: Features | None, right: Features | None) -> bool:
    """Whether the features of two data sets agree."""
    if left is None or right is None:
        return left is right
    return left.names.tolist() == right.names.tolist() and np.array_equal(left.matrix.toarray(), right.matrix.toarray())


def check_form(data: Interactions) -> None:
    """Everything that the rest of the package relies on."""
    matrix = data.matrix
    assert matrix.format == "csr"
    assert matrix.dtype == np.float32
    assert matrix.indices.dtype == np.int32
    assert matrix.has_canonical_format
    assert (matrix.data > 0).all()
    assert matrix.shape == (len(data.users), len(data.items)) == (data.n_users, data.n_items)
    assert matrix.nnz == data.n_interactions


def stream(paths, **options):
    """Read files in batches, also a single one that would fit into memory."""
    with patch("relae.data._scan.fits_memory", lambda file: False):
        return Interactions.read(paths, **options)
