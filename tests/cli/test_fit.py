"""`relae fit`: the folder holds the model that the Python API fits."""

import json
import os
import shlex
import signal
import subprocess
import time

import numpy as np
import pytest

from relae import DLAE, EASE, RDLAE, store
from relae.baselines import Trained
from relae.cli._parameters import parse_parameters
from relae.experiments import Run, choose_model
from relae.models import LinearAutoencoder
from relae.registry import KINDS, kind
from relae.solvers import Auto, Dual, Local

from .suite import COMMAND, files, shown


def same_lists(path, model, data, k=10):
    """Whether a saved model ranks as a fitted one does."""
    ours, theirs = (m.recommend(data, k)[0] for m in (store.load(path), model))
    return np.array_equal(ours, theirs)


NEEDS_MORE = ("contentknn", "trending", "markov", "sasrec", "nextitem")  # than the table has: features, or times


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
    for part in ("l2 10, dropout 0.2, ξ 0.3", "160 users × 48 items", "by their ids", f"relae serve '{out}'"):
        assert part in flat, part
    assert "tune" not in text
    assert files(out.parent) == ["model"]


@pytest.mark.parametrize("name", [name for name in KINDS if name not in NEEDS_MORE])
def test_every_model_can_be_fitted(name, table, columns, data, tmp_path, shell):
    trained = issubclass(kind(name), Trained)
    if trained:
        pytest.importorskip("torch", reason="the extra neural is not installed")
    given = {"rank": 5} if name in ("gfcf", "chebycf", "bspm") else {"epochs": 2} if trained else {}
    options = [part for option, value in given.items() for part in (f"--{option}", value)]
    if name == "hmlet":  # its gates shall learn in the second epoch
        given["warm_up"], options = 1, [*options, "--set", "warm_up=1"]
    text = shell.ok("fit", table, *columns, "--model", name, *options, "--out", tmp_path / "m")
    assert type(store.load(tmp_path / "m")) is kind(name)
    assert same_lists(tmp_path / "m", kind(name)(**given).fit(data), data)
    # a rule was used; a search often keeps it, so that no better figure is promised
    assert ("tune" in text) == issubclass(kind(name), LinearAutoencoder) == ("tells whether other parameters" in text)
    assert files(tmp_path) == ["m"]  # nothing of a training is left
    *_, following = text.splitlines()
    assert shell.ok(*shlex.split(following)[1:])


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("ease", ["l2=7"], {"l2": 7}),
        ("ease", ["l2=none"], {"l2": None}),
        ("rdlae", [" xi = 1e-1 "], {"xi": 0.1}),
        ("ltocf", ["residual=yes", "batch_size=64"], {"residual": True, "batch_size": 64}),
        ("multvae", ["seed=3", "objective=ndcg@5"], {"seed": 3, "objective": "ndcg@5"}),
    ],
)
def test_any_parameter_can_be_set(name, given, wanted):
    model, _ = choose_model(*parse_parameters({"model": name, "set": given}))
    assert type(model) is kind(name)
    assert model.get_params() == kind(name)().get_params() | wanted
    assert all(type(model.get_params()[key]) is type(value) for key, value in wanted.items())


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["nearest-by=count"], Auto(nearest_by="count")),
        ([" xi = 1e-1 ", "neighbours=12"], Auto(neighbours=12)),
        (["solver=dual"], Dual()),
        (["solver=local", "neighbours=12", "dtype=float64"], Local(12, dtype="float64")),
    ],
)
def test_any_setting_of_the_solver_can_be_set(given, wanted):
    _, solver = choose_model(*parse_parameters({"model": "rdlae", "set": given}))
    assert solver == wanted


def test_a_training_goes_on_after_a_break(table, columns, data, tmp_path, shell, monkeypatch):
    pytest.importorskip("torch", reason="the extra neural is not installed")
    given = (table, *columns, "--model", "grmf", "--epochs", 12, "--dim", 8, "--set", "every=2")
    shell.ok("fit", *given, "--out", tmp_path / "whole")
    seen = []

    def save(*_, **__):
        seen.extend(files(tmp_path))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "save", save)
        assert shell("fit", *given, "--out", tmp_path / "broken").code == 130
    assert "broken.training" in seen
    fits = []
    monkeypatch.setattr("relae.baselines.neural._training._epoch", lambda *_: fits.append(1) or 0.0)
    done = shell("fit", *given, "--out", tmp_path / "broken")
    assert (done.code, fits) == (0, [])  # every epoch was there already
    assert "going on from" in done.err
    assert files(tmp_path) == ["broken", "whole"]
    assert same_lists(tmp_path / "broken", store.load(tmp_path / "whole"), data)


def test_a_training_ends_with_its_time(table, columns, tmp_path, shell):
    pytest.importorskip("torch", reason="the extra neural is not installed")
    given = ("--model", "grmf", "--epochs", 100_000, "--patience", 0, "--dim", 4, "--time-budget", 0.005)
    answer = json.loads(shell.ok("fit", table, *columns, *given, "--out", tmp_path / "m", "--json"))
    assert answer["fitted"]["stopped"] == "time"
    assert 1 <= answer["fitted"]["epochs"] < 100_000


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


