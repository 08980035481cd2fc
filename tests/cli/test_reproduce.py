"""`relae reproduce` as a process: exit codes, files, and going on after a kill."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ..reproduce.conftest import write

COMMAND = [sys.executable, "-c", "from relae.cli import main; main()", "reproduce"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write(folder / "gowalla", seed=1)
    return folder


def run(data: Path, out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments, "--dataset", "gowalla", "--out", str(out)],
        env={**os.environ, "RELAE_DATA": str(data), "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_other_data_is_off_and_says_so_with_exit_code_1(data: Path, tmp_path: Path) -> None:
    done = run(data, tmp_path, "table3", "--models", "ease,gf-cf")
    assert done.returncode == 1, done.stderr
    assert "of 4 cells equal" in done.stdout
    assert "beyond the tolerance" in done.stdout
    assert "EASE (l2 80, dropout 0, xi 0" in done.stdout
    rows = list(csv.DictReader((tmp_path / "table3-gowalla.csv").read_text().splitlines()))
    assert [(row["model"], row["metric"]) for row in rows] == [
        (model, metric) for model in ("GF-CF", "EASE") for metric in ("recall@20", "ndcg@20")
    ]
    for row in rows:
        assert float(row["difference"]) == pytest.approx(round(float(row["ours"]), 4) - float(row["paper"]), abs=1e-9)
    assert "| EASE | **0.1765 / " in (tmp_path / "table3-gowalla.md").read_text()


def test_a_wide_tolerance_is_exit_code_0(data: Path, tmp_path: Path) -> None:
    done = run(data, tmp_path, "table3", "--models", "ease", "--tolerance", "1")
    assert done.returncode == 0, done.stderr
    assert "within the tolerance of 1" in done.stdout


def test_a_killed_run_goes_on_after_the_last_finished_model(data: Path, tmp_path: Path) -> None:
    saved = tmp_path / "table2-gowalla.json"
    process = subprocess.Popen(
        [*COMMAND, "table2", "--dataset", "gowalla", "--out", str(tmp_path)],
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
    done = run(data, tmp_path, "table2", "--tolerance", "1")
    assert done.returncode == 0, done.stderr
    assert f"going on from {saved}" in done.stderr.replace("\n", "")
    again = json.loads(saved.read_text())["rows"]
    assert again[: len(finished)] == finished  # not run again: the seconds are the same too
    assert {row["model"] for row in again} == {"GF-CF", "LAE", "EASE", "RLAE", "DLAE", "EDLAE", "RDLAE"}
    assert "of 84 cells equal" in done.stdout


def test_results_of_other_data_are_not_mixed_in(data: Path, tmp_path: Path) -> None:
    run(data, tmp_path / "out", "table3", "--models", "ease")
    other = tmp_path / "other"
    write(other / "gowalla", seed=2)
    done = run(other, tmp_path / "out", "table3", "--models", "lae", "--tolerance", "1")
    assert "of other data" in done.stderr.replace("\n", "")
    assert [row["model"] for row in json.loads((tmp_path / "out/table3-gowalla.json").read_text())["rows"]] == ["LAE"]


def test_a_file_that_is_not_ours_is_an_error_and_is_kept(data: Path, tmp_path: Path) -> None:
    (tmp_path / "table3-gowalla.json").write_text("my notes")
    done = run(data, tmp_path, "table3", "--models", "ease")
    assert done.returncode == 2
    assert "--fresh" in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "table3-gowalla.json").read_text() == "my notes"
    assert run(data, tmp_path, "table3", "--models", "ease", "--tolerance", "1", "--fresh").returncode == 0
