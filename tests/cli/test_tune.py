"""`relae tune --model`: the parameters of any model, in a folder to fit and to report from; and the local solver."""

import json
import re

import polars as pl
import pytest

from relae import experiments, store
from relae.cli._wording import COMMAND_LINE
from relae.errors import DataError
from relae.evaluation import evaluate
from relae.experiments import Columns, Division, divide_data
from relae.recommender import Parameter
from relae.registry import kind
from relae.solvers import Local
from relae.tuning import Judge

from ..report.suite import Page, reported
from ..tuning.suite import Learner

GIVEN = ("--objective", "ndcg@10", "--share", 0.2)


def result(run):
    return json.loads((run / "result.json").read_text())


def judged(model, divided):
    """What the validation users say of a fitted model, weighted as in a search."""
    judge = Judge(divided.valid, ["ndcg@10"], divided.lengths)
    return judge.means(evaluate(model, divided.valid, ["ndcg"], [10]))["ndcg@10"]


@pytest.fixture(scope="module")
def filtered(table, tmp_path_factory):
    """The folder of a run over GF-CF's α, with its rank given."""
    run = tmp_path_factory.mktemp("filtered") / "run"
    columns = {"user": "who", "item": "what", "titles": table.with_name("titles.csv")}
    options = {"share": 0.2, "budget": 4, "objective": "ndcg@10", "wording": COMMAND_LINE}
    experiments.tune(table, "gfcf", {"rank": 12}, out=run, **options, **columns)
    return run


def test_the_folder_says_what_to_fit(filtered, table):
    found = result(filtered)
    assert found["kind"] == "gfcf"
    assert set(found["parameters"]) == {"alpha", "rank"}
    assert found["parameters"]["rank"] == 12
    assert list(found["space"]) == ["alpha"]  # what is given is not searched
    assert found["trials"] == 4
    assert found["model"] == repr(kind("gfcf")(**found["parameters"]))
    frame = pl.read_csv(filtered / "points.csv")
    assert frame["ndcg@10"].max() == pytest.approx(found["chosen"]["ndcg@10"])
    assert frame["alpha"][frame["ndcg@10"].arg_max()] == found["parameters"]["alpha"]
    assert "→ best" in (filtered / "result.md").read_text()
    divided = divide_data(table, Columns(user="who", item="what"), Division(share=0.2))
    model = kind("gfcf")(**found["parameters"]).fit(divided.valid.train)
    assert judged(model, divided) == pytest.approx(found["chosen"]["ndcg@10"])


def test_the_command_of_the_folder_makes_it_again(filtered, shell):
    words = result(filtered)["command"].replace("'", "").split()
    assert words[:2] == ["relae", "tune"]
    assert "--model gfcf --rank 12" in " ".join(words)
    before = (filtered / "journal.jsonl").read_bytes()
    shell.ok(*words[1:])
    assert (filtered / "journal.jsonl").read_bytes() == before  # every trial was there


def test_other_parameters_are_another_search(filtered, table, columns, shell):
    said = shell("tune", table, *columns, *GIVEN, "--model", "gfcf", "--rank", 9, "--out", filtered)
    assert "another search, which differs in parameters" in said.err
    said = shell("tune", table, *columns, *GIVEN, "--out", filtered)
    assert "another search, which differs in" in said.err


def test_it_reports_without_what_is_linear_only(filtered):
    page = Page(reported(filtered))
    assert not page.crossed
    assert not page.open
    for words in ("GFCF", "What was searched", "What it recommends", "popularity"):
        assert words in page.text
    for words in ("What ξ does", "The trade-off", "What goes together", "inversion", "How it learned", "Residual"):
        assert words not in page.text
    rows = page.tables["All fits, by the validation users"]
    assert len(rows) == 1 + result(filtered)["trials"]
    [chosen] = [row for row in rows if "chosen" in row[0]]
    assert float(chosen[1]) == pytest.approx(result(filtered)["parameters"]["alpha"], rel=1e-4)
    assert "Percentages are parts" not in page.text  # nothing says why


def test_a_report_of_figures_alone_needs_no_fit(filtered, monkeypatch):
    monkeypatch.setattr(kind("gfcf"), "fit", lambda *_, **__: pytest.fail("fitted again"))
    assert "What it recommends" not in reported(filtered, samples=0)


