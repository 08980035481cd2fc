"""`relae compact` beside the Python API."""

import json

import numpy as np
import pytest

import relae
from relae import RDLAE
from relae.cli._compact import _METRICS
from relae.cli._evaluate import make_split
from relae.evaluation import evaluate
from relae.solvers import NewItems


def test_a_small_model_is_made_from_the_histories_that_were_kept(saved, data, shell, tmp_path):
    said = shell.ok("compact", saved, "--per-item", 7, "--out", tmp_path / "small")
    assert "instead of" in said
    found = relae.load(tmp_path / "small", verify=True)
    model = relae.load(saved)
    expected = model.compact(data, per_item=7)
    assert (found.inverse_.columns != expected.inverse_.columns).nnz == 0
    assert found.get_params() == model.get_params()
    assert (found.plan_.solver, found.neighbours_) == ("local", 7)
    assert relae.store.open_model(tmp_path / "small").histories.users == data.users


@pytest.mark.parametrize("supports", ["count", "weights"])
def test_other_supports(supports, saved, data, shell, tmp_path):
    shell.ok("compact", saved, "--per-item", 7, "--supports", supports, "--out", tmp_path / "small")
    expected = relae.load(saved).compact(data, per_item=7, supports=supports)
    assert (relae.load(tmp_path / "small").inverse_.columns != expected.inverse_.columns).nnz == 0


def test_a_dual_model_holds_its_data_and_others_are_told_it(dual, data, table, columns, shell, tmp_path):
    shell.ok("compact", dual, "--out", tmp_path / "small")
    model = RDLAE(l2=10.0, dropout=0.2, xi=0.3).fit(data)
    model.save(tmp_path / "primal", form="primal")
    assert "--data" in shell("compact", tmp_path / "primal", "--out", tmp_path / "other").line()
    shell.ok("compact", tmp_path / "primal", "--data", table, *columns, "--out", tmp_path / "other")
    ours, theirs = (relae.load(tmp_path / name).inverse_.columns.toarray() for name in ("small", "other"))
    assert np.allclose(ours, theirs, atol=1e-6)


def test_the_loss_is_shown_on_users_who_are_new(data, table, columns, shell, tmp_path):
    """Of 160 users 120 are in the fit, and the other 40 judge."""
    old = data.select_users(range(120))
    RDLAE(l2=10.0, dropout=0.2, xi=0.3).fit(old).save(tmp_path / "model", form="primal", histories=old)
    call = ("compact", tmp_path / "model", "--per-item", 7, "--out", tmp_path / "small", "--on", table, *columns)
    said = shell.ok(*call)
    assert "120 of 160 users are users of the fit, and are not judged by" in said
    assert "compact − " in said
    answer = json.loads(shell.ok(*call, "--json"))
    assert answer["bytes"]["after"] == relae.store.open_model(tmp_path / "small").size
    split = make_split(relae.load(tmp_path / "model"), data.select_users(range(120, 160)), 0.2, 0)
    for each, name in zip(answer["judged"], ("model", "small"), strict=True):
        assert each == pytest.approx(evaluate(relae.load(tmp_path / name), split, _METRICS, [48]).means, nan_ok=True)
    assert answer["judged"][0] != answer["judged"][1]


@pytest.mark.parametrize("ids", ["kept", "not kept", "none"])
def test_its_own_training_data_gives_no_figures(ids, data, table, columns, shell, tmp_path):
    """Whether the model knows its users by their ids, or only sees that the data is that of its fit."""
    given = relae.Interactions(data.matrix, items=data.items) if ids == "none" else data
    RDLAE(l2=10.0).fit(given, solver="dual").save(tmp_path / "m", histories=data if ids == "kept" else None)
    call = ("compact", tmp_path / "m", "--per-item", 7, "--out", tmp_path / "small", "--on", table, *columns)
    done = shell(*call)
    assert done.code == 0
    said = " ".join(done.out.split())
    assert "no figures: all 160 users of" in said
    assert "--solver local --neighbours 7" in said
    assert "compact − " not in said
    assert "ndcg" not in said
    done = shell(*call, "--json")
    assert json.loads(done.out)["judged"] is None
    assert "no figures" in done.err


def test_users_of_whom_nobody_can_tell_are_told_to_be_so(data, table, columns, shell, tmp_path):
    old = data.select_users(range(120))
    RDLAE(l2=10.0).fit(old, solver="dual").save(tmp_path / "m")
    said = shell.ok("compact", tmp_path / "m", "--out", tmp_path / "small", "--on", table, *columns)
    assert "the model does not know the users of its fit" in said
    assert "compact − " in said


def test_new_items_stay_new(data, shell, tmp_path):
    features = np.eye(4)[np.arange(50) % 4]
    more = relae.Interactions(data.matrix.toarray()[:, [*range(48), 0, 0]] * (np.arange(50) < 48), features=features)
    model = RDLAE(l2=10.0).fit(more, feature_weight=5.0, solver="dual")
    for form in ("dual", "primal"):
        model.save(tmp_path / form, form=form, histories=more)
        said = shell.ok("compact", tmp_path / form, "--per-item", 7, "--out", tmp_path / "small")
        small = relae.load(tmp_path / "small")
        assert f"{small.inverse_.base.columns.nnz / 50:.1f} per item" in said
        assert isinstance(small.inverse_, NewItems)
        assert np.allclose(small.weights(), model.compact(more, per_item=7).weights(), atol=1e-5)


def test_weights_other_than_those_of_the_fit_are_refused(saved, table, columns, shell, tmp_path):
    given = (*columns, "--weight", "stars", "--weighting", "linear")
    said = shell("compact", saved, "--data", table, *given, "--out", tmp_path / "small").line()
    assert "this data has other weights than that of the fit, in 48 of 48 items" in said
    assert not (tmp_path / "small").exists()
