"""Sensitivities are evaluations of separate fits, and nothing else."""

import numpy as np
import pytest

from relae import DLAE, LAE, RDLAE, RLAE
from relae.analysis import finding, sensitivity_dropout, sensitivity_l2, sensitivity_xi
from relae.evaluation import evaluate, hold_out_users
from relae.models import suggested_l2

from ..oracles import dense_inverse, dense_penalty
from .suite import shop

SPLIT = hold_out_users(shop(400, 120), share=0.2, rng=np.random.default_rng(0))
METRICS = {"all": "ndcg", "head": "head_ndcg", "tail": "tail_ndcg"}


def check(found, models):
    """Each point is the mean and the interval of an evaluation of a model of its own."""
    assert len(models) == len(found.values)
    for at, model in enumerate(models):
        result = evaluate(model.fit(SPLIT.train), SPLIT, list(METRICS.values()), [found.k])
        rows = {row.metric: row for row in result.estimates()}
        for group, metric in METRICS.items():
            curve = found.curves[group]
            expected = rows[metric].mean, rows[metric].low, rows[metric].high
            assert (curve.mean[at], curve.low[at], curve.high[at]) == pytest.approx(expected)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_xi_equals_a_fit_for_each(dropout):
    found = sensitivity_xi(SPLIT, 8.0, [1.0, 0.0, 0.2], dropout=dropout, k=20)
    assert found.values.tolist() == [0.0, 0.2, 1.0]
    assert (found.model, found.fixed) == ("RDLAE" if dropout else "RLAE", {"l2": 8.0, "dropout": dropout})
    check(found, [RDLAE(8.0, dropout, xi) if dropout else RLAE(8.0, xi) for xi in found.values.tolist()])


def test_constraints_that_are_gone_are_counted():
    found = sensitivity_xi(SPLIT, 8.0, [0.0, 0.1, 0.2, 0.3, 0.5, 1.0])
    x = SPLIT.train.matrix.toarray().astype(np.float64)
    free = np.diag(dense_inverse(x, dense_penalty(x, 8.0)) @ x.T @ x)
    expected = [sum(value <= xi for value in free) / len(free) for xi in found.values]
    np.testing.assert_allclose(found.unconstrained, expected, atol=1 / len(free) + 1e-12)
    assert found.unconstrained[-1] == 1.0


def test_without_xis_the_interval_that_matters_is_covered():
    found = sensitivity_xi(SPLIT)
    low, high = RLAE(suggested_l2(SPLIT.train.matrix)).fit(SPLIT.train).xi_interval_
    assert (found.values[0], found.values[-1]) == (0.0, 1.0)
    inside = (found.values >= low - 0.001) & (found.values <= high + 0.001)
    assert inside.sum() >= 10
    assert found.fixed["l2"] == suggested_l2(SPLIT.train.matrix)


def test_l2_equals_a_fit_for_each():
    found = sensitivity_l2(SPLIT, [40.0, 4.0], k=20)
    assert (found.parameter, found.model, found.unconstrained) == ("l2", "LAE", None)
    check(found, [LAE(4.0), LAE(40.0)])


def test_dropout_equals_a_fit_for_each():
    found = sensitivity_dropout(SPLIT, [0.5, 0.0], 8.0, k=20)
    assert (found.parameter, found.model, found.fixed) == ("dropout", "DLAE", {"l2": 8.0})
    check(found, [DLAE(8.0, 0.0), DLAE(8.0, 0.5)])


def test_default_values_go_around_the_suggested_l2():
    l2 = suggested_l2(SPLIT.train.matrix)
    np.testing.assert_allclose(sensitivity_l2(SPLIT).values, l2 * 2.0 ** np.arange(-4, 7))
    np.testing.assert_allclose(sensitivity_dropout(SPLIT).values, np.arange(10) / 10)


def test_a_known_model_is_not_fitted_again(monkeypatch):
    known = sensitivity_xi(SPLIT, 8.0, [0.2, 1.0])
    expected = sensitivity_l2(SPLIT, [4.0, 8.0]), sensitivity_dropout(SPLIT, [0.0, 0.4], 8.0)
    fits = []
    for kind in (LAE, DLAE):
        fit = kind.fit
        monkeypatch.setattr(
            kind, "fit", lambda self, *args, fit=fit, **kw: fits.append(repr(self)) or fit(self, *args, **kw)
        )
    found = (
        sensitivity_l2(SPLIT, [4.0, 8.0], known=known),
        sensitivity_dropout(SPLIT, [0.0, 0.4], 8.0, known=known),
    )
    assert fits == ["LAE(l2=4.0)", "DLAE(l2=8.0, dropout=0.4)"]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.to_polars().equals(theirs.to_polars())


def test_a_known_result_of_other_users_is_an_error():
    other = hold_out_users(shop(400, 120), share=0.2, rng=np.random.default_rng(1))
    known = sensitivity_xi(other, 8.0, [1.0])
    with pytest.raises(ValueError, match="of other users"):
        sensitivity_l2(SPLIT, [8.0], known=known)


def test_progress_names_the_fit():
    stages = []
    sensitivity_l2(SPLIT, [4.0, 8.0], progress=lambda stage, fraction: stages.append((stage, fraction)))
    assert ("LAE, l2 = 4 (1 of 2): inverse", 1.0) in stages
    assert ("LAE, l2 = 8 (2 of 2): evaluate", 1.0) in stages


def test_the_frame_has_a_row_per_group_and_value():
    found = sensitivity_xi(SPLIT, 8.0, [0.0, 0.2], k=20)
    frame = found.to_polars()
    assert frame.columns == ["model", "group", "k", "l2", "dropout", "xi", "ndcg", "low", "high", "unconstrained"]
    assert frame["group"].to_list() == ["all"] * 2 + ["head"] * 2 + ["tail"] * 2
    assert frame["ndcg"].to_list() == [value for group in METRICS for value in found.curves[group].mean]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sensitivity_dropout(SPLIT, [1.0]), r"dropouts must lie in \[0, 1\)"),
        (lambda: sensitivity_dropout(SPLIT, []), "at least one"),
        (lambda: sensitivity_l2(SPLIT, [0.0]), "l2s must be finite numbers above 0"),
        (lambda: sensitivity_xi(SPLIT, 1.0, [2.0]), r"xi must lie in \[0, 1\]"),
    ],
)
def test_values_that_make_no_sense_are_an_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_findings_follow_from_the_numbers():
    found = sensitivity_l2(SPLIT, [0.5, 5000.0], k=20)
    tail = found.curves["tail"].mean
    word = "falls" if tail[1] < tail[0] else "rises"
    assert f"tail ndcg@20 {word} from {tail[0]:.4f} at λ = 0.5 to {tail[1]:.4f} at λ = 5,000" in finding(found)
    relaxed = sensitivity_xi(SPLIT, 8.0, [0.0, 0.2, 1.0])
    share = relaxed.unconstrained[relaxed.curves["all"].best]
    assert f"{share:.1%} of the diagonal constraints are gone" in finding(relaxed)