@pytest.mark.parametrize("key", ["kind", "parameters", "space", "chosen_trial"])
def test_a_damaged_run_is_refused(filtered, tmp_path, key):
    for name in ("journal.jsonl", "result.json"):
        (tmp_path / name).write_text((filtered / name).read_text())
    found = result(filtered)
    for wrong in (None, 300, [], "no such"):
        (tmp_path / "result.json").write_text(json.dumps(found | {key: wrong}))
        with pytest.raises(DataError):
            reported(tmp_path)


# --- what cannot be ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--model", "popularity"), "Popularity has nothing to tune"),
        (("--model", "ease"), "relae fit --from RUN --model ease"),
        (("--l2", 3), "--l2 cannot be fixed"),
        (("--model", "gfcf", "--keep", "recall@10"), "--keep is for the linear autoencoders"),
        (("--model", "gfcf", "--solver", "dual"), "--solver is for the linear autoencoders"),
        (("--model", "gfcf", "--search", "grid"), "--search is for the linear autoencoders"),
        (("--model", "gfcf", "--rank", 5, "--alpha", 0.1), "nothing is left to search"),
        (("--model", "gfcf", "--set", "rank=5", "--set", "alpha=0.1"), "nothing is left to search"),
        (("--model", "gfcf", "--xi", 0.3), "GFCF has no --xi"),
        (("--model", "gfcf", "--rank", 5000), "rank must lie between 1 and"),
        (("--model", "gfcf", "--rank", 5, "--budget", 0), "budget must be"),
        (("--model", "lightgcn"), "LightGCN knows only the users whom it is fitted to"),
    ],
)
def test_one_line_says_what_is_wrong_and_nothing_is_left(arguments, said, table, columns, tmp_path, shell):
    done = shell("tune", table, *columns, *GIVEN, *arguments, "--out", tmp_path / "run")
    assert said in done.line()
    assert not (tmp_path / "run").exists()


# --- models that learn by epochs ---------------------------------------------------------------------------------


class Deep(Learner):
    """A model with the parameters that say how long to learn."""

    PARAMETERS = (
        *Learner.PARAMETERS,
        Parameter("epochs", 50, low=1, whole=True),
        Parameter("validation_share", 0.1, low=0, high=1, below=True),
    )

    def __init__(self, a=0.9, b=3, c="kept", epochs=50, validation_share=0.1):
        super().__init__(a, b, c)
        self.epochs, self.validation_share = epochs, validation_share


@pytest.fixture
def deep(table, tmp_path, monkeypatch):
    """The folder of a run over a fake model that is trained."""
    for module in (experiments._run, experiments._tune, experiments._models):
        monkeypatch.setattr(module, "kind", lambda name: Deep if name == "deep" else kind(name))
    options = {"share": 0.2, "split": "weak", "budget": 3, "objective": "ndcg@10"}
    experiments.tune(table, "deep", out=tmp_path / "run", **options, user="who", item="what")
    return tmp_path / "run"


def test_the_last_fit_has_as_many_epochs_as_were_best(deep):
    found = result(deep)
    assert found["kind"] == "deep"
    assert (found["parameters"]["epochs"], found["parameters"]["validation_share"]) == (4, 0.0)
    assert not list(deep.glob("*.checkpoint"))


def test_the_learning_curve_is_in_the_report(deep):
    page = reported(deep)
    text = Page(page).text
    assert "trained for 5 epochs and ended because the validation had not improved" in text
    assert "Epoch 4 was the best" in text
    assert len(re.findall(r'class="curve picked"', page)) == 4  # value and loss, for a wide page and a narrow one
    assert not re.search(r'="[^"]*\bnan\b', page)


# --- the local solver --------------------------------------------------------------------------------------------


