"""The next item, against S and T that are built step by step, in dense float64."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import relae
from relae import LAE, RLAE, DataError, Interactions, PlanError
from relae.evaluation import leave_last_out
from relae.linalg import Sequences
from relae.models import NextItem
from relae.models._source_target import MatrixRows, StepRows, regress
from relae.solvers import Local, Primal, as_solver
from relae.tuning import tune

from ..oracles import csr, example

USERS, ITEMS = 23, 12
X = example(USERS, ITEMS, weighted=True)
X[3] = 0
X[3, 5] = 1.5  # a user with a single item
X[4] = np.linspace(0.5, 1.5, ITEMS)  # every item has been together with every other one, and so is its neighbour
X[5] = X[4, ::-1]
TIMES = np.random.default_rng(3).integers(0, 6, np.count_nonzero(X))  # with ties
DATA = Interactions(csr(X), times=TIMES)
EVERY_SOLVER = ["primal", "dual", Local(ITEMS)]


def sequences(x, times):
    """The items of each user with their values, in the order of time and then of columns."""
    result, at = [], 0
    for row in x:
        columns = np.flatnonzero(row)
        own = list(zip(times[at : at + len(columns)], columns, row[columns], strict=True))
        at += len(columns)
        result.append([(int(column), float(value)) for _, column, value in sorted(own, key=lambda each: each[:2])])
    return result


def powers(fading, length):
    return [rank**-fading for rank in range(1, length + 1)]


def faded(sequence, fade, n_items):
    """What came last counts fade[0], what came before it fade[1], and so on."""
    row = np.zeros(n_items)
    for (item, value), weight in zip(reversed(sequence), fade, strict=False):
        row[item] = value * weight
    return row


def dense_steps(x, times, fade):
    """S and T, row by row."""
    sources, targets = [], []
    for sequence in sequences(x, times):
        for place, (item, value) in enumerate(sequence):
            if place:
                sources.append(faded(sequence[:place], fade, x.shape[1]))
                targets.append(value * np.eye(x.shape[1])[item])
    return np.array(sources), np.array(targets)


def dense_weights(x, times, l2, fade, dropout=0.0):
    s, t = dense_steps(x, times, fade)
    gram = s.T @ s
    penalty = dropout / (1 - dropout) * np.diag(gram) + l2
    return np.linalg.solve(gram + np.diag(penalty), s.T @ t)


def dense_history(x, times, fade):
    """Each user's history, faded."""
    return np.array([faded(sequence, fade, x.shape[1]) for sequence in sequences(x, times)])


@pytest.mark.parametrize("solver", EVERY_SOLVER)
@pytest.mark.parametrize(
    ("fading", "length", "dropout"), [(0.8, 100, 0.0), (0.0, 100, 0.0), (0.8, 1, 0.0), (1.5, 3, 0.3), (2.0, 4, 0.0)]
)
def test_every_solver_gives_the_closed_form(solver, fading, length, dropout):
    exact = as_solver(solver, dtype="float64") if isinstance(solver, str) else Local(ITEMS, dtype="float64")
    length = length if exact.exact else 100  # items that are in no source together are no neighbours
    model = NextItem(2.0, fading, length, dropout).fit(DATA, solver=exact)
    fade = powers(fading, length)
    expected = dense_weights(X, TIMES, 2.0, fade, dropout)
    np.testing.assert_allclose(model.weights(), expected, atol=1e-10)
    scores = model.score(DATA)
    np.testing.assert_allclose(scores, dense_history(X, TIMES, fade) @ expected, atol=1e-6)


@given(st.integers(0, 2**32 - 1), st.lists(st.floats(0.01, 1), min_size=1, max_size=8), st.floats(1, 50))
def test_sums_over_sequences_are_those_of_their_steps(seed, fade, scale):
    rng = np.random.default_rng(seed)
    x = (rng.random((7, 6)) < rng.random()) * rng.uniform(0.5, scale, (7, 6))
    x[0, :2] = 1.0
    x = csr(x).toarray().astype(np.float64)
    times = rng.integers(0, 5, np.count_nonzero(x))
    s, t = dense_steps(x, times, fade)
    lines = Sequences.of(csr(x), times, np.array(fade))
    sources, targets = lines.steps(np.dtype(np.float64))
    gram, cross = np.empty((6, 6)), np.empty((6, 6))
    lines.products(gram, cross)
    np.testing.assert_allclose(sources.toarray(), s, rtol=1e-12)
    np.testing.assert_allclose(targets.toarray(), t, rtol=1e-12)
    near = {"rtol": 1e-9, "atol": 1e-9 * scale**2}
    np.testing.assert_allclose(np.tril(gram), np.tril(s.T @ s), **near)
    np.testing.assert_allclose(cross, s.T @ t, **near)
    np.testing.assert_allclose(lines.gram_diagonal(), np.diag(gram), **near)
    vectors = rng.standard_normal((6, 3))
    np.testing.assert_allclose(lines.gram_times(vectors), s.T @ (s @ vectors), atol=1e-7 * scale**2)
    assert (lines.n_sources, lines.n_steps) == (sources.nnz, len(s))


