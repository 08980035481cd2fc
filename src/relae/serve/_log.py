"""The log of the service on stderr: one line of JSON per event."""

import asyncio
import logging
import sys
import warnings
from datetime import UTC, datetime
from typing import TextIO

import msgspec

logger = logging.getLogger("relae.serve")
_access = logging.getLogger("relae.serve.access")

# Seconds that lines about requests may wait for each other: every write lets go of the interpreter, and to get it back
# from the thread that computes takes longer than all the rest of the line's making.
_GATHER = 0.05
_PIPE = 4096  # bytes that go through a pipe in one piece, however many workers write to it


class JsonLines(logging.Formatter):
    """Format a record as one line of JSON: time, level, event, and its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": moment, "level": record.levelname.lower(), "event": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line, enc_hook=str).decode()


class GatheringHandler(logging.StreamHandler[TextIO]):
    """Write lines from an event loop together that come within a moment of each other."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line for the next write."""
        self._lines.append(self.format(record) + "\n")
        if len(self._lines) == 1:
            try:
                asyncio.get_running_loop().call_later(_GATHER, self.flush)
            except RuntimeError:  # no loop
                self.flush()

    def flush(self) -> None:
        """Write the kept lines, in pieces that a pipe does not break up."""
        lines, self._lines = self._lines, []
        piece = ""
        for line in lines:
            if piece and len(piece) + len(line) > _PIPE:
                self.stream.write(piece)
                piece = ""
            piece += line
        if piece:
            self.stream.write(piece)
        super().flush()


def log_event(event: str, level: int = logging.INFO, *, error: BaseException | None = None, **fields: object) -> None:
    """Log an event with its fields, and with the traceback of an unexpected error."""
    logger.log(level, event, extra={"fields": fields}, exc_info=error)


def log_request(**fields: object) -> None:
    """Log a request."""
    if _access.isEnabledFor(logging.INFO):
        _access.info("request", extra={"fields": fields})


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    log_event(str(message), logging.WARNING)


def flush() -> None:
    """Write the lines that are still kept."""
    for handler in _access.handlers:
        handler.flush()


def configure() -> None:
    """Write JSON lines to stderr: our own events, the server's warnings, and those of Python."""
    warnings.showwarning = _show_warning
    for name, level, handler in (
        ("relae.serve", logging.INFO, logging.StreamHandler(sys.stderr)),
        ("uvicorn.error", logging.WARNING, logging.StreamHandler(sys.stderr)),
        ("relae.serve.access", logging.INFO, GatheringHandler(sys.stderr)),
    ):
        handler.setFormatter(JsonLines())
        named = logging.getLogger(name)
        named.handlers, named.propagate = [handler], False
        named.setLevel(level)
