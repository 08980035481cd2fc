"""What the models share that know the users of their fit and nobody else; no training is needed for it."""

import numpy as np

from relae import Interactions, store
from relae.baselines import LightGCN, Mark

from ..oracles import csr, example

USERS, ITEMS, NOBODY = 12, 8, 5
X = example(USERS, ITEMS, weighted=False)
X[NOBODY] = 0
DATA = Interactions(csr(X), [f"user {u}" for u in range(USERS)], [f"item {i}" for i in range(ITEMS)])


def known():
    """A model whose vectors were drawn, and not learned."""
    rng = np.random.default_rng(0)
    model = LightGCN(dim=3)
    model._take({name: rng.random((n, 3), np.float32) for name, n in (("users", USERS), ("items", ITEMS))}, DATA)
    model.curve_, model.epochs_, model.best_epoch_, model.stopped_ = [Mark(1, 0.1, 0.7, 0.2)], 1, 1, "epochs"
    return model


def test_a_user_of_the_fit_who_has_nothing_is_scored_zero():
    """There is a vector for such a user, which nothing has been learned for."""
    model = known()
    somebody, nobody = model.score(csr(X[[0, NOBODY]]))
    np.testing.assert_allclose(somebody, model.item_factors_ @ model.user_factors_[0], rtol=1e-6)
    assert (nobody == 0).all()


def test_a_folder_has_the_histories_of_the_fit_once(tmp_path):
    model, path = known(), tmp_path / "model"
    for histories in (DATA, DATA.select_users(np.array([7, 2]))):
        model.save(path, histories=histories)
        saved = store.open_model(path, verify=True)
        assert ("histories_values" in saved.info["arrays"]) == (histories is not DATA)
        assert saved.histories.users == histories.users
        assert (saved.histories.matrix != histories.matrix).nnz == 0
        assert saved.model.holds_histories
