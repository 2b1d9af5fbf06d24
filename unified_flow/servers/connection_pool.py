"""How model servers are connected to.

`AsyncClient()` costs 16 ms, nearly all of it the certificates of the SSL context. They are
loaded once, and only when an https address is asked for; a client then costs 0.3 ms.

One pool of connections is slow with many: before and after each request httpcore looks at every
pair of idle ones, and asks the socket of each. So each concurrent call has a pool of its own.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from functools import cache, partial
from urllib.request import getproxies

import httpx


def new_client(base_url: httpx.URL | str) -> httpx.AsyncClient:
    """A client of one's own for servers like `base_url`; its maker closes it.

    It follows no redirects (they would carry the key elsewhere) and has no time-outs of its
    own: a call has one deadline as a whole. Proxies of the environment are not used for
    loopback addresses.
    """
    url = httpx.URL(base_url)
    verify = context_for(url)
    direct = is_loopback(url.host) or not getproxies()
    return httpx.AsyncClient(
        # httpx asks no proxy of the environment once it is given a transport.
        transport=SpreadTransport(verify) if direct else None,
        verify=verify,
        trust_env=not is_loopback(url.host),
        follow_redirects=False,
        timeout=None,
    )


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def context_for(url: httpx.URL) -> ssl.SSLContext:
    return trusted_context() if url.scheme == "https" else _plain_context()


@cache
def trusted_context() -> ssl.SSLContext:
    """The certificates that this machine trusts; SSL_CERT_FILE names others."""
    return httpx.create_ssl_context()


@cache
def _plain_context() -> ssl.SSLContext:
    """Trusts no certificate at all: cheap to make, and safe should https ever be asked of it."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class SpreadTransport(httpx.AsyncBaseTransport):
    """A call takes the pool that became free last, so that a few calls keep few connections."""

    def __init__(self, verify: ssl.SSLContext) -> None:
        self._verify = verify
        self._pools: list[httpx.AsyncHTTPTransport] = []
        self._free: list[httpx.AsyncHTTPTransport] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if not self._free:
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=1)
            self._free.append(httpx.AsyncHTTPTransport(verify=self._verify, limits=limits))
            self._pools.append(self._free[0])
        pool = self._free.pop()
        release = partial(self._free.append, pool)
        try:
            response = await pool.handle_async_request(request)
        except BaseException:
            release()
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Released(response.stream, release)
        return response

    async def aclose(self) -> None:
        for pool in self._pools:
            await pool.aclose()


class _Released(httpx.AsyncByteStream):
    """Ends the call once its response is closed."""

    def __init__(self, stream: httpx.AsyncByteStream, release: Callable[[], None]) -> None:
        self._stream = stream
        self._release = release

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        release, self._release = self._release, lambda: None
        try:
            await self._stream.aclose()
        finally:
            release()
