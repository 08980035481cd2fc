"""Figure 1 of the paper: what λ and the diagonal constraints do to each principal component."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from relae._common.checks import refuse
from relae._common.progress import Progress
from relae.analysis._spectral import EXACT_LIMIT, estimated_values, exact_values, is_exact, sides, top_pairs
from relae.data import InteractionsLike, as_interactions
from relae.models import suggested_l2

if TYPE_CHECKING:
    import polars as pl

_AROUND = (0.1, 1.0, 10.0, 100.0)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The eigenvalues of the Gram matrix, and the scalings that they lead to.

    Attributes
    ----------
    eigenvalues : (rank,)
        σ², falling; without those that are 0.
    exact : bool
        False if only the largest eigenvalues are exact, and the others are quantiles of an estimated density.
    l2s : (values,)
        λ.
    """

    eigenvalues: NDArray[np.float64]
    exact: bool
    l2s: NDArray[np.float64]

    @property
    def kept(self) -> NDArray[np.float64]:
        """σ²/(σ²+λ) : (values, rank), the eigenvalues of LAE's solution (`eq:lae_svd`)."""
        return np.asarray(self.eigenvalues / (self.eigenvalues + self.l2s[:, None]))

    @property
    def constrained(self) -> NDArray[np.float64]:
        """1/(σ²+λ) : (values, rank), the eigenvalues of the zero-diagonal constraints (`eq:ease_diagonal2`)."""
        return np.asarray(1.0 / (self.eigenvalues + self.l2s[:, None]))

    @property
    def half_kept(self) -> NDArray[np.int64]:
        """The number of components that are kept by a half or more at each λ : (values,), those with σ² ≥ λ."""
        return np.asarray(np.count_nonzero(self.eigenvalues >= self.l2s[:, None], axis=1))

    def to_polars(self) -> "pl.DataFrame":
        """Return a row per λ and component: l2, component (from 1), eigenvalue, kept, constrained, exact."""
        import polars as pl

        rank, count = len(self.eigenvalues), len(self.l2s)
        return pl.DataFrame(
            {
                "l2": np.repeat(self.l2s, rank),
                "component": np.tile(np.arange(1, rank + 1), count),
                "eigenvalue": np.tile(self.eigenvalues, count),
                "kept": self.kept.ravel(),
                "constrained": self.constrained.ravel(),
                "exact": np.full(rank * count, self.exact),
            }
        )


def spectrum(
    data: InteractionsLike,
    l2s: Sequence[float] | None = None,
    *,
    rng: np.random.Generator,
    exact_limit: int = EXACT_LIMIT,
    progress: Progress | None = None,
) -> Spectrum:
    """Return the spectrum of the Gram matrix XᵀX, scaled by L2 regularization and by the diagonal constraints.

    Where the shorter side of X is too long to decompose, the largest eigenvalues are found exactly and all others as
    quantiles of a density that random vectors measure: within a few percent where eigenvalues are dense.

    Parameters
    ----------
    data
        Interactions, or a sparse matrix (users × items).
    l2s
        Values of λ; around the suggested one if not given.
    rng
        Of the random vectors of an estimate.
    exact_limit
        Number of users or items, whichever are fewer, up to which all eigenvalues are exact.
    progress
        Called with the name of a stage and the fraction of it that is done.
    """
    x = as_interactions(data).matrix
    grams = sides(x)
    penalties = checked_l2s(suggested_l2(x) * np.array(_AROUND) if l2s is None else l2s)
    exact = is_exact(grams.side, exact_limit)
    values = exact_values(grams) if exact else estimated_values(grams, top_pairs(grams, rng), rng, progress=progress)
    return Spectrum(values, exact, penalties)


def checked_l2s(l2s: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values of λ in rising order; they have to be finite and positive."""
    values = np.unique(np.asarray(l2s, np.float64))
    if values.size == 0 or not (np.isfinite(values).all() and values[0] > 0):
        refuse("l2s", l2s, "be finite numbers above 0, and at least one")
    return values
