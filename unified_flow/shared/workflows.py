"""DBOS: runs of turns are queued, given to workers, limited, cancelled and taken over by it.

The only file that imports it.
"""

from __future__ import annotations

from unified_flow.shared.database import Database


def make_tables(database: Database) -> None:
    """DBOS's own, in a schema of its own."""
    from dbos import DBOS

    DBOS.migrate(database.url)
