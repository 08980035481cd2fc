"""A folder as DATA: of lists, with ids for numbers and truth that the history has; or of tables, also by a pattern."""

import json

import numpy as np
import polars as pl
import pytest

from relae.data import Ids, Lists, axis_of, write_lists
from relae.errors import DataError
from relae.evaluation import given_split
from relae.experiments import Columns, divide_data, read_data

ITEMS = 2_000_000 + 700 * np.arange(40)  # as films are numbered at IMDb
USERS = 50_000 + 31 * np.arange(60)


def make_folder(folder, *, items=ITEMS, users=USERS, overlap=0):
    """Write train.txt and test.txt: eight items of each user to train on, two to find and `overlap` of the eight."""
    rng = np.random.default_rng(0)
    train, test = [], []
    for user in range(60):
        chosen = rng.choice(40, 10, replace=False)
        train += [(users[user], items[item]) for item in chosen[:8]]
        test += [(users[user], items[item]) for item in chosen[8 - overlap :]]
    folder.mkdir(exist_ok=True)
    for name, pairs in (("train", train), ("test", test)):
        owners, owned = np.array(pairs).T
        write_lists(folder / f"{name}.txt", Lists(owners, owned, np.unique(owners)))
    return folder


@pytest.mark.filterwarnings("ignore:.* are taken for ids")
def test_numbers_that_are_no_positions_are_ids(tmp_path):
    found = divide_data(str(make_folder(tmp_path / "ids")), Columns())
    same = divide_data(str(make_folder(tmp_path / "positions", items=np.arange(40), users=np.arange(60))), Columns())
    assert found.data.items.values.tolist() == ITEMS.tolist()
    assert found.data.users.values.tolist() == USERS.tolist()
    for ours, theirs in ((found.data.matrix, same.data.matrix), (found.test.truth, same.test.truth)):
        assert ours.shape == theirs.shape
        assert (ours != theirs).nnz == 0
    assert read_data(str(tmp_path / "ids"), Columns())[1].items == found.data.items


@pytest.mark.filterwarnings("always:.* are taken for ids")
def test_that_they_are_ids_is_told(tmp_path, shell):
    done = shell("plan", make_folder(tmp_path / "films", users=np.arange(60)), "--json")
    assert done.err == (
        f"relae: {tmp_path / 'films'}: the numbers of items go up to 2,027,300, and only 40 of them occur: they are "
        "taken for ids, not for positions\n"
    )
    assert json.loads(done.out)["data"]["items"] == 40


def test_positions_may_have_gaps():
    assert axis_of(np.array([0, 5, 999])) == 1_000  # few, whatever their gaps
    assert axis_of(np.arange(0, 4_000, 2)) == 3_999
    assert axis_of(np.arange(0, 4_000, 3)) == Ids(np.arange(0, 4_000, 3))
    assert axis_of(np.array([], np.int64)) == 0


@pytest.mark.filterwarnings("ignore:.* are taken for ids")
def test_a_folder_that_is_divided_by_users_may_have_ids_too(tmp_path):
    folder = make_folder(tmp_path / "strong")
    for part, first, given in (("valid", 8_000_001, 3), ("test", 9_000_001, 2)):
        pairs = np.array([(first + 7 * user, ITEMS[(3 * user + at) % 40]) for user in range(20) for at in range(4)])
        is_given = np.arange(len(pairs)) % 4 < given
        for name, chosen in ((f"{part}_in", pairs[is_given]), (part, pairs[~is_given])):
            write_lists(folder / f"{name}.txt", Lists(chosen[:, 0], chosen[:, 1], np.unique(chosen[:, 0])))
    divided = divide_data(str(folder), Columns())
    assert divided.test.users.values.tolist() == (9_000_001 + 7 * np.arange(20)).tolist()
    assert divided.test.train.items == divided.valid.train.items == Ids(ITEMS)
    assert divided.test.truth.nnz == 40


@pytest.mark.filterwarnings("always:.* were dropped")
def test_truth_that_the_history_has_is_refused_or_dropped(tmp_path, shell):
    folder = make_folder(tmp_path / "twice", items=np.arange(40), users=np.arange(60), overlap=1)
    said = shell("evaluate", folder, "--model", "ease", "--k", 5).line()
    assert said.startswith("60 items are in the history and in the truth of the same user, such as item ")
    assert said.endswith(": remove them from one of the two, or use --overlap drop")
    done = shell("evaluate", folder, "--model", "ease", "--k", 5, "--overlap", "drop", "--json")
    assert done.code == 0
    assert done.err == ("relae: 60 of 180 interactions to find are in the history of the same user and were dropped\n")
    plain = make_folder(tmp_path / "once", items=np.arange(40), users=np.arange(60))
    assert json.loads(done.out) == json.loads(shell.ok("evaluate", plain, "--model", "ease", "--k", 5, "--json"))


def test_lists_without_what_they_share():
    train = Lists(np.array([0, 0, 1]), np.array([0, 1, 2]), np.array([0, 1]))
    truth = Lists(np.array([0, 0, 1]), np.array([2, 1, 0]), np.array([0, 1]))
    with pytest.raises(DataError, match=r"such as item 1 of user 0: .*, or use given_split\(…, overlap='drop'\)"):
        given_split(train, truth)
    with pytest.warns(UserWarning, match="1 of 3 interactions to find are in the history of the same user"):
        split = given_split(train, truth, overlap="drop")
    assert split.truth.toarray().tolist() == [[0, 0, 1], [1, 0, 0]]
    with pytest.raises(ValueError, match="overlap must be 'refuse' or 'drop', got 'keep'"):
        given_split(train, truth, overlap="keep")


@pytest.fixture
def tables(tmp_path):
    """A table in one file, and the same in a folder of Parquet files."""
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"who": rng.integers(0, 60, 900), "item": rng.integers(0, 40, 900), "stars": rng.integers(1, 6, 900)}
    )
    frame.write_csv(tmp_path / "whole.csv")
    (tmp_path / "events").mkdir()
    for at, part in enumerate(frame.iter_slices(300)):
        part.write_parquet(tmp_path / "events" / f"part-{at}.parquet")
    (tmp_path / "events" / "_SUCCESS").write_text("")
    return tmp_path


@pytest.mark.parametrize("source", ["events", "events/*.parquet", "events/part-?.parquet"])
def test_a_folder_of_tables_and_a_pattern_are_one_table(tables, shell, source):
    columns = ("--user", "who", "--rating", "stars", "--min-rating", "3", "--min-user-count", "2", "--json")
    one, many = (json.loads(shell("plan", tables / name, *columns).out) for name in ("whole.csv", source))
    assert many["data"] == one["data"]
    assert many["title"] == source.split("/")[-1]
    options = Columns(user="who", rating="stars", min_rating=3)
    divided = [divide_data(str(tables / name), options) for name in ("whole.csv", source)]
    assert divided[0].fingerprint == divided[1].fingerprint
    assert divided[1].low_ratings == divided[0].low_ratings != ""


def test_folders_and_patterns_that_cannot_be(tables, shell):
    for source, said in (
        ("events/*.csv", "no file matches"),
        ("nothing-*.csv", "no file matches"),
        ("events --overlap drop --user who", "is none: leave it out"),
    ):
        name, *more = source.split()
        done = shell("plan", tables / name, *more)
        assert done.code == 2
        assert said in done.err


def test_a_folder_with_lists_stays_one(tables):
    folder = make_folder(tables / "events", items=np.arange(40), users=np.arange(60))
    assert divide_data(str(folder), Columns()).data.n_interactions == 600
