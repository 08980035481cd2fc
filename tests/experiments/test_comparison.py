"""A comparison chooses by validation users, judges once by test users, and holds one fitted model at a time."""

import gc
import io
import weakref
from dataclasses import replace
from functools import cache
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from relae import Interactions, baselines, models
from relae.data import Ids
from relae.errors import DataError
from relae.evaluation import Split, evaluate, hold_out_items, hold_out_users
from relae.experiments import METRICS, Comparison, ComparisonRow, ComparisonTable, LeftOut, holm, list_models
from relae.recommender import HistoryRecommender, Parameter, Range
from relae.registry import KINDS, kind
from relae.tuning import Epoch, tune

from ..oracles import csr, example

K = 5
CHEAP = ["rdlae", "ease", "dlae", "popularity", "itemknn", "contentknn"]


@cache
def splits(how="strong"):
    data = Interactions(
        csr(example(90, 24, weighted=False)), [f"u{u}" for u in range(90)], [f"i{i}" for i in range(24)]
    )
    rng = np.random.default_rng(0)
    divide = hold_out_users if how == "strong" else hold_out_items
    test = divide(data, 0.3, rng=rng)
    return divide(test.train, 0.3, rng=rng), test


def make_comparison(names=CHEAP, how="strong", **options):
    return Comparison(*splits(how), list_models(names), **{"k": K, "budget": 3} | options)


@cache
def cheap() -> list[ComparisonRow | LeftOut]:
    return list(make_comparison().run())


def tabulate(found=None) -> ComparisonTable:
    return make_comparison().table(cheap() if found is None else found)


# --- the registry ------------------------------------------------------------------------------------------------


def test_every_model_of_the_package_has_a_name():
    rooms = [getattr(room, name) for room in (models, baselines) for name in room.__all__]
    concrete = {
        each
        for each in rooms
        if isinstance(each, type) and issubclass(each, HistoryRecommender) and not each.__abstractmethods__
    } - {models.LinearAutoencoder}
    assert {kind(name) for name in KINDS} == concrete
    assert {name: kind(name).__name__ for name in KINDS} == dict(KINDS)
    assert [name.lower() for name in KINDS.values()] == list(KINDS)


def test_a_name_is_found_in_any_case_and_a_wrong_one_is_not():
    assert kind("ItemKNN") is kind("itemknn") is baselines.ItemKNN
    with pytest.raises(DataError, match=r"no model 'popularty' \(did you mean popularity\?\): the models are dan, "):
        kind("popularty")


def test_popularity_is_always_in():
    assert list_models(["EASE", "ease"]) == ["ease", "popularity"]
    assert list_models(None) == list(KINDS)


# --- choosing and judging ----------------------------------------------------------------------------------------


def test_parameters_are_those_of_the_searches():
    valid, _ = splits()
    rows = {row.name: row for row in tabulate().rows}
    found = tune("rdlae", valid, objective=f"ndcg@{K}", budget=3, metrics=())
    for name in ("rdlae", "ease", "dlae"):
        assert rows[name].parameters == found.model_of(found.best(KINDS[name]), KINDS[name]).get_params()
    wanted = tune(baselines.ItemKNN(), valid, objective=f"ndcg@{K}", budget=3, metrics=()).chosen_model()
    assert rows["itemknn"].parameters == wanted.get_params()
    assert (rows["popularity"].chosen, rows["popularity"].choose_seconds) == ([], 0.0)


@pytest.mark.parametrize("name", ["rdlae", "ease", "dlae", "popularity", "itemknn"])
def test_figures_are_those_of_a_fit_to_train_and_validation(name):
    _, test = splits()
    [row] = [row for row in tabulate().rows if row.name == name]
    model = kind(name)(**row.parameters).fit(test.train)
    wanted = evaluate(model, test, tuple(METRICS), [K])
    assert row.evaluation.means == pytest.approx(wanted.means, abs=1e-6)
    assert row.evaluation.model == repr(model)
    assert row.size == sum(np.asarray(array).nbytes for array in model.state("fitted").arrays.values())


@cache
def beyond():
    """Models beyond the paper."""
    return {row.name: row for row in make_comparison(["dan", "deql", "random", "ease"], budget=4).run()}


