"""A list by chance: what a model has to beat where popularity has nothing to go by."""

import hashlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from relae._common.progress import Progress
from relae.baselines._parameters import SEED
from relae.data import InteractionsLike
from relae.linalg import Arrays, Csr, Dense
from relae.recommender import HistoryRecommender, Parameter, State, whole


class Random(HistoryRecommender):
    """Recommend items by chance, without those that a user has.

    The scores of a history are drawn between 0 and 1 from a generator of their own, whose seed is `seed` and the
    columns of the history: users with other items get other lists, a history gets the same one every time.

    Parameters
    ----------
    seed : int
        Another one gives everybody another list.

    Attributes
    ----------
    seed_ : int
        The seed of the fit.
    """

    PARAMETERS: ClassVar[tuple[Parameter, ...]] = (SEED,)

    seed_: int

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, data: InteractionsLike, *, progress: Progress | None = None) -> Self:
        """Take note of the items."""
        self.check_params()
        self.remember(self.to_interactions(data))
        self.seed_ = int(self.seed)
        return self

    def state(self, form: str) -> State:
        state = super().state(form)
        return State({**state.facts, "seed": self.seed_}, state.arrays)

    def restore(self, facts: Mapping[str, Any], arrays: Arrays) -> None:
        super().restore(facts, arrays)
        self.seed_ = whole({"seed": self.seed, **facts}, "seed")

    def project(self, batch: Csr) -> Dense:
        scores = np.empty(batch.shape, self.score_dtype)
        for row, (start, stop) in zip(scores, pairwise(batch.indptr), strict=True):
            history = hashlib.blake2b(batch.indices[start:stop].astype(np.int64).tobytes(), digest_size=8)
            np.random.default_rng([self.seed_, int.from_bytes(history.digest(), "little")]).random(out=row)
        return scores

    def users_at_once(self) -> int:
        return int(24e6 / (self.score_dtype.itemsize * len(self.items_)))

    @property
    def score_dtype(self) -> np.dtype[np.floating]:
        return np.dtype(np.float64)  # 2²⁴ values of float32 would tie in a large catalog
