"""`relae plan`: what the Python API forecasts, with a time that is said to be an estimate."""

import json
import time

import pytest

from relae import plan
from relae.cli import _plan
from relae.solvers import forecast


def test_it_forecasts_what_the_api_forecasts(table, columns, data, shell):
    answer = json.loads(shell.ok("plan", table, *columns, "--json"))
    shape = data.n_users, data.n_items, data.n_interactions
    assert answer["chosen"] == plan(*shape).solver
    assert answer["refusal"] is None
    for entry in answer["solvers"]:
        wanted = forecast(entry["solver"], *shape, "float32")
        assert (entry["square"], entry["flops"]) == (wanted.square, wanted.flops)
        assert entry["added_bytes"] == pytest.approx(wanted.added_bytes, abs=2e8)  # the compiler counts once
        assert entry["estimated_seconds"] == pytest.approx(entry["flops"] / answer["flops_per_second"])
    assert answer["data"]["interactions"] == data.n_interactions
    text = shell.ok("plan", table, *columns, "--solver", "dual")
    assert "a fit chooses dual" in text
    assert "160² users" in text
    assert "estimate" in text


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_the_size_on_disk_is_that_of_the_saved_model(solver, data, tmp_path):
    from relae import EASE, store

    big = data.select_users(range(150))
    EASE(1.0, solver=solver).fit(big).save(tmp_path / "m", histories=big)
    entry = forecast(solver, big.n_users, big.n_items, big.n_interactions, "float32")
    wanted = store.open_model(tmp_path / "m").size
    assert _plan.disk_bytes(entry, big.statistics()) == pytest.approx(wanted, rel=0.2)  # ids and titles come on top


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
    assert 1e8 < _plan.gemm_rate("float32") < 1e14
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "under 1 s"), (12.3, "12 s"), (600, "10 min"), (7200, "2.0 h")])
def test_times_in_words(seconds, words):
    assert _plan.in_words(seconds) == words
