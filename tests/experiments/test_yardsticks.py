"""Popularity and, where there are times, trending stand in every table, with a window chosen on validation."""

import json

import numpy as np
import polars as pl
import pytest

import relae
from relae.baselines import Popularity, Trending
from relae.evaluation import evaluate
from relae.experiments import Columns, Division, divide_data, list_models, make_yardsticks
from relae.tuning import tune

from ..oracles import example

OPTIONS = {"split": "time", "share": 0.2, "budget": 2}
WORDS = ("--user", "who", "--item", "what", "--split", "time", "--share", 0.2)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Visits whose items come into fashion one after the other."""
    rng = np.random.default_rng(1)
    rows = np.argwhere(example(90, 24, weighted=False))
    days = 19_000 + 6 * rows[:, 1] + rng.integers(0, 20, len(rows))
    path = tmp_path_factory.mktemp("table") / "visits.csv"
    frame = {"who": [f"u{user}" for user in rows[:, 0]], "what": rows[:, 1] + 100, "at": days * 86_400}
    pl.DataFrame(frame).write_csv(path)
    return path


@pytest.fixture(scope="module")
def divided(table):
    return divide_data(table, Columns(user="who", item="what", timestamp="at"), Division("time", 0.2))


@pytest.fixture(scope="module")
def tuned(table, tmp_path_factory):
    out = tmp_path_factory.mktemp("tuned") / "run"
    return relae.tune(table, user="who", item="what", timestamp="at", objective="ndcg@5", out=out, **OPTIONS)


def test_the_window_is_chosen_on_validation_and_the_table_has_its_figures(tuned, divided):
    window = tune(Trending(), divided.valid, objective="ndcg@5", budget=8, metrics=()).chosen_model().window
    result = {each.role: each for each in tuned.results}["trending"]
    assert result.model == repr(Trending(window))
    expected = evaluate(Trending(window).fit(divided.test.train), divided.test, ["ndcg"], [5])
    assert result.estimate("ndcg", 5).mean == pytest.approx(expected["ndcg@5"])
    assert result.difference("ndcg", 5) is not None
    assert [each.role for each in tuned.results][-2:] == ["popularity", "trending"]


def test_the_choice_knows_nothing_of_the_test(divided):
    own, other = (dict(make_yardsticks(divided.valid, test, "ndcg@5")) for test in (divided.test, divided.valid))
    assert repr(own) == repr(other)
    assert type(own["popularity"]) is Popularity


def test_the_report_shows_both(tuned):
    page = tuned.report().read_text()
    assert "against popularity" in page
    assert "against trending" in page
    assert page.count(">trending</span>") == page.count(">popularity</span>") > 0


def test_a_comparison_has_both(table):
    run = relae.compare(table, ["ease"], user="who", item="what", timestamp="at", k=5, **OPTIONS)
    assert set(run.models) == {"ease", "popularity", "trending"}
    assert next(row for row in run.table.rows if row.name == "trending").chosen == ["window"]
    assert list_models(["ease"]) == ["ease", "popularity"]


def test_an_evaluation_has_both(table, divided, shell):
    done = shell("evaluate", table, *WORDS, "--timestamp", "at", "--model", "ease", "--k", 5, "--json")
    assert done.code == 0, done.err
    rows = {row["model"]: row["mean"] for row in json.loads(done.out) if row["metric"] == "ndcg"}
    [_, (_, trending)] = make_yardsticks(divided.valid, divided.test, "ndcg@5")
    assert list(rows) == ["EASE()", "Popularity()", repr(trending)]
    expected = evaluate(trending.fit(divided.test.train), divided.test, ["ndcg"], [5])
    assert rows[repr(trending)] == pytest.approx(expected["ndcg@5"])
    done = shell("evaluate", table, *WORDS, "--timestamp", "at", "--model", "trending", "--k", 5, "--json")
    assert [row["model"] for row in json.loads(done.out) if row["metric"] == "ndcg"] == [
        "Trending()",
        "Popularity()",
    ]


def test_without_times_there_is_no_trending(table, shell):
    keywords = {"user": "who", "item": "what", "share": 0.2, "budget": 2}
    run = relae.tune(table, objective="ndcg@5", **keywords)
    assert [each.role for each in run.results][-1] == "popularity"
    assert set(relae.compare(table, ["ease"], k=5, **keywords).models) == {"ease", "popularity"}
    run = relae.compare(table, ["ease", "trending"], k=5, **keywords)
    assert set(run.models) == {"ease", "popularity"}
    [absent] = run.table.absences()
    assert absent.startswith("left out: Trending: Trending counts the interactions of the last days, and these have no")
    done = shell("fit", table, "--user", "who", "--item", "what", "--model", "trending", "--out", "nowhere")
    assert done.code == 2
    assert "name their column, as in --timestamp ts" in " ".join(done.err.split())


def test_tune_and_fit_trending_from_the_command_line(table, tmp_path, shell):
    given = ("--timestamp", "at", "--model", "trending", "--budget", 3, "--objective", "ndcg@5")
    done = shell("tune", table, *WORDS, *given, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    run = relae.Run.read(tmp_path / "run")
    assert type(run.model) is Trending
    assert [each.role for each in run.results if each.role == "trending"] == []  # it is the chosen one itself
    done = shell("fit", "--from", tmp_path / "run", "--out", tmp_path / "model")
    assert done.code == 0, done.err
    assert relae.load(tmp_path / "model").window == run.model.window
    given = ("--user", "who", "--item", "what", "--timestamp", "at", "--model", "trending", "--window", 3.5)
    assert shell("fit", table, *given, "--out", tmp_path / "other").code == 0
    assert relae.load(tmp_path / "other").window == 3.5
