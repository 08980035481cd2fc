"""Figure 2 of the paper: the weights between items that the high- and the low-ranked principal components give."""

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

_DEGREE = 600  # of the polynomial filters; a density needs less, because its edges need not be as sharp


@dataclass(frozen=True, eq=False)
class Components:
    """Two parts of LAE's solution B, for some popular items and then some unpopular ones, the most popular first.

    Attributes
    ----------
    items : list
        Raw ids; the first `popular` items belong to the head, the others to the tail.
    counts : (items,)
        Users per item.
    popular : int
        Number of items of the head.
    high, low : (items, items)
        The sum of the highest-ranked components in B, and of the lowest-ranked ones.
    l2, share : float
        λ, and the share of all components that each part has.
    rank, group : int
        Number of all components, and number of components in each part.
    exact : bool
        False if a smooth filter, and not a full decomposition, separates the parts from the other components.
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
        """Return the mean absolute weight between different items in a part, `high` or `low`.

        Returns
        -------
        Three means: between popular items, between a popular and an unpopular item, between unpopular items.
        """
        weights, n = np.abs(part), self.popular
        is_other = ~np.eye(len(part), dtype=bool)
        return (
            float(weights[:n, :n][is_other[:n, :n]].mean()),
            float(weights[:n, n:].mean()),
            float(weights[n:, n:][is_other[n:, n:]].mean()),
        )

    def to_polars(self) -> "pl.DataFrame":
        """Return a row per pair of items: item, other, their counts and groups, high, low, exact."""
        import polars as pl

        n = len(self.items)
        first, second = np.divmod(np.arange(n * n), n)
        group = np.where(np.arange(n) < self.popular, "popular", "unpopular")
        return pl.DataFrame(
            {
                "item": [self.items[position] for position in first],
                "other": [self.items[position] for position in second],
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
    """Return the parts of LAE's B = V diag(σ²/(σ²+λ)) Vᵀ that come from the first and the last principal components.

    Only the rows and columns of the drawn items are computed. If X has more users and more items than `exact_limit`,
    it is not decomposed: polynomials of the Gram matrix select the components, with smooth edges.

    Parameters
    ----------
    data
        Interactions, or a sparse matrix (users × items).
    l2
        λ; `relae.models.suggested_l2` of the data if not given.
    rng
        Draws the items, and the random vectors that an estimate needs.
    share
        Share of all components that each of the two parts has.
    popular, unpopular
        How many items to draw from the head and from the tail.
    head_share
        Share of the items that belong to the head.
    exact_limit
        Largest number of users or items, whichever is smaller, for an exact decomposition.
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
    columns = _draw_items(counts, popular, unpopular, head_share, rng)
    block = _item_block(grams, np.searchsorted(grams.items, columns))
    exact = is_exact(grams.side, exact_limit)
    if exact:
        high, low, rank, group = _exact_parts(grams, block, l2, share)
    else:
        high, low, rank, group = _filtered_parts(grams, block, l2, share, rng, progress)
    ids = list(interactions.items.take(columns))
    return Components(ids, counts[columns], popular, high, low, l2, share, rank, group, exact)


def _draw_items(
    counts: NDArray[np.int64], popular: int, unpopular: int, head_share: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the columns of random items: first of the head, then of the tail, each the most popular first."""
    head = head_items(counts, head_share)
    parts = []
    for name, group, number in (("popular", head, popular), ("unpopular", ~head, unpopular)):
        candidates = np.flatnonzero(group & (counts > 0))
        if not 0 < number <= len(candidates):
            raise DataError(f"cannot draw {number:,} {name} items: there are {len(candidates):,}")
        drawn = rng.choice(candidates, number, replace=False)
        parts.append(drawn[np.lexsort((drawn, -counts[drawn]))])
    return np.concatenate(parts)


def _item_block(grams: Sides, rows: NDArray[np.int64]) -> Values:
    """Return a column per drawn item on the shorter side of X : (side, items): its users, or a unit vector."""
    if grams.users_are_rows:
        return np.asarray(grams.a[:, rows].toarray())
    units = np.zeros((grams.side, len(rows)))
    units[rows, np.arange(len(rows))] = 1.0
    return units


def _scaling(grams: Sides, l2: float) -> Callable[[Values], Values]:
    """Return the function of an eigenvalue s that B has, for the Gram matrix of the shorter side.

    If items are the shorter side, B = V diag(s/(s+λ)) Vᵀ. If users are, and u is an eigenvector of X Xᵀ, then Xᵀu/√s is
    an eigenvector of XᵀX, hence B = Xᵀ U diag(1/(s+λ)) Uᵀ X.
    """
    if grams.users_are_rows:
        return lambda s: np.asarray(1.0 / (s + l2))
    return lambda s: np.asarray(s / (s + l2))


def _group_size(rank: int, share: float) -> int:
    return max(1, round(share * rank))


def _exact_parts(grams: Sides, block: Values, l2: float, share: float) -> tuple[Values, Values, int, int]:
    """Return high, low, rank and group by a full decomposition."""
    values, vectors = exact_pairs(grams)
    group = _group_size(len(values), share)
    scaling = _scaling(grams, l2)

    def part(chosen: slice) -> Values:
        loadings = block.T @ vectors[:, chosen]  # (items, group)
        return np.asarray((loadings * scaling(values[chosen])) @ loadings.T)

    return part(slice(group)), part(slice(len(values) - group, None)), len(values), group


def _filtered_parts(
    grams: Sides, block: Values, l2: float, share: float, rng: np.random.Generator, progress: Progress | None
) -> tuple[Values, Values, int, int]:
    """Return high, low, rank and group by filters; the top eigenvectors are exact, polynomials cover the others."""
    top: Top = top_pairs(grams, rng)
    values = estimated_values(grams, top, rng, progress=progress)
    rank, group = len(values), _group_size(len(values), share)
    high_limit, low_limit = values[group - 1], values[rank - group]
    scaling = _scaling(grams, l2)
    report = of_stage(progress, "principal components")
    series = chebyshev_series(grams, block, top, degree=_DEGREE, progress=report)
    loadings = block.T @ top.vectors  # (items, top)

    def part(is_chosen: Callable[[Values], NDArray[np.bool_]]) -> Values:
        of_top = (loadings * (scaling(top.values) * is_chosen(top.values))) @ loadings.T
        return np.asarray(of_top + series.apply(lambda s: scaling(s) * is_chosen(s)))

    return part(lambda s: s >= high_limit), part(lambda s: s <= low_limit), rank, group
