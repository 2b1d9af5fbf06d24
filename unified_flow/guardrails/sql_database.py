"""The database of rules and decisions: SQLite beside the queue, or PostgreSQL by its URL.

The URL holds a password, so that nothing here shows it: neither a message nor a cause.

A turn waits at most LOCKED_S for a locked file, CONNECT_S for a server that cannot be reached, and
ANSWER_S for one that hangs; then the turns of the next seconds do not ask it. A command that
changes rules waits longer for a locked file (PATIENT_S): a person sees it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

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

from interventions.home import create_private, make_private_folder
from unified_flow.errors import ConfigError, RetrievalError, needs_extra
from unified_flow.models.circuit_breaker import Breaker, CircuitRules

LOCKED_S = 1.0
PATIENT_S = 10.0
CONNECT_S = 3
STATEMENT_S = 5
ANSWER_S = 6.0
REVISION = "0003"
MIGRATIONS = Path(__file__).parent / "migrations"
_UPGRADE_LOCK = 7166451
_SERVER_AWAY = CircuitRules(failures=1, open_s=5.0)
_FILE_LOCKED = CircuitRules(failures=1, open_s=1.0)


class RefusedError(RetrievalError):
    """The database works, and does not take this row."""


class SqlDatabase:
    """Opened on first use, which makes the tables. Safe among processes.

    `named` is for messages: the file, or the variable that holds the URL."""

    def __init__(self, engine: sa.Engine, named: str, file: Path | None = None) -> None:
        self._engine = engine
        self.named = named
        self._file = file
        self._ready = False
        self._opening = Lock()
        self._inode: int | None = None
        rules = _SERVER_AWAY if file is None else _FILE_LOCKED
        self._connecting = Breaker(rules, _is_away, self._refusal)
        # Of its own: a program that only reads a file is not held up by one that writes.
        self._writing = Breaker(rules, _is_away, self._refusal)
        # One for all threads: the thread that makes the tables holds it twice.
        self._making = None if file is None else FileLock(f"{file}.lock", mode=0o600)

    @classmethod
    def of_file(cls, file: Path) -> SqlDatabase:
        return cls(_sqlite_engine(file), str(file), file)

    @classmethod
    def of_variable(cls, variable: str, environ: Mapping[str, str] = os.environ) -> SqlDatabase:
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
        with needs_extra(named, "postgres"):
            return cls(_postgres_engine(url), named)

    @property
    def exists(self) -> bool:
        """False only for a file that was never written, here or elsewhere."""
        return self._file is None or self._ready or self._file.exists()

    def close(self) -> None:
        self._engine.dispose()
        self._ready = False

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Raises RetrievalError, as `write` does."""
        with self._errors_explained(), self._connected() as connection:
            yield connection

    @contextmanager
    def write(self, *, patient: bool = False) -> Iterator[sa.Connection]:
        """One transaction, committed if the block ends well. `patient`: no answer waits for it,
        so that it may take PATIENT_S to get hold of a locked file."""
        with self._errors_explained(), self._connected() as connection:
            # Else two writers that both began by reading could only fail.
            options = {"begin": "BEGIN IMMEDIATE"} | ({"waits_s": PATIENT_S} if patient else {})
            connection = connection.execution_options(**options)
            with nullcontext() if patient else self._writing.guarding(), connection.begin():
                yield connection

    @contextmanager
    def _connected(self) -> Iterator[sa.Connection]:
        with self._connecting.guarding():
            self._open()
            connection = self._engine.connect()
        with connection:
            yield connection

    def _open(self) -> None:
        if self._file is None or self._making is None:
            # The server sees to it that tables are made once: no thread waits for another here.
            if not self._ready:
                self._make_tables()
            return
        with self._opening:
            found = _stat(self._file)
            if self._ready and (found is None or found.st_size == 0):
                self._engine.dispose()
                raise self._lost("is gone" if found is None else "was emptied")
            if self._ready and found is not None and found.st_ino == self._inode:
                return
            self._engine.dispose()  # the file was replaced by a copy
            if found is None or found.st_size == 0:
                self._make_file(self._file, self._making)
            else:
                self._make_tables()
            self._inode = self._file.stat().st_ino

    def _make_file(self, file: Path, making: FileLock) -> None:
        """Under the lock until the file has its tables, so that an empty one has lost them: rules
        that are gone are not taken for rules that never were."""
        make_private_folder(file.parent)
        with making:
            found = _stat(file)
            if found is not None and found.st_size == 0:
                raise self._lost("is empty")
            create_private(file)
            self._make_tables()

    def _make_tables(self) -> None:
        if self._revision() != REVISION:
            self._upgrade()
        self._ready = True

    def _lost(self, what: str) -> RetrievalError:
        hint = "restore it from a copy; or move it aside and restart to begin anew"
        return RetrievalError(f"{self.named} {what}, and with it the rules", hint=hint)

    def _revision(self) -> str | None:
        with self._engine.connect() as connection:
            if not sa.inspect(connection).has_table("alembic_version"):
                return None
            found = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
            return None if found is None else str(found)

    def _upgrade(self) -> None:
        """Upgrade to the newest tables, one process at a time."""
        from alembic import command
        from alembic.config import Config
        from alembic.util import CommandError

        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        with self._errors_explained(), self._exclusive() as connection:
            config.attributes["connection"] = connection
            try:
                command.upgrade(config, "head")
            except CommandError as exc:
                raise RetrievalError(
                    f"{self.named} was made by a newer version: {exc}", hint="install that one"
                ) from exc

    @contextmanager
    def _exclusive(self) -> Iterator[sa.Connection]:
        """A transaction that changes the tables; other processes wait."""
        with self._making or nullcontext(), self._engine.begin() as connection:
            if self._making is None:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_UPGRADE_LOCK)))
            yield connection

    @contextmanager
    def _errors_explained(self) -> Iterator[None]:
        try:
            yield
        except json.JSONDecodeError as exc:
            raise RetrievalError(
                f"a row of {self.named} holds no JSON: {exc}",
                hint="""mend the row: '["spam", "scam"]' is a list of words""",
            ) from exc
        except (SQLAlchemyError, OSError) as exc:
            raise self._explained(exc) from (None if self._file is None else exc)

    def _refusal(self, last: BaseException, wait_s: float) -> RetrievalError:
        return self._explained(last)

    def _explained(self, exc: BaseException) -> RetrievalError:
        """The driver's words about a server name host, user and more of the URL."""
        kind = RefusedError if isinstance(exc, IntegrityError | DataError) else RetrievalError
        cause = getattr(exc, "orig", None) or exc
        if self._file is None:
            state = getattr(cause, "sqlstate", None)
            shown = f"{type(cause).__name__}{f', SQLSTATE {state}' if state else ''}"
            hint = "is the server running, and the URL right? unified-flow doctor tries it"
            return kind(f"{self.named} cannot be used ({shown})", hint=hint)
        locked = getattr(cause, "sqlite_errorname", "").startswith("SQLITE_BUSY")
        hint = (
            "another program holds it: end that one, or what it does there"
            if locked
            else "move the file aside to begin anew, or restore it from a copy"
        )
        return kind(f"{self.named} cannot be used: {cause}", hint=hint)


