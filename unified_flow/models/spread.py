"""One pool of connections is slow with many: before and after each request httpcore looks at every
pair of idle ones. So many calls at once are spread over several small pools.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import httpx

POOLS = 32
AT_ONCE = 4  # calls in one pool before the next is used


class SpreadTransport(httpx.AsyncBaseTransport):
    """A call takes the first pool that is not full, so that a few calls keep few connections."""

    def __init__(self, verify: ssl.SSLContext) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=AT_ONCE)
        self._pools = [httpx.AsyncHTTPTransport(verify=verify, limits=limits) for _ in range(POOLS)]
        self._calls = [0] * POOLS

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        place = next((n for n, calls in enumerate(self._calls) if calls < AT_ONCE), None)
        if place is None:
            place = self._calls.index(min(self._calls))
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
