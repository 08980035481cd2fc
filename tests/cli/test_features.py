"""Features of items, weights of interactions, and items that are new: the options do what the Python API does."""

import csv
import json
import warnings

import numpy as np
import polars as pl
import pytest

from relae import DAN, DEQL, RDLAE, Interactions, store
from relae.baselines import ContentKNN, Popularity, Random
from relae.errors import DataError
from relae.evaluation import Evaluations, evaluate, hold_out_new_items, hold_out_users
from relae.experiments import Columns, Division, divide_data, matrix_shape

FIGURES = ("--metrics", "ndcg,recall,coverage", "--k", "3")
METRICS, KS = ("ndcg", "recall", "coverage"), (3,)
SEPARATORS = {"tags": "|"}


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """The taste, the tags and the price of 50 items, of which two have no users."""
    path = tmp_path_factory.mktemp("features") / "items.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["what", "taste", "tags", "price"])
        for item in range(50):
            rows.writerow([1000 + item, f"taste {item % 4}", f"t{item % 4}|s{item % 3}", item % 7 + 0.5])
    return path


@pytest.fixture(scope="module")
def given(columns, features):
    """The options that name them."""
    return (*columns, "--features", features, "--separator", "tags=|")


@pytest.fixture(scope="module")
def rich(data, features):
    return data.with_features(features, item="what", separators=SEPARATORS)


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    """Purchases with amounts and times."""
    path = tmp_path_factory.mktemp("dated") / "log.csv"
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "user": rng.integers(0, 60, 600),
            "item": rng.integers(0, 20, 600),
            "amount": rng.integers(1, 9, 600),
            "ts": rng.integers(0, 10_000, 600),
        }
    )
    frame.write_csv(path)
    return path


# --- features ----------------------------------------------------------------------------------------------------


def test_a_model_is_fitted_with_features_that_count_what_is_asked(table, given, rich, tmp_path, shell):
    text = shell.ok("fit", table, *given, "--l2", 10, "--feature-weight", 5, "--out", tmp_path / "m")
    model = RDLAE(l2=10.0).fit(rich, feature_weight=5.0)
    found = store.load(tmp_path / "m")
    assert (found.feature_weight_, len(found.items_)) == (5.0, 50)
    np.testing.assert_allclose(found.weights(), model.weights(), atol=1e-6)
    assert f"{rich.features.n_features}, of 50 items; each counts 5 beside a user" in " ".join(text.split())
    assert "each counts 5 beside a user" in " ".join(shell.ok("inspect", tmp_path / "m").split())
    allowed = ("--history", "1024", "--allow", "1048,1049", "--json")
    [first, _] = json.loads(shell.ok("recommend", tmp_path / "m", *allowed))["items"]
    assert (first["item"], first["popularity"]) == (1048, 0)  # new, with the same taste and tags


def test_some_columns_and_no_features_at_all(table, given, data, features, tmp_path, shell):
    shell.ok("fit", table, *given[:-2], "--l2", 10, "--feature-columns", "taste, price", "--out", tmp_path / "m")
    rich = data.with_features(features, item="what", columns=["taste", "price"])
    np.testing.assert_allclose(store.load(tmp_path / "m").weights(), RDLAE(10.0).fit(rich).weights(), atol=1e-6)
    text = shell.ok("fit", table, *given, "--l2", 10, "--feature-weight", 0, "--out", tmp_path / "n")
    assert "features" not in text
    assert store.load(tmp_path / "n").item_features_ is None


