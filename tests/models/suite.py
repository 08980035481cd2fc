"""The six models with parameters that bind some diagonal elements and not others, and data to try them on."""

from functools import cache

import numpy as np

from relae import DLAE, EASE, EDLAE, LAE, RDLAE, RLAE, Interactions
from relae.solvers import as_solver

from ..oracles import Spec, csr, dense_weights, example, new_histories

MODELS = {
    "LAE": (LAE, {"l2": 6.0}, Spec(6.0, 0.0, 1.0)),
    "EASE": (EASE, {"l2": 6.0}, Spec(6.0, 0.0, 0.0)),
    "RLAE": (RLAE, {"l2": 6.0, "xi": 0.7}, Spec(6.0, 0.0, 0.7)),
    "DLAE": (DLAE, {"l2": 3.0, "dropout": 0.4}, Spec(3.0, 0.4, 1.0)),
    "EDLAE": (EDLAE, {"l2": 3.0, "dropout": 0.4}, Spec(3.0, 0.4, 0.0)),
    "RDLAE": (RDLAE, {"l2": 3.0, "dropout": 0.4, "xi": 0.42}, Spec(3.0, 0.4, 0.42)),
}
SOLVERS = ["primal", "dual"]
USERS, ITEMS = 32, 20

X = example(USERS, ITEMS, weighted=True)  # weights, so that scores are never tied
B = {name: dense_weights(X, spec) for name, (_, _, spec) in MODELS.items()}
NEW = new_histories(7, ITEMS, weighted=True)
INTEGERS = [1000 + 7 * (j * 3 % ITEMS) for j in range(ITEMS)]  # neither sorted nor without gaps
STRINGS = [f"item {j * 3 % ITEMS}" for j in range(ITEMS)]


@cache
def fitted(name, solver="primal", ids=None, dtype="float64"):
    """A fitted model. Shared between tests: do not refit it."""
    kind, parameters, _ = MODELS[name]
    data = Interactions(csr(X), items={"int": INTEGERS, "str": STRINGS, None: None}[ids])
    return kind(**parameters).fit(data, solver=as_solver(solver, dtype=dtype))


def raw(history, ids):
    """A row of weights as a mapping from raw ids."""
    return {ids[column]: float(history[column]) for column in np.flatnonzero(history)}
