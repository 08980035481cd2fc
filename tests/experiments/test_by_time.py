"""Data with times is judged by the future: a cut in time, the last items of each user, lists in the order of time."""

import json
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

import relae
from relae import DataError, Interactions
from relae.experiments import Columns, Division, divide_data, make_yardsticks, read_data
from relae.experiments._data import is_judged_by_time

from ..oracles import example

COLUMNS = {"user": "who", "item": "what", "timestamp": "at"}
WORDS = ("--user", "who", "--item", "what", "--timestamp", "at")
DAY = 86_400


def make_frame(users=90, items=24, seed=1):
    """Visits at different seconds, whose items come into fashion one after the other."""
    rng = np.random.default_rng(seed)
    rows = np.argwhere(example(users, items, weighted=False))
    days = 15_800 + 6 * rows[:, 1] + rng.integers(0, 20, len(rows))
    seconds = days * DAY + rng.permutation(len(rows))
    frame = {"who": [f"u{user:02}" for user in rows[:, 0]], "what": rows[:, 1] + 100, "at": seconds}
    return pl.DataFrame(frame)


@pytest.fixture(scope="module")
def frame():
    return make_frame()


@pytest.fixture(scope="module")
def table(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "visits.csv"
    frame.write_csv(path)
    return path


def pairs_of(matrix, users, items):
    """The pairs of raw ids that a matrix has."""
    rows, columns = matrix.nonzero()
    return {(users.values[row], int(items.values[column])) for row, column in zip(rows, columns, strict=True)}


def brute_force(rows, share):
    """Return what is before the latest share of rows, what is to be found, and who and what has no past."""
    rows = sorted(rows, key=lambda row: row[2])
    at = rows[len(rows) - round(share * len(rows))][2]
    before, after = [row for row in rows if row[2] < at], [row for row in rows if row[2] >= at]
    known_users, known_items = {row[0] for row in before}, {row[1] for row in before}
    truth = {row[:2] for row in after if row[0] in known_users}
    strangers = {row[0] for row in after} - known_users, {row[1] for row in after} - known_items
    return at, before, truth, strangers


@pytest.mark.parametrize("share", [0.1, 0.25])
@pytest.mark.parametrize("form", ["file", "frame", "interactions"])
def test_auto_cuts_in_time_and_never_looks_ahead(form, share, frame, table):
    source = {"file": table, "frame": frame, "interactions": Interactions.from_frame(frame, **COLUMNS)}[form]
    columns = Columns() if form == "interactions" else Columns(**COLUMNS)
    divided = divide_data(source, columns, Division(share=share))
    at, before, truth, (users, items) = brute_force(frame.rows(), share)
    valid_at, earlier, valid_truth, _ = brute_force(before, share)
    for split, train, hidden in ((divided.test, before, truth), (divided.valid, earlier, valid_truth)):
        assert pairs_of(split.train.matrix, split.train.users, split.train.items) == {row[:2] for row in train}
        assert pairs_of(split.truth, split.users, split.train.items) == hidden
        assert split.by_time
        assert not split.new_users
        judged = set(split.users.values)
        known = pairs_of(split.histories, split.users, split.train.items)
        assert known == {row[:2] for row in train if row[0] in judged}
    assert divided.valid.train.times.max() < valid_at <= divided.valid.truth_times.min()
    assert divided.test.train.times.max() < at <= divided.test.truth_times.min()
    first, second = (f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}" for moment in (valid_at, at))
    lines = str(divided.periods).split("\n")
    assert lines[0] == (
        f"judged by time: trained on what came before {first}, validated on {first} to {second}, tested on what came "
        "later; split='strong' judges by users who were held out"
    )
    counts = [f"{len(each)} {word}{'s' * (len(each) > 1)}" for each, word in ((users, "user"), (items, "item")) if each]
    assert len(lines) == 1 + bool(counts)
    assert all(lines[1].find(count) >= 0 for count in counts)
    assert divided.lengths.sum() == len(before)  # what is later is not known
    assert set(divided.valid.train.items.values) == {row[1] for row in before}


def test_who_and_what_has_no_past_is_counted():
    rows = [(f"u{user}", item, 100 * item + user) for user in range(12) for item in range(8)]
    rows += [("new 1", 3, 5000), ("new 2", 3, 5001), ("u1", 99, 5002)]
    frame = pl.DataFrame(rows, schema=["who", "what", "at"], orient="row")
    divided = divide_data(frame, Columns(**COLUMNS), Division("time", 0.1))
    _, _, _, (users, items) = brute_force(frame.rows(), 0.1)
    assert (len(users), len(items)) == (2, 1)
    head, tail = str(divided.periods).split("\n")
    assert head.startswith("judged by time: trained on what came before 6")  # numbers that are no clock
    assert "split=" not in head  # it was asked for
    assert tail == (
        "2 users and 1 item of the test period have no past: these users are not judged by, and no model can find "
        "these items"
    )


def test_all_other_splits_and_data_are_as_they_were(frame, table, tmp_path):
    for split in ("strong", "weak", "last", "new-items"):
        assert divide_data(table, Columns(**COLUMNS), Division(split)).periods is None
    plain = divide_data(table, Columns(user="who", item="what"))
    assert plain.test.protocol == "held-out users"
    assert plain.periods is None
    assert not is_judged_by_time("ml-1m", Columns(), Division())
    assert is_judged_by_time("ml-1m", Columns(), Division("time"))
    assert not is_judged_by_time(Interactions(example(9, 5, weighted=False)), Columns(), Division())
    assert divide_data("online-retail", Columns(), Division()).periods is None


def test_data_that_cannot_be_cut_names_the_way_out():
    rows = pl.DataFrame({"who": [1, 1, 2, 2, 3, 3] * 5, "what": [*range(30)], "at": [1, 1, 2, 2, 3, 3] * 5})
    with pytest.raises(
        DataError, match=r"cannot be judged by time, because .*: split='strong' judges by users who were"
    ):
        divide_data(rows, Columns(**COLUMNS))
    with pytest.raises(DataError, match="no user has interactions both before and from"):
        divide_data(rows, Columns(**COLUMNS), Division("time"))


# --- the future changes nothing -------------------------------------------------------------------------------------


def poison(frame, share, *, new_items):
    """Return the table with everything from the cut on replaced: other users, items and times, as many rows."""
    rng = np.random.default_rng(9)
    at, before, _, _ = brute_force(frame.rows(), share)
    count = frame.height - len(before)
    kept = frame.filter(pl.col("at") < at)
    users = rng.permutation([f"u{user:02}" for user in range(90)] + [f"x{user}" for user in range(200)])
    pairs = set()
    while len(pairs) < count:
        pairs.add((str(rng.choice(users)), int(rng.integers(900 if new_items else 100, 930 if new_items else 124))))
    pairs -= {row[:2] for row in before}
    while len(pairs) < count:
        pairs.add((f"z{len(pairs)}", 900 if new_items else 100))
    later = pl.DataFrame(sorted(pairs), schema=["who", "what"], orient="row")
    return pl.concat([kept, later.with_columns(at=pl.Series(at + rng.integers(0, 10**6, count)))])


@pytest.mark.parametrize("new_items", [False, True])
@pytest.mark.parametrize("model", [None, "itemknn", "trending"])
def test_a_poisoned_future_changes_nothing_that_was_chosen_or_fitted(model, new_items, frame):
    options = {**COLUMNS, "share": 0.2, "objective": "ndcg@5", "budget": 3}
    runs = [relae.tune(each, model, **options) for each in (frame, poison(frame, 0.2, new_items=new_items))]
    ours, theirs = runs
    assert ours.divided.test_fingerprint != theirs.divided.test_fingerprint  # it is another future
    assert ours.divided.fingerprint == theirs.divided.fingerprint
    assert repr(ours.model) == repr(theirs.model)
    assert [trial.parameters for trial in ours.tuning.trials] == [trial.parameters for trial in theirs.tuning.trials]
    for one, other in zip(ours.tuning.trials, theirs.tuning.trials, strict=True):
        assert one.points == other.points
    windows = [dict(make_yardsticks(run.divided.valid, run.divided.test, "ndcg@5"))["trending"] for run in runs]
    assert repr(windows[0]) == repr(windows[1])
    past = sorted({row[1] for row in brute_force(frame.rows(), 0.2)[1]})
    history = past[:3]
    lists = []
    for run in runs:
        fitted = type(run.model)(**run.model.get_params()).fit(run.divided.test.train)
        lists.append(fitted.recommend(history, 8, allow=past))
    assert lists[0][0].tolist() == lists[1][0].tolist()
    assert np.allclose(lists[0][1], lists[1][1], rtol=1e-5, atol=1e-7)


def test_a_comparison_chooses_the_same_too(frame):
    options = {**COLUMNS, "share": 0.2, "k": 5, "budget": 2}
    runs = [relae.compare(each, ["ease", "gfcf"], **options) for each in (frame, poison(frame, 0.2, new_items=True))]
    chosen = [{row.name: row.parameters for row in run.table.rows} for run in runs]
    assert chosen[0] == chosen[1]
    assert set(chosen[0]) == {"ease", "gfcf", "popularity", "trending"}


# --- Python and the command line ------------------------------------------------------------------------------------


def test_every_command_says_so(table, frame, tmp_path, shell):
    expected = str(divide_data(frame, Columns(**COLUMNS)).periods).replace("split='strong'", "--split strong")
    done = shell("tune", table, *WORDS, "--objective", "ndcg@5", "--budget", 2, "--out", tmp_path / "run")
    assert " ".join(expected.split()) in " ".join(done.out.split())
    run = relae.Run.read(tmp_path / "run")
    assert run.record["periods"] == expected
    assert run.divide().fingerprint == divide_data(frame, Columns(**COLUMNS)).fingerprint
    assert expected.removeprefix("judged by time: ").split("\n")[0] in run.report().read_text().replace("&#x27;", "'")
    done = shell("evaluate", table, *WORDS, "--model", "ease", "--k", 5)
    assert " ".join(expected.split()) in " ".join(done.out.split())
    done = shell("compare", table, *WORDS, "--models", "ease", "--budget", 2, "--out", tmp_path / "compared")
    assert " ".join(expected.split()) in " ".join(done.out.split())
    assert json.loads((tmp_path / "compared/result.json").read_text())["split"]["name"] == "auto"


def test_models_of_known_users_can_be_judged_by_time(frame):
    run = relae.compare(frame, ["popularity", "lightgcn"], **COLUMNS, k=5, budget=1, time_budget=1)
    assert run.divided.periods is not None
    assert run.division.split == "auto"
    run = relae.compare(frame, ["popularity", "lightgcn"], user="who", item="what", k=5, budget=1, time_budget=1)
    assert run.division.split == "weak"


# --- the last items of each user ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_last_items_of_each_user_are_hidden(n, frame):
    divided = divide_data(frame, Columns(**COLUMNS), Division("last", last=n))
    rows = frame.rows()
    for split in (divided.test, divided.valid):
        hidden, left = set(), []
        for user in sorted({row[0] for row in rows}):
            own = sorted((row for row in rows if row[0] == user), key=lambda row: row[2])
            cut = len(own) - n if len(own) > n else len(own)
            hidden |= {row[:2] for row in own[cut:]}
            left += own[:cut]
        assert pairs_of(split.truth, split.users, split.train.items) == hidden
        assert pairs_of(split.train.matrix, split.train.users, split.train.items) == {row[:2] for row in left}
        rows = left


def test_last_is_an_option_everywhere(table, tmp_path, shell):
    given = ("--split", "last", "--last", 2, "--objective", "ndcg@5", "--budget", 1, "--out", tmp_path / "run")
    done = shell("tune", table, *WORDS, *given)
    assert done.code == 0, done.err
    run = relae.Run.read(tmp_path / "run")
    assert run.division == Division("last", last=2)
    assert "--split last --last 2" in run.command
    assert run.record["protocol"] == "last 2 of each user"
    options = {**COLUMNS, "split": "last", "last": 2}
    compared = relae.compare(table, ["ease"], **options, k=5, budget=1, out=tmp_path / "c")
    assert relae.Run.read(tmp_path / "c").division == compared.division == Division("last", last=2)
    with pytest.raises(DataError, match="last=2 is for split='last': leave it out"):
        relae.tune(table, **COLUMNS, last=2)
    done = shell("evaluate", table, *WORDS, "--last", 2)
    assert done.code == 2
    assert "--last 2 is for --split last" in done.err


# --- lists in the order of time -------------------------------------------------------------------------------------

TRAIN = {0: [5, 3, 9, 1], 1: [7, 2], 2: [4], 3: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}
TEST = {0: [2, 0], 1: [9], 3: [11, 10]}


def write(path, lists):
    path.write_text("".join(" ".join(map(str, [user, *items])) + "\n" for user, items in lists.items()))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "lists").mkdir()
    write(tmp_path / "lists/train.txt", TRAIN)
    write(tmp_path / "lists/test.txt", TEST)
    return tmp_path / "lists"


