"""What to fit, as the options, a run of `relae tune` or a comparison say."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relae.cli._columns import Columns
from relae.cli._parse import names
from relae.errors import DataError
from relae.models import LinearAutoencoder
from relae.recommender import HistoryRecommender
from relae.registry import KINDS, kind
from relae.solvers import NEIGHBOURS, Solver, as_solver
from relae.tuning import Point

_PARAMETERS = ("l2", "dropout", "xi", "user_norm", "item_norm")
_SOLVER = {"solver": "auto", "dtype": "float32", "neighbours": NEIGHBOURS, "nearest_by": "cosine"}
_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True)
class Run:
    """What a run of `relae tune` or a comparison has chosen, and what for.

    A run of the linear autoencoders has a `chosen` point, the best of each (`bests`) and how they were solved; a run of
    another model has that model. A comparison has the models of its table by name, in the order of the table.
    """

    path: Path
    source: str
    columns: Columns
    split: str
    share: float
    seed: int
    objective: str
    chosen: Point | None
    bests: Mapping[str, Point]
    how: Mapping[str, Any]
    model: HistoryRecommender | None
    compared: Mapping[str, HistoryRecommender] = field(default_factory=dict)


def read_run(path: Path) -> Run:
    """Read the result of a run, or of a comparison."""
    way_out = f"`relae tune DATA --out {shlex.quote(str(path))}` makes it, or `relae compare` with the same --out"
    file = path / "result.json"
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
        if "models" in result:
            return _comparison(path, result)
        request = result["request"]
        linear = "kind" not in result
        return Run(
            path,
            str(request["source"]),
            Columns.of(request["columns"]),
            str(request["split"]),
            float(request["share"]),
            int(request["seed"]),
            str(result["objective"]),
            read_point(result["chosen"]) if linear else None,
            {name: read_point(point) for name, point in result["best"].items()} if linear else {},
            _how(request),
            None if linear else kind(result["kind"])(**result["parameters"]),
        )
    except FileNotFoundError as error:
        what = "has no result.json: the run is not finished" if path.is_dir() else "is no folder of a run"
        raise DataError(f"{path} {what}; {way_out}") from error
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{file} is damaged, or no result of a run ({error!r}); {way_out}") from error


def _comparison(path: Path, result: Mapping[str, Any]) -> Run:
    split = result["split"]
    compared = {str(row["model"]): kind(row["model"])(**row["parameters"]) for row in result["models"]}
    if not compared:
        raise ValueError("it has no model")
    return Run(
        path,
        str(result["source"]),
        Columns.of(result["columns"]),
        str(split["name"]),
        float(split["share"]),
        int(split["seed"]),
        f"ndcg@{int(result['k'])}",
        None,
        {},
        {},
        None,
        compared,
    )


def saved_point(point: Point) -> dict[str, float]:
    """Return a point as a run keeps it."""
    return {**point.parameters, **point.metrics}


def read_point(record: Mapping[str, float]) -> Point:
    """Return the point of such a record; without norms it has none."""
    metrics = {name: value for name, value in record.items() if name not in _PARAMETERS}
    l2, dropout, xi = (float(record[name]) for name in _PARAMETERS[:3])
    user_norm, item_norm = (float(record.get(name, 0.0)) for name in _PARAMETERS[3:])
    return Point(l2, dropout, xi, metrics, user_norm, item_norm)


def _how(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the inverses of a run were solved; a run of an earlier version does not say how many neighbours."""
    neighbours = request.get("parameters", {}).get("neighbours")
    return {"solver": str(request["solver"])} | ({} if neighbours is None else {"neighbours": int(neighbours)})


def source_of(data: str | None, given: Mapping[str, Any], run: Run | None) -> tuple[str, Columns]:
    """Return DATA and its columns: what is given, otherwise the run's."""
    if data is None and run is None:
        raise DataError("there is no DATA: name a table, a folder or a benchmark, or a run with --from")
    columns = (Columns() if run is None else run.columns).but(given)
    return (data if data is not None else run.source if run is not None else ""), columns


