"""relae: RElaxed Linear AutoEncoders, recommenders with a closed form."""

from relae.data import Features, Interactions
from relae.errors import (
    ApproximationWarning,
    DataError,
    NotFittedError,
    PlanError,
    PrecisionError,
    RelaeError,
    StoreError,
    UnknownItemsWarning,
)
from relae.models import DAN, DEQL, DLAE, EASE, EDLAE, LAE, RDLAE, RLAE
from relae.solvers import plan
from relae.store import load

__version__ = "0.1.0"

__all__ = [
    "DAN",
    "DEQL",
    "DLAE",
    "EASE",
    "EDLAE",
    "LAE",
    "RDLAE",
    "RLAE",
    "ApproximationWarning",
    "DataError",
    "Features",
    "Interactions",
    "NotFittedError",
    "PlanError",
    "PrecisionError",
    "RelaeError",
    "StoreError",
    "UnknownItemsWarning",
    "__version__",
    "load",
    "plan",
]
