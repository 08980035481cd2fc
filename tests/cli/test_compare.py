"""`relae compare`: one table, kept model by model."""

import json
import os
import shlex
import subprocess

import numpy as np
import polars as pl
import pytest

from relae import store
from relae.baselines import ItemKNN
from relae.cli._parameters import parse_setting, write_value
from relae.experiments import (
    METRICS,
    Columns,
    Comparison,
    ComparisonRow,
    Division,
    divide_data,
    list_models,
    read_data,
)
from relae.registry import KINDS, kind

from .suite import COMMAND, files

MODELS = "ease,rlae,itemknn"
GIVEN = ("--k", 5, "--budget", 2, "--share", 0.2)


@pytest.fixture(scope="module")
def expected(table):
    """What the room below finds."""
    divided = divide_data(
        table, Columns(user="who", item="what", titles=table.with_name("titles.csv")), Division(share=0.2)
    )
    comparison = Comparison(divided.valid, divided.test, list_models(MODELS.split(",")), k=5, budget=2)
    return {row.name: row for row in comparison.run() if isinstance(row, ComparisonRow)}


def compared(shell, table, columns, *more):
    return json.loads(shell.ok("compare", table, *columns, *GIVEN, *more, "--json"))


def figures(answer):
    """All that does not depend on the clock."""
    return [{key: value for key, value in row.items() if key != "seconds"} for row in answer["models"]]


def test_the_table_holds_what_was_found(table, columns, expected, shell):
    answer = compared(shell, table, columns, "--models", MODELS)
    assert [row["model"] for row in answer["models"]] == sorted(
        expected, key=lambda name: -expected[name].evaluation["ndcg@5"]
    )
    for row in answer["models"]:
        wanted = expected[row["model"]]
        assert row["parameters"] == wanted.parameters
        assert row["metrics"] == pytest.approx(wanted.evaluation.means)
        assert row["bytes"] == wanted.size
        assert set(row["metrics"]) == {f"{metric}@5" for metric in METRICS}
    assert (answer["k"], answer["users"]["test"], answer["left_out"]) == (5, 32, [])


def test_it_says_how_it_was_done(table, columns, shell):
    done = shell("compare", table, *columns, *GIVEN, "--models", f"{MODELS},contentknn")
    text = " ".join(done.out.split())
    for part in (
        "split: held-out users (auto), judged by users who are new to the models; --split weak judges",
        "4 models, judged once by the test users at k = 5",
        "Holm's correction for 3 comparisons",
        "chosen by 26 validation users out of 2 inversions for all six: ",
        "out of 2 fits: ItemKNN neighbours",
        "left out: ContentKNN: ",
        "Next, fit the first of the table to all of the data: relae fit ",
    ):
        assert part in text, part
    assert "EASE       ndcg@5" in done.err  # news while it runs


def test_a_small_catalog_has_a_cut_off_that_tells_models_apart(table, columns, shell):
    """With all 48 items in every list, chance would find everything."""
    answer = json.loads(shell.ok("compare", table, *columns, "--models", "random", "--json"))
    assert answer["k"] == 9
    found = {row["model"]: row["metrics"] for row in answer["models"]}
    assert 0 < found["random"]["recall@9"] < found["popularity"]["recall@9"] < 1


def test_a_cut_off_has_at_least_one_place(table, columns, shell):
    """4 new items."""
    answer = json.loads(shell.ok("compare", table, *columns, "--models", "random", "--split", "new-items", "--json"))
    assert answer["k"] == 1