def _is_away(error: BaseException) -> bool:
    return isinstance(error, OperationalError | PoolTimeoutError)


def _sqlite_engine(file: Path) -> sa.Engine:
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(file)),
        connect_args={"timeout": LOCKED_S},
        hide_parameters=True,
    )
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
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


def _postgres_engine(url: sa.URL) -> sa.Engine:
    """Raises ImportError without psycopg. The server ends long statements by itself, TCP notices
    a host that is gone, and a connection gives up a server that hangs."""
    import psycopg

    class BoundedConnection(psycopg.Connection[Any]):
        """A server that hangs, or a proxy that forwards nothing any more, acknowledges what it is
        sent, so that neither its own time limits nor those of TCP end the wait."""

        def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
            return super().wait(self._bounded(gen), *args, **options)

        def _bounded(self, gen: Any) -> Generator[Any, Any, Any]:
            ends_at = monotonic() + ANSWER_S
            try:
                wanted = next(gen)
                while True:
                    ready = yield wanted
                    if not ready and monotonic() > ends_at:  # asked several times a second
                        self.close()
                        raise psycopg.OperationalError(f"no answer within {ANSWER_S:g} s")
                    wanted = gen.send(ready)
            except StopIteration as done:
                return done.value

    def connect(_dialect: Any, _record: Any, args: Any, options: Any) -> BoundedConnection:
        return BoundedConnection.connect(*args, **options)

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
    sa.event.listen(engine, "do_connect", connect)
    return engine


def _stat(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except FileNotFoundError:
        return None
