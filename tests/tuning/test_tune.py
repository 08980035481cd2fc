"""Tuning beside refitting every configuration, its journal, and what it says in the end."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import polars as pl
import pytest

from relae import RDLAE, DataError, Interactions
from relae.evaluation import evaluate, hold_out_items, hold_out_users
from relae.models import DAN, suggested_l2
from relae.tuning import Constraint, GridSearch, Journal, Judge, Trial, Tuning, linear_model, tune
from relae.tuning import _family as family
from relae.tuning import _tune as loop

from ..cli.suite import COMMAND

METRICS = ("ndcg", "tail_ndcg", "coverage")


@pytest.fixture(scope="module")
def split():
    rng = np.random.default_rng(3)
    taste = rng.random((6, 80)) ** 5
    rows = np.array([rng.random(80) < 3 * taste[u % 6] / taste[u % 6].sum() * 4 for u in range(400)])
    return hold_out_users(Interactions(rows[rows.sum(axis=1) > 2].astype(np.float32)), 0.25, rng=rng)


# and the defaults, with ξ of 0.4 as well
SMALL = GridSearch({"l2": [5.0, 50.0], "dropout": [0.0, 0.4]}, {"xi": [0.0, 0.3, 1.0]})


def test_every_point_is_what_a_fit_of_its_own_scores(split):
    result = tune(RDLAE(), split, SMALL, objective="ndcg@10", metrics=METRICS)
    assert len(result.points) == 4 + 12
    weights = Judge(split, ["ndcg@10"]).weights
    for point in result.points:
        model = RDLAE(**point.parameters).fit(split.train)
        found = evaluate(model, split, METRICS, [10])
        expected = dict(found.overall)
        for name, values in found.values.items():
            known = ~np.isnan(values)
            expected[name] = np.average(values[known], weights=weights[known])
        assert point.metrics == pytest.approx(expected, abs=2e-6)


def test_one_inverse_per_l2_and_dropout(split, monkeypatch):
    fits = []
    fit = RDLAE.fit
    monkeypatch.setattr(RDLAE, "fit", lambda self, *a, **b: fits.append((self.l2, self.dropout)) or fit(self, *a, **b))
    tune(RDLAE(), split, SMALL, objective="ndcg@10")
    rule = float(f"{suggested_l2(split.train.matrix):.3g}")
    assert fits == [(rule, 0.3), (5.0, 0.0), (50.0, 0.0), (5.0, 0.4), (50.0, 0.4)]


def test_the_best_of_each_model_is_the_best_of_its_points(split):
    result = tune(RDLAE(), split, SMALL, objective="ndcg@10")
    for name, wanted in {
        "LAE": lambda dropout, xi: dropout == 0 and xi == 1,
        "EASE": lambda dropout, xi: dropout == 0 and xi == 0,
        "RLAE": lambda dropout, xi: dropout == 0,
        "DLAE": lambda dropout, xi: xi == 1,
        "EDLAE": lambda dropout, xi: xi == 0,
        "RDLAE": lambda dropout, xi: True,
    }.items():
        assert result.best(name)["ndcg@10"] == max(
            p["ndcg@10"] for p in result.points if wanted(p.parameters["dropout"], p.parameters["xi"])
        )
        model = result.model_of(result.best(name), name)
        assert type(model).__name__ == name
        assert model.fit(split.train).dropout == result.best(name).parameters["dropout"]
    assert result.best() is result.best("RDLAE")


def test_norms_are_searched_together_with_xi(split, tmp_path):
    with Journal(tmp_path / "journal.jsonl", {}) as journal:
        result = tune(DAN(), split, objective="ndcg@10", budget=6, journal=journal)
    assert len(result.trials) == 6
    assert len({trial.parameters["user_norm"] for trial in result.trials}) >= 3
    assert {point.parameters["item_norm"] for point in result.points} >= {-0.1, 0.0, 0.1, 0.4}
    best = result.best()
    assert best is result.bests["DAN"]
    assert best["ndcg@10"] == max(point["ndcg@10"] for point in result.points)
    found = evaluate(result.model_of(best, "DAN").fit(split.train), split, ["ndcg"], [10])
    assert Judge(split, ["ndcg@10"]).means(found)["ndcg@10"] == pytest.approx(best["ndcg@10"], abs=1e-6)
    for name, point in result.bests.items():
        assert name == "DAN" or not (point.parameters["user_norm"] or point.parameters["item_norm"])
    assert {"user_norm", "item_norm"} <= set(result.records()[0])
    assert "β" in result.to_markdown()
    with Journal(tmp_path / "journal.jsonl", {}) as journal:
        assert journal.of(["l2", "dropout", "user_norm"]) == list(result.trials)


def test_a_grid_with_norms_scales_l2_as_the_gram_shrinks(split):
    matrix = split.train.matrix
    plain, normed = (family.plan("grid", model, split, "ndcg@10", None, None) for model in (RDLAE(), DAN()))
    assert (plain.size, normed.size) == (110, 1210)
    x = matrix.toarray().astype(np.float64)
    auto = family.plan("auto", DAN(), split, "ndcg@10", None, None)
    settings, trials = [], []
    while (setting := normed.next(trials)) is not None:
        settings.append(tuple(setting.values()))
        trials.append(Trial(setting, (), 0.0, 0.0))
    assert len(set(settings)) == 1210
    for norm in sorted({norm for *_, norm in settings}):
        sizes = x.sum(axis=1, keepdims=True)
        shrinking = (x**2 * sizes**-norm).sum() / (x**2).sum()  # of the trace of the Gram
        l2s = sorted({l2 for l2, _, other in settings if other == norm})
        assert l2s == pytest.approx([l2 * shrinking for l2 in plain.fit_values["l2"]], rel=0.01)
        assert auto.space.setting((1.0, 0.5, norm))["l2"] == pytest.approx(l2s[5], rel=0.01)


def test_auto_beats_the_rule_of_thumb(split):
    result = tune("rdlae", split, objective="ndcg@10", budget=6)
    rule = evaluate(RDLAE(dropout=0.0, xi=0.0).fit(split.train), split, ["ndcg"], [10])["ndcg@10"]
    assert len(result.trials) == 6
    assert result.best()["ndcg@10"] >= rule
    assert result.complete


def test_items_may_be_held_out_too(split):
    weak = hold_out_items(split.everything(), rng=np.random.default_rng(0))
    assert tune(RDLAE(), weak, SMALL, objective="recall@5").best()["recall@5"] > 0


def test_a_constraint_keeps_what_it_should(split):
    free = tune(RDLAE(), split, SMALL, objective="ndcg@10")
    kept = tune(RDLAE(), split, SMALL, objective="tail_ndcg@10", constraint=Constraint("ndcg@10", 0.1))
    best = kept.best()
    assert best["ndcg@10"] >= 0.9 * free.best()["ndcg@10"]
    allowed = [p for p in kept.points if p["ndcg@10"] >= 0.9 * free.best()["ndcg@10"]]
    assert best["tail_ndcg@10"] == max(p["tail_ndcg@10"] for p in allowed)


@pytest.mark.parametrize(("objective", "tail"), [("map@10", "tail_map@10"), ("coverage@10", "tail_ndcg@10")])
def test_every_objective_has_a_tail_to_trade_with(split, objective, tail):
    result = tune(RDLAE(), split, SMALL, objective=objective)
    assert result.axes() == (objective, tail)
    assert result.chosen[tail] >= 0


def test_the_front_is_what_nothing_beats_in_both(split):
    result = tune(RDLAE(), split, SMALL, objective="ndcg@10")
    front = result.pareto()
    pairs = [(p["ndcg@10"], p["tail_ndcg@10"]) for p in result.points]
    beaten = {pair for pair in pairs if any(o[0] >= pair[0] and o[1] >= pair[1] and o != pair for o in pairs)}
    assert {(p["ndcg@10"], p["tail_ndcg@10"]) for p in front} == set(pairs) - beaten
    assert [p["ndcg@10"] for p in front] == sorted((p["ndcg@10"] for p in front), reverse=True)


def test_tables(split):
    result = tune(RDLAE(), split, SMALL, objective="ndcg@10")
    assert "| RDLAE |" in result.to_markdown()
    assert "<td" in result._repr_html_()
    frame = result.to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame.height == 16
    assert {"l2", "dropout", "xi", "ndcg@10", "tail_ndcg@10"} <= set(frame.columns)


# --- the journal -------------------------------------------------------------------------------------------------


def test_a_search_goes_on_where_it_stopped(split, tmp_path, monkeypatch):
    whole = tune(RDLAE(), split, SMALL, objective="ndcg@10")
    made = []
    trial = loop._Trials.make
    monkeypatch.setattr(
        loop._Trials, "make", lambda self, setting, *rest: made.append(str(setting)) or trial(self, setting, *rest)
    )

    class Stopped(Exception):
        pass

    def stop_after_two(_, so_far):
        if len(so_far.trials) == 2:
            raise Stopped

    with Journal(tmp_path / "j", {"a": 1}) as journal, pytest.raises(Stopped):
        tune(RDLAE(), split, SMALL, objective="ndcg@10", journal=journal, on_trial=stop_after_two)
    with Journal(tmp_path / "j", {"a": 1}) as journal:
        assert len(journal.trials) == 2
        again = tune(RDLAE(), split, SMALL, objective="ndcg@10", journal=journal)
    assert len(made) == len(set(made)) == 5
    assert again.points == whole.points


@pytest.mark.parametrize("cut", [1, 10, 200])
def test_a_line_that_was_cut_off_is_forgotten(split, tmp_path, cut):
    path = tmp_path / "j"
    with Journal(path, {}) as journal:
        whole = tune(RDLAE(), split, SMALL, objective="ndcg@10", journal=journal)
    content = path.read_bytes()
    path.write_bytes(content[:-cut])
    with Journal(path, {}) as journal:
        assert len(journal.trials) == 4
        again = tune(RDLAE(), split, SMALL, objective="ndcg@10", journal=journal)
    assert again.points == whole.points
    assert len(path.read_text().splitlines()) == 6


def test_the_journal_of_another_search_is_refused_and_kept(tmp_path):
    with Journal(tmp_path / "j", {"data": "one"}):
        pass
    before = (tmp_path / "j").read_bytes()
    with pytest.raises(DataError, match="differs in data"):
        Journal(tmp_path / "j", {"data": "other"})
    (tmp_path / "k").write_text("my notes\nand more\n")
    with pytest.raises(DataError, match="no journal"):
        Journal(tmp_path / "k", {})
    assert (tmp_path / "j").read_bytes() == before
    assert (tmp_path / "k").read_text() == "my notes\nand more\n"


def test_a_time_budget_starts_no_trial_that_it_cannot_end(split):
    result = tune(RDLAE(), split, SMALL, objective="ndcg@10", time_budget=0.0)
    assert len(result.trials) == 1
    assert not result.complete


def test_progress_never_goes_back_and_ends_at_one(split):
    seen = []
    tune(RDLAE(), split, SMALL, objective="ndcg@10", progress=lambda stage, fraction: seen.append((stage, fraction)))
    overall = [fraction for stage, fraction in seen if stage == "search"]
    assert overall == sorted(overall)
    assert overall[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("objective", ["ndcg", "ndcg@", "@10", "ndcg@ten", "nonsense@10", "ndcg@1000"])
def test_bad_objectives(split, objective):
    with pytest.raises((ValueError, DataError)):
        tune(RDLAE(), split, SMALL, objective=objective)


def test_bad_searches_models_and_axes(split):
    with pytest.raises(ValueError, match="'auto', 'grid'"):
        tune(RDLAE(), split, "random", objective="ndcg@10")
    result = tune(RDLAE(), split, SMALL, objective="ndcg@10")
    with pytest.raises(ValueError, match="there is no model 'SLIM'"):
        result.best("SLIM")
    with pytest.raises(ValueError, match="was not evaluated"):
        result.pareto(tail="tail_map@10")
    with pytest.raises(ValueError, match="is no EASE"):
        linear_model({"l2": 1.0, "dropout": 0.5, "xi": 0.3}, "EASE")
    with pytest.raises(ValueError, match="loss"):
        Constraint("ndcg@10", 1.5)
    assert isinstance(result, Tuning)


# --- by the command line -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(tmp_path_factory, split):
    data = split.everything()
    users, items = data.matrix.nonzero()
    path = tmp_path_factory.mktemp("data") / "log.csv"
    pl.DataFrame({"who": users, "what": [f"item {i}" for i in items]}).write_csv(path)
    return path


def test_the_command_shows_tests_and_saves(table, tmp_path, shell):
    given = ("--user", "who", "--item", "what", "--objective", "ndcg@10", "--budget", 3, "--share", 0.2)
    shown = shell.ok("tune", table, "--out", tmp_path / "run", *given)
    for part in ("Best ndcg@10 of each model", "The trade-off", "Test users", "chosen − popularity"):
        assert part in shown
    saved = json.loads((tmp_path / "run/result.json").read_text())
    assert saved["trials"] == 3
    assert saved["test"][0]["role"] == "chosen"
    assert pl.read_csv(tmp_path / "run/points.csv").height == sum(
        len(json.loads(line)["points"]) for line in (tmp_path / "run/journal.jsonl").read_text().splitlines()[1:]
    )
    again = shell("tune", table, "--out", tmp_path / "run", *given)
    assert "3 trials are done" in " ".join(again.err.split())  # lines break where the path is long
    assert json.loads((tmp_path / "run/result.json").read_text())["chosen"] == saved["chosen"]
    other = shell("tune", table, "--out", tmp_path / "run", *given, "--seed", 1)
    assert other.code == 2
    assert "another search, which differs in data" in other.err


def test_two_kills_change_nothing(table, tmp_path, shell):
    given = ("--user", "who", "--item", "what", "--objective", "ndcg@10", "--budget", 8, "--no-test")
    shell.ok("tune", table, "--out", tmp_path / "whole", *given)
    journal = tmp_path / "killed/journal.jsonl"
    for lines in (2, 5):
        process = subprocess.Popen(
            [*COMMAND, "tune", *map(str, (table, "--out", tmp_path / "killed", *given))],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") > lines):
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    shell.ok("tune", table, "--out", tmp_path / "killed", *given)
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in ("whole", "killed")]
    assert results[0]["chosen"] == results[1]["chosen"]
    assert results[0]["front"] == results[1]["front"]
    trials = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    assert len({tuple(trial["parameters"].values()) for trial in trials}) == len(trials) == 8


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.csv",), "neither a file nor a folder nor a benchmark"),
        (("online-retail", "--split", "paper"), "no strong split"),
        (("online-retail", "--split", "sideways"), "the splits are"),
        (("online-retail", "--split", "time"), "timestamp"),
        (("online-retail", "--objective", "beauty@10"), "beauty"),
        (("online-retail", "--keep", "ndcg@100", "--loss", 2), "loss"),
    ],
)
def test_bad_requests_are_one_line(arguments, said, tmp_path, shell):
    assert said in shell("tune", *arguments, "--out", tmp_path / "run", "--no-test").line()
