"""The data set that comes with the package."""

from functools import partial
from importlib.resources import as_file, files
from typing import Literal

from relae.data import Interactions, Weighting

EMBEDDED = files("relae.datasets") / "online_retail"
embedded_folder = partial(as_file, EMBEDDED)


def online_retail(
    weight: Literal["quantity", "invoices"] | None = None, weighting: Weighting | None = None
) -> Interactions:
    """Return a year of a British gift shop: 4,339 customers, 3,665 products with titles, 266,802 pairs.

    "Online Retail" of the UCI Machine Learning Repository (Daqing Chen, 2015, doi 10.24432/C5BW33), under
    CC BY 4.0, aggregated to pairs of customer and product.

    Parameters
    ----------
    weight
        The amount of a pair: the pieces bought ("quantity"), the invoices they are on ("invoices"), or 1.
    weighting
        What an amount counts, as of `Interactions.read`; chosen by the data if not given.
    """
    with embedded_folder() as folder:
        return Interactions.read(
            folder / "interactions.parquet", weight=weight, weighting=weighting, titles=folder / "items.parquet"
        )
