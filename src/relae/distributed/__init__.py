"""The same fits on a Dask cluster: data in files, local solves by blocks of items, the exact inverse by tiles.

Nothing here imports Dask before a client is given; the extra `dask` installs it.
"""

from relae.distributed._dask import ClusterForecast, Dask
from relae.distributed._partitions import Partitions, split_by_user
from relae.distributed._recommend import recommend_to_parquet

__all__ = ["ClusterForecast", "Dask", "Partitions", "recommend_to_parquet", "split_by_user"]
