"""The rows of the matrix, block by block, as futures."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from relae._common.words import in_bytes
from relae.distributed._cluster import Job
from relae.distributed._partitions import Partitions
from relae.errors import PlanError
from relae.linalg import Csr, as_csr

_SENT_BYTES = 4e6  # at a time: Dask warns of larger tasks
_HELD_BYTES = 2e9  # of data that the scheduler keeps, so that no worker is the only one to have it


def row_blocks(job: Job, x: Csr | Partitions, dtype: str) -> list[Any]:
    """Return futures of (users, items) CSR, one below the other.

    Rows of a matrix in memory travel inside the tasks, not as data that is placed on a worker and lost with it.
    """
    if isinstance(x, Partitions):
        return x.blocks(job, dtype)
    x = as_csr(x, x.dtype)
    size = x.nnz * (x.data.itemsize + 4)
    if size > _HELD_BYTES:
        raise PlanError(
            f"a matrix of {in_bytes(size)} is too large to be sent to a cluster from memory "
            f"({in_bytes(_HELD_BYTES)} are allowed): write it as Parquet files and use Partitions.from_parquet"
        )
    return [
        job.submit("rows", (at,), _rows, x.data[span], x.indices[span], x.indptr[low : high + 1], x.shape[1], dtype)
        for at, (low, high) in enumerate(row_ranges(x, _SENT_BYTES))
        for span in [slice(x.indptr[low], x.indptr[high])]
    ]


def row_ranges(x: Csr, size: float) -> list[tuple[int, int]]:
    """Cut a matrix into blocks of rows of about so many bytes."""
    weight = (x.data.itemsize + 4) * x.indptr.astype(np.int64) + 8 * np.arange(x.shape[0] + 1)
    cuts = np.searchsorted(weight, np.arange(size, float(weight[-1]), size))
    edges = np.unique(np.concatenate([[0], cuts, [x.shape[0]]]))
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def _rows(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], items: int, dtype: str) -> Csr:
    parts = (data.copy(), indices.copy(), indptr - indptr[0])
    return as_csr(sp.csr_array(parts, shape=(len(indptr) - 1, items)), np.dtype(dtype))


def own(matrix: Csr) -> Csr:
    """Return a matrix whose arrays may be written to: compiled code is made anew for those that may not."""
    if all(part.flags.writeable for part in (matrix.data, matrix.indices, matrix.indptr)):
        return matrix
    return sp.csr_array((matrix.data.copy(), matrix.indices.copy(), matrix.indptr.copy()), shape=matrix.shape)