def test_dan_has_a_search_of_its_own():
    valid, test = splits()
    found = tune("dan", valid, objective=f"ndcg@{K}", budget=4, metrics=())
    row = beyond()["dan"]
    assert row.parameters == found.model_of(found.best("DAN"), "DAN").get_params()
    assert row.choice == "out of 4 inversions for DAN"
    assert list(row.chosen) == ["l2", "dropout", "xi", "user_norm", "item_norm"]
    plain = tune("rdlae", valid, objective=f"ndcg@{K}", budget=4, metrics=())
    assert beyond()["ease"].parameters == plain.model_of(plain.best("EASE"), "EASE").get_params()
    wanted = evaluate(models.DAN(**row.parameters).fit(test.train), test, tuple(METRICS), [K])
    assert row.evaluation.means == pytest.approx(wanted.means, abs=1e-6)
    assert (row.evaluation.xi, row.evaluation.dial) == (None, None)


@pytest.mark.parametrize("name", ["deql", "random"])
def test_other_models_beyond_the_paper_are_judged_by_themselves(name):
    _, test = splits()
    row = beyond()[name]
    wanted = evaluate(kind(name)(**row.parameters).fit(test.train), test, tuple(METRICS), [K])
    assert row.evaluation.means == pytest.approx(wanted.means, abs=1e-6)


def test_deql_is_chosen_within_its_space(monkeypatch):
    space = {"l2": Range(1, 1000, log=True), "dropout": Range(0.05, 0.9), "kept": Range(0, 1)}
    monkeypatch.setattr(models.DEQL, "SPACE", space, raising=False)
    rows = {row.name: row for row in make_comparison(["deql"]).run()}
    valid, _ = splits()
    wanted = tune(models.DEQL(), valid, objective=f"ndcg@{K}", budget=3, metrics=()).chosen_model()
    assert rows["deql"].parameters == wanted.get_params()


def with_half_the_test_users(names):
    valid, test = splits()
    rows = np.arange(0, len(test.users), 2)
    other = replace(test, users=Ids(test.users.values[rows]), histories=test.histories[rows], truth=test.truth[rows])
    return list(Comparison(valid, other, list_models(names), k=K, budget=3).run())


def test_the_test_users_take_no_part_in_the_choice():
    """Other things to find, the same parameters."""
    found = with_half_the_test_users(CHEAP)
    ours, theirs = ({row.name: row.parameters for row in tabulate(rows).rows} for rows in (cheap(), found))
    assert ours == theirs


def test_one_fitted_model_at_a_time(monkeypatch):
    alive: weakref.WeakSet[HistoryRecommender] = weakref.WeakSet()
    remember = HistoryRecommender.remember
    most = []

    def counted(self, interactions):
        gc.collect()
        most.append(len([model for model in alive if model is not self]))
        alive.add(self)
        remember(self, interactions)

    monkeypatch.setattr(HistoryRecommender, "remember", counted)
    for found in make_comparison(["rdlae", "ease", "itemknn"]).run():
        assert isinstance(found, ComparisonRow)
        gc.collect()
        assert not alive  # forgotten before anyone hears of it
    assert len(most) >= 3 + 3 + 3
    assert max(most) == 0


def test_models_that_are_done_are_not_run_again():
    found = list(make_comparison().run(done=["rdlae", "ease", "dlae", "contentknn"]))
    assert [row.name for row in found] == ["popularity", "itemknn"]


def test_progress_goes_up_and_every_bar_ends():
    seen: dict[str, list[float]] = {}
    list(make_comparison(["ease", "itemknn"]).run(progress=lambda stage, part: seen.setdefault(stage, []).append(part)))
    assert seen["compare"] == sorted(seen["compare"])
    assert {"linear: search", "itemknn: search", "compare"} <= set(seen)
    assert {stage: parts[-1] for stage, parts in seen.items()} == dict.fromkeys(seen, 1.0)


# --- who cannot take part ----------------------------------------------------------------------------------------


def test_a_model_that_fails_is_left_out_with_its_reason():
    [absent] = [row for row in cheap() if isinstance(row, LeftOut)]
    assert (absent.name, absent.trace) == ("contentknn", "")
    assert "there are no features of items" in str(absent.reason)
    assert tabulate().absences() == [f"left out: ContentKNN: {absent.reason}"]


def test_a_search_that_is_too_short_for_a_model_says_so():
    found = list(make_comparison(["rdlae", "ease"], budget=1).run())  # its only inversion has a dropout
    [absent] = [row for row in found if isinstance(row, LeftOut)]
    assert (absent.name, absent.trace) == ("ease", "")
    assert (
        str(absent.reason) == "the search ended after 1 inversion without one of this model: allow more with budget=…"
    )
    assert "rdlae" in [row.name for row in found if isinstance(row, ComparisonRow)]


