"""The OpenAPI document of the service, from its routes and the types of requests and responses."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

import msgspec

from relae import __version__
from relae.serve._decoding import Reader, list_fields
from relae.serve._requests import PATHS, PathRequest, Query, Request
from relae.serve._responses import Error

Schema = dict[str, Any]

_ABOUT = """Recommendations with dials from popular to rare, and from timeless to fresh.

A request may turn the dials of a linear model, at no new fit: `xi` (ξ), `item_norm` (α), `propensity` (γ), `fading` (φ)
and, if the model was fitted with times, `freshness` (τ) and `fresh_days`. A dial that it leaves out stands where the
model has it, which `GET /v1/model` tells; a larger α or γ favours items that fewer people have. With r the place of an
item from the end of a history x, n the users of an item, p its propensity and e its recent demand, the scores are

    score_j = Σ_i x_i r_i^−φ n_i^α B_ij n_j^−α · p_j^−γ + τ·√(e_j / max e)

and explanations sum to that. `/v1/path` shows what a dial does to a list: along ξ at the cost of one list, along α
at the cost of one each."""
_ERRORS = {
    401: "The API key is missing or wrong.",
    403: "This service has no API key, and so no reload over HTTP.",
    404: "There is no such item or user.",
    409: "The new model cannot be used; the old one stays.",
    413: "The body, or the answer that it asks for, is too large.",
    422: "The request cannot be understood, or not be answered by this model.",
    503: "Not ready yet, or too busy: try again.",
}
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
_ITEM: Schema = {
    "name": "item",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "The id of an item; it may contain slashes.",
}
_NULL: Schema = {"type": "null"}
_REFERENCE = "#/components/schemas/{name}"


@dataclass(frozen=True)
class Operation:
    """One method of one path, as the document describes it.

    `response` is the type of a JSON response, or None for plain text; `statuses` are those of errors.
    """

    method: str
    path: str
    description: str
    reader: Reader[Any] | None
    response: Any
    statuses: Sequence[int]

    @property
    def id(self) -> str:
        """The id of the operation, such as `recommend_batch`."""
        name = self.path.split("/{")[0].strip("/").removeprefix("v1/").replace("/", "_")
        return f"{name}_by_id" if self.path.startswith("/v1/items/") else name


def build_document(operations: Sequence[Operation], secured: bool) -> Schema:
    """Return the document of some operations; `secured` if those under /v1 need a key."""
    requests = [operation.reader.type for operation in operations if operation.reader is not None]
    responses = [operation.response for operation in operations if operation.response is not None]
    _, schemas = msgspec.json.schema_components([*requests, *responses, Error], ref_template=_REFERENCE)
    for request in requests:
        _complete(schemas[request.__name__], request)
    for response in responses:  # msgspec sorts the fields
        fields = schemas[response.__name__]["properties"]
        schemas[response.__name__]["properties"] = {name: fields[name] for name in get_type_hints(response)}
    components: Schema = {
        "schemas": {name: schema for name, schema in schemas.items() if not _is_query(name, requests)}
    }
    if secured:
        components["securitySchemes"] = _SECURITY
    paths: Schema = {}
    for operation in operations:
        path = re.sub(r":\w+}", "}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _describe(operation, schemas, secured)
    return {
        "openapi": "3.1.0",
        "info": {"title": "relae", "description": _ABOUT, "version": __version__},
        "paths": paths,
        "components": components,
    }


def _is_query(name: str, requests: Sequence[type]) -> bool:
    return any(request.__name__ == name and issubclass(request, Query) for request in requests)


def _describe(operation: Operation, schemas: Schema, secured: bool) -> Schema:
    in_api = operation.path.startswith("/v1/")
    good = (
        _content(operation.response)
        if operation.response is not None
        else {"text/plain": {"schema": {"type": "string"}}}
    )
    description: Schema = {
        "tags": ["v1" if in_api else "operations"],
        "summary": operation.id.replace("_", " ").capitalize(),
        "description": operation.description,
        "operationId": operation.id,
        "responses": {"200": {"description": "The answer.", "content": good}}
        | {str(status): {"description": _ERRORS[status], "content": _content(Error)} for status in operation.statuses},
    }
    if secured and in_api:
        description["security"] = [{"bearer": []}, {"header": []}]
    parameters = [_ITEM] if "{item" in operation.path else []
    if operation.reader is not None and issubclass(operation.reader.type, Query):
        fields = schemas[operation.reader.type.__name__]["properties"]
        parameters += [_as_parameter(name, field) for name, field in fields.items()]
    elif operation.reader is not None:
        body = operation.reader.type
        content = {"application/json": _content(body)["application/json"] | {"example": json.loads(body.EXAMPLE)}}
        description["requestBody"] = {"required": True, "content": content}
    return description | ({"parameters": parameters} if parameters else {})


def _content(kind: Any) -> Schema:
    return {"application/json": {"schema": {"$ref": _REFERENCE.format(name=kind.__name__)}}}


def _as_parameter(name: str, field: Schema) -> Schema:
    schema = {key: value for key, value in field.items() if key != "description"}
    return {"name": name, "in": "query", "schema": schema, "description": field.get("description", "")}


def _complete(schema: Schema, request: type[Request] | type[Query]) -> None:
    """Put the fields of a request in their order, and add the rules that concern several of them."""
    if issubclass(request, Query):
        return
    fields = schema["properties"]
    schema["properties"] = {name: fields[name] for name in list_fields(request)}
    first, second = request.SOURCES
    schema["oneOf"] = [
        {"required": [first], "properties": {first: _required(fields[first]), second: _NULL}},
        {"required": [second], "properties": {first: _NULL, second: _required(fields[second])}},
    ]
    if issubclass(request, PathRequest):  # along one dial, of which there is no single value
        others = {name: {each: _NULL for each in PATHS if each != name} | {PATHS[name]: _NULL} for name in PATHS}
        schema["anyOf"] = [
            {"properties": others[name]}
            if name == "xis"
            else {"required": [name], "properties": {name: _required(fields[name]), **others[name]}}
            for name in PATHS
        ]


def _required(field: Schema) -> Schema:
    """Return the schema of a field that is not null."""
    kinds = [kind for kind in field["anyOf"] if kind != _NULL]
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
