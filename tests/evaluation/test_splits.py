"""Divisions that are partitions and do not leak."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from relae import EASE, DataError, Interactions
from relae.data import Features, Ids, Lists
from relae.evaluation import (
    Split,
    evaluate,
    given_split,
    hold_out_items,
    hold_out_new_items,
    hold_out_users,
    leave_last_out,
    paper_splits,
    split_by_time,
    strong_lists,
)

from ..oracles import csr, example

DENSE = example(60, 25, weighted=True)
USERS, ITEMS = [f"u{u}" for u in range(60)], [f"i{i}" for i in range(25)]
TITLES = [f"The {i}" for i in range(25)]
FEATURES = np.random.default_rng(7).normal(size=(25, 3)).astype(np.float32)
DATA = Interactions(csr(DENSE), users=USERS, items=ITEMS, titles=TITLES, features=FEATURES)
SHARES = st.floats(0.01, 0.99)


def rng(seed=0):
    return np.random.default_rng(seed)


def timed(seed=0, users=40, items=20, distinct=15):
    """Interactions with times, many of them equal, and a user without any."""
    x = example(users, items, weighted=True, seed=seed)
    matrix = csr(x)
    times = rng(seed).integers(0, distinct, matrix.nnz)
    when = np.full(x.shape, -1)
    when[matrix.nonzero()] = times
    return Interactions(matrix, USERS[:users], ITEMS[:items], TITLES[:items], times, FEATURES[:items]), x, when


def positions(split, names=USERS):
    return [names.index(user) for user in split.users.values]


def check_parts(split, whole):
    """History and truth are the whole row, weights and all, and have nothing in common; train keeps the rest."""
    histories, truth = split.histories.toarray(), split.truth.toarray()
    assert np.array_equal(histories + truth, whole[positions(split)])
    assert not ((histories > 0) & (truth > 0)).any()
    assert (truth > 0).any(axis=1).all()
    assert (histories > 0).any(axis=1).all()
    for part in (split.train.matrix, split.histories, split.truth):
        assert part.format == "csr"
        assert part.has_canonical_format
        assert part.dtype == np.float32
        assert (part.data > 0).all()
    assert split.train.items.values.tolist() == ITEMS[: whole.shape[1]]
    assert split.train.titles.tolist() == TITLES[: whole.shape[1]]
    assert np.array_equal(split.train.features.matrix.toarray(), FEATURES[: whole.shape[1]])
    assert np.array_equal(split.everything().features.matrix.toarray(), FEATURES[: whole.shape[1]])
    assert split.item_counts.tolist() == (split.train.matrix.toarray() > 0).sum(axis=0).tolist()


# --- strong ------------------------------------------------------------------------------------------------------


@given(st.floats(0.05, 0.9), SHARES, st.integers(0, 100))
def test_held_out_users_are_not_in_train(share, truth_share, seed):
    split = hold_out_users(DATA, share, truth_share, rng=rng(seed))
    held = positions(split)
    rest = [user for user in range(60) if user not in held]
    assert held == sorted(set(held))
    assert len(held) == round(share * 60)
    assert np.array_equal(split.train.matrix.toarray(), DENSE[rest])
    assert split.train.users.values.tolist() == [USERS[user] for user in rest]
    check_parts(split, DENSE)
    sizes = np.count_nonzero(DENSE[held], axis=1)
    assert (sizes >= 2).all()
    assert np.diff(split.truth.indptr).tolist() == np.maximum(1, np.floor(truth_share * sizes)).tolist()
    assert split.left_out == {}


def test_users_with_a_single_item_are_never_held_out():
    x = np.ones((10, 4))
    x[:6, 1:] = 0
    for seed in range(20):
        assert hold_out_users(Interactions(x), 0.4, 0.5, rng=rng(seed)).users.values.min() >= 6
    with pytest.raises(DataError, match="cannot hold out 5 of 10 users: 4 of them have two items or more"):
        hold_out_users(Interactions(x), 0.5, 0.5, rng=rng())


def test_shares_that_leave_nobody():
    with pytest.raises(DataError, match="cannot hold out 0 of 60 users"):
        hold_out_users(DATA, 0.001, rng=rng())
    with pytest.raises(DataError, match="cannot hold out 2 of 2 users"):
        hold_out_users(Interactions(np.ones((2, 3))), 0.9, 0.5, rng=rng())


def test_everybody_is_drawn_evenly():
    counts = np.zeros(20)
    for seed in range(200):
        counts[hold_out_users(Interactions(np.ones((20, 3))), 0.25, 0.5, rng=rng(seed)).users.values] += 1
    assert (np.abs(counts - 50) < 30).all()


# --- weak --------------------------------------------------------------------------------------------------------


@given(SHARES, st.integers(0, 100))
def test_held_out_items_are_not_in_train(truth_share, seed):
    split = hold_out_items(DATA, truth_share, rng=rng(seed))
    check_parts(split, DENSE)
    sizes = np.count_nonzero(DENSE, axis=1)
    assert positions(split) == np.flatnonzero(sizes >= 2).tolist()
    assert np.diff(split.truth.indptr).tolist() == np.maximum(1, np.floor(truth_share * sizes[sizes >= 2])).tolist()
    expected = DENSE.copy()
    expected[positions(split)] -= split.truth.toarray()
    assert np.array_equal(split.train.matrix.toarray(), expected)
    assert np.array_equal(split.train.matrix[positions(split)].toarray(), split.histories.toarray())
    assert split.train.users == DATA.users
    assert split.left_out == {"too few items": int((sizes < 2).sum())}


def test_users_with_a_single_item_are_trained_on_and_not_judged_by():
    x = np.array([[1.0, 0, 0], [1, 1, 0], [0, 1, 1]])
    split = hold_out_items(Interactions(x), 0.5, rng=rng())
    assert split.users.values.tolist() == [1, 2]
    assert split.left_out == {"too few items": 1}
    assert split.train.matrix.toarray()[0].tolist() == [1, 0, 0]
    with pytest.raises(DataError, match="none of the 2 users has enough items"):
        hold_out_items(Interactions(np.eye(2)), rng=rng())


def test_the_truth_is_drawn_evenly():
    for split in (
        hold_out_items(Interactions(np.ones((400, 5))), 0.2, rng=rng()),
        hold_out_users(Interactions(np.ones((444, 5))), 0.9, 0.2, rng=rng()),
    ):
        counts = split.truth.toarray().sum(axis=0)
        assert counts.sum() == 400
        assert (np.abs(counts - 80) < 37).all()  # about 4.6 standard deviations


# --- cold start --------------------------------------------------------------------------------------------------


def check_new_items(split, whole, new):
    """By loops: who is trained on, who is judged by, and what is whose."""
    trained, judged, histories, truths = [], [], [], []
    for user, row in enumerate(whole):
        history = {item: weight for item, weight in enumerate(row) if weight and item not in new}
        truth = {item: weight for item, weight in enumerate(row) if weight and item in new}
        if history:
            trained.append(user)
        if history and truth:
            judged.append(user)
            histories.append(history)
            truths.append(truth)
    assert split.train.users.values.tolist() == [USERS[user] for user in trained]
    assert positions(split) == judged
    for matrix, expected in ((split.histories, histories), (split.truth, truths)):
        assert [dict(enumerate(row)) for row in matrix.toarray()] == [
            {item: row.get(item, 0) for item in range(whole.shape[1])} for row in expected
        ]
    assert np.array_equal(
        split.train.matrix.toarray(), np.where(np.isin(range(whole.shape[1]), new), 0, whole)[trained]
    )
    reasons = {"no other items": len(whole) - len(trained), "no new item": len(trained) - len(judged)}
    assert split.left_out == {reason: count for reason, count in reasons.items() if count}


@given(st.floats(0.05, 0.8), st.integers(0, 100))
def test_new_items_are_all_truth_and_not_in_train(share, seed):
    x = DENSE * (rng(1000 + seed).random(DENSE.shape) < 0.3)  # some users have nothing new, or nothing else
    able = np.flatnonzero(x.any(axis=0))
    split = hold_out_new_items(Interactions(csr(x), USERS, ITEMS, TITLES, features=FEATURES), share, rng=rng(seed))
    new = split.candidates
    assert new.dtype == np.int64
    assert new.tolist() == sorted(set(new.tolist()) & set(able.tolist()))
    assert len(new) == round(share * len(able))
    check_new_items(split, x, new)
    check_parts(split, x)
    assert not split.item_counts[new].any()
    assert split.new_users is False


def test_new_items_can_be_held_out_again_for_a_validation():
    test = hold_out_new_items(DATA, 0.3, rng=rng())
    valid = hold_out_new_items(test.train, 0.3, rng=rng())
    assert not set(valid.candidates) & set(test.candidates)
    assert valid.train.n_items == 25
    whole = test.everything()
    assert np.array_equal(whole.matrix[whole.users.positions(test.users.values)].toarray(), DENSE[positions(test)])


def test_new_items_keep_the_times_of_the_others():
    data, _, when = timed()
    train = hold_out_new_items(data, 0.4, rng=rng()).train
    rows = [USERS.index(user) for user in train.users.values]
    assert train.times.tolist() == when[rows][train.matrix.nonzero()].tolist()


def test_items_are_new_by_an_even_chance():
    counts = np.zeros(20)
    for seed in range(200):
        counts[hold_out_new_items(Interactions(np.ones((3, 20))), 0.25, rng=rng(seed)).candidates] += 1
    assert (np.abs(counts - 50) < 30).all()


def test_too_few_or_too_many_new_items():
    with pytest.raises(DataError, match="cannot hold out 0 of 25 items: 24 of them have users"):
        hold_out_new_items(DATA, 0.01, rng=rng())
    with pytest.raises(DataError, match="cannot hold out 3 of 3 items: 3 of them have users"):
        hold_out_new_items(Interactions(np.ones((2, 3))), 0.9, rng=rng())
    with pytest.raises(DataError, match="no user has both new and other items"):
        hold_out_new_items(Interactions(np.eye(4)), 0.5, rng=rng())


# --- any of them -------------------------------------------------------------------------------------------------


DRAWN = {"users": hold_out_users, "items": hold_out_items, "new items": hold_out_new_items}


@pytest.mark.parametrize("divide", DRAWN.values(), ids=DRAWN)
def test_the_generator_decides(divide):
    first, second, other = (divide(DATA, rng=rng(seed)) for seed in (1, 1, 2))
    assert first.users == second.users
    assert np.array_equal(first.truth.toarray(), second.truth.toarray())
    assert np.array_equal(first.train.matrix.toarray(), second.train.matrix.toarray())
    same_users = first.users == other.users
    assert not (same_users and np.array_equal(first.truth.toarray(), other.truth.toarray()))


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, np.nan])
def test_bad_shares(share):
    for name, divide in (
        ("share", lambda: hold_out_users(DATA, share, rng=rng())),
        ("truth_share", lambda: hold_out_users(DATA, 0.1, share, rng=rng())),
        ("truth_share", lambda: hold_out_items(DATA, share, rng=rng())),
        ("share", lambda: hold_out_new_items(DATA, share, rng=rng())),
        ("share", lambda: split_by_time(timed()[0], share=share)),
    ):
        with pytest.raises(ValueError, match=f"^{name} must lie between 0 and 1, got {share}"):
            divide()


# --- temporal ----------------------------------------------------------------------------------------------------


@given(st.integers(1, 6), st.integers(0, 30))
def test_the_last_items_of_a_user_are_the_truth(n, seed):
    data, x, when = timed(seed)
    split = leave_last_out(data, n)
    check_parts(split, x)
    sizes = np.count_nonzero(x, axis=1)
    judged = positions(split)
    assert judged == np.flatnonzero(sizes > n).tolist()
    assert split.left_out.get("too few items", 0) == (sizes <= n).sum()
    for row, user in enumerate(judged):
        order = sorted(np.flatnonzero(x[user]), key=lambda item, user=user: (when[user, item], item))
        assert set(split.truth.indices[slice(*split.truth.indptr[row : row + 2])]) == set(order[-n:])
    expected = x.copy()
    expected[judged] -= split.truth.toarray()
    assert np.array_equal(split.train.matrix.toarray(), expected)


@given(st.integers(1, 14), st.integers(0, 30))
def test_nothing_from_a_moment_on_is_in_train(at, seed):
    data, x, when = timed(seed)
    split = split_by_time(data, at)
    before, after = x * (when < at), x * (when >= at)
    known = np.flatnonzero(before.any(axis=1))
    judged = [user for user in known if after[user].any()]
    check_parts(split, x)
    assert positions(split) == judged
    assert np.array_equal(split.histories.toarray(), before[judged])
    assert np.array_equal(split.truth.toarray(), after[judged])
    assert np.array_equal(split.train.matrix.toarray(), before[known])
    assert split.train.users.values.tolist() == [USERS[user] for user in known]
    expected = {"no history before": 40 - len(known), "nothing after": len(known) - len(judged)}
    assert split.left_out == {reason: count for reason, count in expected.items() if count}
    assert str(at) in split.protocol


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5, 0.7, 0.9])
def test_without_a_moment_the_latest_share_is_the_truth(share):
    data = Interactions(np.ones((2, 50)), times=rng().permutation(100))
    split = split_by_time(data, share=share)
    assert split.truth.nnz == round(100 * share)
    assert split.train.n_interactions == 100 - round(100 * share)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.8, 0.9])
def test_shares_of_few_interactions(share):
    data = Interactions(np.ones((1, 10)), times=np.arange(10))
    assert split_by_time(data, share=share).truth.nnz == round(10 * share)


def test_a_moment_before_or_after_everything_is_an_error_with_plain_numbers():
    data = Interactions(np.ones((2, 5)), times=np.arange(10))
    with pytest.raises(DataError, match=r"nothing happens before 0: times run from 0 to 9$"):
        split_by_time(data, 0)
    with pytest.raises(DataError, match=r"nothing happens at or after 10: times run from 0 to 9$"):
        split_by_time(data, 10)


def test_a_moment_that_is_not_in_the_unit_of_the_times_is_an_error_that_says_so():
    data = Interactions(np.ones((2, 5)), times=np.arange(10))
    with pytest.raises(ValueError, match="2020-01-01"):
        split_by_time(data, "2020-01-01")


def test_nobody_on_both_sides_of_a_moment():
    data = Interactions(np.ones((2, 2)), times=[1, 2, 5, 6])
    with pytest.raises(DataError, match="no user has interactions both before and from 4 on"):
        split_by_time(data, 4)


def test_times_are_needed():
    for divide in (leave_last_out, split_by_time):
        with pytest.raises(DataError, match=r"have no times: name the column.*timestamp="):
            divide(DATA)


@pytest.mark.parametrize("n", [0, -1, 1.0, True, "1"])
def test_bad_n(n):
    with pytest.raises(ValueError, match="n must be a whole number of at least 1"):
        leave_last_out(timed()[0], n)


def test_nobody_has_enough_items_for_the_last_n():
    with pytest.raises(DataError, match="none of the 40 users has enough items"):
        leave_last_out(timed()[0], 20)


@pytest.mark.parametrize(
    "divide",
    [leave_last_out, lambda data: split_by_time(data, 12), lambda data: hold_out_items(data, rng=rng())],
    ids=["last", "moment", "items"],
)
def test_train_keeps_its_times_so_that_it_can_be_divided_again(divide):
    data, _, when = timed()
    train = divide(data).train
    assert train.times is not None
    rows = [USERS.index(user) for user in train.users.values]
    cells = train.matrix.nonzero()
    assert train.times.tolist() == when[rows][cells].tolist()


def test_held_out_users_leave_the_times_of_the_others():
    data, _, when = timed()
    train = hold_out_users(data, rng=rng()).train
    rows = [USERS.index(user) for user in train.users.values]
    assert train.times.tolist() == when[rows][train.matrix.nonzero()].tolist()


# --- given -------------------------------------------------------------------------------------------------------


def table(rows, titles=None):
    """Interactions from a mapping of users to items, columns in the order of their names."""
    items = sorted({item for row in rows.values() for item in row})
    x = np.array([[float(item in row) for item in items] for row in rows.values()])
    return Interactions(x, users=list(rows), items=items, titles=titles)


def named(split, matrix):
    """Users and items by name."""
    cells = zip(*matrix.nonzero(), strict=True)
    return sorted((str(split.users.values[u]), str(split.train.items.values[i])) for u, i in cells)


def test_tables_with_other_items_share_one_catalog():
    train = table({"ann": "bd", "bob": "bc", "cid": "d"}, titles={"b": "Bee", "c": "Sea", "d": "Dee"})
    truth = table({"cid": "ab", "ann": "ce", "zoe": "b"})
    split = given_split(train, truth)
    assert set(split.train.items.values) == set("abcde")
    assert split.train.items.values[:3].tolist() == ["b", "c", "d"]  # those of train stay where they are
    assert split.train.titles.tolist() == ["Bee", "Sea", "Dee", None, None]
    assert split.users.values.tolist() == ["cid", "ann"]
    assert named(split, split.truth) == [("ann", "c"), ("ann", "e"), ("cid", "a"), ("cid", "b")]
    assert named(split, split.histories) == [("ann", "b"), ("ann", "d"), ("cid", "d")]
    assert split.left_out == {"no history": 1}
    assert dict(zip("bcd", split.item_counts, strict=False)) == {"b": 2, "c": 1, "d": 2}
    assert split.item_counts[3:].tolist() == [0, 0]
    assert split.protocol == "given files, users of train"


def test_histories_of_other_users():
    train = table({"ann": "bd", "bob": "bc"})
    split = given_split(train, table({"zoe": "ab", "yve": "c"}), table({"yve": "be", "zoe": "cd", "xen": "b"}))
    assert split.train.n_users == 2
    assert split.users.values.tolist() == ["zoe", "yve"]
    assert named(split, split.histories) == [("yve", "b"), ("yve", "e"), ("zoe", "c"), ("zoe", "d")]
    assert named(split, split.truth) == [("yve", "c"), ("zoe", "a"), ("zoe", "b")]
    assert set(split.train.items.values) == set("abcde")
    assert split.train.titles is None
    assert split.protocol == "given files, other users"
    assert given_split(train, table({"bob": "d"}), protocol="mine").protocol == "mine"


def test_the_same_columns_are_not_moved():
    train = Interactions(np.array([[1.0, 0, 2], [0, 3, 0]]), items=["x", "y", "z"])
    truth = Interactions(np.array([[0, 4.0, 0], [5, 0, 0]]), items=["x", "y", "z"])
    split = given_split(train, truth)
    assert split.truth.toarray().tolist() == [[0, 4, 0], [5, 0, 0]]
    assert split.histories.toarray().tolist() == [[1, 0, 2], [0, 3, 0]]


def lists(rows, owners=None):
    pairs = [(user, item) for user, items in rows for item in items]
    users, items = np.array(pairs, np.int64).reshape(-1, 2).T
    return Lists(users, items, np.array([user for user, _ in rows] if owners is None else owners))


def test_lists_keep_the_order_of_their_file():
    train = lists([(0, [0, 2]), (1, [1]), (2, [3])])
    truth = lists([(1, [4, 0, 2]), (0, [3, 1, 3]), (1, [3])])
    split = given_split(train, truth)
    assert split.users == Ids.range(3)
    assert split.truth.toarray().tolist() == [[0, 1, 0, 1, 0], [1, 0, 1, 1, 1], [0] * 5]
    assert split.histories.toarray().tolist() == [[1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0]]
    assert split.truth_order.tolist() == [3, 1, 4, 0, 2, 3]  # a pair that comes again counts where it was first
    assert split.train.n_users == 3


def test_lists_of_other_users():
    split = given_split(lists([(0, [0, 1]), (4, [2])]), lists([(1, [3])]), lists([(0, [2]), (1, [0])]))
    assert split.train.n_users == 5
    assert split.users == Ids.range(2)
    assert split.histories.toarray().tolist() == [[0, 0, 1, 0], [1, 0, 0, 0]]
    assert split.truth.toarray().tolist() == [[0, 0, 0, 0], [0, 0, 0, 1]]


def test_train_may_be_named_as_the_histories_too():
    train, truth = lists([(0, [0, 1]), (1, [2]), (2, [1])]), lists([(0, [2]), (1, [0])])
    found, expected = given_split(train, truth, train), given_split(train, truth)
    assert np.array_equal(found.truth.toarray()[:2], expected.truth.toarray()[:2])
    assert np.array_equal(found.histories.toarray()[:2], expected.histories.toarray()[:2])


def test_lists_and_tables_do_not_mix():
    with pytest.raises(DataError, match="must all be lists, or all be interactions"):
        given_split(lists([(0, [0])]), table({"a": "b"}))


def test_what_is_given_and_hidden_at_once_is_refused_by_name():
    with pytest.raises(DataError, match=r"1 items are in the history and in the truth.*item 'b' of user 'ann'"):
        given_split(table({"ann": "ab"}), table({"ann": "bc"}))


def test_what_train_knows_of_a_user_cannot_be_the_truth_of_that_user():
    train, truth, histories = table({"ann": "ab", "bob": "bc"}), table({"ann": "b"}), table({"ann": "a"})
    with pytest.raises(DataError, match="'ann'"):
        given_split(train, truth, histories)


def test_nothing_to_find_is_an_error():
    with pytest.raises(DataError, match="has anything hidden"):
        given_split(table({"ann": "ab"}), table({"zoe": "c"}))


def test_a_split_checks_its_shapes():
    train = Interactions(np.ones((2, 3)))
    x = sp.csr_array((2, 4), dtype=np.float32)
    with pytest.raises(DataError, match="histories are 2 × 4, and there are 1 users to judge by and 3 items in train"):
        Split(train, Ids.range(1), x, x, "mine")


def test_a_split_of_ones_own_may_have_its_columns_in_any_order():
    train = Interactions(np.ones((2, 3)))
    truth = sp.csr_array((np.ones(2, np.float32), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    split = Split(train, Ids.range(1), sp.csr_array((1, 3), dtype=np.float32), truth, "mine")
    model = EASE(1.0).fit(train)
    assert evaluate(model, split, ["recall"], [3])["recall@3"] == 1


def test_the_papers_splits():
    rows = [(user, rng(user).permutation(30)[:12].tolist()) for user in range(30)]
    parts = strong_lists(lists(rows), 8)
    for split, histories, truth in zip(
        paper_splits(parts), (parts.valid_in, parts.test_in), (parts.valid, parts.test), strict=True
    ):
        assert split.train.n_users == 14
        assert split.train.n_items == 1 + parts.train.items.max()
        assert np.array_equal(split.item_counts, np.bincount(parts.train.items))
        for matrix, source in ((split.histories, histories), (split.truth, truth)):
            assert sorted(zip(*matrix.nonzero(), strict=True)) == sorted(zip(source.users, source.items, strict=True))
        assert split.truth_order.tolist() == truth.items.tolist()
        assert "strong" in split.protocol


def test_a_split_says_what_it_is():
    assert repr(hold_out_users(DATA, 0.5, rng=rng())).startswith(
        "Split(held-out users: 30 users to train on, 30 to judge by, "
    )
    cold = hold_out_new_items(DATA, 0.5, rng=rng())
    assert repr(cold).startswith("Split(held-out new items: 5")
    assert repr(cold).endswith(f"{cold.truth.nnz} interactions to find among 12 of 25 items)")


# --- candidates --------------------------------------------------------------------------------------------------


def small(candidates):
    train = Interactions(np.ones((2, 4)), items=["a", "b", "c", "d"])
    histories, truth = csr([[1.0, 0, 0, 0]] * 2), csr([[0.0, 0, 1, 0], [0, 1, 0, 0]])
    return Split(train, Ids(["x", "y"]), histories, truth, "mine", new_users=True, candidates=candidates)


def test_candidates_are_sorted_and_named_once():
    assert small(None).candidates is None
    assert (small(None).n_candidates, small([3, 1, 2, 1]).n_candidates) == (4, 3)
    found = small([3, 1, 2, 1]).candidates
    assert found.dtype == np.int64
    assert found.tolist() == [1, 2, 3]


@pytest.mark.parametrize("candidates", [[], [1, 2, 4], [-1, 1, 2], [1.0, 2.0], ["b", "c"], [True, True]], ids=str)
def test_candidates_that_are_no_columns(candidates):
    with pytest.raises(DataError, match="candidates must be columns from 0 to 3, got"):
        small(candidates)


def test_truth_that_is_no_candidate():
    with pytest.raises(DataError, match=r"1 interactions to find .* no candidates, such as item 'b' of user 'y': add"):
        small([0, 2, 3])


def test_items_that_train_does_not_have_are_without_features():
    features = Features(np.array([[1.0, 0], [0, 2], [3, 0]]), ["red", "blue"])
    train = table({"ann": "bd", "bob": "bc", "cid": "d"}).replace(features=features)
    split = given_split(train, table({"cid": "ab", "ann": "ce"}))
    found = dict(zip(split.train.items.values, split.train.features.matrix.toarray().tolist(), strict=True))
    assert found == {"b": [1, 0], "c": [0, 2], "d": [3, 0], "a": [0, 0], "e": [0, 0]}
    assert split.train.features.names.tolist() == ["red", "blue"]
    same = given_split(train, table({"bob": "d"})).train.features
    assert np.array_equal(same.matrix.toarray(), train.features.matrix.toarray())
