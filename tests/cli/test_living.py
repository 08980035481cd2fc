"""`relae update`, `forget`, `drop` and `rollback` beside fits to what they leave."""

import json

import numpy as np
import polars as pl
import pytest

import relae
from relae import store

FIT = ("--timestamp", "ts", "--model", "ease", "--l2", 20)


@pytest.fixture
def log(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        (f"p{user:03}", f"f{item}", 1_600_000_000 + 60 * user + at)
        for user in range(300)
        for at, item in enumerate(rng.choice(80, 6, replace=False))
    ]
    table = pl.DataFrame(rows, schema=["user", "item", "ts"], orient="row")
    table[:1500].write_csv(tmp_path / "first.csv")
    return tmp_path, table


def test_an_update_is_the_fit_to_both_tables(log, shell):
    folder, rows = log
    back = [("p003", "f79", 1_700_000_000), ("p004", "new", 1_700_000_001)]
    later = pl.concat([rows[1500:1530], pl.DataFrame(back, schema=rows.schema, orient="row")])
    later.write_csv(folder / "later.csv")
    pl.concat([rows[:1500], later]).write_csv(folder / "both.csv")
    shell.ok("fit", folder / "first.csv", *FIT, "--out", folder / "m")
    answer = json.loads(shell.ok("update", folder / "m", folder / "later.csv", "--timestamp", "ts", "--json"))
    assert answer["change"]["what"] == "update"
    assert answer["change"]["rows"] == later["user"].n_unique()
    assert answer["earlier"] == 1
    shell.ok("fit", folder / "both.csv", *FIT, "--out", folder / "both")
    ours, theirs = store.open_model(folder / "m", verify=True), store.open_model(folder / "both")
    assert set(ours.histories.users.values) == set(theirs.histories.users.values)
    order = ours.model.items_.positions(theirs.model.items_.values)
    assert np.allclose(ours.model.weights()[np.ix_(order, order)], theirs.model.weights(), atol=1e-5)
    assert np.allclose(ours.model.demand_.counts[:, order], theirs.model.demand_.counts)
    for user in ("p003", "p004", "p254"):
        assert sorted(ours.histories.history(user)) == sorted(theirs.histories.history(user))
    shell.ok("recommend", folder / "m", "--for", "p004")
    assert "update" in shell.ok("inspect", folder / "m")
    [line] = json.loads(shell.ok("inspect", folder / "m", "--json"))["changes"]
    assert line == answer["change"]


def test_forget_and_rollback(log, shell):
    folder, _ = log
    shell.ok("fit", folder / "first.csv", *FIT, "--out", folder / "m")
    shell.ok("drop", folder / "m", "--item", "f3", "--item", "f5")
    assert len(relae.load(folder / "m").items_) == 78
    assert "goes back" in shell.ok("drop", folder / "m", "--item", "f7", "--keep", 2)
    shell.ok("rollback", folder / "m")
    assert len(relae.load(folder / "m").items_) == 78
    (folder / "ids.txt").write_text("p001\np002\n")
    said = shell.ok("forget", folder / "m", "--user", "p010", "--users", folder / "ids.txt")
    assert "3 users" in said
    assert relae.load(folder / "m").n_users_ == 247
    assert "p010" not in store.open_model(folder / "m").histories.users.values.tolist()
    assert "keeps no earlier version" in shell("rollback", folder / "m").line()


def test_another_folder(log, shell):
    folder, _ = log
    shell.ok("fit", folder / "first.csv", *FIT, "--out", folder / "m")
    said = shell.ok("forget", folder / "m", "--user", "p010", "--out", folder / "n")
    assert "still holds these users" in said
    assert (relae.load(folder / "m").n_users_, relae.load(folder / "n").n_users_) == (250, 249)


def test_what_is_refused(log, shell):
    folder, _ = log
    shell.ok("fit", folder / "first.csv", *FIT, "--out", folder / "m")
    assert "user 'nobody' is unknown" in shell("forget", folder / "m", "--user", "nobody").line()
    assert "item 'nothing' is unknown" in shell("drop", folder / "m", "--item", "nothing").line()
    assert "whom to forget? Give --user ID or --users FILE" in shell("forget", folder / "m").line()
    shell.ok("fit", folder / "first.csv", *FIT, "--no-histories", "--out", folder / "bare")
    assert "was saved without what its users had" in shell("forget", folder / "bare", "--user", "p001").line()
    shell.ok("fit", folder / "first.csv", "--model", "popularity", "--out", folder / "popular")
    assert "needs a linear autoencoder" in shell("forget", folder / "popular", "--user", "p001").line()
    assert "have no times" in shell("update", folder / "m", folder / "first.csv").line()


def test_amounts_are_added_with_the_weighting_of_the_fit(log, shell):
    folder, rows = log
    counted = rows.with_columns(n=pl.lit(1.0) + pl.int_range(pl.len()) % 3)
    counted[:1500].write_csv(folder / "first.csv")
    later = counted[:1].with_columns(n=pl.lit(4.0), ts=pl.lit(1_700_000_000, pl.Int64))
    later.write_csv(folder / "later.csv")
    pl.concat([counted[:1500], later]).write_csv(folder / "both.csv")
    options = ("--weight", "n")
    shell.ok("fit", folder / "first.csv", *FIT, *options, "--weighting", "log", "--out", folder / "m")
    shell.ok("update", folder / "m", folder / "later.csv", "--timestamp", "ts", *options)
    shell.ok("fit", folder / "both.csv", *FIT, *options, "--weighting", "log", "--out", folder / "both")
    ours, theirs = relae.load(folder / "m"), relae.load(folder / "both")
    assert np.allclose(ours.weights(), theirs.weights(), atol=1e-5)


def test_whom_and_what_a_recommendation_rests_on(log, shell):
    folder, _ = log
    shell.ok("fit", folder / "first.csv", *FIT, "--out", folder / "m")
    model, saved = relae.load(folder / "m"), store.open_model(folder / "m")
    history = saved.histories.history("p003")
    [item] = model.recommend(history, 1)[0]
    words = ("explain", folder / "m", "--item", item, "--for", "p003", "--users", 4, "--counterfactual", 1)
    answer = json.loads(shell.ok(*words, "--json"))
    found = model.influence(history, item, saved.histories, k=4)
    assert [each["user"] for each in answer["users"]["changes"]] == found.users
    assert np.allclose([each["change"] for each in answer["users"]["changes"]], found.changes, atol=1e-6)
    assert answer["users"]["complete"]
    gone = [each["item"] for each in answer["counterfactual"]["without"]]
    left = [each for each in history if each not in gone]
    assert 0 < len(gone) < len(history)
    assert model.recommend(left, 1, deny=history)[0][0] != item
    said = shell.ok(*words)
    assert found.users[0] in said
    assert "not among the first 1 without" in said
    shell.ok("fit", folder / "first.csv", *FIT, "--no-histories", "--out", folder / "bare")
    refused = shell("explain", folder / "bare", "--item", item, "--history", history[0], "--users", 2).line()
    assert "was saved without what its users had" in refused
