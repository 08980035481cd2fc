"""Items by their latest interactions, beside a loop over all of them."""

import numpy as np
import pytest

import relae
from relae import DataError, Interactions
from relae.baselines import Popularity, Trending
from relae.evaluation import split_by_time
from relae.tuning import tune

from ..oracles import csr, example, new_histories

USERS, ITEMS = 60, 17
X = example(USERS, ITEMS, weighted=True)
NEW = csr(new_histories(7, ITEMS, weighted=True))
DAYS = np.random.default_rng(3).integers(0, 90, np.count_nonzero(X))
CLOCKS = {"seconds": 86_400, "milliseconds": 86_400_000, "microseconds": 86_400_000_000, "days": 1}


def make_data(clock="seconds", days=DAYS):
    start = 0 if clock == "days" else 19_000
    return Interactions(csr(X), items=[f"i{column}" for column in range(ITEMS)], times=(start + days) * CLOCKS[clock])


def brute_force(data, days, window):
    """The definition, interaction by interaction."""
    recent, total = [0] * data.n_items, [0] * data.n_items
    for column, day in zip(data.matrix.indices.tolist(), days.tolist(), strict=True):
        recent[column] += max(days) - day < window
        total[column] += 1
    return [r + t / (1 + max(total)) for r, t in zip(recent, total, strict=True)]


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("window", [0.5, 1, 7, 14.0, 89, 90, 1e6])
def test_scores_count_the_last_days_whatever_the_unit_of_times(clock, window):
    data = make_data(clock)
    model = Trending(window).fit(data)
    expected = brute_force(data, DAYS, window)
    assert np.array_equal(model.score(NEW), np.tile(expected, (7, 1)))
    order = sorted(range(ITEMS), key=lambda column: (-expected[column], column))
    for row, listed in enumerate(model.recommend(NEW, ITEMS)[0]):
        seen = set(NEW[[row]].indices.tolist())
        if not seen:
            continue  # a user without a history gets the items with the most users, from every model
        unseen = [column for column in order if column not in seen]
        assert listed.tolist() == (unseen + [-1] * len(seen))[:ITEMS]


def test_all_of_the_time_is_popularity_and_items_without_a_recent_user_are_in_its_order():
    data = make_data()
    assert np.array_equal(Trending(1e6).fit(data).recommend(NEW, 9)[0], Popularity().fit(data).recommend(NEW, 9)[0])
    days = np.where(data.matrix.indices < 3, DAYS, 0)  # only three items have a user lately
    model = Trending(1).fit(make_data(days=np.append(days[:-1], 89) if days.max() < 89 else days))
    old = [column for column in range(ITEMS) if model.recent_counts_[column] == 0]
    history = csr(np.eye(1, ITEMS))
    listed = [column for column in model.recommend(history, ITEMS)[0][0].tolist() if column in old]
    assert listed == sorted(set(old) - {0}, key=lambda column: (-model.item_counts_[column], column))


def test_it_needs_times():
    for data in (csr(X), Interactions(csr(X))):
        with pytest.raises(DataError, match=r"have no times: name their column, as in Interactions.read\(…, timestamp"):
            Trending().fit(data)


@pytest.mark.parametrize("window", [0, -1, np.nan, np.inf, "14", None])
def test_windows_that_are_none(window):
    with pytest.raises(ValueError, match="window"):
        Trending(window).fit(make_data())


def test_a_folder_keeps_the_counts(tmp_path):
    model = Trending(3).fit(make_data())
    model.save(tmp_path / "model")
    loaded = relae.load(tmp_path / "model")
    assert type(loaded) is Trending
    assert loaded.window == 3
    assert np.array_equal(loaded.recent_counts_, model.recent_counts_)
    assert np.array_equal(loaded.score(NEW), model.score(NEW))
    state = model.state("fitted")
    for wrong in (np.full(ITEMS, -1), model.item_counts_ + 1):
        with pytest.raises(ValueError, match="recent_counts"):
            Trending().restore(state.facts, {**state.arrays, "recent_counts": wrong})


def test_a_search_finds_the_window_in_which_fashions_last():
    """Everybody takes a film of the week: what counts is the last one or two weeks."""
    rng = np.random.default_rng(0)
    x, days = np.zeros((400, 60)), np.zeros((400, 60), np.int64)
    for user in range(400):
        for week in rng.choice(30, 6, replace=False):
            item = 2 * week + rng.integers(0, 2)
            x[user, item], days[user, item] = 1, 7 * week + rng.integers(0, 10)
    data = Interactions(x, times=(19_000 + days[x > 0]) * 86_400)
    search = tune("trending", split_by_time(data, share=0.2), objective="ndcg@5", budget=8)
    assert 1 <= search.chosen_model().window < 30
    year = tune(Trending(365), split_by_time(data, share=0.2), objective="ndcg@5", budget=1)
    assert search.chosen["ndcg@5"] > 1.5 * year.chosen["ndcg@5"]
