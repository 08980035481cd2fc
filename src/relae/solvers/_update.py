"""New rows for a fitted inverse: what they are, and what the exact forms check about them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.errors import DataError
from relae.linalg import Csr, as_csr, scaled_rows

if TYPE_CHECKING:
    from relae.solvers._inverse import Inverse

TOLERANCE = 1e-3
"""The largest error that an inverse may have."""

_WORTHWHILE = 0.25  # new rows beside the rows of the square: with more of them a fit costs no more
_PROBES = 4


@dataclass(frozen=True)
class NewRows:
    """The rows of new users, and what changes with them.

    Attributes
    ----------
    rows : (new users, items) CSR
        In the precision of the inverse; new items come after the old ones.
    weights : (new users,), or None
        1 if not given.
    penalty : (items,)
        Λ before, with that of the new items.
    growth : (items,)
        What dropout adds to it.
    all_rows
        Returns √D X with the old and the new rows, for a form that has to solve again.
    neighbours, nearest_by
        Of the local form.
    """

    rows: Csr
    weights: NDArray[np.float64] | None
    penalty: NDArray[np.float64]
    growth: NDArray[np.float64]
    all_rows: Callable[[], Csr]
    neighbours: int
    nearest_by: str

    def with_growth(self) -> Csr:
        """Return √D times the new rows and, for each item whose penalty grows, a row that adds it to the diagonal."""
        rows = scaled_rows(self.rows, self.weights)
        grown = np.flatnonzero(self.growth > 0)
        if len(grown) == 0:
            return rows
        roots = np.sqrt(self.growth[grown]).astype(rows.dtype)
        starts = np.arange(len(grown) + 1)
        extra = sp.csr_array((roots, grown.astype(np.int32), starts), shape=(len(grown), rows.shape[1]))
        return as_csr(sp.vstack([rows, extra]), rows.dtype)

    def check_worthwhile(self, rows: int, side: int) -> None:
        """Raise a DataError if an update by so many rows costs no less than a fit with a square of this side."""
        if rows > _WORTHWHILE * side:
            why = " (with dropout every item that the new users have counts as one)" if self.growth.any() else ""
            raise DataError(
                f"an update by {rows:,} rows{why} costs no less than a fit with a square of {side:,}: "
                "fit again to all of the data"
            )


def step_error(old: "Inverse", new: "Inverse", rows: Csr, rng: np.random.Generator) -> float:
    """Return the largest ‖P'v + PUᵀUP'v − Pv‖ / ‖Pv‖ over a few random v: what the step itself has lost."""
    vectors = rng.standard_normal((new.n_items, _PROBES)).astype(new.dtype)
    before, after = old.apply(vectors).astype(np.float64), new.apply(vectors).astype(np.float64)
    back = after + old.apply((rows.T @ (rows @ after)).astype(new.dtype)) - before
    return float((np.linalg.norm(back, axis=0) / np.linalg.norm(before, axis=0)).max())


def check_updated(error: float) -> None:
    """Raise a DataError if an update has lost too much."""
    if not error <= TOLERANCE:
        raise DataError(f"the update failed its check (error {error:.1e}): fit again to all of the data")
