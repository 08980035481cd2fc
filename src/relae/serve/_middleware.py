"""Middleware of all requests: ids, log lines and metrics, and limits on host names and bodies."""

import re
from ipaddress import ip_address
from itertools import count
from logging import ERROR
from os import urandom
from time import perf_counter

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from relae.serve._log import log_event, log_request
from relae.serve._metrics import Metrics
from relae.serve._problem import Problem, error_body, show_value

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_PROCESS, _numbers = urandom(4).hex().encode(), count(1)  # to ask the system for each would cost more than the rest
_UNEXPECTED = error_body("something went wrong here that is not your fault: the log of the service has the details")
_PORT = re.compile(r":\d*$")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")


class Observe:
    """Number, log and count requests by their routes; histories, searches and keys are never written."""

    def __init__(self, app: ASGIApp, metrics: Metrics, log: bool) -> None:
        self._app, self._metrics, self._log = app, metrics, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and log its outcome."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, has_started = perf_counter(), 500, False
        request_id = _request_id(scope)

        async def send_with_id(message: Message) -> None:
            nonlocal status, has_started
            if message["type"] == "http.response.start":
                status, has_started = message["status"], True
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-request-id", request_id),
                    (b"x-content-type-options", b"nosniff"),
                ]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except Exception as error:
            log_event("a request failed", ERROR, error=error, request_id=request_id.decode())
            if has_started:
                raise
            await Response(_UNEXPECTED, 500, media_type="application/json")(scope, receive, send_with_id)
        finally:
            seconds = perf_counter() - started
            route = getattr(scope.get("route"), "path_format", None)
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.request(method, route or "other", status, seconds)
            if self._log:
                client = scope.get("client")
                log_request(
                    method=method,
                    path=route or scope["path"][:200],
                    status=status,
                    ms=round(1000 * seconds, 2),
                    client=client[0] if client else None,
                    request_id=request_id.decode(),
                )


class LimitHosts:
    """Refuse requests for other names than this service's.

    A page from anywhere can have its own name point to 127.0.0.1, and then read what a service there answers (DNS
    rebinding). So over loopback only local names are answered, and addresses, to which no page of another server
    belongs. Names that are given are answered besides; and with them only those, over whatever way.
    """

    def __init__(self, app: ASGIApp, host: str, allowed: tuple[str, ...]) -> None:
        self._app = app
        self._everywhere, self._any = bool(allowed), "*" in allowed
        self._names = {_plain_name(name) for name in (host, *allowed)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, if it is for this service."""
        if scope["type"] == "http" and not self._any and (self._everywhere or _is_loopback(scope.get("server"))):
            for name, value in scope["headers"]:
                if name == b"host" and not self._answers_to(value.decode("latin-1")):
                    message = f"this service does not answer to the name {show_value(value.decode('latin-1'))}"
                    body = error_body(f"{message}: `relae serve --allowed-host NAME` allows it")
                    await Response(body, 421, media_type="application/json")(scope, receive, send)
                    return
        await self._app(scope, receive, send)

    def _answers_to(self, host: str) -> bool:
        name = _plain_name(_PORT.sub("", host))
        return name in self._names or name == "localhost" or name.endswith(".localhost") or _is_address(name)


def _plain_name(name: str) -> str:
    return name.lower().removesuffix(".").removeprefix("[").removesuffix("]")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(server: tuple[str, int | None] | None) -> bool:
    """Tell whether a connection came to a loopback address of this machine."""
    return server is not None and _is_address(server[0]) and ip_address(server[0]).is_loopback


class LimitBody:
    """Refuse bodies that are too large, by their declared length and by the bytes that arrive."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app, self._max_bytes = app, max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count what is read of it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        declared, received = int(length) if length.isdigit() else 0, 0

        async def limited() -> Message:
            nonlocal received
            if declared > self._max_bytes:  # before a byte of it is read
                raise self._too_large()
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise self._too_large()
            return message

        await self._app(scope, limited, send)

    def _too_large(self) -> Problem:
        return Problem(413, f"the body is larger than {self._max_bytes:,} bytes: ask for less at a time")


def _request_id(scope: Scope) -> bytes:
    """Return the id from the caller or a proxy, if it is a plain one, or a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return bytes(value)
    return b"%b-%x" % (_PROCESS, next(_numbers))
