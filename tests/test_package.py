"""The public surface, and what an import costs."""

import subprocess
import sys
from importlib.metadata import version

import pytest

import relae
from relae.errors import (
    DataError,
    NotFittedError,
    ParameterError,
    PlanError,
    PrecisionError,
    RelaeError,
    UnknownItemsWarning,
)

HEAVY = {"numba", "polars", "pandas", "pyarrow", "narwhals", "matplotlib", "typer", "rich", "sklearn", "psutil"}


def test_the_public_names():
    assert relae.__all__ == [
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
    assert all(hasattr(relae, name) for name in relae.__all__)


def test_the_version_is_that_of_the_distribution():
    assert relae.__version__ == version("relae")


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (DataError, ValueError),
        (ParameterError, ValueError),
        (PlanError, MemoryError),
        (PrecisionError, ArithmeticError),
        (NotFittedError, AttributeError),
    ],
)
def test_errors_can_be_caught_by_two_names(error, builtin):
    assert issubclass(error, RelaeError)
    assert issubclass(error, builtin)
    assert error.__name__ in relae.__all__


def test_the_warning_is_a_user_warning():
    assert issubclass(UnknownItemsWarning, UserWarning)


def loaded(code):
    report = f"{code}\nimport sys\nprint(*sorted({HEAVY!r} & set(sys.modules)))"
    return subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True).stdout.split()


def test_importing_is_light():
    assert loaded("import relae") == []


def test_the_compiler_comes_with_the_first_fit():
    assert "numba" in loaded("import numpy, relae; relae.EASE(1.0).fit(numpy.eye(3))")


def test_a_fit_needs_no_tables():
    assert loaded("import numpy, relae; relae.EASE(1.0).fit(numpy.eye(3)).recommend([0], 2)") == ["numba", "psutil"]
