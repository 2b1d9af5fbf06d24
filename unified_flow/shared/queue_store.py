"""The intervention queue in PostgreSQL, for every machine: what `FileStore` is on one.

A line or an entry is stored as JSON in ASCII, so that no character in it is one that PostgreSQL
does not take; the columns beside it are what it is found by. The rules of admission look at all
open entries, so writers take turns: a transaction holds one advisory lock. It reads and writes only
the entries that changed; each writing of an entry has a revision of its own, which never names
another text.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
from psycopg import Cursor

from interventions.entry import Entry, Transition, complete
from interventions.errors import JoinedPutError, LockTimeoutError, StorageError
from interventions.settings import Limits, RetentionSettings
from interventions.storage import store
from interventions.storage.error_log import log_failures, log_line
from interventions.storage.file_store import FileStore
from interventions.storage.jsonl import decode
from interventions.storage.queue_file import QueueState, shortened, with_all_turns
from interventions.storage.store import Admit, PutResult, Transaction
from unified_flow.errors import ConfigError, DatabaseAwayError
from unified_flow.shared.database import (
    Connection,
    Database,
    database_at,
    is_joined,
    joining,
    storable,
)
from unified_flow.shared.notifications import Listener

CHANNEL = "interventions"
_LOCK = 0x75665F71  # "uf_q"
_STATE = """
SELECT id, revision, CASE WHEN revision = ANY (%s) THEN NULL ELSE entry END
FROM interventions ORDER BY place
"""
_COUNTS = "SELECT kind, name, n FROM intervention_counts"
_LOCKED = """
SELECT set_config('lock_timeout', %s, true),
    set_config('synchronous_commit', %s, true), pg_advisory_xact_lock(%s)