def test_long_histories():
    """Longer than what counts of them, and than a tile of the kernels."""
    rng = np.random.default_rng(0)
    x, times = np.ones((2, 300), np.float32), np.concatenate([rng.permutation(300), rng.permutation(300)])
    fade = powers(0.8, 70)
    s, t = dense_steps(x, times, fade)
    gram, cross = np.empty((300, 300), np.float32), np.empty((300, 300), np.float32)
    Sequences.of(csr(x), times, np.array(fade)).products(gram, cross)
    np.testing.assert_allclose(np.tril(gram), np.tril(s.T @ s), atol=1e-5)
    np.testing.assert_allclose(cross, s.T @ t, atol=1e-6)
    data = Interactions(csr(x), times=times)
    expected = dense_history(x, times, fade) @ dense_weights(x, times, 1.0, fade)
    np.testing.assert_allclose(NextItem(1.0, length=70).fit(data).score(data), expected, atol=1e-5)


@pytest.mark.parametrize("solver", EVERY_SOLVER)
@pytest.mark.parametrize("xi", [0.0, 0.3, 1.0])
def test_where_source_and_target_are_the_same_it_is_the_linear_autoencoder(solver, xi):
    how = as_solver(solver, dtype="float64") if isinstance(solver, str) else Local(ITEMS, dtype="float64")
    other = (RLAE(2.0, xi) if xi < 1 else LAE(2.0)).fit(csr(X), solver=Primal(dtype="float64"))
    same = regress(MatrixRows(csr(X), csr(X)), np.full(ITEMS, 2.0), xi=xi, solver=how)
    np.testing.assert_allclose(same.weights.rows(np.arange(ITEMS)), other.weights(), atol=1e-10)


def test_inputs_may_be_more_than_items():
    rng = np.random.default_rng(1)
    beside = (rng.random((USERS, 3)) < 0.5).astype(np.float32)
    sources = np.hstack([X, beside]).astype(np.float64)
    weights = rng.uniform(0.5, 2.0, USERS)
    scaled = weights[:, None] * sources
    expected = np.linalg.solve(scaled.T @ sources + 2.0 * np.eye(ITEMS + 3), scaled.T @ X)
    for solver in ("primal", "dual"):
        how = as_solver(solver, dtype="float64")
        found = regress(MatrixRows(csr(sources), csr(X), weights), np.full(ITEMS + 3, 2.0), solver=how)
        np.testing.assert_allclose(found.weights.rows(np.arange(ITEMS + 3)), expected, atol=1e-6)


def test_nothing_after_a_step_is_in_its_source():
    """The same fit, whatever order the last two items of a user have beyond what their targets say."""
    x = np.ones((1, 5), np.float32)
    fade = np.array([1.0, 0.7, 0.5])
    first, second = (
        StepRows(Sequences.of(csr(x), np.array(times), fade)) for times in ([1, 2, 3, 4, 5], [1, 2, 3, 5, 4])
    )
    before = [rows.x.toarray() for rows in (first, second)]
    assert np.array_equal(before[0][:3], before[1][:3])
    assert (before[0][:2, 3:] == 0).all()
    assert (before[0] * np.roll(np.eye(5), -1, axis=0)[:4] == 0).all()  # no step has its own target


def test_an_item_that_came_last_leads_nowhere():
    """A poisoned future: items that only ever come last have no weight on others."""
    x = np.zeros((40, 6), np.float32)
    rng = np.random.default_rng(2)
    x[:, :4] = rng.random((40, 4)) < 0.7
    x[:, 0] = x[:, 5] = 1
    _, columns = np.nonzero(x)
    model = NextItem(1.0).fit(Interactions(csr(x), times=columns.astype(np.int64)))
    assert (model.weights()[5] == 0).all()
    assert (model.weights()[:, 0] == 0).all()  # and nothing leads to what always comes first


