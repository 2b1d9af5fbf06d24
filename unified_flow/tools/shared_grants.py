"""What people have allowed tools to do, for all machines: one document in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable

from unified_flow.shared.database import Connection, Database
from unified_flow.shared.stored_text import encoded
from unified_flow.tools.grants import Grant, GrantDocument, GrantStore

_NAME = "grants"


class SharedGrantStore(GrantStore):
    """While the database is away, callers wait (`Database.run`)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _read(self) -> GrantDocument:
        return self._database.run(_read)

    def _change(self, change: Callable[[tuple[Grant, ...]], tuple[Grant, ...]]) -> int:
        def in_transaction(connection: Connection) -> int:
            connection.execute("LOCK TABLE documents IN SHARE ROW EXCLUSIVE MODE")
            before = _read(connection)
            after = before.with_grants(change(before.grants))
            connection.execute(
                "INSERT INTO documents (name, body) VALUES (%s, %s)"
                " ON CONFLICT (name) DO UPDATE SET body = EXCLUDED.body",
                [_NAME, encoded(after.model_dump(mode="json"))],
            )
            return len(before.grants) - len(after.grants)

        return self._database.run(in_transaction)


def _read(connection: Connection) -> GrantDocument:
    found = connection.execute("SELECT body FROM documents WHERE name = %s", [_NAME]).fetchone()
    return GrantDocument.model_validate_json(found[0]) if found else GrantDocument()
