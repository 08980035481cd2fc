"""Evaluating a recommender beside a slow evaluation of its scores, user by user."""

import importlib
import warnings

import numpy as np
import pytest

from relae import EASE, RDLAE, DataError, Interactions, NotFittedError, UnknownItemsWarning
from relae.baselines import GFCF
from relae.data import Ids, Lists
from relae.evaluation import (
    METRICS,
    Evaluation,
    Evaluations,
    Scorer,
    Split,
    evaluate,
    given_split,
    hold_out_items,
    hold_out_users,
    paper_splits,
    strong_lists,
)

from ..models.suite import MODELS
from ..oracles import brute_force_top_k, csr
from .suite import (
    OVERALL,
    PER_USER,
    blocks,
    loop_propensities,
    overall_value,
    paper_head,
    stable_head,
    user_value,
)

MODULE = importlib.import_module("relae.evaluation._evaluate")  # which the function of that name hides
KS = (7, 3)
NAMES = [f"thing {column * 7 % 30}" for column in range(30)]
DATA = Interactions(blocks(), items=NAMES)
SPLITS = {
    "users": hold_out_users(DATA, 0.3, rng=np.random.default_rng(1)),
    "items": hold_out_items(DATA, 0.3, rng=np.random.default_rng(1)),
}
RECOMMENDERS = {
    **{name: kind(**parameters) for name, (kind, parameters, _) in MODELS.items()},
    "GFCF": GFCF(0.3, rank=6),
    "GFCF, linear": GFCF(0.0),
}


def slow_evaluation(scores, split, mode="standard"):
    """Means of every metric, from the scores of all items."""
    counts = split.item_counts.tolist()
    head = (paper_head if mode == "paper" else stable_head)(counts)
    propensity = loop_propensities(counts)
    order = np.split(split.truth.indices if split.truth_order is None else split.truth_order, split.truth.indptr[1:-1])
    seen = [set(np.flatnonzero(row)) for row in split.histories.toarray()]
    lists = [brute_force_top_k(row, max(KS), known)[0] for row, known in zip(scores, seen, strict=True)]
    found = {}
    for k in KS:
        for name in PER_USER:
            values = [
                user_value(name, ranked, hidden.tolist(), k, head=head, propensity=propensity, mode=mode)
                for ranked, hidden in zip(lists, order, strict=True)
            ]
            found[f"{name}@{k}"] = np.nanmean(values)
        for name in OVERALL:
            found[f"{name}@{k}"] = overall_value(name, lists, k, counts, split.train.n_users, head)
    return found


# --- numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", SPLITS)
@pytest.mark.parametrize("name", RECOMMENDERS)
def test_every_recommender_by_every_metric(name, protocol):
    split = SPLITS[protocol]
    model = RECOMMENDERS[name].fit(split.train)
    result = evaluate(model, split, METRICS, KS)
    assert isinstance(result, Evaluation)
    assert result.means == pytest.approx(slow_evaluation(model.score(split.histories), split))
    assert result.users == split.users
    assert result.protocol == split.protocol
    assert (result.model, result.mode, result.xi) == (repr(model), "standard", None)
    assert result["ndcg@3"] > 0.05  # the example is one that can be learned from


def paper_example():
    rows = blocks(40, 30, seed=2).toarray()
    pairs = np.argwhere(rows)[np.random.default_rng(0).permutation(int(rows.sum()))]
    return paper_splits(strong_lists(Lists(pairs[:, 0], pairs[:, 1], np.arange(40)), 12))[1]


def test_mode_paper():
    split = paper_example()
    model = GFCF(0.3, rank=5).fit(split.train)
    result = evaluate(model, split, METRICS, KS, mode="paper")
    assert result.mode == "paper"
    assert result.means == pytest.approx(slow_evaluation(model.score(split.histories), split, "paper"))
    with pytest.raises(DataError, match="order of the truth"):
        evaluate(model, SPLITS["users"], ["unbiased_ndcg"], [3], mode="paper")


def test_options_reach_the_metrics():
    split = SPLITS["users"]
    model = EASE(6.0).fit(split.train)
    plain = evaluate(model, split, ks=(5,))
    other = evaluate(model, split, ks=(5,), head_share=0.6, propensity_exponent=2.0, propensity_floor=0.3)
    assert other["ndcg@5"] == plain["ndcg@5"]
    for name in ("tail_ndcg@5", "unbiased_ndcg@5", "tail_share@5"):
        assert other[name] != plain[name]


