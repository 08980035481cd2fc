"""Time in the linear autoencoders: half-life, fading, freshness."""

import numpy as np
import pytest
import scipy.sparse as sp

import relae
from relae import DAN, EASE, RDLAE, Interactions
from relae.data import Demand
from relae.errors import DataError, ParameterError
from relae.evaluation import evaluate, split_by_time
from relae.models import DEQL, DLAE, EDLAE, LAE, RLAE, Dial

DAY = 86_400
START = 1_500_000_000


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(3)
    x = rng.random((80, 25)) < 0.25
    x[0] = False
    return Interactions(x.astype(float), times=START + rng.integers(0, 60 * DAY, x.sum()))


def scores_by_hand(model, data, history, order):
    """Return the scores of one history by dense algebra in float64, from the parameters of a fitted model."""
    ages = (data.times.max() - data.times) / DAY
    aged = np.ones(len(ages)) if model.half_life is None else 0.5 ** (ages / model.half_life)
    x = sp.csr_array((data.matrix.data * aged, data.matrix.indices, data.matrix.indptr), shape=data.matrix.shape)
    dense = x.toarray()
    gram = dense.T @ dense
    penalty = model.dropout / (1 - model.dropout) * np.diag(gram) + model.l2
    inverse = np.linalg.inv(gram + np.diag(penalty))
    weights = np.eye(len(gram)) - inverse * np.maximum(penalty, (1 - model.xi) / np.diag(inverse))
    q = np.zeros(len(gram))
    for rank, item in enumerate(reversed(order), 1):
        q[item] = history[item] * float(rank) ** -model.fading
    demand = np.zeros(len(gram))
    np.add.at(demand, data.matrix.indices, 0.5 ** (ages / model.fresh_days))
    return q @ weights + model.freshness * np.sqrt(demand / demand.max())


@pytest.mark.parametrize(
    "time",
    [
        {"half_life": 20.0},
        {"fading": 0.7},
        {"freshness": 0.1},
        {"half_life": 9.0, "fading": 0.4, "freshness": 0.03, "fresh_days": 3.0},
    ],
)
@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_scores_are_those_of_dense_algebra(log, time, solver):
    model = RDLAE(2.0, 0.3, 0.4, **time).fit(log, solver=solver)
    order = [7, 3, 11, 2]
    expected = scores_by_hand(model, log, np.ones(25), order)
    np.testing.assert_allclose(model.score(order), expected, rtol=2e-4, atol=2e-5)
    ids, scores = model.recommend(order, 25)
    unseen = np.setdiff1d(np.arange(25), order)
    best = unseen[np.argsort(-expected[unseen], kind="stable")]
    assert ids[:21].tolist() == best.tolist()
    np.testing.assert_allclose(scores[:21], expected[best], rtol=2e-4, atol=2e-5)
    matrix = sp.csr_array(np.isin(np.arange(25), order).astype(float)[None])
    times = np.array([order.index(item) for item in matrix.indices])
    assert model.recommend(matrix, 21, times=times)[0][0].tolist() == best.tolist()


@pytest.mark.parametrize("kind", [LAE, EASE, RLAE, DLAE, EDLAE, RDLAE, DAN, DEQL])
def test_neutral_values_change_no_bit(log, kind):
    plain, neutral = (
        kind(3.0).fit(log.replace(times=None)),
        kind(3.0, half_life=None, fading=0.0, freshness=0.0).fit(log),
    )
    assert np.array_equal(plain.score(log), neutral.score(log))
    for ours, theirs in zip(plain.recommend(log, 10), neutral.recommend(log, 10), strict=True):
        assert np.array_equal(ours, theirs)
    assert repr(plain) == repr(neutral) == f"{kind.__name__}(l2=3.0)"


def test_dials_are_those_of_a_fit_with_them(log):
    model = EASE(2.0).fit(log)
    other = model.with_dials(fading=0.5, freshness=0.2)
    same = EASE(2.0, fading=0.5, freshness=0.2).fit(log)
    assert np.array_equal(other.score(log), same.score(log))
    dials = [Dial(0.0), Dial(0.0, fading=0.5, freshness=0.2), Dial(0.3, 0.1, fading=0.5)]
    lists = model.recommend_path(log, dials, 5)
    assert np.array_equal(lists[1][0], same.recommend(log, 5)[0])
    assert np.array_equal(lists[2][0], model.with_dials(xi=0.3, item_norm=0.1, fading=0.5).recommend(log, 5)[0])
    assert isinstance(model.with_dials(xi=0.3, item_norm=0.1, fading=0.5), DAN)
    assert model.with_xi(0.2).with_dials(freshness=0.1).get_params()["xi"] == 0.2


def test_explanations_sum_to_the_score_with_the_demand(log):
    model = RDLAE(2.0, fading=0.6, freshness=0.1).fit(log)
    history = [4, 9, 1]
    explanation = model.explain(history, 6)
    assert explanation.demand > 0
    assert explanation.score == pytest.approx(explanation.contributions.sum() + explanation.demand)
    assert explanation.score == pytest.approx(model.score(history)[6], rel=1e-4)
    assert explanation.shares.clip(min=0).sum() + explanation.demand_share == pytest.approx(1)


