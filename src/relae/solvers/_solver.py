"""The interface of solvers: forecast the cost for a matrix of some size, and compute P = (XᵀDX + Λ)⁻¹."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from relae._common.checks import refuse
from relae._common.memory import available_memory, process_memory
from relae._common.progress import Fraction
from relae._common.words import in_bytes
from relae.errors import Option, Text
from relae.linalg import Csr, Dense, as_csr, gram, inverse_workspace_bytes, scaled_rows, transpose
from relae.solvers._inverse import Inverse

NEIGHBOURS = 200
DTYPES = ("float32", "float64")

_RUNTIME_BYTES = 130e6


class Shape(NamedTuple):
    """The size of a matrix of interactions."""

    users: int
    items: int
    nonzeros: int


class Memory(NamedTuple):
    """Bytes that the process has now, and bytes that a fit may add."""

    process: int
    available: int


@dataclass(frozen=True)
class Rows:
    """The rows X of a fit and their weights D, which are 1 if not given.

    `x` is a CSR matrix (users, items); a solver with `reads_files` also takes `relae.distributed.Partitions`.
    """

    x: Any
    weights: NDArray[np.float64] | None = None

    @property
    def shape(self) -> Shape:
        """Users, items and entries."""
        users, items = self.x.shape
        return Shape(users, items, self.x.nnz)

    def scaled(self, x: Csr | None = None) -> Any:
        """Return √D X, of these rows or of the same rows in another precision."""
        rows = self.x if x is None else x
        return rows if self.weights is None else scaled_rows(rows, self.weights)

    def fill_gram(self, square: Dense) -> None:
        """Write the lower triangle of XᵀDX into a square of items; what is above it is not defined."""
        x = self.scaled(as_csr(self.x, square.dtype))
        gram(transpose(x), x, square)

    def gram_times(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return XᵀDX @ vectors : (items, columns)."""
        by_row = self.x @ vectors
        if self.weights is not None:
            by_row *= self.weights[:, None]
        return np.asarray(self.x.T @ by_row)

    def bytes_beside(self, solver: str, itemsize: int) -> int:
        """Return the bytes that the caller needs at the same time as a solver, beside what that one forecasts."""
        return 0


@dataclass(frozen=True)
class Forecast:
    """Cost of one solver: rows of its square (or squares, if local), flops, bytes added to the process at the peak."""

    solver: str
    dtype: str
    square: int
    flops: float
    added_bytes: int

    def fits(self, available: int) -> bool:
        """Return whether this many bytes are enough."""
        return self.added_bytes <= available


@dataclass(frozen=True)
class Solver(ABC):
    """One way to P. Solvers are immutable descriptions; `solve` may be called any number of times.

    Attributes
    ----------
    name : str
        What it is called in plans and in saved models.
    exact : bool
        Whether every item can be explained by every other one.
    makes : class
        The kind of inverse that it gives.
    grows_with : "items" or "users"
        What its cost depends on most.
    reads_files : bool
        Whether its rows may be `relae.distributed.Partitions`.
    neighbours, nearest_by
        How many items explain an item in the local form, and how they are chosen.
    dtype : "float32" or "float64"
    """

    dtype: str = field(default="float32", kw_only=True)

    name = ""
    makes: ClassVar[type[Inverse]]
    grows_with = "items"
    reads_files = False
    neighbours = NEIGHBOURS
    nearest_by = "cosine"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", check_dtype(self.dtype))

    @property
    @abstractmethod
    def exact(self) -> bool:
        """True if every item can be explained by every other one."""

    @abstractmethod
    def forecast(self, shape: Shape) -> Forecast:
        """Return flops and bytes for a matrix of this size, from what the code allocates."""

    @abstractmethod
    def solve(
        self, rows: Rows, penalty: NDArray[np.float64], progress: Fraction | None, rng: np.random.Generator
    ) -> tuple[Inverse, float]:
        """Return P and its error: the largest ‖(G + Λ)Pv − v‖/‖v‖ of a few random v. `rng` draws them.

        A matrix that is not positive definite in this precision is a LinAlgError.
        """

    def in_float64(self) -> "Solver":
        """Return the same solver in double precision."""
        return replace(self, dtype="float64")

    def repairs(self) -> Sequence["Solver"]:
        """Return what to try, one after the other, if the result fails its check."""
        return (self.in_float64(),)

    def members(self) -> Sequence["Solver"]:
        """Return the solvers that a choice has; none if this one does the work itself."""
        return ()

    def preference(self, shape: Shape) -> Sequence[str]:
        """Return the names of the members that may do the work, the preferred one first."""
        return (self.name,)

    def memory(self) -> Memory:
        """Return the memory that forecasts are compared with."""
        return Memory(process_memory(), available_memory())

    def refusal(self, shape: Shape, members: Sequence["Solver"], forecasts: Sequence[Forecast], memory: Memory) -> Text:
        """Say what does not fit into memory, and what can be done."""
        preferred = self.preference(shape)
        pairs = list(zip(members, forecasts, strict=True))
        needs = " and ".join(
            f"{getattr(shape, each.grows_with):,} {each.grows_with} need {in_bytes(cost.added_bytes)} in the "
            f"{each.name} form ({cost.dtype})"
            for each, cost in pairs
            if each.name in preferred
        )
        ways = [
            Text("use ", Option("solver", each.name), f" ({in_bytes(cost.added_bytes)})")
            for each, cost in pairs
            if each.name not in preferred and cost.fits(memory.available)
        ]
        if self.dtype == "float64":
            ways.append(Text("use ", Option("dtype", "float32"), " (half of it)"))
        filters = Option("min_item_count"), ", ", Option("min_user_count")
        ways.append(Text("drop rare items or inactive users (", *filters, "), or use a machine with more memory"))
        return Text(f"{needs}, and {in_bytes(memory.available)} are available: ", Text.join(", or ", ways))


def sparse_bytes(shape: Shape, itemsize: int) -> int:
    """Return the bytes of the matrix in a solver's own precision, and of its transpose."""
    return 2 * (shape.nonzeros * (itemsize + 4) + 8 * (shape.users + shape.items))


def runtime_bytes() -> int:
    """Return what the compiler and the compiled kernels add to a process that has not used them yet."""
    return 0 if "numba" in sys.modules else int(_RUNTIME_BYTES)


def square_forecast(solver: Solver, shape: Shape) -> Forecast:
    """Return the cost of inverting one dense square, of items or of users."""
    itemsize, side = np.dtype(solver.dtype).itemsize, int(getattr(shape, solver.grows_with))
    probes = 8 * shape.nonzeros + 16 * 8 * (shape.users + shape.items)  # the check at the end, in float64
    work = max(inverse_workspace_bytes(side, itemsize), probes)
    added = itemsize * side * side + sparse_bytes(shape, itemsize) + work + runtime_bytes()
    return Forecast(solver.name, solver.dtype, side, float(side) ** 3, added)


def check_dtype(dtype: Any) -> str:
    """Return the name of a precision that is supported."""
    try:
        name = "" if dtype is None else str(np.dtype(dtype).name)
    except TypeError:
        name = ""
    if name not in DTYPES:
        refuse("dtype", dtype, "be 'float32' or 'float64'")
    return name