def in_order(matrix, times, row):
    """The items of a row in the order of their times, and the times."""
    part = slice(*matrix.indptr[row : row + 2])
    order = np.argsort(times[part])
    return matrix.indices[part][order].tolist(), times[part][order].tolist()


def test_a_folder_of_ordered_lists_has_the_order_as_times(folder):
    divided = divide_data(folder, Columns(ordered=True), Division(share=0.25))
    test, valid = divided.test, divided.valid
    for user, items in TRAIN.items():
        assert in_order(test.train.matrix, test.train.times, user) == (items, [*range(1 - len(items), 1)])
        hidden = max(1, int(0.25 * len(items))) if len(items) > 1 else 0
        kept = items[: len(items) - hidden]
        assert in_order(valid.train.matrix, valid.train.times, user) == (kept, [*range(1 - len(kept), 1)])
        if hidden:
            row = int(valid.users.positions([user])[0])
            assert in_order(valid.histories, valid.history_times, row) == (kept, [*range(1 - len(kept), 1)])
            assert in_order(valid.truth, valid.truth_times, row) == (items[-hidden:], [*range(1, hidden + 1)])
    for user, items in TEST.items():
        row = int(test.users.positions([user])[0])
        assert in_order(test.truth, test.truth_times, row) == (items, [*range(1, len(items) + 1)])
        assert in_order(test.histories, test.history_times, row)[0] == TRAIN[user]
    assert test.by_time
    assert valid.by_time
    _, data = read_data(folder, Columns(ordered=True))
    for user, items in TRAIN.items():
        joined = items + TEST.get(user, [])
        assert in_order(data.matrix, data.times, user) == (joined, [*range(1 - len(joined), 1)])
    last = divide_data(folder, Columns(ordered=True), Division("last"))
    assert pairs_of(last.test.truth, last.test.users, last.test.train.items) == {(0, 0), (1, 9), (3, 10)}