def test_an_order_of_a_history_counts_and_a_set_has_none():
    model = NextItem(2.0).fit(DATA)
    listed, other, without = model.score([1, 4, 7]), model.score([7, 4, 1]), model.score({1: 1.0, 4: 1.0, 7: 1.0})
    b = model.weights()
    np.testing.assert_allclose(listed, 3**-0.8 * b[1] + 2**-0.8 * b[4] + b[7], atol=1e-6)
    np.testing.assert_allclose(other, 3**-0.8 * b[7] + 2**-0.8 * b[4] + b[1], atol=1e-6)
    np.testing.assert_allclose(without, b[1] + b[4] + b[7], atol=1e-6)
    np.testing.assert_allclose(model.score({1, 4, 7}), without, atol=1e-6)
    matrix = csr(np.eye(ITEMS)[[1, 4, 7]].sum(axis=0, keepdims=True))
    ids, _ = model.recommend(matrix, 3, times=np.array([10, 20, 30]))
    assert ids[0].tolist() == model.recommend([1, 4, 7], 3)[0].tolist()


@pytest.mark.parametrize("solver", EVERY_SOLVER)
def test_explanations_sum_to_the_score(solver):
    model = NextItem(2.0).fit(DATA, solver=solver)
    why = model.explain([1, 4, 7], 2)
    np.testing.assert_allclose(why.score, model.score([1, 4, 7])[2], rtol=1e-4)
    assert set(why.items) == {1, 4, 7}
    matrix = csr(np.eye(ITEMS)[[1, 4, 7]].sum(axis=0, keepdims=True))
    timed = model.explain(matrix, 2, times=np.array([3, 2, 1]))
    np.testing.assert_allclose(timed.score, model.score([7, 4, 1])[2], rtol=1e-4)
    parts = dict(zip(why.items, why.contributions, strict=True))
    np.testing.assert_allclose(parts[4], 2**-0.8 * model.weights()[4, 2], rtol=1e-4)


@pytest.mark.parametrize("form", ["fitted", "auto"])
@pytest.mark.parametrize("solver", EVERY_SOLVER)
def test_a_folder_keeps_it(solver, form, tmp_path):
    model = NextItem(2.0, 0.7).fit(DATA, solver=solver)
    model.save(tmp_path / "model", form=form, histories=DATA)
    opened = relae.load(tmp_path / "model")
    opened_again = relae.store.open_model(tmp_path / "model")
    np.testing.assert_allclose(opened.score([1, 4, 7]), model.score([1, 4, 7]), atol=1e-4)
    assert opened.facts() == model.facts()
    kept = opened_again.histories
    np.testing.assert_allclose(opened.score(kept), model.score(DATA), atol=1e-4)
    moved = NextItem(2.0, 0.7).fit(DATA, solver=solver).set_params(fading=0.1)  # for the next fit only
    np.testing.assert_allclose(moved.score([1, 4, 7]), model.score([1, 4, 7]), atol=1e-6)


def test_what_cannot_be_fitted():
    with pytest.raises(DataError, match=r"NextItem learns from the order of interactions, .* no times.*timestamp"):
        NextItem().fit(csr(X))
    with pytest.raises(DataError, match="none of the 12 users has two items"):
        NextItem().fit(Interactions(csr(np.eye(ITEMS)), times=np.arange(ITEMS)))
    with pytest.raises(ValueError, match="length"):
        NextItem(length=0).fit(DATA)


def test_a_plan_counts_what_stands_beside_the_inverse(monkeypatch):
    rows = StepRows(Sequences.of(DATA.matrix, TIMES, np.array([1.0, 0.5])))
    primal = NextItem(2.0).fit(DATA, solver="primal").plan_
    assert primal.chosen.added_bytes >= 2 * 4 * ITEMS**2
    monkeypatch.setattr(StepRows, "bytes_beside", lambda self, solver, itemsize: 2**60)
    with pytest.raises(PlanError, match="12 items need"):
        NextItem(2.0).fit(DATA)
    monkeypatch.undo()
    only_local = lambda self, solver, itemsize: 0 if solver == "local" else 2**60  # noqa: E731
    monkeypatch.setattr(StepRows, "bytes_beside", only_local)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = NextItem(2.0).fit(DATA)
    assert model.plan_.solver == "local"
    assert "an approximation" in str(caught[0].message)
    assert rows.bytes_beside("local", 4) == 0


def test_tuning_searches_what_it_declares():
    x = example(60, ITEMS, weighted=False)
    data = Interactions(csr(x), times=np.random.default_rng(4).permutation(np.count_nonzero(x)))
    search = tune("nextitem", leave_last_out(data), objective="ndcg@5", budget=6)
    assert {*search.chosen_model().get_params()} == {"l2", "fading", "length", "dropout"}
    assert len(search.trials) == 6
    assert not any(trial.failure for trial in search.trials)
