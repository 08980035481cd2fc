"""Models whose best parameters are known, one of which learns by epochs as the neural ones do."""

from math import log10, nan
from typing import ClassVar, NamedTuple

import numpy as np

from relae import DataError
from relae.baselines import Popularity
from relae.recommender import Parameter, Range


class Hill(Popularity):
    """Popularity with noise in its scores: the less, the nearer its parameters are to a = 0.3, b = 40."""

    PARAMETERS = (
        Parameter("a", 0.9, low=0, search=Range(0.0, 1.0)),
        Parameter("b", 3, low=1, whole=True, search=Range(1, 1000, log=True, whole=True)),
        Parameter("c", "kept"),
    )

    def __init__(self, a=0.9, b=3, c="kept"):
        self.a, self.b, self.c = a, b, c

    def fit(self, data, *, progress=None):
        if self.a > 0.95:
            raise DataError(f"a must be at most 0.95 for this data, got {self.a}")
        super().fit(data)
        if progress is not None:
            progress("singular vectors", 1.0)
        return self

    def project(self, batch):
        away = (self.a - 0.3) ** 2 + (log10(self.b / 40) / 3) ** 2
        scores = super().project(batch)
        noise = np.random.default_rng(0).standard_normal(scores.shape[1])
        return scores + 3 * away * scores.mean() * noise


class Mark(NamedTuple):
    epoch: int
    seconds: float
    loss: float
    value: float


class Learner(Hill):
    """What a trained model is to a search: epochs, a validation, a time budget and a checkpoint."""

    folds_in = False
    trains = True
    given: ClassVar = []  # the options of every fit

    def fit(self, data, *, validation=None, checkpoint=None, time_budget=None, progress=None):
        self.given.append({"validation": validation, "checkpoint": checkpoint, "time_budget": time_budget})
        super().fit(data)
        if checkpoint is not None:
            checkpoint.write_text("half way")
        self.curve_ = [Mark(epoch, 0.5 * epoch, 1 / epoch, nan if epoch % 2 else 0.1 * epoch) for epoch in range(1, 6)]
        self.best_epoch_, self.epochs_, self.stopped_ = 4, 5, "time" if time_budget is not None else "patience"
        return self
