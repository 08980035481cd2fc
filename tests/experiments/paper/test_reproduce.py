"""The paper's tables: what is printed, what is run, and that the two are compared as they should be."""

import numpy as np
import pytest

from relae import DLAE, EASE, EDLAE, LAE, RDLAE, RLAE, DataError, Run, datasets
from relae.baselines import GFCF
from relae.evaluation import evaluate
from relae.experiments.paper import (
    MISPRINTS,
    TABLES,
    TRAINED,
    Cell,
    Row,
    _experiment,
    load_experiment,
    parameters,
    popularity_order,
    printed,
    reproduce,
)
from relae.models import RDLAE as Fitted
from relae.registry import kind

from ...tuning.suite import Learner

CLASSES = {"LAE": LAE, "EASE": EASE, "RLAE": RLAE, "DLAE": DLAE, "EDLAE": EDLAE, "RDLAE": RDLAE, "GF-CF": GFCF}
TABLE_2 = ["recall_capped", "ndcg", "tail_recall_capped", "tail_ndcg", "unbiased_recall", "unbiased_ndcg"]


@pytest.fixture
def small(small_gowalla, monkeypatch):
    monkeypatch.setenv("RELAE_DATA", str(small_gowalla))


def every_table():
    for table in TABLES:
        sets = ("gowalla", "yelp2018", "amazon-book") + (("ml-20m", "netflix", "msd") if table == "table2" else ())
        for dataset in sets:
            yield table, dataset


@pytest.mark.parametrize(("table", "dataset"), list(every_table()))
def test_every_data_set_has_the_seven_models_with_parameters_and_printed_figures(table, dataset):
    known = parameters(table, dataset)
    assert set(known) == set(CLASSES)
    assert set(known) <= set(printed(table, dataset))
    assert {len(cells) for cells in printed(table, dataset).values()} == {12 if table == "table2" else 2}
    for model, given in known.items():
        if model != "GF-CF":
            assert (given["dropout"] > 0) == (model in ("DLAE", "EDLAE", "RDLAE"))
            assert {"E": 0.0, "R": given["xi"]}.get(model[0], 1.0) == given["xi"]


def test_figures_read_at_random_in_the_paper():
    assert printed("table2", "gowalla")["RDLAE"]["tail_ndcg@100"] == 0.1079
    assert printed("table2", "ml-20m")["LAE"]["unbiased_recall@20"] == 0.2827
    assert printed("table2", "msd")["EASE"]["recall_capped@100"] == 0.5074
    assert printed("table3", "amazon-book")["RLAE"]["ndcg@20"] == 0.0615
    assert printed("table3", "yelp2018")["HMLET"]["recall@20"] == 0.0675


def test_misprints_are_of_printed_cells():
    for (table, dataset, model, metric), misprint in MISPRINTS.items():
        assert printed(table, dataset)[model][metric] != misprint.value


def test_a_misprint_counts_only_where_ours_is_the_right_value():
    [misprint] = MISPRINTS.values()
    right, wrong = (Cell("ndcg@20", 0.1536, ours, misprint) for ours in (0.15182, 0.1516))
    assert (right.is_misprint, right.remark) == (True, misprint.reason)
    assert (wrong.is_misprint, wrong.remark) == (False, "")
    assert not Cell("ndcg@20", 0.1536, 0.1518).is_misprint


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("table", ["table2", "table3"])
def test_cells_are_what_each_model_alone_scores_in_the_papers_mode(table):
    job = load_experiment(table, "gowalla")
    rows = {row.model: row for row in job.run()}
    assert list(CLASSES) != list(rows)  # in the order of the fits
    assert set(rows) == set(CLASSES)
    metrics, ks = (TABLE_2, [20, 100]) if table == "table2" else (["recall", "ndcg"], [20])
    for name, made in CLASSES.items():
        given = parameters(table, "gowalla")[name]
        model = made(**{key: value for key, value in given.items() if key in made().get_params()})
        expected = evaluate(
            model.fit(job.split.train), job.split, metrics, ks, mode="paper", item_order=popularity_order
        ).means
        assert {cell.metric: cell.ours for cell in rows[name].cells} == pytest.approx(expected, abs=2e-6)