"""


class QueueStore(store.Store):
    """`home` has this machine's error logs."""

    begins, resolved, others = "starts_with({}, ?)", "resolved && ?", "id <> ALL (?)"

    def __init__(self, home: Path, database: Database | None = None) -> None:
        self._home = home
        self._thread = threading.local()
        self._known: Mapping[int, Entry] = {}
        self._listener: Listener | None = None
        self._changes = 0
        if database is not None:
            self._database = database

    # Reading

    def read(self) -> QueueState:
        with self._reading() as connection:
            state = self._state(connection)
            dropped, admitted = dict[str, int](), dict[str, int]()
            for kind, name, count in connection.execute(_COUNTS):
                (dropped if kind == "dropped" else admitted)[name] = count
            entries = (with_all_turns(entry, self.turns_by_failure) for entry in state.entries)
            state = state._replace(entries=tuple(entries))
        return state._replace(dropped=dropped, admitted=admitted)

    def _state(self, connection: Connection) -> QueueState:
        """The state without its counts, to which a transaction adds its own."""
        known, found = self._known, dict[int, Entry]()
        unusable: list[tuple[str, str]] = []
        for name, revision, text in connection.execute(_STATE, [list(known)]):
            try:
                found[revision] = known[revision] if text is None else complete(decode(text))
            except ValueError as error:
                unusable.append((name, str(error)))
        self._known = found
        return QueueState(tuple(found.values()), unusable=tuple(unusable))

    def stamp(self) -> int:
        """How many changes were notified since this process first asked."""
        if self._listener is None:
            with suppress(ConfigError):  # `read` says so
                self._listener = Listener(self._database, CHANNEL, self._note_change)
        return self._changes

    def _note_change(self, payload: str | None) -> None:
        self._changes += 1

    def _rows(self, sql: str, *values: object, logs: str | None = "") -> store.Rows:
        ahead: dict[str, Cursor[Any]] = getattr(self._thread, "ahead", {})
        with self._reading() as connection:
            cursor = ahead.pop(f"{sql} {values}", None) or _asked(connection, sql, values)
            return cursor.fetchall()

    def _lines(self, rows: store.Rows) -> Iterator[bytes]:
        return (text.encode() for text, *_ in rows)

    def waiting(self) -> tuple[int, Iterator[dict[str, Any]]]:
        self._gather()
        return super().waiting()

    def waiting_turns(self) -> set[int]:
        self._gather()
        return super().waiting_turns()

    def _gather(self) -> None:
        """Bring what waits in this machine's emergency log, and came there while the database was
        away, to where every machine sees it. The files stay as they are."""
        if lines := list(FileStore(self._home).waiting()[1]):
            sql = "SELECT id FROM intervention_failures WHERE id = ANY (?)"
            with self._reading() as connection:
                names = [str(line.get("id")) for line in lines]
                known = {name for (name,) in _asked(connection, sql, [names])}
                new = [line for line in lines if storable(str(line.get("id"))) not in known]
                add_failures(connection, new)

    # Changing

    def submit(self, failure: Entry, limits: Limits, timeout_s: float, admit: Admit) -> PutResult:
        with self.transaction(timeout_s, failure=failure) as work:
            result = admit(work, failure, limits, self)
            with self._reading() as connection:
                add_failures(connection, [{**result.failure, **result.admission.fields}])
        log_failures(self._home, [log_line(result)])
        return result

    @contextmanager
    def transaction(
        self, timeout_s: float, *, restoring: bool = False, failure: Entry | None = None
    ) -> Iterator[Transaction]:
        """There is nothing to restore from: what PostgreSQL has committed, it has. What `admit`
        asks the archive about a failure is asked with what is asked first: others wait for as long
        as a question and its answer take."""
        joined = is_joined()
        with self._errors("write", timeout_s), self._begun() as connection:
            milliseconds = f"{max(1, round(timeout_s * 1000))}ms"
            connection.execute(_LOCKED, [milliseconds, "on" if joined else "off", _LOCK])
            asked = [self._is_known(failure)] if failure else []
            self._thread.ahead = {f"{sql} {of}": _asked(connection, sql, of) for sql, of in asked}
            try:
                before = self._state(connection)
                work = Transaction(before)
                yield work
            finally:
                self._thread.ahead = {}
            if work.state is not before or work.to_journal or work.to_archive:
                whole = (with_all_turns(e, self.turns_by_failure) for e in work.to_archive)
                _add_archived(connection, whole)
                _add_transitions(connection, work.to_journal)
                _write_state(connection, before, work.state)

    def prune(self, keep: RetentionSettings, line: Transition, timeout_s: float) -> int:
        """Remove archived entries with what became of the failures that they held."""
        if not (closed_before := self.closed_before(keep)):
            return 0
        sql = "DELETE FROM intervention_archive WHERE closed_at < %s RETURNING id"
        with self.transaction(timeout_s) as work, self._reading() as connection:
            gone = [name for (name,) in connection.execute(sql, [closed_before])]
            if gone:
                sql = "DELETE FROM intervention_failures WHERE holder = ANY (%s)"
                connection.execute(sql, [gone])
                work.to_journal.append({**line, "closed_before": closed_before})
        return len(gone)

    @contextmanager
    def _begun(self) -> Iterator[Connection]:
        """A transaction, in which every other question of this thread is asked, too: a second
        connection would see another state, and wait for one that its neighbours hold.

        The next writer has the lock before the disk has what this one wrote: PostgreSQL writes the
        changes of several at once, and this one waits until its own are among them."""
        with self._database.connection() as connection:
            if is_joined():  # whoever began it commits it
                yield connection
                return
            try:
                with connection.pipeline(), joining(connection):
                    connection.execute("BEGIN")
                    yield connection
                    connection.execute("COMMIT")
                    connection.execute("SELECT pg_logical_emit_message(true, '', '')")
            finally:
                connection.rollback()  # of what failed

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._errors("read"), self._database.connection() as connection:
            yield connection

    @cached_property
    def _database(self) -> Database:
        """Found when it is first asked: who puts a failure must not fail for the want of it."""
        return database_at(self._home)

    @contextmanager
    def _errors(self, verb: str, timeout_s: float = 0.0) -> Iterator[None]:
        """If the put is part of somebody's transaction (`joining`), nothing of it is
        stored elsewhere: they begin it anew."""
        joined = is_joined()
        try:
            yield
        except ConfigError as error:
            raise StorageError(str(error), hint=error.hint or "") from error
        except (DatabaseAwayError, psycopg.Error) as error:
            what = f"the database cannot {verb} the queue: {error}"
            if joined:
                raise JoinedPutError(what) from error
            if isinstance(error, psycopg.errors.LockNotAvailable):
                what = f"the queue was locked for longer than {timeout_s:g} s"
                raise LockTimeoutError(what) from error
            raise StorageError(what, hint="unified-flow shared check") from error


