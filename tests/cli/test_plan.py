"""`relae plan`: what the Python API forecasts, with a time that is said to be an estimate."""

import json
import shlex
import subprocess
import time

import pytest

from relae import Interactions, plan
from relae.cli import _plan
from relae.solvers import Shape, as_solver

from .suite import COMMAND


def test_it_forecasts_what_the_api_forecasts(table, columns, data, shell):
    answer = json.loads(shell.ok("plan", table, *columns, "--json"))
    shape = data.n_users, data.n_items, data.n_interactions
    assert answer["chosen"] == plan(*shape).solver
    assert answer["refusal"] is None
    for entry in answer["solvers"]:
        wanted = as_solver(entry["solver"]).forecast(Shape(*shape))
        assert (entry["square"], entry["flops"]) == (wanted.square, wanted.flops)
        assert entry["added_bytes"] == pytest.approx(wanted.added_bytes, abs=2e8)  # the compiler counts once
        assert entry["estimated_seconds"] == pytest.approx(entry["flops"] / answer["flops_per_second"])
    assert answer["data"]["interactions"] == data.n_interactions
    text = shell.ok("plan", table, *columns, "--solver", "dual")
    assert "a fit chooses dual" in text
    assert "160² users" in text
    assert "estimate" in text


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--solver", "primal", "--dtype", "float64"),
        ("--solver", "dual"),
        ("--solver", "dual", "--form", "fitted"),
        ("--solver", "dual", "--form", "dual", "--no-histories"),
        ("--solver", "local", "--neighbours", "12"),
    ],
    ids=" ".join,
)
def test_the_size_on_disk_is_that_of_the_folder_that_fit_writes(options, table, columns, shell, tmp_path):
    answer = json.loads(shell.ok("plan", table, *columns, *options, "--json"))
    [chosen] = [entry for entry in answer["solvers"] if entry["solver"] == answer["chosen"]]
    fitted = json.loads(shell.ok("fit", table, *columns, *options, "--out", tmp_path / "m", "--json"))
    written = sum(file.stat().st_size for file in (tmp_path / "m").rglob("*.npy"))
    assert chosen["disk_bytes"] == fitted["size"] == written
    assert chosen["saved_form"] == fitted["fitted"]["form"]


def test_a_dual_form_that_is_saved_larger_is_told_with_the_way_to_a_smaller_one(shell, tmp_path):
    """Few users with many items: a small square is solved, and a large one is saved."""
    rows = [f"{user},{item}" for user in range(5) for item in range(user, 6000)]
    (tmp_path / "wide.csv").write_text("\n".join(["user,item", *rows]))
    text = shell.ok("plan", tmp_path / "wide.csv")
    assert "a fit chooses dual" in text
    assert "144 MB, primal" in text
    assert "saved in the primal form" in text
    assert "--form fitted saves 481 kB" in text
    text = shell.ok("plan", tmp_path / "wide.csv", "--form", "fitted")
    assert " kB, dual" in text
    assert "--form fitted saves" not in text


def test_a_form_that_cannot_be_saved_is_refused_before_the_fit(table, columns, shell, tmp_path):
    line = shell("fit", table, *columns, "--solver", "primal", "--form", "dual", "--out", tmp_path / "m").line()
    assert (
        line
        == "this model has the primal form, and cannot be saved in the dual form: choose another --form or --solver"
    )
    assert not (tmp_path / "m").exists()


def test_a_refusal_comes_after_the_table(table, columns, shell, monkeypatch):
    monkeypatch.setattr(_plan, "available_memory", lambda: 1000)
    done = shell("plan", table, *columns)
    assert done.code == 2
    assert "nothing fits" in done.out
    assert done.out.count("✗") == 3
    assert done.err.startswith("relae: 48 items need")
    assert "--min-item-count" in done.err
    assert done.err.count("\n") == 1
    done = shell("plan", table, *columns, "--json")
    answer = json.loads(done.out)
    assert done.code == 2
    assert (answer["chosen"], answer["refusal"]) == (None, pytest.approx(answer["refusal"]))
    assert "48 items need" in answer["refusal"]


def test_the_measurement_is_short():
    started = time.perf_counter()
    assert 1e8 < _plan.measure_gemm_rate("float32") < 1e14
    assert time.perf_counter() - started < 5


@pytest.mark.filterwarnings("always:min_item_count=20 is one pass")
def test_one_pass_is_told_and_a_core_is_an_option(table, columns, shell):
    filters = ("--min-item-count", 20, "--min-user-count", 7)
    done = shell("plan", table, *columns, *filters, "--json")
    assert done.err.startswith("relae: --min-item-count 20 is one pass, before --min-user-count 7: after both, ")
    assert done.err.endswith(
        " have fewer than 20 users. To drop items and users until all have enough, use --k-core 20\n"
    )
    found = json.loads(shell.ok("plan", table, *columns, "--k-core", 6, "--json"))
    core = Interactions.read(table, user="who", item="what", k_core=6)
    assert (found["data"]["users"], found["data"]["items"]) == (core.n_users, core.n_items)
    assert found["data"]["per_user"]["min"] >= 6


def test_data_may_come_through_a_pipe(table, columns):
    script = f"exec {shlex.join(COMMAND)} plan <(gzip -c {table}) {shlex.join(map(str, columns))} --json"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert json.loads(done.stdout)["data"]["users"] == 160
