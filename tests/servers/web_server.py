"""A real web site on loopback, with pages that misbehave as they are told.

    with WebServer({"/": html("<p>…</p>"), "/old": redirect("/")}) as site:
        asyncio.run(fetch(site.url("/"), site.policy()))

`requests` holds what came in, with headers. `policy()` lets this server's address and port be
fetched, and nothing else that is private. `host` is the loopback address that it listens on: each
of 127.0.0.0/8 is a server of its own. With `tls` it speaks https.
"""

from __future__ import annotations

import errno
import gzip
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from unified_flow.config.tables import ResearchSettings


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]


Behaviour = Callable[["_Handler"], None]


def reply(
    body: bytes | str,
    content_type: str = "text/html; charset=utf-8",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Behaviour:
    data = body.encode() if isinstance(body, str) else body

    def run(h: _Handler) -> None:
        length = {"Content-Length": str(len(data))}
        h.head(status, {"Content-Type": content_type, **length, **(headers or {})})
        h.wfile.write(data)

    return run


def html(body: str, title: str = "A page", status: int = 200, **headers: str) -> Behaviour:
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    page = f"<!doctype html><html><head><title>{title}</title></head><body>{body}</body></html>"
    return reply(page, status=status, headers=named)


def redirect(to: str, status: int = 302, **headers: str) -> Behaviour:
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    return lambda h: h.head(status, {"Location": to, "Content-Length": "0", **named})


def bomb(megabytes: int) -> Behaviour:
    """So many megabytes of spaces, packed a thousandfold."""
    return reply(
        gzip.compress(b" " * megabytes * 1024 * 1024), headers={"Content-Encoding": "gzip"}
    )


def endless() -> Behaviour:
    """As much as the client takes, as fast as it takes it."""

    def run(h: _Handler) -> None:
        h.head(200, {"Content-Type": "text/html", "Connection": "close"})
        while not h.server.owner.closing.is_set():
            h.wfile.write(b"<p>more</p>" * 4096)

    return run


def trickle(interval_s: float = 0.02) -> Behaviour:
    """A byte now and then, for ever: no single read is slow."""

    def run(h: _Handler) -> None:
        h.head(200, {"Content-Type": "text/html", "Connection": "close"})
        while not h.server.owner.closing.wait(interval_s):
            h.wfile.write(b" ")

    return run


def silence() -> Behaviour:
    """Reads the request and never answers."""

    def run(h: _Handler) -> None:
        h.close_connection = True
        h.server.owner.closing.wait()

    return run


def cut() -> Behaviour:
    """Announces more than it sends."""

    def run(h: _Handler) -> None:
        h.head(200, {"Content-Type": "text/html", "Content-Length": "1000"})
        h.wfile.write(b"<p>half")
        h.close_connection = True
        h.connection.shutdown(socket.SHUT_RDWR)

    return run


@dataclass
class WebServer:
    pages: dict[str, Behaviour] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 0
    tls: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._server = _Server(self)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up_all()
        self._server.server_close()
        if kind is None:
            assert self.problems == []

    @property
    def asked(self) -> list[str]:
        return [request.path for request in self.requests]

    def url(self, path: str = "/", host: str | None = None) -> str:
        return f"{'https' if self.tls else 'http'}://{host or self.host}:{self.port}{path}"

    def policy(self, **changes: Any) -> ResearchSettings:
        allowed = [f"{self.host}:{self.port}", *changes.pop("allow_private", ())]
        return ResearchSettings(allow_private=allowed, **changes)


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, owner: WebServer) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        super().__init__((owner.host, owner.port), _Handler)

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        if self.owner.tls is not None:
            # The handshake is the handler's: a client that goes away must not stop the server.
            connection = self.owner.tls.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        return connection, address

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up_all(self) -> None:
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the client was first

    def handle_error(self, request: Any, client_address: Any) -> None:
        exc = sys.exception()
        gone = isinstance(exc, OSError) and exc.errno == errno.ENOTCONN
        if not gone and not isinstance(exc, ConnectionError | ssl.SSLError):  # the client may leave
            self.owner.problems.append(repr(exc))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def do_GET(self) -> None:
        owner = self.server.owner
        owner.requests.append(Request(self.path, dict(self.headers)))
        missing = reply("<p>nothing here</p>", status=404)
        owner.pages.get(self.path, missing)(self)

    def log_message(self, format: str, *args: Any) -> None:
        pass
