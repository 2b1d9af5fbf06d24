"""Whether a database can carry the shared mode: what `unified-flow shared check` tries.

Each check returns what is well, and raises ConfigError, with a hint, for what is not.
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, LiteralString
from uuid import uuid4

from unified_flow.errors import ConfigError
from unified_flow.shared.database import Connection, Database
from unified_flow.shared.migration import REVISION, engine_of, revision_of
from unified_flow.shared.workflows import are_old

OLDEST_SERVER = 14
CLOCKS_APART_S = 2.0
_LOCK = 7166454  # advisory lock of the check, with a number of its own each time
_RIVALS = 4  # transactions at once, so that a pooler has to hand out another session
_PRIVILEGES = """
    WITH schemas AS (
        SELECT oid, nspname FROM pg_namespace
        WHERE oid IN (to_regnamespace(current_schema()), to_regnamespace('dbos'))
    ), lacking AS (
        SELECT 'schema ' || nspname AS name FROM schemas
        WHERE NOT has_schema_privilege(oid, 'USAGE')
        UNION ALL
        SELECT relname FROM pg_class WHERE relnamespace IN (SELECT oid FROM schemas) AND (
            relkind = 'r' AND NOT (
                has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
                AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE')
            )
            OR relkind = 'S' AND NOT has_sequence_privilege(oid, 'USAGE')
        )
    )
    SELECT quote_ident(current_user), coalesce(quote_ident(current_schema()), 'none'),
        current_schema() IS NOT NULL AND has_schema_privilege(current_schema(), 'CREATE')
            AND has_database_privilege(current_database(), 'CREATE'),
        (SELECT array_agg(name::text ORDER BY name) FROM lacking)
"""


def check_server(connection: Connection) -> str:
    version = connection.info.server_version
    shown = f"PostgreSQL {version // 10000}.{version % 10000}"
    if version < OLDEST_SERVER * 10000:
        raise ConfigError(f"{shown} is too old", hint=f"Take {OLDEST_SERVER} or later")
    if _row(connection, "SHOW transaction_read_only") == ("on",):
        raise ConfigError(
            f"{shown} takes no writes",
            hint="Name the primary server, not a standby; if it is one, the role must not have"
            " default_transaction_read_only",
        )
    return shown


def check_tables(database: Database) -> str:
    found = revision_of(database)
    if found != REVISION:
        is_newer = found is not None and found > REVISION
        raise ConfigError(
            "there are no tables" if found is None else f"they are at {found}, not at {REVISION}",
            hint="install a newer version" if is_newer else "unified-flow shared migrate",
        )
    if are_old(engine_of(database)):
        raise ConfigError(
            "those of DBOS are missing, or of an older version", hint="unified-flow shared migrate"
        )
    return f"at revision {found}"


def check_privileges(connection: Connection) -> str:
    """Whether the role of the URL may make the tables, or use those that are there."""
    role, schema, may_create, lacking = _row(connection, _PRIVILEGES)
    if lacking:
        both = f"IN SCHEMA {schema}, dbos TO {role}"
        raise ConfigError(
            f"the role {role} cannot use {len(lacking)} of what is there, such as {lacking[0]}",
            hint=f"GRANT USAGE ON SCHEMA {schema}, dbos TO {role};"
            f" GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES {both};"
            f" GRANT USAGE ON ALL SEQUENCES {both}",
        )
    if may_create:
        return f"the role {role} may create and use tables"
    return f"the role {role} may use the tables; another one migrates them"


def check_session(database: Database) -> str:
    """One connection stays one session of the server, so that its locks hold: while others have a
    transaction open, a pooler by transactions gives its session away."""
    key = uuid4().int >> 97
    with ExitStack() as stack:
        connection = stack.enter_context(database.connect())
        lock = "SELECT pg_backend_pid() FROM pg_advisory_lock(%s, %s)"
        before = _row(connection, lock, _LOCK, key)
        for _ in range(_RIVALS):
            rival = stack.enter_context(database.connect())
            stack.enter_context(rival.transaction(force_rollback=True))
            rival.execute("SELECT 1")
        after = _row(connection, "SELECT pg_backend_pid()")
        (held,) = _row(connection, "SELECT pg_advisory_unlock(%s, %s)", _LOCK, key)
        if before != after or not held:
            raise ConfigError(
                "a pooler stands before the server and pools transactions",
                hint="Name the server itself, or a pooler's port with session pooling: locks and"
                " LISTEN belong to a session",
            )
    return "a lock is held from one statement to the next, by one session"


def check_clock(connection: Connection) -> str:
    """A difference harms nothing, for the database's clock decides."""
    started = perf_counter()
    (there,) = _row(connection, "SELECT clock_timestamp()")
    way_s = (perf_counter() - started) / 2
    apart_s = (datetime.now(UTC) - there).total_seconds() - way_s
    if abs(apart_s) < CLOCKS_APART_S:
        return f"{abs(apart_s) * 1000:.0f} ms from the server's"
    said = "ahead of" if apart_s > 0 else "behind"
    return f"{abs(apart_s):.0f} s {said} the server's: times in journals are off by that; run NTP"


def _row(connection: Connection, query: LiteralString, *parameters: object) -> Any:
    row = connection.execute(query, parameters).fetchone()
    assert row is not None
    return row
