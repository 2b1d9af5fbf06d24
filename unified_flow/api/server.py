"""The application under uvicorn: the socket, the connections below HTTP, the signals, the end.

uvicorn bounds neither the number of connections nor the time for a request's head: clients that
connect and send nothing could use up all descriptors.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import Any, cast

import uvicorn
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from unified_flow.api import problems
from unified_flow.api.app import make_app
from unified_flow.api.dependencies import AppState
from unified_flow.api.gate import log_exchange
from unified_flow.api.http_exchange import HttpExchange, response_of
from unified_flow.api.metrics import Metrics
from unified_flow.api.running_turns import RunningTurns
from unified_flow.config.tables import ServeSettings
from unified_flow.engine.services import Services
from unified_flow.engine.telemetry.logs import logged
from unified_flow.errors import ConfigError, RetrievalError

AFTER_GRACE_S = 5.0  # for answers to be sent once the turns have been cancelled
BACKLOG = 1024
# How long a connection stays open without a request: longer than clients keep one in their pools
# (Go and Rust's hyper 90 s, nginx and AWS's load balancer 60 s, httpx 5 s), so that the client
# closes it. A server that closes it just as a request arrives loses that request.
KEEP_ALIVE_S = 120
RESERVED_DESCRIPTORS = 64  # for files, and the sockets of the loop
DESCRIPTORS_PER_TURN = 4  # for its journal, its search, its model and a tool
MIN_CONNECTIONS = 8


def serve(services: Services) -> None:
    """Until a signal ends it.

    Raises ConfigError for an address that cannot be used, InputError for missing documents.
    """
    settings = services.settings.serve
    with logged(services.home):
        app = make_app(services)
        state: AppState = app.state.shared
        listener = _listen(settings.host, settings.port)
        _warm_up(services)
        connections = Connections(
            most=max_connections(settings.max_connections, settings.max_turns),
            head_s=settings.body_timeout_s,
            malformed=partial(_malformed, services, state.metrics),
        )
        config = config_of(app, connections, settings)
        _Server(config, state.running, settings.shutdown_grace_s).run(sockets=[listener])


def config_of(app: FastAPI, connections: Connections, settings: ServeSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=connections.protocol,  # type: ignore[arg-type]  # uvicorn only calls it
        ws="none",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        lifespan="on",
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies or None,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=int(settings.shutdown_grace_s + AFTER_GRACE_S),
    )


def _warm_up(services: Services) -> None:
    """Read the documents now: the first question has no more time than any other."""
    if services.documents is None:
        return
    with suppress(RetrievalError):  # a question fails of it again, and then it is reported
        services.documents.search("documents")


class _Server(uvicorn.Server):
    """After a signal no turn begins; those that run are interrupted after a grace period."""

    def __init__(self, config: uvicorn.Config, running: RunningTurns, grace_s: float) -> None:
        super().__init__(config)
        self._running = running
        self._grace_s = grace_s
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        for listener in sockets or ():
            host, port = listener.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            print(f"listening on http://{shown}:{port}", flush=True)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop, sig)

    def _stop(self, sig: int) -> None:
        self._running.stopping = True
        at_once = sig == signal.SIGINT and self.force_exit  # the second Ctrl-C
        delay_s = 0 if at_once else self._grace_s
        asyncio.get_running_loop().call_later(delay_s, self._running.cancel_all)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as exc:
        raise ConfigError(
            f"{host}:{port} cannot be listened on: {exc.strerror or exc}",
            hint="name another with --host and --port (0 takes any free port)",
        ) from exc


@dataclass
class Connections:
    """`most` at once. `head_s` is the time that a request's head may take. `malformed` makes the
    answer to bytes that are no HTTP, from the client's address and the scope of the request whose
    body they are, if any."""

    most: int
    head_s: float
    malformed: Callable[[str, Scope | None], bytes]
    open: int = 0
    idle: dict[_BoundedProtocol, None] = field(default_factory=dict)  # no request yet, oldest first

    def protocol(self, **options: Any) -> _BoundedProtocol:
        """Called by uvicorn in place of a protocol class."""
        return _BoundedProtocol(self, **options)

    def add(self, connection: _BoundedProtocol) -> None:
        """Where there is no room, the one that has been idle longest is closed."""
        self.open += 1
        if self.open > self.most:
            next(iter(self.idle), connection).transport.abort()

    def remove(self, connection: _BoundedProtocol) -> None:
        self.open -= 1
        self.idle.pop(connection, None)


class _BoundedProtocol(H11Protocol):
    def __init__(self, connections: Connections, **options: Any) -> None:
        super().__init__(**options)
        self._connections = connections
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._head_arrived()
        elif self._deadline is None:
            self._await_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # The client may have sent the beginning of its next request already.
        if self._deadline is None and self.cycle is not None and self.cycle.response_complete:
            self._connections.idle[self] = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_arrived()
        self._connections.remove(self)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        client = str(self.client[0]) if self.client else "unknown"
        in_body = self.cycle is not None and not self.cycle.response_complete
        scope = cast("Scope", self.cycle.scope) if in_body else None
        self.transport.write(self._connections.malformed(client, scope))
        self.transport.close()

    def _await_head(self) -> None:
        self._connections.idle[self] = None
        self._deadline = self.loop.call_later(self._connections.head_s, self.transport.abort)

    def _head_arrived(self) -> None:
        self._connections.idle.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _malformed(services: Services, metrics: Metrics, client: str, scope: Scope | None) -> bytes:
    """A whole 400 response. One without a request (`scope`) is logged here, else by the gate."""
    language = services.settings.language
    if scope is not None:
        exchange = HttpExchange.of_scope(scope, language)
    else:
        exchange = HttpExchange.begin(Headers({}), client, "OTHER", "", language)
    response = response_of(problems.of_status(HTTPStatus.BAD_REQUEST), exchange)
    response.headers.update({"X-Request-ID": exchange.request_id, "Connection": "close"})
    exchange.status = response.status_code
    if scope is None:
        log_exchange(exchange, services, metrics)
    head = b"".join(name + b": " + value + b"\r\n" for name, value in response.raw_headers)
    return b"HTTP/1.1 400 Bad Request\r\n" + head + b"\r\n" + bytes(response.body)


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