def chosen_model(
    given: Mapping[str, Any], run: Run | None, solver: str = "auto", dtype: str = "float32"
) -> tuple[HistoryRecommender, Solver]:
    """Return a model that is not fitted yet, and how it is solved if it is a linear autoencoder.

    Parameters
    ----------
    given
        The options: a kind of model under "model", some of its parameters, and settings of the solver.
    run
        Where the parameters come from that are not given; without it they are the model's defaults.
    solver, dtype
        The solver "auto" leaves it to the run.
    """
    options = dict(given)
    name, pairs = options.pop("model", None), options.pop("set", ())
    model = kind("rdlae" if name is None else name)() if run is None else _of_run(run, name)
    known = _defaults(type(model))
    for option in options:
        if option not in known:
            raise DataError(_stranger(type(model), option))
    options |= dict(_pair(type(model), pair) for pair in pairs)
    settings: dict[str, Any] = {"solver": solver, "dtype": dtype}
    if run is not None and solver == "auto":
        settings |= run.how
    if isinstance(model, LinearAutoencoder):
        settings |= {name: options.pop(name) for name in _SOLVER if name in options}
    return model.set_params(**options), as_solver(**settings)


def _defaults(asked: type[HistoryRecommender]) -> dict[str, Any]:
    """Return the parameters of a model by name, and the settings of its solver."""
    return asked().get_params() | (_SOLVER if issubclass(asked, LinearAutoencoder) else {})


def _of_run(run: Run, name: str | None) -> HistoryRecommender:
    if run.compared:
        first = next(iter(run.compared))
        if name is not None and name not in run.compared:
            raise DataError(f"{run.path} has no {KINDS[name]}: its models are {', '.join(run.compared)}")
        return run.compared[first if name is None else name]
    if run.model is not None and name in (None, type(run.model).__name__.lower()):
        return run.model
    if name is None and run.chosen is not None:
        return run.chosen.model()
    asked = kind(str(name))
    if run.model is not None or not issubclass(asked, LinearAutoencoder):
        return asked()  # nothing of it was tuned, and it can be judged by the same users
    if asked.__name__ not in run.bests:
        raise DataError(f"{run.path} has no {asked.__name__}: it has {', '.join(run.bests)}")
    return run.bests[asked.__name__].model(asked.__name__)


def _stranger(asked: type[HistoryRecommender], option: str) -> str:
    have = [name for name in KINDS if option in _defaults(kind(name))]
    flag = f"--{option.replace('_', '-')}"
    return f"{asked.__name__} has no {flag}: leave it out, or choose --model {' or '.join(have)}, which has it"


def _pair(asked: type[HistoryRecommender], text: str) -> tuple[str, Any]:
    """Return the parameter and the value that --set NAME=VALUE names."""
    name, equals, value = text.partition("=")
    defaults, called = _defaults(asked), asked.__name__
    name = name.strip().replace("-", "_")
    if not equals:
        raise DataError(f"--set takes NAME=VALUE, got {text!r}: the names are {', '.join(defaults) or 'none'}")
    if not defaults:
        raise DataError(f"{called} has no parameters: leave --set {text} out")
    if name not in defaults:
        raise DataError(f"{called} has no parameter {name!r} to --set: its parameters are {', '.join(defaults)}")
    try:
        return name, _value_like(defaults[name], value.strip())
    except ValueError as error:
        shown = ", ".join(f"{name} {default}" for name, default in defaults.items())
        raise DataError(f"--set {text}: {error}; the parameters of {called} and their defaults are {shown}") from None


def as_text(value: Any) -> str:
    """Return the text of a value by which --set gives it."""
    if isinstance(value, (tuple, list)):
        return ",".join(map(as_text, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _value_like(default: Any, text: str) -> Any:
    """Return the value of the same kind as a default that a text stands for; a ValueError if it is of another.

    A parameter that is None by default takes "none" or a number.
    """
    if isinstance(default, str):
        return text
    if isinstance(default, (tuple, list)):
        return tuple(_value_like(default[0] if default else 0, part) for part in names(text) or [])
    kind, words = _kind_of(default)
    try:
        return kind(text.lower())
    except (ValueError, KeyError):
        raise ValueError(f"{text!r} is not {words}") from None


def _kind_of(default: Any) -> tuple[Any, str]:
    if isinstance(default, bool):
        return _TRUTH.__getitem__, "true or false"
    if isinstance(default, int):
        return int, "a whole number"
    if default is None:
        return (lambda text: None if text == "none" else _number(text)), "a number or none"
    return _number, "a number"


def _number(text: str) -> float:
    """Return a whole number as int, any other one as float."""
    try:
        return int(text)
    except ValueError:
        return float(text)
