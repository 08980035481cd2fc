"""The same fits on a Dask cluster: data in files, local solves by blocks of items, the exact inverse by tiles.

`Dask(client)` is a solver. Nothing here imports Dask before a client is given; the extra `dask` installs it.
"""

from relae.distributed._blocks import row_ranges
from relae.distributed._cluster import Job, one_core
from relae.distributed._dask import ClusterForecast, Dask
from relae.distributed._partitions import (
    Fingerprint,
    Partitions,
    new_folder,
    on_columns,
    read_file,
    split_by_user,
    write_atomically,
)

__all__ = [
    "ClusterForecast",
    "Dask",
    "Fingerprint",
    "Job",
    "Partitions",
    "new_folder",
    "on_columns",
    "one_core",
    "read_file",
    "row_ranges",
    "split_by_user",
    "write_atomically",
]