def test_a_path_of_xi_is_each_xi_alone():
    split = SPLITS["users"]
    for model in (RDLAE(3.0, 0.4, 0.42).fit(split.train), EASE(6.0).fit(split.train)):
        path = evaluate(model, split, METRICS, KS, xis=np.array([0.0, 0.3, 1.0]), name="this one")
        assert isinstance(path, Evaluations)
        assert [result.xi for result in path] == [0.0, 0.3, 1.0]
        for xi, result in zip([0.0, 0.3, 1.0], path, strict=True):
            alone = evaluate(model.with_xi(xi), split, METRICS, KS)
            assert result.means == pytest.approx(alone.means, rel=1e-12)
            for name, values in alone.values.items():
                assert np.array_equal(values, result.values[name], equal_nan=True)
            assert result.label == f"this one, ξ = {xi:g}"


def test_what_can_be_read_only_once_is_read_or_refused_but_never_lost():
    split = SPLITS["users"]
    model = RDLAE(3.0, 0.4, 0.42).fit(split.train)
    expected = evaluate(model, split, ["ndcg"], [3], xis=[0.1, 0.2])
    for options in ({"metrics": ["ndcg"], "xis": iter([0.1, 0.2])}, {"metrics": iter(["ndcg"]), "xis": [0.1, 0.2]}):
        try:
            found = evaluate(model, split, ks=[3], **options)
        except (TypeError, ValueError):
            continue  # a clear refusal is as good
        assert [one.means for one in found] == [one.means for one in expected]


@pytest.mark.parametrize("xis", [None, [0.0, 0.5]])
def test_batches_make_no_difference(xis, monkeypatch):
    split = SPLITS["items"]
    model = RDLAE(3.0, 0.4, 0.42).fit(split.train)
    whole = evaluate(model, split, METRICS, KS, xis=xis)
    calls = []
    monkeypatch.setattr(MODULE, "_BATCH_BYTES", 12 * 7 * 11)
    batched = evaluate(model, split, METRICS, KS, xis=xis, progress=lambda stage, done: calls.append((stage, done)))
    for one, other in zip([whole] if xis is None else whole, [batched] if xis is None else batched, strict=True):
        assert one.means == other.means
        assert one.notes == other.notes
        for name, values in one.values.items():
            assert np.array_equal(values, other.values[name], equal_nan=True)
    assert len(calls) >= 5
    assert {stage for stage, _ in calls} == {"evaluate"}
    done = [fraction for _, fraction in calls]
    assert done == sorted(done)
    assert done[-1] == 1.0


# --- any recommender ---------------------------------------------------------------------------------------------


class Popular:
    """The most popular items that are not in the history: no columns of its own, nothing but `recommend`."""

    def __init__(self, counts):
        self.order = np.argsort(-counts, kind="stable")

    def recommend(self, histories, k=10):
        ids = np.full((histories.shape[0], k), -1, np.int32)
        for row, seen in zip(ids, histories.toarray(), strict=True):
            best = [item for item in self.order if not seen[item]][:k]
            row[: len(best)] = best
        return ids, np.zeros(ids.shape)

    def score(self, histories):
        raise NotImplementedError


def test_a_recommender_of_ones_own():
    split = SPLITS["users"]
    counts = split.item_counts
    calls = []
    result = evaluate(
        Popular(counts), split, METRICS, KS, name="popular", progress=lambda stage, done: calls.append(done)
    )
    scores = np.tile(counts.astype(float), (len(split.users), 1))
    assert result.means == pytest.approx(slow_evaluation(scores, split))
    assert result.model == "popular"
    assert calls[-1:] == [1.0]


def test_a_recommender_of_ones_own_has_no_xi():
    with pytest.raises(ValueError, match="Popular has no ξ: leave xis out"):
        evaluate(Popular(SPLITS["users"].item_counts), SPLITS["users"], xis=[0.1], ks=(3,))
    with pytest.raises(ValueError, match="GFCF has no ξ: leave xis out"):
        evaluate(GFCF(0.0).fit(DATA), SPLITS["users"], xis=[0.1], ks=(3,))


def test_lists_that_are_too_short_are_refused():
    class Short(Popular):
        def recommend(self, histories, k=10):
            return super().recommend(histories, 2)

    with pytest.raises(DataError, match="have 2 places, and k goes up to 3"):
        evaluate(Short(SPLITS["users"].item_counts), SPLITS["users"], ks=(3,))


# --- other columns -----------------------------------------------------------------------------------------------


def permuted(data, order):
    return Interactions(data.matrix[:, order], data.users, data.items.values[order])


def test_a_model_with_its_columns_in_another_order_is_as_good():
    split = SPLITS["users"]
    order = np.random.default_rng(3).permutation(30)
    expected = evaluate(EASE(6.0, dtype="float64").fit(split.train), split, METRICS, KS)
    found = evaluate(EASE(6.0, dtype="float64").fit(permuted(split.train, order)), split, METRICS, KS)
    assert found.means == pytest.approx(expected.means)
    path = evaluate(EASE(6.0, dtype="float64").fit(permuted(split.train, order)), split, METRICS, KS, xis=[0.0])
    assert path[0].means == pytest.approx(expected.means)


