"""P column by column, each on the nearest items only: for catalogs of which no square fits into memory.

The problem splits by column. Item j is explained by the items of a support S ∋ j, and there the optimum is closed form:

    p = column j of (G_SS + Λ_S)⁻¹        B_Sj = e_j − p · w_j,    w_j = max(Λ_j, (1 − ξ) / p_j)

What is kept is P̂, whose column j is p, sparse and not symmetric. With all items in every support it is P itself.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae._common.checks import check_whole, refuse
from relae._common.progress import Fraction
from relae.linalg import (
    BLOCK,
    SQUARE_BYTES,
    Arrays,
    Csr,
    Dense,
    Layout,
    as_csr,
    csr_block,
    csr_from_parts,
    csr_layout,
    csr_parts,
    gram,
    gram_diagonal,
    labelled,
    local_columns,
    local_workspace_bytes,
    nearest,
    sparse_sparse,
    transpose,
)
from relae.solvers._inverse import Inverse, Items, Supports
from relae.solvers._solver import NEIGHBOURS, Forecast, Rows, Shape, Solver, runtime_bytes, sparse_bytes
from relae.solvers._update import Change, check_updated

_LED = 50  # items for each one whose neighbours make a group
_PROBES = 4  # of each block


class LocalInverse(Inverse):
    """P̂ as a sparse matrix, by rows."""

    LAYOUT: ClassVar[Layout] = csr_layout("columns", "items", mapped=True)
    saved_as = ("local",)
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
        """Return the diagonal of P̂ : (items,)."""
        return np.asarray(self.columns.diagonal(), np.float64)

    def project(self, histories: Csr) -> Dense:
        """Return histories @ P̂ : (users, items)."""
        return sparse_sparse(as_csr(histories, self.dtype), self.columns)

    def rows(self, items: Items) -> Dense:
        """Return P̂[items] : (len(items), items)."""
        ones = np.ones(len(items), self.dtype)
        units = sp.csr_array(
            (ones, items.astype(np.int32), np.arange(len(items) + 1)), shape=(len(items), self.n_items)
        )
        return sparse_sparse(units, self.columns)

    def block(self, rows: Items, columns: Items) -> Dense:
        """Return P̂[rows][:, columns] : (rows, columns)."""
        return csr_block(self.columns, rows, columns)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return P̂ itself."""
        return csr_parts("columns", self.columns)

    @classmethod
    def from_arrays(cls, arrays: Arrays, penalty: NDArray[np.float64]) -> Self:
        """Return the inverse with this P̂; its entries are not copied."""
        return cls(csr_from_parts("columns", arrays, (len(penalty), len(penalty)), copy=False))

    @property
    def mean_support(self) -> float:
        """Entries of a column, on average."""
        return float(self.columns.nnz / self.n_items)

    def changed(
        self, change: Change, residual: float, progress: Fraction | None, rng: np.random.Generator
    ) -> tuple["LocalInverse", float]:
        """Solve again for the items that share a row with an item of these users: only their neighbours change."""
        n, before = len(change.penalty), sp.csc_array(self.columns)
        starts = np.pad(before.indptr, (0, n - before.shape[1]), mode="edge")
        wide = sp.csc_array((before.data, before.indices, starts), shape=(n, n))
        return _solved_again(wide, change, np.zeros(n, bool), residual, progress, rng)

    def without_items(
        self, items: Items, change: Change, residual: float, progress: Fraction | None, rng: np.random.Generator
    ) -> tuple["LocalInverse", float]:
        """Solve again for the items that one of these explained, and for those whose users now have another weight."""
        kept = np.setdiff1d(np.arange(self.n_items), items)
        columns = sp.csc_array(self.columns)
        explained = np.diff(sp.csr_array(columns[items]).tocsc().indptr)[kept] > 0
        return _solved_again(columns[kept][:, kept], change, explained, residual, progress, rng)

    def apply(self, vectors: Dense) -> Dense:
        """Return P̂ @ vectors : (items, columns)."""
        return np.asarray(self.columns @ vectors)


