"""Connections of one worker, with limits on the size of request heads, on time and on number.

uvicorn has no limits on request lines and headers, on the time that clients take, or on pipelined requests. They are
set here, on its protocol: parser callbacks count what arrives, and every connection is in one of two queues while the
service waits for its client. The one that has waited longest is at the front: it is the first to run out of time,
and the first to go when there are too many. So a silent connection never keeps out one that speaks.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import takewhile
from logging import WARNING
from time import monotonic
from typing import TYPE_CHECKING, Any

from httptools import HttpParserError, HttpParserUpgrade
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from relae.serve._log import log_event
from relae.serve._problem import error_body
from relae.serve._settings import Settings

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

MAX_HEAD = 16_384  # bytes of a request line and its headers
MAX_HEADERS = 100
_MAX_PIPELINED = 8  # requests that wait on one connection for the answers to earlier ones
# Chunks of one byte each arrive as six: more than this many bytes beside a byte of the body are no body.
_BYTES_PER_BODY_BYTE = 9
_MAX_UNREAD = 1 << 28  # bytes of answers that clients have not read yet, in all
_LINGER = 1.0  # seconds to read a refusal before the connection is closed, which resets it if more was sent
_STOP_GRACE = 1.0  # seconds that idle connections stay open after a stop, for requests that are on their way

_NOT_HTTP = 400, "this is not a request in HTTP/1.1"
_TOO_LONG = 431, f"the request line and the headers are longer than {MAX_HEAD:,} bytes: send less"
_TOO_MANY = 431, f"there are more than {MAX_HEADERS} headers: send fewer"


class ConnectionPool:
    """All connections of one worker."""

    def __init__(self, settings: Settings) -> None:
        self._max_connections, self._seconds = settings.max_connections, settings.client_seconds
        self._all: set[Connection] = set()
        # by the moment since which they wait, the earliest first
        self._waiting: OrderedDict[Connection, float] = OrderedDict()  # for the rest of a request, or to read an answer
        self._idle: OrderedDict[Connection, float] = OrderedDict()  # for another request, after an answer that was read
        self.refused = self._too_many = self._too_slow = 0  # that were closed for this since the last sweep
        self.stopping = False

    def protocol(self) -> Callable[..., "Connection"]:
        """Return a function that makes a connection of this pool from the arguments of uvicorn."""
        return lambda **arguments: Connection(self, **arguments)

    def add(self, connection: "Connection") -> None:
        """Add a connection; if there are too many, drop the one that has kept the service waiting for longest."""
        self._all.add(connection)
        self._waiting[connection] = monotonic()
        if len(self._all) > self._max_connections:
            self._too_many += 1
            queue = self._waiting if len(self._waiting) > 1 or not self._idle else self._idle
            longest = next(iter(queue))
            if longest is connection:  # all others are being answered
                connection.refuse(503, "there are too many connections: try again in a moment", "retry-after: 1\r\n")
            else:
                longest.drop()

    def discard(self, connection: "Connection") -> None:
        """Remove a connection that has ended."""
        self._all.discard(connection)
        self.mark_working(connection)

    def mark_working(self, connection: "Connection") -> None:
        """Note that the service works on a request of a client."""
        self._waiting.pop(connection, None)
        self._idle.pop(connection, None)

    def mark_waiting(self, connection: "Connection") -> None:
        """Note that the service waits for a client from now on."""
        self.mark_working(connection)
        self._waiting[connection] = monotonic()

    def mark_idle(self, connection: "Connection") -> None:
        """Note that a client has its answer, and sends nothing."""
        self.mark_working(connection)
        self._idle[connection] = monotonic()

    def sweep(self) -> None:
        """End connections that take too long, or leave too much unread; called every second."""
        late = monotonic() - self._seconds
        overdue = list(takewhile(lambda connection: self._waiting[connection] < late, self._waiting))
        self._too_slow += sum(connection.time_out(self._seconds) for connection in overdue)
        unread = {connection: size for connection in self._waiting if (size := connection.unread) > 0}
        total = sum(unread.values())
        for connection, size in unread.items():
            if total <= _MAX_UNREAD:
                break
            connection.drop()
            self._too_slow += 1
            total -= size
        closed = self.refused, self._too_many, self._too_slow
        if any(closed):
            refused, too_many, too_slow = closed
            log_event("connections closed", WARNING, refused=refused, too_many=too_many, too_slow=too_slow)
            self.refused = self._too_many = self._too_slow = 0

    def stop(self) -> None:
        """Answer requests that are on their way, then close idle connections."""
        self.stopping = True
        for connection in list(self._all):
            connection.stop()


class _Refused(Exception):
    """Ends the parsing of a request that is not read any further."""


class Connection(HttpToolsProtocol):
    """A connection of uvicorn's with limits."""

    def __init__(self, pool: ConnectionPool, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._pool = pool
        self._left = MAX_HEAD  # bytes that may still arrive of the head, of chunks' sizes and of trailers
        self._in_head = False  # a head has begun and is not complete
        self._in_body = False
        self._unanswered: deque[RequestResponseCycle] = deque()  # requests whose heads are complete
        self._refusal = _NOT_HTTP  # status and message, should the parser give up
        self._held: ASGI3Application | None = None  # what answers the first of them, when it is complete
        self._ended = False  # nothing more is read

    # --- reading ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Join the pool."""
        super().connection_made(transport)
        self._pool.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the pool."""
        self._ended = True
        self._pool.discard(self)
        self._notify_disconnected()
        super().connection_lost(exc)
        if self._held is not None:  # never answered: without circles there is nothing for the garbage collector to do
            self._held, self.cycle = None, None  # type: ignore[assignment]
            self._unanswered.clear()

    def data_received(self, data: bytes) -> None:
        """Parse data, up to the limits."""
        if self._ended:
            return
        self._unset_keepalive_if_required()
        self._left -= len(data)
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade:
            pass  # to what is not spoken here: the request is answered in HTTP
        except HttpParserError:
            # without a line in the log for each, which would cost more than all the rest
            self.refuse(*self._refusal)
        if self._left < 0:
            self.refuse(*_TOO_LONG)

    def on_message_begin(self) -> None:
        """Begin to read a head."""
        super().on_message_begin()
        self._left = MAX_HEAD  # from the next piece on: this one may be mostly of an earlier request
        self._in_head = True
        if not self._unanswered:
            self._pool.mark_waiting(self)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or a trailer."""
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            self._refusal = _TOO_MANY
            raise _Refused

    def on_headers_complete(self) -> None:
        """Begin to answer."""
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEAD:
            self._refusal = _TOO_LONG
            raise _Refused
        if len(self.pipeline) >= _MAX_PIPELINED:
            self._pool.refused += 1
            self.drop()
            raise _Refused
        self._in_head, self._in_body = False, True
        super().on_headers_complete()
        self._unanswered.append(self.cycle)
        if self._pool.stopping:
            self.cycle.keep_alive = False
        self._pool.mark_waiting(self)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: "ASGI3Application") -> None:
        """Start to answer when the request is complete, so that one who sends slowly costs next to nothing.

        Unless the body is too large to hold it back, or the client waits for `100-continue`.
        """
        if cycle.more_body and not cycle.waiting_for_100_continue and len(cycle.body) <= HIGH_WATER_LIMIT:
            self._held = app
        else:
            super()._start_asgi_task(cycle, app)

    def _start_held(self) -> None:
        if self._held is not None:
            app, self._held = self._held, None
            super()._start_asgi_task(self._unanswered[0], app)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._left += _BYTES_PER_BODY_BYTE * len(body)
        super().on_body(body)
        if len(self.cycle.body) > HIGH_WATER_LIMIT:
            self._start_held()

    def on_message_complete(self) -> None:
        """Note that a request is there."""
        super().on_message_complete()
        self._in_body = False
        if self._unanswered:
            self._pool.mark_working(self)
            if self.cycle is self._unanswered[0]:
                self._start_held()
        else:  # refused before all of it was there
            self._answered()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the client to read this answer."""
        self._unanswered.popleft()
        super().on_response_complete()
        if not self._unanswered and not self._in_body:
            self._answered()

    def _answered(self) -> None:
        if self.unread or self._in_head or self.transport.is_closing():
            self._pool.mark_waiting(self)
        else:
            self._pool.mark_idle(self)

    @property
    def unread(self) -> int:
        """Bytes that the client has not read yet, beside those that the system holds."""
        return self.transport.get_write_buffer_size()

    # --- ends --------------------------------------------------------------------------------------------------

    def refuse(self, status: int, message: str, headers: str = "") -> None:
        """Answer without the application, and close; earlier requests are answered first."""
        if self._ended or self.transport.is_closing():
            return
        self._pool.refused += 1
        earlier = len(self._unanswered) > self._in_body
        if earlier and not self._in_body:
            self._ended = True
            self.cycle.keep_alive = False  # that of the last request: it ends the connection
        elif earlier or (self._in_body and self.cycle.response_started):
            self.drop()
        else:
            self._write(status, message, headers)
            if self.transport.can_write_eof():
                self.transport.write_eof()
            self.flow.pause_reading()  # what else is sent costs nothing
            self.parser = None  # type: ignore[assignment]  # with what it holds; as when the connection is lost
            self._pool.mark_waiting(self)
            self.loop.call_later(_LINGER, self.transport.abort)

    def _write(self, status: int, message: str, headers: str = "") -> None:
        """Write a response instead of the application's, for which the client counts as disconnected."""
        self._ended = True
        self._notify_disconnected()
        body = error_body(message)
        head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n{headers}connection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head.encode() + body)

    def _notify_disconnected(self) -> None:
        """Let the application know that the client has left."""
        for cycle in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()

    def time_out(self, seconds: float) -> bool:
        """End a connection whose client took too long, unless all that it did was to read its answer slowly."""
        if self._ended or self.unread or self.transport.is_closing() or len(self._unanswered) > 1:
            self.drop()
        elif self._in_head or (self._in_body and not self.cycle.response_started):
            self._write(408, f"the request took longer than {seconds:g} seconds to arrive: send it again")
            self.transport.close()
        elif self.cycle is not None and not self._in_body:
            self._pool.mark_idle(self)
            return False
        else:  # nothing was said, or a body goes on after its answer
            self._ended = True
            self.transport.close()
        return True

    def drop(self) -> None:
        """End a connection at once."""
        self._ended = True
        self._pool.discard(self)
        self.transport.abort()

    def stop(self) -> None:
        """Answer requests that have begun or begin in a moment, and no more."""
        if self.cycle is not None:
            self.cycle.keep_alive = False
        self.loop.call_later(_STOP_GRACE, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if not self._in_head and not self._unanswered and not self.transport.is_closing():
            self.transport.close()

    def shutdown(self) -> None:
        """Do nothing: `stop` ends connections."""
