"""Recommendations for all users, into files, by the workers of a Dask cluster."""

import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relae.data import Interactions, InteractionsLike, Seen
from relae.distributed import (
    Fingerprint,
    Job,
    Partitions,
    new_folder,
    one_core,
    read_file,
    row_ranges,
    write_atomically,
)
from relae.linalg import Csr, as_csr
from relae.recommender import Histories, encode
from relae.store import load

__all__ = ["recommend_to_parquet"]

_SENT_BYTES = 2e6  # of histories: a task of seconds


def recommend_to_parquet(
    client: Any,
    model: str | os.PathLike[str],
    histories: InteractionsLike | Partitions,
    folder: str | os.PathLike[str],
    k: int = 100,
    *,
    xi: float | None = None,
    open_model: Callable[[str], Any] = load,
) -> list[str]:
    """Write the best k items of every user as Parquet files with the columns user, rank, item and score.

    Parameters
    ----------
    model
        A saved model's folder, which every worker can open; it is mapped, not read.
    histories
        Partitions, one task per file; Interactions; or a sparse matrix (users × items), whose users are row numbers
        and whose items are the model's columns. What users have seen beside their histories is left out.
    folder
        A new or empty folder that every worker sees. Each file in it is whole.
    xi
        Another ξ than the model's own.
    open_model
        Returns the model of a folder.

    Returns
    -------
    The paths of the files, in the order of the users.
    """
    job, recipe = Job(client), (str(Path(model).absolute()), open_model, k, xi)
    with new_folder(folder) as target:
        return _recommend(job, client, recipe, histories, target)


def _recommend(job: Job, client: Any, recipe: Any, histories: Any, target: Path) -> list[str]:
    if isinstance(histories, Partitions):
        tasks = [
            job.submit("recommend", (at,), _of_file, recipe, path, fingerprint, histories.how, _name(target, at))
            for at, (path, fingerprint) in enumerate(zip(histories.files, histories.fingerprints, strict=True))
        ]
    else:
        interactions = histories if isinstance(histories, Interactions) else None
        matrix = as_csr(histories, np.float32) if interactions is None else interactions.matrix
        times = None if interactions is None else interactions.times
        items = None if interactions is None else job.submit("items", (), _same, interactions.items)
        seen = None if interactions is None else interactions.seen_on(interactions.seen_items)
        seen_items = (
            None
            if seen is None or interactions is None
            else job.submit("seen-items", (), _same, interactions.seen_items)
        )
        tasks = [
            job.submit("recommend", (at,), _of_rows, recipe, *parts, items, seen_items, _name(target, at))
            for at, (low, high) in enumerate(row_ranges(matrix, _SENT_BYTES))
            for parts in [
                (
                    matrix[low:high],
                    None if times is None else times[matrix.indptr[low] : matrix.indptr[high]],
                    None if seen is None else seen[low:high],
                    np.arange(low, high) if interactions is None else interactions.users.values[low:high],
                )
            ]
        ]
    return list(client.gather(tasks))


def _same(value: Any) -> Any:
    return value


def _name(folder: Path, at: int) -> str:
    return str(folder / f"part-{at:05d}.parquet")


@lru_cache(maxsize=2)
def _opened(source: str, open_model: Callable[[str], Any], written: int) -> Any:
    """Return a model, opened once in a process; `written` tells a folder from another of the same name."""
    return open_model(source)


def _model(source: str, open_model: Callable[[str], Any], k: int, xi: float | None) -> Any:
    model = _opened(source, open_model, os.stat(source).st_mtime_ns)
    return model if xi is None else model.with_xi(xi)


def _of_file(recipe: Any, path: str, expected: Fingerprint, columns: dict[str, Any], target: str) -> str:
    with one_core(kernels=True):
        model = _model(*recipe)
        data = read_file(path, expected, columns)
        encoded = encode(data, model.items_)
        return _write(model, encoded, data.users.values, recipe[2], target)


def _of_rows(
    recipe: Any,
    matrix: Csr,
    times: NDArray[np.int64] | None,
    seen: Csr | None,
    users: NDArray[Any],
    items: Any,
    seen_items: Any,
    target: str,
) -> str:
    with one_core(kernels=True):
        model = _model(*recipe)
        known = None if seen is None else Seen(seen, seen_items)
        rows = Interactions(matrix, items=model.items_ if items is None else items, times=times, seen=known)
        return _write(model, encode(rows, model.items_), users, recipe[2], target)


def _write(model: Any, histories: Histories, users: NDArray[Any], k: int, target: str) -> str:
    import polars as pl

    beside = {"seen": histories.seen, "times": histories.times}
    options = {name: value for name, value in beside.items() if value is not None}
    columns, scores = model.recommend(histories.matrix, k, **options)
    kept = columns >= 0
    ranks = np.broadcast_to(np.arange(1, k + 1, dtype=np.int32), columns.shape)
    table = pl.DataFrame(
        {
            "user": pl.Series(_plain(np.repeat(users, kept.sum(axis=1)))),
            "rank": ranks[kept],
            "item": pl.Series(_plain(model.items_.values[columns[kept]])),
            "score": scores[kept],
        }
    )
    write_atomically(table, target)
    return target


def _plain(values: NDArray[Any]) -> Any:
    return list(values) if values.dtype == object else values
