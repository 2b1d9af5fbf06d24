"""How model servers are connected to.

An SSL context costs 15 ms, nearly all of it the certificates. They are loaded once, and only when
an https address is asked for.

One pool of connections is slow with many: before and after each request httpcore looks at every
pair of idle ones, and asks the socket of each. So each concurrent call has a connection of its own
(`connection.py`), and neither a pool nor httpx's client stands above it.
"""

from __future__ import annotations

import ipaddress
import ssl
from functools import cache
from urllib.request import getproxies

import httpx

from unified_flow.servers.connection import HttpConnection

_PORTS = {"http": 80, "https": 443}


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
    context = httpx.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])  # as httpcore does
    return context


class SpreadTransport(httpx.AsyncBaseTransport):
    """A call takes the connection that became free last, so that a few calls keep few."""

    def __init__(self, url: httpx.URL, verify: ssl.SSLContext | None) -> None:
        self._host = url.raw_host.decode("ascii")
        self._port = url.port or _PORTS[url.scheme]
        self._verify = verify
        self._open: set[HttpConnection] = set()
        self._free: list[HttpConnection] = []
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        connection = await self._connection()
        try:
            return await connection.send(request, self._release)
        except BaseException:
            self._close(connection)
            raise

    async def _connection(self) -> HttpConnection:
        while self._free:
            connection = self._free.pop()
            if not connection.has_expired():
                return connection
            self._close(connection)
        connection = await HttpConnection.open(self._host, self._port, self._verify)
        if self._closed:  # meanwhile
            connection.close()
            raise httpx.ConnectError("the client was closed")
        self._open.add(connection)
        return connection

    def _release(self, connection: HttpConnection) -> None:
        if connection.make_idle():
            self._free.append(connection)
        else:
            self._close(connection)

    def _close(self, connection: HttpConnection) -> None:
        self._open.discard(connection)
        connection.close()

    async def aclose(self) -> None:
        self._closed = True
        for connection in tuple(self._open):
            self._close(connection)


class _ByProxy(httpx.AsyncBaseTransport):
    """Over the proxies of the environment, which only httpx's client knows how to choose."""

    def __init__(self) -> None:
        self._client = httpx.AsyncClient(verify=trusted_context(), timeout=None)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._client.send(request, stream=True, follow_redirects=False)

    async def aclose(self) -> None:
        await self._client.aclose()
