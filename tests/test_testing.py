"""The contract of every recommender, kept by every model of relae and by one's own; what breaks it is told."""

import numpy as np
import pytest

from relae.recommender import HistoryRecommender, Parameter, Range
from relae.registry import KINDS, kind
from relae.testing import check_recommender, example_data

QUICK = {"dim": 4, "epochs": 2, "every": 1, "validation_share": 0.0}
PARAMETERS = {
    **{name: {"rank": 4} for name in ("gfcf", "chebycf", "bspm")},
    "ials": {"dim": 4, "epochs": 2},
    **dict.fromkeys(("multvae", "grmf", "grmfnorm", "lightgcn", "ltocf", "sasrec"), QUICK),
    "hmlet": {**QUICK, "warm_up": 0},
}
TRAINED = [name for name in KINDS if kind(name).trains]


@pytest.mark.parametrize("name", [name for name in KINDS if name not in TRAINED])
def test_every_model_keeps_the_contract(name):
    check_recommender(kind(name)(**PARAMETERS.get(name, {})))


@pytest.mark.parametrize("name", TRAINED)
def test_every_trained_model_keeps_the_contract(name):
    pytest.importorskip("torch")
    check_recommender(kind(name)(**PARAMETERS[name]))


class Pairs(HistoryRecommender):
    """Items that go together with those of the history: x XᵀX, less for popular items."""

    PARAMETERS = (Parameter("damping", 0.5, "how much popular items are held back", low=0, search=Range(0.0, 1.0)),)

    def __init__(self, damping=0.5):
        self.damping = damping

    def fit(self, data, *, progress=None):
        self.check_params()
        interactions = self.to_interactions(data)
        gram = (interactions.matrix.T @ interactions.matrix).toarray()
        self.gram_ = gram / np.maximum(gram.diagonal(), 1.0) ** self.damping
        self.remember(interactions)
        return self

    def project(self, batch):
        return batch @ self.gram_


def test_a_model_of_ones_own():
    check_recommender(Pairs())
    check_recommender(Pairs(0.0), example_data(30, 16, seed=3))


def broken(name, **changes):
    return type(name, (Pairs,), changes)


def fits(change):
    """A fit with something done after it."""

    def fit(self, data, *, progress=None):
        Pairs.fit(self, data)
        return change(self)

    return fit


def noisy(self, batch):
    self.calls_ = getattr(self, "calls_", 0) + 1
    return batch @ self.gram_ + self.calls_ * np.arange(self.gram_.shape[0])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (broken("Other", fit=fits(lambda self: None))(), "fit must return the model itself"),
        (broken("Undeclared", PARAMETERS=())(), "damping is an attribute of the constructor and not declared"),
        (
            broken("Default", PARAMETERS=(Parameter("damping", 0.1, low=0),))(),
            "has damping=0.5, declared 0.1",
        ),
        (broken("Changed", fit=fits(lambda self: self.set_params(damping=0.9)))(), "leave the parameters as they are"),
        (broken("Untidy", fit=fits(lambda self: setattr(self, "rest", 1) or self))(), "must end in _: rest"),
        (broken("Lazy", trains=True)(), "a model that trains leaves curve_, epochs_, best_epoch_, stopped_"),
        (
            broken("Closed", folds_in=False)(),
            "a history of nobody, for a model that does not fold in must raise DataError",
        ),
        (broken("Noisy", project=noisy)(), "differ"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, HistoryRecommender) else "",
)
def test_what_breaks_the_contract_is_told(model, message):
    with pytest.raises(AssertionError, match=message):
        check_recommender(model)