def _solved_again(
    before: Any,
    change: Change,
    concerned: NDArray[np.bool_],
    residual: float,
    progress: Fraction | None,
    rng: np.random.Generator,
) -> tuple[LocalInverse, float]:
    """Return P̂ with some columns, and those of all items that share a row with a touched one, solved again."""
    x = change.all_rows()
    changed = concerned | _sharing_a_row(x, change.touched)
    items, others = np.flatnonzero(changed), np.flatnonzero(~changed)
    supports = by_closeness(x, change.neighbours, change.nearest_by)
    solved, error = local_solutions(x, change.penalty + change.growth, items, supports, progress, rng)
    check_updated(error)
    order = np.empty(x.shape[1], np.int64)
    order[others], order[items] = np.arange(len(others)), len(others) + np.arange(len(items))
    columns = sp.hstack([before[:, others], solved], format="csc")[:, order]
    return LocalInverse(as_csr(columns.tocsr(), x.dtype)), max(residual, error)


def _sharing_a_row(x: Csr, items: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Return which items share a row with one of some items, these included : (items,)."""
    touched = np.zeros(x.shape[1], bool)
    touched[items] = True
    has = sp.csr_array((np.ones(len(x.indices), np.float32), x.indices, x.indptr), shape=x.shape)
    concerned = has @ touched.astype(np.float32) > 0  # values of features may be negative
    touched[x[np.flatnonzero(concerned)].indices] = True
    return touched


def check_neighbours(neighbours: int, nearest_by: str) -> None:
    """Raise a ParameterError if the number of neighbours, or the way to choose them, is not allowed."""
    check_whole("neighbours", neighbours)
    check_nearest_by(nearest_by)


def check_nearest_by(nearest_by: str) -> None:
    """Raise a ParameterError if there is no such way to choose neighbours."""
    if nearest_by not in ("cosine", "count"):
        refuse("nearest_by", nearest_by, "be 'cosine' or 'count'")


def closeness(x: Csr, nearest_by: str) -> NDArray[np.float64]:
    """Return the factors of G_ij that compare the neighbours i of one item j : (items,)."""
    check_nearest_by(nearest_by)
    if nearest_by == "count":
        return np.ones(x.shape[1])
    squares = gram_diagonal(x)
    return np.where(squares > 0, 1.0 / np.sqrt(np.maximum(squares, 1e-30)), 0.0)


def by_closeness(x: Csr, neighbours: int, nearest_by: str) -> Supports:
    """Return supports: the items that are nearest by "cosine" of co-occurrence, or by its "count"."""
    by_item, others = transpose(x), labelled(x, closeness(x, nearest_by))
    return lambda items: nearest(by_item, others, items, min(neighbours, x.shape[1]))[:2]


def busiest_first(x: Csr) -> Csr:
    """Return the same rows, those with most entries first.

    A Gram of a few items then touches a small part of all users, which stays in the cache.
    """
    return as_csr(x[np.argsort(-np.diff(x.indptr), kind="stable")], x.dtype)


@dataclass(frozen=True)
class Local(Solver):
    """P̂ column by column, each item explained by its nearest items only: an approximation.

    Parameters
    ----------
    neighbours : int
        Items that explain an item, itself included.
    nearest_by : "cosine" or "count"
        Nearest by the cosine of co-occurrence, or by its count.
    """

    neighbours: int = NEIGHBOURS
    nearest_by: str = "cosine"

    name = "local"
    exact = False
    makes = LocalInverse

    def __post_init__(self) -> None:
        super().__post_init__()
        check_neighbours(self.neighbours, self.nearest_by)

    def forecast(self, shape: Shape) -> Forecast:
        """Return the cost of a small square per item; the result is held twice when columns are turned into rows."""
        itemsize, count = np.dtype(self.dtype).itemsize, int(min(self.neighbours, shape.items))
        result = 2 * (shape.items * count * (itemsize + 4) + 8 * shape.items)
        work = local_workspace_bytes(shape.users, shape.items, count, itemsize)
        added = sparse_bytes(shape, itemsize) + result + work + runtime_bytes()
        return Forecast(self.name, self.dtype, count, shape.items * count**3 / 3, added)

    def solve(
        self, rows: Rows, penalty: NDArray[np.float64], progress: Fraction | None, rng: np.random.Generator
    ) -> tuple[LocalInverse, float]:
        """Return P̂ as a sparse matrix, and the error of a few of its columns."""
        x = busiest_first(rows.scaled(as_csr(rows.x, np.dtype(self.dtype))))
        return solve_local(x, penalty, progress, by_closeness(x, self.neighbours, self.nearest_by), rng)


def solve_local(
    x: Csr,
    penalty: NDArray[np.float64],
    progress: Fraction | None,
    supports: Supports,
    rng: np.random.Generator,
) -> tuple[LocalInverse, float]:
    """Return P̂ on the supports, block after block of items; and the error of a few of its columns."""
    order = _in_groups(x.shape[1], supports, rng)
    by_column, error = local_solutions(x, penalty, order, supports, progress, rng)
    in_place = sp.csr_array(by_column.T)[np.argsort(order)]  # row j is the column of item j again
    del by_column
    return LocalInverse(as_csr(sp.csr_array(in_place.T), x.dtype)), error


def _in_groups(n: int, supports: Supports, rng: np.random.Generator) -> Items:
    """Return all items, neighbours of one item after another: they share users, who are then still in the cache."""
    leaders = rng.choice(n, -(-n // _LED), replace=False)
    members, sizes = supports(leaders)
    met = members[np.arange(members.shape[1]) < sizes[:, None]].astype(np.int64)
    _, first = np.unique(met, return_index=True)
    led = met[np.sort(first)]
    return np.concatenate([led, np.setdiff1d(np.arange(n), led)])


def local_solutions(
    x: Csr,
    penalty: NDArray[np.float64],
    items: Items,
    supports: Supports,
    progress: Fraction | None,
    rng: np.random.Generator,
) -> tuple[Any, float]:
    """Return the columns of P̂ of some items : (all items, items) by columns, and the error of a few of them."""
    n = x.shape[1]
    by_item = transpose(x)
    square = None
    if x.dtype.itemsize * n * n <= SQUARE_BYTES and len(items) > n // 8:
        square = gram(by_item, x, np.empty((n, n), x.dtype))
    members, values = [np.empty(0, np.int32)], [np.empty(0, x.dtype)]
    counts = [np.zeros(1, np.int64)]
    error = 0.0
    for start in range(0, len(items), BLOCK):
        block = items[start : start + BLOCK]
        supports_of_block, sizes = supports(block)
        solved = local_columns(block, supports_of_block, sizes, by_item, penalty, square)
        error = max(error, local_error(block, supports_of_block, sizes, solved, by_item, penalty, rng))
        taken = np.arange(supports_of_block.shape[1]) < sizes[:, None]
        members.append(supports_of_block[taken])
        values.append(solved[taken])
        counts.append(sizes)
        if progress is not None:
            progress(min(start + BLOCK, len(items)) / len(items))
    starts = np.cumsum(np.concatenate(counts))
    parts = (_joined(values), _joined(members), starts)
    return sp.csc_array(parts, shape=(n, len(items))), error


def _joined(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """Return pieces as one array; each is given back as soon as it is copied."""
    whole = np.empty(sum(len(piece) for piece in pieces), pieces[0].dtype)
    at = len(whole)
    while pieces:
        piece = pieces.pop()
        at -= len(piece)
        whole[at : at + len(piece)] = piece
    return whole


def local_error(
    items: Items,
    members: NDArray[np.int32],
    sizes: NDArray[np.int64],
    values: Dense,
    by_item: Csr,
    penalty: NDArray[np.float64],
    rng: np.random.Generator,
) -> float:
    """Return the largest ‖(G_SS + Λ_S) p − e_j‖ of a few items, in float64; infinite if any solution is not finite."""
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
