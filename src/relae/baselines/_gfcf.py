"""GF-CF (Shen et al., CIKM 2021): graph filters with a closed form, no items × items matrix."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, svds

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
    sparse_dense,
    sparse_sparse,
    transpose,
)
from relae.recommender import HistoryRecommender, Parameter, Range, State, number

_BATCH_BYTES = 256e6


class GFCF(HistoryRecommender):
    """Graph filtering: a linear filter plus α times an ideal low-pass filter.

    With R̃ = D_U^−½ X D_I^−½ and V the first right singular vectors of R̃, a history x gets the scores

        x R̃ᵀR̃ + α · x D_I^−½ V Vᵀ D_I^½

    Only R̃ (sparse) and V (items × rank) are kept; users need not be known from training.

    Parameters
    ----------
    alpha : float
        The weight of the low-pass filter; 0 leaves the linear filter alone and needs no singular vectors.
    rank : int
        Singular vectors of the low-pass filter.

    Attributes
    ----------
    alpha_ : float
        α of the fit.
    filter_ : (users, items) sparse
        R̃.
    vectors_ : (items, rank), or None if alpha is 0
        V, in the order of falling singular values.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter("alpha", 0.3, "the weight of the low-pass filter", "α", low=0, search=Range(0.0, 1.0), option=True),
        Parameter(
            "rank",
            256,
            "the number of singular vectors",
            whole=True,
            search=Range(32, 512, log=True, whole=True),
            option=True,
        ),
    )

    alpha_: float
    filter_: Csr
    vectors_: Dense | None

    def __init__(self, alpha: float = 0.3, rank: int = 256) -> None:
        self.alpha, self.rank = alpha, rank

    def fit(self, data: InteractionsLike, *, progress: Progress | None = None) -> Self:
        """Fit to interactions, or to a sparse matrix (users × items); an earlier fit is kept until this one is done."""
        self.check_params()
        interactions = self.to_interactions(data)
        x = interactions.matrix
        users, items = x.shape
        most = self.limits(interactions)["rank"]
        if self.alpha > 0 and not 1 <= self.rank <= most:
            raise DataError(
                f"rank must lie between 1 and {most:,} for {users:,} users × {items:,} items, got {self.rank!r}"
            )
        user_scale, item_scale = _root_inverse(x.sum(axis=1)), _root_inverse(x.sum(axis=0))
        # D_I comes in once from the left of V Vᵀ and once, inverted, from its right; without users it is taken as 1
        filter_ = as_csr(sp.diags_array(user_scale) @ x @ sp.diags_array(item_scale), np.float32)
        vectors = _right_singular_vectors(filter_, self.rank, progress) if self.alpha > 0 else None
        self.alpha_, self.filter_, self._filter_t_ = float(self.alpha), filter_, transpose(filter_)
        self.vectors_, self._item_scale_ = vectors, item_scale.astype(np.float32)
        self.remember(interactions)
        return self

    @property
    def holds_histories(self) -> bool:
        """True: R̃ has an element wherever X has one."""
        return True

    def limits(self, data: Interactions) -> Mapping[str, int]:
        return {"rank": min(data.matrix.shape) - 1}

    def state(self, form: str) -> State:
        state = super().state(form)
        arrays: dict[str, Any] = {**csr_parts("filter", self.filter_), "item_scale": self._item_scale_}
        if self.vectors_ is not None:
            arrays["vectors"] = self.vectors_
        return State({**state.facts, "alpha": self.alpha_}, {**state.arrays, **arrays})

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
        self.alpha_ = number({"alpha": self.alpha, **facts}, "alpha", 0)
        if (vectors is None) != (self.alpha_ == 0):
            raise ValueError(f"singular vectors do not go with an alpha of {self.alpha_}")
        self.filter_ = csr_from_parts("filter", arrays, (self.n_users_, len(self.items_)))
        self._filter_t_, self.vectors_, self._item_scale_ = transpose(self.filter_), vectors, scale

    def project(self, batch: Csr) -> Dense:
        scores = dense_sparse(sparse_sparse(batch, self._filter_t_), self._filter_t_)
        if self.vectors_ is not None:
            scaled = as_csr(batch @ sp.diags_array(self._item_scale_), np.float32)
            with np.errstate(divide="ignore"):
                back = np.where(self._item_scale_ > 0, 1.0 / self._item_scale_, 0.0).astype(np.float32)
            smooth = sparse_dense(scaled, self.vectors_) @ self.vectors_.T
            smooth *= self.alpha_ * back
            scores += smooth
        return scores

    def users_at_once(self) -> int:
        users, items = self.filter_.shape
        return int(_BATCH_BYTES / (4 * (users + 2 * items)))

    @property
    def score_dtype(self) -> np.dtype[np.floating]:
        return cast("np.dtype[np.floating]", self.filter_.dtype)


def _root_inverse(degrees: NDArray[Any]) -> NDArray[np.float64]:
    """Return 1/√degree, and 0 where there is nothing."""
    degrees = np.asarray(degrees, np.float64).ravel()
    with np.errstate(divide="ignore"):
        return np.where(degrees > 0, 1.0 / np.sqrt(degrees), 0.0)


def _right_singular_vectors(matrix: Csr, rank: int, progress: Progress | None) -> Dense:
    """Return the right singular vectors of the largest singular values : (columns, rank), float32.

    Lanczos in double precision; the products run on all cores. The start is fixed, so that a fit can be repeated.
    """
    a = as_csr(matrix, np.float64)
    a_t = transpose(a)
    expected = 4 * rank  # products that Lanczos needs, roughly
    done = 0

    def times(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        nonlocal done
        done += 1
        if progress is not None:
            progress("singular vectors", min(0.99, done / expected))
        return np.asarray(a @ vector.ravel())

    operator = LinearOperator(a.shape, matvec=times, rmatvec=lambda vector: a_t @ vector.ravel(), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(min(a.shape))
    try:
        _, _, rows = svds(operator, k=rank, v0=start, return_singular_vectors=cast(Any, "vh"))  # the stubs say "v"
    except ArpackNoConvergence as error:
        raise PrecisionError(f"{rank} singular vectors were not found to the last digit: try another rank") from error
    if progress is not None:
        progress("singular vectors", 1.0)
    return np.ascontiguousarray(rows[::-1].T, np.float32)
