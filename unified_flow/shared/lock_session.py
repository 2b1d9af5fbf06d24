"""The advisory locks of a process: all in one session of the database, with which they end."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import LiteralString

from unified_flow.errors import DatabaseAwayError
from unified_flow.shared.database import Connection, Database


class LockSession:
    """Once it has ended, others may take the locks; the next one is taken in another session."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None
        self._guard = threading.Lock()
        self._held: set[int] = set()

    def try_lock(self, key: int) -> bool:
        """Whether the caller has it now, and nobody else, here or in another session. Raises
        DatabaseAwayError."""
        with self._guard:
            if key in self._held or not self._ask("SELECT pg_try_advisory_lock(%s)", key):
                return False
            self._held.add(key)
            return True

    def unlock(self, key: int) -> None:
        """The end of the session may have done it already."""
        with self._guard, suppress(DatabaseAwayError):
            if key in self._held:
                self._held.discard(key)
                self._ask("SELECT pg_advisory_unlock(%s)", key)

    def _ask(self, query: LiteralString, key: int) -> bool:
        if self._connection is None or self._connection.closed:
            self._connection = self._database.connect()
        with self._database.away():
            row = self._connection.execute(query, [key]).fetchone()
        return bool(row and row[0])

    def close(self) -> None:
        with self._guard:
            if self._connection is not None:
                self._connection.close()