def test_without_the_word_lists_have_no_order(folder):
    divided = divide_data(folder, Columns(), Division(share=0.25))
    assert divided.test.train.times is divided.valid.history_times is divided.test.truth_times is None
    assert not divided.test.by_time
    assert read_data(folder, Columns())[1].times is None
    with pytest.raises(
        DataError, match="no clock, so that it cannot be cut at one moment: use split='last' with ordered"
    ):
        divide_data(folder, Columns(), Division("time"))


def test_a_given_validation_follows_train(folder):
    write(folder / "valid.txt", {0: [8, 7], 3: [12]})
    divided = divide_data(folder, Columns(ordered=True))
    assert in_order(divided.valid.truth, divided.valid.truth_times, 0) == ([8, 7], [1, 2])
    assert in_order(divided.test.train.matrix, divided.test.train.times, 0) == ([5, 3, 9, 1, 8, 7], [*range(-5, 1)])
    assert in_order(divided.test.train.matrix, divided.test.train.times, 1) == ([7, 2], [-1, 0])


def test_ordered_lists_of_new_users(folder):
    for name, lists in {
        "valid_in": {0: [4, 1]},
        "valid": {0: [6, 5]},
        "test_in": {0: [9, 8, 7]},
        "test": {0: [3]},
    }.items():
        write(folder / f"{name}.txt", lists)
    divided = divide_data(folder, Columns(ordered=True))
    assert in_order(divided.valid.histories, divided.valid.history_times, 0) == ([4, 1], [-1, 0])
    assert in_order(divided.valid.truth, divided.valid.truth_times, 0) == ([6, 5], [1, 2])
    train = divided.test.train
    assert in_order(train.matrix, train.times, train.n_users - 1) == ([4, 1, 6, 5], [-3, -2, -1, 0])
    assert in_order(divided.test.histories, divided.test.history_times, 0) == ([9, 8, 7], [-2, -1, 0])


def test_ordered_is_an_option_and_only_of_folders(folder, table, tmp_path, shell):
    rng = np.random.default_rng(0)
    lists = {user: rng.permutation(30)[: 6 + user % 5].tolist() for user in range(60)}
    write(folder / "train.txt", {user: items[:-2] for user, items in lists.items()})
    write(folder / "test.txt", {user: items[-2:] for user, items in lists.items()})
    given = ("--ordered", "--objective", "ndcg@5", "--budget", 1, "--out", tmp_path / "run")
    done = shell("tune", folder, *given)
    assert done.code == 0, done.err
    run = relae.Run.read(tmp_path / "run")
    assert run.columns.ordered
    assert run.command.endswith(f"--ordered --out {tmp_path / 'run'}")
    assert run.record["protocol"] == "latest 10% of each user's items"
    assert [each.role for each in run.results][-1] == "trending"
    assert relae.tune(folder, ordered=True, objective="ndcg@5", budget=1).tuning.chosen == run.tuning.chosen
    for data in (table, "ml-1m"):
        with pytest.raises(DataError, match=r"ordered is for a folder with train.txt and test.txt, and .* is none"):
            divide_data(data, Columns(ordered=True))
