"""What surrounds every request: a number and a line in the log, and a limit on what is read."""

import re
from itertools import count
from logging import ERROR
from os import urandom
from time import perf_counter

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relae.serve._log import note, note_request
from relae.serve._metrics import Metrics
from relae.serve._problem import Problem, error_body

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_PROCESS, _numbers = urandom(4).hex().encode(), count(1)  # to ask the system for each would cost more than the rest
_UNFORESEEN = error_body("something went wrong here that is not your fault: the log of the service has the details")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")


class Observe:
    """Number, log and count requests, each by its route: neither histories, nor searches, nor keys are written."""

    def __init__(self, app: ASGIApp, metrics: Metrics, log: bool) -> None:
        self._app, self._metrics, self._log = app, metrics, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note how it went."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, started_to_answer = perf_counter(), 500, False
        request_id = _request_id(scope)

        async def numbered(message: Message) -> None:
            nonlocal status, started_to_answer
            if message["type"] == "http.response.start":
                status, started_to_answer = message["status"], True
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", request_id),
                    (b"x-content-type-options", b"nosniff"),
                ]
            await send(message)

        try:
            await self._app(scope, receive, numbered)
        except Exception as error:
            note("a request failed", ERROR, error=error, request_id=request_id.decode())
            if started_to_answer:
                raise
            await Response(_UNFORESEEN, 500, media_type="application/json")(scope, receive, numbered)
        finally:
            seconds = perf_counter() - started
            route = getattr(scope.get("route"), "path_format", None)
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.request(method, route or "other", status, seconds)
            if self._log:
                client = scope.get("client")
                note_request(
                    method=method,
                    path=route or scope["path"][:200],
                    status=status,
                    ms=round(1000 * seconds, 2),
                    client=client[0] if client else None,
                    request_id=request_id.decode(),
                )


class LimitBody:
    """Refuse bodies that are too large, by what they say of themselves and by what arrives."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count what is read of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        declared, received = int(length) if length.isdigit() else 0, 0

        async def limited() -> Message:
            nonlocal received
            if declared > self._most:  # before a byte of it is asked for
                raise self._too_large()
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._most:
                raise self._too_large()
            return message

        await self._app(scope, limited, send)

    def _too_large(self) -> Problem:
        return Problem(413, f"the body is larger than {self._most:,} bytes: ask for less at a time")


def _request_id(scope: Scope) -> bytes:
    """The id that the caller or a proxy gave, if it is a plain one, or a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return bytes(value)
    return b"%b-%x" % (_PROCESS, next(_numbers))
