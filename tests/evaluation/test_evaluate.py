"""Evaluating a recommender beside a slow evaluation of its scores, user by user."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from relae import EASE, RDLAE, DataError, Interactions, NotFittedError, UnknownItemsWarning
from relae.baselines import GFCF, Popularity, Random
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
    hold_out_new_items,
    hold_out_users,
    paper_splits,
    strong_lists,
)
from relae.experiments.paper import popularity_order
from relae.solvers import Auto

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

KS = (7, 3)
NAMES = [f"thing {column * 7 % 30}" for column in range(30)]
DATA = Interactions(blocks(), items=NAMES)
SPLITS = {
    "users": hold_out_users(DATA, 0.3, rng=np.random.default_rng(1)),
    "items": hold_out_items(DATA, 0.3, rng=np.random.default_rng(1)),
}
COLD = hold_out_new_items(DATA, 0.4, rng=np.random.default_rng(1))
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
    among = range(len(counts)) if split.candidates is None else split.candidates.tolist()
    seen = [set(range(len(counts))) - {i for i in among if not row[i]} for row in split.histories.toarray()]
    lists = [brute_force_top_k(row, max(KS), known)[0] for row, known in zip(scores, seen, strict=True)]
    found = {}
    for k in KS:
        for name in PER_USER:
            values = [
                user_value(name, ranked, hidden.tolist(), k, head=head, propensity=propensity, mode=mode)
                for ranked, hidden in zip(lists, order, strict=True)
            ]
            found[f"{name}@{k}"] = np.nan if np.isnan(values).all() else np.nanmean(values)
        for name in OVERALL:
            shown = [[among.index(item) for item in ranked if item >= 0] for ranked in lists]
            some, few = [counts[item] for item in among], {among.index(item) for item in head if item in among}
            found[f"{name}@{k}"] = overall_value(name, shown, k, some, split.train.n_users, few)
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
    result = evaluate(model, split, METRICS, KS, mode="paper", item_order=popularity_order)
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
    monkeypatch.setattr("relae.evaluation._evaluate._BATCH_BYTES", 12 * 7 * 11)
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


# --- candidates --------------------------------------------------------------------------------------------------


class Tastes(Popularity):
    """Scores of both tastes for any item, new or not: something to find."""

    def project(self, batch):
        parity = np.arange(batch.shape[1]) % 2
        odd = batch.toarray() @ parity / np.maximum(batch.sum(axis=1), 1)
        return np.where(parity, odd[:, None], 1 - odd[:, None]) + np.sin(np.arange(batch.shape[1])) / 100


def candidates_of(split, candidates):
    return replace(split, candidates=np.union1d(candidates, split.truth.indices))


@pytest.mark.parametrize(
    "split",
    [COLD, candidates_of(SPLITS["users"], [4, 9]), candidates_of(SPLITS["items"], np.arange(12))],
    ids=["new items", "users", "items"],
)
def test_only_candidates_are_recommended_by_every_metric(split):
    for model in (Tastes(), EASE(6.0), Random(), Popularity()):
        model.fit(split.train)
        result = evaluate(model, split, METRICS, KS)
        expected = slow_evaluation(model.score(split.histories), split)
        assert result.means == pytest.approx(expected, nan_ok=True)
    assert evaluate(Tastes().fit(split.train), split, ["ndcg"], KS)["ndcg@3"] > 0.2


def test_items_that_are_new_are_of_the_tail_and_none_is_more_likely_to_be_seen():
    result = evaluate(Tastes().fit(COLD.train), COLD, METRICS, KS)
    for k in KS:
        assert np.isnan(result[f"head_ndcg@{k}"])
        assert result[f"tail_ndcg@{k}"] == result[f"ndcg@{k}"]
        assert result[f"unbiased_ndcg@{k}"] == pytest.approx(result[f"ndcg@{k}"])
        assert result[f"unbiased_recall@{k}"] == pytest.approx(result[f"recall_capped@{k}"])
        assert (result[f"tail_share@{k}"], result[f"popularity@{k}"]) == (1, 0)
    assert evaluate(Random().fit(COLD.train), COLD, ["coverage"], [7])["coverage@7"] == 1  # of the new items
    assert result.notes["items to choose from"] == len(COLD.candidates) == 12
    assert result.notes["without head truth"] == len(COLD.users)
    assert result.notes[f"of {COLD.truth.nnz:,} interactions to find are with items that train does not have"] == (
        COLD.truth.nnz
    )
    assert "12 items to choose from" in result.to_markdown()
    assert "–" in result.to_markdown()


def test_all_new_items_are_as_popular_as_each_other():
    model = Popularity().fit(COLD.train)
    ids, scores = model.recommend(COLD.histories, 4, allow=COLD.candidates)
    assert (ids == COLD.candidates[:4]).all()
    assert not scores.any()


def test_a_path_of_xi_among_candidates():
    split = candidates_of(SPLITS["users"], np.arange(12))
    model = RDLAE(3.0, 0.4, 0.42).fit(split.train)
    for xi, result in zip([0.0, 0.6], evaluate(model, split, METRICS, KS, xis=[0.0, 0.6]), strict=True):
        assert result.means == pytest.approx(slow_evaluation(model.with_xi(xi).score(split.histories), split))


def test_candidates_are_found_by_their_ids_in_a_model_with_other_columns():
    split = candidates_of(SPLITS["users"], np.arange(0))
    order = np.random.default_rng(3).permutation(30)
    expected = evaluate(EASE(6.0).fit(split.train, solver=Auto(dtype="float64")), split, METRICS, KS)
    found = evaluate(EASE(6.0).fit(permuted(split.train, order), solver=Auto(dtype="float64")), split, METRICS, KS)
    assert found.means == pytest.approx(expected.means)


def test_candidates_that_the_model_does_not_know_are_never_found():
    kept = np.setdiff1d(np.arange(30), COLD.candidates[:4])
    model = Tastes().fit(permuted(COLD.train, kept))
    with pytest.warns(UnknownItemsWarning, match="in truth, which it cannot find"):
        result = evaluate(model, COLD, METRICS, KS)
    scores = np.full(COLD.truth.shape, -np.inf)
    scores[:, kept] = model.score(COLD.histories[:, kept])
    assert result.means == pytest.approx(slow_evaluation(scores, COLD), nan_ok=True)
    with pytest.warns(UnknownItemsWarning):
        nothing = evaluate(Tastes().fit(permuted(COLD.train, np.setdiff1d(range(30), COLD.candidates))), COLD, ks=[3])
    assert nothing["recall@3"] == nothing["coverage@3"] == 0


def test_a_recommender_that_cannot_be_told_the_candidates_is_refused():
    with pytest.raises(DataError, match=r"only 12 of 30 items may be recommended \(held-out new items\), and Popular"):
        evaluate(Popular(COLD.item_counts), COLD, ks=(3,))


def test_lists_are_no_longer_than_the_candidates():
    model = Tastes().fit(COLD.train)
    evaluate(model, COLD, ks=[12])
    with pytest.raises(DataError, match="k=13 cannot be filled from a choice of 12 items: choose a smaller k"):
        evaluate(model, COLD, ks=[3, 13])


def test_results_among_other_candidates_are_not_compared():
    split = SPLITS["users"]
    model = Tastes().fit(split.train)
    all_may, some_may = (evaluate(model, each, ["ndcg"], [3]) for each in (split, candidates_of(split, [0])))
    with pytest.raises(ValueError, match="only evaluations of the same users, truth and mode"):
        all_may.compare(some_may)


# --- other columns -----------------------------------------------------------------------------------------------


def permuted(data, order):
    return Interactions(data.matrix[:, order], data.users, data.items.values[order])


def test_a_model_with_its_columns_in_another_order_is_as_good():
    split = SPLITS["users"]
    order = np.random.default_rng(3).permutation(30)
    expected = evaluate(EASE(6.0).fit(split.train, solver=Auto(dtype="float64")), split, METRICS, KS)
    found = evaluate(EASE(6.0).fit(permuted(split.train, order), solver=Auto(dtype="float64")), split, METRICS, KS)
    assert found.means == pytest.approx(expected.means)
    path = evaluate(
        EASE(6.0).fit(permuted(split.train, order), solver=Auto(dtype="float64")), split, METRICS, KS, xis=[0.0]
    )
    assert path[0].means == pytest.approx(expected.means)


def test_items_that_the_model_does_not_know_are_counted_and_never_found():
    split = SPLITS["users"]
    kept = np.arange(5, 30)
    small = permuted(split.train, kept)
    model = EASE(6.0).fit(small, solver=Auto(dtype="float64"))
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
    model = EASE(6.0).fit(DATA, solver=Auto(dtype="float64"))
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
