"""Connections below HTTP: how many there are, and how long a request's head may take.

A server bounds neither the number of connections nor the time for a head: clients that connect and
send nothing could use up all descriptors. This stands around a server's protocol and around the
application, on asyncio's and ASGI's documented names only.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

RESERVED_DESCRIPTORS = 64  # for files, and the sockets of the loop
DESCRIPTORS_PER_TURN = 4  # for its journal, its search, its model and a tool
MIN_CONNECTIONS = 8

MakeProtocol = Callable[..., asyncio.Protocol]


@dataclass
class Connections:
    """`most` at once. `head_s` is the time that a request's head may take."""

    most: int
    head_s: float
    _by_address: dict[Any, Connection] = field(default_factory=dict)
    # Without a request, or without reading their answer; oldest first.
    _idle: dict[Connection, None] = field(default_factory=dict)

    def around(self, make_protocol: MakeProtocol) -> MakeProtocol:
        """A maker of protocols, for the server to call in place of its own."""
        return lambda *args, **options: Connection(self, make_protocol(*args, **options))

    def tracked(self, app: ASGIApp) -> ASGIApp:
        """The application, which lets its connection know when a request begins and ends. It has to
        be the outermost: `scope["client"]` must still be the connection's own address."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            address = scope.get("client")
            connection = self._by_address.get(tuple(address)) if address else None
            if scope["type"] != "http" or connection is None:
                await app(scope, receive, send)
                return
            connection.begin_request()
            try:
                await app(scope, receive, send)
            finally:
                connection.end_request()

        return serve

    def add(self, connection: Connection) -> None:
        """Add a connection; if there is no room, close the one that has been idle longest."""
        self._by_address[connection.address] = connection
        if len(self._by_address) > self.most:
            next(iter(self._idle), connection).transport.abort()

    def remove(self, connection: Connection) -> None:
        if self._by_address.get(connection.address) is connection:
            del self._by_address[connection.address]
        self._idle.pop(connection, None)

    def set_idle(self, connection: Connection, *, idle: bool) -> None:
        if idle and self._by_address.get(connection.address) is connection:  # not lost meanwhile
            self._idle[connection] = None
        else:
            self._idle.pop(connection, None)


class Connection(asyncio.Protocol):
    """The server's protocol, watched."""

    transport: asyncio.Transport

    def __init__(self, connections: Connections, protocol: asyncio.Protocol) -> None:
        self._connections = connections
        self._protocol = protocol
        self._deadline: asyncio.TimerHandle | None = None
        self._answering = 0  # requests; the next one may begin before the one before has ended
        self._unread = False  # more has been written than the client takes
        self.address: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.address = tuple((transport.get_extra_info("peername") or (id(self),))[:2])
        self._protocol.connection_made(transport)
        self._connections.add(self)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        if not self._answering and self._deadline is None:
            self._await_head()
        self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_arrived()
        self._connections.remove(self)
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self._unread = True
        self._say_whether_idle()
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._unread = False
        self._say_whether_idle()
        self._protocol.resume_writing()

    def begin_request(self) -> None:
        self._answering += 1
        self._head_arrived()

    def end_request(self) -> None:
        self._answering -= 1
        self._say_whether_idle()

    def _say_whether_idle(self) -> None:
        self._connections.set_idle(self, idle=self._unread or not self._answering)

    def _await_head(self) -> None:
        self._say_whether_idle()
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(self._connections.head_s, self.transport.abort)

    def _head_arrived(self) -> None:
        self._say_whether_idle()
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def max_connections(wanted: int, turns: int) -> int:
    """At most `wanted`, as many as the process's descriptors allow; raises their soft limit."""
    reserved = turns * DESCRIPTORS_PER_TURN + RESERVED_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return max(MIN_CONNECTIONS, wanted)
    needed = wanted + reserved
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(MIN_CONNECTIONS, min(wanted, soft - reserved))
