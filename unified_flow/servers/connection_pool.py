"""How model servers are connected to.

An SSL context costs 15 ms, nearly all of it the certificates. They are loaded once, and only when
an https address is asked for.

One pool of connections is slow with many: before and after each request httpcore looks at every
pair of idle ones, and asks the socket of each. So each concurrent call has a connection of its own,
and neither a pool nor httpx's client stands above it. Without TLS it reads and writes its socket by
asyncio, not by anyio, which yields to the loop around each: a third of what a call costs.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import select
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from typing import Any
from urllib.request import getproxies

import httpcore
import httpx

KEPT_IDLE_S = 5.0  # as httpx keeps them: shorter than servers do
_PORTS = {"http": 80, "https": 443}
# httpx has each of them, and what derives from them, under the same name.
_ERRORS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)


def new_transport(base_url: httpx.URL | str) -> httpx.AsyncBaseTransport:
    """A way of one's own to the server of `base_url` and to no other; its maker closes it.

    It follows no redirects (they would carry the key elsewhere) and has no time-outs of its
    own: a call has one deadline as a whole. Proxies of the environment are not used for
    loopback addresses.
    """
    url = httpx.URL(base_url)
    if is_loopback(url.host) or not getproxies():
        return SpreadTransport(url, trusted_context() if url.scheme == "https" else None)
    return _ByProxy()


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@cache
def trusted_context() -> ssl.SSLContext:
    """The certificates that this machine trusts; SSL_CERT_FILE names others."""
    return httpx.create_ssl_context()


class SpreadTransport(httpx.AsyncBaseTransport):
    """A call takes the connection that became free last, so that a few calls keep few."""

    def __init__(self, url: httpx.URL, verify: ssl.SSLContext | None) -> None:
        port = url.port or _PORTS[url.scheme]
        self._origin = httpcore.Origin(url.raw_scheme, url.raw_host, port)
        self._verify = verify
        self._open: set[httpcore.AsyncHTTPConnection] = set()
        self._free: list[httpcore.AsyncHTTPConnection] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url, origin = request.url, self._origin
        assert isinstance(request.stream, httpx.AsyncByteStream)
        asked = httpcore.Request(
            request.method,
            httpcore.URL(
                scheme=origin.scheme, host=origin.host, port=origin.port, target=url.raw_path
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        connection = await self._connection()
        try:
            with _errors_of_httpx():
                response = await connection.handle_async_request(asked)
        except BaseException:
            self._open.discard(connection)  # which httpcore has closed
            raise
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=_Released(response, partial(self._release, connection)),
            extensions=response.extensions,
        )

    async def _connection(self) -> httpcore.AsyncHTTPConnection:
        while self._free:
            connection = self._free.pop()
            if not connection.has_expired():
                return connection
            self._open.discard(connection)
            await connection.aclose()
        connection = httpcore.AsyncHTTPConnection(
            self._origin,
            self._verify,
            keepalive_expiry=KEPT_IDLE_S,
            network_backend=_Sockets() if self._verify is None else None,
        )
        self._open.add(connection)
        return connection

    def _release(self, connection: httpcore.AsyncHTTPConnection) -> None:
        if connection.is_idle():
            self._free.append(connection)
        else:
            self._open.discard(connection)

    async def aclose(self) -> None:
        for connection in tuple(self._open):
            await connection.aclose()


class _Sockets(httpcore.AsyncNetworkBackend):
    """Without time-outs."""

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> _SocketStream:
        """Raises ConnectError, of the last address of the host."""
        try:
            addresses = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )
        except socket.gaierror as exc:
            raise httpcore.ConnectError(exc.strerror) from exc
        failed = OSError()
        for family, kind, protocol, _name, address in addresses:
            try:
                return _SocketStream(await _connected(family, kind, protocol, address))
            except OSError as exc:
                failed = exc
        raise httpcore.ConnectError(os.strerror(failed.errno or 0)) from failed


async def _connected(family: int, kind: int, protocol: int, address: Any) -> socket.socket:
    """Raises OSError."""
    connected = socket.socket(family, kind, protocol)
    try:
        connected.setblocking(False)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connected, address)
    except BaseException:
        connected.close()
        raise
    return connected


class _SocketStream(httpcore.AsyncNetworkStream):
    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._loop = asyncio.get_running_loop()
        self._unsent = bytearray()
        self._in_use = self._closed = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        unsent, self._unsent, self._in_use = self._unsent, bytearray(), True
        try:
            if unsent:
                # A server may refuse a request before it has read it, and its answer is there.
                with suppress(OSError):
                    await self._loop.sock_sendall(self._socket, unsent)
            return await self._loop.sock_recv(self._socket, max_bytes)
        except OSError as exc:
            raise httpcore.ReadError(str(exc)) from exc
        finally:
            self._in_use = False
            if self._closed:
                self._socket.close()

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """A request comes as head, body and end. They are sent in one, when its answer is read."""
        self._unsent += buffer

    async def aclose(self) -> None:
        self._closed = True
        if not self._in_use:
            self._socket.close()
            return
        # The loop notices no closed socket, but this, which ends the use.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def get_extra_info(self, info: str) -> Any:
        if info != "is_readable":
            return None
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        return bool(waiting.poll(0))


class _Released(httpx.AsyncByteStream):
    """Ends the call once its response is closed."""

    def __init__(self, response: httpcore.Response, release: Callable[[], None]) -> None:
        assert isinstance(response.stream, AsyncIterable)
        self._response = response
        self._parts = response.stream
        self._release = release

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _errors_of_httpx():
            async for part in self._parts:
                yield part

    async def aclose(self) -> None:
        release, self._release = self._release, lambda: None
        try:
            await self._response.aclose()
        finally:
            release()


class _ByProxy(httpx.AsyncBaseTransport):
    """Over the proxies of the environment, which only httpx's client knows how to choose."""

    def __init__(self) -> None:
        self._client = httpx.AsyncClient(verify=trusted_context(), timeout=None)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._client.send(request, stream=True, follow_redirects=False)

    async def aclose(self) -> None:
        await self._client.aclose()


@contextmanager
def _errors_of_httpx() -> Iterator[None]:
    try:
        yield
    except _ERRORS as exc:
        same: type[httpx.TransportError] = getattr(httpx, type(exc).__name__)
        raise same(str(exc)) from exc
