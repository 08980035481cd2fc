"""A model fitted by a cluster is the model."""

import subprocess
import sys

import numpy as np
import pytest

from relae import RDLAE, load
from relae.distributed import Dask, Partitions
from relae.solvers import as_solver

from .suite import NOISE, interactions, write_files

pytestmark = NOISE


@pytest.mark.parametrize("solver", ["exact", "local"])
def test_a_fit_by_a_cluster(client, tmp_path, solver):
    x = interactions(600, 150)
    x = x[:, np.asarray(x.sum(axis=0)).ravel() > 0]
    files = Partitions.from_parquet(write_files(tmp_path / "data", x, 3, name=lambda number: number + 1000), client)
    alone = RDLAE(dropout=0.3, xi=0.4).fit(x, solver=as_solver(solver, neighbours=40))
    ids, _ = alone.recommend(x, 20)
    for data in (x, files):
        together = RDLAE(dropout=0.3, xi=0.4).fit(data, solver=Dask(client, solver, neighbours=40))
        together.save(tmp_path / f"model-{type(data).__name__}")
        opened = load(tmp_path / f"model-{type(data).__name__}")
        assert together.l2_ == pytest.approx(alone.l2_)
        assert (opened.item_counts_ == alone.item_counts_).all()
        assert (opened.recommend(x, 20)[0] == ids).mean() >= 0.999
    assert opened.items_.values.min() == 1000


def test_the_room_does_not_wake_dask():
    code = "import sys, relae.distributed; print({'dask', 'distributed', 'numba', 'polars'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
