"""What validation users say: their weights, which differences can be told, and what is chosen by them."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from relae import RDLAE, Interactions
from relae.baselines import ItemKNN
from relae.evaluation import evaluate, hold_out_items, hold_out_users
from relae.evaluation.statistics import length_weights
from relae.models import DAN, suggested_l2
from relae.tuning import GridSearch, Judge, Point, Trial, Tuning, gap, tune
from tests.real_data import real

NAME = "ndcg@10"


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    taste = rng.random((6, 80)) ** 5
    rows = np.array([rng.random(80) < 3 * taste[u % 6] / taste[u % 6].sum() * 4 for u in range(400)])
    return Interactions(rows[rows.sum(axis=1) > 2].astype(np.float32))


@pytest.fixture(scope="module")
def split(data):
    return hold_out_items(data, 0.2, rng=np.random.default_rng(0))


# --- how much users count ----------------------------------------------------------------------------------------


def test_weighted_lengths_are_distributed_as_those_wanted():
    rng = np.random.default_rng(0)
    lengths, wanted = 3 + rng.poisson(4, 4000), 4 + rng.poisson(5, 3000)
    weights = length_weights(lengths, wanted)
    assert weights.mean() == pytest.approx(1.0)
    shares = {n: (weights[lengths == n].sum() / len(lengths), np.mean(wanted == n)) for n in range(5, 11)}
    for ours, theirs in shares.values():  # lengths that many users have are a part each
        assert ours == pytest.approx(theirs, abs=0.012)
    assert np.average(lengths, weights=weights) == pytest.approx(wanted.mean(), rel=0.05)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=200), st.lists(st.integers(1, 60), max_size=60))
def test_weights_are_never_negative_and_have_a_mean_of_one(lengths, wanted):
    weights = length_weights(np.array(lengths), np.array(wanted, dtype=int))
    assert weights.shape == (len(lengths),)
    assert (weights >= 0).all()
    assert weights.mean() == pytest.approx(1.0)
    equal = {n: weights[np.array(lengths) == n] for n in set(lengths)}
    assert all(np.ptp(each) == 0 for each in equal.values())


def test_users_count_alike_where_lengths_are_what_is_wanted(split):
    assert np.allclose(Judge(split, [NAME], np.diff(split.histories.indptr)).weights, 1.0)


def test_short_histories_count_less_than_long_ones(split):
    judge, lengths = Judge(split, [NAME]), np.diff(split.histories.indptr)
    is_short = lengths <= np.median(lengths)
    assert judge.weights[is_short].mean() < 1 < judge.weights[~is_short].mean()


# --- what can be told --------------------------------------------------------------------------------------------


def test_groups_add_up_to_the_weighted_mean(split):
    found = evaluate(RDLAE().fit(split.train), split, ["ndcg", "tail_ndcg", "coverage"], [10])
    for name in ("ndcg@10", "tail_ndcg@10"):
        judge = Judge(split, [name])
        known = ~np.isnan(found.values[name])
        mean = np.average(found.values[name][known], weights=judge.weights[known])
        assert judge.means(found)[name] == pytest.approx(mean)
        assert np.mean(judge.groups(found)[name]) == pytest.approx(mean, abs=1e-8)
    assert Judge(split, ["coverage@10", "mrr@10"]).groups(found) == {}


def test_a_gap_is_that_of_a_paired_t_test(split):
    judge = Judge(split, [NAME])
    one, two = (evaluate(RDLAE(l2).fit(split.train), split, ["ndcg"], [10]) for l2 in (5.0, 500.0))
    ours, theirs = judge.groups(one), judge.groups(two)
    found, expected = gap(ours, theirs, NAME), ttest_rel(ours[NAME], theirs[NAME])
    low, high = expected.confidence_interval(0.95)
    assert found.difference == pytest.approx(np.mean(ours[NAME]) - np.mean(theirs[NAME]))
    assert (found.difference - found.margin, found.difference + found.margin) == pytest.approx((low, high))
    assert found.significant == (expected.pvalue < 0.05)


def test_groups_tell_what_users_tell(data):
    """The interval by groups is about as wide as the one by users."""
    split = hold_out_items(data, 0.2, rng=np.random.default_rng(1))
    judge = Judge(split, [NAME], np.diff(split.histories.indptr))  # all users count alike
    one, two = (evaluate(RDLAE(l2).fit(split.train), split, ["ndcg"], [10]) for l2 in (5.0, 500.0))
    by_user = one.compare(two)["ndcg@10"]
    found = gap(judge.groups(one), judge.groups(two), NAME)
    assert found.difference == pytest.approx(by_user.difference)
    assert 2 * found.margin == pytest.approx(by_user.high - by_user.low, rel=0.35)


@pytest.mark.parametrize("groups", [{}, {NAME: (0.1,)}])
def test_nothing_is_told_by_fewer_than_two_groups(groups):
    found = gap(groups, groups, NAME)
    assert not found.significant
    assert not found.better


# --- what is chosen ----------------------------------------------------------------------------------------------


def made(**points):
    """A result with a point per name: its objective, its tail, and how both waver from group to group."""
    wave = np.tile([-1.0, 1.0], 32)
    found = [
        Point(
            {"l2": float(l2), "dropout": 0.0, "xi": 0.0},
            {NAME: mean, f"tail_{NAME}": tail},
            groups={NAME: tuple(mean + spread * wave), f"tail_{NAME}": tuple(tail + spread * wave)},
        )
        for l2, (mean, tail, spread) in enumerate(points.values(), start=1)
    ]
    trials = [Trial({"l2": p.parameters["l2"], "dropout": 0.0}, (p,), 1.0, 1.0) for p in found]
    return trials, dict(zip(points, found, strict=True))


@pytest.mark.parametrize(("choose", "wanted"), [("best", "best"), ("tail", "close")])
def test_tail_takes_the_most_tail_within_a_standard_error_of_the_best(choose, wanted):
    trials, points = made(
        best=(0.30, 0.10, 0.0),
        close=(0.299, 0.15, 0.01),  # 0.001 behind, and its error is 0.00126
        far=(0.2985, 0.20, 0.01),  # 0.0015 behind
        behind=(0.297, 0.18, 0.03),  # within its error, and behind the default
        default=(0.298, 0.12, 0.0),
    )
    result = Tuning(RDLAE(), NAME, trials, choose=choose, untuned=points["default"].parameters)
    assert result.chosen is points[wanted]
    assert result.default is points["default"]
    assert f"{points[wanted][NAME] - 0.298:+.4f} ± " in result.verdict()


def test_the_default_is_chosen_where_nothing_is_better():
    trials, points = made(default=(0.3, 0.1, 0.0), other=(0.2, 0.3, 0.0))
    result = Tuning(RDLAE(), NAME, trials, untuned=points["default"].parameters)
    assert result.chosen is points["default"]
    assert "the default was chosen" in result.to_markdown()


def test_the_default_is_kept_where_nothing_can_be_told_from_it():
    trials, points = made(default=(0.3, 0.1, 0.0), other=(0.301, 0.101, 0.05))
    kept, best = (
        Tuning(RDLAE(), NAME, trials, choose=how, untuned=points["default"].parameters) for how in ("tail", "best")
    )
    assert (kept.chosen, best.chosen) == (points["default"], points["other"])
    assert "the default was kept: the best that was found (l2 2, dropout 0, xi 0) cannot be told" in kept.to_markdown()
    assert "they cannot be told apart" in best.to_markdown()
    assert "| default |" in kept.to_markdown()


@pytest.mark.parametrize(("other", "words"), [((0.301, 0.05, 0.0), "better"), ((0.301, 0.2, 0.05), "cannot be told")])
def test_the_default_goes_where_objective_or_tail_can_be_told_from_it(other, words):
    trials, points = made(default=(0.3, 0.1, 0.0), other=other)
    result = Tuning(RDLAE(), NAME, trials, untuned=points["default"].parameters)
    assert result.chosen is points["other"]
    assert words in result.verdict()


def test_another_way_to_choose_is_refused(split):
    with pytest.raises(ValueError, match="choose must be one of 'best', 'tail', got 'most'"):
        tune(RDLAE(), split, GridSearch({"l2": [5.0]}), objective="ndcg@10", choose="most")


@pytest.mark.parametrize("search", ["auto", GridSearch({"l2": [0.01], "dropout": [0.9]}, {"xi": [1.0]})])
@pytest.mark.parametrize("norms", [False, True])
def test_the_defaults_are_a_candidate_of_every_search(split, search, norms):
    model = (DAN if norms else RDLAE)()
    result = tune(model, split, search, objective="ndcg@10", budget=2)
    l2 = float(f"{suggested_l2(split.train.matrix, model.user_norm):.3g}")
    default = result.default
    names = ("l2", "dropout", "xi", *(("user_norm", "item_norm") if norms else ()))
    assert default.parameters == {name: getattr(model, name) for name in names} | {"l2": l2}
    assert model.fit(split.train).l2_ == pytest.approx(l2, rel=5e-3)
    assert result.chosen["ndcg@10"] >= default["ndcg@10"]
    assert "| default |" in result.to_markdown()


def test_the_models_own_parameters_are_a_candidate_too(split):
    result = tune(ItemKNN(), split, objective="ndcg@10", budget=2)
    assert result.trials[0].parameters == {name: ItemKNN().get_params()[name] for name in result.space}
    assert result.best()["ndcg@10"] >= result.trials[0]["ndcg@10"]
    assert "validation users" in result.grid().notes[1]


@pytest.mark.parametrize("strong", [False, True])
def test_lengths_are_those_of_all_that_is_known_of_the_users(data, strong):
    hold = hold_out_users if strong else hold_out_items
    split = hold(data, 0.2, rng=np.random.default_rng(2))
    lengths = np.diff(data.matrix.indptr)
    assert np.allclose(Judge(split, [NAME]).weights, Judge(split, [NAME], lengths).weights)


def test_tuning_does_not_make_short_histories_worse():
    """A fifth of each user's films is hidden and the rest tuned on: weighted users choose nothing worse for it."""
    lines = real("movietweetings").joinpath("ratings.dat").read_text().splitlines()
    rows = [(user, item, int(rating)) for user, item, rating, _ in (line.split("::") for line in lines)]
    frame = pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")
    films = Interactions.from_frame(frame, rating="rating", min_rating=7, k_core=5).without_seen()
    test = hold_out_items(films, 0.2, rng=np.random.default_rng(101))
    shipped = test.train
    seen = hold_out_items(shipped, 0.1, rng=np.random.default_rng(1001)).train  # as `relae tune --split weak` does
    valid = hold_out_items(seen, 0.1, rng=np.random.default_rng(1002))
    grid = GridSearch({"l2": [100.0, 200.0, 800.0], "dropout": [0.0, 0.7]}, {"xi": [0.0, 0.2, 0.4]})

    def judged(model):
        return evaluate(model.fit(shipped), test, ["ndcg"], [20])

    default = judged(RDLAE())
    differences = {}
    for name, lengths in {"weighted": np.diff(shipped.matrix.indptr), "alike": np.diff(valid.histories.indptr)}.items():
        found = tune(RDLAE(), valid, grid, objective="ndcg@20", metrics=(), lengths=lengths)
        differences[name] = judged(found.model_of(found.best())).compare(default)["ndcg@20"]
    assert differences["alike"].high < 0, "nothing to mend: all users alike choose well"
    assert differences["weighted"].high > 0
    assert differences["weighted"].difference > differences["alike"].difference + 0.002