def test_features_that_count_nothing_are_left_out_of_every_model(table, given, rich, tmp_path, shell):
    said = [
        shell(command, table, *given, "--feature-weight", 0, "--model", "contentknn", *more).line()
        for command, *more in (("fit", "--out", tmp_path / "m"), ("evaluate", "--share", 0.2, *FIGURES))
    ]
    assert said[0] == said[1]
    assert said[0].startswith("there are no features of items to compare")
    options = ("--model", "deql", "--l2", 10, "--out", tmp_path / "n")
    for weight in (0.0, 5.0):
        shell.ok("fit", table, *given, "--feature-weight", weight, *options)
        wanted = DEQL(10.0).fit(rich, feature_weight=weight)
        np.testing.assert_allclose(store.load(tmp_path / "n").weights(), wanted.weights(), atol=1e-6)
    answer = json.loads(shell.ok("plan", table, *given, "--feature-weight", 0, "--json"))
    assert {entry["square"] for entry in answer["solvers"] if entry["solver"] == "dual"} == {160}


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0, 40.0])
def test_whatever_is_divided_has_features_that_count_as_much(table, given, rich, weight, shell):
    options = ("--l2", 10, "--share", 0.2, "--feature-weight", weight)
    found = json.loads(shell.ok("evaluate", table, *given, *options, *FIGURES, "--json"))
    split = hold_out_users(rich, 0.2, rng=np.random.default_rng(0))
    model = RDLAE(l2=10.0).fit(split.train, feature_weight=weight)
    wanted = evaluate(model, split, METRICS, KS).records()
    assert [row["mean"] for row in found] == pytest.approx([row["mean"] for row in wanted])


def test_a_run_with_features_says_so_to_a_fit(table, given, rich, tmp_path, shell):
    folder = tmp_path / "run"
    options = ("--objective", "ndcg@5", "--share", 0.2, "--budget", 2, "--no-test", "--out", folder)
    shell.ok("tune", table, *given, *options, "--feature-weight", 3)
    result = json.loads((folder / "result.json").read_text())
    split = divide_data(table, Columns.from_record(result["request"]["columns"]), Division(share=0.2)).valid
    again = hold_out_users(hold_out_users(rich, 0.2, rng=(rng := np.random.default_rng(0))).train, 0.2, rng=rng)
    chosen = result["chosen"]
    model = RDLAE(chosen["l2"], chosen["dropout"], chosen["xi"])
    assert evaluate(model.fit(again.train, feature_weight=3.0), again, ["ndcg"], [5])["ndcg@5"] == pytest.approx(
        chosen["ndcg@5"], abs=1e-6
    )
    assert split.train.features.n_features == rich.features.n_features
    shell.ok("fit", "--from", folder, "--out", tmp_path / "m")
    assert store.load(tmp_path / "m").feature_weight_ == 3.0
    assert "--separator 'tags=|' --feature-weight 3" in result["command"]
    assert "differs in data" in shell("tune", table, *given, *options, "--feature-weight", 2).err
    assert "Features of items" in (shell.ok("report", folder) and (folder / "report.html").read_text())


def test_lists_have_features_too(tmp_path, shell):
    (tmp_path / "train.txt").write_text("0 1 2\n1 0\n2 2 3\n3 1 3\n")
    (tmp_path / "test.txt").write_text("0 0\n1 3\n2 1\n")
    (tmp_path / "items.csv").write_text("item,kind\n0,a\n1,b\n2,a\n3,b\n4,a\n")
    columns = Columns(features=tmp_path / "items.csv")
    divided = divide_data(tmp_path, columns, Division(share=0.5))
    for data in (divided.data, divided.valid.train, divided.test.train):
        assert data.n_items == 5
        assert data.features.matrix.toarray().tolist() == [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0]]
    assert divide_data(tmp_path, Columns(), Division(share=0.5)).fingerprint != divided.fingerprint
    shell.ok("fit", tmp_path, "--features", tmp_path / "items.csv", "--out", tmp_path / "m")
    assert store.load(tmp_path / "m").item_features_.shape == (5, 2)


