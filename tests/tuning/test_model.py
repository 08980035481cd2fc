"""The search over the parameters of any model: it finds the top of a hill, and goes on after a stop."""

import json
from math import isnan

import numpy as np
import polars as pl
import pytest

from relae import EASE, RDLAE, DataError, Interactions
from relae.baselines import GFCF, IALS, LightGCN, Popularity
from relae.evaluation import evaluate, hold_out_items, hold_out_users
from relae.recommender import Range
from relae.tuning import BoxSearch, GridSearch, Journal, Judge, Point, Training, Trial, tune

from .suite import Hill, Learner

NAME = "ndcg@10"


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    chance = np.linspace(0.5, 0.01, 40)
    return Interactions((rng.random((300, 40)) < chance).astype(np.float32))


@pytest.fixture(scope="module")
def split(data):
    return hold_out_users(data, 0.3, rng=np.random.default_rng(0))


@pytest.fixture(scope="module")
def weak(data):
    return hold_out_items(data, rng=np.random.default_rng(0))


# --- where to look next ------------------------------------------------------------------------------------------


def searched(space, start, value, **options):
    """All trials of a search on a surface that is known."""
    search = BoxSearch(start, space, NAME, **options)
    trials = []
    while (setting := search.next(trials)) is not None:
        trials.append(Trial(setting, (Point(setting, {NAME: value(**setting)}),), 1.0, 0.1))
    return trials


BOXES = {
    1: {"x0": Range(0.0, 1.0)},
    2: {"x0": Range(0.0, 1.0), "x1": Range(1e-4, 1.0, log=True)},
    3: {"x0": Range(-2.0, 2.0), "x1": Range(1.0, 100.0, log=True), "x2": Range(8, 512, log=True, whole=True)},
    6: {f"x{i}": Range(0.0, 1.0) for i in range(6)},
}


def parts(space, given):
    """Where parameters lie in the unit cube, by a formula of its own."""
    return np.array(
        [
            np.log(given[name] / r.low) / np.log(r.high / r.low) if r.log else (given[name] - r.low) / (r.high - r.low)
            for name, r in space.items()
        ]
    )


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("top", [0.1, 0.45, 0.8])
def test_the_top_of_a_hill_is_found(dimensions, top):
    space = BOXES[dimensions]
    start = {name: ranged.high for name, ranged in space.items()}

    def hill(**given):
        return 0.4 / (1 + 2 * float(((parts(space, given) - top) ** 2).sum()))

    trials = searched(space, start, hill, budget=6 * dimensions + 4)
    assert max(trial[NAME] for trial in trials) >= 0.985 * 0.4
    by_chance = np.random.default_rng(0).random((len(trials), dimensions))
    assert max(trial[NAME] for trial in trials) >= max(0.4 / (1 + 2 * ((p - top) ** 2).sum()) for p in by_chance)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 6])
@pytest.mark.parametrize("budget", [1, 2, 5, 12])
def test_the_budget_is_kept_nothing_is_tried_twice_and_all_lies_in_the_box(dimensions, budget):
    space = BOXES[dimensions]
    start = {name: ranged.low for name, ranged in space.items()}
    trials = searched(space, start, lambda **given: float(np.sin(sum(given.values()))), budget=budget)
    assert trials[0].parameters == start
    settings = [tuple(trial.parameters.values()) for trial in trials]
    assert len(settings) == len(set(settings)) == budget
    for trial in trials:
        for name, ranged in space.items():
            assert ranged.low <= trial.parameters[name] <= ranged.high
            assert isinstance(trial.parameters[name], int) or not ranged.whole or trial is trials[0]


def test_the_same_trials_lead_to_the_same_next_one_after_a_journal_too():
    def hill(**given):
        return 1 / (1 + sum(value**2 for value in given.values()))

    trials = searched(BOXES[2], {"x0": 0.5, "x1": 0.5}, hill, budget=9)
    read = [Trial.from_json(trial.to_json()) for trial in trials]
    assert read == trials
    search = BoxSearch({"x0": 0.5, "x1": 0.5}, BOXES[2], NAME, 9)
    for count in range(9):
        assert search.next(read[:count]) == trials[count].parameters
    other = BoxSearch({"x0": 0.5, "x1": 0.5}, BOXES[2], NAME, 9, seed=1)
    assert other.next(trials[:1]) != trials[1].parameters


