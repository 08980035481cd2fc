"""What OpenAPI shows of questions; `_questions` checks the same."""

from typing import Any

from relae.catalog import MAX_QUERY, MAX_WORDS
from relae.models import DIALS
from relae.recommender import Parameter
from relae.serve._questions import MAX_WEIGHT
from relae.serve._settings import Settings

Schema = dict[str, Any]

_ID: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "description": 'An id; "260" finds the integer 260.'}
_QUERY = f"Words of a title, of which the longest {MAX_WORDS} count, or an id."
_NULL: Schema = {"type": "null"}


def _nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, _NULL]}


def _number(dial: Parameter) -> Schema:
    low, high = dial.limits
    return {"type": "number", "minimum": low, "maximum": high}


_NUMBERS = {dial.name: _number(dial) for dial in DIALS}
_DIALS: dict[str, Schema] = {
    dial.name: _nullable(_number(dial)) | {"description": f"{dial.label}: {dial.help}; null: the model's own."}
    for dial in DIALS
}


class Schemas:
    """The schemas of all bodies and parameters, with the limits of one service."""

    def __init__(self, limits: Settings) -> None:
        self._limits = limits

    def recommend(self) -> Schema:
        """The body of /v1/recommend."""
        return _body(
            _one_of("history", self._history(), "user", _ID, self._wish(explain=True)),
            {"history": [260, 1196], "k": 10, "xi": 0.4, "explain": True},
        )

    def batch(self) -> Schema:
        """The body of /v1/recommend/batch."""
        histories = {"type": "array", "items": self._history(), "maxItems": self._limits.max_batch}
        users = {"type": "array", "items": _ID, "maxItems": self._limits.max_batch}
        return _body(
            _one_of("histories", histories, "users", users, self._wish(explain=True)),
            {"histories": [[260, 1196], {"1210": 2.0}], "k": 10},
        )

    def path(self) -> Schema:
        """The body of /v1/path."""
        several = {"type": "array", "minItems": 1, "maxItems": self._limits.max_xis}
        xis, item_norms = several | {"items": _NUMBERS["xi"]}, several | {"items": _NUMBERS["item_norm"]}
        along = {
            "xis": _nullable(xis)
            | {"description": "The ξ of the lists; null: some that are spread over the interval that matters."},
            "item_norms": _nullable(item_norms) | {"description": "A path along the item norm, in place of ξ."},
        }
        still = {
            "xi": _DIALS["xi"] | {"description": "ξ of a path along the item norm; null: the model's own."},
            "item_norm": _DIALS["item_norm"] | {"description": "α of a path along ξ; null: the model's own."},
        }
        schema = _one_of("history", self._history(), "user", _ID, along | self._wish(explain=False) | still)
        # along one dial, for which no single value is given
        schema["anyOf"] = [
            {"properties": {"item_norms": _NULL, "xi": _NULL}},
            {"required": ["item_norms"], "properties": {"item_norms": item_norms, "xis": _NULL, "item_norm": _NULL}},
        ]
        return _body(schema, {"history": [260, 1196], "k": 10})

    def explain(self) -> Schema:
        """The body of /v1/explain."""
        schema = _one_of("history", self._history(), "user", _ID, {"item": _ID, **_DIALS})
        schema["required"] = ["item"]
        return _body(schema, {"history": [260, 1196], "item": 1210})

    def search(self) -> Schema:
        """The query of /v1/items."""
        text = {"type": "string", "maxLength": MAX_QUERY, "default": ""}
        return {
            "parameters": [
                {"name": "q", "in": "query", "schema": text, "description": _QUERY},
                {"name": "limit", "in": "query", "schema": self._whole(20)},
            ]
        }

    def item(self) -> Schema:
        """The path of /v1/items/{item}."""
        return {"parameters": [_ITEM]}

    def similar(self) -> Schema:
        """The path and query of /v1/similar/{item}."""
        return {"parameters": [_ITEM, {"name": "k", "in": "query", "schema": self._whole(10)}]}

    def _whole(self, default: int) -> Schema:
        most = self._limits.max_k
        return {"type": "integer", "minimum": 1, "maximum": most, "default": min(default, most)}

    def _history(self) -> Schema:
        most = self._limits.max_history
        weight = {"type": "number", "minimum": 0, "maximum": MAX_WEIGHT}
        return {
            "anyOf": [
                {"type": "array", "items": _ID, "maxItems": most},
                {"type": "object", "additionalProperties": weight, "maxProperties": most},
            ],
            "description": "Ids, or ids with weights.",
        }

    def _wish(self, explain: bool) -> dict[str, Schema]:
        ids = _nullable({"type": "array", "items": _ID, "maxItems": self._limits.max_ids})
        wish = {
            "k": _nullable(self._whole(10)) | {"description": "Items of a list."},
            **_DIALS,
            "allow": ids | {"description": "Items that alone may be recommended."},
            "deny": ids | {"description": "Items that are never recommended."},
            "exclude_seen": _flag(True)
            | {"description": "Leave out the items of the history, and what a user has seen beside it."},
        }
        if explain:
            wish["explain"] = _flag(False) | {"description": "Say what each item is recommended for."}
        return wish


_ITEM: Schema = {
    "name": "item",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "The id of an item; it may contain slashes.",
}


def _one_of(first: str, a: Schema, second: str, b: Schema, others: dict[str, Schema]) -> Schema:
    """An object with the first field or the second, and not with both."""
    return {
        "type": "object",
        "properties": {first: _nullable(a), second: _nullable(b), **others},
        "additionalProperties": False,
        "oneOf": [
            {"required": [first], "properties": {first: a, second: _NULL}},
            {"required": [second], "properties": {first: _NULL, second: b}},
        ],
    }


def _flag(default: bool) -> Schema:
    return {"type": ["boolean", "null"], "default": default}


def _body(schema: Schema, example: Schema) -> Schema:
    content = {"application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": content}}
