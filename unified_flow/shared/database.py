"""The database of shared mode: its URL, its connections, and what to do while it is away.

The URL holds a password, so that neither a message nor a cause shows it.
"""

from __future__ import annotations

import logging
import os
import secrets
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from interventions.settings import SharedSettings, settings_of
from unified_flow.errors import ConfigError, DatabaseAwayError

T = TypeVar("T")
Connection = psycopg.Connection[Any]

CONNECT_S = 3
PATIENCE_S = 5.0
PAUSE_S = 0.1
LONGEST_PAUSE_S = 1.0
MOST_CONNECTIONS = 8
# Both sides notice within about fifteen seconds that the other machine is gone, and the server ends
# a session that a frozen process has left within a transaction, with its locks.
SESSION: dict[str, Any] = {
    "connect_timeout": CONNECT_S,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
    "options": "-c timezone=UTC -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2"
    " -c tcp_keepalives_count=3 -c idle_in_transaction_session_timeout=15s"
    " -c idle_session_timeout=0",
}

# Nobody has run `unified-flow shared migrate`, or not since an update.
_NO_TABLES = (
    psycopg.errors.InvalidSchemaName,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedTable,
)
# A server that takes no writes may be one that another takes the place of just now; and it ends the
# transaction of a process that was frozen within it.
_AWAY = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.ReadOnlySqlTransaction,
    psycopg.errors.IdleInTransactionSessionTimeout,
)

# What it says of a lost connection names the server; DatabaseAwayError says it once.
logging.getLogger("psycopg").setLevel(logging.CRITICAL)

_joined: ContextVar[Connection | None] = ContextVar("joined", default=None)

# The processes that live, by `Database.program`: the sessions of a process end with it, or before.
LIVING = """(
    SELECT application_name FROM pg_stat_activity WHERE datname = current_database()
)"""


class _KeptConnection(Connection):
    """It ends with the process, or is closed before."""

    def __del__(self, *_: object) -> None:
        """No warning."""


