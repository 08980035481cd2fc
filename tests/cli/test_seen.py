"""Low ratings on the command line: never recommended, neither to be found nor candidates, unless they are ignored."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from relae import Interactions, load
from relae.baselines import Popularity
from relae.evaluation import evaluate, hold_out_users, leave_last_out, split_by_time

USERS, ITEMS = 120, 30
RATED = ("--rating", "stars", "--min-rating", 4)


@pytest.fixture(scope="module")
def ratings():
    """Ratings of 1 to 5; user 900 has only low ones, and user 901 a single high one."""
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((USERS, ITEMS)) < 0.5)
    rows = [*zip(users.tolist(), items.tolist(), rng.integers(1, 6, len(users)).tolist(), strict=True)]
    rows += [(900, 3, 1), (900, 4, 2), (901, 3, 5)]
    return pl.DataFrame(rows, ["user", "item", "stars"], orient="row")


@pytest.fixture(scope="module")
def rated(ratings):
    return dict(ratings.group_by("user").agg("item").rows())


@pytest.fixture(scope="module")
def films(ratings, tmp_path_factory):
    path = tmp_path_factory.mktemp("rated") / "ratings.csv"
    ratings.write_csv(path)
    return path


@pytest.fixture(scope="module")
def data(films):
    return Interactions.read(films, rating="stars", min_rating=4, min_user_count=2)


@pytest.fixture
def fitted(films, shell, tmp_path):
    done = shell("fit", films, *RATED, "--min-user-count", 2, "--l2", 5, "--out", tmp_path / "model")
    assert done.code == 0, done
    return tmp_path / "model"


# --- recommend and explain ---------------------------------------------------------------------------------------


def test_fit_and_inspect_tell_of_it(films, shell, data, tmp_path):
    told = shell.ok("fit", films, *RATED, "--min-user-count", 2, "--out", tmp_path / "model")
    for text in (told, shell.ok("inspect", tmp_path / "model")):
        flat = " ".join(text.split())
        assert f"{data.seen.nnz:,} pairs that they have seen beside these are never recommended" in flat
        assert "dropped before the fit: 1 by min_rating=4, 2 by min_user_count=2" in flat


def test_no_user_gets_what_that_user_has_rated(fitted, shell, data, rated, tmp_path):
    shell.ok("recommend", fitted, "--all-users", "--k", ITEMS, "--out", tmp_path / "all.parquet")
    found = dict(pl.read_parquet(tmp_path / "all.parquet").group_by("user").agg("item").rows())
    assert {user: set(items) for user, items in found.items()} == {
        user: set(range(ITEMS)) - set(rated[user]) for user in data.users.values.tolist()
    }
    answers = json.loads(shell.ok("recommend", fitted, "--for", 5, "--for", 6, "--k", ITEMS, "--json"))["results"]
    for answer, user in zip(answers, (5, 6), strict=True):
        assert [entry["item"] for entry in answer["items"]] == found[user]
    shell.ok("recommend", fitted, "--all-users", "--include-seen", "--k", ITEMS, "--out", tmp_path / "any.csv")
    assert pl.read_csv(tmp_path / "any.csv").height == data.n_users * ITEMS


def test_a_table_of_histories_says_what_its_users_have_seen(fitted, ratings, rated, shell, tmp_path):
    """In a small table nobody likes most of what is rated low: it has no column there, and the model knows it."""
    table = tmp_path / "few.csv"
    ratings.filter(pl.col("user").is_in([5, 900])).write_csv(table)
    done = shell("recommend", fitted, "--histories", table, *RATED, "--k", ITEMS, "--format", "csv")
    found = pl.read_csv(done.out.encode())
    assert set(found["user"]) == {5}
    assert set(found["item"]) == set(range(ITEMS)) - set(rated[5])
    assert "1 user of the table dropped by --min-rating 4: no rows for them" in done.err
    ignored = shell.ok(
        "recommend", fitted, "--histories", table, *RATED, "--low-ratings", "ignored", "--k", ITEMS, "--format", "csv"
    )
    liked = set(ratings.filter((pl.col("user") == 5) & (pl.col("stars") >= 4))["item"])
    assert set(pl.read_csv(ignored.encode())["item"]) == set(range(ITEMS)) - liked


def test_explain_tells_what_has_been_seen(fitted, data, rated, shell):
    liked, low = data.history(5), sorted(set(rated[5]) - set(data.history(5)))
    new = sorted(set(range(ITEMS)) - set(rated[5]))
    for item, seen, words in ((liked[0], True, "in the history"), (low[0], True, "seen beside the history")):
        assert json.loads(shell.ok("explain", fitted, "--item", item, "--for", 5, "--json"))["seen"] is seen
        assert f"{words}, so that it is recommended only" in shell.ok("explain", fitted, "--item", item, "--for", 5)
    assert json.loads(shell.ok("explain", fitted, "--item", new[0], "--for", 5, "--json"))["seen"] is False
    assert "recommended only" not in shell.ok("explain", fitted, "--item", new[0], "--for", 5)


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ("900", "user '900' was dropped by --min-rating 4 before the fit: give a --history instead"),
        ("901", "user '901' was dropped by --min-user-count 2 before the fit: give a --history instead"),
        ("902", "user '902' is unknown to the model: it has 119, such as 0, 1, 2"),
    ],
)
def test_who_was_dropped_is_told_from_who_never_was(fitted, shell, user, words):
    assert shell("recommend", fitted, "--for", user).line() == words
    assert shell("explain", fitted, "--item", 3, "--for", user).line() == words


# --- evaluate, tune, compare -------------------------------------------------------------------------------------


def expected(data, metrics):
    split = hold_out_users(data, 0.1, rng=np.random.default_rng(0))
    found = evaluate(Popularity().fit(split.train), split, metrics, [10])
    return [found[f"{name}@10"] for name in metrics]


def evaluated(shell, *arguments):
    """The two figures of popularity, and what is said beside them."""
    asked = ("evaluate", *arguments, "--model", "popularity", "--k", 10, "--metrics", "ndcg,recall")
    record = json.loads(shell.ok(*asked, "--json"))
    found = {row["metric"]: row["mean"] for row in record}
    return [found["ndcg"], found["recall"]], " ".join(shell.ok(*asked).split())


def test_evaluate_leaves_low_ratings_out_or_ignores_them(films, shell):
    data = Interactions.read(films, rating="stars", min_rating=4)
    values, said = evaluated(shell, films, *RATED)
    assert values == pytest.approx(expected(data, ["ndcg", "recall"]))
    assert (
        "low ratings: what a user rated below 4 is neither to be found nor a candidate; --low-ratings ignored" in said
    )
    assert "pairs seen beside them" in said
    ignored, said = evaluated(shell, films, *RATED, "--low-ratings", "ignored")
    assert ignored == pytest.approx(expected(data.without_seen(), ["ndcg", "recall"]))
    assert ignored[0] < values[0]
    assert "low ratings: what a user rated below 4 is a candidate; --low-ratings seen leaves it out" in said
    _, said = evaluated(shell, films)
    assert "low ratings" not in said


@pytest.mark.parametrize("split", ["time", "last"])
def test_by_time_the_line_says_that_only_earlier_low_ratings_are_left_out(ratings, split, shell, tmp_path):
    times = np.random.default_rng(1).permutation(ratings.height)
    ratings.with_columns(at=times).write_csv(tmp_path / "timed.csv")
    _, said = evaluated(shell, tmp_path / "timed.csv", *RATED, "--timestamp", "at", "--split", split)
    assert "low ratings: what a user rated below 4 before the split is neither to be found nor a candidate" in said
    data = Interactions.read(tmp_path / "timed.csv", rating="stars", min_rating=4, timestamp="at")
    expected = split_by_time(data, share=0.1) if split == "time" else leave_last_out(data)
    assert 0 < expected.seen.nnz < data.seen.nnz
    assert f"without {expected.seen.nnz:,} pairs seen beside them" in said


def test_a_benchmark_by_name_follows_its_published_protocol(ratings, shell, monkeypatch, tmp_path):
    folder = tmp_path / "data" / "ml-1m"
    folder.mkdir(parents=True)
    lines = [f"{user + 1}::{item + 1}::{stars}::978300000\n" for user, item, stars in ratings.rows()]
    (folder / "ratings.dat").write_text("".join(lines))
    monkeypatch.setenv("RELAE_DATA", str(tmp_path / "data"))
    from relae import datasets

    published, right = (datasets.get("ml-1m").load(seen=seen) for seen in (False, True))
    values, said = evaluated(shell, "ml-1m")
    assert values == pytest.approx(expected(published, ["ndcg", "recall"]))
    assert "below 4 is a candidate, as in the published protocol of ML-1M; --low-ratings seen leaves it out" in said
    values, said = evaluated(shell, "ml-1m", "--low-ratings", "seen")
    assert values == pytest.approx(expected(right, ["ndcg", "recall"]))
    assert "is neither to be found nor a candidate" in said
    # What is served is right by itself.
    shell.ok("fit", "ml-1m", "--l2", 5, "--out", tmp_path / "model")
    listed = json.loads(shell.ok("recommend", tmp_path / "model", "--for", 6, "--k", ITEMS, "--json"))["items"]
    had = set(ratings.filter(pl.col("user") == 5)["item"] + 1)
    assert {entry["item"] for entry in listed} == set(range(1, ITEMS + 1)) - had
    judged = shell.ok("evaluate", tmp_path / "model", "--on", "ml-1m", "--k", 10)
    assert "as in the published protocol of ML-1M" in " ".join(judged.split())


def test_a_saved_model_is_judged_without_low_ratings(fitted, films, ratings, shell):
    asked = ("evaluate", fitted, "--on", films, *RATED, "--k", 10, "--json")
    seen, ignored = (json.loads(shell.ok(*asked, *more)) for more in ((), ("--low-ratings", "ignored")))
    data = Interactions.read(films, rating="stars", min_rating=4)
    from relae.cli._evaluate import make_split

    for record, part in ((seen, data), (ignored, data.without_seen())):
        model = load(fitted)
        found = evaluate(model, make_split(model, part, 0.2, 0), ks=[10])["ndcg@10"]
        assert next(row["mean"] for row in record if row["metric"] == "ndcg") == pytest.approx(found)


def test_compare_and_tune_say_it_and_tell_runs_apart(films, shell, tmp_path):
    options = ("--models", "popularity", "--k", 10, "--out", tmp_path / "contest")
    told = shell.ok("compare", films, *RATED, *options)
    assert "is neither to be found nor a candidate" in " ".join(told.split())
    assert "nor a candidate" in (tmp_path / "contest" / "table.md").read_text()
    assert "nor a candidate" in json.loads((tmp_path / "contest" / "result.json").read_text())["low_ratings"]
    other = shell("compare", films, *RATED, "--low-ratings", "ignored", *options).line()
    assert "is of another comparison, which differs in data, test" in other
    run = ("--budget", 2, "--objective", "ndcg@10", "--out", tmp_path / "run")
    shell.ok("tune", films, *RATED, "--low-ratings", "ignored", *run)
    record = json.loads((tmp_path / "run" / "result.json").read_text())
    assert "is a candidate; --low-ratings seen leaves it out" in record["low_ratings"]
    assert "--low-ratings ignored" in record["command"]
    assert shell("tune", films, *RATED, *run).code == 2
    shell.ok("report", tmp_path / "run")
    assert "what a user rated below 4 is a candidate" in (tmp_path / "run" / "report.html").read_text()
    shell.ok("fit", "--from", tmp_path / "run", "--out", tmp_path / "model")
    assert load(tmp_path / "model").n_users_ > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("--low-ratings", "seen"),
            "--low-ratings is for ratings below --min-rating, which is not given: leave it out",
        ),
        ((*RATED, "--low-ratings", "maybe"), "--low-ratings is one of seen, ignored, got 'maybe'"),
    ],
)
def test_what_makes_no_sense_is_refused(films, shell, options, words):
    assert shell("evaluate", films, *options).line() == words


def test_without_ratings_there_are_no_low_ones(shell, tmp_path: Path):
    assert shell("evaluate", "online-retail", "--low-ratings", "seen").line() == (
        "online-retail has no ratings: leave --low-ratings out"
    )
