"""The common part of graph filters: the matrix with degrees divided out, products with it, its singular vectors."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from relae._common.progress import Progress
from relae.data import Interactions, InteractionsLike
from relae.errors import DataError, PrecisionError
from relae.linalg import (
    FLOAT32,
    Arrays,
    Csr,
    Dense,
    Expected,
    Layout,
    as_csr,
    csr_from_parts,
    csr_layout,
    csr_parts,
    dense_sparse,
    right_singular_vectors,
    scaled_columns,
    scaled_rows,
    sparse_dense,
    transpose,
)
from relae.recommender import HistoryRecommender, Parameter, Range, State, number

_BATCH_BYTES = 256e6

RANK = Parameter(
    "rank",
    256,
    "the number of singular vectors",
    whole=True,
    search=Range(32, 512, log=True, whole=True),
    option=True,
)


class GraphFilter(HistoryRecommender):
    """A filter of histories on the graph of users and items.

    With R̃ = D_U^−½ X D_I^−½ (D_U, D_I: the sums of the rows and of the columns of X) the smoothing of one step is
    R̃ᵀR̃, and V has its first eigenvectors: the first right singular vectors of R̃. Only R̃ (sparse), V (items × rank)
    and D_I are kept; no items × items matrix is formed, and users need not be known from training.

    Attributes
    ----------
    filter_ : (users, items) sparse
        R̃.
    vectors_ : (items, rank), or None if the low-pass filter has no weight
        V, in the order of falling singular values.
    """

    LOW_PASS: ClassVar[str]
    """The parameter that is the weight of the low-pass filter."""
    SCORES_BY: ClassVar[tuple[str, ...]]
    """The numbers among the parameters that scores depend on: kept by a fit, with `_` after their names."""

    rank: int
    filter_: Csr
    vectors_: Dense | None

    def fit(self, data: InteractionsLike, *, progress: Progress | None = None) -> Self:
        """Fit to interactions, or to a sparse matrix (users × items); an earlier fit is kept until this one is done."""
        self.check_params()
        interactions = self.to_interactions(data)
        x = interactions.matrix
        users, items = x.shape
        most = self.limits(interactions)["rank"]
        needs_vectors = getattr(self, self.LOW_PASS) > 0
        if needs_vectors and not 1 <= self.rank <= most:
            raise DataError(
                f"rank must lie between 1 and {most:,} for {users:,} users × {items:,} items, got {self.rank!r}"
            )
        item_scale = inverse_power(x.sum(axis=0), 0.5)
        filter_ = normalized(x, 0.5, 0.5)
        vectors = self._find_vectors(filter_, progress) if needs_vectors else None
        self.filter_, self._filter_t_ = filter_, transpose(filter_)
        self.vectors_, self._item_scale_ = vectors, item_scale.astype(np.float32)
        for name in self.SCORES_BY:
            setattr(self, f"{name}_", float(getattr(self, name)))
        self.remember(interactions)
        return self

    def _find_vectors(self, filter_: Csr, progress: Progress | None) -> Dense:
        report = None if progress is None else lambda done: progress("singular vectors", done)
        try:
            return right_singular_vectors(filter_, self.rank, report)
        except np.linalg.LinAlgError as error:
            raise PrecisionError(f"{error}: try another rank") from error

    @property
    def holds_histories(self) -> bool:
        """True: R̃ has an element wherever X has one."""
        return True

    def limits(self, data: Interactions) -> Mapping[str, int]:
        return {"rank": min(data.matrix.shape) - 1}

    def smooth(self, signal: Dense) -> Dense:
        """Return signal R̃ᵀR̃ : (users, items)."""
        return dense_sparse(dense_sparse(signal, self.filter_), self._filter_t_)

    def low_pass(self, batch: Csr) -> Dense:
        """Return batch V Vᵀ : (users, items)."""
        assert self.vectors_ is not None
        return cast(Dense, sparse_dense(batch, self.vectors_) @ self.vectors_.T)

    def degree_power(self, power: float) -> NDArray[np.float32]:
        """Return D_I^power : (items,), and 0 for items that nobody has."""
        return inverse_power(self._item_scale_, 2.0 * power).astype(np.float32)

    def state(self, form: str) -> State:
        state = super().state(form)
        arrays: dict[str, Any] = {**csr_parts("filter", self.filter_), "item_scale": self._item_scale_}
        if self.vectors_ is not None:
            arrays["vectors"] = self.vectors_
        numbers = {name: getattr(self, f"{name}_") for name in self.SCORES_BY}
        return State({**state.facts, **numbers}, {**state.arrays, **arrays})

    @classmethod
    def layout(cls, facts: Mapping[str, Any], names: Collection[str]) -> Layout:
        return {
            **super().layout(facts, names),
            **csr_layout("filter", "users"),
            "item_scale": Expected(FLOAT32, ("items",)),
            "vectors": Expected(FLOAT32, ("items", "rank"), optional=True, mapped=True),
        }

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        vectors, scale = arrays.get("vectors"), np.array(arrays["item_scale"])
        for parameter in self.PARAMETERS:
            if (name := parameter.name) in self.SCORES_BY:
                value = number({name: getattr(self, name), **facts}, name, parameter.low or 0)
                parameter.check(int(value) if parameter.whole else value)
                setattr(self, f"{name}_", value)
        weight = getattr(self, f"{self.LOW_PASS}_")
        if (vectors is None) != (weight == 0):
            raise ValueError(f"singular vectors do not go with a {self.LOW_PASS} of {weight}")
        if not (np.isfinite(scale) & (scale >= 0)).all():
            raise ValueError("item_scale is not a number of at least 0 per item")
        self.filter_ = csr_from_parts("filter", arrays, (self.n_users_, len(self.items_)))
        self._filter_t_, self.vectors_, self._item_scale_ = transpose(self.filter_), vectors, scale

    def users_at_once(self) -> int:
        users, items = self.filter_.shape
        return int(_BATCH_BYTES / (4 * (users + 2 * items)))

    @property
    def score_dtype(self) -> np.dtype[np.floating]:
        return cast("np.dtype[np.floating]", self.filter_.dtype)


def inverse_power(numbers: NDArray[Any], power: float) -> NDArray[np.float64]:
    """Return number^−power, and 0 where the number is 0."""
    numbers = np.asarray(numbers, np.float64).ravel()
    return np.power(numbers, -power, out=np.zeros(len(numbers)), where=numbers > 0)


def normalized(x: Csr, user_power: float, item_power: float) -> Csr:
    """Return D_U^−user_power X D_I^−item_power in float32, with the sums of rows and columns as D_U and D_I."""
    x = as_csr(x, np.float64)
    rows = inverse_power(x.sum(axis=1), user_power)
    return as_csr(scaled_columns(scaled_rows(x, rows**2), inverse_power(x.sum(axis=0), item_power)), np.float32)
