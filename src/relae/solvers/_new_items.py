"""P whose columns for some items come from another inverse: for items that no user could have had yet.

The problem splits by column. For an item without users, the rows of X say that everybody has refused it, which is not
so: it was not there. Its column is fitted to the features alone, P̂_j = column j of (ω F Fᵀ + Λ)⁻¹, and what follows
from it is as for any other: w_j = max(Λ_j, (1 − ξ) / P̂_jj), B_j = e_j − P̂_j w_j.
"""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from relae._common.progress import Fraction
from relae.linalg import FLOAT64, INT64, Arrays, Blocks, Csr, Dense, Expected, Layout, prefixed
from relae.solvers._dual import DualInverse
from relae.solvers._inverse import Inverse, Supports
from relae.solvers._update import Change

_PREFIX = "new_"


class NewItems(Inverse):
    """An inverse of any form, with columns of another one for new items."""

    LAYOUT: ClassVar[Layout] = prefixed(  # beside that of the base
        {
            "items": Expected(INT64, ("items without users",)),
            "penalty": Expected(FLOAT64, ("items",)),
            "diagonal": Expected(FLOAT64, ("items",), optional=True),
            **DualInverse.LAYOUT,
        },
        _PREFIX,
        shared=("items",),
    )

    def __init__(
        self,
        base: Inverse,
        other: DualInverse,
        items: NDArray[np.int64],
        other_diagonal: NDArray[np.float64] | None = None,
    ) -> None:
        self.base, self.other = base, other
        self.items = items  # columns that come from `other`, sorted
        self.other_diagonal = other.diagonal() if other_diagonal is None else other_diagonal  # (items,)
        self.solver, self.batch_bytes = base.solver, base.batch_bytes

    @property
    def held_rows(self) -> Csr | None:
        """The rows of the fit, if the base has them."""
        return self.base.held_rows

    @property
    def mean_support(self) -> float:
        """That of the base."""
        return self.base.mean_support

    def for_many(self, histories: int) -> Inverse:
        """Return the same columns on the form of the base that is quickest."""
        base = self.base.for_many(histories)
        return self if base is self.base else self.in_form(base)

    def in_form(self, other: Inverse) -> "NewItems":
        """Return the same columns on another form of all others."""
        return NewItems(other, self.other, self.items, self.other_diagonal)

    def supports_by_weights(self, per_item: int) -> Supports:
        """Return those of the base: the columns of new items are of another inverse."""
        return self.base.supports_by_weights(per_item)

    @property
    def plain(self) -> Inverse:
        """The base."""
        return self.base

    def changed(
        self, change: Change, residual: float, progress: Fraction | None, rng: np.random.Generator
    ) -> tuple[Inverse, float]:
        """Raise: which items have no users is not known here; change `plain`."""
        raise NotImplementedError

    def without_items(
        self,
        items: NDArray[np.int64],
        change: Change,
        residual: float,
        progress: Fraction | None,
        rng: np.random.Generator,
    ) -> tuple[Inverse, float]:
        """Raise: see `changed`."""
        raise NotImplementedError

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.base.n_items

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Precision of all columns."""
        return self.base.dtype

    @property
    def bytes_per_user(self) -> int:
        """The bytes of the other columns, of the new ones and of two rows of features."""
        beside = len(self.items) + 2 * len(self.other.kernel_inverse)
        return self.base.bytes_per_user + beside * self.dtype.itemsize

    def diagonal(self) -> NDArray[np.float64]:
        """Return the diagonal of P̂ : (items,)."""
        out = self.base.diagonal()
        out[self.items] = self.other_diagonal[self.items]
        return out

    def project(self, histories: Csr) -> Dense:
        """Return histories @ P̂ : (users, items)."""
        out = self.base.project(histories)
        out[:, self.items] = self.other.project_onto(histories, self.items)
        return out

    def rows(self, items: NDArray[np.int64]) -> Dense:
        """Return P̂[items] : (len(items), items)."""
        out = self.base.rows(items)
        out[:, self.items] = self.other.block(items, self.items)
        return out

    def block(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Dense:
        """Return P̂[rows][:, columns] : (rows, columns)."""
        out = self.base.block(rows, columns)
        new = np.isin(columns, self.items)
        if new.any():
            out[:, new] = self.other.block(rows, columns[new])
        return out

    def pairs(self, item: int, diagonal: NDArray[np.float64]) -> tuple[Dense, NDArray[np.float64]]:
        """Return P_ij and P_ii·P_jj of an item i and all items j, both of one inverse : (1, items) and (items,).

        Where i or j is new, that is the inverse of features. `diagonal` is that of P̂, which not every base has at hand.
        """
        own, theirs = np.array([item]), self.other_diagonal
        if item in self.items:
            return self.other.rows(own).astype(self.dtype, copy=False), theirs[item] * theirs
        products = diagonal[item] * diagonal
        products[self.items] = theirs[item] * theirs[self.items]
        return self.rows(own), products

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return those of the base, and those of the new columns."""
        return {**self.base.arrays(), **self._new_arrays()}

    def saved_form(self, form: str) -> str:  # type: ignore[override]  # known once there is a base
        """Return the form that the base is saved in."""
        return self.base.saved_form(form)

    def saved_arrays(self, form: str) -> Mapping[str, NDArray[Any] | Blocks]:
        """Return those of the base in a form, and those of the new columns."""
        return {**self.base.saved_arrays(form), **self._new_arrays()}

    def _new_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which `around` rebuilds the new columns, with a prefix in their names."""
        known = {"items": self.items, "penalty": self.other.penalty, "diagonal": self.other_diagonal}
        return {f"{_PREFIX}{name}": array for name, array in {**known, **self.other.arrays()}.items()}

    @classmethod
    def layout(cls, names: Collection[str]) -> Layout:
        """Return what is expected beside the arrays of the base, if one of these names is of new items."""
        return cls.LAYOUT if any(name.startswith(_PREFIX) for name in names) else {}

    @classmethod
    def around(cls, base: Inverse, arrays: Arrays) -> Inverse:
        """Return the base with the new columns that `arrays` took apart, or as it is if there are none."""
        own = {name.removeprefix(_PREFIX): arrays[name] for name in arrays if name.startswith(_PREFIX)}
        if not own:
            return base
        items, penalty = np.array(own.pop("items")), np.array(own.pop("penalty"))
        diagonal = np.array(own.pop("diagonal")) if "diagonal" in own else None
        for name, vector in (("penalty", penalty), ("diagonal", penalty if diagonal is None else diagonal)):
            if not (np.isfinite(vector) & (vector > 0)).all():
                raise ValueError(f"{_PREFIX}{name} is not a positive number per item")
        if not 0 <= items[0] <= items[-1] < base.n_items or (items[1:] <= items[:-1]).any():
            raise ValueError(f"new items are not in order, or lie beyond the {base.n_items:,} items of the model")
        return cls(base, DualInverse.from_arrays(own, penalty), items, diagonal)

    @classmethod
    def from_arrays(cls, arrays: Arrays, penalty: NDArray[np.float64]) -> Self:
        """Raise: the form of the base is not known here; see `around`."""
        raise NotImplementedError

    def apply(self, vectors: Dense) -> Dense:
        """Return P̂ @ vectors : (items, columns)."""
        others = vectors.copy()
        others[self.items] = 0.0
        new = np.zeros_like(vectors)
        new[self.items] = vectors[self.items]
        return np.asarray(self.base.apply(others) + self.other.apply(new))
