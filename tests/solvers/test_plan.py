"""The plan: what a fit costs, which solver it takes, when it is refused."""

import importlib
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import psutil
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from relae import EASE
from relae.errors import PlanError, RelaeError
from relae.solvers import SOLVERS, Auto, Local, Shape, as_solver, available_memory, ensure_memory, plan, solve

from ..oracles import csr, example

memory_module = importlib.import_module("relae._common.memory")
PLENTY = 10**15


# --- the choice --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("users", "items", "chosen"),
    [(500, 1000, "dual"), (899, 1000, "dual"), (950, 1000, "primal"), (1000, 1000, "primal"), (5000, 1000, "primal")],
)
def test_the_dual_form_has_to_be_clearly_smaller(users, items, chosen):
    found = plan(users, items, 10_000, available_bytes=PLENTY)
    assert found.solver == found.chosen.solver == chosen
    assert found.chosen.square == {"primal": items, "dual": users}[chosen]


@pytest.mark.parametrize("solver", ["primal", "dual", "local"])
@pytest.mark.parametrize(("users", "items"), [(10, 1000), (1000, 10)])
def test_a_solver_that_is_named_is_taken(solver, users, items):
    found = plan(users, items, 100, available_bytes=PLENTY, solver=as_solver(solver, dtype="float64"))
    assert (found.solver, found.dtype) == (solver, "float64")
    assert {f.solver for f in found.forecasts} == {"primal", "dual", "local"}
    assert found.exact == (solver != "local")


def test_the_other_solver_is_taken_where_only_it_fits():
    needs = {f.solver: f.added_bytes for f in plan(950, 1000, 1000, available_bytes=PLENTY).forecasts}
    assert needs["dual"] < needs["primal"]
    found = plan(950, 1000, 1000, available_bytes=(needs["dual"] + needs["primal"]) // 2)
    assert found.solver == "dual"


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(0, 10**12))
def test_what_is_planned_fits(users, items, available):
    try:
        found = plan(users, items, 1000, available_bytes=available)
    except PlanError:
        assert min(as_solver(s).forecast(Shape(users, items, 1000)).added_bytes for s in SOLVERS) > available
    else:
        assert found.chosen.added_bytes <= available
        assert found.available_bytes == available
        assert found.peak_bytes == found.process_bytes + found.chosen.added_bytes
        if found.exact:
            assert found.chosen.flops == float(found.chosen.square) ** 3
        else:  # only where no exact one fits
            assert (
                min(as_solver(s).forecast(Shape(users, items, 1000)).added_bytes for s in ("primal", "dual"))
                > available
            )


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_forecast_covers_what_a_fit_allocates(solver, dtype):
    x = csr((np.random.default_rng(0).random((1000, 1200)) < 0.02).astype(np.float32))
    penalty = np.full(1200, 50.0)
    small = csr(example(30, 30, weighted=False))
    solve(small, np.ones(30), solver=as_solver(solver, dtype=dtype))  # compiled
    predicted = as_solver(solver, dtype=dtype).forecast(Shape(*x.shape, x.nnz)).added_bytes
    tracemalloc.start()
    try:
        solve(x, penalty, solver=as_solver(solver, dtype=dtype))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= predicted + 2e6
    assert predicted <= 2 * peak


# --- the refusal -------------------------------------------------------------------------------------------------


def test_an_impossible_size_is_refused_at_once_with_figures_and_a_way_out():
    tracemalloc.start()
    try:
        start = time.perf_counter()
        with pytest.raises(PlanError) as caught:
            plan(2_000_000, 1_000_000, 50_000_000, solver="exact")
        seconds = time.perf_counter() - start
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seconds < 1
    assert peak < 1e6
    message = str(caught.value)
    for part in ("1,000,000 items", "2,000,000 users", "primal", "dual", "GB", "available", "min_item_count"):
        assert part in message
    assert isinstance(caught.value, RelaeError)
    assert isinstance(caught.value, MemoryError)


def test_a_fit_of_an_impossible_size_is_refused():
    x = sp.csr_array(
        (np.ones(1, np.float32), (np.array([1_999_999]), np.array([999_999]))), shape=(2_000_000, 1_000_000)
    )
    model = EASE(1.0)
    with pytest.raises(PlanError, match="1,000,000 items need"):
        model.fit(x, solver="exact")


def test_the_local_form_is_taken_where_no_exact_one_fits_and_only_if_that_is_left_open():
    sizes = (2_000_000, 1_000_000, 100_000_000)
    found = plan(*sizes, available_bytes=20 * 2**30)
    assert (found.solver, found.chosen.square, found.exact) == ("local", 200, False)
    assert plan(*sizes, available_bytes=20 * 2**30, solver=Auto(neighbours=50)).chosen.square == 50
    assert plan(100, 30, 1000, available_bytes=PLENTY, solver=Local(50)).chosen.square == 30
    with pytest.raises(PlanError, match=r"use solver='local' \(\d+\.\d GB\)"):
        plan(*sizes, solver="exact", available_bytes=20 * 2**30)
    with pytest.raises(PlanError, match="in the local form"):
        plan(*sizes, available_bytes=10**8)


