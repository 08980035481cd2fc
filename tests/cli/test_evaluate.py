"""`relae evaluate`: the figures are those of `relae.evaluation`."""

import json

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from relae import RDLAE, Interactions
from relae.baselines import Popularity
from relae.cli._evaluate import make_split
from relae.evaluation import Split, evaluate, hold_out_users
from relae.experiments import Columns, Run

FIGURES = ("--metrics", "ndcg,recall,tail_ndcg,coverage,popularity", "--k", "5,10")
METRICS, KS = ("ndcg", "recall", "tail_ndcg", "coverage", "popularity"), (5, 10)


def same(text: str, found) -> bool:
    return json.loads(text) == json.loads(found.to_json())


def test_a_part_is_fitted_and_the_rest_judged(table, columns, data, shell):
    given = ("--l2", 10, "--split", "strong", "--share", 0.25, "--seed", 3)
    text = shell.ok("evaluate", table, *columns, *given, *FIGURES, "--json")
    split = hold_out_users(data, 0.25, rng=np.random.default_rng(3))
    model = RDLAE(l2=10.0).fit(split.train)
    assert same(text, evaluate(model, split, METRICS, KS))
    table_shown = shell.ok("evaluate", table, *columns, *given, *FIGURES)
    assert "40 to judge by" in table_shown
    assert "95% bootstrap intervals" in table_shown


def test_several_xi_from_one_fit(table, columns, data, shell, tmp_path):
    out = tmp_path / "figures.csv"
    text = shell.ok("evaluate", table, *columns, "--xis", "0,0.5,1", *FIGURES, "--json", "--out", out)
    split = hold_out_users(data, 0.1, rng=np.random.default_rng(0))
    found = evaluate(RDLAE().fit(split.train), split, METRICS, KS, xis=[0, 0.5, 1])
    assert same(text, found)
    assert pl.read_csv(out)["xi"].unique().sort().to_list() == [0, 0.5, 1]
    assert "ξ = 0.5" in shell.ok("evaluate", table, *columns, "--xis", "0,0.5", *FIGURES)


def test_a_run_says_what_and_by_whom(tuned, shell):
    run = Run.read(tuned)
    divided = run.divide()
    model = run.model.fit(divided.test.train)
    assert same(shell.ok("evaluate", "--from", tuned, *FIGURES, "--json"), evaluate(model, divided.test, METRICS, KS))
    rival = Popularity().fit(divided.test.train)
    text = shell.ok("evaluate", "--from", tuned, "--model", "popularity", *FIGURES, "--json")
    assert same(text, evaluate(rival, divided.test, METRICS, KS))


@pytest.mark.parametrize("extension", ["json", "csv", "md"])
def test_figures_go_to_a_file(extension, table, columns, shell, tmp_path):
    out = tmp_path / f"figures.{extension}"
    text = shell.ok("evaluate", table, *columns, "--model", "popularity", *FIGURES, "--out", out)
    assert f"saved: {out}" in text
    content = out.read_text()
    if extension == "json":
        assert {row["metric"] for row in json.loads(content)} == set(METRICS)
    elif extension == "csv":
        assert set(pl.read_csv(out)["metric"]) == set(METRICS)
    else:
        assert "| tail_ndcg |" in content


# --- a saved model -----------------------------------------------------------------------------------------------


def strangers(tmp_path, data):
    """Users whom the model does not know, with a few items that it does not know either."""
    matrix = sp.coo_array(data.matrix[:60])
    items = [str(item) for item in data.items.values[matrix.col]]
    items[::17] = ["new"] * len(items[::17])
    frame = pl.DataFrame({"user": [f"n{row}" for row in matrix.row], "item": items})
    frame.write_csv(tmp_path / "others.csv")
    return Interactions.read(tmp_path / "others.csv")


def test_a_saved_model_is_judged_by_other_users(saved, model, data, shell, tmp_path):
    others = strangers(tmp_path, data)
    given = (saved, "--on", tmp_path / "others.csv", "--hide", 0.3, "--seed", 5, *FIGURES)
    done = shell("evaluate", *given, "--json")
    assert "1 of 49 items are unknown to the model" in done.err
    assert "not new to it" not in done.err
    split = make_split(model, others, 0.3, 5)
    with pytest.warns(UserWarning, match="unknown to the model"):
        assert same(done.out, evaluate(model, split, METRICS, KS))
    assert "30% of each user's items hidden" in shell.ok("evaluate", *given)


def test_popularity_is_as_the_model_has_learned_it(model, data, tmp_path):
    others = strangers(tmp_path, data)
    split = make_split(model, others, 0.3, 5)
    assert isinstance(split, Split)
    assert split.item_counts.tolist() == [*model.item_counts_.tolist(), 0]
    assert split.train.n_users == model.n_users_
    assert split.users == others.users
    ours = sp.coo_array(split.histories + split.truth)
    theirs = sp.coo_array(others.matrix)
    pairs = [
        {(str(users.values[r]), str(items.values[c])) for r, c in zip(m.row, m.col, strict=True)}
        for m, users, items in ((ours, split.users, split.train.items), (theirs, others.users, others.items))
    ]
    assert pairs[0] == pairs[1]
    hidden = np.diff(split.truth.indptr)
    assert (hidden == np.maximum(1, (0.3 * np.diff(others.matrix.indptr)).astype(int))).all()


def test_users_that_the_model_knows_are_said_to_be_known(saved, table, columns, shell):
    text = " ".join(shell.ok("evaluate", saved, "--on", table, *columns, *FIGURES).split())
    assert "160 of 160 users are among those whose histories the model has kept" in text
    assert "unknown to the model" not in text


def test_columns_of_a_run_are_read_back():
    columns = Columns(user="a", titles=None)
    assert Columns.from_record({"user": "a", "titles": None}) == columns
    assert str(Columns.from_record({"titles": "x.csv"}).titles) == "x.csv"
