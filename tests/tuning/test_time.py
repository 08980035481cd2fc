"""A search that is judged by time goes through the parameters of time."""

import numpy as np
import pytest

from relae import Interactions
from relae.evaluation import evaluate, hold_out_users, split_by_time
from relae.models import DAN, RDLAE
from relae.tuning import Journal, searched_names, tune

DAY = 86_400
START = 1_400_000_000


def log_of_fashions(clock=True):
    """Return a log in which what is wanted changes from week to week, whoever asks."""
    rng = np.random.default_rng(2)
    users, items, days = 150, 60, 120
    x, times = np.zeros((users, items)), np.zeros((users, items), np.int64)
    for user in range(users):
        for day in np.sort(rng.integers(0, days, 12)):
            item = (day // 2 + rng.integers(0, 4)) % items
            if not x[user, item]:
                x[user, item], times[user, item] = 1, day * DAY + START if clock else day
    return Interactions(x, times=times[x > 0])


@pytest.fixture(scope="module")
def split():
    return split_by_time(log_of_fashions(), share=0.15)


def test_what_is_wanted_now_is_found(split):
    result = tune(RDLAE(), split, objective="ndcg@10", budget=3)
    assert result.chosen.parameters["freshness"] > 0
    assert result.gap(result.chosen, result.default).better
    model = result.model_of(result.chosen).fit(split.train)
    ours, plain = (evaluate(each, split, ["ndcg"], [10])["ndcg@10"] for each in (model, RDLAE().fit(split.train)))
    assert ours > 1.5 * plain
    names = list(result.parameters)
    assert names[-4:] == ["half_life", "fading", "freshness", "fresh_days"]
    assert set(result.space) == set(names)
    assert "freshness" in result.grid().header


def test_every_later_fit_is_judged_around_the_best_so_far(split):
    seen = []
    tune(DAN(), split, objective="ndcg@10", budget=3, on_trial=lambda trial, _: seen.append(trial))
    first, *others = seen
    assert {point.parameters["fresh_days"] for point in first.points} >= {1.0, 7.0, 60.0}
    best = max(first.points, key=lambda point: point["ndcg@10"]).parameters
    for point in others[0].points:
        assert abs(np.log2(point.parameters["freshness"] / best["freshness"])) < 1.5
    assert len(seen) == 3


def test_a_search_that_is_not_judged_by_time_knows_nothing_of_it(split):
    users = hold_out_users(log_of_fashions(), 0.2, rng=np.random.default_rng(0))
    assert "freshness" in searched_names(RDLAE, split)
    assert searched_names(RDLAE, users) == searched_names(RDLAE) == ["l2", "dropout", "xi"]


def test_places_in_a_list_only_fade():
    split = split_by_time(log_of_fashions(clock=False), share=0.15)
    assert searched_names(RDLAE, split) == ["l2", "dropout", "xi", "fading"]
    result = tune(RDLAE(), split, objective="ndcg@10", budget=2)
    assert result.model_of(result.chosen).get_params()["freshness"] == 0


def test_a_search_goes_on_where_it_stopped(split, tmp_path):
    whole = tune(RDLAE(), split, objective="ndcg@10", budget=4)
    for budget in (2, 4):
        with Journal(tmp_path / "journal.jsonl", {}) as journal:
            parts = tune(RDLAE(), split, objective="ndcg@10", budget=budget, journal=journal)
    assert [trial.parameters for trial in parts.trials] == [trial.parameters for trial in whole.trials]
    assert parts.chosen.parameters == whole.chosen.parameters