@pytest.fixture
def odd(tmp_path):
    """A folder with names that a shell would take apart: visits, and what is known of the items."""
    folder = tmp_path / "it's a folder"
    folder.mkdir()
    rng = np.random.default_rng(0)
    visits = ["who is it,what's had,stars,amount,day"]
    for user in range(60):
        for item in sorted(rng.choice(np.arange(user % 3, 24, 3), 5, replace=False)):
            day = f"2026-01-{1 + user % 28:02}"
            visits.append(f"u{user},{item},{rng.integers(1, 6)},{rng.integers(1, 9)},{day}")
        visits.append(f"u{user},{rng.integers(24)},5,1,2026-01-02")
    (folder / "the visits.csv").write_text("\n".join(visits))
    known = ["what's had,genres,year", *(f"{item},{'a;b' if item % 2 else 'b;c'},{2000 + item}" for item in range(26))]
    (folder / "$what is known.csv").write_text("\n".join(known))
    titles = ["item,title", *(f"{item},Title {item}" for item in range(26))]
    (folder / "titles & more.csv").write_text("\n".join(titles))
    return folder


ODD = (
    *("--user", "who is it", "--item", "what's had", "--rating", "stars", "--min-rating", 2),
    *("--weight", "amount", "--weighting", "log", "--timestamp", "day"),
    *("--min-user-count", 2, "--min-item-count", 3),
    *("--feature-columns", "genres,year", "--separator", "genres=;", "--feature-weight", 0.5),
)


