"""What users have seen beside history and truth is neither to be found nor a candidate: by loops, in every split."""

import math
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given as given_by
from hypothesis import strategies as st

from relae import EASE, RDLAE, DataError, Interactions
from relae.baselines import Popularity
from relae.data import Lists
from relae.evaluation import (
    Split,
    evaluate,
    find_cut,
    given_split,
    hold_out_items,
    hold_out_new_items,
    hold_out_users,
    leave_last_out,
    split_by_time,
)
from relae.solvers import Auto

from ..oracles import brute_force_ndcg, brute_force_recall, brute_force_top_k, csr
from ..real_data import real
from .suite import blocks

USERS, ITEMS = 60, 30
X = blocks(USERS, ITEMS)
SEEN = (np.random.default_rng(3).random((USERS, ITEMS)) < 0.25) & (X.toarray() == 0)
NAMES = [f"film {j * 7 % ITEMS}" for j in range(ITEMS)]
WHO = [f"user {u}" for u in range(USERS)]
SEEN_TIMES = np.random.default_rng(5).integers(0, X.nnz, SEEN.sum())
DATA = Interactions(
    X, WHO, NAMES, times=np.random.default_rng(4).permutation(X.nnz), seen=csr(SEEN), seen_times=SEEN_TIMES
)


def rng():
    return np.random.default_rng(0)


SPLITS = {
    "strong": lambda data: hold_out_users(data, 0.3, rng=rng()),
    "weak": lambda data: hold_out_items(data, 0.3, rng=rng()),
    "last": lambda data: leave_last_out(data, 2),
    "time": lambda data: split_by_time(data, share=0.3),
    "new-items": lambda data: hold_out_new_items(data, 0.3, rng=rng()),
    "given": lambda data: given(data),
    "given histories": lambda data: given(data, new=True),
}


def given(data, new=False):
    """A split that was made elsewhere: of its parts each knows what its users have seen."""
    parts = hold_out_users(data, 0.3, rng=rng()) if new else hold_out_items(data, 0.3, rng=rng())
    truth = Interactions(parts.truth, parts.users, data.items)
    histories = Interactions(parts.histories, parts.users, data.items, seen=parts.seen) if new else None
    return given_split(parts.train, truth, histories)


def pairs(matrix, users, items):
    if matrix is None:
        return set()
    cells = matrix.tocoo()
    return set(zip(users.take(cells.row), items.take(cells.col), strict=True))


def known_pairs(kind, split):
    """What is seen beside DATA of the users of a split, as far as a model may know of it; by a loop."""
    cells, liked = DATA.seen.tocoo(), DATA.matrix.tocoo()
    truth = pairs(split.truth, split.users, split.train.items)
    hidden = {}  # the times of what each user has to find
    for user, item, at in zip(liked.row, liked.col, DATA.times.tolist(), strict=True):
        if (WHO[user], NAMES[item]) in truth:
            hidden.setdefault(WHO[user], []).append(at)
    moments = dict.fromkeys(WHO, math.inf)
    if kind == "last":
        moments |= {user: min(times) for user, times in hidden.items()}
    if kind == "time":
        moments = dict.fromkeys(WHO, sorted(DATA.times)[X.nnz - round(0.3 * X.nnz)])
    times = zip(cells.row, cells.col, SEEN_TIMES.tolist(), strict=True)
    return {(WHO[user], NAMES[item]) for user, item, at in times if at < moments[WHO[user]]}


@pytest.fixture(params=SPLITS)
def kind(request):
    return request.param


@pytest.fixture
def split(kind):
    return SPLITS[kind](DATA)


def test_splits_carry_what_is_seen(kind, split):
    items, whole = split.train.items, known_pairs(kind, split)
    assert (len(whole) < DATA.seen.nnz) == (kind in ("last", "time"))
    assert pairs(split.seen, split.users, items) == {pair for pair in whole if pair[0] in split.users.values}
    train = set(split.train.users.values)
    assert pairs(split.train.seen, split.train.users, items) == {pair for pair in whole if pair[0] in train}
    assert split.seen.multiply(split.truth).nnz == split.seen.multiply(split.histories).nnz == 0
    assert f"without {split.seen.nnz:,} pairs seen beside them" in repr(split)