def test_a_small_catalog_has_a_gfcf_of_fewer_vectors():
    """24 items, where its default is 256 and its range begins at 32."""
    [row] = [row for row in make_comparison(["gfcf"], budget=4).run() if row.name == "gfcf"]
    assert isinstance(row, ComparisonRow)
    assert 1 <= row.parameters["rank"] <= 23


def failing(error):
    def fit(self, data, **options):
        raise error

    return fit


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ImportError("libc10.so: cannot open\n shared object"), "ImportError: libc10.so: cannot open shared object"),
        (np.linalg.LinAlgError("Singular matrix"), "LinAlgError: Singular matrix"),
        (RuntimeError(), "RuntimeError"),
    ],
)
@pytest.mark.parametrize(
    ("fails", "absent"),
    [("relae.baselines.ItemKNN", ["itemknn"]), ("relae.models.LinearAutoencoder", ["ease", "lae"])],
)
def test_an_error_that_nobody_foresaw_ends_one_model_and_not_the_others(fails, absent, error, reason, monkeypatch):
    monkeypatch.setattr(f"{fails}.fit", failing(error))
    found = list(make_comparison(["ease", "lae", "itemknn"]).run())
    assert {row.name for row in found} == {"ease", "lae", "itemknn", "popularity"}
    left = [row for row in found if isinstance(row, LeftOut)]
    assert [(row.name, str(row.reason)) for row in left] == [(name, reason) for name in absent]
    assert all(row.trace.startswith("Traceback") and "in fit" in row.trace for row in left)


def test_a_last_fit_that_fails_leaves_the_other_fits(monkeypatch):
    """RDLAE and EASE have a fit each, and that of RDLAE, with dropout, is the first."""
    fit, (_, test) = models.LinearAutoencoder.fit, splits("strong")

    def failing_last(self, data, **options):
        if data is test.train and self.dropout > 0:
            raise ZeroDivisionError
        return fit(self, data, **options)

    monkeypatch.setattr("relae.models.LinearAutoencoder.fit", failing_last)
    absent, *others = make_comparison(["rdlae", "ease"]).run()
    assert (absent.name, str(absent.reason)) == ("rdlae", "ZeroDivisionError")
    assert [(type(row), row.name) for row in others] == [(ComparisonRow, "ease"), (ComparisonRow, "popularity")]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_who_ends_it_ends_all_of_it(error, monkeypatch):
    monkeypatch.setattr("relae.baselines.ItemKNN.fit", failing(error))
    with pytest.raises(error):
        list(make_comparison(["itemknn"]).run())


def test_a_model_that_failed_is_forgotten(monkeypatch):
    alive: weakref.WeakSet[HistoryRecommender] = weakref.WeakSet()

    def fit(self, data, **options):
        alive.add(self)
        raise RuntimeError("too many")

    monkeypatch.setattr("relae.baselines.ItemKNN.fit", fit)
    for _ in make_comparison(["itemknn"]).run():
        gc.collect()
        assert not alive


def test_a_folder_of_another_search_is_refused(tmp_path):
    list(make_comparison(["itemknn"], folder=tmp_path, purpose={"k": 4}).run())
    with pytest.raises(DataError, match="is the journal of another search, which differs in k"):
        list(make_comparison(["itemknn"], folder=tmp_path).run())


def test_models_that_know_their_users_only_are_left_out_where_users_are_new():
    found = list(make_comparison(["lightgcn", "grmf"]).run())
    absent = [row for row in found if isinstance(row, LeftOut)]
    assert [row.name for row in absent] == ["grmf", "lightgcn"]
    [line] = tabulate(found).absences()
    assert line.startswith("left out: GRMF, LightGCN: ")
    assert "split='weak' admits them" in line


