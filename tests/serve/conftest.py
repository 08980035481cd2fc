"""Small models in their folders, and services for them."""

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from relae import RDLAE, Interactions, store
from relae.baselines import GFCF, Popularity
from tests.serve.running import serving

TITLES = ["Amélie (2001)", "Star Wars", "Stargate", "The Last Starfighter", "Ōkami: The Game", "!!!", None]


def interactions(ids, users=80, seed=0):
    """Users with some of the items, the first of which have the most users."""
    rng = np.random.default_rng(seed)
    chance = 0.6 / np.sqrt(1 + np.arange(len(ids)))
    matrix = sp.csr_array((rng.random((users, len(ids))) < chance).astype(np.float32))
    titles = [TITLES[at] if at < len(TITLES) else f"Item number {at}" for at in range(len(ids))]
    times = 10**9 + 10_000 * np.arange(matrix.nnz)
    return Interactions(matrix, [1000 + user for user in range(users)], ids, titles, times)


@pytest.fixture(autouse=True, scope="module")
def _threads():
    """A service takes one thread for itself: other tests in this process are to have them all again."""
    before = numba.get_num_threads()
    with threadpool_limits():
        yield
    numba.set_num_threads(before)


@pytest.fixture(scope="session")
def data():
    """Integer ids with gaps."""
    return interactions([10 * at + 7 for at in range(40)])


@pytest.fixture(scope="session")
def model(data):
    return RDLAE(l2=5.0, dropout=0.3, xi=0.3).fit(data)


@pytest.fixture(scope="session")
def folder(data, model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "films"
    store.save(model, path, histories=data, title="Films")
    return path


@pytest.fixture(scope="session")
def client(folder):
    """A service without a key."""
    with serving(folder) as client:
        yield client


@pytest.fixture(scope="session")
def odd_ids():
    """Ids that are hard on URLs."""
    return ["a/b", "a b", "ü?x=1&y#z", "100%", "a%2Fb", "plain", "+", "'\"", "..a", "日本"]


@pytest.fixture(scope="session")
def odd_client(odd_ids, tmp_path_factory):
    """A service whose ids are hard on URLs, without histories."""
    path = tmp_path_factory.mktemp("models") / "odd"
    store.save(RDLAE(l2=5.0).fit(interactions(odd_ids)), path)
    with serving(path) as client:
        yield client


@pytest.fixture(scope="session", params=[Popularity(), GFCF(rank=4)], ids=["Popularity", "GFCF"])
def plain(request, data, tmp_path_factory):
    """A model that has no ξ, with its service."""
    path = tmp_path_factory.mktemp("models") / "plain"
    fitted = request.param.fit(data)
    store.save(fitted, path, histories=data)
    with serving(path) as client:
        yield fitted, client
