"""The socket that clients connect to, and the limits of the system."""

import asyncio
import ctypes
import os
import select
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from logging import WARNING
from time import monotonic

from relae.errors import RelaeError
from relae.serve._log import log_event
from relae.serve._settings import Settings

_FILES = 128  # open files beside connections: the model, logs, pipes
_HANDSHAKE = 0.1  # seconds for handshakes that have begun
_DRAIN = 2.0  # seconds at most to accept what waits to be accepted
_ATTACH_FILTER = 26  # SO_ATTACH_FILTER of Linux, which Python has no name for
# Load the flags of TCP; drop the packet if SYN is set, pass it otherwise: (code, jump if true, if false, value)
_NO_SYN = ((0x30, 0, 0, 13), (0x45, 0, 1, 0x02), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF))


def bind(settings: Settings) -> socket.socket:
    """Return a socket at the address of the settings."""
    sock = None
    try:
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        sock = socket.socket(family, kind, protocol)
        if os.name == "posix":  # elsewhere it would let two servers have one port
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError as error:
        if sock is not None:
            sock.close()
        reason = error.strerror or error
        raise RelaeError(f"cannot listen on {settings.host} port {settings.port}: {reason}; choose another") from error
    return sock


def refuse_new_connections(sock: socket.socket) -> None:
    """Let no new connection begin: a close would reset those that were made and not yet accepted.

    Linux drops the first packet of late clients: they try again after a second, and find the port closed, or the next
    service. Elsewhere a connection that is made in the moment of the close is reset.
    """
    if sys.platform == "linux":
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in _NO_SYN))
        with suppress(OSError):  # a system that does not have it
            sock.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("HL", len(_NO_SYN), ctypes.addressof(code)))


async def drain(sockets: Sequence[socket.socket]) -> None:
    """Wait until all connections that were made are accepted."""
    deadline = monotonic() + _DRAIN
    await asyncio.sleep(_HANDSHAKE)
    while select.select(sockets, [], [], 0)[0] and monotonic() < deadline:
        await asyncio.sleep(0.01)


def fit_to_system(settings: Settings) -> Settings:
    """Raise the limit of open files if connections need that, or take fewer connections."""
    if os.name != "posix":
        return settings
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.max_connections + _FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return settings
    connections = max(2, soft - _FILES)
    log_event(f"the system allows {soft:,} open files, and so {connections:,} connections: raise `ulimit -n`", WARNING)
    return replace(
        settings, max_connections=connections, max_waiting=min(settings.max_waiting, max(1, connections // 2))
    )
