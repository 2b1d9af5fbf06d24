"""The memories of all users in PostgreSQL: a row each, in the order in which they were made, under
the name that the user's file would have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from unified_flow.shared.database import Connection, Database
from unified_flow.shared.stored_text import encoded
from unified_flow.turns.memory import MemoryRecord, MemoryStore, file_name

T = TypeVar("T")


class SharedMemoryStore(MemoryStore):
    """While the database is away, callers wait (`Database.run`)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def knows(self, user_id: str) -> bool:
        return True  # to know more takes a question

    def all(self, user_id: str) -> list[MemoryRecord]:
        return self._database.run(lambda connection: _memories(connection, user_id))

    def by_file_name(self) -> dict[str, list[MemoryRecord]]:
        sql = "SELECT user_id, record FROM memories ORDER BY user_id, place"
        found: dict[str, list[MemoryRecord]] = {}
        for user, record in self._database.run(lambda c: c.execute(sql).fetchall()):
            found.setdefault(user, []).append(MemoryRecord.model_validate_json(record))
        return found

    def _change(self, user_id: str, change: Callable[[list[MemoryRecord]], T]) -> T:
        user = file_name(user_id)

        def in_transaction(connection: Connection) -> T:
            connection.execute(
                "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"memories {user}"]
            )
            before = _memories(connection, user_id)
            records = list(before)
            changed = change(records)
            connection.execute(
                "DELETE FROM memories WHERE user_id = %s AND id <> ALL (%s)",
                [user, [record.id for record in records]],
            )
            add_memories(connection, user, [each for each in records if each not in before])
            return changed

        return self._database.run(in_transaction)


def add_memories(connection: Connection, user: str, records: Sequence[MemoryRecord]) -> None:
    """Those of a user (`file_name`); one that has the id of another takes its place."""
    connection.cursor().executemany(
        "INSERT INTO memories (user_id, id, record) VALUES (%s, %s, %s)"
        " ON CONFLICT (user_id, id) DO UPDATE SET record = EXCLUDED.record",
        [(user, record.id, encoded(record.model_dump(mode="json"))) for record in records],
    )


def _memories(connection: Connection, user_id: str) -> list[MemoryRecord]:
    sql = "SELECT record FROM memories WHERE user_id = %s ORDER BY place"
    rows = connection.execute(sql, [file_name(user_id)])
    return [MemoryRecord.model_validate_json(record) for (record,) in rows]
