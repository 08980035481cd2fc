"""What to fit, as the options, a run of `relae tune` or a comparison say."""

import json
import shlex
from collections.abc import Collection, Mapping
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
from relae.tuning import Point, linear_model

_SOLVER = {"solver": "auto", "dtype": "float32", "neighbours": NEIGHBOURS, "nearest_by": "cosine"}
_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True)
class Run:
    """What a run of `relae tune` or a comparison has chosen, and what for.

    It has the model that was chosen, and all its models by name: those of a comparison in the order of its table, and
    the best of each of the linear autoencoders, which share a search; `is_closed` if no other model can be asked for.
    """

    path: Path
    source: str
    columns: Columns
    split: str
    share: float
    seed: int
    objective: str
    model: HistoryRecommender
    models: Mapping[str, HistoryRecommender]
    how: Mapping[str, Any] = field(default_factory=dict)
    is_closed: bool = False


def read_run(path: Path) -> Run:
    """Read the result of a run, or of a comparison."""
    way_out = f"`relae tune DATA --out {shlex.quote(str(path))}` makes it, or `relae compare` with the same --out"
    file = path / "result.json"
    try:
        result = json.loads(file.read_text(encoding="utf-8"))
        if "models" in result:
            return _comparison(path, result)
        request = result["request"]
        model = kind(result["kind"])(**result["parameters"])
        return Run(
            path,
            str(request["source"]),
            Columns.of(request["columns"]),
            str(request["split"]),
            float(request["share"]),
            int(request["seed"]),
            str(result["objective"]),
            model,
            _best_models(result) if result["dials"] else {str(result["kind"]): model},
            _how(request),
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
        next(iter(compared.values())),
        compared,
        is_closed=True,
    )


def _best_models(result: Mapping[str, Any]) -> dict[str, HistoryRecommender]:
    """Return the best of each model that shared a search, by name."""
    names = list(result["space"])
    return {
        str(name).lower(): linear_model(read_point(record, names).parameters, name)
        for name, record in result["best"].items()
    }


def saved_point(point: Point) -> dict[str, Any]:
    """Return a point as a run keeps it."""
    return {**point.parameters, **point.metrics}


def read_point(record: Mapping[str, Any], names: Collection[str]) -> Point:
    """Return the point of such a record, whose parameters have these names."""
    metrics = {name: value for name, value in record.items() if name not in names}
    return Point({name: record[name] for name in names}, metrics)


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
    if name is None:
        return run.model
    if name in run.models:
        return run.models[name]
    if run.is_closed:
        raise DataError(f"{run.path} has no {KINDS[name]}: its models are {', '.join(run.models)}")
    if len(run.models) > 1 and issubclass(kind(name), LinearAutoencoder):
        has = ", ".join(KINDS[each] for each in run.models)
        raise DataError(f"{run.path} has no {KINDS[name]}: it has {has}")
    return kind(name)()  # nothing of it was tuned, and it can be judged by the same users


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
