"""Options and arguments that several commands share, so that they have the same names and help everywhere."""

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
_HISTORY = "History"
_ROWS = "Output"

OptionValues = dict[str, Any]
"""The values of the options on the command line, by name."""


ModelName = StrEnum("ModelName", {name.upper(): name for name in KINDS})  # type: ignore[misc]  # from the registry
"""The models that can be fitted."""


class RowFormat(StrEnum):
    """File formats of rows."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


DATA_HELP = (
    "A CSV, TSV or Parquet file, a folder of such files, a quoted file pattern such as 'log-*.csv', a folder with "
    "train.txt and test.txt, or the name of a benchmark."
)

DataArgument = Annotated[str, typer.Argument(metavar="DATA", help=DATA_HELP)]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a saved model.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

SplitOption = Annotated[
    str | None,
    typer.Option(
        help="How to split the data: auto (the default: time for a table with --timestamp, otherwise as published or "
        "strong), paper, strong (hold out users), weak (hold out items of each user), last (hold out the last items of "
        "each user), time (hold out all that happened last), or new-items (hold out whole items: cold start).",
        rich_help_panel=_SPLIT,
    ),
]
ShareOption = Annotated[
    float | None,
    typer.Option(
        help="The share held out for validation, and the same share for the test; 0.1 by default.",
        rich_help_panel=_SPLIT,
    ),
]
LastOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="For --split last: the number of last items of each user; 1 by default.", rich_help_panel=_SPLIT
    ),
]
SeedOption = Annotated[int | None, typer.Option(help="The random seed; 0 by default.", rich_help_panel=_SPLIT)]

FromOption = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="RUN",
        help="Use the result of a run of `relae tune` or `relae compare` in this folder: its DATA, its columns and its "
        "best model (or its best --model). Other options override these.",
        rich_help_panel=_PARAMETERS,
    ),
]
SolverOption = Annotated[
    str, typer.Option(help="auto, exact (primal or dual), primal, dual, or local (approximate, for very many items).")
]
DtypeOption = Annotated[str, typer.Option(help="The precision: float32 or float64.")]

HistoryOption = Annotated[
    str | None, typer.Option(help="The ids of the items in the history, separated by commas.", rich_help_panel=_HISTORY)
]
HistoryFileOption = Annotated[
    Path | None,
    typer.Option(
        help="A file with one item id per line, a JSON list of ids, or a JSON object that maps ids to weights; - reads "
        "stdin.",
        rich_help_panel=_HISTORY,
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        help="The file to write (.parquet, .csv, .jsonl); it appears only when it is complete.", rich_help_panel=_ROWS
    ),
]
FormatOption = Annotated[
    RowFormat | None,
    typer.Option(
        "--format",
        help="The format of the rows; by default from the name of the file, and csv on stdout.",
        rich_help_panel=_ROWS,
    ),
]
UserIdsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--for",
        metavar="ID",
        help="A user whose history is saved with the model; can be repeated.",
        rich_help_panel=_HISTORY,
    ),
]
UserIdOption = Annotated[
    str | None,
    typer.Option("--for", metavar="ID", help="A user whose history is saved with the model.", rich_help_panel=_HISTORY),
]


# Groups of options: a command takes each group as one parameter

_COLUMNS: OptionValues = {
    name: (
        option.kind,
        re.sub(r"`(\w+)`", lambda match: f"--{match[1].replace('_', '-')}", option.help),
        *([] if option.metavar is None else [option.metavar]),
    )
    for name, option in options_of(Columns).items()
}
_MODEL: OptionValues = {
    "model": (ModelName, "The model to fit; rdlae by default. With --from, the best model of this kind in the run."),
}
_SET: OptionValues = {
    "set": (list[str], "Any parameter of the model, such as --set seed=3; can be repeated.", "NAME=VALUE"),
}


_LIMITS: dict[str, str] = {
    "max_history": "The most items in a history",
    "max_k": "The most items in a list",
    "max_batch": "The most histories in a batch",
    "max_results": "The most items in all lists of a batch or of a ξ path together",
    "max_explained": "The most items in all lists of a request with explain",
    "max_ids": "The most items to allow or deny",
    "max_xis": "The most lists in a ξ path",
    "max_body_bytes": "The most bytes in a request body",
    "max_waiting": "The most requests that wait for the model in one worker",
    "max_connections": "The most connections of one worker",
}


def add_column_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `columns` of a command by the options for the columns of a table."""
    return _expand_options(command, "columns", _COLUMNS, _TABLE)