def test_without_torch_the_trained_models_are_left_out(monkeypatch):
    import sys

    for name in [name for name in sys.modules if name.startswith("relae.baselines.neural")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    found = list(make_comparison(["multvae", "lightgcn"], "weak").run())
    assert [type(row) for row in found] == [ComparisonRow, LeftOut, LeftOut]
    [line] = tabulate(found).absences()
    assert line.startswith("left out: MultVAE, LightGCN: ")
    assert "pip install 'relae[neural]'" in line


# --- trained models ----------------------------------------------------------------------------------------------


class Given(NamedTuple):
    """What a fit was given."""

    data: Interactions
    validation: Split | None
    time_budget: float | None
    parameters: dict


class Pupil(baselines.Popularity):
    """Learns by epochs, of which the fourth is the best of those that are judged."""

    trains = True
    fits: ClassVar[list[Given]] = []
    PARAMETERS = (
        Parameter("epochs", 9, low=1, whole=True),
        Parameter("patience", 3, low=0, whole=True),
        Parameter("validation_share", 0.1, low=0, high=1, below=True),
        Parameter("objective", "ndcg@20"),
    )

    def __init__(self, epochs=9, patience=3, validation_share=0.1, objective="ndcg@20"):
        self.epochs, self.patience = epochs, patience
        self.validation_share, self.objective = validation_share, objective

    def fit(self, data, *, validation=None, checkpoint=None, time_budget=None, progress=None):
        self.fits.append(Given(data, validation, time_budget, self.get_params()))
        self.best_epoch_, self.epochs_, self.stopped_ = (self.epochs if validation is None else 4), 7, "patience"
        self.curve_ = [Epoch(epoch, float(epoch), 0.0, 0.0) for epoch in range(1, 8)]
        return super().fit(data)


def test_a_trained_model_gets_half_its_time_to_find_the_epochs_of_the_last_fit(monkeypatch):
    game = make_comparison(["grmf"], time_budget=60.0)
    monkeypatch.setattr("relae.experiments._comparison.kind", lambda name: Pupil if name == "grmf" else kind(name))
    monkeypatch.setattr(Pupil, "fits", [])
    [row] = [row for row in game.run() if row.name == "grmf"]
    first, last = Pupil.fits
    assert first.data is game.valid.train
    assert first.validation is game.valid
    assert first.time_budget == 30.0
    assert first.parameters == Pupil(objective=f"ndcg@{K}").get_params()
    assert last.data is game.test.train
    assert (last.validation, last.time_budget) == (None, None)
    assert last.parameters == Pupil(epochs=4, patience=0, validation_share=0.0, objective=f"ndcg@{K}").get_params()
    assert row.parameters == last.parameters
    assert (row.choose_seconds, row.complete) == (7.0, True)


def test_the_epochs_are_the_best_by_the_validation_users_whoever_the_test_users_are():
    pytest.importorskip("torch", reason="the extra neural is not installed")
    valid, test = splits()
    [row] = [row for row in with_half_the_test_users(["multvae"]) if row.name == "multvae"]
    wanted, leak = (
        baselines.MultVAE(objective=f"ndcg@{K}").fit(valid.train, validation=by).best_epoch_ for by in (valid, test)
    )
    assert row.parameters["epochs"] == wanted != leak


def test_the_epochs_are_chosen_by_validation_users(tmp_path):
    pytest.importorskip("torch", reason="the extra neural is not installed")
    _, test = splits("weak")
    game = make_comparison(["grmf"], "weak", time_budget=0.3, folder=tmp_path)
    parts: list[float] = []
    rows = {row.name: row for row in game.run(progress=lambda stage, part: stage == "compare" and parts.append(part))}
    assert parts == sorted(parts)  # it is trained twice, and does not go back
    row = rows["grmf"]
    assert row.chosen == ["epochs"]
    assert (row.parameters["objective"], row.parameters["validation_share"]) == (f"ndcg@{K}", 0.0)
    model = baselines.GRMF(**row.parameters).fit(test.train)
    assert model.epochs_ == row.parameters["epochs"]
    assert row.evaluation.means == pytest.approx(evaluate(model, test, tuple(METRICS), [K]).means, abs=1e-5)
    assert row.complete is False  # not enough time for the default patience
    assert "cut off by the time budget" in tabulate(list(rows.values())).to_markdown()
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".training"] == []


# --- the table ---------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0.0, 1.0), max_size=12))
def test_holm_is_as_defined(p_values):
    corrected = holm(np.array(p_values))
    m = len(p_values)
    ordered = sorted(p_values)
    for p, found in zip(p_values, corrected, strict=True):
        steps = [min(1.0, (m - at) * other) for at, other in enumerate(ordered) if other <= p]
        assert found == pytest.approx(max(steps))


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12), st.floats(0.001, 0.2))
def test_holm_rejects_as_the_step_down_procedure_does(p_values, level):
    rejected, m = set(), len(p_values)
    for step, at in enumerate(np.argsort(p_values, kind="stable")):
        if p_values[at] * (m - step) > level:
            break
        rejected.add(int(at))
    assert {at for at, p in enumerate(holm(np.array(p_values))) if p <= level} == rejected


