"""The tables of shared mode, ours and DBOS's, made and brought up to date by a person."""

from __future__ import annotations

from pathlib import Path
from time import sleep

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util import CommandError

from unified_flow.errors import ConfigError
from unified_flow.shared.database import Database
from unified_flow.shared.workflows import make_tables, plain_errors

MIGRATIONS = Path(__file__).parent / "migrations"
REVISION = "0001"  # the newest
_LOCK = 7_166_452
_POLL_S = 0.1


def migrate(database: Database) -> tuple[str | None, str]:
    """Bring the tables to the newest form, one process at a time; from which revision to which.
    Raises ConfigError for tables of a newer version, and DatabaseAwayError."""
    with database.connect() as session:  # the end of the session ends its lock
        # A statement that waits would hold up the indexes, which DBOS makes concurrently.
        while session.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone() != (True,):
            sleep(_POLL_S)
        before = revision_of(database)
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        with plain_errors(database), engine_of(database).begin() as connection:
            config.attributes["connection"] = connection
            try:
                command.upgrade(config, "head")
            except CommandError as exc:
                raise ConfigError(
                    f"the tables in {database.named}, at {before}, were made by a newer version",
                    hint="install that one",
                ) from exc
        make_tables(database)
    return before, REVISION


def revision_of(database: Database) -> str | None:
    """That of the tables; None without any. Raises DatabaseAwayError."""
    if database.row("SELECT to_regclass('shared_version')") == (None,):
        return None
    return str(database.row("SELECT version_num FROM shared_version")[0])


def engine_of(database: Database) -> sa.Engine:
    return sa.create_engine(
        "postgresql+psycopg://",
        creator=database.connect,
        isolation_level="READ COMMITTED",  # else the session would commit each statement
        poolclass=sa.NullPool,
    )
