"""A forked child recommends and fits like its parent, whatever the parent's threads were doing."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

SETTING = """
import multiprocessing, os, signal, sys, threading, time, warnings
import numpy as np
from relae import RDLAE, EASE
from relae.baselines import IALS, ItemKNN
from relae.solvers import Local
warnings.simplefilter("ignore", DeprecationWarning)  # what newer Pythons say of a fork beside threads
rng = np.random.default_rng(0)
x = (rng.random((60, 40)) < 0.2).astype(np.float32)
model = EASE(20.0).fit(x, solver="primal")
expected = model.recommend(x, k=7)

def check(_=None):
    ids, scores = model.recommend(x, k=7)
    assert np.array_equal(ids, expected[0]) and np.allclose(scores, expected[1], rtol=1e-5)
    return os.getpid()

def finished(child):
    [status] = [status for pid, status in [os.waitpid(child, 0)] if pid == child]
    assert status == 0, status
"""
EVERY_MODEL = """
from relae.linalg import _compile
for fit in (
    lambda: RDLAE(20.0).fit(x, solver="primal"),
    lambda: RDLAE(20.0).fit(x, solver="dual"),
    lambda: EASE(20.0).fit(x, solver=Local(9)),
    lambda: IALS(6).fit(x),
    lambda: ItemKNN(5).fit(x),
):
    model = fit()
    expected = model.recommend(x, k=7)
    child = os.fork()
    if child == 0:
        try:
            check()
            again = fit()
            assert np.allclose(again.score(x), model.score(x), rtol=1e-3, atol=1e-5)
            os._exit(0)
        finally:
            os._exit(1)
    finished(child)
    check()  # the parent goes on with all of its cores
    assert _compile.settings.parallel
"""
POOL = """
with multiprocessing.get_context("fork").Pool(2) as pool:
    workers = set(pool.map(check, range(8)))
assert os.getpid() not in workers
"""
BESIDE_THREADS = """
stop = threading.Event()
def busy():
    while not stop.is_set():
        model.recommend(x, k=7)
threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        try:
            check()
            os._exit(0)
        finally:
            os._exit(1)
    finished(child)
stop.set()
for thread in threads:
    thread.join()
"""
EITHER_SIDE = """
import os, sys
from relae import linalg
if len(sys.argv) > 1:
    linalg.load_kernels()
assert ("numba" in sys.modules) == (len(sys.argv) > 1)
child = os.fork()
if child == 0:
    try:
        linalg.load_kernels()
        os._exit(0)
    finally:
        os._exit(1)
assert os.waitpid(child, 0) == (child, 0)
linalg.load_kernels()
"""


def run(script, *arguments, **environment):
    """Run a script in a process of its own, with threads of every library; one that hangs fails by its time limit."""
    command = [sys.executable, "-c", script, *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"} | environment
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "Terminating" not in done.stderr


def test_a_child_recommends_and_fits():
    run(SETTING + EVERY_MODEL)


def test_a_pool_of_forked_processes():
    run(SETTING + POOL)


def test_forks_while_other_threads_recommend():
    run(SETTING + BESIDE_THREADS)


def test_a_fork_before_numba_is_imported():
    run(EITHER_SIDE)


def test_machine_code_for_one_core_and_for_all_are_kept_apart(tmp_path):
    """numba's cache tells functions apart by their names alone, and each of the two would end the other's process."""
    for _ in range(2):  # to fill the cache, and to use it
        run(EITHER_SIDE, "after the first call", NUMBA_CACHE_DIR=str(tmp_path))
    kept = {path.name.split("-")[0] for path in tmp_path.rglob("*.nbi")}
    assert {"_kernels.top_k", "_kernels.top_k_on_one_core"} <= kept
