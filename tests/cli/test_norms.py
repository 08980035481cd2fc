"""DAN and DEQL on the command line: searched, fitted, turned, reported and compared."""

import json
import re

import numpy as np
import polars as pl
import pytest

from relae import DAN, DEQL, store
from relae.cli._wording import COMMAND_LINE
from relae.evaluation import evaluate
from relae.experiments import Columns, Division, Run, divide_data, read_point
from relae.experiments import tune as tune_run
from relae.recommender import Range
from relae.tuning import Judge, Tuning, linear_model

from ..report.suite import Page, reported

GIVEN = ("--objective", "ndcg@10", "--share", 0.2)


def result(run):
    return json.loads((run / "result.json").read_text())


@pytest.fixture(scope="module")
def normed(table, tmp_path_factory):
    """The folder of a run over DAN."""
    run = tmp_path_factory.mktemp("normed") / "run"
    columns = {"user": "who", "item": "what", "titles": table.with_name("titles.csv")}
    tune_run(table, "dan", out=run, share=0.2, budget=4, objective="ndcg@10", wording=COMMAND_LINE, **columns)
    return run


@pytest.fixture(scope="module")
def dan(data, tmp_path_factory):
    """A saved DAN, and the same in memory."""
    model = DAN(l2=5.0, dropout=0.2, xi=0.3, user_norm=0.5, item_norm=0.1).fit(data)
    path = tmp_path_factory.mktemp("dan") / "model"
    model.save(path, histories=data)
    return path, model


# --- the search --------------------------------------------------------------------------------------------------


def test_the_chosen_point_is_the_best_of_all_norms(normed, table):
    found = result(normed)
    frame = pl.read_csv(normed / "points.csv")
    assert frame["user_norm"].n_unique() > 1
    assert frame["item_norm"].n_unique() > 1
    assert frame["ndcg@10"].max() == pytest.approx(found["best"]["DAN"]["ndcg@10"])
    assert found["chosen"]["ndcg@10"] >= found["default"]["ndcg@10"]
    kept = found["chosen"] == found["default"]
    assert kept or found["chosen"]["tail_ndcg@10"] >= found["best"]["DAN"]["tail_ndcg@10"]
    point = read_point(found["chosen"], found["space"])
    assert (
        found["model"] == repr(linear_model(point.parameters)) == repr(store.kind(found["kind"])(**found["parameters"]))
    )
    divided = divide_data(table, Columns(user="who", item="what"), Division(share=0.2))
    model = linear_model(point.parameters, "DAN").fit(divided.valid.train)
    means = Judge(divided.valid, ["ndcg@10"], divided.lengths).means(evaluate(model, divided.valid, ["ndcg"], [10]))
    assert means["ndcg@10"] == pytest.approx(point["ndcg@10"], abs=1e-6)


