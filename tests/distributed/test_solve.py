"""Fits on a cluster beside those of one machine, with all workers and with one that dies."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from relae import PlanError, PrecisionError, algebra
from relae.distributed import Dask, Partitions
from relae.distributed import _dask as dask_module
from relae.distributed._cluster import Cluster, Job
from relae.linalg import as_csr
from relae.ranking import rank
from relae.solvers import Local, LocalInverse, PrimalInverse, plan, solve

from ..oracles import dense_inverse
from .suite import NOISE, Killer, interactions, running, write_files

pytestmark = NOISE


def penalty_of(x, l2=5.0, dropout=0.3):
    return algebra.penalty(np.asarray(x.multiply(x).sum(axis=0)).ravel(), l2, dropout)


def same_top(one, other, x, penalty, k=100):
    """Share of the top-k positions that are the same."""
    ids = [
        rank(
            inverse.project(x),
            k,
            scale=-algebra.column_weights(penalty, inverse.diagonal(), 0.4).astype(inverse.dtype),
            seen=x,
        )[0]
        for inverse in (one, other)
    ]
    return (ids[0] == ids[1]).mean()


@pytest.mark.parametrize("nearest_by", ["cosine", "count"])
@pytest.mark.parametrize("square", [True, False])
def test_local_is_the_same_to_the_last_bit(client, nearest_by, square, monkeypatch):
    monkeypatch.setattr(dask_module, "SQUARE_BYTES", 1e9 if square else 0)
    x = as_csr(interactions(1500, 400), np.float32)
    penalty = penalty_of(x)
    found = solve(x, penalty, solver=Dask(client, "local", neighbours=30, nearest_by=nearest_by))
    expected = solve(x, penalty, solver=Local(30, nearest_by=nearest_by))
    assert isinstance(found.inverse, LocalInverse)
    assert (found.inverse.columns != expected.inverse.columns).nnz == 0
    assert found.residual < 1e-5
    assert found.plan.solver == "local"
    assert found.plan.chosen.square == 30


def test_local_of_weights_and_files(client, tmp_path):
    x = interactions(1500, 400, weighted=True)
    x = as_csr(x[:, np.asarray(x.sum(axis=0)).ravel() > 0], np.float32)
    files = Partitions.from_parquet(
        write_files(tmp_path / "data", x, 9, weight=True), client, weight="weight", weighting="linear"
    )
    penalty = penalty_of(x)
    found = solve(files, penalty, solver=Dask(client, "local", neighbours=50))
    expected = solve(x, penalty, solver=Local(50))
    assert same_top(found.inverse, expected.inverse, x, penalty) >= 0.999
    assert np.allclose(found.inverse.columns.toarray(), expected.inverse.columns.toarray(), rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize(
    ("tile", "dtype"), [*((tile, "float32") for tile in (40, 64, 150, 200, 1000)), (64, "float64")]
)
def test_tiles_are_the_exact_inverse(client, tile, dtype):
    x = as_csr(interactions(500, 200, weighted=True), np.float32)
    penalty = penalty_of(x)
    found = solve(x, penalty, solver=Dask(client, "primal", dtype=dtype, tile=tile))
    expected = dense_inverse(x.toarray(), penalty)
    assert isinstance(found.inverse, PrimalInverse)
    assert found.inverse.dtype == dtype
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    assert np.abs(found.inverse.square - expected).max() < tolerance * np.abs(expected).max()
    assert np.array_equal(found.inverse.square, found.inverse.square.T)
    assert found.residual < (1e-4 if dtype == "float32" else 1e-12)


def test_exact_of_files_into_a_scratch_folder(client, tmp_path):
    x = interactions(1500, 400)
    x = as_csr(x[:, np.asarray(x.sum(axis=0)).ravel() > 0], np.float32)
    files = Partitions.from_parquet(write_files(tmp_path / "data", x, 9), client)
    penalty = penalty_of(x)
    done = []
    found = solve(
        files,
        penalty,
        progress=lambda stage, fraction: done.append(fraction),
        solver=Dask(client, "exact", tile=90, scratch=tmp_path / "scratch"),
    )
    assert isinstance(found.inverse.square, np.memmap)
    assert np.array_equal(np.load(tmp_path / "scratch" / "inverse.npy"), found.inverse.square)
    expected = solve(x, penalty, solver="primal")
    assert same_top(found.inverse, expected.inverse, x, penalty) >= 0.999
    assert done == sorted(done)
    assert len(done) > 10
    assert done[-1] == pytest.approx(1)


def test_nothing_stays_on_the_workers(client):
    def held():
        return {key for keys in client.has_what().values() for key in keys}

    x = as_csr(interactions(500, 200), np.float32)
    before = held()  # of errors that pytest keeps
    for solver in ("primal", "local"):
        solve(x, penalty_of(x), solver=Dask(client, solver, tile=64))
    end = time.monotonic() + 10
    while held() - before and time.monotonic() < end:
        time.sleep(0.1)
    assert held() - before == set()


@pytest.mark.faults
def test_a_worker_killed_in_local_solves(client):
    x = as_csr(interactions(6000, 1600, per_user=30), np.float32)
    penalty = penalty_of(x)
    killer = Killer(client, 0, "local")
    found = solve(x, penalty, progress=killer, solver=Dask(client, "local"))
    assert killer.lost
    assert (found.inverse.columns != solve(x, penalty, solver="local").inverse.columns).nnz == 0


@pytest.fixture(scope="module")
def undisturbed(shared_client):
    """Data, and its exact inverse by a cluster that is left in peace."""
    x = as_csr(interactions(3000, 700, per_user=30), np.float32)
    return x, solve(x, penalty_of(x), solver=Dask(shared_client, "primal", tile=128)).inverse


@pytest.mark.faults
@pytest.mark.parametrize(
    ("after", "holding"),
    [(0.1, "update"), (0.45, "finish"), (0.75, "finish")],
    ids=["factorization", "inverse of the factor", "product"],
)
def test_a_worker_killed_in_the_exact_solve(client, undisturbed, after, holding):
    x, expected = undisturbed
    killer = Killer(client, after, holding)
    found = solve(x, penalty_of(x), progress=killer, solver=Dask(client, "primal", tile=128))
    assert killer.lost
    assert np.array_equal(found.inverse.square, expected.square)
    here = solve(x, penalty_of(x), solver="primal")
    assert same_top(found.inverse, here.inverse, x, penalty_of(x)) >= 0.999


def test_a_bad_float32_result_is_made_again_in_float64(client):
    x = as_csr(interactions(300, 60, weighted=True), np.float32)
    x = as_csr(np.hstack([x.toarray(), x.toarray()]) * 100, np.float32)  # every item twice
    penalty = np.full(x.shape[1], 1e-3)
    stages = set()
    found = solve(
        x, penalty, progress=lambda stage, fraction: stages.add(stage), solver=Dask(client, "primal", tile=50)
    )
    assert found.inverse.dtype == np.float64
    assert found.residual < 1e-3
    assert "inverse again, primal in float64" in stages
    with pytest.raises(PrecisionError, match="raise l2"):
        solve(x, np.full(x.shape[1], 1e-12), solver=Dask(client, "primal", tile=50))


def test_tasks_have_names_that_read_well(client):
    x = as_csr(interactions(500, 200), np.float32)
    job = Job(client)
    assert job.submit("update", (5, 3, 1), abs, -1).key.startswith("update-5-3-1-")
    for solver in ("primal", "local"):
        solve(x, penalty_of(x), solver=Dask(client, solver, tile=64))
    seen = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
    assert {"rows", "gram", "cholesky", "solve", "update", "invert", "finish", "product", "local"} <= seen


def test_workers_leave_the_cores_to_each_other(client):
    def threads():
        import numba
        from threadpoolctl import threadpool_info

        from relae.distributed._cluster import one_core

        with one_core(kernels=True):
            return [numba.get_num_threads(), *(pool["num_threads"] for pool in threadpool_info())]

    assert set(client.submit(threads, pure=False).result()) == {1}


def test_what_cannot_fit_is_refused_with_figures_and_a_way_out(monkeypatch):
    def planned(workers, *shape, **settings):
        monkeypatch.setattr(Cluster, "of", lambda client: Cluster(workers, 1, 10**9))
        return plan(*shape, solver=Dask(None, **settings))

    with pytest.raises(PlanError) as refusal:
        planned(4, 10**6, 40_000, 10**7, solver="exact")
    text = str(refusal.value)
    assert "40,000 items need" in text
    assert "800 MB of each can be used (80% of 1.0 GB)" in text
    assert "use solver='local'" in text
    more = int(text.split("at least ")[1].split()[0].replace(",", ""))
    assert planned(more, 10**6, 40_000, 10**7, solver="exact", tile=1024).solver == "primal"
    with pytest.raises(PlanError):
        planned(more // 2, 10**6, 40_000, 10**7, solver="exact", tile=1024)
    chosen = planned(4, 10**6, 40_000, 10**7)
    assert chosen.solver == "local"
    assert not chosen.exact
    assert planned(4, 1000, 1000, 10**5).solver == "primal"


def test_wrong_questions(client):
    x = as_csr(interactions(50, 20), np.float32)
    with pytest.raises(ValueError, match="'auto', 'exact', 'primal' or 'local' on a cluster, got 'dual'"):
        solve(x, penalty_of(x), solver=Dask(client, "dual"))
    with pytest.raises(ValueError, match="nearest_by"):
        solve(x, penalty_of(x), solver=Dask(client, "local", nearest_by="colour"))
    with pytest.raises(ValueError, match="dtype"):
        solve(x, penalty_of(x), solver=Dask(client, dtype="int8"))
    with pytest.raises(ValueError, match="neighbours"):
        solve(x, penalty_of(x), solver=Dask(client, neighbours=0))


@pytest.mark.slow
def test_a_square_larger_than_any_worker(tmp_path):
    rng = np.random.default_rng(0)
    n, users, each = 12_000, 12_000, 20
    columns = (n * rng.random(users * each) ** 2).astype(np.int32)
    starts = np.arange(0, users * each + 1, each)
    x = sp.csr_array((np.ones(users * each, np.float32), columns, starts), (users, n))
    x.sum_duplicates()
    with running("545MiB") as client:
        assert 4 * n * n > Cluster.of(client).memory
        found = solve(x, penalty_of(x), solver=Dask(client, "primal", tile=1024, scratch=tmp_path))
    assert found.residual < 1e-4
