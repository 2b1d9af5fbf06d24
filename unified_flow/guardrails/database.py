"""The database of rules and decisions: SQLite beside the queue, or PostgreSQL by its URL.

The URL holds a password, so that nothing here shows it: neither a message nor a cause.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Lock

import sqlalchemy as sa
from filelock import FileLock
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    IntegrityError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from interventions.home import make_private_folder, open_private
from unified_flow.errors import ConfigError, RetrievalError
from unified_flow.guardrails.breaker import Breaker
from unified_flow.guardrails.engines import PATIENT_S, postgres_engine, sqlite_engine
from unified_flow.models.circuit import Rules

REVISION = "0002"
MIGRATIONS = Path(__file__).parent / "migrations"
_UPGRADE_LOCK = 7166451
# One turn has waited for a database that is away: those of the next seconds need not.
_SERVER_AWAY = Rules(failures=1, open_s=5.0)
_FILE_LOCKED = Rules(failures=1, open_s=1.0)
_AWAY = (OperationalError, PoolTimeoutError)


class RefusedError(RetrievalError):
    """The database works, and does not take this row."""


class Database:
    """Opened, and brought to this version's tables, on first use. Safe among processes."""

    def __init__(self, engine: sa.Engine, named: str, file: Path | None = None) -> None:
        self._engine = engine
        self._named = named
        self._file = file
        self._ready = False
        self._opening = Lock()
        self._inode: int | None = None
        rests = _SERVER_AWAY if file is None else _FILE_LOCKED
        self._connecting = Breaker(rests, _AWAY, self._told_of)
        # Of its own: whoever only reads a file is not held up by one who writes.
        self._writing = Breaker(rests, _AWAY, self._told_of)
        # One for all threads: whoever makes the tables holds it twice.
        self._making = None if file is None else FileLock(f"{file}.lock", mode=0o600)

    @classmethod
    def of_file(cls, file: Path) -> Database:
        return cls(sqlite_engine(file), str(file), file)

    @classmethod
    def of_variable(cls, variable: str, environ: Mapping[str, str] = os.environ) -> Database:
        """Raises ConfigError if `variable` holds no URL of a PostgreSQL database."""
        named = f"the database that {variable} names"
        try:
            url = sa.make_url(environ.get(variable, "").strip())
        except ArgumentError:
            url = None
        if url is None or url.get_backend_name() not in {"postgresql", "postgres"}:
            raise ConfigError(
                f"the environment variable {variable} holds no URL of a PostgreSQL database",
                hint=f"export {variable}=postgresql://USER:PASSWORD@HOST/DATABASE",
            )
        try:
            engine = postgres_engine(url)
        except ImportError as exc:
            raise ConfigError(
                f"{named} needs the extra `postgres`", hint="pip install 'unified-flow[postgres]'"
            ) from exc
        return cls(engine, named)

    @property
    def named(self) -> str:
        """For messages: the file, or the variable that holds the URL."""
        return self._named

    @property
    def is_there(self) -> bool:
        """False only for a file that was never written, here or elsewhere."""
        return self._file is None or self._ready or self._file.exists()

    def close(self) -> None:
        self._engine.dispose()
        self._ready = False

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Raises RetrievalError, as `write` does."""
        with self._told(), self._connected() as connection:
            yield connection

    @contextmanager
    def write(self, *, patient: bool = False) -> Iterator[sa.Connection]:
        """One transaction, which is kept if the block ends well. `patient`: nobody waits for an
        answer meanwhile, so that it may take its time to get hold of a locked file."""
        with self._told(), self._connected() as connection:
            # Else two writers that both began by reading could only fail.
            options = {"begin": "BEGIN IMMEDIATE"} | ({"waits_s": PATIENT_S} if patient else {})
            connection = connection.execution_options(**options)
            with nullcontext() if patient else self._writing.asking(), connection.begin():
                yield connection

    def upgrade(self, revision: str = "head") -> None:
        """To `revision`, one process at a time."""
        self._migrate("upgrade", revision)

    def downgrade(self, revision: str) -> None:
        self._migrate("downgrade", revision)
        self._ready = False

    @contextmanager
    def _connected(self) -> Iterator[sa.Connection]:
        with self._connecting.asking():
            self._open()
            connection = self._engine.connect()
        with connection:
            yield connection

    def _open(self) -> None:
        if self._file is None or self._making is None:
            # Nobody waits for another's connection; that tables are made once, the server sees to.
            if not self._ready:
                self._bring_up()
            return
        with self._opening:
            found = _stat(self._file)
            if self._ready and (found is None or found.st_size == 0):
                self._engine.dispose()
                raise self._lost("is gone" if found is None else "was emptied")
            if self._ready and found is not None and found.st_ino == self._inode:
                return
            self._engine.dispose()  # of what was there before it was restored
            if found is None or found.st_size == 0:
                self._make(self._file, self._making)
            else:
                self._bring_up()
            self._inode = self._file.stat().st_ino

    def _make(self, file: Path, making: FileLock) -> None:
        """Whoever makes the file holds the lock until it has its tables, so that one which is
        empty then has lost them: rules that are gone are not taken for rules that never were."""
        make_private_folder(file.parent)
        with making:
            found = _stat(file)
            if found is not None and found.st_size == 0:
                raise self._lost("is empty")
            os.close(open_private(file, os.O_RDWR))
            self._bring_up()

    def _bring_up(self) -> None:
        if self._revision() != REVISION:
            self.upgrade()
        self._ready = True

    def _lost(self, what: str) -> RetrievalError:
        hint = "restore it from a copy; or move it aside and restart to begin anew"
        return RetrievalError(f"{self._named} {what}, and with it the rules", hint=hint)

    def _revision(self) -> str | None:
        with self._engine.connect() as connection:
            if not sa.inspect(connection).has_table("alembic_version"):
                return None
            found = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
            return None if found is None else str(found)

    def _migrate(self, verb: str, revision: str) -> None:
        from alembic import command
        from alembic.config import Config
        from alembic.util import CommandError

        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        with self._told(), self._alone() as connection:
            config.attributes["connection"] = connection
            try:
                getattr(command, verb)(config, revision)
            except CommandError as exc:
                raise RetrievalError(
                    f"{self._named} was made by a newer version: {exc}", hint="install that one"
                ) from exc

    @contextmanager
    def _alone(self) -> Iterator[sa.Connection]:
        """A transaction of whoever changes the tables; the others wait."""
        if self._making is not None:
            with self._making, self._engine.begin() as connection:
                yield connection
            return
        with self._engine.begin() as connection:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_UPGRADE_LOCK)))
            yield connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, OSError, json.JSONDecodeError) as exc:
            raise self._told_of(exc) from (None if self._file is None else exc)

    def _told_of(self, exc: Exception) -> RetrievalError:
        """The driver's words about a server name host, user and more of the URL."""
        kind = RefusedError if isinstance(exc, IntegrityError | DataError) else RetrievalError
        said = getattr(exc, "orig", None) or exc
        if self._file is None:
            state = getattr(said, "sqlstate", None)
            said = f"{type(said).__name__}{f', SQLSTATE {state}' if state else ''}"
            hint = "is the server running, and the URL right? unified-flow doctor tries it"
            return kind(f"{self._named} cannot be used ({said})", hint=hint)
        locked = getattr(said, "sqlite_errorname", "").startswith("SQLITE_BUSY")
        hint = (
            "another program holds it: end that one, or what it does there"
            if locked
            else "move the file aside to begin anew, or restore it from a copy"
        )
        return kind(f"{self._named} cannot be used: {said}", hint=hint)


def _stat(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except FileNotFoundError:
        return None
