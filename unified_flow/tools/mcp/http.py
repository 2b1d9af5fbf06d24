"""What an MCP connection over HTTP looks at beside the SDK: ended sessions, answers too large."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import cast

import httpx2

MAX_BODY_BYTES = 32 * 1024 * 1024
CONNECT_TIMEOUT_S = 30.0
READ_TIMEOUT_S = 300.0  # of one piece of an answer; a call as a whole has its own time
_SESSION = "mcp-session-id"
_NOT_FOUND = 404


def client(headers: dict[str, str], session_ended: Callable[[], None]) -> httpx2.AsyncClient:
    """Calls `session_ended` when the server no longer knows the session of a message: it then sends
    404, and wants a new session (MCP 2025-06-18, Transports, Session Management, 3 and 4)."""

    async def look(response: httpx2.Response) -> None:
        if response.request.method != "POST":
            return  # what a server sends unasked may be long
        if response.status_code == _NOT_FOUND and _SESSION in response.request.headers:
            session_ended()
        response.stream = _Bounded(cast("httpx2.AsyncByteStream", response.stream))

    return httpx2.AsyncClient(
        headers=headers | {"Accept-Encoding": "identity"},  # what is counted is what is kept
        timeout=httpx2.Timeout(CONNECT_TIMEOUT_S, read=READ_TIMEOUT_S),
        event_hooks={"response": [look]},
    )


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > MAX_BODY_BYTES:
                most = MAX_BODY_BYTES // (1024 * 1024)
                raise httpx2.StreamError(f"the answer is larger than {most} MiB")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