def typed(command, folder):
    """Run a command line in a shell, as a person would."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "relae").write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
    (folder / "bin" / "relae").chmod(0o755)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", command], cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("out", [None, "a comparison"])
def test_the_last_line_is_a_command_that_fits_the_first_of_the_table(odd, out, shell, monkeypatch):
    """As typed, with all columns, filters and features, and names that need quotes."""
    monkeypatch.chdir(odd)
    files = ("the visits.csv", "--features", "$what is known.csv", "--titles", "titles & more.csv")
    given = ("--k", 5, "--budget", 2, "--share", 0.2, "--models", "ease,rlae,contentknn")
    given += () if out is None else ("--out", out)
    text = shell.ok("compare", *files, *ODD, *given)
    best = shell.ok("compare", *files, *ODD, *given, "--json")
    first = json.loads(best)["models"][0]
    assert first["model"] != "popularity"
    command = text.rstrip("\n").splitlines()[-1]
    assert command.startswith("relae fit ")
    assert ("--from" in command) == (out is not None)
    done = typed(command, odd)
    assert done.returncode == 0, done.stderr
    saved = store.open_model(odd / f"{first['model']}-model")
    assert repr(saved.model) == first["called"]
    names = [name for name in ODD[::2] if name not in ("--separator",)]
    columns = {name[2:].replace("-", "_"): value for name, value in zip(ODD[::2], ODD[1::2], strict=True)}
    assert len(names) == len(columns) - 1
    wanted = Columns(**columns | {"separator": ["genres=;"]}, features=odd / files[2], titles=odd / files[4])
    _, data = read_data(str(odd / files[0]), wanted)
    assert saved.histories.users == data.users
    assert saved.model.items_ == data.items
    assert (saved.histories.matrix != data.matrix).nnz == 0
    assert list(saved.model.titles_) == list(data.titles)
    assert f"{first['model']}-model-2" in next_line(shell, files, given)  # a folder that is there is not replaced


def next_line(shell, files, given):
    return shell.ok("compare", *files, *ODD, *given).rstrip("\n").splitlines()[-1]


def test_a_comparison_is_something_to_fit_from(table, columns, expected, shell, tmp_path):
    out = tmp_path / "comparison"
    shell.ok("compare", table, *columns, *GIVEN, "--models", MODELS, "--out", out)
    best = max(expected.values(), key=lambda row: row.evaluation["ndcg@5"])
    text = " ".join(shell.ok("fit", "--from", out, "--out", tmp_path / "m").split())
    assert repr(store.load(tmp_path / "m")) == best.evaluation.model
    assert "number 1 of 4 in its table by the ndcg@5 of the test users" in text
    shell.ok("fit", "--from", out, "--model", "itemknn", "--out", tmp_path / "knn")
    assert repr(store.load(tmp_path / "knn")) == expected["itemknn"].evaluation.model
    line = shell("fit", "--from", out, "--model", "gfcf", "--out", tmp_path / "no").line()
    assert "has no GFCF: its models are" in line
    answer = json.loads(shell.ok("evaluate", "--from", out, "--k", 5, "--metrics", "ndcg", "--json"))
    [found] = [row for row in answer if (row["metric"], row["k"]) == ("ndcg", 5)]
    assert found["mean"] == pytest.approx(best.evaluation["ndcg@5"])  # the same split


@pytest.mark.parametrize("name", KINDS)
def test_every_parameter_can_be_typed(name):
    """What compare writes after --set is read as the same value."""
    model = kind(name)()
    for parameter, value in model.get_params().items():
        others = [value, (3, 5)] if isinstance(value, tuple) else [value]
        others += [not value] if isinstance(value, bool) else [value * 3] if isinstance(value, (int, float)) else []
        others += [0.125] if value is None else []
        for other in others:
            assert parse_setting(type(model), f"{parameter}={write_value(other)}") == (parameter, other)


def test_an_auto_split_admits_the_models_that_are_named(table, columns, shell):
    pytest.importorskip("torch", reason="the extra neural is not installed")
    given = ("--models", "grmf", "--time-budget", 0.02)
    answer = compared(shell, table, columns, *given)
    assert answer["split"]["name"] == "weak"
    assert {row["model"] for row in answer["models"]} == {"grmf", "popularity"}
    assert answer["split"]["protocol"] == "held-out items"
    answer = compared(shell, table, columns, *given, "--split", "strong")
    assert [row["model"] for row in answer["models"]] == ["popularity"]
    [absent] = answer["left_out"]
    assert absent["name"] == "grmf"
    assert "--split weak admits" in absent["reason"]


# --- a folder ----------------------------------------------------------------------------------------------------


def test_the_folder_has_the_table_in_three_forms(table, columns, shell, tmp_path):
    out = tmp_path / "a b"
    text = shell.ok("compare", table, *columns, *GIVEN, "--models", MODELS, "--out", out)
    assert f"saved in {out}: result.json, table.md, table.csv" in text
    assert files(out) == ["models", "result.json", "table.csv", "table.md"]
    answer = json.loads((out / "result.json").read_text())
    frame = pl.read_csv(out / "table.csv")
    assert frame["model"].to_list() == [row["model"] for row in answer["models"]]
    assert frame["ndcg@5"].to_list() == pytest.approx([row["metrics"]["ndcg@5"] for row in answer["models"]])
    page = (out / "table.md").read_text()
    assert "| model | ndcg | recall | head | tail | unbiased | coverage | fit | size |" in page
    assert "held-out users" in page
    for row in answer["models"]:
        assert kind(row["model"]).__name__ in page


def test_a_comparison_that_was_stopped_goes_on(table, columns, shell, tmp_path, monkeypatch):
    whole = compared(shell, table, columns, "--models", MODELS)
    given = ("--models", MODELS, "--out", tmp_path / "c")
    fit = ItemKNN.fit
    fits = []

    def stop(self, data, **options):
        fits.append(self)
        if len(fits) == 2:
            raise KeyboardInterrupt
        return fit(self, data, **options)

    with monkeypatch.context() as patch:
        patch.setattr(ItemKNN, "fit", stop)
        assert shell("compare", table, *columns, *GIVEN, *given).code == 130
    assert {"ease.npz", "rlae.npz", "popularity.npz"} <= set(files(tmp_path / "c" / "models"))
    assert "result.json" not in files(tmp_path / "c")
    monkeypatch.setattr("relae.models.LinearAutoencoder.fit", None)  # nothing linear is fitted again
    done = shell("compare", table, *columns, *GIVEN, *given, "--json")
    assert "ease, popularity done" in done.err
    assert figures(json.loads(done.out)) == figures(whole)


def test_what_is_done_counts_and_more_models_join(table, columns, shell, tmp_path, monkeypatch):
    first = compared(shell, table, columns, "--models", "ease", "--out", tmp_path / "c")
    both = compared(shell, table, columns, "--models", "ease,itemknn", "--out", tmp_path / "c")
    assert {row["model"] for row in both["models"]} == {"ease", "itemknn", "popularity"}
    [was] = [row for row in first["models"] if row["model"] == "ease"]
    [still] = [row for row in both["models"] if row["model"] == "ease"]
    assert was["seconds"] == still["seconds"]
    assert was["metrics"] == still["metrics"]


def test_a_model_that_fails_is_said_to_and_run_again(table, columns, shell, tmp_path, monkeypatch):
    """An error that nobody foresaw: the table of the others is made, and the exit code is 1."""
    given = ("compare", table, *columns, *GIVEN, "--models", "ease,itemknn", "--out", tmp_path / "c")

    def fail(self, data, **options):
        raise RuntimeError("ARPACK error -1: No convergence")

    with monkeypatch.context() as patch:
        patch.setattr(ItemKNN, "fit", fail)
        done = shell(*given)
    assert done.code == 1
    assert "left out: ItemKNN: RuntimeError: ARPACK error -1: No convergence" in done.out
    answer = json.loads((tmp_path / "c" / "result.json").read_text())
    assert {row["model"] for row in answer["models"]} == {"ease", "popularity"}
    [absent] = answer["left_out"]
    assert absent["trace"].startswith("Traceback")
    again = json.loads(shell.ok(*given, "--json"))
    assert {row["model"] for row in again["models"]} == {"ease", "itemknn", "popularity"}
    assert again["left_out"] == []


def test_a_comparison_without_anyone_left_is_an_error(table, columns, shell, monkeypatch):
    monkeypatch.setattr("relae.baselines.Popularity.fit", None)
    said = shell("compare", table, *columns, *GIVEN, "--models", "popularity").line()
    assert said.startswith("there is no model to show; left out: Popularity: TypeError: ")


@pytest.mark.parametrize(("more", "differs"), [(("--k", 6), "k"), (("--seed", 1), "data, seed, test")])
def test_another_comparison_is_not_mixed_in(more, differs, table, columns, shell, tmp_path):
    out = ("--models", "popularity", "--out", tmp_path / "c")
    shell.ok("compare", table, *columns, *GIVEN, *out)
    said = shell("compare", table, *columns, *GIVEN, *out, *more).line()
    assert f"is of another comparison, which differs in {differs}: name another folder" in said


def test_a_damaged_file_is_said_to_be_damaged(table, columns, shell, tmp_path):
    out = ("--models", "popularity", "--out", tmp_path / "c")
    shell.ok("compare", table, *columns, *GIVEN, *out)
    path = tmp_path / "c" / "models" / "popularity.npz"
    for content in (path.read_bytes()[:-40], b"", b"mine"):
        path.write_bytes(content)
        assert "popularity.npz is damaged" in shell("compare", table, *columns, *GIVEN, *out).line()
    np.savez(path, record=np.array("{}"), values=np.ones(3))
    assert "popularity.npz is damaged" in shell("compare", table, *columns, *GIVEN, *out).line()


def test_more_time_is_used(table, columns, shell, tmp_path):
    """A model that was cut off is run again with more time, and not with less."""
    out = ("--models", "itemknn", "--out", tmp_path / "c")
    rows = []
    for minutes in (1e-5, 5e-6, 1.0):
        answer = compared(shell, table, columns, *out, "--time-budget", minutes)
        rows.append(next(row for row in answer["models"] if row["model"] == "itemknn"))
    assert [row["choice"] for row in rows] == ["out of 1 fit", "out of 1 fit", "out of 2 fits"]
    assert [row["complete"] for row in rows] == [False, False, True]
    assert rows[0]["seconds"] == rows[1]["seconds"]