def test_rows_fall_and_the_best_is_pointed_out():
    table = tabulate()
    values = [row.evaluation[f"ndcg@{K}"] for row in table.rows]
    assert values == sorted(values, reverse=True)
    grid = table.grid()
    assert (0, 1) in grid.strong
    for row, column in grid.strong:
        name = f"{list(METRICS)[column - 1]}@{K}"
        shown = [round(each.evaluation[name], 4) for each in table.rows]
        assert shown[row] == max(shown)
    assert f"**{values[0]:.4f}".replace("0.", ".") + "**" in table.to_markdown()


def printed(thing, **options) -> list[str]:
    console = Console(width=200, file=io.StringIO(), **options)
    console.print(thing)
    return console.file.getvalue().splitlines()


def test_where_nothing_is_bold_the_best_has_a_star():
    """Every figure of a column with marks is then the best, not to be told from it, or worse."""
    table = tabulate()
    title, header, *lines = printed(table)
    assert title.startswith("5 models, ")
    strong = table.grid().strong
    for at, line in enumerate(lines[: len(table.rows)]):
        stars = {column for column, cell in enumerate(line.split()) if cell.endswith("*")}
        assert stars == {column for row, column in strong if row == at}
    assert "* the best of its column" in lines
    assert len(lines[0]) <= len(header)  # a star takes no room
    terminal = "\n".join(printed(table, force_terminal=True, color_system="standard"))
    assert "\x1b[1;33m" in terminal
    assert "*" not in terminal
    assert "*" not in table.to_markdown().replace("**", "")


def test_one_is_not_many():
    title, *_ = printed(ComparisonTable(tabulate().rows[:1], [], K, 10))
    assert title.startswith("1 model, judged once")
    assert "Holm's correction for 1 comparison\n" in ComparisonTable(tabulate().rows[:2], [], K, 10).to_markdown()


def test_marks_are_those_of_paired_tests():
    """The p-values of ndcg, one pair of models at a time, then corrected."""
    table, name = tabulate(), f"ndcg@{K}"
    best = table.rows[0].evaluation
    plain = [row.evaluation.compare(best)[name].p_value for row in table.rows[1:]]
    assert np.isnan(table.p_values[name][0])
    assert table.p_values[name][1:] == pytest.approx(holm(np.array(plain)), abs=0.02)
    for at, row in enumerate(table.grid().rows):
        marked = at > 0 and table.p_values[name][at] >= 0.05 and (at, 1) not in table.grid().strong
        assert row[1].endswith("≈") == marked
    assert "coverage@5" not in table.p_values  # of all lists together: there is nothing to pair


def test_a_model_without_rivals_has_no_marks():
    table = ComparisonTable(tabulate().rows[:1], [], K, 10)
    assert table.p_values == {}
    assert "≈" not in table.to_markdown()


def test_what_nobody_has_is_a_dash():
    """Without a single head item to find there is no figure, no best and no mark."""
    name = f"head_ndcg@{K}"
    rows = [
        replace(row, evaluation=replace(row.evaluation, values={**row.evaluation.values, name: nothing}))
        for row in tabulate().rows
        for nothing in [np.full(len(row.evaluation.users), np.nan)]
    ]
    grid = ComparisonTable(rows, [], K, 10).grid()
    assert {row[3] for row in grid.rows} == {"–"}
    assert not any(column == 3 for _, column in grid.strong)


def test_one_table_fits_a_terminal_of_80():
    console = Console(width=80, file=io.StringIO())
    console.print(tabulate())
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("model ") for line in lines) == 1


def test_records_are_flat_and_whole():
    table = tabulate()
    for record, flat in zip(table.records(), table.flat_records(), strict=True):
        assert flat["model"] == record["model"]
        assert {name: flat[name] for name in record["metrics"]} == record["metrics"]
        assert flat["bytes"] == record["bytes"] > 0
        assert set(record["seconds"]) == {"choose", "fit", "evaluate"}


# --- what cannot be ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [({"k": 0}, "k must lie"), ({"k": 25}, "the 24 items"), ({"budget": 0}, "at least 1"), ({"time_budget": 0.0}, "0")],
)
def test_what_cannot_be_is_refused_at_once(options, said):
    with pytest.raises(DataError, match=said):
        make_comparison(**options)
