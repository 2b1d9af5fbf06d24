"""Running the application: the socket, the signals, the end."""

from __future__ import annotations

import asyncio
import signal
import socket
from contextlib import suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI

from unified_flow.api.app import make_app
from unified_flow.api.connections import Connections, room_for
from unified_flow.api.context import Serving
from unified_flow.config.tables import ServeSettings
from unified_flow.engine.services import Services
from unified_flow.engine.telemetry.logs import logged
from unified_flow.errors import ConfigError, RetrievalError

AFTER_GRACE_S = 5.0  # for answers to be sent once the turns have been cancelled
BACKLOG = 1024
# For how long a connection without a request is kept open. Longer than clients keep one in their
# pools (Go and Rust's hyper 90 s, nginx and AWS's load balancer 60 s, httpx 5 s), so that they end
# it: one that the server ends just as a request is sent on it costs that request.
KEEP_ALIVE_S = 120


def serve(services: Services) -> None:
    """Until a signal ends it.

    Raises ConfigError for an address that cannot be had, InputError for documents that are not
    there.
    """
    with logged(services.home):
        _serve(services)


def _serve(services: Services) -> None:
    settings = services.settings.serve
    app = make_app(services)
    listening = _listen(settings.host, settings.port)
    _warm_up(services)
    connections = Connections(
        most=room_for(settings.max_connections, settings.max_turns),
        head_s=settings.body_timeout_s,
        refused=app.state.refused,
    )
    config = config_of(app, connections, settings)
    _Server(config, app, settings.shutdown_grace_s).run(sockets=[listening])


def config_of(app: FastAPI, connections: Connections, settings: ServeSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=connections.protocol,  # type: ignore[arg-type]  # called as the class would be
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
    """Read the documents now: the first question has as little time as any other."""
    if services.documents is None:
        return
    with suppress(RetrievalError):  # a question meets it again, and then a person is told
        services.documents.search("documents")


class _Server(uvicorn.Server):
    """On a signal no turn begins any more; those that run are interrupted after a grace."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, grace_s: float) -> None:
        super().__init__(config)
        self._serving: Serving = app.state.serving
        self._grace_s = grace_s
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        for each in sockets or ():
            host, port = each.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            print(f"listening on http://{shown}:{port}", flush=True)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop, sig)

    def _stop(self, sig: int) -> None:
        running = self._serving.running
        running.stopping = True
        again = sig == signal.SIGINT and self.force_exit  # the second Ctrl-C
        asyncio.get_running_loop().call_later(0 if again else self._grace_s, running.cancel_all)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as exc:
        raise ConfigError(
            f"{host}:{port} cannot be listened on: {exc.strerror or exc}",
            hint="name another with --host and --port (0 takes any free port)",
        ) from exc
