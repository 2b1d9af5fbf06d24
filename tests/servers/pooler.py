"""A pooler before PostgreSQL that hands its sessions out by the transaction, as PgBouncer can."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from urllib.parse import parse_qs, urlsplit

_ENCRYPTION = (80877103, 80877104)  # SSLRequest, GSSENCRequest
_ENDS_A_REQUEST = b"QS"  # Query, Sync: the server answers with ReadyForQuery


@contextmanager
def transaction_pooler(url: str) -> Iterator[str]:
    """The URL of a pooler before the server of `url`, a Unix socket that trusts everybody."""
    parts = urlsplit(url)
    pool = _Pool(f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.5432")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        Thread(target=_accept, args=[listening, pool], daemon=True).start()
        port = listening.getsockname()[1]
        yield f"postgresql://postgres@127.0.0.1:{port}{parts.path}"
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
    for session in pool.idle:
        session.close()


class _Pool:
    """Sessions that wait for a transaction; the one that was used last comes first."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._lock = Lock()
        self.idle: list[socket.socket] = []
        self.greeting = b""

    def take(self, startup: bytes) -> socket.socket:
        with self._lock:
            if self.idle:
                return self.idle.pop()
        session = socket.socket(socket.AF_UNIX)
        session.connect(self._server)
        session.sendall(startup)
        self.greeting = b"".join(_answer(session))
        return session

    def give_back(self, session: socket.socket) -> None:
        with self._lock:
            self.idle.append(session)


def _accept(listening: socket.socket, pool: _Pool) -> None:
    with suppress(OSError):
        while True:
            Thread(target=_serve, args=[listening.accept()[0], pool], daemon=True).start()


def _serve(client: socket.socket, pool: _Pool) -> None:
    with client, suppress(OSError, EOFError):
        startup = _startup(client)
        while struct.unpack("!i", startup[4:8])[0] in _ENCRYPTION:
            client.sendall(b"N")
            startup = _startup(client)
        pool.give_back(pool.take(startup))
        client.sendall(pool.greeting)
        session: socket.socket | None = None
        while (request := _message(client))[:1] != b"X":
            session = session or pool.take(startup)
            session.sendall(request)
            if request[:1] in _ENDS_A_REQUEST:
                for message in _answer(session):
                    client.sendall(message)
                if message[5:6] == b"I":  # no transaction is open
                    pool.give_back(session)
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
