"""`relae export`: the item-to-item weights as rows, for those who serve from a store of their own."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from relae._common.progress import Progress
from relae.catalog import Catalog
from relae.cli._console import errors, output
from relae.cli._model import open_with_dials, require
from relae.cli._progress import progress_bar
from relae.cli._rows import id_series, id_type, row_format, write_rows
from relae.ranking import rank


def export(
    path: Path, dials: Mapping[str, float], *, top: int, by: str, out: Path | None, asked_format: str | None
) -> None:
    """Write the weights of each item towards the others, the `top` of them."""
    kind = row_format(out, asked_format)
    if top < 1:
        raise ValueError(f"--top must be at least 1, got {top!r}")
    _, model = open_with_dials(path, dials)
    catalog, weighing = Catalog(model), require(model, model.closed_form, "export")
    schema = {"item": id_type(catalog.items), "rank": pl.Int32, "other": id_type(catalog.items)}
    schema["weight"] = pl.Float32 if weighing.inverse_.dtype == np.float32 else pl.Float64
    console = errors()
    with progress_bar(console) as progress:
        quiet = out is None and output().is_terminal
        frames = weights(catalog, weighing, top, by, None if quiet else progress)
        count = write_rows(frames, schema, out, kind)
    if out is not None:
        console.print(f"{out}: {count:,} weights of {len(catalog.items):,} items", markup=False, soft_wrap=True)


def weights(catalog: Catalog, model: Any, top: int, by: str, progress: Progress | None) -> Iterator[pl.DataFrame]:
    """Give B_ij, scaled as in scores, for the best j ≠ i of each i, block by block of i."""
    inverse, n = model.inverse_, len(catalog.items)
    items = id_series(catalog.items)
    step = max(1, int(inverse.batch_bytes / inverse.bytes_per_user))
    for start in range(0, n, step):
        block = np.arange(start, min(start + step, n))
        values = model.weight_rows(block)  # (block, items)
        own = sp.csr_array((np.ones(len(block), values.dtype), block, np.arange(len(block) + 1)), shape=values.shape)
        ranked, _ = rank(np.abs(values) if by == "magnitude" else values, min(top, n), seen=own)
        row, place = np.nonzero(ranked >= 0)
        others = ranked[row, place]
        yield pl.DataFrame(
            {
                "item": items.gather(block[row]),
                "rank": (place + 1).astype(np.int32),
                "other": items.gather(others),
                "weight": values[row, others],
            }
        )
        if progress is not None:
            progress("export", (block[-1] + 1) / n)
