"""Grants and memories of all machines: rows of one table, each what is a file on one machine."""

from __future__ import annotations

from typing import TypeVar

from unified_flow.shared.database import Connection, Database
from unified_flow.turns.texts import Change, TextStore

T = TypeVar("T")


class SharedTexts(TextStore):
    """The texts of one kind. While the database is away, callers wait (`Database.run`)."""

    def __init__(self, database: Database, kind: str) -> None:
        self._database = database
        self._kind = kind

    def place(self, name: str) -> str:
        return f"{self._database.named}, {self._kind} {name}"

    def names(self) -> list[str]:
        query = "SELECT name FROM texts WHERE kind = %(kind)s ORDER BY name"
        return [name for (name,) in self._database.rows(query, kind=self._kind)]

    def may_have(self, name: str) -> bool:
        return True  # to know more takes a question

    def read(self, name: str) -> str:
        return self._database.run(lambda connection: self._read(connection, name))

    def change(self, name: str, change: Change[T]) -> T:
        def in_transaction(connection: Connection) -> T:
            lock = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
            connection.execute(lock, [f"{self._kind} {name}"])
            before = self._read(connection, name)
            after, changed = change(before)
            if after != before:
                connection.execute(
                    "INSERT INTO texts (kind, name, body) VALUES (%s, %s, %s)"
                    " ON CONFLICT (kind, name) DO UPDATE SET body = EXCLUDED.body",
                    [self._kind, name, after.encode()],
                )
            return changed

        return self._database.run(in_transaction)

    def _read(self, connection: Connection, name: str) -> str:
        query = "SELECT body FROM texts WHERE kind = %s AND name = %s"
        row = connection.execute(query, [self._kind, name]).fetchone()
        return row[0].decode() if row else ""