def test_lists_of_other_users_have_features_too(tmp_path):
    for name, text in {
        "train": "0 1 2\n1 0 3\n2 2 3\n",
        "valid_in": "0 1\n",
        "valid": "0 2\n",
        "test_in": "0 0\n",
        "test": "0 3\n",
    }.items():
        (tmp_path / f"{name}.txt").write_text(text)
    (tmp_path / "items.csv").write_text("sku,kind\n0,a\n1,b\n2,a\n3,b\n4,a\n")
    columns = Columns(item="sku", features=tmp_path / "items.csv", feature_weight=4.0)  # --item is of the features
    divided = divide_data(tmp_path, columns)
    for data in (divided.data, divided.valid.train, divided.test.train):
        assert data.features.matrix.toarray().tolist() == [[2, 0], [0, 2], [2, 0], [0, 2], [2, 0]]  # √4
    assert divided.test.truth.shape == (1, 5)


def test_what_a_fit_costs_counts_features_as_users(table, given, rich, shell):
    assert matrix_shape(rich) == (160 + rich.features.n_features, 50, rich.n_interactions + rich.features.matrix.nnz)
    answer = json.loads(shell.ok("plan", table, *given, "--json"))
    [dual] = [entry for entry in answer["solvers"] if entry["solver"] == "dual"]
    assert dual["square"] == 160 + rich.features.n_features


def test_columns_that_tell_nothing_are_named_in_the_words_of_the_command_line(table, columns, tmp_path, shell):
    path = tmp_path / "items.csv"
    rows = [f"{1000 + item},{item % 2},name of {item}" for item in range(48)]
    path.write_text("\n".join(["what,kind,name", *rows]))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        said = shell("fit", table, *columns, "--features", path, "--model", "contentknn", "--out", tmp_path / "m").err
    assert "'name' (most items have a value of their own" in said or "'name' (it has no value that" in said
    assert "--feature-columns" in said


# --- items that are new ------------------------------------------------------------------------------------------


def test_new_items_are_found_by_their_features(table, given, rich, shell, tmp_path):
    options = ("--split", "new-items", "--share", 0.2, "--l2", 10)
    text = shell.ok("evaluate", table, *given, *options, *FIGURES, "--json", "--out", tmp_path / "x.md")
    split = hold_out_new_items(rich, 0.2, rng=np.random.default_rng(0))
    models = [RDLAE(l2=10.0), ContentKNN(), Popularity(), Random()]
    wanted = [evaluate(model.fit(split.train), split, METRICS, KS) for model in models]
    assert json.loads(text) == json.loads(Evaluations(wanted).to_json())
    ours, neighbours, _, chance = (each["ndcg@3"] for each in wanted)
    assert min(ours, neighbours) > chance
    shown = (tmp_path / "x.md").read_text()
    assert all(type(model).__name__ in shown for model in models)


def test_without_features_there_are_no_neighbours_by_them(table, columns, shell):
    options = ("--split", "new-items", "--share", 0.2)
    text = shell.ok("evaluate", table, *columns, *options, "--model", "popularity", *FIGURES)
    assert "ContentKNN" not in text
    assert text.count("Popularity()") == 1
    assert "Random()" in text


def test_models_are_compared_by_new_items(table, given, columns, shell):
    options = ("--split", "new-items", "--share", 0.2, "--budget", 2, "--k", 3, "--json")
    answer = json.loads(shell.ok("compare", table, *given, *options, "--models", "ease,contentknn,random"))
    figures = {row["model"]: row["metrics"]["ndcg@3"] for row in answer["models"]}
    assert set(figures) == {"ease", "contentknn", "random", "popularity"}
    assert max(figures, key=figures.get) in ("ease", "contentknn")
    assert answer["columns"]["separator"] == ["tags=|"]
    answer = json.loads(shell.ok("compare", table, *columns, *options, "--models", "contentknn"))
    [absent] = answer["left_out"]
    assert absent["reason"] == "there are no features of items to compare: give --features FILE"


def test_a_search_and_its_report_are_about_new_items(table, given, tmp_path, shell):
    options = (
        "--split",
        "new-items",
        "--share",
        0.2,
        "--objective",
        "ndcg@3",
        "--budget",
        2,
        "--out",
        tmp_path / "run",
    )
    shell.ok("tune", table, *given, *options)
    shell.ok("report", tmp_path / "run")
    page = (tmp_path / "run/report.html").read_text()
    assert "held-out new items" in page


