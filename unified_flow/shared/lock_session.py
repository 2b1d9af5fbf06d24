"""A session of the database in which locks are held."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from unified_flow.errors import DatabaseAwayError
from unified_flow.shared.database import Connection, Database


class LockSession:
    """The locks are gone once it has ended, and then it is another session, without them. Every
    method raises DatabaseAwayError."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Connection | None = None
        self.guard = threading.RLock()
        self._holds: set[int] = set()

    @property
    def connection(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._holds.clear()
            self._connection = self._database.connect()
        return self._connection

    def holds(self, key: int) -> bool:
        with self.guard:
            return not self.connection.closed and key in self._holds

    def one(self, query: str, values: Mapping[str, Any]) -> Any:
        """The first row."""
        with self.guard, self._database.away():
            return self.connection.execute(query, values).fetchone()

    def try_lock(self, key: int) -> bool:
        """Whether the caller has it now, and nobody else, here or in another session."""
        with self.guard:
            if (
                self.holds(key)
                or not self.one("SELECT pg_try_advisory_lock(%(key)s)", {"key": key})[0]
            ):
                return False
            self._holds.add(key)
            return True

    def unlock(self, key: int) -> None:
        """The end of a session has done it already."""
        with self.guard, suppress(DatabaseAwayError):
            if self.holds(key):
                self._holds.discard(key)
                self.one("SELECT pg_advisory_unlock(%(key)s)", {"key": key})

    def unlocked(self, key: int) -> None:
        """A statement of the caller's has done it."""
        self._holds.discard(key)

    def close(self) -> None:
        with self.guard:
            if self._connection is not None:
                self._connection.close()