def _write_state(connection: Connection, before: QueueState, after: QueueState) -> None:
    """What differs, since entries are never changed in place; and news of it."""
    was = {entry["id"]: entry for entry in before.entries}
    now = {entry["id"]: entry for entry in after.entries}
    new = {name: entry for name, entry in now.items() if was.get(name) is not entry}
    grown = {"dropped": Counter(after.dropped) - Counter(before.dropped)}
    grown["admitted"] = Counter(after.admitted) - Counter(before.admitted)
    counts = [
        (kind, name, count) for kind, by_name in grown.items() for name, count in by_name.items()
    ]
    gone = [(name,) for name in was if name not in now]
    _add(connection, "DELETE FROM interventions WHERE id = ?", gone)
    # An entry that is written anew keeps its place.
    sql = (
        "INSERT INTO interventions (id, revision, entry)"
        " VALUES (?, nextval('intervention_revisions'), ?) ON CONFLICT (id)"
        " DO UPDATE SET revision = EXCLUDED.revision, entry = EXCLUDED.entry"
    )
    texts = [(name, _encoded(complete(shortened(entry)))) for name, entry in new.items()]
    _add(connection, sql, texts)
    sql = (
        "INSERT INTO intervention_counts AS known VALUES (?, ?, ?)"
        " ON CONFLICT (kind, name) DO UPDATE SET n = known.n + EXCLUDED.n"
    )
    _add(connection, sql, counts)
    connection.execute("SELECT pg_notify(%s, '')", [CHANNEL])


def _asked(connection: Connection, sql: str, values: Iterable[object]) -> Cursor[Any]:
    return connection.execute(_statement(sql), list(map(_taken, values)))


def _statement(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def _taken(value: object) -> object:
    """The value as PostgreSQL takes it."""
    if isinstance(value, list):
        return list(map(_taken, value))
    return storable(value) if isinstance(value, str) else value


def _add(connection: Connection, sql: str, rows: Iterable[Iterable[object]]) -> None:
    """The statement for each row, sent together."""
    if taken := [list(map(_taken, row)) for row in rows]:
        connection.cursor().executemany(_statement(sql), taken)


def _encoded(record: Mapping[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":"))


def add_failures(connection: Connection, lines: Iterable[Mapping[str, Any]]) -> None:
    """Lines of the logs; one that was dropped stays whole until it is drained."""
    sql = (
        f"{store.ADD_FAILURE} ON CONFLICT (id) DO UPDATE SET"
        " holder = coalesce(intervention_failures.holder, EXCLUDED.holder)"
    )
    # Another program's line may have no id, and is a loss all the same.
    rows = ((store.failure_row({**line, "id": str(line.get("id"))}), line) for line in lines)
    _add(connection, sql, [(*row, None if row[1] else _encoded(line)) for row, line in rows])


def _add_transitions(connection: Connection, lines: Sequence[Transition]) -> None:
    sql = "INSERT INTO intervention_transitions (id, action, line) VALUES (?, ?, ?)"
    _add(connection, sql, [(line["id"], line["action"], _encoded(line)) for line in lines])
    sql = "UPDATE intervention_failures SET holder = ?, line = NULL WHERE id = ?"
    _add(connection, sql, [(x["id"], x["failure_id"]) for x in lines if x["action"] == "drain"])


def _add_archived(connection: Connection, entries: Iterable[Entry]) -> None:
    """The last record of an id counts, and is the latest."""
    rows = [(*store.archive_row(entry), _encoded(entry)) for entry in entries]
    _add(connection, "DELETE FROM intervention_archive WHERE id = ?", [row[:1] for row in rows])
    _add(connection, store.ADD_ARCHIVED, rows)