class Database:
    """Its connections are shared by all threads of the process. `named` is for messages, `program`
    tells the sessions of this process from those of all others."""

    def __init__(self, url: str, named: str) -> None:
        self.url = url
        self.named = named
        own = conninfo_to_dict(url).get("options") or ""
        self.session = SESSION | {"options": f"{own} {SESSION['options']}"}
        host = socket.gethostname().encode("ascii", "replace").decode()[:40]
        # PostgreSQL keeps 63 ASCII characters of it.
        self.program = f"{host}-{os.getpid()}-{secrets.token_hex(3)}"
        self.patience_s = PATIENCE_S
        self._away_since: float | None = None
        self._kept: list[Connection] = []
        # What tasks of this process have taken: a name in a row tells only processes apart.
        self._held: set[int | str] = set()
        self._overdue: list[Callable[[], object]] = []
        self._guard = threading.Lock()
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)

    def connect(self, name: str = "", kind: type[Connection] = psycopg.Connection) -> Connection:
        """A session of its own, autocommit; with a `name` it is none by which the process is known
        to live. Raises DatabaseAwayError."""
        with self.away():
            return kind.connect(
                self.url, autocommit=True, **self.session, application_name=name or self.program
            )

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """One of those that are kept, autocommit, or the one that was joined. Raises
        DatabaseAwayError."""
        joined = _joined.get()
        if joined is not None:
            yield joined
            return
        if not self._room.acquire(timeout=CONNECT_S):
            raise DatabaseAwayError(f"{self.named} is slow: all connections to it are in use")
        try:
            connection = self._kept_one() or self.connect(kind=_KeptConnection)
            try:
                with self.away():
                    yield connection
            except DatabaseAwayError:
                connection.close()  # the next one may meet a server that is well
                raise
            finally:
                if connection.info.transaction_status == TransactionStatus.IDLE:
                    self._kept.append(connection)
                else:
                    connection.close()
        finally:
            self._room.release()

    def _kept_one(self) -> Connection | None:
        """Nothing has come on a connection that is well, so that it costs the server nothing."""
        with suppress(IndexError):
            while True:
                connection, news = self._kept.pop(), select.poll()
                news.register(connection.fileno(), select.POLLIN)
                if not news.poll(0):
                    return connection
                connection.close()
        return None

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One transaction, or a part of the one that was joined. Raises DatabaseAwayError."""
        with self.connection() as connection, self.away(), connection.transaction():
            yield connection

    def run(self, work: Callable[[Connection], T]) -> T:
        """What `work` returns, in a transaction. While the database is away it is tried again, for
        at most `patience_s`; if the connection is lost as it commits, `work` may be done twice.
        Raises DatabaseAwayError then."""

        def once() -> T:
            with self.transaction() as connection:
                return work(connection)

        return self.waiting(once)

    def row(self, query: str, **values: Any) -> Any:
        """The first one, as `rows`; None without any."""
        return next(iter(self.rows(query, **values)), None)

    def rows(self, query: str, **values: Any) -> list[Any]:
        """The rows of one statement, a transaction of its own; tried again as in `run`."""

        def once() -> list[Any]:
            with self.connection() as connection:
                return connection.execute(query.encode(), values).fetchall()

        return self.waiting(once)

    def waiting(self, work: Callable[[], T]) -> T:
        """What `work` returns, which is done again if the database is away, until it has been for
        `patience_s`: who comes later tries once. Not within a transaction that was joined."""
        pauses = pauses_s(PAUSE_S, LONGEST_PAUSE_S)
        while True:
            began_at = monotonic()
            try:
                done = work()
            except DatabaseAwayError:
                self._away_since = away_since = self._away_since or began_at
                tried_at, pause_s = monotonic(), next(pauses)
                next_ends_at = tried_at + pause_s + (tried_at - began_at)
                if next_ends_at > away_since + self.patience_s or is_joined():
                    raise
            else:
                self._away_since = None
                if self._overdue and not is_joined():
                    overdue, self._overdue = self._overdue, []
                    for each in overdue:
                        each()
                return done
            sleep(pause_s)

    def once_back(self, work: Callable[[], object]) -> None:
        """Do it after the next statement that succeeds."""
        self._overdue.append(work)

    def hold(self, name: int | str) -> bool:
        """Whether the caller has the name now, alone in this process, until it is released."""
        with self._guard:
            is_free = name not in self._held
            self._held.add(name)
            return is_free

    def release(self, name: int | str) -> None:
        self._held.discard(name)

    def holds(self, name: int | str) -> bool:
        return name in self._held

    def close(self) -> None:
        while self._kept:
            self._kept.pop().close()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Raises DatabaseAwayError, and ConfigError where tables are missing, old or another
        program's, or the role may not use them. The driver's words name more of the URL than what
        the server answered."""
        try:
            yield
        except _NO_TABLES as exc:
            raise ConfigError(
                f"the tables in {self.named} are missing, or of an older version:"
                f" {exc.diag.message_primary}",
                hint="unified-flow shared migrate",
            ) from exc
        except psycopg.errors.DuplicateTable as exc:
            raise ConfigError(
                f"another program has tables in {self.named}: {exc.diag.message_primary}",
                hint="name a database that only unified-flow uses",
            ) from exc
        except psycopg.errors.InsufficientPrivilege as exc:
            raise ConfigError(
                f"the role may not use {self.named}: {exc.diag.message_primary}",
                hint="unified-flow shared check says what to grant",
            ) from exc
        except _AWAY as exc:
            if isinstance(exc, psycopg.errors.LockNotAvailable | psycopg.errors.QueryCanceled):
                raise
            state = getattr(exc, "sqlstate", None)
            shown = str(exc).partition("FATAL:")[2].strip().partition("\n")[0]
            shown = shown or f"{type(exc).__name__}{f', SQLSTATE {state}' if state else ''}"
            verb = "used" if state else "reached"
            raise DatabaseAwayError(
                f"{self.named} cannot be {verb} ({shown})",
                hint="is the server running, and the URL right? unified-flow shared check tries it",
            ) from None


@contextmanager
def joining(connection: Connection) -> Iterator[None]:
    """What this thread, and those that it begins by asyncio.to_thread, do with any database in here
    belongs to the transaction on `connection`."""
    token = _joined.set(connection)
    try:
        yield
    finally:
        _joined.reset(token)


def is_joined() -> bool:
    return _joined.get() is not None


def storable(text: str) -> str:
    """A text for a column by which something is found, the same for the same one: PostgreSQL takes
    no null character, and no half of a surrogate pair."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def database_at(home: Path) -> Database:
    """The one that [shared] names for `home`. Raises ConfigError if its variable holds no URL."""
    variable = settings_of(home, SharedSettings).database_url_env
    url = os.environ.get(variable, "").strip()
    try:
        is_url = url.startswith(("postgresql://", "postgres://")) and bool(conninfo_to_dict(url))
    except psycopg.ProgrammingError:
        is_url = False
    if not is_url:
        raise ConfigError(
            f"the environment variable {variable} holds no URL of a PostgreSQL database",
            hint=f"export {variable}=postgresql://USER:PASSWORD@HOST/DATABASE",
        )
    return _database(url, variable, os.getpid())


@cache
def _database(url: str, variable: str, pid: int) -> Database:
    return Database(url, f"the database that {variable} names")


def pauses_s(first: float, longest: float) -> Iterator[float]:
    """The pauses of a caller that tries again and again."""
    while True:
        yield first
        first = min(2 * first, longest)
