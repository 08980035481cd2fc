"""From bytes and query strings to typed requests; a value that does not fit is refused in words."""

import json
import re
from collections.abc import Mapping
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta
from msgspec import inspect as types

from relae.serve._problem import Problem, show_value
from relae.serve._requests import Limit, Query, Request
from relae.serve._settings import Settings

_R = TypeVar("_R", bound=Request | Query)
_PATH = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")  # of msgspec's errors, such as $.histories[1][0].at


# --- limits ----------------------------------------------------------------------------------------------------------


def bind(request: type[_R], limits: Settings) -> type[_R]:
    """Return a type of requests with the limits of one service; fields of bodies that are not required may be null."""
    hints = get_type_hints(request, include_extras=True)
    fields: list[tuple[str, Any, Any]] = []
    for field in msgspec.structs.fields(request):
        default, kind = field.default, hints[field.name]
        notes = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
        description = [Meta(description=note) for note in notes if isinstance(note, str)]
        for note in notes:
            if isinstance(note, Limit) and note.constraint == "le":
                default = min(default, getattr(limits, note.setting))
        bound = _bind_type(kind, limits)
        if default is not NODEFAULT and not issubclass(request, Query):
            bound = bound | None
        fields.append((field.name, Annotated[(bound, *description)] if description else bound, default))
    defaults = {name: default for name, _, default in fields if default is not NODEFAULT and default is not None}
    namespace = {"__doc__": request.__doc__, "DEFAULTS": defaults}
    bound_type = msgspec.defstruct(request.__name__, fields, bases=(request,), namespace=namespace, kw_only=True)
    return cast(type[_R], bound_type)


def _bind_type(kind: Any, limits: Settings, constraints: tuple[Meta, ...] = ()) -> Any:
    """Return a type with the settings in place of limits; constraints of a union belong to each of its parts."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        inner, *notes = arguments
        fixed = tuple(note for note in notes if isinstance(note, Meta))
        set_here = tuple(
            Meta(**{note.constraint: getattr(limits, note.setting)}) for note in notes if isinstance(note, Limit)
        )
        return _bind_type(inner, limits, constraints + fixed + set_here)
    if origin in (Union, UnionType):
        return reduce(or_, (_bind_type(each, limits, constraints) for each in arguments))
    bound = list[_bind_type(arguments[0], limits)] if origin is list else kind  # type: ignore[misc]
    return Annotated[(bound, *constraints)] if constraints and kind is not NoneType else bound


# --- decoding --------------------------------------------------------------------------------------------------------


class Reader(Generic[_R]):
    """Reads one type of requests, with the limits of one service."""

    def __init__(self, request: type[_R], limits: Settings) -> None:
        self.type = bind(request, limits)
        self._decoder = msgspec.json.Decoder(self.type)
        self._info = cast(types.StructType, types.type_info(self.type))

    def read_body(self, body: bytes) -> _R:
        """Return the request in a body of JSON."""
        try:
            return self._decoder.decode(body)
        except msgspec.ValidationError:
            return self._read_slowly(body)
        except (msgspec.DecodeError, ValueError) as error:
            raise Problem(422, f"the body is not valid JSON: {error}") from error

    def _read_slowly(self, body: bytes) -> _R:
        """Return the request in a body that has 260.0 for 260, which is the same in JSON; or say what is wrong."""
        try:
            value = json.loads(body, parse_constant=_refuse_constant)
            plain = _with_integers(value)
        except (ValueError, RecursionError) as error:
            raise Problem(422, f"the body is not valid JSON: {error}") from error
        return self._convert(plain, value)

    def read_query(self, query: Mapping[str, str]) -> _R:
        """Return the request in the parameters of a URL."""
        value: dict[str, Any] = {}
        for field in self._info.fields:
            if (text := query.get(field.name)) is not None:
                # a few digits, so that no text can make a number that takes long to read
                is_number = text.isascii() and text.isdecimal() and len(text) < 10
                value[field.name] = (
                    int(text) if is_number and isinstance(_select(field.type, text), types.IntType) else text
                )
        return self._convert(value, value)

    def _convert(self, plain: Any, value: Any) -> _R:
        try:
            return msgspec.convert(plain, self.type)
        except msgspec.ValidationError as error:
            raise self._explain(str(error), value) from error

    # --- messages ----------------------------------------------------------------------------------------------------

    def _explain(self, error: str, value: Any) -> Problem:
        """Return the refusal of a value that does not fit, from msgspec's error, which names its path."""
        if not isinstance(value, dict):
            example = cast(type[Request], self.type).EXAMPLE
            return Problem(422, f"the body must be a JSON object such as {example}, got {show_value(value)}")
        fields = {field.name: field for field in self._info.fields}
        for name in value:
            if name not in fields:
                names = ", ".join(list_fields(cast(Any, self.type)))
                return Problem(422, f"there is no field {show_value(name)} here: the fields are {names}")
        for name, field in fields.items():
            if field.required and name not in value:
                meaning = get_args(get_type_hints(self.type, include_extras=True)[name])[1].description
                return Problem(422, f"{name} is missing: give {meaning[0].lower()}{meaning[1:].rstrip('.')}", name)
        [(name, _), *steps] = _PATH.findall(error.rpartition("`$")[2])
        kind, at, path = _select(fields[name].type, value[name]), value[name], name
        for field_name, index in steps:
            if index == "...":
                return _refuse_weight(cast(types.DictType, kind), at, path, name)
            if field_name:  # of an event
                [event] = (each for each in cast(types.StructType, kind).fields if each.name == field_name)
                at, kind, path = at[field_name], event.type, f"{path}.{field_name}"
                continue
            at = at[int(index)]
            kind, path = _select(cast(types.ListType, kind).item_type, at), f"{path}[{index}]"
        return Problem(422, _message(path, kind, at), name)


