"""`relae report`: a run goes in, a file comes out, and what is wrong is said."""

import json
import shutil

import pytest

from relae.errors import DataError
from relae.experiments import TEST_METRICS, Run, _run
from relae.report import write_report
from relae.tuning import Tuning

from ..report.suite import Page, reported, tuned, write_table


def make(run, **options):
    return write_report(Run.read(run), **options)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return tuned(tmp_path_factory.mktemp("finished"), test=False)


@pytest.fixture
def run(finished, tmp_path):
    """A copy that a test may damage; the data stay where they are."""
    return shutil.copytree(finished, tmp_path / "run")


def test_it_says_where_the_report_is(run, shell):
    said = shell.ok("report", run)
    assert str(run / "report.html") in said.replace("\n", "")
    assert len((run / "report.html").read_bytes()) < 3_000_000


def test_a_run_that_was_not_tested_is_tested_now(tmp_path, monkeypatch):
    monkeypatch.setattr(Tuning, "chosen", property(lambda tuning: tuning.best("LAE")))  # so that it is not the default
    run = tuned(tmp_path, test=False)
    result = json.loads((run / "result.json").read_text())
    assert result["test"] is None
    read = Page(reported(run))
    table = read.tables["The first 10 places of each list"]
    assert [row[0].split("\n")[0] for row in table[1:]][:3] == ["NDCG", "Recall", "NDCG, head"]
    assert table[0][1:] == ["LAE", "the defaults", "popularity", "LAE − the defaults"]
    assert "Against the defaults, paired user by user" in read.text


def test_another_file_users_by_their_ids_and_no_users_at_all(run, tmp_path):
    out = tmp_path / "a b" / "page.html"
    page = reported(run, out=out, user_ids=True, samples=2)
    assert out.exists()
    assert not (run / "report.html").exists()
    assert page.count("@mail.example</bdi></h3>") == 2
    assert "page.html&#x27; --samples 2 --user-ids" in page
    assert "What it recommends" not in reported(run, samples=0)


def test_a_constraint_and_a_weak_split(tmp_path):
    run = tuned(tmp_path, split="weak", solver="dual", objective="tail_recall@10", keep="ndcg@10", loss=0.05)
    text = Page(reported(run)).text
    assert "with at most 5.0% of the best NDCG@10 lost" in text
    assert "On the test items of" in text
    assert "dual, float32" in text


def test_items_without_titles_go_by_their_ids(tmp_path):
    run = tuned(tmp_path)
    result = json.loads((run / "result.json").read_text())
    result["request"]["columns"]["titles"] = None
    (run / "result.json").write_text(json.dumps(result))
    text = Page(reported(run)).text
    assert "Title of" not in text
    assert "i30" in text


def test_what_the_run_says_is_believed(run):
    """Figures and differences that are in the run are shown, and nothing is evaluated again."""
    reported(run)
    result = json.loads((run / "result.json").read_text())
    figures = [
        {"metric": metric, "k": 10, "mean": 0.1234, "low": 0.1, "high": None, "users": 7} for metric in TEST_METRICS
    ]
    rows = [{"metric": "ndcg", "k": 10, "difference": 0.0432, "low": 0.01, "high": 0.05, "p_value": 0.02}]
    result["test"] = [
        {"role": "chosen", "model": "m", "figures": figures},
        {"role": "the defaults", "model": "e", "figures": figures, "differences": rows},
    ]
    (run / "result.json").write_text(json.dumps(result))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_run, "evaluate", lambda *_, **__: pytest.fail("evaluated again"))
        text = Page(reported(run)).text
    assert "NDCG@10 +0.0432 [+0.0100, +0.0500], p\u00a0=\u00a00.02: better" in text.replace("p = ", "p\u00a0=\u00a0")


# --- what can be wrong -------------------------------------------------------------------------------------------


def test_no_folder(tmp_path):
    with pytest.raises(DataError, match=r"is no folder of a run; make it with `relae tune DATA --out"):
        make(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["result.json", "journal.jsonl"])
def test_a_file_is_missing_or_damaged(run, name):
    whole = (run / name).read_text()
    for content in ("", "my notes", "{}", "[]", "null\nnull\n", whole[: len(whole) // 3]):
        (run / name).write_text(content)
        with pytest.raises(DataError, match="relae tune"):
            make(run)
    (run / name).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="relae tune"):
        make(run)
    (run / name).unlink()
    with pytest.raises(DataError, match=f"has no {name}"):
        make(run)


@pytest.mark.parametrize("key", ["chosen", "request", "axes", "objective", "best"])
def test_a_part_is_missing_or_of_another_kind(run, key):
    result = json.loads((run / "result.json").read_text())
    for wrong in (None, 3, [], {}):
        (run / "result.json").write_text(json.dumps(result | {key: wrong}))
        with pytest.raises(DataError):
            make(run)


def test_other_data_or_another_version(run, tmp_path):
    result = json.loads((run / "result.json").read_text())
    lines = (run / "journal.jsonl").read_text().splitlines(keepends=True)
    purpose = json.loads(lines[0])
    (run / "journal.jsonl").write_text("".join([json.dumps(purpose | {"version": "0.0.1"}) + "\n", *lines[1:]]))
    with pytest.raises(DataError, match=r"made by relae 0\.0\.1, and this is .*relae tune"):
        make(run)
    (run / "journal.jsonl").write_text("".join(lines))
    result["request"]["source"] = str(write_table(tmp_path, seed=5))
    (run / "result.json").write_text(json.dumps(result))
    with pytest.raises(DataError, match="has changed since"):
        make(run)
    result["request"]["source"] = "moved.csv"
    (run / "result.json").write_text(json.dumps(result))
    with pytest.raises(DataError, match="where `relae tune` was run"):
        make(run)


def test_fewer_than_no_users(run):
    with pytest.raises(ValueError, match="at least 0"):
        make(run, samples=-1)
