"""How SQLite and PostgreSQL are asked, and how long anybody waits for them.

A turn waits at most LOCKED_S for a locked file, CONNECT_S for a server that cannot be reached, and
ANSWER_S for one that has hung. Whoever changes rules waits longer: a person sees it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa

LOCKED_S = 1.0
PATIENT_S = 10.0
CONNECT_S = 3
STATEMENT_S = 5
ANSWER_S = 6.0


def sqlite_engine(file: Path) -> sa.Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(file)),
        connect_args={"timeout": LOCKED_S},
        hide_parameters=True,
    )
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def postgres_engine(url: sa.URL) -> sa.Engine:
    """Raises ImportError without psycopg. The server ends what takes long by itself; what has
    hung is left by `postgres.Connection`, and TCP looks whether the host is still there."""
    from unified_flow.guardrails.postgres import Connection

    engine = sa.create_engine(
        url.set(drivername="postgresql+psycopg"),
        pool_pre_ping=True,
        pool_timeout=ANSWER_S,
        hide_parameters=True,
        connect_args={
            "connect_timeout": CONNECT_S,
            "keepalives_idle": 30,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": STATEMENT_S * 1000,
            "options": f"-c timezone=UTC -c statement_timeout={STATEMENT_S}s "
            f"-c lock_timeout={STATEMENT_S}s",
        },
    )

    def connect(_dialect: Any, _record: Any, args: Any, options: Any) -> Connection:
        return Connection.connect(*args, **options)

    sa.event.listen(engine, "do_connect", connect)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # Transactions are ours: the driver's own rules would leave DDL and reads outside of them.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: sa.Connection) -> None:
    options = connection.get_execution_options()
    waits_ms = int(options.get("waits_s", LOCKED_S) * 1000)
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {waits_ms}")
    connection.exec_driver_sql(options.get("begin", "BEGIN"))
