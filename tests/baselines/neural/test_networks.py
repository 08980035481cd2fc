"""Every network beside its equations in dense NumPy, float64, and its gradient beside finite differences."""

from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `neural` is not installed")
pytest.importorskip("torchdiffeq", reason="the extra `neural` is not installed")

from relae.baselines.neural._graph import Graph  # noqa: E402
from relae.baselines.neural._pairs import Sampler, Triples  # noqa: E402
from relae.baselines.neural._training import even_parts  # noqa: E402
from relae.baselines.neural.grmf import GRMFNetwork  # noqa: E402
from relae.baselines.neural.hmlet import HMLETNetwork, gated_layers  # noqa: E402
from relae.baselines.neural.lightgcn import LightGCNNetwork  # noqa: E402
from relae.baselines.neural.ltocf import LTOCFNetwork  # noqa: E402
from relae.baselines.neural.multvae import MultVAENetwork  # noqa: E402

from ...oracles import csr, example  # noqa: E402

USERS, ITEMS, DIM = 9, 7, 4
X = example(USERS, ITEMS, weighted=False)  # with a user, and an item, that have nothing
TRIPLES = Triples(*(torch.tensor(part) for part in ([0, 1, 1, 5, 8], [0, 2, 4, 1, 6], [5, 0, 0, 6, 2])))


def adjacency(x=X):
    """Â by its definition."""
    nodes = sum(x.shape)
    a = np.zeros((nodes, nodes))
    a[: len(x), len(x) :], a[len(x) :, : len(x)] = x > 0, (x > 0).T
    degree = a.sum(axis=1)
    for i in range(nodes):
        for j in range(nodes):
            if a[i, j]:
                a[i, j] /= np.sqrt(degree[i] * degree[j])
    return a


def doubled(network):
    return network.double()


def vectors(network):
    return network.nodes.detach().numpy().astype(np.float64)


def graph():
    return Graph(csr(X))


def lightgcn(layers=3, l2=0.0):
    return doubled(LightGCNNetwork(graph(), DIM, layers, l2, seed=1))


def ltocf(method="rk4", residual=False, intervals=3):
    return doubled(LTOCFNetwork(graph(), DIM, intervals, 2.5, method, residual, 1e-6, 0.01, seed=1))


def hmlet(gates="end", layers=4, edge_dropout=0.0):
    return doubled(HMLETNetwork(graph(), DIM, layers, gates, 2, 0.2, edge_dropout, 1e-3, 0.01, seed=1))


def grmf(normalized, smoothness=0.3):
    return doubled(GRMFNetwork(graph(), DIM, smoothness, normalized, 0.01, seed=1))


def vae(dropout=0.0, steps=10, hidden=6):
    return doubled(MultVAENetwork(csr(X), hidden, 3, dropout, 0.4, steps, 0.01, seed=1))


# --- the graph -------------------------------------------------------------------------------------------------


def test_the_graph_is_the_normalized_adjacency():
    np.testing.assert_allclose(graph().matrix.toarray(), adjacency(), atol=1e-7)


def test_weights_of_interactions_do_not_count():
    weighted = csr(example(USERS, ITEMS, weighted=True))
    before = weighted.data.copy()
    np.testing.assert_array_equal(Graph(weighted).matrix.toarray(), graph().matrix.toarray())
    np.testing.assert_array_equal(weighted.data, before)


def test_a_thinned_graph_has_some_of_the_edges_both_ways():
    whole, total = adjacency(), np.zeros_like(adjacency())
    torch.manual_seed(0)
    for _ in range(400):
        thin = graph().thinned(0.6).matrix.toarray()
        np.testing.assert_array_equal(thin, thin.T)
        kept = thin != 0
        np.testing.assert_allclose(thin[kept], whole[kept] / 0.6, rtol=1e-6)
        assert not (kept & (whole == 0)).any()
        total += thin
    np.testing.assert_allclose(total / 400, whole, atol=0.15 * whole.max())


# --- forward passes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_lightgcn_is_the_mean_of_its_layers(layers):
    network = lightgcn(layers)
    powers = [np.linalg.matrix_power(adjacency(), power) for power in range(layers + 1)]
    expected = sum(powers) @ vectors(network) / (layers + 1)
    np.testing.assert_allclose(network.forward().detach().numpy(), expected, atol=1e-5)