# --- weights -----------------------------------------------------------------------------------------------------


def test_amounts_are_weights_and_ages_are_the_models(dated, tmp_path, shell):
    given = ("--weight", "amount", "--timestamp", "ts", "--weighting", "log")
    shell.ok("fit", dated, *given, "--l2", 10, "--half-life", 2000, "--fading", 0.5, "--out", tmp_path / "m")
    plain = Interactions.read(dated, weight="amount", weighting="log", timestamp="ts")
    saved = store.open_model(tmp_path / "m").histories
    assert np.array_equal(saved.matrix.data, plain.matrix.data)
    assert np.array_equal(saved.times, plain.times)
    model = RDLAE(l2=10.0, half_life=2000, fading=0.5).fit(plain)
    for source in (("--histories", dated, *given), ("--all-users",)):
        rows = pl.read_csv(shell.ok("recommend", tmp_path / "m", *source, "--k", 2, "--format", "csv").encode())
        ids, scores = model.recommend(plain, 2)
        assert rows["item"].to_list() == ids.ravel().tolist()
        np.testing.assert_allclose(rows["score"], scores.ravel(), rtol=1e-4)


def test_weights_are_another_search(dated, tmp_path, shell):
    given = ("--weight", "amount", "--objective", "ndcg@5", "--share", 0.2, "--budget", 1, "--no-test")
    shell.ok("tune", dated, *given, "--weighting", "sqrt", "--out", tmp_path / "run")
    result = json.loads((tmp_path / "run/result.json").read_text())
    assert "--weighting sqrt" in result["command"]
    divided = divide_data(dated, Columns.from_record(result["request"]["columns"]), Division(share=0.2))
    amounts = Interactions.read(dated, weight="amount", weighting="linear").matrix.data
    np.testing.assert_allclose(divided.data.matrix.data, np.sqrt(amounts), rtol=1e-6)
    other = shell("tune", dated, *given, "--weighting", "linear", "--out", tmp_path / "run")
    assert "differs in data" in other.err


@pytest.mark.filterwarnings("always::relae.errors.WeightingWarning")
def test_a_weighting_that_is_not_given_is_chosen_and_told(dated, shell, tmp_path):
    done = shell("fit", dated, "--weight", "amount", "--out", tmp_path / "model", "--json")
    assert done.err == (
        "relae: --weight amount: an amount a counts log₂(1 + a) (there are too few users to try). Set --weighting log "
        "to keep that, or another one of linear, sqrt, log, binary\n"
    )
    wanted = Interactions.read(dated, weight="amount", weighting="log")
    assert np.array_equal(store.open_model(tmp_path / "model").histories.matrix.data, wanted.matrix.data)


def test_one_for_all_is_the_default(dated):
    assert (divide_data(dated, Columns(), Division(share=0.2)).data.matrix.data == 1).all()


# --- what cannot be ----------------------------------------------------------------------------------------------


def test_options_of_features_need_features():
    for options in ({"feature_weight": 2.0}, {"separator": ["a=|"]}, {"feature_columns": "a"}):
        with pytest.raises(DataError, match="is for features, which is not given"):
            Columns(**options)


def test_saved_columns_come_back(features):
    columns = Columns(features=features, separator=["a=|"], feature_weight=2.0, timestamp="ts")
    saved = json.loads(json.dumps({name: str(v) if name == "features" else v for name, v in vars(columns).items()}))
    assert Columns.from_record(saved) == columns


def test_a_model_with_norms_takes_features(table, given, rich, tmp_path, shell):
    shell.ok("fit", table, *given, "--model", "dan", "--l2", 5, "--item-norm", 0.2, "--out", tmp_path / "m")
    np.testing.assert_allclose(
        store.load(tmp_path / "m").weights(), DAN(5.0, item_norm=0.2).fit(rich).weights(), atol=1e-6
    )
