"""`relae reproduce`: exit codes, files, and going on after a kill."""

import csv
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from relae.cli import _reproduce
from relae.experiments import _run
from relae.experiments.paper import _experiment

from ..experiments.paper.conftest import write
from ..tuning.suite import Learner
from .suite import COMMAND, Done, Shell


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write(folder / "gowalla", seed=1)
    return folder


@pytest.fixture
def reproduce(data: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    monkeypatch.setenv("RELAE_DATA", str(data))
    monkeypatch.setenv("COLUMNS", "100")

    def run(out: Path, *arguments: str) -> Done:
        return shell("reproduce", *arguments, "--dataset", "gowalla", "--out", out)

    return run


def test_other_data_is_off_and_says_so_with_exit_code_1(reproduce: Callable[..., Done], tmp_path: Path) -> None:
    done = reproduce(tmp_path, "table3", "--models", "ease,gf-cf")
    assert done.code == 1, done.err
    assert "of 4 cells equal" in done.out
    assert "beyond the tolerance" in done.out
    assert "EASE (l2 80, dropout 0, xi 0" in done.out
    rows = list(csv.DictReader((tmp_path / "table3-gowalla/table.csv").read_text().splitlines()))
    assert [(row["model"], row["metric"]) for row in rows] == [
        (model, metric) for model in ("GF-CF", "EASE") for metric in ("recall@20", "ndcg@20")
    ]
    for row in rows:
        assert float(row["difference"]) == pytest.approx(round(float(row["ours"]), 4) - float(row["paper"]), abs=1e-9)
    assert "| EASE | **0.1765 / " in (tmp_path / "table3-gowalla/table.md").read_text()


def test_a_wide_tolerance_is_exit_code_0(reproduce: Callable[..., Done], tmp_path: Path) -> None:
    done = reproduce(tmp_path, "table3", "--models", "ease", "--tolerance", "1")
    assert done.code == 0, done.err
    assert "within the tolerance of 1" in done.out


def test_a_killed_run_goes_on_after_the_last_finished_model(
    reproduce: Callable[..., Done], data: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "table2-gowalla/result.json"
    process = subprocess.Popen(
        [*COMMAND, "reproduce", "table2", "--dataset", "gowalla", "--out", str(tmp_path)],
        env={**os.environ, "RELAE_DATA": str(data)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while not saved.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = json.loads(saved.read_text())["rows"]  # whole, whenever the kill came
    assert finished
    done = reproduce(tmp_path, "table2", "--tolerance", "1")
    assert done.code == 0, done.err
    assert f"going on from {saved.parent}" in done.err.replace("\n", "")
    again = json.loads(saved.read_text())["rows"]
    assert again[: len(finished)] == finished  # not run again: the seconds are the same too
    assert {row["model"] for row in again} == {"GF-CF", "LAE", "EASE", "RLAE", "DLAE", "EDLAE", "RDLAE"}
    assert "of 84 cells equal" in done.out


def test_results_of_other_data_are_not_mixed_in(
    reproduce: Callable[..., Done], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce(tmp_path / "out", "table3", "--models", "ease")
    other = tmp_path / "other"
    write(other / "gowalla", seed=2)
    monkeypatch.setenv("RELAE_DATA", str(other))
    done = reproduce(tmp_path / "out", "table3", "--models", "lae", "--tolerance", "1")
    assert "of other data" in done.err.replace("\n", "")
    assert [row["model"] for row in json.loads((tmp_path / "out/table3-gowalla/result.json").read_text())["rows"]] == [
        "LAE"
    ]


def test_a_file_that_is_not_ours_is_an_error_and_is_kept(reproduce: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "table3-gowalla").mkdir()
    (tmp_path / "table3-gowalla/result.json").write_text("my notes")
    done = reproduce(tmp_path, "table3", "--models", "ease")
    assert done.code == 2
    assert "--fresh" in done.err
    assert "Traceback" not in done.err
    assert (tmp_path / "table3-gowalla/result.json").read_text() == "my notes"
    assert reproduce(tmp_path, "table3", "--models", "ease", "--tolerance", "1", "--fresh").code == 0


# --- models that are trained -------------------------------------------------------------------------------------


@pytest.fixture
def learner(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Reproduce with a fake model that is trained, in this process; return the exit code and what was shown."""
    monkeypatch.setenv("RELAE_DATA", str(data))
    monkeypatch.setenv("COLUMNS", "100")
    real = _experiment.kind
    for module in (_experiment, _run):
        monkeypatch.setattr(module, "kind", lambda name: Learner if name == "LightGCN" else real(name))
    Learner.given.clear()

    def reproduce(models: str, **options: object) -> tuple[bool, str]:
        given = {"tolerance": 0.0001, "out": tmp_path, "fresh": False} | options
        done = _reproduce.reproduce("table3", "gowalla", models.split(","), **given)
        return done, " ".join(capsys.readouterr().out.split())

    return reproduce


def test_a_trained_model_is_shown_and_not_counted(learner, tmp_path: Path) -> None:
    good, text = learner("lightgcn", time_budget=9.0)
    assert good  # far from the paper, and no failure
    assert "cells equal" not in text
    assert "Not counted, because the paper does not say how these were trained: LightGCN: recall@20" in text
    assert "(paper 0.1830)" in text
    assert "trained here for 5 epochs in 2 s (cut short by the time it was given)" in text
    curve = list(csv.DictReader((tmp_path / "table3-gowalla/lightgcn-curve.csv").read_text().splitlines()))
    assert [row["epoch"] for row in curve] == ["1", "2", "3", "4", "5"]
    assert [row["value"] for row in curve] == ["", "0.2", "", "0.4", ""]
    [one, _] = csv.DictReader((tmp_path / "table3-gowalla/table.csv").read_text().splitlines())
    assert "cut short" in one["remark"]
    table = (tmp_path / "table3-gowalla/table.md").read_text()
    assert "| LightGCN (trained here) | 0.1830 / " in table
    assert "LightGCN: trained here for 5 epochs" in table


def test_a_trained_model_does_not_hide_another_that_is_off(learner) -> None:
    good, text = learner("lightgcn,ease")
    assert not good
    assert "of 2 cells equal" in text
    assert "LightGCN ndcg@20: paper" not in text


def test_what_was_cut_short_goes_on_only_with_more_time(learner, tmp_path: Path) -> None:
    learner("lightgcn", time_budget=9.0)
    learner("lightgcn", time_budget=9.0)
    assert len(Learner.given) == 1
    learner("lightgcn", time_budget=20.0)
    assert [given["time_budget"] for given in Learner.given] == [9.0, 20.0]
    learner("lightgcn")
    learner("lightgcn")
    assert len(Learner.given) == 3  # the third came to its end, and the fourth found it
    assert not (tmp_path / "table3-gowalla/lightgcn.checkpoint").exists()


def test_a_time_budget_that_is_none(reproduce: Callable[..., Done], tmp_path: Path) -> None:
    done = reproduce(tmp_path, "table3", "--models", "ease", "--time-budget", "0")
    assert done.code == 2
    assert "minutes above 0" in done.err


def test_a_real_trained_model(reproduce: Callable[..., Done], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = reproduce(tmp_path, "table3", "--models", "grmf", "--time-budget", "0.008")
    assert done.code == 0, done.err
    [row] = json.loads((tmp_path / "table3-gowalla/result.json").read_text())["rows"]
    assert row["training"]["stopped"] == "time"
    assert row["training"]["epochs"] == len(row["training"]["curve"]) >= 1
    assert (tmp_path / "table3-gowalla/grmf-curve.csv").exists()
    assert (tmp_path / "table3-gowalla/grmf.checkpoint").exists()