@pytest.mark.usefixtures("small")
def test_models_with_the_same_penalty_share_one_fit(monkeypatch):
    fits = []
    monkeypatch.setattr(
        Fitted, "fit", lambda self, *_, **__: fits.append((self.l2, self.dropout)) or real_fit(self, *_, **__)
    )
    rows = list(load_experiment("table2", "gowalla", ["ease", "rlae", "lae"]).run())
    assert sorted(fits) == [(80.0, 0.0), (300.0, 0.0)]
    assert {row.model for row in rows} == {"EASE", "RLAE", "LAE"}


real_fit = Fitted.fit


@pytest.mark.usefixtures("small")
def test_what_is_done_is_not_run_again():
    job = load_experiment("table2", "gowalla")
    assert [row.model for row in job.run(done={"GF-CF", "LAE", "DLAE", "EDLAE", "RDLAE", "EASE"})] == ["RLAE"]
    assert job.fits(done=CLASSES) == []


@pytest.mark.usefixtures("small")
def test_progress_ends_at_one_and_never_goes_back():
    seen = []
    job = load_experiment("table3", "gowalla", ["ease", "lae"])
    for _ in job.run(progress=lambda stage, fraction: seen.append((stage, fraction))):
        pass
    overall = [fraction for stage, fraction in seen if stage == job.title]
    assert overall == sorted(overall)
    assert overall[-1] == 1.0


def test_the_fourth_decimal_decides():
    assert Cell("ndcg@20", 0.1539, 0.15394999).difference == 0
    assert Cell("ndcg@20", 0.1539, 0.1539501).difference == 0.0001
    assert Cell("ndcg@20", 0.1539, 0.1538499).difference == -0.0001


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("table1", "gowalla"), "table2 and table3"),
        (("table3", "ml-20m"), "gowalla, yelp2018, amazon-book"),
        (("table2", "gowalla", ["eaze"]), "did you mean EASE"),
        (("table2", "gowalla", ["LightGCN"]), "the table has no model 'LightGCN'"),
        (("table3", "gowalla", ["litegcn"]), "did you mean LightGCN"),
        (("table3", "yelp2018"), "relae datasets get yelp2018"),
    ],
)
def test_bad_requests_say_what_there_is(arguments, said):
    with pytest.raises(DataError, match=said):
        load_experiment(*arguments)


@pytest.mark.usefixtures("small")
def test_the_split_of_table_2_is_made_of_the_published_files_alone():
    job = load_experiment("table2", "gowalla")
    users = datasets.get("gowalla").load().n_users
    assert job.split.train.n_users == users - 6000
    assert len(job.split.users) == 3000
    assert np.diff(job.split.truth.indptr).min() >= 1  # a fifth of nearly ten items or more


# --- models that are trained -------------------------------------------------------------------------------------


def test_the_trained_models_are_those_of_table_3_without_parameters_and_have_a_class():
    for dataset in ("gowalla", "yelp2018", "amazon-book"):
        assert [name for name in printed("table3", dataset) if name not in CLASSES] == list(TRAINED)
    assert not set(TRAINED) & set(printed("table2", "gowalla"))
    assert [kind(name.replace("-", "")).__name__.lower() for name in TRAINED] == [
        name.replace("-", "").lower() for name in TRAINED
    ]


@pytest.mark.usefixtures("small")
def test_trained_models_are_run_only_when_they_are_named():
    assert set(load_experiment("table3", "gowalla").models) == set(CLASSES)
    named = load_experiment("table3", "gowalla", ["ltocf", "LT-OCF", "grmfnorm", "ease"])
    assert named.models == ("GRMF-Norm", "LT-OCF", "EASE")
    assert named.fits() == [["GRMF-Norm"], ["LT-OCF"], ["EASE"]]


