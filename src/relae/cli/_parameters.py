"""Read the parameters of a model from options and from --set NAME=VALUE."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from relae.cli._parse import parse_names
from relae.errors import DataError
from relae.experiments import Columns, Run, parameter_defaults
from relae.recommender import HistoryRecommender
from relae.registry import kind

_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


def parse_parameters(options: Mapping[str, Any], run: Run | None = None) -> tuple[str | None, dict[str, Any]]:
    """Return the name of the model, or None if there is no --model, and the parameters on the command line."""
    values = dict(options)
    name, settings = values.pop("model", None), values.pop("set", ())
    model = type(run.model) if run is not None and name is None else kind("rdlae" if name is None else name)
    return None if name is None else str(name), values | dict(parse_setting(model, text) for text in settings)


def choose_data(data: str | None, options: Mapping[str, Any], run: Run | None) -> tuple[str, Columns]:
    """Return DATA and its columns: from the command line, or else from the run."""
    source = data if run is None or data is not None else run.source
    if source is None:
        raise DataError("there is no DATA: name a table, a folder or a benchmark, or a run with --from")
    return str(source), Columns(**options) if run is None else replace(run.columns, **options)


def parse_setting(model: type[HistoryRecommender], text: str) -> tuple[str, Any]:
    """Return the parameter and the value of --set NAME=VALUE."""
    name, equals, value = text.partition("=")
    defaults, model_name = parameter_defaults(model), model.__name__
    name = name.strip().replace("-", "_")
    if not equals:
        raise DataError(f"--set takes NAME=VALUE, got {text!r}: the names are {', '.join(defaults) or 'none'}")
    if not defaults:
        raise DataError(f"{model_name} has no parameters: leave --set {text} out")
    if name not in defaults:
        raise DataError(f"{model_name} has no parameter {name!r} to --set: its parameters are {', '.join(defaults)}")
    try:
        return name, _parse_value(defaults[name], value.strip())
    except ValueError as error:
        shown = ", ".join(f"{name} {default}" for name, default in defaults.items())
        raise DataError(
            f"--set {text}: {error}; the parameters of {model_name} and their defaults are {shown}"
        ) from None


def write_value(value: Any) -> str:
    """Return a value as text for --set."""
    if isinstance(value, (tuple, list)):
        return ",".join(map(write_value, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _parse_value(default: Any, text: str) -> Any:
    """Convert a text to the type of a default value; raise ValueError if that fails.

    A parameter that is None by default takes "none" or a number.
    """
    if isinstance(default, str):
        return text
    if isinstance(default, (tuple, list)):
        return tuple(_parse_value(default[0] if default else 0, part) for part in parse_names(text) or [])
    parse, words = _find_type(default)
    try:
        return parse(text.lower())
    except (ValueError, KeyError):
        raise ValueError(f"{text!r} is not {words}") from None


def _find_type(default: Any) -> tuple[Any, str]:
    if isinstance(default, bool):
        return _TRUTH.__getitem__, "true or false"
    if isinstance(default, int):
        return int, "a whole number"
    if default is None:
        return (lambda text: None if text == "none" else _parse_number(text)), "a number or none"
    return _parse_number, "a number"


def _parse_number(text: str) -> float:
    """Return a whole number as int, any other one as float."""
    try:
        return int(text)
    except ValueError:
        return float(text)
