"""What a user has seen beside the history is never recommended, by any model and however it is said."""

import numpy as np
import pytest

from relae import EASE, DataError, Interactions
from relae.baselines import GFCF, IALS, ItemKNN, LightGCN, Popularity, Random
from relae.models import DAN, DEQL, RDLAE, Dial
from relae.solvers import Auto, Local

from ..oracles import EMPTY_USER, brute_force_top_k, csr, example, new_histories
from ..real_data import real

USERS, ITEMS = 40, 31
X = example(USERS, ITEMS, weighted=True)
SEEN = (np.random.default_rng(5).random(X.shape) < 0.3) & (X == 0)
SEEN[7] = False
NAMES = [f"item {j * 3 % ITEMS}" for j in range(ITEMS)]
DATA = Interactions(csr(X), items=NAMES, seen=csr(SEEN))
MODELS = {
    "primal": EASE(6.0),
    "dual": RDLAE(3.0, 0.4, 0.42),
    "local": RDLAE(3.0, 0.4, 0.42),
    "norms": DAN(3.0, 0.4, 0.2, item_norm=0.1, propensity=0.2),
    "DEQL": DEQL(3.0, 0.4, 0.3),
    "GFCF": GFCF(0.3, 5),
    "IALS": IALS(6),
    "ItemKNN": ItemKNN(5),
    "Popularity": Popularity(),
    "Random": Random(3),
}
HOW = {
    "primal": {"solver": Auto(dtype="float64")},
    "dual": {"solver": "dual"},
    "local": {"solver": Local(9)},
}


def known_users():
    """A model of known users whose vectors were drawn, and not learned."""
    rng, model = np.random.default_rng(0), LightGCN(dim=3)
    model._take({name: rng.random((n, 3), np.float32) for name, n in (("users", USERS), ("items", ITEMS))}, DATA)
    return model


@pytest.fixture(params=[*MODELS, "known users"])
def model(request):
    if request.param == "known users":
        return known_users()
    return type(MODELS[request.param])(**MODELS[request.param].get_params()).fit(DATA, **HOW.get(request.param, {}))


def expected(model, k):
    """The best items of each user that are neither in the history nor seen, by a loop; of nobody the popular ones."""
    scores = model.score(csr(X))
    scores[EMPTY_USER] = model.item_counts_
    banned = (X > 0) | SEEN
    return [brute_force_top_k(row, k, set(np.flatnonzero(out)))[0] for row, out in zip(scores, banned, strict=True)]


def test_what_interactions_have_seen_is_not_recommended(model):
    columns = expected(model, 25)
    names, _ = model.recommend(DATA, 25)
    found = [[-1 if name is None else NAMES.index(name) for name in row] for row in names]
    assert found == columns
    as_matrix, _ = model.recommend(csr(X), 25, seen=csr(SEEN))
    assert as_matrix.tolist() == columns
    as_ids, _ = model.recommend(DATA.without_seen(), 25, seen=[[NAMES[c] for c in np.flatnonzero(row)] for row in SEEN])
    assert as_ids.tolist() == names.tolist()


def test_items_in_another_order_or_unknown(model):
    order = np.random.default_rng(1).permutation(ITEMS)
    x, seen = np.hstack([X[:, order], np.zeros((USERS, 1))]), np.hstack([SEEN[:, order], np.ones((USERS, 1), bool)])
    moved = Interactions(csr(x), items=[*(NAMES[c] for c in order), "stranger"], seen=csr(seen))
    assert model.recommend(moved, 25)[0].tolist() == model.recommend(DATA, 25)[0].tolist()


def test_all_of_it_comes_back_if_that_is_asked_for(model):
    anything, _ = model.recommend(DATA, ITEMS, exclude_seen=False)
    assert anything.tolist() == model.recommend(DATA.without_seen(), ITEMS, exclude_seen=False)[0].tolist()
    with pytest.raises(ValueError, match="seen tells what is not to be recommended: leave it out"):
        model.recommend(DATA, exclude_seen=False, seen=csr(SEEN))


def test_along_a_path_of_dials():
    model = DAN(3.0, 0.4, 0.2).fit(DATA)
    dials = [Dial(0.0, 0.0, 0.0), Dial(0.6, 0.2, 0.1), Dial(1.0, 0.0, 0.3)]
    lists = model.recommend_path(DATA, dials, 25)
    for dial, (names, _) in zip(dials, lists, strict=True):
        assert names.tolist() == model.with_dials(**dial._asdict()).recommend(DATA, 25)[0].tolist()
    given = model.recommend_path(csr(X), dials, 25, seen=csr(SEEN))
    for (names, _), (columns, _) in zip(lists, given, strict=True):
        assert names.tolist() == model.items_.take(columns).tolist()


def test_one_history_of_ids():
    model = EASE(6.0).fit(DATA)
    first, _ = model.recommend([NAMES[1], NAMES[2]], 5)
    rest, _ = model.recommend([NAMES[1], NAMES[2]], 3, seen=[*first[:2], "stranger"])
    assert rest.tolist() == first[2:].tolist()
    new = csr(new_histories(3, ITEMS, weighted=True))
    assert model.recommend(new, 5, seen=csr(np.zeros(new.shape)))[0].tolist() == model.recommend(new, 5)[0].tolist()
    with pytest.raises(DataError, match="seen is of 2 users and the histories are of 3: give as many"):
        model.recommend(new, 5, seen=[[NAMES[0]], [NAMES[1]]])


def test_ml_1m_never_recommends_what_a_user_has_rated():
    """Where low ratings do not count as seen, 29,812 of these 120,760 films have been rated by that very user."""
    path = real("ml-1m") / "interactions.csv.gz"
    data = Interactions.read(path, rating="rating", min_rating=4)
    rated = Interactions.read(path)
    model = RDLAE().fit(data)

    def had(data):
        names, _ = model.recommend(data, 20)
        rows, columns = rated.users.positions(data.users.values), rated.items.positions(names)
        assert names.size == 120_760
        assert (columns >= 0).all()
        return int(rated.matrix[np.repeat(rows, 20), columns.ravel()].astype(bool).sum())

    assert had(data.without_seen()) == pytest.approx(29_812, rel=0.01)
    assert had(data) == 0