def test_a_split_of_a_split_carries_it_too(kind, split):
    again = SPLITS[kind](split.train)
    assert again.seen.nnz > 0
    assert (again.seen[:, :].multiply(again.truth)).nnz == 0


def test_everything_has_it_again(kind, split):
    whole = split.everything()
    everybody = set(whole.users.values)
    seen = {pair for pair in pairs(DATA.seen, DATA.users, DATA.items) if pair[0] in everybody}
    assert pairs(whole.seen, whole.users, whole.items) == seen
    if kind not in ("time", "new-items"):  # which drop users
        assert seen == pairs(DATA.seen, DATA.users, DATA.items)


def test_the_draw_does_not_depend_on_what_is_seen(kind, split):
    plain = SPLITS[kind](DATA.without_seen())
    assert plain.seen is None
    assert "seen" not in repr(plain)
    assert (plain.truth != split.truth).nnz == (plain.histories != split.histories).nnz == 0
    assert (plain.train.matrix != split.train.matrix).nnz == 0


def oracle(model, split, k):
    """Recall and nDCG of each user, with lists made by a loop over all scores."""
    scores = model.score(split.histories)
    allowed = set(range(split.train.n_items)) if split.candidates is None else set(split.candidates.tolist())
    values = []
    for row in range(len(split.users)):
        had = set(split.histories[[row]].indices) | set(split.seen[[row]].indices)
        ranked, _ = brute_force_top_k(scores[row], k, had | (set(range(split.train.n_items)) - allowed))
        truth = set(split.truth[[row]].indices)
        values.append((brute_force_recall(ranked, truth, k), brute_force_ndcg(ranked, truth, k)))
    return np.array(values)


@pytest.mark.parametrize("model", [EASE(20.0), Popularity()], ids=["EASE", "Popularity"])
def test_lists_are_those_of_a_loop(split, model):
    how = {"solver": Auto(dtype="float64")} if isinstance(model, EASE) else {}
    model = type(model)(**model.get_params()).fit(split.train, **how)
    k = min(5, split.n_candidates)
    found = evaluate(model, split, ["recall", "ndcg"], [k])
    expected = oracle(model, split, k)
    assert not np.isnan(expected).any()
    assert np.allclose(found.values[f"recall@{k}"], expected[:, 0])
    assert np.allclose(found.values[f"ndcg@{k}"], expected[:, 1])
    assert found.notes["pairs seen beside them, neither to be found nor candidates"] == split.seen.nnz


def test_along_a_path_of_xi():
    split = SPLITS["strong"](DATA)
    model = EASE(20.0).fit(split.train)
    xis = [0.0, 0.4, 1.0]
    for found, xi in zip(evaluate(model, split, ["ndcg"], [5], xis), xis, strict=True):
        assert np.array_equal(
            found.values["ndcg@5"], evaluate(model.with_xi(xi), split, ["ndcg"], [5]).values["ndcg@5"]
        )


# --- by time -----------------------------------------------------------------------------------------------------


@st.composite
def rated_rows(draw):
    """Rows of user, item, stars and time, with many ties; some pairs occur twice."""
    row = st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(3, 4), st.integers(0, 12))
    return draw(st.lists(row, min_size=4, max_size=40))


def low_and_high(rows):
    """The last time of each pair that is liked, and the first of each that is only rated low."""
    liked, low = {}, {}
    for user, item, stars, at in rows:
        if stars == 4:
            liked[user, item] = max(at, liked.get((user, item), at))
    for user, item, stars, at in rows:
        if stars < 4 and (user, item) not in liked:
            low[user, item] = min(at, low.get((user, item), at))
    return liked, low


def read_rows(rows):
    table = pl.DataFrame(rows, schema=["user", "item", "stars", "at"], orient="row")
    return Interactions.from_frame(table, rating="stars", min_rating=4, timestamp="at")