def list_fields(request: type[Request]) -> list[str]:
    """Return the names of the fields: those of the request first, then those that it shares with others."""
    names = request.__struct_fields__
    own = (name for kind in request.__mro__[1:] for name in getattr(kind, "__annotations__", {}))
    return [name for name in dict.fromkeys((*own, *names)) if name in names]


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _with_integers(value: Any) -> Any:
    """Return a value of JSON with integers in place of numbers such as 260.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return list(map(_with_integers, value))
    if isinstance(value, dict):
        return {name: _with_integers(each) for name, each in value.items()}
    return value


def _select(kind: types.Type, value: Any) -> types.Type:
    """Return the part of a union that can have a value of this kind, or the union without null."""
    if isinstance(kind, types.Metadata):  # a description
        kind = kind.type
    if not isinstance(kind, types.UnionType):
        return kind
    options = [each for each in kind.types if not isinstance(each, types.NoneType)]
    for container, of_container in ((list, (types.ListType,)), (dict, (types.DictType, types.StructType))):
        if isinstance(value, container):
            options = [each for each in options if isinstance(each, of_container)] or options
    return options[0] if len(options) == 1 else types.UnionType(tuple(options))


def _message(path: str, kind: types.Type, value: Any) -> str:
    longest = getattr(kind, "max_length", None)
    if longest is not None and isinstance(value, (list, dict, str)) and len(value) > longest:
        what = "characters" if isinstance(value, str) else "entries"
        return f"{path} has {len(value):,} {what}, and at most {longest:,} are taken"
    return f"{path} must {_expected(kind)}, got {show_value(value)}"


def _expected(kind: types.Type) -> str:
    """Return what a value must be or do, as the end of a sentence."""
    match kind:
        case types.IntType(ge=int(low), le=int(high)):
            return f"be a whole number from {low:,} to {high:,}"
        case types.FloatType(ge=int() | float() as low, le=int() | float() as high):
            return f"lie between {low:g} and {high:g}"
        case types.IntType() | types.FloatType():
            return "be a number"
        case types.StrType():
            return "be a text"
        case types.BoolType():
            return "be true or false"
        case types.ListType(item_type=types.FloatType(ge=low, le=high)):
            return f"be a list of numbers from {low:g} to {high:g}"
        case types.ListType(item_type=item):
            return "be a list of ids" if _is_id(item) else "be a list of histories"
        case types.StructType():
            return 'be an id, or an item with its time such as {"item": 260, "at": 978300019}'
    if _is_id(kind):
        return "be an id, which is an integer or a string"
    return "be a list of ids, or an object of ids and their weights"


def _is_id(kind: types.Type) -> bool:
    return isinstance(kind, types.UnionType) and any(isinstance(each, types.IntType) for each in kind.types)


def _refuse_weight(kind: types.DictType, weights: Mapping[str, Any], path: str, field: str) -> Problem:
    low, high = (getattr(kind.value_type, name) for name in ("ge", "le"))
    item, weight = next(
        (item, weight)
        for item, weight in weights.items()
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not low <= weight <= high
    )
    message = f"the weight of item {show_value(item)} in {path} must be a number from {low:g} to {high:,.0f}, got "
    return Problem(422, message + show_value(weight), field)
