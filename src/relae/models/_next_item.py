"""The next item of a sequence, by one closed form."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from relae import algebra
from relae._common.progress import Progress
from relae.data import InteractionsLike
from relae.errors import DataError
from relae.linalg import Arrays, Csr, Dense, Sequences, time_ranks
from relae.models._linear import suggested_l2
from relae.models._parameters import DROPOUT, L2
from relae.models._source_target import SourceTargetModel, StepRows, regress
from relae.recommender import Parameter, Range, SequenceRecommender, State, number, weighted, without_faded
from relae.solvers import Solver


class NextItem(SequenceRecommender, SourceTargetModel):
    """Predict the next item from the items before it, each weighted by how long ago it was.

    Every interaction that a user has others before is a step. Its source s is what came before, the latest item with
    the weight 1, the one before it with ρ, then ρ², …; its target is the interaction itself. With a row per step in S
    and T,

        B = (SᵀS + Λ)⁻¹ SᵀT,    Λ = dropout/(1 − dropout)·diag(SᵀS) + l2

    and a history, weighted in the same way, gets the scores q B (SLIST, Choi et al. 2021; TALE, Park et al. 2025). SᵀS
    and SᵀT are added up from the sequences, without S.

    Needs times. Of items with equal times, the one in the later column is later. In a history without an order (a set,
    a mapping, a matrix without times) all items count alike.

    Parameters
    ----------
    l2 : float, optional
        λ, the penalty on all weights; by a rule from the data if not given.
    decay : float
        ρ: the share of its weight that an item keeps with each later item. 0 looks at the last item only, 1 at all
        items alike.
    dropout : float
        A penalty in proportion to popularity.

    Attributes
    ----------
    decay_ : float
        ρ of the fit.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        L2.with_default(None, search=Range(10.0, 10_000.0, log=True)),
        Parameter(
            "decay",
            0.85,
            "the share of its weight that an item of a history keeps with each later item",
            "ρ",
            low=0,
            high=1,
            search=Range(0.5, 0.98),
        ),
        DROPOUT.with_default(0.0, search=Range(0.0, 0.5)),
    )

    decay_: float

    def __init__(self, l2: float | None = None, decay: float = 0.85, dropout: float = 0.0) -> None:
        self.l2, self.decay, self.dropout = l2, decay, dropout

    def fit(self, data: InteractionsLike, *, solver: Solver | str = "auto", progress: Progress | None = None) -> Self:
        """Fit to interactions with times; an earlier fit is kept until this one is done.

        Parameters
        ----------
        data
            Interactions that have times. Weights count in sources and in targets.
        solver : "auto", "exact", "primal", "dual", "local", or a Solver
            As of the linear autoencoders. Only the primal form needs no row per step; it is the one that serves fast.
        progress
            Called with the name of a stage and the fraction of it that is done.
        """
        self.check_params()
        interactions = self.to_interactions(data)
        assert interactions.times is not None
        rows = StepRows(Sequences.of(interactions.matrix, interactions.times, self.decay))
        if rows.shape.users == 0:
            raise DataError(f"none of the {interactions.n_users:,} users has two items: there is no step to learn from")
        l2 = suggested_l2(interactions.matrix) if self.l2 is None else self.l2
        penalty = algebra.penalty(rows.diagonal, l2, self.dropout)
        self.keep(regress(rows, penalty, solver=solver, progress=progress), l2, self.dropout)
        self.decay_ = float(self.decay)
        self.remember(interactions)
        return self

    def weigh(self, batch: Csr, times: NDArray[np.int64] | None) -> Csr:
        """Return histories with the weight ρ^(r − 1) of the r-th latest item; as they are if there are no times."""
        if times is None:
            return batch
        return weighted(batch, self.decay_ ** (time_ranks(batch, times) - 1.0))

    def project(self, batch: Csr) -> Dense:
        """Return q B, without the items of a long history whose weight is next to nothing."""
        return super().project(without_faded(batch))

    def state(self, form: str) -> State:
        state = super().state(form)
        return State({**state.facts, "decay": self.decay_}, state.arrays)

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        self.decay_ = number(facts, "decay", 0, float(np.nextafter(1.0, 2.0)))
