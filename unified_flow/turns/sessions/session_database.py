"""The file of sessions: one SQLite database, opened on first use, private to the user."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from interventions.home import open_private, state_folder
from unified_flow.errors.sqlite import failures

SCHEMA = """
CREATE TABLE IF NOT EXISTS turns (
    turn_id INTEGER PRIMARY KEY, session_id TEXT NOT NULL, request_id TEXT NOT NULL,
    user_id TEXT NOT NULL, question TEXT NOT NULL, resolved_query TEXT NOT NULL,
    response TEXT NOT NULL, citations TEXT NOT NULL, abstained INTEGER NOT NULL,
    started_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS turns_of_session ON turns (session_id, turn_id);
CREATE TABLE IF NOT EXISTS messages (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL, turn_id INTEGER NOT NULL, role TEXT NOT NULL,
    content TEXT NOT NULL, sources TEXT, timestamp TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_of_session ON messages (session_id, turn_id);
CREATE VIRTUAL TABLE IF NOT EXISTS turn_terms USING fts5 (terms, session_id UNINDEXED);
"""
BUSY_TIMEOUT_S = 5.0
BEGIN_ANEW = "Restore it from a copy, or move the file aside to begin anew."


def file_of(home: Path) -> Path:
    return state_folder(home) / "sessions.sqlite3"


class SessionDatabase:
    """Safe among processes; one lock among the threads of one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._lock = threading.Lock()

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def read(self, query: str, values: tuple[object, ...]) -> list[Any]:
        if not self.path.exists():
            return []  # nothing was ever saved here: nothing known, not an error
        with self.open() as connection:
            return connection.execute(query, values).fetchall()

    @contextmanager
    def open(self) -> Iterator[sqlite3.Connection]:
        with failures(self.path, "The session store", broken=BEGIN_ANEW), self._lock:
            yield self._connected()

    def _connected(self) -> sqlite3.Connection:
        """The connection to the file that lies there now: it may have been moved aside."""
        if self._connection is not None and self._inode == _inode(self.path):
            return self._connection
        self._disconnect()
        self._connection = _connect(self.path)
        self._inode = _inode(self.path)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _inode(path: Path) -> int:
    """0 if there is no file."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _connect(path: Path) -> sqlite3.Connection:
    os.close(open_private(path, os.O_RDWR))
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(SCHEMA)
    except sqlite3.Error:
        connection.close()
        raise
    return connection
