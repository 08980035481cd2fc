"""The authors' strong split, to the letter."""

import hashlib

import numpy as np
import pytest

from relae import DataError
from relae.data import Lists, read_lists, write_lists
from relae.evaluation import strong_lists

from ..real_data import real

PARTS = {
    "train": "1b4488755d21d04ed982c9bf2374383f",
    "valid_in": "ef41bc5a6d410304184817ae565755bc",
    "valid": "278226a222ff2e9fe8b0d432c557d515",
    "test_in": "da89613a6176396b52b3174405b49a77",
    "test": "749cc844cc6d55bd175df3cb5b755261",
}


def joined(*lists):
    return Lists(*(np.concatenate([getattr(part, name) for part in lists]) for name in ("users", "items", "owners")))


def test_the_strong_split_of_gowalla_is_the_published_one(tmp_path):
    weak, strong = real("gowalla"), real("gowalla-strong")
    found = strong_lists(joined(read_lists(weak / "train.txt"), read_lists(weak / "test.txt")), 3_000)
    for name, md5 in PARTS.items():
        ours, theirs = getattr(found, name), read_lists(strong / f"{name}.txt")
        assert np.array_equal(ours.users, theirs.users), name
        assert np.array_equal(ours.items, theirs.items), name
        assert np.array_equal(ours.owners, theirs.owners), name
        write_lists(tmp_path / name, ours)
        assert hashlib.md5((tmp_path / name).read_bytes()).hexdigest() == md5, name


def some_pairs(users=40, items=60, seed=0):
    """Pairs in no order; a third of the users have fewer than five items."""
    rng = np.random.default_rng(seed)
    sizes = np.where(np.arange(users) % 3 == 0, 3, rng.integers(5, 25, users))
    rows = [(user, item) for user, size in enumerate(sizes) for item in rng.permutation(items)[:size]]
    pairs = np.array(rows)[rng.permutation(len(rows))]
    return Lists(pairs[:, 0], pairs[:, 1], np.arange(users))


def rows_of(lists):
    found = {int(owner): [] for owner in lists.owners}
    for user, item in zip(lists.users.tolist(), lists.items.tolist(), strict=True):
        found[user].append(item)
    return found


def test_the_strong_split_by_its_recipe():
    """The recipe of facts and of Mult-VAE, by loops and the global legacy seed."""
    pairs, heldout = some_pairs(), 10
    rows = {user: [] for user in range(40)}
    for user, item in zip(pairs.users.tolist(), pairs.items.tolist(), strict=True):
        rows[user].append(item)
    permuted = np.random.RandomState(98765).permutation(40).tolist()
    parts = {"train": permuted[:20], "valid": permuted[20:30], "test": permuted[30:]}
    number = {}
    for user, item in zip(pairs.users.tolist(), pairs.items.tolist(), strict=True):
        if user in parts["train"]:
            number.setdefault(item, len(number))
    found = strong_lists(pairs, heldout)
    assert rows_of(found.train) == {at: [number[i] for i in rows[user]] for at, user in enumerate(parts["train"])}
    for name in ("valid", "test"):
        draw = np.random.RandomState(98765)
        expected_in, expected = {}, {}
        for user in sorted(parts[name]):
            items = [number[item] for item in rows[user] if item in number]
            chosen = set()
            if len(items) >= 5:
                chosen = set(draw.choice(len(items), int(0.2 * len(items)), replace=False).tolist())
            at = parts[name].index(user)
            expected_in[at] = [item for place, item in enumerate(items) if place not in chosen]
            expected[at] = [item for place, item in enumerate(items) if place in chosen]
        histories, truth = rows_of(getattr(found, f"{name}_in")), rows_of(getattr(found, name))
        assert histories == {at: items for at, items in expected_in.items() if items}
        assert truth == {at: items for at, items in expected.items() if items}


def test_the_laws_of_the_strong_split():
    pairs = some_pairs(60, 90, seed=4)
    found = strong_lists(pairs, 15)
    n_items = len(np.unique(found.train.items))
    assert found.train.items.max() == n_items - 1  # numbered without gaps
    assert found.train.owners.tolist() == list(range(30))
    assert n_items < 90  # the example has items that no training user had
    total = len(found.train.users)
    for histories, truth in ((found.valid_in, found.valid), (found.test_in, found.test)):
        assert max(histories.items.max(), truth.items.max()) < n_items
        known, hidden = rows_of(histories), rows_of(truth)
        assert set(known) <= set(range(15))
        assert set(hidden) <= set(known)
        for user, items in hidden.items():
            assert len(items) == int(0.2 * (len(items) + len(known[user]))) >= 1
            assert not set(items) & set(known[user])
        assert all(len(items) < 5 for user, items in known.items() if user not in hidden)
        assert any(user not in hidden for user in known)
        total += len(histories.users) + len(truth.users)
    assert total < len(pairs.users)  # unseen items were dropped
    sizes = sorted(len(items) for items in rows_of(found.train).values())
    whole = sorted(len(items) for items in rows_of(pairs).values())
    assert all(size in whole for size in sizes)


def test_the_strong_split_does_not_depend_on_chance_and_leaves_it_alone():
    pairs = some_pairs()
    state = np.random.get_state()[1].tolist()  # noqa: NPY002
    first, second = strong_lists(pairs, 8), strong_lists(pairs, 8)
    assert np.random.get_state()[1].tolist() == state  # noqa: NPY002
    for ours, theirs in zip(first, second, strict=True):
        for name in ("users", "items", "owners"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name))


@pytest.mark.parametrize("heldout", [0, -1, 20, 21])
def test_too_many_users_to_hold_out(heldout):
    with pytest.raises(DataError, match=rf"cannot hold out 2 × {heldout} of 40 users"):
        strong_lists(some_pairs(), heldout)
