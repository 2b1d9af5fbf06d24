"""What phase 7 keeps and phases 0 and 2 read: finished turns, their messages, and an index.

One SQLite file, one transaction a turn. A message has an id, by which it is added once and removed:
the same for the same turn saved again, and for the same message delivered again (one request id).
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from pydantic import TypeAdapter

from interventions.home import create_private, state_folder
from interventions.times import to_text
from unified_flow.errors import RetrievalError
from unified_flow.errors.sqlite import failures
from unified_flow.lib.text import terms
from unified_flow.turns.results import Citation, PriorTurn, Saved
from unified_flow.turns.turn import Turn
from unified_flow.turns.wire.message import Message, assistant_message, message_id, user_message

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
CITATIONS = TypeAdapter(list[Citation])
BEGIN_ANEW = "Restore it from a copy, or move the file aside to begin anew."


@dataclass(frozen=True)
class SessionSummary:
    """Times are ISO 8601 in UTC; `opening` is the first question that was answered."""

    session_id: str
    turns: int
    first_at: str
    last_at: str
    opening: str


@dataclass(frozen=True)
class Exchange:
    """One answered turn of a session."""

    turn_id: int
    at: str
    question: str
    response: str
    citations: list[Citation]
    abstained: bool


class Sessions(Protocol):
    """What a turn keeps for the turns after it, and asks of those before; a caller on an event loop
    takes a thread. Each method raises RetrievalError if the store cannot be used, but for
    `answered` and `last_turn_id`."""

    @property
    def place(self) -> str: ...
    def recent(self, session_id: str, *, before: int, limit: int) -> list[PriorTurn]: ...
    def search(self, session_id: str, text: str, *, before: int, limit: int) -> list[PriorTurn]: ...
    def save(self, turn: Turn) -> Saved: ...
    def take_back(self, turn: Turn) -> int: ...
    def user_of(self, session_id: str) -> str | None: ...
    def answered(
        self, session_id: str, request_id: str, user_id: str, question: str
    ) -> int | None: ...
    def last_turn_id(self) -> int: ...
    def sessions(self, limit: int) -> list[SessionSummary]: ...
    def exchanges(self, session_id: str) -> list[Exchange]: ...
    def forget(self, session_id: str) -> int: ...
    def close(self) -> None: ...


class SessionStore(Sessions):
    """The answered turns and their messages, in the database at `path`; the other turns are in
    their journals alone (`archive.py`). Safe among processes; one lock among the threads of one.
    Every method raises RetrievalError if the database cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._lock = threading.Lock()

    @classmethod
    def of(cls, home: Path) -> Self:
        return cls(state_folder(home) / "sessions.sqlite3")

    @property
    def place(self) -> str:
        return str(self.path)

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _read(self, query: str, values: tuple[object, ...]) -> list[Any]:
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
        """The greatest turn that was saved; 0 if none was, or if the store cannot tell."""
        with suppress(RetrievalError):
            found = self._read("SELECT max(turn_id) FROM turns", ())
            return max((last or 0 for (last,) in found), default=0)
        return 0

    def answered(self, session_id: str, request_id: str, user_id: str, question: str) -> int | None:
        """The turn that has answered this very message; None if none has, or if the store cannot
        tell."""
        message = message_id(session_id, request_id, user_id, question, "user")
        query = "SELECT turn_id FROM messages WHERE id = ?"
        with suppress(RetrievalError):
            return next((turn for (turn,) in self._read(query, (str(message),))), None)
        return None

    def save(self, turn: Turn) -> Saved:
        """Keep an answered turn. Of a message that was delivered twice at once the turn that is
        saved first is kept. Raises RetrievalError if the store cannot take it."""
        draft = turn.sections.synthesis
        analysis = turn.sections.query_analyzer
        assert draft is not None
        assert analysis is not None
        assert turn.started_at is not None
        at = to_text(turn.started_at)
        messages = (user_message(turn), assistant_message(turn))
        rows = [_row(message, turn) for message in messages]
        citations = json.dumps([c.model_dump(mode="json") for c in draft.citations])
        row = (
            *(turn.turn_id, turn.session_id, turn.request_id, turn.user_id, turn.question),
            *(analysis.resolved_query, draft.response, citations, draft.abstained, at),
        )
        saved = Saved(message_ids=[str(message.id) for message in messages], store=self.path.name)
        with self._open() as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            others = "SELECT 1 FROM messages WHERE id = ? AND turn_id != ?"
            if connection.execute(others, (str(messages[0].id), turn.turn_id)).fetchone():
                return saved
            connection.execute("INSERT OR REPLACE INTO turns VALUES (?,?,?,?,?,?,?,?,?,?)", row)
            # A resumed turn may have been asked in other words before.
            connection.execute(
                "DELETE FROM messages WHERE session_id = ? AND turn_id = ?",
                (turn.session_id, turn.turn_id),
            )
            connection.executemany("INSERT INTO messages VALUES (?,?,?,?,?,?,?)", rows)
            connection.execute("DELETE FROM turn_terms WHERE rowid = ?", (turn.turn_id,))
            connection.execute(
                "INSERT INTO turn_terms (rowid, terms, session_id) VALUES (?,?,?)",
                (turn.turn_id, index_text(turn), turn.session_id),
            )
        return saved

    def take_back(self, turn: Turn) -> int:
        """Remove what this turn has left here, and nothing that another one has; how many messages
        that were. What was never kept is no error."""
        if not self.path.exists():
            return 0
        with self._open() as connection, connection:
            gone = connection.execute(
                "DELETE FROM messages WHERE session_id = ? AND turn_id = ?",
                (turn.session_id, turn.turn_id),
            )
            if gone.rowcount:
                connection.execute("DELETE FROM turns WHERE turn_id = ?", (turn.turn_id,))
                connection.execute("DELETE FROM turn_terms WHERE rowid = ?", (turn.turn_id,))
        return gone.rowcount

    def user_of(self, session_id: str) -> str | None:
        """Whose the session's last turn is; None for an unknown session."""
        query = "SELECT user_id FROM turns WHERE session_id = ? ORDER BY turn_id DESC LIMIT 1"
        return next((user for (user,) in self._read(query, (session_id,))), None)

    def recent(self, session_id: str, *, before: int, limit: int) -> list[PriorTurn]:
        """The session's last turns before turn `before`, oldest first."""
        query = (
            "SELECT turn_id, question, response FROM turns"
            " WHERE session_id = ? AND turn_id < ? ORDER BY turn_id DESC LIMIT ?"
        )
        rows = self._read(query, (session_id, before, limit))
        return [PriorTurn(turn_id=t, question=q, answer=a) for t, q, a in reversed(rows)]

    def search(self, session_id: str, text: str, *, before: int, limit: int) -> list[PriorTurn]:
        """Turns of the session that bear on `text`, best first; scores by BM25, mapped to 0..1."""
        wanted = " OR ".join(f'"{term}"' for term in dict.fromkeys(terms(text)))
        if not wanted:
            return []
        query = (
            "SELECT t.turn_id, t.question, t.response, bm25(turn_terms) FROM turn_terms"
            " JOIN turns t ON t.turn_id = turn_terms.rowid"
            " WHERE turn_terms MATCH ? AND turn_terms.session_id = ? AND t.turn_id < ?"
            " ORDER BY bm25(turn_terms) LIMIT ?"
        )
        rows = self._read(query, (f"terms : ({wanted})", session_id, before, limit))
        return [
            PriorTurn(turn_id=t, question=q, answer=a, score=unit_score(-rank))
            for t, q, a, rank in rows
        ]

    def sessions(self, limit: int) -> list[SessionSummary]:
        """The latest sessions, newest first."""
        rows = self._read(
            "SELECT g.session_id, g.turns, g.first_at, g.last_at, opening.question FROM ("
            " SELECT session_id, count(*) AS turns, min(started_at) AS first_at,"
            " max(started_at) AS last_at, min(turn_id) AS first, max(turn_id) AS last"
            " FROM turns GROUP BY session_id) AS g"
            " JOIN turns AS opening ON opening.turn_id = g.first ORDER BY g.last DESC LIMIT ?",
            (limit,),
        )
        return [SessionSummary(*row) for row in rows]

    def exchanges(self, session_id: str) -> list[Exchange]:
        """The exchanges, oldest first; [] for an unknown session."""
        rows = self._read(
            "SELECT turn_id, started_at, question, response, citations, abstained"
            " FROM turns WHERE session_id = ? ORDER BY turn_id",
            (session_id,),
        )
        return [
            Exchange(
                turn, at, asked, said, CITATIONS.validate_python(json.loads(cited)), bool(none)
            )
            for turn, at, asked, said, cited, none in rows
        ]

    def forget(self, session_id: str) -> int:
        """Remove all that was said in it; how many turns that were."""
        if not self.path.exists():
            return 0
        with self._open() as connection:
            # Without this and the checkpoint, what was said would stay in free pages and in the
            # log of writes.
            connection.execute("PRAGMA secure_delete = ON")
            with connection:
                for table in ("turn_terms", "messages"):
                    connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (session_id,))
                connection.execute("INSERT INTO turn_terms (turn_terms) VALUES ('optimize')")
                gone = connection.execute("DELETE FROM turns WHERE session_id = ?", (session_id,))
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return gone.rowcount


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


def _row(message: Message, turn: Turn) -> tuple[object, ...]:
    cited = json.dumps(message.sources) if message.sources else None
    return (
        *(str(message.id), turn.session_id, turn.turn_id, message.role, message.content),
        *(cited, to_text(message.timestamp)),
    )


def index_text(turn: Turn) -> str:
    """What an answered turn is found by."""
    draft, analysis = turn.sections.synthesis, turn.sections.query_analyzer
    assert draft is not None
    assert analysis is not None
    return " ".join(terms(f"{analysis.resolved_query} {draft.response}"))


def unit_score(weight: float) -> float:
    """A BM25 weight (0 and up, greater is better) as 0..1, monotone."""
    return max(0.0, weight) / (1.0 + max(0.0, weight))
