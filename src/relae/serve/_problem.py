"""What a caller is told when a question cannot be answered."""

from collections.abc import Mapping

from pydantic_core import to_json


class Problem(Exception):
    """A question that cannot be answered: the status, a message with the way out, and the field that is to blame."""

    def __init__(
        self, status: int, message: str, field: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.field, self.headers = status, message, field, dict(headers or {})

    @property
    def body(self) -> bytes:
        """The answer, in the one shape that all errors have."""
        return error_body(self.message, self.field)


def error_body(message: str, field: str | None = None) -> bytes:
    """Return the JSON of an error."""
    return to_json({"error": {"message": message, "field": field}})


def shown(value: object) -> str:
    """Return a value of a request as its sender wrote it, cut to a length that can be read."""
    text = to_json(value, inf_nan_mode="constants").decode()
    return text if len(text) <= 80 else f"{text[:77]}…"
