"""Figure 2 of the paper: which items the high- and the low-ranked principal components speak of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from relae._common.checks import check_finite, refuse
from relae._common.progress import Progress, of_stage
from relae.analysis._spectral import (
    EXACT_LIMIT,
    Sides,
    Top,
    Values,
    chebyshev_series,
    estimated_values,
    exact_pairs,
    is_exact,
    sides,
    top_pairs,
)
from relae.data import InteractionsLike, as_interactions
from relae.errors import DataError
from relae.evaluation import head_items
from relae.models import suggested_l2

if TYPE_CHECKING:
    import polars as pl

_DEGREE = 600  # of the filters: their edges are sharper than a density has to be


@dataclass(frozen=True, eq=False)
class Components:
    """Two parts of LAE's solution B, for some items in the order of falling popularity.

    Attributes
    ----------
    items : list
        Raw ids; the first `popular` of them are of the head, the others of the tail.
    counts : (items,)
        Users per item.
    popular : int
    high, low : (items, items)
        The parts of B that the highest- and the lowest-ranked components make up.
    l2, share : float
        λ, and the share of the components in each part.
    rank, group : int
        Number of components, and of those in each part.
    exact : bool
        False if the components at the edges of the two parts are told apart by a smooth filter.
    """

    items: list[Any]
    counts: NDArray[np.int64]
    popular: int
    high: NDArray[np.float64]
    low: NDArray[np.float64]
    l2: float
    share: float
    rank: int
    group: int
    exact: bool

    def weight(self, part: NDArray[np.float64]) -> tuple[float, float, float]:
        """Return the mean absolute weight of pairs of different items in `high` or `low`.

        Returns
        -------
        Of two popular ones, of a popular and an unpopular one, of two unpopular ones.
        """
        size, n = np.abs(part), self.popular
        apart = ~np.eye(len(part), dtype=bool)
        return (
            float(size[:n, :n][apart[:n, :n]].mean()),
            float(size[:n, n:].mean()),
            float(size[n:, n:][apart[n:, n:]].mean()),
        )

    def to_polars(self) -> "pl.DataFrame":
        """Return a row per pair of items: item, other, their counts and groups, high, low, exact."""
        import polars as pl

        n = len(self.items)
        first, second = np.divmod(np.arange(n * n), n)
        group = np.where(np.arange(n) < self.popular, "popular", "unpopular")
        return pl.DataFrame(
            {
                "item": [self.items[at] for at in first],
                "other": [self.items[at] for at in second],
                "count": self.counts[first],
                "other_count": self.counts[second],
                "group": group[first],
                "other_group": group[second],
                "high": self.high.ravel(),
                "low": self.low.ravel(),
                "exact": np.full(n * n, self.exact),
            }
        )


def components(
    data: InteractionsLike,
    l2: float | None = None,
    *,
    rng: np.random.Generator,
    share: float = 0.2,
    popular: int = 20,
    unpopular: int = 80,
    head_share: float = 0.2,
    exact_limit: int = EXACT_LIMIT,
    progress: Progress | None = None,
) -> Components:
    """Return what the first and the last principal components add to LAE's B = V diag(σ²/(σ²+λ)) Vᵀ.

    Only the rows and columns of the chosen items are ever formed. Where the shorter side of X is too long to decompose,
    the components are told apart by polynomials of the Gram matrix with smooth edges.

    Parameters
    ----------
    data
        Interactions, or a sparse matrix (users × items).
    l2
        λ; the suggested one if not given.
    rng
        Draws the items, and the random vectors of an estimate.
    share
        Share of the components in each of the two parts.
    popular, unpopular
        How many items to draw from the head and from the tail.
    head_share
        Share of the items that are the head.
    exact_limit
        Number of users or items, whichever are fewer, up to which all components are exact.
    progress
        Called with the name of a stage and the fraction of it that is done.
    """
    interactions = as_interactions(data)
    if not 0 < share <= 0.5:
        refuse("share", share, "lie in (0, 0.5]")
    x = interactions.matrix
    l2 = suggested_l2(x) if l2 is None else float(l2)
    check_finite("l2", l2, above_zero=True)
    grams = sides(x)
    counts = np.bincount(x.indices, minlength=x.shape[1])
    columns = _drawn(counts, popular, unpopular, head_share, rng)
    block = _block(grams, np.searchsorted(grams.items, columns))
    exact = is_exact(grams.side, exact_limit)
    if exact:
        high, low, rank, group = _exact(grams, block, l2, share)
    else:
        high, low, rank, group = _filtered(grams, block, l2, share, rng, progress)
    ids = list(interactions.items.take(columns))
    return Components(ids, counts[columns], popular, high, low, l2, share, rank, group, exact)


def _drawn(
    counts: NDArray[np.int64], popular: int, unpopular: int, head_share: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return columns of random items of the head and of the tail, by falling popularity."""
    head = head_items(counts, head_share)
    parts = []
    for name, group, number in (("popular", head, popular), ("unpopular", ~head, unpopular)):
        able = np.flatnonzero(group & (counts > 0))
        if not 0 < number <= len(able):
            raise DataError(f"cannot draw {number:,} {name} items: there are {len(able):,}")
        drawn = rng.choice(able, number, replace=False)
        parts.append(drawn[np.lexsort((drawn, -counts[drawn]))])
    return np.concatenate(parts)


