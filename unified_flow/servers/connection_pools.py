"""One pool of connections is slow with many: before and after each request httpcore looks at every
pair of idle ones, and asks the socket of each. So each call at once has a pool of its own.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import httpx

POOLS = 128  # beyond these, calls share them


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
