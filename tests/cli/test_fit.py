"""`relae fit`: the folder holds the model that the Python API fits."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest

from relae import DLAE, EASE, RDLAE, store
from relae.baselines import GFCF
from relae.cli._choice import KINDS, read_run

from .suite import COMMAND, files, shown


def same_lists(path, model, data, k=10):
    """Whether a saved model ranks as a fitted one does."""
    ours, theirs = (m.recommend(data, k)[0] for m in (store.load(path), model))
    return np.array_equal(ours, theirs)


def test_it_fits_saves_and_says_what_next(table, columns, data, tmp_path):
    out = tmp_path / "a b" / "model"
    text = shown("fit", table, *columns, "--l2", 10, "--dropout", 0.2, "--xi", 0.3, "--out", out)
    saved = store.open_model(out, verify=True)
    wanted = RDLAE(l2=10.0, dropout=0.2, xi=0.3).fit(data)
    assert repr(saved.model) == repr(wanted)
    assert same_lists(out, wanted, data)
    assert saved.histories.users == data.users
    assert saved.info["title"] == "visits.csv"
    assert list(saved.model.titles_) == list(data.titles)
    flat = " ".join(text.split())
    for part in ("l2 10, dropout 0.2, ξ 0.3", "160 users × 48 items", "kept by id", f"relae serve '{out}'"):
        assert part in flat, part
    assert "tune" not in text
    assert files(out.parent) == ["model"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_model_can_be_fitted(kind, table, columns, data, tmp_path, shell):
    given = ("--rank", 5) if kind == "gfcf" else ()
    text = shell.ok("fit", table, *columns, "--model", kind, *given, "--out", tmp_path / "m")
    wanted = GFCF(rank=5) if kind == "gfcf" else KINDS[kind]()
    assert type(store.load(tmp_path / "m")) is KINDS[kind]
    assert same_lists(tmp_path / "m", wanted.fit(data), data)
    assert ("tune" in text) == (kind not in ("gfcf", "popularity"))  # a rule was used, and there is better


def test_solver_precision_and_form(table, columns, data, tmp_path, shell):
    given = ("--model", "EASE", "--solver", "dual", "--dtype", "float64", "--l2", 5)
    for form in ("primal", "dual", "fitted"):
        answer = json.loads(
            shell.ok("fit", table, *columns, *given, "--form", form, "--out", tmp_path / form, "--json")
        )
        assert answer["fitted"]["form"] == {"fitted": "dual"}.get(form, form)
        assert (answer["fitted"]["solver"], answer["fitted"]["dtype"]) == ("dual", "float64")
        assert same_lists(tmp_path / form, EASE(5.0).fit(data), data)


def test_histories_can_be_left_out(table, columns, tmp_path, shell):
    answer = json.loads(shell.ok("fit", table, *columns, "--no-histories", "--out", tmp_path / "m", "--json"))
    assert answer["data"]["histories"] is False
    assert answer["size"] == store.open_model(tmp_path / "m").size
    assert store.open_model(tmp_path / "m").histories is None


def test_columns_count(table, tmp_path, shell):
    given = ("--user", "who", "--item", "what", "--rating", "stars", "--min-rating", 5, "--min-item-count", 3)
    answer = json.loads(shell.ok("fit", table, *given, "--weight", "stars", "--out", tmp_path / "m", "--json"))
    assert answer["data"]["interactions"] < 700
    assert set(store.open_model(tmp_path / "m").histories.matrix.data) <= {5.0, 10.0}


def test_a_run_says_what_to_fit_and_to_what(tuned, data, tmp_path, shell):
    run = read_run(tuned)
    shell.ok("fit", "--from", tuned, "--out", tmp_path / "m")
    assert repr(store.load(tmp_path / "m")) == repr(run.chosen.model())
    assert same_lists(tmp_path / "m", run.chosen.model().fit(data), data)
    assert store.open_model(tmp_path / "m").info["data"]["titles"]


def test_what_is_given_goes_before_the_run(tuned, data, tmp_path, shell):
    shell.ok("fit", "--from", tuned, "--model", "dlae", "--l2", 7, "--out", tmp_path / "m")
    best = read_run(tuned).bests["DLAE"]
    assert same_lists(tmp_path / "m", DLAE(7.0, best.dropout).fit(data), data)
    other = tmp_path / "other.csv"
    other.write_text("who,thing\na,1\na,2\nb,2\nb,3\nc,1\n")
    shell.ok("fit", other, "--from", tuned, "--item", "thing", "--out", tmp_path / "n")  # who is the run's column
    assert store.open_model(tmp_path / "n").info["data"]["items"] == 3


def test_a_benchmark_and_a_folder_of_lists(tmp_path, shell):
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "train.txt").write_text("0 1 2\n1 0\n2 2 3\n")
    (lists / "test.txt").write_text("0 0\n1 3\n")
    answer = json.loads(shell.ok("fit", lists, "--model", "popularity", "--out", tmp_path / "m", "--json"))
    assert (answer["title"], answer["data"]["interactions"]) == ("lists", 7)
    answer = json.loads(shell.ok("fit", "online-retail", "--model", "popularity", "--out", tmp_path / "n", "--json"))
    assert (answer["title"], answer["data"]["interactions"]) == ("Online Retail", 266_802)


def test_ctrl_c_keeps_the_old_model(table, columns, tmp_path):
    """At any moment of the command, its start included, the old model stays whole and alone."""
    path = tmp_path / "model"
    shown("fit", table, *columns, "--model", "popularity", "--out", path)
    before = {name: (path / name).read_bytes() for name in files(path) if (path / name).is_file()}
    for wait in (0.4, 0.8, 1.2):
        given = ["fit", "online-retail", "--model", "ease", "--out", path]
        process = subprocess.Popen(
            [*COMMAND, *map(str, given)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        time.sleep(wait)
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode in (130, -signal.SIGINT, 1), said  # before the first line of ours, Python's own
    assert {name: (path / name).read_bytes() for name in files(path) if (path / name).is_file()} == before
    store.open_model(path, verify=True)
