"""The next item of a sequence, by one closed form."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from relae import algebra
from relae._common.progress import Progress
from relae.data import InteractionsLike
from relae.errors import DataError
from relae.linalg import FLOAT64, Arrays, Csr, Dense, Expected, Layout, Sequences, time_ranks
from relae.models._linear import suggested_l2
from relae.models._parameters import DROPOUT, FADING, L2
from relae.models._source_target import SourceTargetModel, StepRows, regress
from relae.recommender import Parameter, Range, SequenceRecommender, State, weighted, without_faded
from relae.solvers import Solver


class NextItem(SequenceRecommender, SourceTargetModel):
    """Predict the next item from the items before it, each weighted by how many came after it.

    Every interaction that a user has others before is a step. Its source s is what came before: the r-th latest item
    weighs k(r) = r^−fading, up to the `length`-th; its target is the interaction. With a row per step in S and T,

        B = (SᵀS + Λ)⁻¹ SᵀT,    Λ = dropout/(1 − dropout)·diag(SᵀS) + l2

    and a history, weighted in the same way, gets the scores q B (SLIST, Choi et al. 2021; TALE, Park et al. 2025). SᵀS
    and SᵀT are added up from the sequences, without S.

    Needs times. Of items with equal times, the one in the later column is later. In a history without an order (a set,
    a mapping, a matrix without times) all items count alike.

    Parameters
    ----------
    l2 : float, optional
        λ, the penalty on all weights; by a rule from the data if not given.
    fading : float
        The power by which the items of a history fade with each later one; 0 for not at all.
    length : int
        The latest items of a history that count. With 1 it is the last item alone.
    dropout : float
        A penalty in proportion to popularity.

    Attributes
    ----------
    fade_ : (length,)
        k of the fit: what the latest item of a history counts, the one before it, and so on.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (
        L2.with_default(None, search=Range(10.0, 10_000.0, log=True)),
        FADING.with_default(0.8, kind="fit", search=Range(0.3, 1.5)),
        Parameter(
            "length",
            100,
            "the number of latest items of a history that count",
            low=1,
            high=100_000,
            whole=True,
            search=Range(10, 200, log=True, whole=True),
        ),
        DROPOUT.with_default(0.0, search=Range(0.0, 0.5)),
    )

    fade_: NDArray[np.float64]

    def __init__(self, l2: float | None = None, fading: float = 0.8, length: int = 100, dropout: float = 0.0) -> None:
        self.l2, self.fading, self.length, self.dropout = l2, fading, length, dropout

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
        fade = np.arange(1.0, self.length + 1.0) ** -float(self.fading)
        rows = StepRows(Sequences.of(interactions.matrix, interactions.times, fade))
        if rows.shape.users == 0:
            raise DataError(f"none of the {interactions.n_users:,} users has two items: there is no step to learn from")
        l2 = suggested_l2(interactions.matrix) if self.l2 is None else self.l2
        penalty = algebra.penalty(rows.diagonal, l2, self.dropout)
        self.keep(regress(rows, penalty, solver=solver, progress=progress), l2, self.dropout)
        self.fade_ = fade
        self.remember(interactions)
        return self

    def weigh(self, batch: Csr, times: NDArray[np.int64] | None) -> Csr:
        """Return histories with the weight k(r) of the r-th latest item; as they are if there are no times."""
        if times is None:
            return batch
        ranks = time_ranks(batch, times)
        return weighted(batch, np.append(self.fade_, 0.0)[np.minimum(ranks, len(self.fade_) + 1) - 1])

    def project(self, batch: Csr) -> Dense:
        """Return q B, reading only the items of a history that count."""
        return super().project(without_faded(batch))

    def state(self, form: str) -> State:
        state = super().state(form)
        return State(state.facts, {**state.arrays, "fade": self.fade_})

    @classmethod
    def layout(cls, facts: Mapping[str, Any], names: Any) -> Layout:
        return {**super().layout(facts, names), "fade": Expected(FLOAT64, ("length",))}

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        self.fade_ = np.array(arrays["fade"])
        if not ((self.fade_ >= 0) & (self.fade_ <= 1)).all():
            raise ValueError("fade has weights that do not lie in [0, 1]")
