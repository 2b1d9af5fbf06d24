"""What only grows of the queue in PostgreSQL: the archive, the journal of transitions, and what
became of each failure.

A line or an entry is stored as JSON in ASCII, so that no character in it is one that PostgreSQL
does not take; the columns beside it are what it is found by.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from psycopg import Cursor

from interventions.entry import Entry, Transition
from interventions.settings import RetentionSettings
from interventions.storage import history
from interventions.storage.file_history import FileHistory
from interventions.storage.jsonl import decode
from interventions.storage.store import Transaction
from unified_flow.shared.database import Connection
from unified_flow.shared.stored_text import encoded, storable


class QueueHistory(history.SqlHistory):
    """The part of the store that reads rows which are never changed again."""

    among, begins, resolved = "= ANY (?)", "starts_with({}, ?)", "resolved && ?"

    def __init__(self, home: Path) -> None:
        self._home = home
        self._thread = threading.local()

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Connection]:
        """A connection; inside a transaction its own. Database errors become StorageErrors."""

    @abstractmethod
    def transaction(self, timeout_s: float) -> AbstractContextManager[Transaction]: ...

    def _rows(self, sql: str, *values: object, logs: str | None = "") -> history.Rows:
        ahead: dict[str, Cursor[Any]] = getattr(self._thread, "ahead", {})
        with self._reading() as connection:
            cursor = ahead.pop(f"{sql} {values}", None) or _asked(connection, sql, values)
            return cursor.fetchall()

    def _records(self, kept: Iterable[str]) -> Iterator[dict[str, Any]]:
        return map(decode, kept)

    @contextmanager
    def _asked_ahead(self, connection: Connection, failure: Entry | None) -> Iterator[None]:
        """Of a failure that is put, what `_rows` will answer without asking once more."""
        asked = self._asked_by_put(failure) if failure else []
        self._thread.ahead = {
            f"{sql} {values}": _asked(connection, sql, values) for sql, values in asked
        }
        try:
            yield
        finally:
            self._thread.ahead = {}

    def prune(self, keep: RetentionSettings, line: Transition, timeout_s: float) -> int:
        """With what became of the failures that the entries held."""
        if not (closed_before := self.closed_before(keep)):
            return 0
        sql = "DELETE FROM intervention_archive WHERE closed_at < %s RETURNING id"
        with self.transaction(timeout_s) as work, self._reading() as connection:
            gone = [name for (name,) in connection.execute(sql, [closed_before])]
            if gone:
                sql = "DELETE FROM intervention_failures WHERE holder = ANY (%s)"
                connection.execute(sql, [gone])
                work.to_journal.append({**line, "closed_before": closed_before})
        return len(gone)

    def waiting(self) -> tuple[int, Iterator[dict[str, Any]]]:
        self._gather()
        return super().waiting()

    def waiting_turns(self) -> set[int]:
        self._gather()
        return super().waiting_turns()

    def _gather(self) -> None:
        """Bring what waits in this machine's emergency log, and came there while the database was
        away, to where every machine sees it. The files stay as they are."""
        if lines := list(FileHistory(self._home).waiting()[1]):
            sql = f"SELECT id FROM intervention_failures WHERE id {self.among}"
            with self._reading() as connection:
                names = [str(line.get("id")) for line in lines]
                known = {name for (name,) in _asked(connection, sql, [names])}
                new = [line for line in lines if storable(str(line.get("id"))) not in known]
                add_failures(connection, new)


def _asked(connection: Connection, sql: str, values: Iterable[object]) -> Cursor[Any]:
    return connection.execute(_statement(sql), list(map(_taken, values)))


def _statement(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def _taken(value: object) -> object:
    """As PostgreSQL takes it."""
    if isinstance(value, list):
        return list(map(_taken, value))
    return storable(value) if isinstance(value, str) else value


def add(connection: Connection, sql: str, rows: Iterable[Iterable[object]]) -> None:
    """The statement for each row, sent together."""
    if taken := [list(map(_taken, row)) for row in rows]:
        connection.cursor().executemany(_statement(sql), taken)


def add_failures(connection: Connection, lines: Iterable[Mapping[str, Any]]) -> None:
    """Lines of the logs; one that was dropped stays whole until it is drained."""
    sql = (
        f"{history.ADD_FAILURE} ON CONFLICT (id) DO UPDATE SET"
        " holder = coalesce(intervention_failures.holder, EXCLUDED.holder)"
    )
    rows = ((history.failure_row(line), line) for line in lines)
    add(connection, sql, [(*row, None if row[1] else encoded(line)) for row, line in rows])


def add_transitions(connection: Connection, lines: Sequence[Transition]) -> None:
    sql = "INSERT INTO intervention_transitions (id, action, line) VALUES (?, ?, ?)"
    add(connection, sql, [(line["id"], line["action"], encoded(line)) for line in lines])
    sql = "UPDATE intervention_failures SET holder = ?, line = NULL WHERE id = ?"
    add(connection, sql, [(x["id"], x["failure_id"]) for x in lines if x["action"] == "drain"])


def add_archived(connection: Connection, entries: Iterable[Entry]) -> None:
    """The last record of an id counts, and is the latest."""
    rows = [(*history.archive_row(entry), encoded(entry)) for entry in entries]
    add(connection, history.FORGET_ARCHIVED, [row[:1] for row in rows])
    add(connection, history.ADD_ARCHIVED, rows)