def _block(grams: Sides, rows: NDArray[np.int64]) -> Values:
    """Return what stands for the items on the shorter side : (side, items): their users, or themselves."""
    if grams.users_are_rows:
        return np.asarray(grams.a[:, rows].toarray())
    units = np.zeros((grams.side, len(rows)))
    units[rows, np.arange(len(rows))] = 1.0
    return units


def _scaling(grams: Sides, l2: float) -> Callable[[Values], Values]:
    """Return the factor of each eigenvalue in B, for the Gram matrix of the shorter side.

    V diag(s/(s+λ)) Vᵀ of items; with u an eigenvector of X Xᵀ, Xᵀu/√s is one of XᵀX, hence Xᵀ U diag(1/(s+λ)) Uᵀ X.
    """
    if grams.users_are_rows:
        return lambda s: np.asarray(1.0 / (s + l2))
    return lambda s: np.asarray(s / (s + l2))


def _group(rank: int, share: float) -> int:
    return max(1, round(share * rank))


def _exact(grams: Sides, block: Values, l2: float, share: float) -> tuple[Values, Values, int, int]:
    values, vectors = exact_pairs(grams)
    group = _group(len(values), share)
    scaling = _scaling(grams, l2)

    def part(of: slice) -> Values:
        sides_of_items = block.T @ vectors[:, of]
        return np.asarray((sides_of_items * scaling(values[of])) @ sides_of_items.T)

    return part(slice(group)), part(slice(len(values) - group, None)), len(values), group


def _filtered(
    grams: Sides, block: Values, l2: float, share: float, rng: np.random.Generator, progress: Progress | None
) -> tuple[Values, Values, int, int]:
    top: Top = top_pairs(grams, rng)
    values = estimated_values(grams, top, rng, progress=progress)
    rank, group = len(values), _group(len(values), share)
    first, last = values[group - 1], values[rank - group]
    scaling = _scaling(grams, l2)
    report = of_stage(progress, "principal components")
    series = chebyshev_series(grams, block, top, degree=_DEGREE, progress=report)
    loadings = block.T @ top.vectors  # (items, top)

    def part(chosen: Callable[[Values], NDArray[np.bool_]]) -> Values:
        exactly = (loadings * (scaling(top.values) * chosen(top.values))) @ loadings.T
        return np.asarray(exactly + series.apply(lambda s: scaling(s) * chosen(s)))

    return part(lambda s: s >= first), part(lambda s: s <= last), rank, group