def test_no_trial_repeats_its_neighbour():
    """The best lies in a corner, where it would be tempting to look again and again."""
    trials = searched(BOXES[2], {"x0": 0.5, "x1": 0.5}, lambda x0, x1: 1 - x0 - x1, budget=12)
    places = np.array([parts(BOXES[2], trial.parameters) for trial in trials])
    apart = np.abs(places[:, None] - places[None]).max(axis=2)
    assert apart[~np.eye(len(places), dtype=bool)].min() >= 0.03 - 1e-3


def test_a_small_box_is_done_when_all_of_it_was_tried():
    trials = searched({"n": Range(1, 3, whole=True)}, {"n": 2}, lambda n: float(n), budget=20)
    assert sorted(trial.parameters["n"] for trial in trials) == [1, 2, 3]


def test_parameters_that_come_from_the_data_or_lie_outside_are_a_start_too():
    space = {"l2": Range(1.0, 100.0, log=True)}
    for start in (None, 0.0, 5000.0):
        trials = searched(space, {"l2": start}, lambda l2: 0.0 if l2 is None else 1 / (1 + abs(l2 - 20)), budget=10)
        assert trials[0].parameters == {"l2": start}
        assert len(trials) == 10
        assert max(trial[NAME] for trial in trials) > 0.2


def test_values_that_are_missing_or_equal_are_no_trouble():
    assert len(searched(BOXES[3], dict.fromkeys(BOXES[3], 10), lambda **_: 0.1, budget=8)) == 8
    assert len(searched(BOXES[2], dict.fromkeys(BOXES[2], 0.5), lambda **_: float("nan"), budget=8)) == 8


@pytest.mark.parametrize("budget", [0, -1, 2.5, True])
def test_a_bad_budget(budget):
    with pytest.raises(ValueError, match="budget"):
        BoxSearch({}, BOXES[1], NAME, budget)


# --- the loop ----------------------------------------------------------------------------------------------------


def test_every_trial_is_what_a_fit_of_its_own_scores(split):
    result = tune(Hill(), split, objective=NAME, budget=6, metrics=("ndcg", "coverage"))
    assert result.trials[0].parameters == {"a": 0.9, "b": 3}
    for trial in result.trials:
        if trial.failure is None:
            model = Hill(**trial.parameters).fit(split.train)
            expected = Judge(split, ["ndcg@10"]).means(evaluate(model, split, ("ndcg", "coverage"), [10]))
            [point] = trial.points
            assert point.parameters == trial.parameters
            assert point.metrics == pytest.approx(expected, abs=1e-8)
            assert trial.training is None
    assert result.best().parameters == max(result.trials, key=lambda trial: trial[NAME]).parameters
    assert result.complete


def test_it_beats_the_models_own_parameters_and_leaves_the_model_alone(split):
    model = Hill(c="mine")
    result = tune(model, split, objective=NAME, budget=12)
    assert result.best()[NAME] > result.trials[0][NAME]
    assert (model.a, model.b, "items_" in vars(model)) == (0.9, 3, False)
    best = result.chosen_model()
    assert type(best) is Hill
    assert best.get_params() == {**result.best().parameters, "c": "mine"}


def test_a_real_model_with_its_own_space(split):
    space = {"alpha": Range(0.0, 1.0), "rank": Range(4, 64, log=True, whole=True)}
    result = tune(GFCF(rank=8), split, objective=NAME, budget=6, space=space)
    assert [trial.failure for trial in result.trials] == [None] * 6
    assert max(trial.parameters["rank"] for trial in result.trials) < 40
    assert set(GFCF.SPACE) == {"alpha", "rank"}


def test_what_the_data_do_not_allow_is_written_down_and_never_the_best(split):
    space = {"a": Range(0.9, 1.0)}
    result = tune(Hill(), split, objective=NAME, budget=6, space=space)
    failed = [trial for trial in result.trials if trial.failure]
    assert failed
    assert all("at most 0.95" in trial.failure and trial.parameters["a"] > 0.95 for trial in failed)
    assert result.best().parameters["a"] <= 0.95
    assert "could not be fitted: a must be at most 0.95" in result.to_markdown()
    assert result.to_polars().filter(pl.col(NAME).is_nan()).height == len(failed)
    with pytest.raises(DataError, match=r"at most 0\.95"):
        tune(Hill(a=0.99), split, objective=NAME)


