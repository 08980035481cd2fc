"""relae: RElaxed Linear AutoEncoders, recommenders with a closed form.

What is named here is imported when it is first used, so that `import relae`, and the start of the command line, cost
nothing.
"""

TYPE_CHECKING = False  # what type checkers take for true; without the import of `typing`, which is the longest here
if TYPE_CHECKING:
    from relae.data import Features, Interactions
    from relae.errors import (
        ApproximationWarning,
        DataError,
        NotFittedError,
        ParameterError,
        PlanError,
        PrecisionError,
        RelaeError,
        StoreError,
        UncheckedUsersWarning,
        UnknownItemsWarning,
        WeightingWarning,
    )
    from relae.experiments import Run, compare, tune
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
    "ParameterError",
    "PlanError",
    "PrecisionError",
    "RelaeError",
    "Run",
    "StoreError",
    "UncheckedUsersWarning",
    "UnknownItemsWarning",
    "WeightingWarning",
    "__version__",
    "compare",
    "load",
    "plan",
    "tune",
]

_ROOMS = (
    "errors",
    "data",
    "solvers",
    "models",
    "store",
    "datasets",
    "experiments",
)  # where the names above are, from the lightest on


def __getattr__(name: str) -> object:
    """Import a name of `__all__`, or one of the rooms, when it is first used."""
    from relae.registry import import_name

    if name in __all__:
        for room in _ROOMS:
            module = import_name(f"relae.{room}")
            if hasattr(module, name):
                globals()[name] = getattr(module, name)
                return globals()[name]
    if name in _ROOMS:
        return import_name(f"relae.{name}")
    raise AttributeError(f"module 'relae' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names that there are, imported or not."""
    return sorted({*globals(), *__all__, *_ROOMS})