@pytest.mark.usefixtures("small")
def test_the_folder_is_a_run_that_models_are_fitted_from(tmp_path):
    result = reproduce("table3", "gowalla", ["ease", "gf-cf", "rlae"], out=tmp_path)
    run = Run.read(tmp_path / "table3-gowalla")
    assert list(run.models) == ["gfcf", "ease", "rlae"]
    known = parameters("table3", "gowalla")
    assert repr(run.find_model("ease")) == repr(EASE(known["EASE"]["l2"]))
    assert repr(run.find_model("rlae")) == repr(RLAE(known["RLAE"]["l2"], known["RLAE"]["xi"]))
    ours = {row.model: {cell.metric: cell.ours for cell in row.cells} for row in result.rows}
    best = max(ours, key=lambda model: ours[model][run.objective])
    assert type(run.model) is CLASSES[best]
    fitted = run.fit("ease")
    assert (type(fitted), len(fitted.items_)) == (EASE, 300)
    with pytest.raises(DataError, match="judged by the published lists"):
        run.divide()
    with pytest.raises(DataError, match="has no DLAE: its models are gfcf, ease, rlae"):
        run.find_model("dlae")


@pytest.mark.usefixtures("small")
def test_a_row_is_saved_before_the_next_model_is_run(tmp_path):
    def interrupt(stage, done):
        if done > 0.5 and stage.startswith("Gowalla"):  # of all: the second of two models is under way
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce("table3", "gowalla", ["ease", "dlae"], out=tmp_path, progress=interrupt)
    assert [row["model"] for row in Run.read(tmp_path / "table3-gowalla").record["rows"]] == ["EASE"]


@pytest.fixture
def trained(small, monkeypatch):
    """One row of a fake model under the name of LightGCN, and what its fit was given."""
    monkeypatch.setattr(_experiment, "kind", lambda name: Learner)
    Learner.given.clear()
    return load_experiment("table3", "gowalla", ["lightgcn"])


def test_a_trained_row_has_its_training_and_never_sees_the_test(trained, tmp_path):
    [row] = trained.run(time_budget=7.0, checkpoints=tmp_path)
    place = tmp_path / "lightgcn.checkpoint"
    assert Learner.given == [{"validation": None, "checkpoint": place, "time_budget": 7.0}]
    assert place.exists()  # cut short by time: more of it goes on from here
    expected = evaluate(
        Learner().fit(trained.split.train),
        trained.split,
        ["recall", "ndcg"],
        [20],
        mode="paper",
        item_order=popularity_order,
    ).means
    assert {cell.metric: cell.ours for cell in row.cells} == pytest.approx(expected)
    assert {cell.metric: cell.paper for cell in row.cells} == printed("table3", "gowalla")["LightGCN"]
    assert (row.seconds, row.training.epochs, row.parameters) == (2.5, 5, Learner().get_params())


def test_a_finished_training_leaves_no_checkpoint(trained, tmp_path):
    [row] = trained.run(checkpoints=tmp_path)
    assert row.training.stopped == "patience"
    assert list(tmp_path.iterdir()) == []


def test_the_note_says_what_is_known_and_no_more(trained):
    [row] = trained.run(time_budget=7.0)
    assert not row.counts
    for part in ("for 5 epochs in 2 s (cut short by the time it was given)", "epoch 4 counts", "relae's defaults"):
        assert part in row.note
    assert "does not say how long it trained" in row.note
    assert "neither for nor against" in row.note
    assert Row("EASE", {}, (), 1.0).note == ""
    assert Row("EASE", {}, (), 1.0).counts


def test_more_time_is_used_and_less_is_not(trained):
    [cut] = trained.run(time_budget=7.0)
    assert [cut.is_final(seconds) for seconds in (5.0, 7.0, 8.0, None)] == [True, True, False, False]
    [whole] = trained.run()
    assert all(whole.is_final(seconds) for seconds in (5.0, None))