def test_a_grid_of_your_own_serves_any_model(split):
    result = tune(Hill(), split, GridSearch({"a": [0.1, 0.3], "b": [40, 99]}), objective=NAME)
    found = [tuple(trial.parameters.values()) for trial in result.trials]
    assert found == [(0.9, 3), (0.1, 40), (0.3, 40), (0.1, 99), (0.3, 99)]
    assert result.best()[NAME] == max(trial[NAME] for trial in result.trials) > result.trials[0][NAME]


def test_a_linear_model_within_a_search_of_its_family_is_refused(split):
    with pytest.raises(DataError, match=r"tunes all six linear autoencoders, EASE among them: tune RDLAE\(\)"):
        tune(EASE(), split, objective=NAME)
    with pytest.raises(ValueError, match="RDLAE has a space of its own"):
        tune(RDLAE(), split, objective=NAME, space={"l2": Range(1, 2)})


class Steep(Hill):
    """A hill of which no more than the middle of the items can be climbed."""

    def limits(self, data):
        return {"b": data.n_items // 2, "c": 1}


def test_a_search_begins_and_stays_where_the_data_allow(split):
    """40 items: b from 0.02 to 20 in place of 1 to 1000, which is whole numbers up to 20."""
    result = tune(Steep(b=256), split, objective=NAME, budget=12)
    found = [trial.parameters["b"] for trial in result.trials]
    assert found[0] == max(found) == 20
    assert min(found) == 1
    assert result.space == {"a": Range(0.0, 1.0), "b": Range(0.02, 20, log=True, whole=True)}
    assert result.chosen_model().c == "kept"  # what is not searched stays
    assert tune(Hill(b=256), split, objective=NAME, budget=1).best().parameters["b"] == 256


@pytest.mark.parametrize(("most", "ends"), [(1000, (1, 64)), (64, (1, 64)), (32, (0.5, 32)), (0, (1, 64))])
def test_a_range_keeps_its_proportions_where_it_ends_earlier(most, ends):
    assert Range(1, 64, log=True, whole=True).up_to(most) == Range(*ends, log=True, whole=True)


def test_what_does_not_fit_into_memory_is_written_down_too(split):
    space = {"dim": Range(10**8, 10**9, log=True, whole=True)}
    result = tune(IALS(dim=8), split, objective=NAME, budget=3, space=space)
    assert [trial.failure is None for trial in result.trials] == [True, False, False]
    assert all("GB" in trial.failure for trial in result.trials[1:])
    assert result.best().parameters["dim"] == 8


def test_epochs_are_chosen_by_what_the_search_maximizes(weak):
    pytest.importorskip("torch", reason="the extra `neural` is not installed")
    model = LightGCN(dim=4, epochs=2, every=1)
    lengths = np.diff(weak.histories.indptr)  # so that all users count alike
    found = tune(model, weak, objective="recall@5", budget=1, lengths=lengths)
    assert found.chosen_model().objective == "recall@5"
    assert model.objective == "ndcg@20"
    assert found.trials[0].training.curve[-1].value == pytest.approx(found.best()["recall@5"])


def test_a_search_goes_on_where_it_stopped(split, tmp_path):
    whole = tune(Hill(), split, objective=NAME, budget=7)

    class Stopped(Exception):
        pass

    def stop_after_three(_, so_far):
        if len(so_far.trials) == 3:
            raise Stopped

    with Journal(tmp_path / "j", {}) as journal, pytest.raises(Stopped):
        tune(Hill(), split, objective=NAME, budget=7, journal=journal, on_trial=stop_after_three)
    with Journal(tmp_path / "j", {}) as journal:
        assert len(journal.trials) == 3
        again = tune(Hill(), split, objective=NAME, budget=7, journal=journal)
    assert [(t.parameters, t.points) for t in again.trials] == [(t.parameters, t.points) for t in whole.trials]
    with Journal(tmp_path / "j", {}) as journal, pytest.raises(DataError, match="another kind of model"):
        tune(RDLAE(), split, objective=NAME, journal=journal)


def test_a_time_budget_starts_no_trial_that_it_cannot_end(split):
    result = tune(Hill(), split, objective=NAME, time_budget=0.0)
    assert len(result.trials) == 1
    assert not result.complete


def test_progress_never_goes_back_and_ends_at_one(split):
    seen = []
    tune(Hill(), split, objective=NAME, budget=3, progress=lambda stage, part: seen.append((stage, part)))
    overall = [part for stage, part in seen if stage == "search"]
    assert overall == sorted(overall)
    assert overall[-1] == pytest.approx(1.0)


def test_tables(split):
    result = tune(Hill(), split, objective=NAME, budget=3)
    text = result.to_markdown()
    assert "**Hill: parameters by ndcg@10**" in text
    assert "→ best" in text
    assert "<td" in result._repr_html_()
    frame = result.to_polars()
    assert frame.height == 3
    assert {"a", "b", NAME, "fit_seconds"} <= set(frame.columns)


# --- models that learn by epochs ---------------------------------------------------------------------------------


def test_a_training_that_is_cut_leaves_the_search_unfinished(weak, tmp_path):
    with Journal(tmp_path / "j.jsonl", {}) as journal:
        result = tune(Learner(), weak, objective=NAME, budget=1, time_budget=100.0, journal=journal)
        assert result.trial_of(result.best()).training.stopped == "time"
        assert not result.complete
    with Journal(tmp_path / "j.jsonl", {}) as journal:
        assert not tune(Learner(), weak, objective=NAME, budget=1, journal=journal).complete
    assert result.trial_of(result.best()).fit_seconds == 2.5  # of the curve, which counts what was before a break


def test_a_trained_model_stops_by_the_split_and_its_curve_is_kept(weak, tmp_path):
    Learner.given.clear()
    with Journal(tmp_path / "j.jsonl", {}) as journal:
        result = tune(Learner(), weak, objective=NAME, budget=3, journal=journal)
    assert all(given["validation"] is weak and given["time_budget"] is None for given in Learner.given)
    places = [given["checkpoint"] for given in Learner.given]
    assert len(set(places)) == 3
    assert {place.parent for place in places} == {tmp_path}
    assert [path.name for path in tmp_path.iterdir()] == ["j.jsonl"]  # no checkpoint is left
    training = result.trial_of(result.best()).training
    assert (training.best_epoch, training.epochs, training.stopped) == (4, 5, "patience")
    assert [mark.epoch for mark in training.curve] == [1, 2, 3, 4, 5]
    assert isnan(training.curve[0].value)
    assert training.curve[3].value == pytest.approx(0.4)
    record = json.loads((tmp_path / "j.jsonl").read_text().splitlines()[1])["training"]
    assert record["curve"][0][3] is None
    again = Training.from_record(record)
    assert again.record() == record
    assert "best epoch" in result.to_markdown()
    assert result.to_polars()["best_epoch"].to_list() == [4, 4, 4]


def test_a_trained_model_gets_the_time_that_is_left(weak):
    Learner.given.clear()
    result = tune(Learner(), weak, objective=NAME, budget=3, time_budget=60.0)
    left = [given["time_budget"] for given in Learner.given]
    assert left[0] == 60.0
    assert left == sorted(left, reverse=True)
    assert result.trial_of(result.best()).training.stopped == "time"


# --- what can be wrong -------------------------------------------------------------------------------------------


def test_users_whom_a_model_cannot_know(split):
    with pytest.raises(DataError, match=r"Learner knows only the users .* with hold_out_items$"):
        tune(Learner(), split, objective=NAME)


def test_nothing_or_a_stranger_to_search(split):
    with pytest.raises(DataError, match="Popularity has nothing to tune"):
        tune(Popularity(), split, objective=NAME)
    with pytest.raises(ValueError, match="Hill has no parameter d: its parameters are a, b, c"):
        tune(Hill(), split, objective=NAME, space={"d": Range(0, 1)})


@pytest.mark.parametrize("objective", ["ndcg", "@10", "nonsense@10", "ndcg@1000"])
def test_bad_objectives(split, objective):
    with pytest.raises((ValueError, DataError)):
        tune(Hill(), split, objective=objective)
