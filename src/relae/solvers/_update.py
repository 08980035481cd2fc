"""Rows that leave a fitted inverse and rows that come: what they are, and what the exact forms check about them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
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

_WORTHWHILE = 0.5  # the rank beside the rows of the square: it takes 0.8 of the time of a fit then
_PROBES = 4


@dataclass(frozen=True)
class Change:
    """The rows of users who leave and of users who come, and what changes with them.

    A user who comes back is both: the first `returning` rows that leave and that come are of the same users.

    Attributes
    ----------
    gone, come : (users, items) CSR
        In the precision of the inverse; new items come after the old ones.
    gone_weights, come_weights : (users,), or None
        1 if not given.
    returning : int
        How many of the rows that come take the place of one that leaves.
    gone_at : (users who leave,)
        Where their rows are among those of the users of the fit, as far as that is known.
    users_before : int
        How many users there were.
    penalty : (items,)
        Λ before, with that of the new items.
    growth : (items,)
        What dropout adds to it, or takes.
    all_rows
        Returns √D X after the change, for a form that has to solve again.
    neighbours, nearest_by
        Of the local form.
    """

    gone: Csr
    come: Csr
    gone_weights: NDArray[np.float64] | None
    come_weights: NDArray[np.float64] | None
    returning: int
    gone_at: NDArray[np.int64]
    users_before: int
    penalty: NDArray[np.float64]
    growth: NDArray[np.float64]
    all_rows: Callable[[], Csr]
    neighbours: int
    nearest_by: str

    @property
    def touched(self) -> NDArray[np.int64]:
        """The items of all these rows."""
        return np.union1d(np.union1d(self.gone.indices, self.come.indices), np.flatnonzero(self.growth))

    @cached_property
    def signed(self) -> tuple[Csr, Csr]:
        """Rows U and V with UᵀU − VᵀV = the change of XᵀDX + Λ: a row per user, and one per penalty that changes."""
        come, gone = scaled_rows(self.come, self.come_weights), scaled_rows(self.gone, self.gone_weights)
        added, removed = self.growth > 0, self.growth < 0
        return _with_diagonal(come, self.growth, added), _with_diagonal(gone, -self.growth, removed)

    def check_worthwhile(self, rank: int, side: int) -> None:
        """Raise a DataError if a change of this rank costs about as much as a fit with a square of this side."""
        if rank > _WORTHWHILE * side:
            why = " (with dropout every item whose users change counts as one)" if self.growth.any() else ""
            raise DataError(
                f"a change by {rank:,} rows{why} costs about as much as a fit with a square of {side:,}: "
                "fit again to all of the data"
            )


def _with_diagonal(rows: Csr, growth: NDArray[np.float64], which: NDArray[np.bool_]) -> Csr:
    """Return rows and, for each of some items, a row that adds to the diagonal."""
    items = np.flatnonzero(which)
    if len(items) == 0:
        return rows
    roots = np.sqrt(growth[items]).astype(rows.dtype)
    extra = sp.csr_array((roots, items.astype(np.int32), np.arange(len(items) + 1)), shape=(len(items), rows.shape[1]))
    return as_csr(sp.vstack([rows, extra]), rows.dtype)


def step_error(old: "Inverse", new: "Inverse", change: Change, rng: np.random.Generator) -> float:
    """Return the largest ‖P'v + P(UᵀU − VᵀV)P'v − Pv‖ / ‖Pv‖ over a few random v: what the step itself has lost."""
    vectors = rng.standard_normal((new.n_items, _PROBES)).astype(new.dtype)
    before, after = old.apply(vectors).astype(np.float64), new.apply(vectors).astype(np.float64)
    added, removed = (as_csr(rows, np.float64) for rows in change.signed)
    turned = added.T @ (added @ after) - removed.T @ (removed @ after)
    back = after + old.apply(turned.astype(new.dtype)) - before
    error = float((np.linalg.norm(back, axis=0) / np.linalg.norm(before, axis=0)).max())
    return error if np.isfinite(error) else float(np.inf)


def check_updated(error: float) -> None:
    """Raise a DataError if a change has lost too much."""
    if not error <= TOLERANCE:
        raise DataError(
            f"the change failed its check (error {error:.1e}, and {TOLERANCE:g} is allowed): fit again to all of the "
            "data"
        )


def not_of_the_fit() -> DataError:
    """Return the error for rows that cannot be taken from an inverse."""
    return DataError("what these users had is not in the fit: is this the data of the fit? Otherwise fit again")
