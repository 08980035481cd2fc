"""`relae export`: write the item-to-item weights as rows, to serve them from another database."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from relae._common.progress import Progress
from relae.catalog import Catalog
from relae.cli._console import error_console, output_console
from relae.cli._model import open_with_dials, require
from relae.cli._progress import progress_bar
from relae.cli._rows import choose_format, get_id_type, make_id_series, write_rows
from relae.ranking import rank


def export(
    path: Path, dials: Mapping[str, float], *, top: int, by: str, out: Path | None, requested_format: str | None
) -> None:
    """Write the `top` largest weights from each item to the others."""
    kind = choose_format(out, requested_format)
    if top < 1:
        raise ValueError(f"--top must be at least 1, got {top!r}")
    _, model = open_with_dials(path, dials)
    catalog, linear_model = Catalog(model), require(model, model.closed_form, "export")
    schema = {"item": get_id_type(catalog.items), "rank": pl.Int32, "other": get_id_type(catalog.items)}
    schema["weight"] = pl.Float32 if linear_model.score_dtype == np.float32 else pl.Float64
    console = error_console()
    with progress_bar(console) as progress:
        quiet = out is None and output_console().is_terminal
        frames = make_frames(catalog, linear_model, top, by, None if quiet else progress)
        count = write_rows(frames, schema, out, kind)
    if out is not None:
        console.print(f"{out}: {count:,} weights of {len(catalog.items):,} items", markup=False, soft_wrap=True)


def make_frames(catalog: Catalog, model: Any, top: int, by: str, progress: Progress | None) -> Iterator[pl.DataFrame]:
    """Yield B_ij, scaled as in scores, for the `top` items j ≠ i of each item i; one frame per block of items i."""
    n = len(catalog.items)
    items = make_id_series(catalog.items)
    for start, stop in model.batches(n):
        block = np.arange(start, stop)
        values = model.weight_rows(block)  # (block, items)
        own = sp.csr_array((np.ones(len(block), values.dtype), block, np.arange(len(block) + 1)), shape=values.shape)
        ranked, _ = rank(np.abs(values) if by == "magnitude" else values, min(top, n), seen=own)
        row, position = np.nonzero(ranked >= 0)
        others = ranked[row, position]
        yield pl.DataFrame(
            {
                "item": items.gather(block[row]),
                "rank": (position + 1).astype(np.int32),
                "other": items.gather(others),
                "weight": values[row, others],
            }
        )
        if progress is not None:
            progress("export", (block[-1] + 1) / n)
