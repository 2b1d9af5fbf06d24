"""How model servers are connected to.

`AsyncClient()` costs 16 ms, nearly all of it the certificates of the SSL context. They are
loaded once, and only when an https address is asked for; a client then costs 0.3 ms.

One pool of connections is slow with many: before and after each request httpcore looks at every
pair of idle ones, and asks the socket of each. So each concurrent call has a pool of its own.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import AsyncIterator
from functools import cache
from urllib.request import getproxies

import httpx

POOLS = 128  # beyond these, calls share them


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
    """A call takes the first pool without one, so that a few calls keep few connections."""

    def __init__(self, verify: ssl.SSLContext) -> None:
        self._verify = verify
        self._pools: list[httpx.AsyncHTTPTransport] = []
        self._calls: list[int] = []

    def _place(self) -> int:
        place = next((n for n, calls in enumerate(self._calls) if not calls), None)
        if place is None and len(self._pools) == POOLS:
            return self._calls.index(min(self._calls))
        if place is None:
            place = len(self._pools)
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=1)
            self._pools.append(httpx.AsyncHTTPTransport(verify=self._verify, limits=limits))
            self._calls.append(0)
        return place

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        place = self._place()
        self._calls[place] += 1
        try:
            response = await self._pools[place].handle_async_request(request)
        except BaseException:
            self._calls[place] -= 1
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Counted(response.stream, self._calls, place)
        return response

    async def aclose(self) -> None:
        for pool in self._pools:
            await pool.aclose()


class _Counted(httpx.AsyncByteStream):
    """Ends the call once its response is closed."""

    def __init__(self, stream: httpx.AsyncByteStream, calls: list[int], place: int) -> None:
        self._stream = stream
        self._calls = calls
        self._place = place
        self._open = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            if self._open:
                self._open = False
                self._calls[self._place] -= 1