def test_items_that_the_model_does_not_know_are_counted_and_never_found():
    split = SPLITS["users"]
    kept = np.arange(5, 30)
    small = permuted(split.train, kept)
    model = EASE(6.0, dtype="float64").fit(small)
    with pytest.warns(UnknownItemsWarning) as record:
        result = evaluate(model, split, METRICS, KS)
    histories, truth = split.histories.toarray(), split.truth.toarray()
    missed = int((truth[:, :5] > 0).sum())
    assert f"{int((histories[:, :5] > 0).sum())} of {split.histories.nnz} items in histories" in str(record[0].message)
    assert f"{missed} of {split.truth.nnz} in truth" in str(record[0].message)
    assert record[0].filename == __file__
    assert len(record) == 1
    scores = np.full(truth.shape, -np.inf)
    scores[:, 5:] = model.score(csr(histories[:, 5:]))
    assert result.means == pytest.approx(slow_evaluation(scores, split))
    assert result.notes["are with items that the model does not know"] == missed


def test_items_that_only_the_model_knows_take_places_and_are_never_found():
    small = Interactions(DATA.matrix[:, :20], items=NAMES[:20])
    split = hold_out_users(small, 0.3, rng=np.random.default_rng(1))
    model = EASE(6.0, dtype="float64").fit(DATA)
    result = evaluate(model, split, METRICS, KS)
    histories = np.zeros((len(split.users), 30), np.float32)
    histories[:, :20] = split.histories.toarray()
    ids, _ = model.recommend(csr(histories), max(KS))
    assert (ids >= 20).any()
    ids = np.where(ids >= 20, -1, ids)
    expected = Scorer(split.truth, split.item_counts, split.train.n_users, METRICS, KS).values(ids)
    for name, values in expected.items():
        assert np.array_equal(values, result.values[name], equal_nan=True)


def test_raw_ids_of_a_recommender_of_ones_own_may_be_a_plain_list():
    split = SPLITS["users"]
    backwards = Popular(np.arange(30))  # its column 29 is the first item of the split
    backwards.items_ = NAMES[::-1]
    expected = evaluate(Popular(-np.arange(30)), split, ["ndcg"], [5])
    assert evaluate(backwards, split, ["ndcg"], [5])["ndcg@5"] == pytest.approx(expected["ndcg@5"])


def test_a_model_that_knows_every_item_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(EASE(6.0).fit(permuted(DATA, np.arange(29, -1, -1))), SPLITS["users"], ks=(3,))


# --- what is counted, and errors ---------------------------------------------------------------------------------


def test_what_is_worth_counting():
    train = Interactions(np.array([[1.0, 1, 0, 0, 0], [0, 1, 1, 0, 0], [1, 1, 1, 0, 0]]))
    truth = csr([[0.0, 0, 1, 1, 0], [0, 0, 0, 0, 0], [0, 0, 0, 1, 0]])
    histories = csr([[1.0, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0]])
    split = Split(train, Ids.range(3), histories, truth, "mine", {"too loud": 4})
    result = evaluate(EASE(1.0).fit(train), split, ["ndcg", "head_ndcg", "tail_ndcg"], [2])
    assert result.notes["of them without truth"] == 1
    assert result.notes["without head truth"] == 3
    assert result.notes["without tail truth"] == 1
    assert result.notes["without a history"] == 1
    assert result.notes["others left out (too loud)"] == 4
    assert result.notes["of 3 interactions to find are with items that train does not have"] == 2
    assert np.isnan(result.values["ndcg@2"]).tolist() == [False, True, False]
    shown = result.to_markdown()
    assert "1 of them without truth" in shown
    assert "4 others left out (too loud)" in shown


def test_users_without_truth_of_given_lists_count_by_mode():
    train = Lists(np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 1, 2, 0, 2]), np.arange(3))
    truth = Lists(np.array([0]), np.array([2]), np.array([0]))
    split = given_split(train, truth)
    model = EASE(1.0).fit(split.train)
    standard = evaluate(model, split, ["recall"], [1])
    paper = evaluate(model, split, ["recall"], [1], mode="paper")
    assert standard["recall@1"] == 1
    assert paper["recall@1"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"xis": []}, "xis is empty"),
        ({"xis": [1.5]}, r"xi must lie in \[0, 1\]"),
        ({"metrics": ["accuracy"]}, "there is no metric 'accuracy'"),
        ({"metrics": "ndcg"}, "metrics is a list"),
        ({"ks": [31]}, "k=31 cannot be filled from a catalog of 30 items"),
        ({"ks": []}, "no cut-off"),
        ({"mode": "strict"}, "mode must be"),
    ],
    ids=str,
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        evaluate(EASE(6.0).fit(DATA), SPLITS["users"], **({"ks": (3,)} | options))


def test_an_unfitted_model():
    with pytest.raises(NotFittedError, match="call fit"):
        evaluate(EASE(6.0), SPLITS["users"], ks=(3,))
