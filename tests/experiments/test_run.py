"""A run in Python is the run of the command line: the same folder, the same choice, the same model and report."""

import json

import numpy as np
import polars as pl
import pytest

import relae
from relae import Interactions
from relae.errors import DataError

from ..oracles import example

OPTIONS = {"share": 0.2, "objective": "ndcg@5", "budget": 2}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "visits.csv"
    rows = np.argwhere(example(90, 24, weighted=False))
    pl.DataFrame({"who": [f"u{user}" for user in rows[:, 0]], "what": rows[:, 1] + 100}).write_csv(path)
    return path


@pytest.fixture(scope="module")
def tuned(table, tmp_path_factory):
    return relae.tune(table, user="who", item="what", out=tmp_path_factory.mktemp("tuned") / "run", **OPTIONS)


def figures(record):
    """All of a record that does not depend on the clock, the folder or the language."""
    left_out = ("command", "seconds", "source")
    return json.loads(
        json.dumps(record), object_hook=lambda each: {key: each[key] for key in each if key not in left_out}
    )


def test_tune_is_the_command(tuned, table, tmp_path, shell):
    options = ("--share", 0.2, "--objective", "ndcg@5", "--budget", 2, "--out", tmp_path / "run")
    done = shell("tune", table, "--user", "who", "--item", "what", *options)
    assert done.code == 0, done.err
    theirs = json.loads((tmp_path / "run/result.json").read_text())
    assert figures(theirs) == figures(tuned.record) == figures(json.loads((tuned.path / "result.json").read_text()))
    assert theirs["command"].startswith(f"relae tune {table} --share 0.2 --budget 2 --objective ndcg@5 --user who")
    assert tuned.command.startswith(f"relae.tune('{table}', share=0.2, budget=2, objective='ndcg@5', user='who'")
    for name in ("points.csv", "result.md"):
        assert (tmp_path / "run" / name).exists()
        assert (tuned.path / name).exists()


def test_a_folder_is_read_back(tuned):
    run = relae.Run.read(tuned.path)
    assert repr(run.model) == repr(tuned.model)
    assert list(run.models) == list(tuned.models)
    assert (run.division, run.columns, run.objective) == (tuned.division, tuned.columns, "ndcg@5")
    assert repr(run.results) == repr(tuned.results)
    assert next(iter(run.results)).role == "chosen"
    assert run.tuning.chosen == tuned.tuning.chosen
    assert [trial.parameters for trial in run.tuning.trials] == [trial.parameters for trial in tuned.tuning.trials]
    assert run.divide().fingerprint == tuned.divide().fingerprint


def test_fit_is_the_command(tuned, table, tmp_path, shell):
    model = tuned.fit()
    shell("fit", "--from", tuned.path, "--out", tmp_path / "model")
    theirs = relae.load(tmp_path / "model")
    assert repr(model) == repr(theirs) == repr(tuned.model)
    data = Interactions.read(table, user="who", item="what")
    assert np.array_equal(model.recommend(data, 5)[0], theirs.recommend(data, 5)[0])
    assert type(tuned.fit("ease", {"l2": 7.0})).__name__ == "EASE"
    with pytest.raises(DataError, match="EASE has no xi: leave it out, or choose model "):
        tuned.fit("ease", {"xi": 0.3})


def test_interactions_and_frames_are_data_too(tuned, table, tmp_path):
    data = Interactions.read(table, user="who", item="what")
    by_data = relae.tune(data, **OPTIONS)
    by_frame = relae.tune(pl.read_csv(table), user="who", item="what", out=tmp_path / "run", **OPTIONS)
    for run in (by_data, by_frame):
        assert run.tuning.chosen.metrics == tuned.tuning.chosen.metrics
        assert repr(run.fit()) == repr(tuned.fit())
    assert by_data.path is None
    with pytest.raises(DataError, match="a run of data in memory"):
        relae.Run.read(tmp_path / "run").fit()
    with pytest.raises(DataError, match="interactions in memory have no columns to choose from: leave user out"):
        relae.tune(data, user="who", **OPTIONS)


def test_compare_is_the_command(table, tmp_path, shell):
    options = {"models": ["ease", "itemknn"], "k": 5, "budget": 2, "share": 0.2}
    ours = relae.compare(table, user="who", item="what", out=tmp_path / "ours", **options)
    words = ("--models", "ease,itemknn", "--k", 5, "--budget", 2, "--share", 0.2, "--json")
    done = shell("compare", table, "--user", "who", "--item", "what", *words, "--out", tmp_path / "theirs")
    theirs = json.loads(done.out)
    assert figures(ours.record) == figures(theirs)
    assert list(ours.models) == [row.name for row in ours.table.rows]
    read = relae.Run.read(tmp_path / "ours")
    assert read.is_comparison
    assert repr(read.fit()) == repr(ours.fit()) == ours.record["models"][0]["called"]
    with pytest.raises(DataError, match="is not a search"):
        _ = read.tuning


def test_messages_are_in_python(table):
    with pytest.raises(DataError, match="low_ratings is for ratings below min_rating, which is not given"):
        relae.tune(table, user="who", item="what", low_ratings="seen")
    with pytest.raises(DataError, match="keep is for the linear autoencoders: leave it out, or leave model out"):
        relae.tune(table, "gfcf", user="who", item="what", keep="ndcg@5")
    with pytest.raises(DataError, match="l2 cannot be fixed: a run finds l2, dropout, ξ"):
        relae.tune(table, parameters={"l2": 3.0}, user="who", item="what")