def test_the_default_is_a_row_and_tail_is_chosen_on_demand(table, columns, tmp_path, shell):
    given = ("tune", table, *columns, *GIVEN, "--budget", 3, "--no-test")
    said = shell.ok(*given, "--out", tmp_path / "best", "--choose", "best")
    assert "default" in said
    assert "on the validation users" in " ".join(said.split())
    shell.ok(*given, "--out", tmp_path / "tail")
    best, tail = (result(tmp_path / name) for name in ("best", "tail"))
    assert best["default"] == tail["default"]
    assert best["chosen"]["ndcg@10"] >= tail["chosen"]["ndcg@10"] >= tail["default"]["ndcg@10"]
    kept = tail["chosen"] == tail["default"]
    assert kept or tail["chosen"]["tail_ndcg@10"] >= best["chosen"]["tail_ndcg@10"]
    assert "--choose best" in best["command"]
    assert (
        "--choose is for the linear autoencoders"
        in shell(*given, "--out", tmp_path / "k", "--model", "gfcf", "--choose", "best").err
    )


def test_the_local_solver_with_its_neighbours(table, columns, tmp_path, shell):
    given = (*GIVEN, "--budget", 2, "--solver", "local", "--out", tmp_path / "run")
    shell.ok("tune", table, *columns, *given, "--neighbours", 7)
    found = result(tmp_path / "run")
    assert (found["request"]["solver"], found["request"]["parameters"]) == ("local", {"neighbours": 7})
    lines = (tmp_path / "run/journal.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["neighbours"] == 7
    assert {json.loads(line)["facts"]["solver"] for line in lines[1:]} == {"local"}
    said = shell("tune", table, *columns, *given, "--neighbours", 9)
    assert "differs in neighbours" in said.err
    divided = divide_data(table, Columns(user="who", item="what"), Division(share=0.2))
    chosen = found["chosen"]
    model = kind("rdlae")(chosen["l2"], chosen["dropout"], chosen["xi"]).fit(divided.valid.train, solver=Local(7))
    assert judged(model, divided) == pytest.approx(chosen["ndcg@10"], abs=1e-6)
    assert "an approximation" in Page(reported(tmp_path / "run")).text


def test_the_journal_of_a_linear_run_says_what_was_searched(tuned):
    purpose = json.loads((tuned / "journal.jsonl").read_text().splitlines()[0])
    said = ["data", "keep", "loss", "model", "objective", "parameters", "search", "seed", "solver", "version"]
    assert sorted(purpose) == said
    found = result(tuned)
    assert (list(found["space"]), found["dials"]) == (["l2", "dropout", "xi"], ["xi"])
    assert repr(kind(found["kind"])(**found["parameters"])) == found["model"]


# --- a real one that is trained ----------------------------------------------------------------------------------


@pytest.mark.parametrize("split", ["weak", "last"])
def test_a_trained_model_from_the_search_to_the_report(split, table, columns, tmp_path, shell, request):
    pytest.importorskip("torch")
    if split == "last":
        table = request.getfixturevalue("dated")
        columns = ("--user", "who", "--item", "what", "--timestamp", "when")
    given = ("--objective", "ndcg@10", "--split", split, "--model", "grmf", "--dim", 4, "--epochs", 3, "--budget", 2)
    shell.ok("tune", table, *columns, *given, "--set", "every=1", "--out", tmp_path / "run")
    found = result(tmp_path / "run")
    assert found["kind"] == "grmf"
    assert found["parameters"]["dim"] == 4
    assert "dim" not in found["space"]
    assert 1 <= found["parameters"]["epochs"] <= 3
    text = Page(reported(tmp_path / "run")).text
    assert "How it learned" in text
    shell.ok("fit", "--from", tmp_path / "run", "--out", tmp_path / "model")
    assert json.loads((tmp_path / "model/model.json").read_text())["parameters"] == found["parameters"]


@pytest.fixture
def dated(table, tmp_path):
    frame = pl.read_csv(table)
    frame.with_columns(pl.Series("when", range(frame.height))).write_csv(tmp_path / "dated.csv")
    return tmp_path / "dated.csv"


def test_what_the_local_run_chose_is_fitted_so(table, columns, tmp_path, shell):
    given = (*GIVEN, "--budget", 1, "--solver", "local", "--neighbours", 7, "--no-test", "--out", tmp_path / "run")
    shell.ok("tune", table, *columns, *given)
    shell.ok("fit", "--from", tmp_path / "run", "--out", tmp_path / "model")
    model = store.load(tmp_path / "model")
    assert (model.plan_.solver, model.neighbours_) == ("local", 7)
