"""The benchmarks of the field: where they come from, their recipes, and their files."""

from relae.datasets._benchmarks import get, names
from relae.datasets._dataset import Comparison, Dataset, DatasetFile, Expected, PaperRow
from relae.datasets._online_retail import online_retail

__all__ = [
    "Comparison",
    "Dataset",
    "DatasetFile",
    "Expected",
    "PaperRow",
    "get",
    "names",
    "online_retail",
]
