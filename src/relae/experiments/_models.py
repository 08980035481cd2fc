"""The choice of a model and its solver, by name, parameters or an earlier run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from relae.errors import DataError, Option, Text
from relae.recommender import HistoryRecommender
from relae.registry import KINDS, kind
from relae.solvers import NEIGHBOURS, Solver, as_solver

if TYPE_CHECKING:
    from relae.experiments._run import Run

_SOLVER = {"solver": "auto", "dtype": "float32", "neighbours": NEIGHBOURS, "nearest_by": "cosine"}


def choose_model(
    name: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    run: "Run | None" = None,
    *,
    solver: str = "auto",
    dtype: str = "float32",
) -> tuple[HistoryRecommender, Solver]:
    """Return a model that is not fitted yet, and the solver of one with a closed form.

    Parameters
    ----------
    name
        The kind of model; the run's choice, or else "rdlae", if not given.
    parameters
        Some of its parameters, and settings of the solver.
    run
        Where the other parameters come from; without it they are the model's defaults.
    solver, dtype
        With the solver "auto", that of the run is used.
    """
    model = kind("rdlae" if name is None else name)() if run is None else run.find_model(name)
    values = dict(parameters or {})
    known = parameter_defaults(type(model))
    for each in values:
        if each not in known:
            raise DataError(_describe_unknown(type(model), each))
    settings: dict[str, Any] = {"solver": solver, "dtype": dtype}
    if run is not None and solver == "auto":
        settings |= run.solver_options
    if model.closed_form:
        settings |= {each: values.pop(each) for each in _SOLVER if each in values}
    return model.set_params(**values), as_solver(**settings)


def parameter_defaults(model: type[HistoryRecommender]) -> dict[str, Any]:
    """Return the parameters of a model and their defaults, with the settings of its solver if it has one."""
    return model().get_params() | (_SOLVER if model.closed_form else {})


def _describe_unknown(model: type[HistoryRecommender], parameter: str) -> Text:
    others = " or ".join(name for name in KINDS if parameter in parameter_defaults(kind(name)))
    text = Text(f"{model.__name__} has no ", Option(parameter), ": leave it out")
    return Text(text, ", or choose ", Option("model"), f" {others}, which has it") if others else text
