"""The sessions of one machine: a SQLite file."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from interventions.home import create_private, state_folder
from unified_flow.errors import RetrievalError
from unified_flow.errors.sqlite import failures
from unified_flow.lib.text import terms
from unified_flow.turns.results import PriorTurn
from unified_flow.turns.sessions.store import Sessions, Statement, unit_score
from unified_flow.turns.turn import Turn

T = TypeVar("T")

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


class SessionStore(Sessions):
    """The answered turns and their messages, in the database at `path`; the other turns are in
    their journals alone (`archive.py`). Safe among processes; one lock among the threads of one.
    Every method raises RetrievalError if the database cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name, self.place = path.name, str(path)
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._lock = threading.Lock()

    @classmethod
    def of(cls, home: Path) -> Self:
        return cls(state_folder(home) / "sessions.sqlite3")

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _rows(self, query: str, *values: object) -> list[Any]:
        if not self.path.exists():
            return []  # nothing was ever saved here: nothing known, not an error
        with self._open() as connection:
            return connection.execute(query, values).fetchall()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
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

    def last_turn_id(self) -> int:
        with suppress(RetrievalError):
            found = self._rows("SELECT max(turn_id) FROM turns")
            return max((last or 0 for (last,) in found), default=0)
        return 0

    def _change(self, work: Callable[[Statement], T]) -> T:
        with self._open() as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            return work(lambda query, *values: connection.execute(query, values).rowcount)

    def _index(self, run: Statement, turn_id: int, session_id: str, words: str) -> None:
        add = "INSERT INTO turn_terms (rowid, terms, session_id) VALUES (?, ?, ?)"
        run(add, turn_id, words, session_id)

    def _forget_index(self, run: Statement, column: str, value: object) -> None:
        named = "rowid" if column == "turn_id" else column
        run(f"DELETE FROM turn_terms WHERE {named} = ?", value)
        if column == "session_id":  # what was said in it is in no free page of the index
            run("INSERT INTO turn_terms (turn_terms) VALUES ('optimize')")

    def take_back(self, turn: Turn) -> int:
        return super().take_back(turn) if self.path.exists() else 0

    def search(self, session_id: str, text: str, *, before: int, limit: int) -> list[PriorTurn]:
        wanted = " OR ".join(f'"{term}"' for term in dict.fromkeys(terms(text)))
        if not wanted:
            return []
        query = (
            "SELECT t.turn_id, t.question, t.response, bm25(turn_terms) FROM turn_terms"
            " JOIN turns t ON t.turn_id = turn_terms.rowid"
            " WHERE turn_terms MATCH ? AND turn_terms.session_id = ? AND t.turn_id < ?"
            " ORDER BY bm25(turn_terms) LIMIT ?"
        )
        rows = self._rows(query, f"terms : ({wanted})", session_id, before, limit)
        return [
            PriorTurn(turn_id=t, question=q, answer=a, score=unit_score(-rank))
            for t, q, a, rank in rows
        ]

    def forget(self, session_id: str) -> int:
        """`Sessions.forget`; nothing stays in free pages or in the log of writes."""
        if not self.path.exists():
            return 0
        with self._open() as connection:
            connection.execute("PRAGMA secure_delete = ON")
        gone = super().forget(session_id)
        with self._open() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return gone


def _inode(path: Path) -> int:
    """0 if there is no file."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return 0


def _connect(path: Path) -> sqlite3.Connection:
    create_private(path)
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(SCHEMA)
    except sqlite3.Error:
        connection.close()
        raise
    return connection
