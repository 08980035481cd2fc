"""What every solver gives: P = (G + Λ)⁻¹ as something that histories can be projected through."""

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from relae.linalg import Arrays, Csr, Dense


class Inverse(Protocol):
    """P : (items, items), symmetric, held in whatever form the solver prefers."""

    solver: str
    batch_bytes: float  # of histories at a time that suit it best, counted by `bytes_per_user`

    @property
    def n_items(self) -> int:
        """Number of rows and columns of P."""

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of P."""

    @property
    def bytes_per_user(self) -> int:
        """Memory that `project` needs for each history, its result included."""

    def diagonal(self) -> NDArray[np.float64]:
        """The diagonal of P : (items,)."""

    def project(self, histories: Csr) -> Dense:
        """Histories @ P : (users, items)."""

    def rows(self, items: NDArray[np.int64]) -> Dense:
        """P[items] : (len(items), items)."""

    def block(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Dense:
        """P[rows][:, columns] : (rows, columns), without the rest of these rows."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What `from_arrays` makes this inverse of again, beside the penalty."""

    @classmethod
    def from_arrays(cls, arrays: Arrays, penalty: NDArray[np.float64]) -> Self:
        """Return the inverse that `arrays` took apart; a ValueError if these are not its arrays."""

    def apply(self, vectors: Dense) -> Dense:
        """P @ vectors : (items, columns), for the check."""