@pytest.mark.parametrize(
    ("given", "held"),
    [(["gfcf", "--rank", 5], True), (["ease", "--solver", "dual", "--form", "dual"], True), (["ease"], False)],
    ids=str,
)
def test_what_is_held_of_users_all_the_same_is_said(given, held, table, columns, tmp_path, shell):
    text = shell.ok("fit", table, *columns, "--no-histories", "--model", *given, "--out", tmp_path / "m")
    assert ("what each of them has is part of the model" in " ".join(text.split())) == held
    assert ("not kept" in text) != held


@pytest.mark.parametrize("name", [name for name in KINDS if not kind(name).folds_in])
def test_histories_cannot_be_left_out_of_a_model_that_finds_users_by_them(name, tmp_path, shell):
    said = shell("fit", "nowhere.csv", "--model", name, "--no-histories", "--out", tmp_path / "m").line()
    assert said.startswith(f"{kind(name).__name__} finds its users by their histories, which are part of it: leave")
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["grmf"], "validated by 10% of every user's items, which it was not trained on"),
        (["multvae", "--set", "validation_share=0.25"], "validated by 25% of the users, which it was not trained on"),
        (["grmf", "--set", "validation_share=0"], None),
    ],
    ids=str,
)
def test_what_a_training_was_validated_by_is_said(given, said, table, columns, tmp_path, shell):
    pytest.importorskip("torch", reason="the extra neural is not installed")
    text = shell.ok("fit", table, *columns, "--model", *given, "--epochs", 1, "--dim", 4, "--out", tmp_path / "m")
    assert said in " ".join(text.split()) if said else "validated" not in text


def test_columns_count(table, tmp_path, shell):
    given = ("--user", "who", "--item", "what", "--rating", "stars", "--min-rating", 5, "--min-item-count", 3)
    given += ("--weight", "stars", "--weighting", "linear")
    answer = json.loads(shell.ok("fit", table, *given, "--out", tmp_path / "m", "--json"))
    assert answer["data"]["interactions"] < 700
    assert set(store.open_model(tmp_path / "m").histories.matrix.data) <= {5.0, 10.0}


def test_a_run_says_what_to_fit_and_to_what(tuned, data, tmp_path, shell):
    run = Run.read(tuned)
    shell.ok("fit", "--from", tuned, "--out", tmp_path / "m")
    assert repr(store.load(tmp_path / "m")) == repr(run.model)
    assert same_lists(tmp_path / "m", run.model.fit(data), data)
    assert store.open_model(tmp_path / "m").info["data"]["titles"]


def test_a_run_of_another_model_says_what_to_fit(table, columns, data, tmp_path, shell):
    given = ("--model", "itemknn", "--budget", 3, "--objective", "ndcg@5", "--no-test")
    shell.ok("tune", table, *columns, *given, "--out", tmp_path / "run")
    run = Run.read(tmp_path / "run")
    assert type(run.model) is kind("itemknn")
    shell.ok("fit", "--from", tmp_path / "run", "--out", tmp_path / "m")
    assert repr(store.load(tmp_path / "m")) == repr(run.model)
    shell.ok("fit", "--from", tmp_path / "run", "--model", "itemknn", "--neighbours", 3, "--out", tmp_path / "n")
    assert store.load(tmp_path / "n").get_params() == run.model.get_params() | {"neighbours": 3}
    shell.ok("fit", "--from", tmp_path / "run", "--model", "ease", "--out", tmp_path / "o")  # nothing of it was tuned
    assert repr(store.load(tmp_path / "o")) == "EASE()"


def test_a_run_says_how_to_solve(table, columns, tmp_path, shell):
    how = ("--solver", "local", "--neighbours", 9)
    shell.ok(
        "tune", table, *columns, *how, "--budget", 2, "--objective", "ndcg@5", "--no-test", "--out", tmp_path / "run"
    )
    shell.ok("fit", "--from", tmp_path / "run", "--out", tmp_path / "m")
    model = store.load(tmp_path / "m")
    assert (model.plan_.solver, model.neighbours_) == ("local", 9)
    shell.ok("fit", "--from", tmp_path / "run", "--solver", "primal", "--out", tmp_path / "n")
    assert store.load(tmp_path / "n").plan_.solver == "primal"


def test_what_is_given_goes_before_the_run(tuned, data, tmp_path, shell):
    shell.ok("fit", "--from", tuned, "--model", "dlae", "--l2", 7, "--out", tmp_path / "m")
    best = Run.read(tuned).models["dlae"]
    assert same_lists(tmp_path / "m", DLAE(7.0, best.dropout).fit(data), data)
    other = tmp_path / "other.csv"
    other.write_text("who,thing\na,1004\na,1005\nb,1005\nb,1006\nc,1004\n")  # ids that the run's titles have
    shell.ok("fit", other, "--from", tuned, "--item", "thing", "--out", tmp_path / "n")  # who is the run's column
    saved = store.open_model(tmp_path / "n")
    assert saved.info["data"]["items"] == 3
    assert list(saved.model.titles_) == ["Title of 4", "Title of 5", "Title of 6"]


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
