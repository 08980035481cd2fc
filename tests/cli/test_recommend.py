"""`relae recommend`: the same lists as the Python API, however they are asked for and wherever they go."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import polars as pl
import pytest

import relae
from relae import RDLAE, Interactions, PlanError
from relae.cli import _recommend

from .conftest import TITLES
from .suite import COMMAND, files, run, shown

READ = {".parquet": pl.read_parquet, ".csv": pl.read_csv, ".jsonl": pl.read_ndjson}


def expected(model: RDLAE, histories: object, k: int, **options: object) -> pl.DataFrame:
    """Rows as one call of the API gives them."""
    ids, scores = model.recommend(histories, k, **options)
    rows = [
        (user, place + 1, ids[row, place], scores[row, place])
        for row, user in enumerate(histories.users.values)
        for place in range(k)
        if ids[row, place] is not None
    ]
    return pl.DataFrame(rows, schema=["user", "rank", "item", "score"], orient="row")


def assert_same(found: pl.DataFrame, wanted: pl.DataFrame) -> None:
    assert found.columns == wanted.columns
    for name in ("user", "rank", "item"):
        assert found[name].to_list() == wanted[name].to_list()
    np.testing.assert_allclose(found["score"].to_numpy(), wanted["score"].to_numpy(), rtol=1e-6)


# --- rows --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extension", READ)
def test_all_users_in_every_format(extension, saved, model, data, shell, tmp_path, monkeypatch):
    monkeypatch.setattr(_recommend, "_ROWS_AT_ONCE", 70)  # several frames
    out = tmp_path / f"recs{extension}"
    done = shell("recommend", saved, "--all-users", "--k", 7, "--out", out)
    assert (done.code, done.out) == (0, "")
    assert "1,120 rows for 160 users" in done.err
    assert_same(READ[extension](out), expected(model, data, 7))
    assert files(tmp_path) == [out.name]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_rows_go_to_stdout(kind, saved, model, data, shell):
    text = shell.ok("recommend", saved, "--all-users", "--k", 3, "--format", kind)
    assert_same((pl.read_csv if kind == "csv" else pl.read_ndjson)(text.encode()), expected(model, data, 3))


def test_fewer_items_than_asked_for_are_fewer_rows(saved, model, data, shell, tmp_path):
    out = tmp_path / "recs.parquet"
    shell.ok("recommend", saved, "--all-users", "--k", 48, "--out", out)
    found = pl.read_parquet(out)
    assert found.height == 160 * 48 - data.n_interactions
    assert_same(found, expected(model, data, 48))


def test_what_may_be_recommended(saved, model, data, shell, tmp_path):
    (tmp_path / "stock.txt").write_text("1003\n1004\n\n1005\n")
    given = ("--allow", "1001,1002,9999", "--allow-file", tmp_path / "stock.txt", "--deny", "1002,77", "--include-seen")
    text = shell.ok("recommend", saved, "--all-users", "--k", 4, "--xi", 0.9, *given)
    allow = [1001, 1002, 1003, 1004, 1005]
    wanted = expected(model.with_xi(0.9), data, 4, allow=allow, deny=[1002], exclude_seen=False)
    assert_same(pl.read_csv(text.encode()), wanted)
    assert set(wanted["item"]) == {1001, 1003, 1004, 1005}


def test_what_is_denied_need_not_be_known(saved, shell):
    plain, denied = (shell.ok("recommend", saved, "--history", "1000", *more) for more in ((), ("--deny", "x")))
    assert plain == denied


def test_a_table_of_other_users(saved, model, shell, tmp_path):
    others = pl.DataFrame({"customer": ["b", "a", "a", "c"], "sku": ["1004", "1000", "1008", "nothing"]})
    others.write_csv(tmp_path / "others.csv")
    given = ("--histories", tmp_path / "others.csv", "--user", "customer", "--item", "sku", "--k", 2)
    done = shell("recommend", saved, *given)
    with pytest.warns(UserWarning, match="unknown"):
        wanted = expected(model, Interactions.from_frame(others, user="customer", item="sku"), 2)
    assert_same(pl.read_csv(done.out.encode()), wanted)
    assert "1 of 4 items in the histories are unknown" in done.err
    assert "1 user without a known item" in done.err
    assert wanted["score"].to_list()[-2:] == [0, 0]


def test_titles_are_a_column_if_asked_for(saved, data, shell, tmp_path):
    out = tmp_path / "recs.parquet"
    shell.ok("recommend", saved, "--for", "u007", "--for", "u001", "--k", 40, "--with-titles", "--out", out)
    found = pl.read_parquet(out)
    assert found.columns == ["user", "rank", "item", "title", "score"]
    assert found["user"].unique(maintain_order=True).to_list() == ["u007", "u001"]
    assert found["title"].to_list() == [data.title(item) for item in found["item"]]
    assert found["title"].null_count() > 0


def test_a_history_has_no_user(saved, model, shell):
    found = pl.read_csv(shell.ok("recommend", saved, "--history", "1000,1004", "--format", "csv").encode())
    assert found.columns == ["rank", "item", "score"]
    assert found["item"].to_list() == list(model.recommend([1000, 1004])[0])


# --- lists -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["1000\n1004\n", '["1000", 1004]', '{"1000": 1.0, "1004": 1.0}'])
def test_a_history_on_the_line_in_a_file_or_on_stdin(content, saved, shell, tmp_path, monkeypatch):
    (tmp_path / "history").write_text(content)
    wanted = json.loads(shell.ok("recommend", saved, "--history", " 1000, 1004", "--json"))
    assert json.loads(shell.ok("recommend", saved, "--history-file", tmp_path / "history", "--json")) == wanted
    with (tmp_path / "history").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert json.loads(shell.ok("recommend", saved, "--history-file", "-", "--json")) == wanted


def test_the_answer_in_json_is_that_of_the_api(saved, model, data, shell):
    answer = json.loads(
        shell.ok("recommend", saved, "--history", "1000,1004,x", "--k", 3, "--xi", 0.8, "--explain", "--json")
    )
    other = model.with_xi(0.8)
    ids, scores = other.recommend([1000, 1004], 3)
    assert [entry["item"] for entry in answer["items"]] == list(ids)
    assert [entry["score"] for entry in answer["items"]] == pytest.approx(scores.tolist(), rel=1e-6)
    for entry in answer["items"]:
        assert entry["title"] == data.title(entry["item"])
        assert entry["popularity"] == model.item_counts_[model.items_.positions([entry["item"]])[0]]
        why = other.explain([1000, 1004], entry["item"])
        positive = [(i, c) for i, c in zip(why.items, why.contributions, strict=True) if c > 0]
        assert [(because["item"], because["contribution"]) for because in entry["because"]] == positive[:3]
    rest = {name: answer[name] for name in ("xi", "k", "user", "known", "unknown", "popular")}
    assert rest == {"xi": 0.8, "k": 3, "user": None, "known": 2, "unknown": ["x"], "popular": False}


def test_users_by_their_ids(saved, model, data, shell):
    one = json.loads(shell.ok("recommend", saved, "--for", "u003", "--json"))
    assert one["user"] == "u003"
    assert [entry["item"] for entry in one["items"]] == list(model.recommend(data.history("u003"))[0])
    two = json.loads(shell.ok("recommend", saved, "--for", "u003", "--for", "u004", "--for", "u003", "--json"))
    assert [answer["user"] for answer in two["results"]] == ["u003", "u004"]
    assert two["results"][0] | {"suggestions": []} == one


def test_json_suggests_what_may_be_meant_by_unknown_ids(saved, shell):
    answer = json.loads(shell.ok("recommend", saved, "--history", "1004,01000,nothing", "--json"))
    assert answer["unknown"] == ["01000", "nothing"]
    [suggestion] = answer["suggestions"]
    assert (suggestion["unknown"], suggestion["items"][0]["item"]) == ("01000", 1000)


def test_no_history_is_what_is_popular(saved, model, shell):
    answer = json.loads(shell.ok("recommend", saved, "--history", "", "--k", 2, "--json"))
    order = np.lexsort((np.arange(48), -model.item_counts_))[:2]
    assert answer["popular"]
    assert [entry["item"] for entry in answer["items"]] == model.items_.take(order).tolist()
    assert "the most popular items" in shell("recommend", saved, "--history", "", "--k", 2).out
    assert shell("recommend", saved, "--history", "", "--k", 2, "--explain").code == 0


@pytest.mark.parametrize(
    ("history", "hint"),
    [
        ("01004", "the model knows no item of the history, 01004 (did you mean 1004 Title of 4?)"),
        ("1004.0,zz", "the model knows no item of the history, 1004.0 (did you mean 1004 Title of 4?), zz"),
        ("title of 14", "the model knows no item of the history, title of 14 (did you mean 1014 Title of 14?)"),
        ("x", "the model knows no item of the history, x: it has 48 items, such as 1000, 1001, 1002"),
    ],
)
def test_a_history_of_unknown_items_gets_a_suggestion(history, hint, saved, shell):
    for more in ((), ("--json",), ("--format", "csv")):
        assert shell("recommend", saved, "--history", history, *more).line() == hint
    assert shell("explain", saved, "--item", 1000, "--history", history).line() == hint


def test_unknown_items_beside_known_ones_get_one_too(saved, shell):
    done = shell("recommend", saved, "--history", "1000,01004", "--deny", "1001,001002", "--k", 2)
    assert done.code == 0
    assert done.err.splitlines() == [
        "1 of 2 items of --deny are unknown to the model, and ignored: 001002 (did you mean 1002 "
        f"{' '.join(TITLES[2].split())}?)",
        "1 of 2 items in the histories are unknown to the model, and ignored: 01004 (did you mean 1004 Title of 4?)",
    ]


def test_an_id_without_its_leading_zeros(tmp_path, shell):
    rng = np.random.default_rng(0)
    books = [f"{number:010}" for number in (155061224, 345402871, 7, 99, 31, 2005018)]
    rows = [f"{user:03},{book}" for user in range(30) for book in rng.choice(books, 3, replace=False)]
    (tmp_path / "books.csv").write_text("\n".join(["user,item", *rows]))
    shell.ok("fit", tmp_path / "books.csv", "--out", tmp_path / "model")
    said = shell("recommend", tmp_path / "model", "--history", "155061224").line()
    assert said == "the model knows no item of the history, 155061224 (did you mean 0155061224?)"
    assert "it has 30; did you mean 007?" in shell("recommend", tmp_path / "model", "--for", 7).line()
    with pytest.warns(UserWarning, match="were ignored: '155061224', did you mean '0155061224'?"):
        relae.load(tmp_path / "model").recommend(["155061224"])


def test_more_places_than_items_are_cut(saved, model, shell):
    done = shell("recommend", saved, "--history", "1004", "--k", 10**12, "--json")
    answer = json.loads(done.out)
    assert done.err == "--k 1,000,000,000,000 is cut to the 48 items that there are\n"
    assert (answer["k"], len(answer["items"])) == (48, 47)
    done = shell("similar", saved, "1004", "--k", 10**12, "--json")
    assert len(json.loads(done.out)["items"]) == 47
    assert shell("recommend", saved, "--all-users", "--k", 10**12).out.count("\n") > 160 * 30
    with pytest.raises(PlanError, match="there are 48 items, so that a larger k gives nothing more"):
        model.recommend([1004], k=10**12)


def test_json_is_ascii_whatever_the_terminal_is(tmp_path, shell):
    names = ["Fantômas", "夜", "Ægir", "plain"]
    rows = [f"{user},{name}" for user in range(40) for name in names[user % 2 :]]
    (tmp_path / "log.csv").write_text("\n".join(["user,item", *rows]), encoding="utf-8")
    shell.ok("fit", tmp_path / "log.csv", "--model", "ease", "--out", tmp_path / "model")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    text = shown("recommend", tmp_path / "model", "--history", "plain", "--json", env=environment)
    assert text.isascii()
    assert {entry["item"] for entry in json.loads(text)["items"]} == {"Fantômas", "夜", "Ægir"}


def test_the_table_shows_titles_as_they_are_on_one_line(saved, shell):
    lines = shell.ok("recommend", saved, "--history", "1004", "--k", 48, "--explain").splitlines()
    assert lines[0] == "47 items (by 1 item, ξ = 0.3)"
    text = "\n".join(lines)
    assert "[red]Not markup[/red]" in text
    assert "Two lines [31m" in text  # the terminal is not told to turn red
    assert "100% Title of 4" in text
    assert max(map(len, lines)) <= 120
    assert "\x1b" not in text


def test_other_models(popular, dual, saved, shell):
    assert "users" in shell.ok("recommend", popular, "--history", "1004")
    wanted, found = (json.loads(shell.ok("recommend", path, "--history", "1004", "--json")) for path in (saved, dual))
    assert [entry["item"] for entry in found["items"]] == [entry["item"] for entry in wanted["items"]]


# --- as a process ------------------------------------------------------------------------------------------------


def test_a_pipe_that_is_closed_early_is_no_error(saved):
    process = subprocess.Popen(
        [*COMMAND, "recommend", saved, "--all-users", "--k", "40"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"user,rank,item,score\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait()


@pytest.mark.parametrize(
    ("sig", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_ctrl_c_and_sigterm_leave_nothing(sig, code, word, saved, table, tmp_path):
    """So many users that it lasts: the file is there in part, and gone afterwards."""
    many = pl.DataFrame({"user": np.repeat(np.arange(200_000), 2), "item": np.tile([1000, 1004], 200_000)})
    many.write_parquet(tmp_path / "many.parquet")
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / "recs.parquet"
    given = ["recommend", saved, "--histories", tmp_path / "many.parquet", "--k", "40", "--out", out]
    process = subprocess.Popen([*COMMAND, *map(str, given)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not _begun(out.parent) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(process.pid, sig)
    said = process.communicate(timeout=60)
    assert (process.returncode, *said) == (code, "", f"relae: {word}\n")
    assert files(out.parent) == []


def _begun(folder):
    """Whether a file is there in part."""
    return any(part.stat().st_size for part in folder.glob(".relae-*.part"))


def test_a_full_disk_keeps_what_was_there(saved, tmp_path):
    import resource

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    for extension in (".parquet", ".csv"):
        out = tmp_path / f"recs{extension}"
        out.write_text("mine")
        done = run("recommend", saved, "--all-users", "--k", 40, "--out", out, preexec_fn=limit)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"relae: {out} cannot be written: File too large; what was there is kept\n"
        assert out.read_text() == "mine"
    assert files(tmp_path) == ["recs.csv", "recs.parquet"]


def test_a_process_shows_what_this_one_does(saved, shell):
    assert shown("recommend", saved, "--history", "1004") == shell.ok("recommend", saved, "--history", "1004")