def test_the_refusal_names_the_solver_that_would_fit():
    needs = {f.solver: f.added_bytes for f in plan(500, 1000, 1000, available_bytes=PLENTY).forecasts}
    with pytest.raises(PlanError, match=r"1,000 items need .* use solver='dual' \(\d+ MB\)"):
        plan(500, 1000, 1000, solver="primal", available_bytes=(needs["dual"] + needs["primal"]) // 2)


def test_the_refusal_names_the_smaller_precision():
    with pytest.raises(PlanError, match="use dtype='float32'"):
        plan(500, 1000, 1000, available_bytes=1000, solver=Auto(dtype="float64"))
    with pytest.raises(PlanError) as caught:
        plan(500, 1000, 1000, available_bytes=1000, solver=Auto(dtype="float32"))
    assert "dtype=" not in str(caught.value)


def test_ensure_memory():
    assert ensure_memory(0, "nothing", "none") is None
    with pytest.raises(PlanError, match=r"the moon needs 1,000,000,000\.0 GB, and .* are available: wish for less"):
        ensure_memory(1e18, "the moon", "wish for less")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"solver": "cg"}, "solver must be 'auto', 'exact', 'primal', 'dual' or 'local', got 'cg'"),
        ({"users": 0}, "at least one user and one item, got 0 users and 3 items"),
        ({"items": 0}, "at least one user and one item, got 3 users and 0 items"),
        ({"users": -1}, "at least one user and one item, got -1 users"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        plan(**{"users": 3, "items": 3, "nonzeros": 3, "available_bytes": PLENTY, **arguments})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"neighbours": 0}, "neighbours must be a whole number of at least 1, got 0"),
        ({"neighbours": 2.5}, "neighbours must be a whole number of at least 1, got 2.5"),
        ({"dtype": "float16"}, "dtype must be 'float32' or 'float64', got 'float16'"),
    ],
)
@pytest.mark.parametrize("kind", [Auto, Local])
def test_bad_settings(kind, settings, message):
    with pytest.raises(ValueError, match=message):
        kind(**settings)


@pytest.mark.parametrize("dtype", ["nonsense", None])
def test_dtypes_that_are_none(dtype):
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64'"):
        plan(3, 3, 3, available_bytes=PLENTY, solver=Auto(dtype=dtype))


# --- the memory there is -----------------------------------------------------------------------------------------


def group(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def groups_memory(tmp_path, membership):
    (tmp_path / "membership").write_text(membership)
    return sorted(memory_module._control_group_memory(str(tmp_path / "membership"), tmp_path / "mount"))


def v2(limit, usage, cache=0):
    return {
        "memory__max": f"{limit}\n",
        "memory__current": f"{usage}\n",
        "memory__stat": f"anon 5\ninactive_file {cache}\nactive_file 7\n",
    }


def v1(limit, usage, cache=0):
    return {
        "memory__limit_in_bytes": f"{limit}\n",
        "memory__usage_in_bytes": f"{usage}\n",
        "memory__stat": f"cache 5\ninactive_file 3\ntotal_inactive_file {cache}\n",
    }


def test_cgroup_v2_with_parents(tmp_path):
    group(tmp_path / "mount" / "slice" / "job", **v2(1000, 400, 100))
    group(tmp_path / "mount" / "slice", **v2(900, 800))
    group(tmp_path / "mount", **v2("max", 10))
    assert groups_memory(tmp_path, "0::/slice/job\n") == [100, 700]


def test_cgroup_v2_in_a_container_sees_its_own_group_as_the_root(tmp_path):
    group(tmp_path / "mount", **v2(1000, 400))
    assert groups_memory(tmp_path, "0::/\n") == [600]
    assert groups_memory(tmp_path, "0::/../elsewhere\n") == [600]


def test_cgroup_v1(tmp_path):
    group(tmp_path / "mount" / "memory" / "docker" / "abc", **v1(5000, 4000, 500))
    group(tmp_path / "mount" / "memory" / "docker", **v1(9223372036854771712, 10))
    membership = "12:cpu,cpuacct:/docker/abc\n7:hugetlb,memory:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n"
    assert groups_memory(tmp_path, membership) == [1500]


def test_cgroup_v1_whose_path_is_the_hosts(tmp_path):
    group(tmp_path / "mount" / "memory", **v1(5000, 4000))
    assert groups_memory(tmp_path, "7:memory:/docker/abc\n") == [1000]


def test_no_control_groups(tmp_path):
    assert groups_memory(tmp_path, "0::/slice\n") == []
    assert list(memory_module._control_group_memory(str(tmp_path / "nothing"), tmp_path)) == []


def test_a_control_group_that_cannot_be_read_is_passed_over(tmp_path):
    group(tmp_path / "mount" / "job", memory__max="soon\n", memory__current="3\n", memory__stat="")
    assert groups_memory(tmp_path, "0::/job\n") == []


def test_a_limit_counts_without_statistics(tmp_path):
    group(tmp_path / "mount" / "job", memory__max="1000\n", memory__current="400\n")
    assert groups_memory(tmp_path, "0::/job\n") == [600]


def test_the_least_of_all_limits_counts(monkeypatch):
    free = psutil.virtual_memory().available
    assert 0 < available_memory() <= 1.5 * free
    monkeypatch.setattr(memory_module, "_control_group_memory", lambda: iter([12_345, 99_999_999_999_999]))
    assert available_memory() == 12_345
    monkeypatch.setattr(memory_module, "_control_group_memory", lambda: iter([-5]))
    assert available_memory() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is enforced on Linux")
def test_the_limit_of_the_process_counts():
    code = """
import resource
import psutil
import relae
from relae.solvers import available_memory
limit = psutil.Process().memory_info().vms + (1 << 30)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
assert available_memory() <= 1 << 30, available_memory()
try:
    relae.plan(10**6, 17_000, 10**6, solver="exact")  # 1.2 GB
except relae.PlanError as error:
    print("refused:", error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.startswith("refused: 17,000 items need")
