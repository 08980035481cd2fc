"""`relae compact` beside the Python API."""

import json

import numpy as np
import pytest

import relae
from relae import RDLAE
from relae.solvers import NewItems


def test_a_small_model_is_made_from_the_histories_that_were_kept(saved, data, shell, tmp_path):
    said = shell.ok("compact", saved, "--per-item", 7, "--out", tmp_path / "small")
    assert "instead of" in said
    found = relae.load(tmp_path / "small", verify=True)
    model = relae.load(saved)
    expected = model.compact(data, per_item=7)
    assert (found.inverse_.columns != expected.inverse_.columns).nnz == 0
    assert found.get_params() == {**model.get_params(), "solver": "local", "neighbours": 7}
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


def test_the_loss_is_shown(saved, table, columns, shell, tmp_path):
    call = ("compact", saved, "--per-item", 7, "--out", tmp_path / "small", "--on", table, *columns)
    said = shell.ok(*call)
    assert "not new to it" in said
    assert "compact − " in said
    answer = json.loads(shell.ok(*call, "--json"))
    assert answer["bytes"]["after"] == relae.store.open_model(tmp_path / "small").size
    assert set(answer["judged"][0]) >= {"ndcg@48", "tail_ndcg@48"}
    assert answer["judged"][0] != answer["judged"][1]


def test_new_items_stay_new(data, shell, tmp_path):
    features = np.eye(4)[np.arange(50) % 4]
    more = relae.Interactions(data.matrix.toarray()[:, [*range(48), 0, 0]] * (np.arange(50) < 48), features=features)
    model = RDLAE(l2=10.0, solver="dual").fit(more, feature_weight=5.0)
    for form in ("dual", "primal"):
        model.save(tmp_path / form, form=form, histories=more)
        said = shell.ok("compact", tmp_path / form, "--per-item", 7, "--out", tmp_path / "small")
        small = relae.load(tmp_path / "small")
        assert f"{small.inverse_.base.columns.nnz / 50:.1f} per item" in said
        assert isinstance(small.inverse_, NewItems)
        assert np.allclose(small.weights(), model.compact(more, per_item=7).weights(), atol=1e-5)


def test_weights_other_than_those_of_the_fit_are_refused(saved, table, columns, shell, tmp_path):
    given = (*columns, "--weight", "stars")
    said = shell("compact", saved, "--data", table, *given, "--out", tmp_path / "small").line()
    assert "this data has other weights than that of the fit, in 48 of 48 items" in said
    assert not (tmp_path / "small").exists()
