"""What every solver gives: P = (G + Λ)⁻¹ as something that histories can be projected through."""

from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from relae.linalg import Arrays, Csr, Dense, Layout


class Inverse(Protocol):
    """P : (items, items), symmetric, held in whatever form the solver prefers."""

    LAYOUT: ClassVar[Layout]  # what `from_arrays` expects
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
        """Return the arrays of which, with the penalty, `from_arrays` makes this inverse again."""

    @classmethod
    def from_arrays(cls, arrays: Arrays, penalty: NDArray[np.float64]) -> Self:
        """Return the inverse of arrays of its layout; a ValueError if what they contain cannot be."""

    def apply(self, vectors: Dense) -> Dense:
        """P @ vectors : (items, columns), for the check."""


def saved_form(solver: str, form: str) -> str:
    """Return the form that an inverse of a solver is saved in: "auto" is the one that serves fastest.

    A ValueError if there is no way from the solver to the form.
    """
    if form == "auto":
        return "primal" if solver == "dual" else solver
    if form in ("fitted", solver):
        return solver
    if form == "primal" and solver == "dual":
        return form
    raise ValueError(f"this model has the {solver} form, and cannot be saved in the {form} form")
