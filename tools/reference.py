"""Write the pages and pictures of the docs that are made from the program itself: `python -m tools.reference`.

The test suite fails while a page is not what this module makes.
"""

import inspect
import json
import re
import tomllib
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args

from typer.models import ArgumentInfo

ROOT = Path(__file__).parent.parent


# --- the command line ----------------------------------------------------------------------------------------------


def commands() -> str:
    """Return the page about the command line."""
    from relae.cli import app

    lines = [
        "# Commands",
        "",
        "Made from the program's own help by `make reference`; `relae COMMAND --help` shows the same in a terminal.",
        "",
        "Results go to stdout, progress and errors to stderr. An error is one line and exit code 2; with `--debug`",
        "it shows where it came from. DATA is a CSV, TSV or Parquet file, a folder with `train.txt` and `test.txt`, or",
        "the name of a benchmark; MODEL is the folder of a saved model; RUN is the folder of a run of `relae tune`.",
        "",
    ]
    lines += ["## relae", "", app.info.help, "", *_parameters(app.registered_callback.callback)]
    for path, command, help_text in _leaves(app, "relae"):
        usage = " ".join([path, *_usage(command), "[OPTIONS]"])
        lines += [f"## {path}", "", _text(help_text), "", f"```\n{usage}\n```", "", *_parameters(command)]
    return "\n".join(lines).rstrip() + "\n"


def _leaves(app: Any, path: str) -> Iterator[tuple[str, Any, str]]:
    for each in app.registered_commands:
        name = each.name or each.callback.__name__.replace("_", "-")
        if not each.hidden:
            yield f"{path} {name}", each.callback, each.help or inspect.getdoc(each.callback)
    for group in app.registered_groups:
        yield from _leaves(group.typer_instance, f"{path} {group.name}")