def check_by_time(split, low, moments):
    """A split knows of a low rating if it was before the moment of its user; and so does its train."""
    items = set(split.train.items.values)
    known = {pair for pair, at in low.items() if at < moments.get(pair[0], math.inf) and pair[1] in items}
    judged, trained = set(split.users.values), set(split.train.users.values)
    assert pairs(split.seen, split.users, split.train.items) == {pair for pair in known if pair[0] in judged}
    of_train = {pair for pair in known if pair[0] in trained}
    assert pairs(split.train.seen, split.train.users, split.train.items) == of_train
    whole = split.everything()
    later = {pair for pair in low if pair[0] in trained and pair[1] in items}
    assert pairs(whole.seen, whole.users, whole.items) == later
    return {pair: low[pair] for pair in of_train}


@given_by(rated_rows(), st.integers(1, 12), st.integers(1, 12))
def test_by_time_nothing_is_known_that_is_rated_low_later(rows, one, other):
    liked, low = low_and_high(rows)
    for at in sorted({one, other}, reverse=True):  # the second time in the train of the first
        before = {pair: when for pair, when in liked.items() if when < at}
        both = {user for user, _ in before} & {user for user, _ in set(liked) - set(before)}
        if not both:
            return
        if at == max(one, other):
            data = read_rows(rows)
            low = {pair: when for pair, when in low.items() if pair[0] in {user for user, _ in liked}}
        split = split_by_time(data, at=at)
        assert set(split.users.values) == both
        low = check_by_time(split, low, dict.fromkeys(range(4), at))
        data, liked = split.train, before


@given_by(rated_rows(), st.integers(1, 2))
def test_of_the_last_items_nothing_is_known_that_is_rated_low_later(rows, n):
    liked, low = low_and_high(rows)
    if not liked:
        return
    data = read_rows(rows)
    low = {pair: when for pair, when in low.items() if pair[0] in {user for user, _ in liked}}
    for _ in range(2):  # the second time in the train of the first
        moments = {}
        for user in range(4):
            own = sorted((at, item) for (who, item), at in liked.items() if who == user)
            if len(own) > n:
                moments[user] = own[-n][0]
                for _, item in own[-n:]:
                    del liked[user, item]
        if not moments:
            return
        split = leave_last_out(data, n)
        assert set(split.users.values) == set(moments)
        low = check_by_time(split, low, moments)
        data = split.train


@pytest.mark.parametrize("kind", ["last", "time"])
def test_by_time_what_has_no_time_is_not_left_out(kind):
    """It is not known when it was seen, so that nothing is left out: a figure may be too low, and never too high."""
    timeless = Interactions(X, WHO, NAMES, times=DATA.times, seen=csr(SEEN))
    with pytest.warns(UserWarning, match="has no times"):
        split = SPLITS[kind](timeless)
    assert split.seen is None
    assert split.train.seen is None
    assert split.everything().seen.nnz > 0


def test_ml_1m_by_time():
    """The pairs counted by joins of the table, and the figures of the documentation."""
    path = real("ml-1m") / "interactions.csv.gz"
    options = {"rating": "rating", "min_rating": 4, "min_user_count": 5, "timestamp": "timestamp"}
    data = Interactions.read(path, **options)
    split = split_by_time(data)
    at = find_cut(data, 0.2)
    assert split.protocol == f"from {np.datetime64(at, 's').astype('datetime64[D]')} on"
    low = pl.read_csv(path).filter(pl.col("rating") < 4, pl.col("timestamp") < at)
    low = low.filter(pl.col("user").is_in(split.users.values), pl.col("item").is_in(data.items.values))
    assert split.seen.nnz == low.height == 100_468
    model = RDLAE(200.0, 0.3, 0.3).fit(split.train)
    assert evaluate(model, split, ["ndcg"], [100])["ndcg@100"] == pytest.approx(0.2636, abs=1e-4)
    plain = split_by_time(data.without_seen())
    assert evaluate(model, plain, ["ndcg"], [100])["ndcg@100"] == pytest.approx(0.2212, abs=1e-4)
    last = leave_last_out(data)
    hidden = dict(zip(last.users.take(np.arange(len(last.users))), _truth_times(data, last), strict=True))
    low = pl.read_csv(path).filter(pl.col("rating") < 4, pl.col("item").is_in(data.items.values))
    assert last.seen.nnz == sum(at < hidden.get(user, -1) for user, at in low.select("user", "timestamp").iter_rows())


