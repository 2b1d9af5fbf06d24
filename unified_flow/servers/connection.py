"""A connection to a server: HTTP/1.1 by h11 over asyncio (architecture/decisions, 8)."""

from __future__ import annotations

import asyncio
import os
import re
import select
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Self, cast

import h11
import httpx

_KEPT_IDLE_S = 5.0  # as httpx keeps them: shorter than servers do
_NEXT_ADDRESS_S = 0.25  # RFC 8305, 8
_MAX_HEAD_BYTES = 100 * 1024
_MAX_UNREAD_BYTES = 256 * 1024
_ERRNO = re.compile(r"\[Errno (\d+)\]")


class HttpConnection(asyncio.Protocol):
    """For one request at a time. It has no time-outs; errors are httpx's."""

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEAD_BYTES)
        self._readable = select.poll()
        self._unread = bytearray()
        self._arrival: asyncio.Future[None] | None = None
        self._ended = False
        self._error: Exception | None = None
        self._idle_since = 0.0

    @classmethod
    async def open(cls, host: str, port: int, verify: ssl.SSLContext | None) -> Self:
        """With `verify` a connection by TLS. Raises httpx.ConnectError."""
        loop, options = asyncio.get_running_loop(), dict[str, Any]()
        if isinstance(loop, asyncio.BaseEventLoop):  # uvloop's, in another program, knows none
            options["happy_eyeballs_delay"] = _NEXT_ADDRESS_S
        try:
            _, connection = await loop.create_connection(cls, host, port, ssl=verify, **options)
            return connection
        except ssl.SSLError as exc:
            raise httpx.ConnectError(str(exc)) from exc
        except OSError as exc:
            # asyncio writes the address into the message, and joins those of several attempts.
            numbers = _ERRNO.findall(str(exc))
            reason = os.strerror(int(numbers[-1])) if numbers else exc.strerror
            raise httpx.ConnectError(reason or str(exc)) from exc

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._readable.register(transport.get_extra_info("socket"), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if len(self._unread) > _MAX_UNREAD_BYTES:
            self._transport.pause_reading()
        self._arrived()

    def eof_received(self) -> None:
        self._ended = True
        self._arrived()

    def connection_lost(self, exc: Exception | None) -> None:
        self._error, self._ended = exc, True
        self._arrived()

    def _arrived(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    async def send(
        self, request: httpx.Request, release: Callable[[HttpConnection], None]
    ) -> httpx.Response:
        """The head of the response; once that is closed, `release` is called. The request is sent
        whole, in one packet if it fits."""
        with _errors_of_httpx():
            head = h11.Request(
                method=request.method, target=request.url.raw_path, headers=request.headers.raw
            )
            events = (head, h11.Data(data=request.read()), h11.EndOfMessage())
            self._transport.write(b"".join(filter(None, map(self._http.send, events))))
            while not isinstance(answer := await self._event(), h11.Response):
                pass  # an interim one (1xx)
        return httpx.Response(
            answer.status_code,
            headers=answer.headers.raw_items(),
            stream=_Body(self, release),
            extensions={
                "http_version": b"HTTP/" + answer.http_version,
                "reason_phrase": answer.reason,
            },
        )

    async def body(self) -> AsyncIterator[bytes]:
        with _errors_of_httpx():
            while isinstance(part := await self._event(), h11.Data):
                yield bytes(part.data)

    async def _event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            data = await self._read()
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise httpx.RemoteProtocolError("Server disconnected without sending a response.")
            self._http.receive_data(data)
        return event

    async def _read(self) -> bytes:
        """What has arrived, also where the connection broke after it; b"" at its end."""
        if not self._unread and not self._ended:
            self._transport.resume_reading()
            self._arrival = asyncio.get_running_loop().create_future()
            await self._arrival
        if self._error is not None and not self._unread:
            raise httpx.ReadError(str(self._error)) from self._error
        data = bytes(self._unread)
        self._unread.clear()
        return data

    def make_idle(self) -> bool:
        """Make it ready for the next request, once a response is read; False if it has to be
        closed."""
        ended = self._http.our_state is self._http.their_state is h11.DONE
        # A server may answer before it has read the request, and then never read its rest.
        unsent, unasked = self._transport.get_write_buffer_size(), self._http.trailing_data[0]
        if not ended or unsent or unasked:
            return False
        self._http.start_next_cycle()
        self._idle_since = monotonic()
        return True

    def has_expired(self) -> bool:
        """Whether it has been idle for too long, or the server has closed it: there is something to
        read, though nothing was asked."""
        if self._ended or self._unread or monotonic() - self._idle_since > _KEPT_IDLE_S:
            return True
        return bool(self._readable.poll(0))

    def close(self) -> None:
        self._transport.abort()


class _Body(httpx.AsyncByteStream):
    """The body of a response, whose end or closing ends the call."""

    def __init__(
        self, connection: HttpConnection, release: Callable[[HttpConnection], None]
    ) -> None:
        self._connection = connection
        self._release = release

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._connection.body()

    async def aclose(self) -> None:
        release, self._release = self._release, lambda _: None
        release(self._connection)


@contextmanager
def _errors_of_httpx() -> Iterator[None]:
    try:
        yield
    except h11.RemoteProtocolError as exc:
        raise httpx.RemoteProtocolError(str(exc)) from exc
    except h11.LocalProtocolError as exc:
        raise httpx.LocalProtocolError(str(exc)) from exc