def dense_step(method, a, h, e):
    if method == "euler":
        return e + h * a @ e
    k1 = a @ e  # the classical fourth-order method, stage by stage
    k2 = a @ (e + h / 2 * k1)
    k3 = a @ (e + h / 2 * k2)
    k4 = a @ (e + h * k3)
    return e + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("method", ["euler", "rk4"])
def test_ltocf_is_a_chain_of_fixed_steps(method, residual):
    network = ltocf(method, residual)
    with torch.no_grad():
        network.times += torch.tensor([0.1, -0.2])  # as if learned
    times = [0.0, *network.times.tolist(), 2.5]
    state = vectors(network)
    total = state.copy()
    for start, end in pairwise(times):
        moved = dense_step(method, adjacency(), end - start, state)
        state = moved if residual else moved - state
        total += state
    np.testing.assert_allclose(network.forward().detach().numpy(), total / len(times), atol=1e-5)


def force(network, *, linear):
    """Gates that are certain, whatever they see."""
    with torch.no_grad():
        for gate in network.gates.values():
            gate.layers[-1].weight.zero_()
            gate.layers[-1].bias.copy_(torch.tensor([1e6, -1e6]) * (1 if linear else -1))


def elu(x):
    return np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)


def dense_hmlet(e, gated, layers, linear):
    a = adjacency()
    layer, last_gated, total = e, e, e.copy()
    for at in range(layers):
        straight = a @ layer
        if at in gated:
            layer = last_gated = straight if linear else elu(a @ last_gated)
        else:
            layer = straight
        total += layer
    return total / (layers + 1)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(
    ("gates", "where"), [("front", [0, 1]), ("middle", [1, 2]), ("end", [2, 3]), ("all", [0, 1, 2, 3])]
)
def test_hmlet_with_its_gates_forced(gates, where, linear, training):
    network = hmlet(gates)
    force(network, linear=linear)
    network.train(training)
    expected = dense_hmlet(vectors(network), where, 4, linear)
    np.testing.assert_allclose(network.forward().detach().numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("linear", [False, True])
def test_hmlet_tells_what_its_gates_choose(linear):
    network = hmlet("end")
    force(network, linear=linear)
    np.testing.assert_array_equal(network.score_arrays()["linear_shares"], np.full((2, 2), float(linear)))
    torch.manual_seed(2)  # gates that choose one for some nodes and the other for others
    with torch.no_grad():
        network.nodes *= 50
        for gate in network.gates.values():
            gate.layers[-1].weight.normal_()
            gate.layers[-1].bias.zero_()
    network.eval()
    _, choices = network._travel()
    assert 0 < choices[0].mean() < 1
    shares = [[chosen[:USERS].mean(), chosen[USERS:].mean()] for chosen in (part.numpy() for part in choices)]
    np.testing.assert_allclose(network.score_arrays()["linear_shares"], shares)


def test_hmlet_with_open_gates_is_lightgcn():
    network, plain = hmlet("all"), lightgcn(4)
    force(network, linear=True)
    torch.testing.assert_close(network.forward(), plain.forward())


@pytest.mark.parametrize("layers", [1, 2, 3, 5])
def test_gates_are_where_they_are_called(layers):
    half = max(1, layers // 2)
    assert list(gated_layers(layers, "all")) == list(range(layers))
    assert list(gated_layers(layers, "front")) == list(range(half))
    assert list(gated_layers(layers, "end")) == list(range(layers - half, layers))
    assert len(gated_layers(layers, "middle")) == half


def test_gates_choose_outright_when_scores_are_computed_and_softly_in_training():
    network = hmlet("all")
    gate, other = network.gates["0"], torch.randn(50, DIM, dtype=torch.float64)
    network.eval()
    assert set(gate(other, -other, 0.7).unique().tolist()) <= {0.0, 1.0}
    network.train()
    soft = gate(other, -other, 0.7)
    assert ((soft > 0) & (soft < 1)).all()
    torch.testing.assert_close(soft.sum(dim=1), torch.ones(50, dtype=torch.float64))


def test_gates_wait_and_cool():
    network = hmlet()
    network.start(2)
    assert not any(parameter.requires_grad for parameter in network.gates.parameters())
    assert network.temperature == 0.7
    network.start(12)
    assert all(parameter.requires_grad for parameter in network.gates.parameters())
    assert network.temperature == pytest.approx(0.7 * np.exp(-0.05))
    network.start(10_000)
    assert network.temperature == 0.01


# --- losses ------------------------------------------------------------------------------------------------------


def dense_pairs(scoring, own, l2):
    """The loss of pairs, draw by draw."""
    total = 0.0
    for u, i, j in zip(*(part.tolist() for part in TRIPLES), strict=True):
        e_u, e_i, e_j = scoring[u], scoring[USERS + i], scoring[USERS + j]
        total += np.log1p(np.exp(e_u @ e_j - e_u @ e_i))
        total += l2 / 2 * sum(own[node] @ own[node] for node in (u, USERS + i, USERS + j))
    return total / len(TRIPLES.users)


def test_the_loss_of_pairs():
    network = lightgcn(2, l2=0.7)
    expected = dense_pairs(network.forward().detach().numpy(), vectors(network), 0.7)
    assert network.loss(TRIPLES).item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("normalized", [False, True])
def test_grmf_adds_the_laplacian_by_expectation(normalized):
    network, pairs = grmf(normalized), grmf(normalized, smoothness=0.0)
    able = [u for u in range(USERS) if 0 < (X[u] > 0).sum() < ITEMS]
    often = np.lcm.reduce([(X[u] > 0).sum() for u in able])  # draws of each user: every item as often as any other
    draws = [
        (u, i, np.flatnonzero(X[u] == 0)[0])
        for u in able
        for i in np.flatnonzero(X[u])
        for _ in range(often // (X[u] > 0).sum())
    ]
    assert len(draws) == often * len(able)
    batch = Triples(*(torch.tensor(part) for part in np.array(draws).T))
    x = np.where(np.isin(np.arange(USERS), able)[:, None], X > 0, 0)
    a = np.block([[np.zeros((USERS, USERS)), x], [x.T, np.zeros((ITEMS, ITEMS))]])
    degree = np.concatenate([(X > 0).sum(axis=1), (X > 0).sum(axis=0)])
    e = vectors(network) / np.sqrt(np.maximum(degree, 1))[:, None] if normalized else vectors(network)
    laplacian = np.diag(a.sum(axis=1)) - a
    expected = 0.3 * np.trace(e.T @ laplacian @ e) / x.sum()
    assert (network.loss(batch) - pairs.loss(batch)).item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("normalized", [False, True])
def test_the_loss_of_grmf_draw_by_draw(normalized):
    network = grmf(normalized)
    e = vectors(network)
    degree = np.concatenate([(X > 0).sum(axis=1), (X > 0).sum(axis=0)])
    able = [u for u in range(USERS) if 0 < degree[u] < ITEMS]
    rough = 0.0
    for u, i in zip(TRIPLES.users.tolist(), TRIPLES.liked.tolist(), strict=True):
        scale = np.sqrt(np.maximum(degree[[u, USERS + i]], 1)) if normalized else np.ones(2)
        rarer = max(degree[u], 1) / degree[able].mean()
        rough += rarer * np.sum((e[u] / scale[0] - e[USERS + i] / scale[1]) ** 2)
    expected = dense_pairs(e, e, 0.01) + 0.3 * rough / len(TRIPLES.users)
    assert network.loss(TRIPLES).item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("hidden", [6, 0])
def test_the_elbo_of_multvae(hidden):
    network = vae(hidden=hidden)
    x, noise = X[[0, 4, 7]].astype(np.float64), np.random.default_rng(0).standard_normal((3, 3))
    encoder, decoder = (
        [(layer.weight.detach().numpy(), layer.bias.detach().numpy()) for layer in layers]
        for layers in (network.encoder, network.decoder)
    )
    assert len(encoder) == len(decoder) == (2 if hidden else 1)
    unlikely = divergence = 0.0
    for row, e in zip(x, noise, strict=True):
        code = encoder[0][0] @ (row / np.sqrt(row @ row)) + encoder[0][1]
        if hidden:
            code = encoder[1][0] @ np.tanh(code) + encoder[1][1]
        mean, log_variance = code[:3], code[3:]
        z = mean + np.sqrt(np.exp(log_variance)) * e
        f = decoder[0][0] @ z + decoder[0][1]
        if hidden:
            f = decoder[1][0] @ np.tanh(f) + decoder[1][1]
        unlikely -= sum(row[i] * (f[i] - np.log(np.exp(f).sum())) for i in range(ITEMS))
        divergence += 0.5 * sum(np.exp(v) + m * m - 1 - v for m, v in zip(mean, log_variance, strict=True))
    found = network.elbo(torch.from_numpy(x), torch.from_numpy(noise))
    np.testing.assert_allclose([part.item() for part in found], [unlikely / 3, divergence / 3], atol=1e-5)


def test_the_divergence_is_annealed():
    network = vae(steps=4)
    x = torch.from_numpy(X[[0, 4]].astype(np.float64))
    shares = []
    for _ in range(6):
        torch.manual_seed(0)
        loss = network.loss(x).item()
        torch.manual_seed(0)
        unlikely, divergence = network.elbo(x, torch.randn(2, 3).double())
        shares.append((loss - unlikely.item()) / divergence.item())
    np.testing.assert_allclose(shares, [0.0, 0.1, 0.2, 0.3, 0.4, 0.4], atol=1e-4)


# --- gradients ---------------------------------------------------------------------------------------------------

CASES = {
    "lightgcn": (lambda: lightgcn(2, 0.5), TRIPLES),
    "grmf": (lambda: grmf(False), TRIPLES),
    "grmfnorm": (lambda: grmf(True), TRIPLES),
    "ltocf rk4": (lambda: ltocf("rk4"), TRIPLES),
    "ltocf euler": (lambda: ltocf("euler", True), TRIPLES),
    "hmlet end": (lambda: hmlet("end"), TRIPLES),
    "hmlet with edge dropout": (lambda: hmlet("end", edge_dropout=0.4), TRIPLES),
    "hmlet all": (lambda: hmlet("all"), TRIPLES),
    "multvae": (lambda: vae(dropout=0.3), torch.from_numpy(X[[0, 1, 4, 6]].astype(np.float64))),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_agree_with_finite_differences(name):
    make, batch = CASES[name]
    network = make()
    if hasattr(network, "steps"):
        network.steps += 100  # the divergence counts
    network.train()
    network.start(100)

    def loss():
        torch.manual_seed(3)  # the same noise every time
        return network.loss(batch)

    network.zero_grad()
    loss().backward()
    rng, step = np.random.default_rng(0), 1e-5
    for label, parameter in network.named_parameters():
        direction = torch.from_numpy(rng.standard_normal(parameter.shape))
        with torch.no_grad():
            parameter += step * direction
            above = loss().item()
            parameter -= 2 * step * direction
            below = loss().item()
            parameter += step * direction
        expected = (above - below) / (2 * step)
        assert (parameter.grad * direction).sum().item() == pytest.approx(expected, rel=1e-4, abs=1e-7), label


# --- draws -------------------------------------------------------------------------------------------------------


def test_draws_are_what_they_say():
    sampler = Sampler(csr(X))
    users, liked, others = sampler.draw(np.random.default_rng(0), 20_000)
    assert (X[users, liked] > 0).all()
    assert (X[users, others] == 0).all()
    able = [u for u in range(USERS) if 0 < (X[u] > 0).sum() < ITEMS]
    assert set(users.tolist()) == set(able)
    shares = np.bincount(users, minlength=USERS)[able] / len(users)
    np.testing.assert_allclose(shares, 1 / len(able), atol=0.02)
    for u in able:  # items of a user evenly, and so the others
        for drawn, all_of_them in ((liked, X[u] > 0), (others, X[u] == 0)):
            share = np.bincount(drawn[users == u], minlength=ITEMS)[all_of_them] / (users == u).sum()
            np.testing.assert_allclose(share, 1 / all_of_them.sum(), atol=0.05)


def test_an_epoch_draws_as_often_as_there_are_interactions():
    network = lightgcn()
    batches = list(network.batches(np.random.default_rng(0), 10))
    sizes = [len(batch.users) for batch, _ in batches]
    assert sum(sizes) == X.sum()
    assert len(sizes) == np.ceil(X.sum() / 10)
    assert batches[-1][1] == 1.0


@pytest.mark.parametrize(("total", "size"), [(1, 1), (7, 10), (80, 8), (81, 8), (163, 40), (999, 1000)])
def test_no_batch_is_a_small_rest(total, size):
    parts = list(even_parts(total, size))
    lengths = [stop - start for start, stop in parts]
    assert [start for start, _ in parts] == [0, *(stop for _, stop in parts[:-1])]
    assert parts[-1][1] == total
    assert max(lengths) <= size
    assert max(lengths) - min(lengths) <= 1
    assert len(lengths) == np.ceil(total / size)


def test_users_with_everything_are_not_drawn():
    from relae import DataError

    with pytest.raises(DataError, match="nothing to compare"):
        Sampler(csr(np.ones((3, 4), np.float32)))