def _truth_times(data, split):
    """The time of the one hidden item of each user."""
    rows = data.users.positions(split.users.values)
    assert (np.diff(split.truth.indptr) == 1).all()
    starts, stops = data.matrix.indptr[rows], data.matrix.indptr[rows + 1]
    return [max(data.times[start:stop].tolist()) for start, stop in zip(starts, stops, strict=True)]


class Plain(NamedTuple):
    """A recommender that knows nothing but histories and how many items are wanted."""

    model: EASE

    def recommend(self, histories, k=10):
        return self.model.recommend(histories, k)

    def score(self, histories):
        return self.model.score(histories)


def test_any_recommender_is_asked_for_more_and_cut():
    split = SPLITS["strong"](DATA)
    model = EASE(20.0).fit(split.train)
    ours, theirs = (evaluate(each, split, ["ndcg", "recall"], [5, 20]) for each in (model, Plain(model)))
    for name in ours.values:
        assert np.array_equal(ours.values[name], theirs.values[name])


def test_a_model_with_other_columns():
    split = SPLITS["strong"](DATA)
    order = np.random.default_rng(2).permutation(ITEMS)
    items = [NAMES[c] for c in order]
    model = EASE(20.0).fit(Interactions(split.train.matrix[:, order], items=items), solver=Auto(dtype="float64"))
    same = EASE(20.0).fit(split.train, solver=Auto(dtype="float64"))
    ours, theirs = (evaluate(each, split, ["ndcg"], [5]).values["ndcg@5"] for each in (same, model))
    assert np.allclose(ours, theirs)


def test_results_with_and_without_it_are_told_apart():
    with_seen, plain = (SPLITS["strong"](data) for data in (DATA, DATA.without_seen()))
    model = EASE(20.0).fit(with_seen.train)
    ours, theirs = (evaluate(model, split, ks=[10]) for split in (with_seen, plain))
    assert ours.truth != theirs.truth
    assert ours["ndcg@10"] > theirs["ndcg@10"]  # bad candidates are gone


def test_the_mode_of_the_paper_knows_nothing_of_it():
    with_seen, plain = (SPLITS["strong"](data) for data in (DATA, DATA.without_seen()))
    model = EASE(20.0).fit(with_seen.train)
    ours, theirs = (evaluate(model, split, ["ndcg", "tail_recall"], [10], mode="paper") for split in (with_seen, plain))
    assert ours.truth == theirs.truth
    assert ours.notes == theirs.notes
    assert all(np.array_equal(ours.values[name], theirs.values[name], equal_nan=True) for name in theirs.values)


def test_in_given_parts_what_is_liked_anywhere_is_not_seen():
    train = Interactions(np.array([[1, 1, 0, 0, 0.0]]), seen=np.array([[0, 0, 1, 1, 0]]))
    truth = Interactions(np.array([[0, 0, 0, 1, 0.0]]), seen=np.array([[0, 1, 0, 0, 1]]))
    split = given_split(train, truth)
    assert split.seen.toarray().tolist() == [[False, False, True, False, True]]
    assert split.everything().seen.toarray().tolist() == [[False, False, True, False, False]]


def test_lists_have_seen_nothing():
    lists = Lists(np.array([0, 0, 1]), np.array([0, 1, 2]), np.array([0, 1]))
    assert given_split(lists, Lists(np.array([0]), np.array([2]), np.array([0]))).seen is None


def test_a_split_of_ones_own():
    cells = {"histories": [[1, 0, 0]], "truth": [[0, 1, 0]]}
    parts = {name: csr(np.array(rows, np.float32)) for name, rows in cells.items()}
    train = Interactions(sp.csr_array(np.ones((2, 3), np.float32)))
    split = Split(train, train.select_users([0]).users, **parts, protocol="own", seen=csr(np.ones((1, 3))))
    assert split.seen.toarray().tolist() == [[False, False, True]]
    with pytest.raises(DataError, match="seen are 2 × 3, and there are 1 users"):
        Split(train, split.users, **parts, protocol="own", seen=csr(np.ones((2, 3))))
    nothing = Split(train, split.users, **parts, protocol="own", seen=csr(np.eye(1, 3)))
    assert nothing.seen is None
    assert not math.isnan(evaluate(Popularity().fit(train), nothing, ["ndcg"], [1])["ndcg@1"])
