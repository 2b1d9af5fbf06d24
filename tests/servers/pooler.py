"""A pooler before PostgreSQL that hands its sessions out by the transaction, as PgBouncer can."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

_ENCRYPTION = (80877103, 80877104)  # SSLRequest, GSSENCRequest
_ENDS_A_REQUEST = b"QS"  # Query, Sync: the server answers with ReadyForQuery


@contextmanager
def transaction_pooler(url: str) -> Iterator[str]:
    """The URL of a pooler before the server of `url`, a Unix socket that trusts everybody."""
    parts = urlsplit(url)
    with _Pooler(f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.5432") as pooler:
        serving = Thread(target=pooler.serve_forever, args=(0.01,))
        serving.start()
        try:
            yield f"postgresql://postgres@127.0.0.1:{pooler.server_address[1]}{parts.path}"
        finally:
            pooler.shutdown()
            serving.join()


class _Pooler(ThreadingTCPServer):
    """Sessions that wait for a transaction; the one that was used last comes first."""

    def __init__(self, server: str) -> None:
        super().__init__(("127.0.0.1", 0), _Client)
        self._server = server
        self._lock = Lock()
        self._sessions = ExitStack()
        self._idle: list[socket.socket] = []
        self._clients: list[socket.socket] = []
        self.greeting = b""

    def take(self, startup: bytes) -> socket.socket:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            session = self._sessions.enter_context(socket.socket(socket.AF_UNIX))
        session.connect(self._server)
        session.sendall(startup)
        self.greeting = b"".join(_answer(session))
        return session

    def give_back(self, session: socket.socket) -> None:
        with self._lock:
            self._idle.append(session)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._clients.append(request)
        super().process_request(request, client_address)

    def server_close(self) -> None:
        for client in self._clients:
            with suppress(OSError):  # it has gone already
                client.shutdown(socket.SHUT_RDWR)
        super().server_close()  # waits for the clients' threads
        self._sessions.close()


class _Client(BaseRequestHandler):
    request: socket.socket
    server: _Pooler

    def handle(self) -> None:
        with suppress(OSError, EOFError):
            self._serve(self.request, self.server)

    def _serve(self, client: socket.socket, pooler: _Pooler) -> None:
        startup = _startup(client)
        while struct.unpack("!i", startup[4:8])[0] in _ENCRYPTION:
            client.sendall(b"N")
            startup = _startup(client)
        pooler.give_back(pooler.take(startup))
        client.sendall(pooler.greeting)
        session: socket.socket | None = None
        while (request := _message(client))[:1] != b"X":
            session = session or pooler.take(startup)
            session.sendall(request)
            if request[:1] in _ENDS_A_REQUEST:
                for message in _answer(session):
                    client.sendall(message)
                if message[5:6] == b"I":  # no transaction is open
                    pooler.give_back(session)
                    session = None


def _answer(session: socket.socket) -> Iterator[bytes]:
    while True:
        message = _message(session)
        yield message
        if message[:1] == b"Z":
            return


def _startup(client: socket.socket) -> bytes:
    length = _exactly(client, 4)
    return length + _exactly(client, struct.unpack("!i", length)[0] - 4)


def _message(connection: socket.socket) -> bytes:
    head = _exactly(connection, 5)
    return head + _exactly(connection, struct.unpack("!i", head[1:])[0] - 4)


def _exactly(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        more = connection.recv(count - len(received))
        if not more:
            raise EOFError
        received += more
    return received