def _declared(command: Any) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, type, what Typer knows, and default of every parameter of a command."""
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        kind, info = get_args(parameter.annotation)[:2]
        yield name, kind, info, parameter.default


def _usage(command: Any) -> list[str]:
    words = []
    for name, kind, info, default in _declared(command):
        if isinstance(info, ArgumentInfo):
            shown = info.metavar or name.upper()
            words.append(shown if default is inspect.Parameter.empty else f"[{shown}]")
        elif default is inspect.Parameter.empty:
            words.append(f"{_flags(name, info)[0]} {_value(kind, info)}")
    return words


def _flags(name: str, info: Any) -> list[str]:
    # inside Annotated, Typer takes the first of the names for a default at first
    parts = [part for part in (info.default, *(info.param_decls or ())) if isinstance(part, str)]
    declared = [flag for part in parts for flag in part.split("/") if flag.startswith("-")]
    return declared or [f"--{name.replace('_', '-')}"]


def _value(kind: Any, info: Any) -> str:
    if info.metavar:
        return str(info.metavar)
    for each in get_args(kind) or (kind,):
        if inspect.isclass(each) and issubclass(each, Enum):
            return "\\|".join(str(choice.value) for choice in each)
        if each in (int, float, str, Path):
            return {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "PATH"}[each]
    return ""


def _parameters(command: Any) -> list[str]:
    rows = []
    for name, kind, info, default in _declared(command):
        if isinstance(info, ArgumentInfo):
            shown = f"`{info.metavar or name.upper()}`"
        else:
            flags, value = _flags(name, info), _value(kind, info)
            if kind is bool and default is True and len(flags) == 1:
                flags.append(f"--no-{flags[0][2:]}")
            shown = " / ".join(f"`{flag}`" for flag in flags) + (f" `{value}`" if value and kind is not bool else "")
        if default is inspect.Parameter.empty:
            default = "required"
        elif default is None or default is False:
            default = ""
        elif default is True:
            default = "on"
        else:
            default = f"`{default.value if isinstance(default, Enum) else default}`"
        rows.append(f"| {shown} | {_cell(info.help)} | {default} |")
    return ["| | | default |", "|---|---|---|", *rows, ""] if rows else []


def _text(help_text: str | None) -> str:
    return (help_text or "").replace("\b", "").strip()


def _cell(text: Any) -> str:
    return re.sub(r"\s+", " ", text or "").replace("|", "\\|").strip()


# --- the service ---------------------------------------------------------------------------------------------------


def http() -> str:
    """Return the page about the HTTP interface."""
    from relae.serve import Settings, create_app

    schema = create_app(Settings(Path("model"))).state.openapi
    lines = [
        "# HTTP",
        "",
        "Made from the service's own OpenAPI description by `make reference`; a service has it at `/openapi.json`.",
        "",
        _text(schema["info"].get("description")),
        "",
    ]
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            said = _text(operation.get("description") or operation.get("summary"))
            lines += [f"## {method.upper()} {path}", "", said, ""]
            lines += _query(operation)
            lines += _body(operation, schema)
            lines += _answers(operation, schema)
    return "\n".join(lines).rstrip() + "\n"


def _query(operation: dict[str, Any]) -> list[str]:
    rows = [
        f"| `{each['name']}` ({each['in']}) | {_kind(each['schema'])} | {_cell(each.get('description'))} |"
        for each in operation.get("parameters", [])
    ]
    return ["| parameter | | |", "|---|---|---|", *rows, ""] if rows else []


def _body(operation: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return []
    body = _resolved(content["schema"], schema)
    lines = ["| field | | |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {_kind(field)}{_default(field)} | {_cell(field.get('description'))} |"
        for name, field in body.get("properties", {}).items()
    ]
    examples = body.get("examples") or ([body["example"]] if "example" in body else [])
    for example in examples[:1]:
        lines += ["", f"```json\n{json.dumps(example, ensure_ascii=False)}\n```"]
    return [*lines, ""]


def _answers(operation: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    lines = ["| answer | | |", "|---|---|---|"]
    for status, answer in sorted(operation["responses"].items()):
        content = answer.get("content", {}).get("application/json", {}).get("schema")
        fields = {} if content is None else _resolved(content, schema).get("properties", {})
        named = ", ".join(f"`{name}`" for name in fields)
        words = "" if status == "200" else _cell(answer.get("description"))
        lines.append(f"| {status} | {words} | {named} |")
    return [*lines, ""]


def _resolved(part: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in part:
        return schema["components"]["schemas"][part["$ref"].rsplit("/", 1)[1]]
    return part


def _kind(part: dict[str, Any]) -> str:
    if "anyOf" in part:
        kinds = [_kind(each) for each in part["anyOf"]]
        return " or ".join(dict.fromkeys(kind for kind in kinds if kind != "null"))
    if "$ref" in part:
        return part["$ref"].rsplit("/", 1)[1]
    if part.get("type") == "array":
        return f"list of {_kind(part.get('items', {}))}"
    kinds = part.get("type", "any")
    return " or ".join(kind for kind in kinds if kind != "null") if isinstance(kinds, list) else str(kinds)


def _default(part: dict[str, Any]) -> str:
    return f", default {json.dumps(part['default'])}" if part.get("default") is not None else ""


# --- the rooms -----------------------------------------------------------------------------------------------------

_WIDTH, _HEIGHT, _GAP, _MARGIN = 720, 34, 6, 12


def rooms() -> str:
    """Return the picture of the rooms, from the contract that `lint-imports` checks."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = [layer.split(" | ") for layer in settings["contracts"][0]["layers"]]
    height = 2 * _MARGIN + len(layers) * (_HEIGHT + _GAP) - _GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH + 40} {height}" font-family="sans-serif">',
        "<title>The rooms of relae: imports point downwards</title>",
        f'<path d="M{_WIDTH + 22} {_MARGIN} V{height - _MARGIN} m-5 -9 l5 9 l5 -9" fill="none" stroke="#777"/>',
        f'<text x="{_WIDTH + 33}" y="{height / 2}" font-size="12" fill="#777" text-anchor="middle"',
        f' transform="rotate(90 {_WIDTH + 33} {height / 2})">imports</text>',
    ]
    for row, names in enumerate(layers):
        width = (_WIDTH - 2 * _MARGIN - _GAP * (len(names) - 1)) / len(names)
        for column, name in enumerate(names):
            x, y = _MARGIN + column * (width + _GAP), _MARGIN + row * (_HEIGHT + _GAP)
            lines += [
                f'<rect x="{x:g}" y="{y}" width="{width:g}" height="{_HEIGHT}" rx="5" fill="#eef3f8" stroke="#89b"/>',
                f'<text x="{x + width / 2:g}" y="{y + 22}" font-size="14" fill="#1d2b38"',
                f' text-anchor="middle">{name}</text>',
            ]
    return "\n".join([*lines, "</svg>"]) + "\n"


PAGES = {"docs/commands.md": commands, "docs/http.md": http, "docs/images/rooms.svg": rooms}


def main() -> None:
    """Write every page."""
    for name, make in PAGES.items():
        (ROOT / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
