"""Turbo-CF (Park et al., SIGIR 2024): polynomial graph filters without singular vectors."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from relae._common.progress import Progress
from relae.baselines._graph_filter import normalized
from relae.baselines._knn import Similarity
from relae.data import InteractionsLike
from relae.errors import Option, Text
from relae.linalg import Arrays, Csr, Dense, dense_sparse, sparse_sparse, transpose
from relae.recommender import Parameter, Range, State, number
from relae.solvers import ensure_memory

_BLOCK_BYTES = 256e6


class TurboCF(Similarity):
    """A polynomial of the graph of items, whose weights are raised to a power one by one.

    With R̃ = D_U^−α X D_I^(α−1) and S = (R̃ᵀR̃)^∘power, each element to that power, a history x gets the scores

        order 1:  x S
        order 2:  x (2S − S²)
        order 3:  x (S + 0.01 (−S³ + 10 S² − 29 S))

    the filters of the publication. S is kept as a sparse matrix, since its elements need a power each.

    Parameters
    ----------
    alpha : float
        How the weight of an interaction is divided between the degrees of its user (α) and of its item (1 − α).
    power : float
        The power of each element.
    order : int
        The degree of the filter: 1 is linear.

    Attributes
    ----------
    similarity_ : (items, items) sparse
        S.
    order_ : int
        The degree of the filter of the fit.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "alpha",
            0.6,
            "the share of the user's degree in the norm",
            "α",
            low=0,
            high=1,
            search=Range(0.3, 0.8),
            option=True,
        ),
        Parameter("power", 0.7, "the power of each similarity", low=0, above=True, search=Range(0.4, 1.6)),
        Parameter("order", 1, "the degree of the filter", low=1, high=4, below=True, whole=True),
    )

    order_: int

    def __init__(self, alpha: float = 0.6, power: float = 0.7, order: int = 1) -> None:
        self.alpha, self.power, self.order = alpha, power, order

    def fit(self, data: InteractionsLike, *, progress: Progress | None = None) -> Self:
        """Fit to interactions, or to a sparse matrix (users × items); an earlier fit is kept until this one is done."""
        self.check_params()
        interactions = self.to_interactions(data)
        x = interactions.matrix
        filter_ = normalized(x, self.alpha, 1.0 - self.alpha)
        items = x.shape[1]
        pairs = min(items**2, int((np.diff(x.indptr).astype(np.float64) ** 2).sum()))
        ways_out = Text("drop rare items by ", Option("min_item_count", 5))
        ensure_memory(2.0 * 8 * pairs, f"the similarities of {items:,} items", ways_out)
        self.similarity_ = _powered_gram(filter_, self.power, progress)
        self.order_ = int(self.order)
        self.remember(interactions)
        return self

    def project(self, batch: Csr) -> Dense:
        first = sparse_sparse(batch, self.similarity_)
        if self.order_ == 1:
            return first
        second = dense_sparse(first, self.similarity_)  # S is its own transpose
        if self.order_ == 2:
            first *= 2
            first -= second
            return first
        third = dense_sparse(second, self.similarity_)
        first *= 0.71
        first += 0.1 * second
        first -= 0.01 * third
        return first

    def state(self, form: str) -> State:
        state = super().state(form)
        return State({**state.facts, "order": self.order_}, state.arrays)

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        self.order_ = int(number(facts, "order", 1, 4))


def _powered_gram(filter_: Csr, power: float, progress: Progress | None) -> Csr:
    """Return (R̃ᵀR̃)^∘power : (items, items), in blocks of dense rows."""
    by_item, items = transpose(filter_), filter_.shape[1]
    step = max(1, int(_BLOCK_BYTES / (4 * items)))
    blocks = []
    for start in range(0, items, step):
        rows = sp.csr_array(sparse_sparse(by_item[start : start + step], filter_))
        np.power(rows.data, np.float32(power), out=rows.data)
        blocks.append(rows)
        if progress is not None:
            progress("similarities", min(1.0, (start + step) / items))
    return sp.csr_array(sp.vstack(blocks, format="csr"))