def test_norms_are_another_search_and_the_command_makes_it_again(normed, table, columns, shell):
    lines = (normed / "journal.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["model"] == "DAN"
    assert "differs in model" in shell("tune", table, *columns, *GIVEN, "--out", normed).err
    words = result(normed)["command"].replace("'", "").split()
    assert "--model dan" in " ".join(words)
    text = shell.ok(*words[1:])
    assert (normed / "journal.jsonl").read_text().splitlines() == lines  # every trial was there
    flat = " ".join(text.split())
    plain = sum(json.loads(line)["parameters"]["user_norm"] == 0 for line in lines[1:])
    assert f"models without norms had only {plain} of them" in flat
    assert "l2 dropout ξ β α ndcg@10" in flat


def test_news_say_where_the_dials_stand(table, columns, tmp_path, shell):
    done = shell("tune", table, *columns, *GIVEN, "--model", "dan", "--budget", 2, "--no-test", "--out", tmp_path / "r")
    news = [line for line in done.err.splitlines() if "ndcg@10" in line]
    assert len(news) == 2
    assert all(re.search(r"dropout \S+ +β \S+ +ndcg@10 \S+ at ξ \S+ +α \S+ ", line) for line in news)
    assert "best so far" in news[0]


def test_a_run_says_what_to_fit(normed, data, tmp_path, shell):
    run = Run.read(normed)
    chosen = result(normed)["chosen"]
    assert (run.model.user_norm, run.model.item_norm) == (chosen["user_norm"], chosen["item_norm"])
    shell.ok("fit", "--from", normed, "--model", "dan", "--out", tmp_path / "m")
    wanted = run.models["dan"]
    assert repr(store.load(tmp_path / "m")) == repr(wanted)
    np.testing.assert_allclose(store.load(tmp_path / "m").weights(), wanted.fit(data).weights(), atol=1e-5)
    shell.ok("fit", "--from", normed, "--model", "rdlae", "--out", tmp_path / "n")
    assert store.load(tmp_path / "n").user_norm == 0


def test_a_chosen_point_is_measured_against_the_defaults_of_dan(normed):
    found = result(normed)
    default = read_point(found["default"], found["space"]).parameters
    assert {name: default[name] for name in ("dropout", "xi", "user_norm")} == {
        name: DAN().get_params()[name] for name in ("dropout", "xi", "user_norm")
    }
    roles = [entry["role"] for entry in found["test"]]
    same = found["chosen"] == found["default"]
    assert roles == ["chosen", *([] if same else ["the defaults"]), "popularity"]


# --- the report --------------------------------------------------------------------------------------------------


@pytest.fixture
def forced(normed, table, tmp_path, monkeypatch):
    """The same run, whose chosen point has norms whatever was best."""
    find = Tuning.best

    def best(tuning, model=None):
        points = [p for p in tuning.points if p.parameters["user_norm"] > 0 and p.parameters["item_norm"] > 0]
        return max(points, key=lambda point: point["ndcg@10"]) if model in (None, "DAN") else find(tuning, model)

    monkeypatch.setattr(Tuning, "best", best)
    monkeypatch.setattr(Tuning, "chosen", property(best))
    (tmp_path / "journal.jsonl").write_text((normed / "journal.jsonl").read_text())
    columns = {"user": "who", "item": "what", "titles": table.with_name("titles.csv")}
    return tune_run(table, "dan", out=tmp_path, share=0.2, budget=4, objective="ndcg@10", test=False, **columns).path


def test_the_report_shows_norms_and_holds_them_fixed(forced):
    page = Page(reported(forced))
    chosen = result(forced)["chosen"]
    assert not page.crossed
    assert f"β {chosen['user_norm']:g}, α {chosen['item_norm']:g} held fixed" in page.text
    trials = [json.loads(line) for line in (forced / "journal.jsonl").read_text().splitlines()[1:]]
    [trial] = [t for t in trials if all(chosen[name] == value for name, value in t["parameters"].items())]
    values = [point for point in trial["points"] if point["parameters"]["item_norm"] == chosen["item_norm"]]
    assert f"held fixed: {len(values)} values of ξ from one inversion" in page.text
    rows = page.tables["The best of each model, by the validation users"]
    assert rows[0][:6] == ["model", "l2", "dropout", "ξ", "β", "α"]
    [best] = [row for row in rows if row[0] == "DAN"]
    assert [float(v) for v in best[4:6]] == [chosen["user_norm"], chosen["item_norm"]]
    assert "DAN − the defaults" in page.tables["The first 10 places of each list"][0]
    assert "of DAN in" in page.text
    assert "all six" not in page.text


def test_a_report_without_norms_has_no_word_of_them(tuned):
    text = Page(reported(tuned)).text
    assert "all six models" in text
    assert not re.search(r"β|α|norm", text)


# --- dials -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dials", [{"item_norm": 0.4}, {"propensity": 0.5}, {"xi": 0.9, "item_norm": 0.2}])
def test_dials_of_a_saved_model(dials, dan, saved, model, data, shell):
    given = [part for name, value in dials.items() for part in (f"--{name.replace('_', '-')}", value)]
    for path, own in (dan, (saved, model)):  # also one that was fitted without norms
        turned = own.with_dials(**dials)
        answer = json.loads(shell.ok("recommend", path, "--history", "1000,1005", "--k", 5, *given, "--json"))
        ids, scores = turned.recommend([1000, 1005], 5)
        assert [entry["item"] for entry in answer["items"]] == list(ids)
        assert [entry["score"] for entry in answer["items"]] == pytest.approx(scores.tolist(), rel=1e-4)
        assert {name: answer[name] for name in turned._dial()._asdict()} == turned._dial()._asdict()
        why = json.loads(shell.ok("explain", path, "--history", "1000,1005", "--item", 1009, *given, "--json"))
        assert why["score"] == pytest.approx(turned.explain([1000, 1005], 1009).score, rel=1e-5)
        weights = pl.read_csv(shell.ok("export", path, "--top", 48, *given).encode())
        dense = turned.weights()
        found = dense[weights["item"].to_numpy() - 1000, weights["other"].to_numpy() - 1000]
        np.testing.assert_allclose(weights["weight"], found, rtol=1e-5, atol=1e-7)
        assert weights.height == 48 * 47


def test_the_dials_are_shown(dan, popular, shell):
    path, _ = dan
    head = shell.ok("recommend", path, "--history", "1000", "--propensity", 0.25).splitlines()[0]
    assert head.endswith("(by 1 item, ξ = 0.3, α = 0.1, γ = 0.25)")
    assert "ξ = 0.3, α = 0" not in shell.ok("recommend", path, "--history", "1000", "--item-norm", 0)
    text = shell.ok("inspect", path)
    assert "users β 0.5, items α 0.1" in text
    answer = json.loads(shell.ok("recommend", popular, "--history", "1000", "--json"))
    assert [answer[name] for name in ("xi", "item_norm", "propensity")] == [None] * 3


# --- a fit without a run -----------------------------------------------------------------------------------------


def test_parameters_of_dan_and_deql(table, columns, data, tmp_path, shell):
    given = ("--model", "dan", "--l2", 5, "--user-norm", 0.6, "--set", "propensity=0.2")
    text = shell.ok("fit", table, *columns, *given, "--out", tmp_path / "m")
    assert "users β 0.6, propensity γ 0.2" in text
    assert repr(store.load(tmp_path / "m")) == repr(DAN(l2=5.0, user_norm=0.6, propensity=0.2))
    shell.ok("fit", table, *columns, "--model", "deql", "--l2", 5, "--set", "kept=0.4", "--out", tmp_path / "n")
    wanted = DEQL(l2=5.0, kept=0.4).fit(data)
    np.testing.assert_allclose(store.load(tmp_path / "n").weights(), wanted.weights(), atol=1e-6)


def test_deql_is_searched_by_its_space(table, columns, tmp_path, shell, monkeypatch):
    space = {"l2": Range(1, 1000, log=True), "dropout": Range(0.05, 0.9), "kept": Range(0, 1)}
    monkeypatch.setattr(DEQL, "SPACE", space, raising=False)
    shell.ok("tune", table, *columns, *GIVEN, "--model", "deql", "--budget", 3, "--out", tmp_path / "run")
    found = result(tmp_path / "run")
    assert (found["kind"], list(found["space"])) == ("deql", ["l2", "dropout", "kept"])
    shell.ok("fit", "--from", tmp_path / "run", "--out", tmp_path / "m")
    assert repr(store.load(tmp_path / "m")) == found["model"]
    page = Page(reported(tmp_path / "run"))
    assert "DEQL" in page.text
    assert "What ξ does" not in page.text
    assert "because of" in page.text  # it is linear, and has reasons
