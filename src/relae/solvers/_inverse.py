"""The result of every solver: P = (G + Λ)⁻¹, with the products that models need of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from relae._common.progress import Fraction
from relae.linalg import Arrays, Blocks, Csr, Dense, Layout, as_csr
from relae.ranking import rank
from relae.solvers._update import Change

Items = NDArray[np.int64]
Supports = Callable[[Items], tuple[NDArray[np.int32], NDArray[np.int64]]]
"""Gives for some items the members of their supports : (items, count), each row sorted, and how many of a row count."""


class Inverse(ABC):
    """P : (items, items), symmetric, held in whatever form the solver prefers.

    Attributes
    ----------
    LAYOUT
        What `from_arrays` expects.
    saved_as
        Names of the forms that it can be saved in; the first one serves fastest.
    solver : str
        Name of the form.
    batch_bytes : float
        Bytes of histories at a time that suit it best, counted by `bytes_per_user`.
    """

    LAYOUT: ClassVar[Layout]
    saved_as: ClassVar[tuple[str, ...]]
    solver: str
    batch_bytes: float

    @property
    @abstractmethod
    def n_items(self) -> int:
        """Number of rows and columns of P."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of P."""

    @property
    @abstractmethod
    def bytes_per_user(self) -> int:
        """Memory that `project` needs for each history, its result included."""

    @abstractmethod
    def diagonal(self) -> NDArray[np.float64]:
        """Return the diagonal of P : (items,)."""

    @abstractmethod
    def project(self, histories: Csr) -> Dense:
        """Return histories @ P : (users, items)."""

    @abstractmethod
    def rows(self, items: Items) -> Dense:
        """Return P[items] : (len(items), items)."""

    @abstractmethod
    def block(self, rows: Items, columns: Items) -> Dense:
        """Return P[rows][:, columns] : (rows, columns), without the rest of these rows."""

    @abstractmethod
    def apply(self, vectors: Dense) -> Dense:
        """Return P @ vectors : (items, columns), for the check."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which, with the penalty, `from_arrays` rebuilds this inverse."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Arrays, penalty: NDArray[np.float64]) -> Self:
        """Return the inverse of arrays of its layout; a ValueError if what they contain cannot be."""

    @abstractmethod
    def changed(
        self, change: Change, residual: float, progress: Fraction | None, rng: np.random.Generator
    ) -> tuple["Inverse", float]:
        """Return P after a change of rows, in new arrays, and its error, given that of this one; `rng` draws probes.

        A DataError if it cannot be done, would cost no less than a fit, or fails its check.
        """

    @abstractmethod
    def without_items(
        self, items: Items, change: Change, residual: float, progress: Fraction | None, rng: np.random.Generator
    ) -> tuple["Inverse", float]:
        """Return P without some items, in new arrays, and its error; `change` has the rows that change with them.

        These rows, and the penalty, are on the items that are left. A DataError as of `changed`.
        """

    # --- what most forms have in common ------------------------------------------------------------------------------

    @property
    def held_rows(self) -> Csr | None:
        """The rows of the fit, features first, if this form has them : (rows, items)."""
        return None

    @property
    def mean_support(self) -> float:
        """The mean number of items that explain an item."""
        return float(self.n_items)

    def for_many(self, histories: int) -> "Inverse":
        """Return the form that is quickest for so many histories, none of them a row of the fit; maybe this one."""
        return self

    @property
    def plain(self) -> "Inverse":
        """P of the rows of the fit alone: this one, unless some columns come from another inverse."""
        return self

    def in_form(self, other: "Inverse") -> "Inverse":
        """Return `other`, which is P in another form, with whatever this one has beside P."""
        return other

    def leverages(self, rows: Csr) -> NDArray[np.float64]:
        """Return x P xᵀ of each row x : (rows,)."""
        out, step = np.empty(rows.shape[0]), max(1, int(self.batch_bytes / self.bytes_per_user))
        for start in range(0, rows.shape[0], step):
            batch = rows[start : start + step]
            projected = self.project(as_csr(batch, self.dtype)).astype(np.float64)
            out[start : start + step] = batch.multiply(projected).sum(axis=1)
        return out

    def pairs(self, item: int, diagonal: NDArray[np.float64]) -> tuple[Dense, NDArray[np.float64]]:
        """Return P_ij and P_ii·P_jj of an item i and all items j : (1, items) and (items,).

        `diagonal` is that of P, which not every form has at hand.
        """
        return self.rows(np.array([item])), diagonal[item] * diagonal

    def supports_by_weights(self, per_item: int) -> Supports:
        """Return the items with the largest |P_ij|, and so |B_ij|, of each column j; P is symmetric."""

        def supports(items: Items) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
            members = np.zeros((len(items), per_item), np.int32)
            sizes = np.empty(len(items), np.int64)
            step = max(1, int(self.batch_bytes / self.bytes_per_user))
            for start in range(0, len(items), step):
                block = items[start : start + step]
                values = np.abs(self.rows(block))
                values[np.arange(len(block)), block] = np.inf  # the item itself
                best, _ = rank(values, per_item)
                for row, columns in enumerate(best):
                    kept = np.sort(columns[columns >= 0])
                    members[start + row, : len(kept)], sizes[start + row] = kept, len(kept)
            return members, sizes

        return supports

    @classmethod
    def saved_form(cls, form: str) -> str:
        """Return the name of the form it is saved in: "auto" is the one that serves fastest, "fitted" this one.

        A ValueError if it cannot be saved in that form.
        """
        if form == "auto":
            return cls.saved_as[0]
        if form == "fitted":
            return cls.solver
        if form in cls.saved_as:
            return form
        raise ValueError(f"this model has the {cls.solver} form, and cannot be saved in the {form} form")

    def saved_arrays(self, form: str) -> Mapping[str, NDArray[Any] | Blocks]:
        """Return the arrays to save in a form that `saved_form` gives."""
        return self.arrays()
