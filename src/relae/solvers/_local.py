"""P column by column, each on the nearest items only: for catalogs of which no square fits into memory.

The problem splits by column. Item j is explained by the items of a support S ∋ j, and there the optimum is closed form:

    p = column j of (G_SS + Λ_S)⁻¹        B_Sj = e_j − p · w_j,    w_j = max(Λ_j, (1 − ξ) / p_j)

What is kept is P̂, whose column j is p, sparse and not symmetric. With all items in every support it is P itself.
"""

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae.linalg import (
    BLOCK,
    SQUARE_BYTES,
    Arrays,
    Csr,
    Dense,
    as_csr,
    csr_from_parts,
    csr_parts,
    gram,
    local_columns,
    nearest,
    sparse_sparse,
    transpose,
)

_PROBES = 4  # of each block
NEAREST_BY = ("cosine", "count")


class LocalInverse:
    """P̂ as a sparse matrix, by rows."""

    solver = "local"
    batch_bytes = 64e6

    def __init__(self, columns: Csr) -> None:
        self.columns = columns  # (items, items), column j on the support of item j

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.columns.shape[0])

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of P̂."""
        return self.columns.dtype

    @property
    def bytes_per_user(self) -> int:
        """One row of the result."""
        return self.n_items * self.dtype.itemsize

    def diagonal(self) -> NDArray[np.float64]:
        """The diagonal of P̂ : (items,)."""
        return np.asarray(self.columns.diagonal(), np.float64)

    def project(self, histories: Csr) -> Dense:
        """Histories @ P̂ : (users, items)."""
        return sparse_sparse(as_csr(histories, self.dtype), self.columns)

    def rows(self, items: NDArray[np.int64]) -> Dense:
        """P̂[items] : (len(items), items)."""
        return np.asarray(self.columns[items].toarray())

    def block(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Dense:
        """P̂[rows][:, columns] : (rows, columns)."""
        return np.asarray(self.columns[rows][:, columns].toarray())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """P̂ itself."""
        return csr_parts("columns", self.columns)

    @classmethod
    def from_arrays(cls, arrays: Arrays, penalty: NDArray[np.float64]) -> Self:
        """Return the inverse with this P̂."""
        return cls(csr_from_parts("columns", arrays, (len(penalty), len(penalty))))

    def apply(self, vectors: Dense) -> Dense:
        """P̂ @ vectors : (items, columns)."""
        return np.asarray(self.columns @ vectors)


def solve_local(
    x: Csr,
    penalty: NDArray[np.float64],
    progress: Callable[[float], None] | None,
    *,
    neighbours: int = 200,
    nearest_by: str = "cosine",
    rng: np.random.Generator,
) -> tuple[LocalInverse, float]:
    """P̂ on supports of at most `neighbours` items, block after block of items; and the error of a few of its columns.

    nearest_by : "cosine" of co-occurrence, or "count".
    """
    n = x.shape[1]
    count = min(neighbours, n)
    by_item = transpose(x)
    weights = _closeness(by_item, nearest_by)
    square = None
    if x.dtype.itemsize * n * n <= SQUARE_BYTES:
        square = gram(by_item, x, np.empty((n, n), x.dtype))
    # memory that is not written to is not taken: supports can be smaller than they may be
    members, values = np.empty(n * count, np.int32), np.empty(n * count, x.dtype)
    starts = np.zeros(n + 1, np.int64)
    error = 0.0
    for items in _blocks(n):
        found, sizes = nearest(by_item, x, weights, items, count)
        solved = local_columns(items, found, sizes, by_item, penalty, square)
        error = max(error, _error(items, found, sizes, solved, by_item, penalty, rng))
        taken = np.arange(count) < sizes[:, None]
        starts[items.start + 1 : items.stop + 1] = starts[items.start] + np.cumsum(sizes)
        span = slice(starts[items.start], starts[items.stop])
        members[span], values[span] = found[taken], solved[taken]
        if progress is not None:
            progress(items.stop / n)
    by_column = sp.csc_array((values[: starts[-1]], members[: starts[-1]], starts), shape=(n, n))
    return LocalInverse(as_csr(by_column.tocsr(), x.dtype)), error


def _closeness(by_item: Csr, nearest_by: str) -> NDArray[np.float64]:
    """What G_ij is multiplied by to compare the neighbours i of one item j : (items,)."""
    if nearest_by == "count":
        return np.ones(by_item.shape[0])
    if nearest_by != "cosine":
        raise ValueError(f"nearest_by must be 'cosine' or 'count', got {nearest_by!r}")
    squares = np.asarray(by_item.multiply(by_item).sum(axis=1), np.float64).ravel()
    return np.where(squares > 0, 1.0 / np.sqrt(np.maximum(squares, 1e-30)), 0.0)


def _blocks(n: int) -> Iterator[range]:
    for start in range(0, n, BLOCK):
        yield range(start, min(start + BLOCK, n))


def _error(
    items: range,
    members: NDArray[np.int32],
    sizes: NDArray[np.int64],
    values: Dense,
    by_item: Csr,
    penalty: NDArray[np.float64],
    rng: np.random.Generator,
) -> float:
    """The largest ‖(G_SS + Λ_S) p − e_j‖ of a few of the items, in float64; infinite if any solution is not finite."""
    if not np.isfinite(values).all():
        return np.inf
    worst = 0.0
    for row in rng.choice(len(items), min(_PROBES, len(items)), replace=False):
        support, p = members[row, : sizes[row]], values[row, : sizes[row]].astype(np.float64)
        lists = by_item[support].astype(np.float64)  # (support, users)
        back = lists @ (lists.T @ p) + penalty[support] * p
        back[np.searchsorted(support, items[row])] -= 1.0
        worst = max(worst, float(np.linalg.norm(back)))
    return worst
