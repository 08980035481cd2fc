"""`relae compare`: one table, kept model by model."""

import json

import numpy as np
import polars as pl
import pytest

from relae.baselines import ItemKNN
from relae.cli._data import Columns, load
from relae.comparison import METRICS, Contest, Standing, named
from relae.store import kind

from .suite import files

MODELS = "ease,rlae,itemknn"
GIVEN = ("--k", 5, "--budget", 2, "--share", 0.2)


@pytest.fixture(scope="module")
def expected(table):
    """What the room below finds."""
    divided = load(str(table), Columns(user="who", item="what", titles=table.with_name("titles.csv")), share=0.2)
    contest = Contest(divided.valid, divided.test, named(MODELS.split(",")), k=5, budget=2)
    return {row.name: row for row in contest.run() if isinstance(row, Standing)}


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
        "Next: relae fit DATA --model",
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


def test_the_next_command_fits_the_best(table, columns, expected, shell, tmp_path):
    text = " ".join(shell.ok("compare", table, *columns, *GIVEN, "--models", MODELS).split())
    words = text.split("Next: relae fit DATA ")[1].split()
    shell.ok("fit", table, *columns, *words[:-1], tmp_path / "m")
    from relae import store

    best = max(expected.values(), key=lambda row: row.evaluation["ndcg@5"])
    assert repr(store.load(tmp_path / "m")) == best.evaluation.model


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