def test_a_history_without_an_order_does_not_fade(log):
    model = EASE(2.0, fading=1.0).fit(log)
    plain = model.with_dials(fading=0.0)
    assert np.array_equal(model.score({4, 9}), plain.score({4, 9}))
    assert not np.array_equal(model.score([4, 9]), plain.score([4, 9]))
    assert np.array_equal(model.score([9, 4])[[4, 9]].argsort(), model.score([4, 9])[[9, 4]].argsort())


def test_an_empty_history_gets_what_is_wanted_now(log):
    model = EASE(2.0, freshness=0.1, fresh_days=1.0).fit(log)
    ids, scores = model.recommend([], 5)
    assert ids.tolist() == np.argsort(-model.demand_.of_half_life(1.0), kind="stable")[:5].tolist()
    np.testing.assert_allclose(scores, model.score_offset()[ids.astype(int)], rtol=1e-6)
    assert model.with_dials(freshness=0.0).recommend([], 5)[1].tolist() == [0] * 5


def test_the_demand_between_two_half_lives(log):
    demand = Demand.of(log, 10.0)
    whole = Demand.of(log, 10.0, 10.5)
    assert 10.0 in demand.half_lives
    assert np.array_equal(demand.of_half_life(10.0), whole.of_half_life(10.0))
    near, exact = demand.of_half_life(10.5), whole.of_half_life(10.5)
    np.testing.assert_allclose(near, exact, rtol=0.02)
    assert not np.array_equal(near, exact)
    assert np.array_equal(demand.of_half_life(0.02), demand.of_half_life(0.5))
    assert np.array_equal(demand.of_half_life(9999), demand.of_half_life(365.0))


def test_further_events_count_as_if_they_had_been_there(log):
    later = log.times >= START + 40 * DAY
    early = Interactions(_cells(log.matrix, ~later), times=log.times[~later])
    late = Interactions(_cells(log.matrix, later), times=log.times[later])
    model = EASE(2.0, freshness=0.1).fit(early).with_events(late)
    whole = Demand.of(log)
    np.testing.assert_allclose(model.demand_.counts, whole.counts, rtol=1e-12)
    assert model.demand_.at == whole.at
    with pytest.raises(DataError, match="another unit"):
        model.with_events(Interactions(np.eye(25)[:1], times=[START * 1000]))


def _cells(matrix, mask):
    dense = np.zeros(matrix.shape)
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    dense[rows[mask], matrix.indices[mask]] = 1
    return dense


def test_a_folder_keeps_time(log, tmp_path):
    model = DAN(2.0, half_life=30.0, fading=0.5, freshness=0.1, fresh_days=5.0).fit(log)
    model.save(tmp_path / "m", histories=log)
    loaded = relae.load(tmp_path / "m")
    assert loaded.get_params() == model.get_params()
    assert loaded.demand_.at == model.demand_.at
    saved = relae.store.open_model(tmp_path / "m")
    assert np.array_equal(saved.histories.times, log.times)
    assert np.array_equal(loaded.recommend(saved.histories, 5)[0], model.recommend(log, 5)[0])


def test_what_needs_times_says_so(log):
    plain = log.replace(times=None)
    with pytest.raises(DataError, match=r"freshness=0\.1 needs times: read the data with timestamp=…"):
        EASE(2.0, freshness=0.1).fit(plain)
    with pytest.raises(DataError, match="half_life=3 needs times"):
        EASE(2.0, half_life=3).fit(plain)
    timeless = EASE(2.0).fit(plain)
    assert timeless.dials == ("xi", "item_norm", "propensity", "fading")
    for use in (
        lambda: timeless.with_dials(freshness=0.2),
        lambda: timeless.set_params(freshness=0.2).recommend([1], 3),
    ):
        with pytest.raises(DataError, match=r"freshness=0\.2 needs the recent demand .* was fitted without times"):
            use()
    with pytest.raises(DataError, match=r"half-life of 3 days, so that later events .* fit it again"):
        EASE(2.0, half_life=3.0).fit(log).update(Interactions(np.eye(25)[:2]))
    for values in ({"fading": -1.0}, {"freshness": 11.0}, {"half_life": 0.0}, {"fresh_days": 0.0}):
        with pytest.raises(ParameterError, match=next(iter(values))):
            EASE(2.0, **values).fit(log)
    with pytest.raises(TypeError, match="EASE has no parameter fresh"):
        EASE(2.0, fresh=1)


def test_evaluation_tells_the_model_the_order(log):
    split = split_by_time(log, share=0.2)
    model = EASE(2.0).fit(split.train)
    both = evaluate(model, split, ["ndcg"], [10], xis=[Dial(0.0), Dial(0.0, fading=1.0)])
    by_hand = model.with_dials(fading=1.0).recommend(split.histories, 10, times=split.history_times)[0]
    assert both[0]["ndcg@10"] != both[1]["ndcg@10"]
    alone = evaluate(EASE(2.0, fading=1.0).fit(split.train), split, ["ndcg"], [10])
    assert alone["ndcg@10"] == both[1]["ndcg@10"]
    hits = [np.isin(by_hand[row], split.truth[[row]].indices).sum() for row in range(len(split.users))]
    assert sum(hits) > 0
