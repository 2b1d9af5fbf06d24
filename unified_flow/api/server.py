"""The application under uvicorn: the socket, the signals, the end."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from contextlib import nullcontext, suppress
from functools import partial
from types import FrameType

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from unified_flow.api.app import make_app
from unified_flow.api.connections import Connections, max_connections
from unified_flow.api.dependencies import AppState
from unified_flow.api.running_turns import RunningTurns
from unified_flow.api.upkeep import Alarms
from unified_flow.config.tables import ServeSettings
from unified_flow.engine.services import Services
from unified_flow.engine.telemetry.logs import JsonLines, logged
from unified_flow.errors import ConfigError, RetrievalError

AFTER_GRACE_S = 5.0  # for answers to be sent once the turns have been cancelled
BACKLOG = 1024
# How long a connection stays open without a request: longer than clients keep one in their pools
# (Go and Rust's hyper 90 s, nginx and AWS's load balancer 60 s, httpx 5 s), so that the client
# closes it. A server that closes it just as a request arrives loses that request.
KEEP_ALIVE_S = 120


def serve(services: Services) -> None:
    """Serve until a signal ends it.

    Raises ConfigError for an address that cannot be used, InputError for missing documents.
    """
    settings = services.settings.serve
    alarms = Alarms()
    lost = partial(alarms.count, "stdout")
    on_stdout = JsonLines(lost) if settings.json_logs else nullcontext()
    with alarms, logged(services.home), on_stdout:
        app = make_app(services, alarms)
        state: AppState = app.state.shared
        listener = listen(settings.host, settings.port)
        _warm_up(services)
        connections = Connections(
            most=max_connections(settings.max_connections, settings.max_turns),
            head_s=settings.body_timeout_s,
        )
        config = config_of(app, connections, settings)
        _Server(config, state.running, services).run(sockets=[listener])


def config_of(app: FastAPI, connections: Connections, settings: ServeSettings) -> uvicorn.Config:
    return uvicorn.Config(
        connections.tracked(app),
        loop="asyncio",  # also where uvloop is installed, whose transports are none of asyncio's
        http=connections.around(H11Protocol),  # type: ignore[arg-type]  # uvicorn only calls it
        ws="none",
        backlog=BACKLOG,
        log_config=None,
        log_level="error",  # a warning is what a client sent: it is in the query log, and bounded
        access_log=False,
        server_header=False,
        date_header=True,
        lifespan="on",
        proxy_headers=False,  # the application's, within what tracks connections
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
    """After a signal no turn begins; those that run are interrupted after a grace period, and those
    that workers run go on."""

    def __init__(self, config: uvicorn.Config, running: RunningTurns, services: Services) -> None:
        super().__init__(config)
        self._running = running
        self._services = services
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        for listener in sockets or ():
            host, port = listener.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            print(f"listening on http://{shown}:{port}", flush=True)
        # What start-up has made stays: a full collection, which stops every turn for a tenth of a
        # second, need not go through it.
        gc.freeze()
        # Fifty turns hold as many objects, which would be gone through again and again.
        gc.set_threshold(50_000)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop, sig)

    def _stop(self, sig: int) -> None:
        self._running.stopping = self._services.dispatcher.stopping = True
        at_once = sig == signal.SIGINT and self.force_exit  # the second Ctrl-C
        delay_s = 0 if at_once else self._services.settings.serve.shutdown_grace_s
        asyncio.get_running_loop().call_later(delay_s, self._running.cancel_all)


def listen(host: str, port: int) -> socket.socket:
    """Connections of a listener of protocol TCP, which `create_server` does not name, get
    TCP_NODELAY from asyncio: without it each answer waits 40 ms for a delayed acknowledgement."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family, backlog=BACKLOG) as listener:
            return socket.socket(family, listener.type, socket.IPPROTO_TCP, listener.detach())
    except OSError as exc:
        raise ConfigError(
            f"{host}:{port} cannot be listened on: {exc.strerror or exc}",
            hint="name another with --host and --port (0 takes any free port)",
        ) from exc
