"""How to name DATA, MODEL and what they consist of: the same words in every command."""

import inspect
import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from relae._common.table_options import options_of
from relae.experiments import HISTORY_OPTIONS, Columns
from relae.models import DIALS
from relae.recommender import Parameter
from relae.registry import KINDS, kind
from relae.serve import Settings
from relae.solvers import NEIGHBOURS

_TABLE = "Columns of a table, weights and features"
_SPLIT = "Validation and test"
_PARAMETERS = "The model and its parameters"
_HISTORY = "Whose history"
_ROWS = "Where to"

Given = dict[str, Any]
"""The options that were given, by name."""


ModelName = StrEnum("ModelName", {name.upper(): name for name in KINDS})  # type: ignore[misc]  # one registry
"""What can be fitted."""


class RowFormat(StrEnum):
    """How rows are written."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


DATA_HELP = (
    "A CSV, TSV or Parquet file, a folder of such files, a quoted pattern of their names, a folder with train.txt and "
    "test.txt, or the name of a benchmark."
)

DataArgument = Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a model that `relae fit` made.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

SplitOption = Annotated[
    str | None,
    typer.Option(
        help="auto (if not given), paper, strong (users held out), weak (items held out), last (of each user), time, "
        "or new-items (items that nobody is known to have, for cold start).",
        rich_help_panel=_SPLIT,
    ),
]
ShareOption = Annotated[
    float | None,
    typer.Option(
        help="What is held out for validation, and again for the test; 0.1 if not given.", rich_help_panel=_SPLIT
    ),
]
SeedOption = Annotated[
    int | None, typer.Option(help="Of what is drawn at random; 0 if not given.", rich_help_panel=_SPLIT)
]

FromOption = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="RUN",
        help="The folder of a run of `relae tune`, or of `relae compare` (the first of its table, or --model): its "
        "choice, its DATA and its columns, where no others are given.",
        rich_help_panel=_PARAMETERS,
    ),
]
SolverOption = Annotated[
    str, typer.Option(help="auto, exact (primal or dual), primal, dual, or local (an approximation for huge catalogs).")
]
DtypeOption = Annotated[str, typer.Option(help="float32 or float64.")]

HistoryOption = Annotated[str | None, typer.Option(help="Ids of items, separated by commas.", rich_help_panel=_HISTORY)]
HistoryFileOption = Annotated[
    Path | None,
    typer.Option(
        help="A file with an id per line, a JSON list of ids, or a JSON object from ids to weights; - is stdin.",
        rich_help_panel=_HISTORY,
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(help="The file (.parquet, .csv, .jsonl), which is there whole or not at all.", rich_help_panel=_ROWS),
]
FormatOption = Annotated[
    RowFormat | None,
    typer.Option(
        "--format", help="Of the rows; by the name of the file if not given, csv on stdout.", rich_help_panel=_ROWS
    ),
]
UserIdsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--for",
        metavar="ID",
        help="A user whose history the model has kept; can be repeated.",
        rich_help_panel=_HISTORY,
    ),
]
UserIdOption = Annotated[
    str | None,
    typer.Option("--for", metavar="ID", help="A user whose history the model has kept.", rich_help_panel=_HISTORY),
]


# --- options that several commands take, as one parameter --------------------------------------------------------

_COLUMNS: Given = {
    name: (
        option.kind,
        re.sub(r"`(\w+)`", lambda other: f"--{other[1].replace('_', '-')}", option.help),
        *([] if option.metavar is None else [option.metavar]),
    )
    for name, option in options_of(Columns).items()
}
_MODEL: Given = {
    "model": (ModelName, "What to fit; rdlae if not given. With --from, the run's best of this kind."),
}
_SET: Given = {
    "set": (list[str], "Any parameter of the model, such as --set seed=3; can be repeated.", "NAME=VALUE"),
}


_LIMITS: dict[str, str] = {
    "max_history": "Items of a history",
    "max_k": "Items of a list",
    "max_batch": "Histories of a batch",
    "max_results": "Items of all lists of a batch or a path",
    "max_explained": "Items of all lists of a request with explain",
    "max_ids": "Items to allow or deny",
    "max_xis": "lists of a path",
    "max_body_bytes": "Bytes of a body",
    "max_waiting": "Requests that wait for the model in one worker",
    "max_connections": "Connections of one worker",
}


def takes_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with a parameter `columns` an option for every column of a table."""
    return _spread(command, "columns", _COLUMNS, _TABLE)


