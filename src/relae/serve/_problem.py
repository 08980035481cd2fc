"""Requests that cannot be answered, and the one form of all errors."""

import json
from collections.abc import Mapping

from relae.serve._responses import encode


class Problem(Exception):
    """A request that cannot be answered: the status, a message with the way out, and the field that is to blame."""

    def __init__(
        self, status: int, message: str, field: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.field, self.headers = status, message, field, dict(headers or {})


def error_body(message: str, field: str | None = None) -> bytes:
    """Return the JSON of an error."""
    return encode({"error": {"message": message, "field": field}})


def show_value(value: object) -> str:
    """Return a value of a request as its sender wrote it, in at most 80 characters."""
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
    return text if len(text) <= 80 else f"{text[:77]}…"