def add_history_column_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `columns` of a command by the options for the columns of a table of histories."""
    options = {name: declaration for name, declaration in _COLUMNS.items() if name in HISTORY_OPTIONS}
    return _expand_options(command, "columns", options, "Columns of --histories")


def add_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `parameters` of a command by the options for a model and its parameters."""
    return _expand_options(command, "parameters", {**_MODEL, **make_parameter_options(), **_SET}, _PARAMETERS)


def add_dial_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `dials` of a command by the options that adjust a fitted model."""
    options = {
        dial.name: (float, f"{_capitalize(dial.help)}, within [{dial.low:g}, {dial.high:g}]; needs no refit.")
        for dial in DIALS
    }
    return _expand_options(command, "dials", options, "Dials of linear models")


def add_limit_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `limits` of a command by the options that limit a request."""
    options = {name: (int, f"{text}; {getattr(Settings, name):,} by default.") for name, text in _LIMITS.items()}
    return _expand_options(command, "limits", options, "Limits of a request")


def make_parameter_options() -> OptionValues:
    """Return the option of each parameter that declares one: its type, and its help for each model."""
    declarations: dict[str, dict[str, list[tuple[str, Parameter]]]] = {}
    for model in KINDS:
        for parameter in kind(model).PARAMETERS:
            if parameter.option:
                helps = declarations.setdefault(parameter.name, {})
                helps.setdefault(parameter.help, []).append((model, parameter))
    texts = {name: [_describe_for_models(users) for users in helps.values()] for name, helps in declarations.items()}
    texts["neighbours"].insert(
        0, f"for --solver local (default {NEIGHBOURS}): the number of nearest items that explain an item"
    )
    return {
        name: (_choose_number_type(helps), _capitalize(f"{'; '.join(texts[name])}."))
        for name, helps in declarations.items()
    }


def _choose_number_type(helps: dict[str, list[tuple[str, Parameter]]]) -> type[int] | type[float]:
    return int if all(parameter.whole for users in helps.values() for _, parameter in users) else float


def _describe_for_models(users: list[tuple[str, Parameter]]) -> str:
    """Return the help of a parameter for the models that share it, with their names and defaults."""
    by_default: dict[Any, list[str]] = {}
    for model, parameter in users:
        by_default.setdefault(parameter.default, []).append(model)
    models = (
        f"{' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}"
        f"{'' if default is None else f' (default {default:g})'}"
        for default, names in by_default.items()
    )
    return f"for {', '.join(models)}: {users[0][1].help}"


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def _expand_options(command: Callable[..., None], name: str, options: OptionValues, panel: str) -> Callable[..., None]:
    """Return a command with `options` instead of its parameter `name`, which receives their values as a dict."""

    def expanded(**arguments: Any) -> None:
        values = {option: arguments.pop(option) for option in options}
        command(**arguments, **{name: {option: value for option, value in values.items() if value not in (None, [])}})

    keyword = inspect.Parameter.KEYWORD_ONLY
    defaults, parameters = _get_defaults(command), list[inspect.Parameter]()
    for parameter, annotation in get_type_hints(command, include_extras=True).items():
        if parameter == "return":
            continue
        if parameter != name:
            default = defaults.get(parameter, inspect.Parameter.empty)
            parameters.append(inspect.Parameter(parameter, keyword, default=default, annotation=annotation))
            continue
        for option, (value_type, text, *metavar) in options.items():
            info = typer.Option(
                *([f"--{option.replace('_', '-')}"] if value_type is bool else []),  # without a --no-… beside it
                help=text,
                rich_help_panel=panel,
                case_sensitive=False,
                metavar=next(iter(metavar), None),
            )
            parameters.append(
                inspect.Parameter(option, keyword, default=None, annotation=Annotated[value_type | None, info])
            )
    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    expanded.__kwdefaults__ = {each.name: each.default for each in parameters if each.default is not each.empty}
    expanded.__name__, expanded.__doc__, expanded.__module__ = command.__name__, command.__doc__, command.__module__
    return expanded


def _get_defaults(command: Callable[..., None]) -> dict[str, Any]:
    """Return the default values of a command's parameters."""
    positional = command.__code__.co_varnames[: command.__code__.co_argcount]
    ends = zip(reversed(positional), reversed(command.__defaults__ or ()), strict=False)
    return {**dict(ends), **(command.__kwdefaults__ or {})}