def takes_history_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with a parameter `columns` an option for the columns of a table of histories."""
    here = {name: shown for name, shown in _COLUMNS.items() if name in HISTORY_OPTIONS}
    return _spread(command, "columns", here, "Columns of --histories")


def takes_model(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with a parameter `parameters` the options that say what to fit."""
    return _spread(command, "parameters", {**_MODEL, **parameter_options(), **_SET}, _PARAMETERS)


def takes_dials(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with a parameter `dials` the options that turn a fitted model."""
    options = {
        dial.name: (float, f"{_sentence(dial.help)}, within [{dial.low:g}, {dial.high:g}]: no refit.") for dial in DIALS
    }
    return _spread(command, "dials", options, "Dials of linear models")


def takes_limits(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command with a parameter `limits` the options that say how much may be asked at once."""
    options = {name: (int, f"{text}; {getattr(Settings, name):,} if not given.") for name, text in _LIMITS.items()}
    return _spread(command, "limits", options, "The most of a request")


def parameter_options() -> Given:
    """Return an option for each parameter that declares one: its type, and what it does for which models."""
    found: dict[str, dict[str, list[tuple[str, Parameter]]]] = {}
    for model in KINDS:
        for parameter in kind(model).PARAMETERS:
            if parameter.option:
                found.setdefault(parameter.name, {}).setdefault(parameter.help, []).append((model, parameter))
    texts = {name: [_of_models(users) for users in helps.values()] for name, helps in found.items()}
    texts["neighbours"].insert(0, f"of --solver local (default {NEIGHBOURS}): the nearest items that count")
    return {name: (_number_type(helps), _sentence(f"{'; '.join(texts[name])}.")) for name, helps in found.items()}


def _number_type(helps: dict[str, list[tuple[str, Parameter]]]) -> type[int] | type[float]:
    return int if all(parameter.whole for users in helps.values() for _, parameter in users) else float


def _of_models(users: list[tuple[str, Parameter]]) -> str:
    """Return what a parameter does, for models in whose declarations it is the same, and their defaults."""
    by_default: dict[Any, list[str]] = {}
    for model, parameter in users:
        by_default.setdefault(parameter.default, []).append(model)
    models = (
        f"{' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"
        f"{'' if default is None else f' (default {default:g})'}"
        for default, names in by_default.items()
    )
    return f"of {', '.join(models)}: {users[0][1].help}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _spread(command: Callable[..., None], name: str, options: Given, panel: str) -> Callable[..., None]:
    """Return a command with `options` in the place of its parameter `name`, which gets those that were given."""

    def spread(**arguments: Any) -> None:
        given = {option: arguments.pop(option) for option in options}
        command(**arguments, **{name: {option: value for option, value in given.items() if value not in (None, [])}})

    keyword = inspect.Parameter.KEYWORD_ONLY
    defaults, parameters = _defaults(command), list[inspect.Parameter]()
    for parameter, annotation in get_type_hints(command, include_extras=True).items():
        if parameter == "return":
            continue
        if parameter != name:
            default = defaults.get(parameter, inspect.Parameter.empty)
            parameters.append(inspect.Parameter(parameter, keyword, default=default, annotation=annotation))
            continue
        for option, (value_type, text, *metavar) in options.items():
            info = typer.Option(
                help=text, rich_help_panel=panel, case_sensitive=False, metavar=next(iter(metavar), None)
            )
            parameters.append(
                inspect.Parameter(option, keyword, default=None, annotation=Annotated[value_type | None, info])
            )
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    spread.__kwdefaults__ = {each.name: each.default for each in parameters if each.default is not each.empty}
    spread.__name__, spread.__doc__, spread.__module__ = command.__name__, command.__doc__, command.__module__
    return spread


def _defaults(command: Callable[..., None]) -> dict[str, Any]:
    """Return the values of a command's parameters that have one if not given."""
    positional = command.__code__.co_varnames[: command.__code__.co_argcount]
    ends = zip(reversed(positional), reversed(command.__defaults__ or ()), strict=False)
    return {**dict(ends), **(command.__kwdefaults__ or {})}
