"""Metrics beside loops, and what holds for all of them."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

from relae import DataError
from relae.evaluation import DEFAULT_METRICS, METRICS, Scorer
from relae.experiments.paper import popularity_order

from ..oracles import csr
from .suite import (
    OVERALL,
    PER_USER,
    cases,
    loop_propensities,
    overall_value,
    paper_head,
    random_case,
    stable_head,
    user_value,
)

PLAIN = ("recall", "recall_capped", "ndcg", "precision", "hit_rate", "mrr", "map")


def scorer(case, metrics=METRICS, **options):
    return Scorer(case.truth, case.counts, 7, metrics, case.ks, truth_order=case.truth_order, **options)


def test_the_names():
    groups = [f"{group}_{name}" for group in ("head", "tail") for name in PLAIN]
    assert set(METRICS) == {*PLAIN, *groups, "unbiased_recall", "unbiased_ndcg", *OVERALL}
    assert len(METRICS) == len(set(METRICS))
    assert set(DEFAULT_METRICS) <= set(METRICS)


# --- beside loops ------------------------------------------------------------------------------------------------


@given(cases(), st.sampled_from(["standard", "paper"]))
def test_every_metric_per_user(case, mode):
    head = (paper_head if mode == "paper" else stable_head)(case.counts.tolist())
    propensity = loop_propensities(case.counts.tolist())
    found = scorer(case, mode=mode, item_order=popularity_order if mode == "paper" else None).values(case.lists)
    assert list(found) == [f"{name}@{k}" for name in PER_USER for k in sorted(set(case.ks))]
    for name, k in itertools.product(PER_USER, set(case.ks)):
        expected = [
            user_value(name, ranked, truth, k, head=head, propensity=propensity, mode=mode)
            for ranked, truth in zip(case.lists.tolist(), case.truths, strict=True)
        ]
        assert found[f"{name}@{k}"] == pytest.approx(expected, abs=1e-12, nan_ok=True), name


@given(cases(), st.sampled_from([0.05, 0.3, 0.5, 0.99]), st.sampled_from([0.0, 0.5, 1.0, 2.5]), st.floats(0.001, 1))
def test_shares_exponents_and_floors(case, share, exponent, floor):
    head = stable_head(case.counts.tolist(), share)
    propensity = loop_propensities(case.counts.tolist(), exponent, floor)
    options = {"head_share": share, "propensity_exponent": exponent, "propensity_floor": floor}
    found = scorer(case, **options).values(case.lists)
    for name in ("head_recall", "tail_ndcg", "unbiased_recall", "unbiased_ndcg"):
        for k in case.ks:
            expected = [
                user_value(name, ranked, truth, k, head=head, propensity=propensity)
                for ranked, truth in zip(case.lists.tolist(), case.truths, strict=True)
            ]
            assert found[f"{name}@{k}"] == pytest.approx(expected, abs=1e-12, nan_ok=True)


@given(cases())
def test_every_metric_of_all_lists(case):
    head = stable_head(case.counts.tolist())
    assume((case.lists[:, : min(case.ks)] >= 0).any())
    judge = scorer(case)
    found = judge.overall(judge.exposure(case.lists))
    assert list(found) == [f"{name}@{k}" for name in OVERALL for k in sorted(set(case.ks))]
    for name, k in itertools.product(OVERALL, set(case.ks)):
        expected = overall_value(name, case.lists.tolist(), k, case.counts.tolist(), 7, head)
        assert found[f"{name}@{k}"] == pytest.approx(expected, abs=1e-12), name


def test_lists_that_show_nothing_have_no_mean_and_no_inequality():
    judge = Scorer(csr([[1.0, 0, 0]]), np.array([3, 2, 1]), 3, OVERALL, [2])
    found = judge.overall(judge.exposure(np.array([[-1, -1]])))
    assert found["coverage@2"] == 0
    assert math.isnan(found["tail_share@2"])
    assert math.isnan(found["popularity@2"])
    assert math.isnan(found["novelty@2"])
    assert not found["exposure_gini@2"] < 0  # 0 or NaN, but never below the least that there is


def test_equal_exposure_has_no_gini_and_a_single_item_nearly_one():
    judge = Scorer(csr(np.eye(4)), np.ones(4, np.int64), 4, ["exposure_gini"], [1])
    assert judge.overall(np.array([[3, 3, 3, 3]])) == {"exposure_gini@1": pytest.approx(0)}
    assert judge.overall(np.array([[0, 0, 8, 0]])) == {"exposure_gini@1": pytest.approx(0.75)}


def test_known_values():
    # truth 0, 1, 2, 4; hits at places 2 and 3
    judge = Scorer(csr([[1.0, 1, 1, 0, 1]]), np.array([9, 4, 4, 1, 1]), 9, PLAIN, [3])
    found = {name.split("@")[0]: value[0] for name, value in judge.values(np.array([[3, 0, 2]])).items()}
    assert found == pytest.approx(
        {
            "recall": 2 / 4,
            "recall_capped": 2 / 3,
            "ndcg": (1 / math.log2(3) + 1 / 2) / (1 + 1 / math.log2(3) + 1 / 2),
            "precision": 2 / 3,
            "hit_rate": 1,
            "mrr": 1 / 2,
            "map": (1 / 2 + 2 / 3) / 4,
        }
    )


# --- laws --------------------------------------------------------------------------------------------------------


@given(cases(), st.floats(0, 3), st.floats(0.001, 1))
def test_values_lie_between_nothing_and_one(case, exponent, floor):
    found = scorer(case, PER_USER, propensity_exponent=exponent, propensity_floor=floor).values(case.lists)
    for name, values in found.items():
        assert ((values >= 0) & (values <= 1 + 1e-12) | np.isnan(values)).all(), name


@given(cases())
def test_a_list_of_exactly_the_truth_is_worth_one(case):
    for truth in filter(None, case.truths):
        judge = Scorer(_one(truth, case.n_items), case.counts, 7, PLAIN, [len(truth)])
        for name, [value] in judge.values(np.array([truth])).items():
            assert value == pytest.approx(1), name


@given(cases(), st.floats(0, 3), st.floats(0.001, 1))
def test_the_best_list_is_worth_one_at_any_k(case, exponent, floor):
    propensity = loop_propensities(case.counts.tolist(), exponent, floor)
    names = ["ndcg", "recall_capped", "hit_rate", "mrr", "unbiased_recall", "unbiased_ndcg"]
    for truth in filter(None, case.truths):
        ordered = sorted(truth, key=lambda item: propensity[item])
        rest = [item for item in range(case.n_items) if item not in truth]
        options = {"propensity_exponent": exponent, "propensity_floor": floor}
        ks = range(1, case.n_items + 1)
        judge = Scorer(_one(truth, case.n_items), case.counts, 7, names, ks, **options)
        for name, [value] in judge.values(np.array([[*ordered, *rest]])).items():
            assert value == pytest.approx(1), name


@given(cases())
def test_equal_propensities_make_unbiased_metrics_plain(case):
    found = scorer(case, PER_USER, propensity_exponent=0.0).values(case.lists)
    for k in case.ks:
        assert found[f"unbiased_recall@{k}"] == pytest.approx(found[f"recall_capped@{k}"], nan_ok=True)
        assert found[f"unbiased_ndcg@{k}"] == pytest.approx(found[f"ndcg@{k}"], nan_ok=True)


@given(cases(), st.sampled_from(["standard", "paper"]), st.integers(1, 4))
def test_batches_add_up(case, mode, step):
    judge = scorer(case, mode=mode)
    whole = judge.values(case.lists)
    slices = [slice(start, start + step) for start in range(0, len(case.lists), step)]
    parts = [judge.values(case.lists[users], users) for users in slices]
    for name, values in whole.items():
        assert np.array_equal(values, np.concatenate([part[name] for part in parts]), equal_nan=True)
    shown = sum(judge.exposure(case.lists[users]) for users in slices)
    assert np.array_equal(judge.exposure(case.lists), shown)


@given(cases())
def test_several_cut_offs_at_once_are_each_alone(case):
    together = scorer(case)
    whole, shown = together.values(case.lists), together.exposure(case.lists)
    for place, k in enumerate(together.ks):
        alone = Scorer(case.truth, case.counts, 7, METRICS, [k])
        for name, values in alone.values(case.lists).items():
            assert values == pytest.approx(whole[name], nan_ok=True)
        assert np.array_equal(alone.exposure(case.lists)[0], shown[place])


@given(cases(), st.permutations(METRICS).map(lambda names: names[:3]))
def test_a_metric_does_not_depend_on_the_company(case, names):
    names = [name for name in names if name in PER_USER]
    assume(names)
    whole = scorer(case).values(case.lists)
    for name, values in scorer(case, [*names, names[0]]).values(case.lists).items():
        assert np.array_equal(values, whole[name], equal_nan=True)


def test_users_without_truth_are_counted():
    truth = csr([[0.0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 0]])
    counts = np.array([5, 1, 1])
    assert Scorer(truth, counts, 4, ["recall"], [1]).users_without_truth == {"all": 1}
    found = Scorer(truth, counts, 4, METRICS, [1]).users_without_truth
    assert found == {"all": 1, "head": 2, "tail": 2}


# --- mode "paper" by hand ----------------------------------------------------------------------------------------


def paper(truth, counts, ranked, k, metrics=("unbiased_recall", "unbiased_ndcg")):
    """The values of one user, whose truth is listed in the order of its file."""
    truth_matrix = _one(truth, len(counts))
    judge = Scorer(truth_matrix, np.array(counts), 9, metrics, [k], mode="paper", truth_order=np.array(truth))
    return [value[0] for value in judge.values(np.array([ranked])).values()]


def test_the_papers_unbiased_recall_depends_on_the_order_of_the_file_and_can_exceed_one():
    counts = [100, 4, 100]  # propensities 1, 0.2, 1: weights 1, 5, 1
    assert paper([0, 1], counts, [1], 1)[0] == pytest.approx(5)  # the first of the truth weighs 1
    assert paper([1, 0], counts, [1], 1)[0] == pytest.approx(1)
    assert paper([0, 1], counts, [0], 1)[0] == pytest.approx(1)
    assert paper([1, 0], counts, [0], 1)[0] == pytest.approx(1 / 5)


def test_the_papers_unbiased_ndcg_of_a_perfect_list_is_one_over_the_size_of_the_truth():
    for size in range(1, 6):
        truth = list(range(size))
        recall, ndcg = paper(truth, [3] * 6, truth, size)
        assert recall == pytest.approx(1)
        assert ndcg == pytest.approx(1 / size)


def test_the_papers_unbiased_ndcg_by_hand():
    # weights 1/√(4/16) = 2 and 1/√(1/16) = 4; item 1 at place 1, item 0 at place 3; norm 2 + 4; ideal 1 + 1/log₂3
    found = paper([0, 1], [4, 1, 16], [1, 2, 0], 3)[1]
    assert found == pytest.approx((4 / 1 + 2 / 2) / (2 + 4) / (1 + 1 / math.log2(3)))


def test_the_floor_of_propensities():
    # √(0/4) and √(1/40,000) = 0.005 are both raised to 0.01
    assert paper([0], [0, 4], [0], 1) == [pytest.approx(1)] * 2
    assert paper([0, 1], [1, 40_000], [0, 1], 2)[1] == pytest.approx(
        (100 + 1 / math.log2(3)) / 101 / (1 + 1 / math.log2(3))
    )


def test_in_mode_paper_a_user_without_truth_counts_as_nothing_but_not_in_the_groups():
    truth, counts = csr([[0.0, 0, 0], [1, 0, 0]]), np.array([5, 1, 1])
    judge = Scorer(truth, counts, 2, PER_USER, [1], mode="paper", truth_order=np.array([0]))
    for name, values in judge.values(np.array([[0], [0]])).items():
        if name.startswith("tail_"):
            assert np.isnan(values).all()  # nobody has truth there
        elif name.startswith("head_"):
            assert np.isnan(values[0])
            assert values[1] == 1
        else:
            assert values.tolist() == [0, 1], name


def test_in_mode_standard_a_user_without_truth_has_no_value():
    judge = Scorer(csr([[0.0, 0], [1, 0]]), np.array([5, 1]), 2, PER_USER, [1])
    for values in judge.values(np.array([[0], [0]])).values():
        assert np.isnan(values[0])


def test_without_an_order_the_papers_unbiased_metrics_are_refused():
    truth, counts = csr([[1.0, 0]]), np.array([5, 1])
    with pytest.raises(DataError, match=r"depend on the order of the truth in its file.*mode='standard'"):
        Scorer(truth, counts, 2, ["unbiased_ndcg"], [1], mode="paper")
    found = Scorer(truth, counts, 2, ["recall", "tail_ndcg"], [1], mode="paper").values(np.array([[0]]))
    assert found["recall@1"].tolist() == [1]


# --- input -------------------------------------------------------------------------------------------------------


def test_truth_with_unsorted_indices():
    truth = sp.csr_array((np.ones(3), np.array([2, 0, 1]), np.array([0, 3])), shape=(1, 3))
    found = Scorer(truth, np.array([3, 2, 1]), 3, ["recall"], [2]).values(np.array([[0, 1]]))
    assert found["recall@2"] == pytest.approx([2 / 3])


def test_a_list_that_repeats_an_item_does_not_find_it_twice():
    judge = Scorer(csr([[1.0, 0, 0]]), np.array([3, 2, 1]), 3, ["recall"], [2])
    try:
        found = judge.values(np.array([[0, 0]]))["recall@2"]
    except DataError:
        return  # a clear refusal is as good
    assert found.tolist() == [1]


def test_longer_lists_than_asked_for_make_no_difference():
    case = random_case(8, 30, 25, seed=3, ks=(4, 9))
    judge = scorer(case)
    for name, values in judge.values(case.lists).items():
        assert np.array_equal(values, judge.values(case.lists[:, :9])[name], equal_nan=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["ndcg", "ncdg"]}, "there is no metric 'ncdg': the metrics are recall, .*novelty"),
        ({"metrics": []}, "no metric is asked for"),
        ({"metrics": "ndcg"}, "metrics is a list of names, got the string 'ndcg'"),
        ({"metrics": ["unbiased_map"]}, "there is no metric 'unbiased_map'"),
        ({"ks": []}, "no cut-off is asked for"),
        ({"ks": [0]}, "a whole number of at least 1, got 0"),
        ({"ks": [2.0]}, "a whole number of at least 1, got 2.0"),
        ({"ks": [True]}, "a whole number of at least 1, got True"),
        ({"ks": [2, 5]}, "k=5 cannot be filled from a catalog of 4 items"),
        ({"mode": "papr"}, "mode must be 'standard' or 'paper', got 'papr'"),
        ({"head_share": 0.0}, "share of head items must lie between 0 and 1, got 0.0"),
        ({"head_share": 1.0}, "share of head items must lie between 0 and 1, got 1.0"),
        ({"propensity_exponent": -0.1}, "exponent must be at least 0"),
        ({"propensity_floor": 0.0}, r"floor in \(0, 1\]"),
        ({"propensity_floor": math.nan}, "nan"),
    ],
    ids=str,
)
def test_bad_options(options, message):
    options = {"metrics": ["ndcg"], "ks": [2]} | options
    with pytest.raises(ValueError, match=message):
        Scorer(csr(np.eye(4)), np.arange(4), 4, **options)


def test_bad_lists():
    judge = Scorer(csr(np.eye(3)), np.arange(3), 3, ["ndcg"], [2])
    with pytest.raises(DataError, match="2 ranked lists for 3 users"):
        judge.values(np.zeros((2, 2), np.int64))
    with pytest.raises(DataError, match="have 1 places, and k goes up to 2"):
        judge.values(np.zeros((3, 1), np.int64))
    with pytest.raises(DataError, match="column 3 is recommended, and the truth has 3 columns"):
        judge.values(np.full((3, 2), 3))


def _one(truth, n_items):
    row = np.zeros((1, n_items), np.float32)
    row[0, truth] = 1
    return csr(row)
