"""A Markov chain of the first order: the items that follow an item."""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae._common.progress import Progress
from relae.data import InteractionsLike
from relae.linalg import (
    FLOAT64,
    Arrays,
    Csr,
    Dense,
    Expected,
    Layout,
    as_csr,
    csr_from_parts,
    csr_layout,
    csr_parts,
    sparse_sparse,
    time_order,
)
from relae.recommender import Parameter, Range, SequenceRecommender, State, latest_ranks, weighted, without_faded


class Markov(SequenceRecommender):
    """Recommend what most often came right after the last item of a history.

    With N_ij how often item j came right after item i, N_i their sum over j, and p_j the share of item j in all
    interactions, the score of item j after item i is

        (N_ij + shrink · p_j) / (N_i + shrink)

    In a history without an order the scores of all its items are added. Needs times; of items with equal times, the one
    in the later column is later. Weights do not count in the fit.

    Parameters
    ----------
    shrink : float
        How many transitions the popularity counts for, beside those of an item.

    Attributes
    ----------
    transitions_ : (items, items) sparse
        N_ij / (N_i + shrink).
    backoff_ : (items,)
        shrink / (N_i + shrink); 1 for an item that nothing came after.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "shrink",
            10.0,
            "the number of transitions that popularity counts for",
            low=0,
            search=Range(0.1, 1000, log=True),
        ),
    )

    transitions_: Csr
    backoff_: NDArray[np.float64]

    def __init__(self, shrink: float = 10.0) -> None:
        self.shrink = shrink

    def fit(self, data: InteractionsLike, *, progress: Progress | None = None) -> Self:
        """Count the transitions of interactions with times; an earlier fit is kept until this one is done."""
        self.check_params()
        interactions = self.to_interactions(data)
        assert interactions.times is not None
        x, n = interactions.matrix, interactions.n_items
        order = time_order(x, interactions.times)
        items, owners = x.indices[order], np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
        follows = owners[1:] == owners[:-1]
        before, after = items[:-1][follows], items[1:][follows]
        totals = np.bincount(before, minlength=n) + float(self.shrink)
        counts = sp.coo_array((np.ones(len(before)) / totals[before], (before, after)), shape=(n, n))
        self.transitions_ = as_csr(counts, np.float32)
        self.backoff_ = np.divide(self.shrink, totals, out=np.ones(n), where=totals > 0)
        self.remember(interactions)
        return self

    def weigh(self, batch: Csr, times: NDArray[np.int64] | None) -> Csr:
        """Return the latest item of each history with its weight, and the others with next to nothing."""
        return weighted(batch, (latest_ranks(batch, times) == 1).astype(np.float64))

    def project(self, batch: Csr) -> Dense:
        last = without_faded(batch)
        scores = sparse_sparse(as_csr(last, np.float32), self.transitions_)
        scores += np.outer(last @ self.backoff_, self.item_counts_ / self.item_counts_.sum()).astype(np.float32)
        return scores

    @property
    def score_dtype(self) -> np.dtype[np.floating]:
        return np.dtype(np.float32)

    def state(self, form: str) -> State:
        state = super().state(form)
        return State(
            state.facts, {**state.arrays, **csr_parts("transitions", self.transitions_), "backoff": self.backoff_}
        )

    @classmethod
    def layout(cls, facts: Mapping[str, Any], names: Collection[str]) -> Layout:
        own = {**csr_layout("transitions", "items", mapped=True), "backoff": Expected(FLOAT64, ("items",))}
        return {**super().layout(facts, names), **own}

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        n = len(self.items_)
        self.transitions_ = csr_from_parts("transitions", arrays, (n, n), copy=False)
        self.backoff_ = np.array(arrays["backoff"])
        if not ((self.backoff_ >= 0) & (self.backoff_ <= 1)).all():
            raise ValueError("backoff is not a share per item")
