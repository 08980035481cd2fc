"""relae: RElaxed Linear AutoEncoders, recommenders with a closed form."""

from relae.data import Interactions
from relae.errors import DataError, NotFittedError, PlanError, PrecisionError, RelaeError, UnknownItemsWarning
from relae.models import DLAE, EASE, EDLAE, LAE, RDLAE, RLAE
from relae.solvers import plan

__version__ = "0.1.0"

__all__ = [
    "DLAE",
    "EASE",
    "EDLAE",
    "LAE",
    "RDLAE",
    "RLAE",
    "DataError",
    "Interactions",
    "NotFittedError",
    "PlanError",
    "PrecisionError",
    "RelaeError",
    "UnknownItemsWarning",
    "__version__",
    "plan",
]
