"""Small fitted models of every kind, and what makes two of them the same."""

from functools import cache

import numpy as np

from relae import DLAE, EASE, EDLAE, LAE, RDLAE, RLAE, Interactions
from relae.baselines import BSPM, GFCF, IALS, SLIM, ChebyCF, ItemKNN, Popularity, Random, RP3Beta, Trending, TurboCF
from relae.models import DAN, DEQL
from relae.solvers import Auto, Local

from ..oracles import csr, example, new_histories

USERS, ITEMS = 40, 31
X = example(USERS, ITEMS, weighted=True)
NEW = csr(new_histories(8, ITEMS, weighted=True))
TITLES = [None if j % 7 == 3 else f"Tītle №{j}, “so to speak”" for j in range(ITEMS)]
MODELS = {
    "LAE": LAE(6.0),
    "EASE": EASE(6.0),
    "RLAE": RLAE(xi=0.7),
    "DLAE": DLAE(3.0, 0.4),
    "EDLAE": EDLAE(3.0, 0.4),
    "RDLAE": RDLAE(3.0, 0.4, 0.42),
    "local": RDLAE(3.0, 0.4, 0.42),
    "DAN": DAN(3.0, 0.4, 0.2, item_norm=0.1, propensity=0.2),
    "DEQL": DEQL(3.0, 0.4, 0.3),
    "GFCF": GFCF(0.3, 5),
    "GFCF without vectors": GFCF(0.0),
    "SLIM": SLIM(0.1, 2.0, 9),
    "RP3Beta": RP3Beta(0.8, 0.5),
    "TurboCF": TurboCF(0.4, 0.9, 2),
    "ChebyCF": ChebyCF(4, 2.0, 0.3, 0.2, 5),
    "BSPM": BSPM(0.3, 5, 1.5, 3, "late"),
    "IALS": IALS(6),
    "ItemKNN": ItemKNN(5),
    "Popularity": Popularity(),
    "Trending": Trending(9.0),
    "Random": Random(3),
}
HOW = {
    "EASE": {"solver": Auto(dtype="float64")},
    "EDLAE": {"solver": "primal"},
    "RDLAE": {"solver": "dual"},
    "local": {"solver": Local(9)},
}


@cache
def data(ids="str"):
    items = [f"ïtem {j * 3 % ITEMS}" for j in range(ITEMS)] if ids == "str" else [5 * j for j in range(ITEMS)]
    users = [f"user {u}" for u in range(USERS)] if ids == "str" else [900 - u for u in range(USERS)]
    times = 1_700_000_000 + 3_600 * np.arange(np.count_nonzero(X))
    return Interactions(csr(X), users, items, TITLES if ids == "str" else None, times)


@cache
def fitted(name, ids="str"):
    """A fitted model. Shared between tests: do not refit it."""
    model = MODELS[name]
    return type(model)(**model.get_params()).fit(data(ids), **HOW.get(name, {}))


def same(ours, theirs):
    """Whether two models are the same in all that they say, to the last bit."""
    found = [
        type(ours) is type(theirs),
        ours.get_params() == theirs.get_params(),
        ours.items_ == theirs.items_,
        (ours.titles_ is None) == (theirs.titles_ is None),
        ours.titles_ is None or list(ours.titles_) == list(theirs.titles_),
        np.array_equal(ours.item_counts_, theirs.item_counts_),
        ours.n_users_ == theirs.n_users_,
        np.array_equal(ours.score(NEW), theirs.score(NEW)),
        ours.facts() == theirs.facts(),
    ]
    return all(found)
