"""The data set that comes with the package."""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import Literal

from relae.data.interactions import Interactions


def online_retail(weight: Literal["quantity", "invoices"] | None = None) -> Interactions:
    """Return a year of a British gift shop: 4,339 customers, 3,665 products with titles, 266,802 pairs.

    "Online Retail" of the UCI Machine Learning Repository (Daqing Chen, 2015, doi 10.24432/C5BW33), under
    CC BY 4.0, aggregated to pairs of customer and product.

    Parameters
    ----------
    weight
        The value of a cell: the pieces bought ("quantity"), the invoices they are on ("invoices"), or 1.
    """
    with as_file(files("relae.data") / "online_retail") as folder:
        return Interactions.read(folder / "interactions.parquet", weight=weight, titles=folder / "items.parquet")
