"""`relae datasets export`: write interactions as tables with one row per interaction."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from relae._common.files import atomic_file, lock_folder
from relae.cli._rows import make_id_series
from relae.data import Interactions


def write_tables(data: Interactions, folder: Path, kind: str) -> Iterator[tuple[Path, int]]:
    """Write the interactions and the titles; yield each file and its number of rows."""
    with lock_folder(folder):
        for name, frame in _make_frames(data).items():
            path = folder / f"{name}.{kind}"
            with atomic_file(path) as part:
                frame.write_parquet(part) if kind == "parquet" else frame.write_csv(part)
            yield path, frame.height


def _make_frames(data: Interactions) -> dict[str, pl.DataFrame]:
    matrix, items = data.matrix, make_id_series(data.items)
    rows = np.repeat(np.arange(data.n_users), np.diff(matrix.indptr))
    columns = {"user": make_id_series(data.users).gather(rows), "item": items.gather(matrix.indices)}
    if (matrix.data != 1).any():
        columns["weight"] = pl.Series(matrix.data)
    if data.times is not None:
        columns["timestamp"] = pl.Series(data.times)
    frames = {"interactions": pl.DataFrame(columns)}
    if data.titles is not None:
        frames["items"] = pl.DataFrame({"item": items, "title": pl.Series(data.titles.tolist(), dtype=pl.String)})
    return frames
