"""The archive, the journal of transitions and the error logs of a home, found by an index.

The files of lines are what counts. The index (SQLite, `intervention_history.sqlite`) says where in
them something lies, is brought up to date when it is asked, and is made anew when it is missing, of
another version, or does not fit a file any more. Where it cannot be written it is kept in memory.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, cast

from interventions import home as places
from interventions.entry import Entry, Transition, complete
from interventions.storage import jsonl, store
from interventions.storage.queue_file import is_transition, reading

_VERSION = 7
# Where a record lies is written as the path in the home, the offset and the length.
_SCHEMA = """
CREATE TABLE file (path TEXT PRIMARY KEY, inode, size, time, read_to, ending);
-- Every entry that was accepted, changed or archived.
CREATE TABLE acknowledged (id TEXT PRIMARY KEY, version DEFAULT 1, open, closed_at, archived);
CREATE INDEX acknowledged_open ON acknowledged (id) WHERE open;
CREATE INDEX acknowledged_elsewhere ON acknowledged (id) WHERE archived IS NULL;
CREATE TABLE intervention_archive (
    place INTEGER PRIMARY KEY, id TEXT UNIQUE, short, closed_at, hours, regression, verified,
    still_resolved, resolved, entry
);
CREATE INDEX archive_closed ON intervention_archive (closed_at, place);
CREATE INDEX archive_short ON intervention_archive (short);
-- What is in `resolved`. A row that is not there any more, or again, costs nothing.
CREATE TABLE resolved (fingerprint, place, PRIMARY KEY (fingerprint, place)) WITHOUT ROWID;
CREATE TABLE intervention_transitions (
    place INTEGER PRIMARY KEY, name TEXT UNIQUE, id, version_from, action, line
);
CREATE INDEX transition_id ON intervention_transitions (id, place);
CREATE INDEX transition_upkeep ON intervention_transitions (action) WHERE id IS NULL;
-- Failures of the logs, and the entry that holds each. Without a line it is one of which the
-- journal or the archive knew first: drained, or an entry that is archived, or a sample of one.
CREATE TABLE intervention_failures (
    place INTEGER PRIMARY KEY, id TEXT UNIQUE, holder, admission, reason, severity, created, phase,
    fingerprint, error_type, error_message, turns, line
);
CREATE INDEX failure_holder ON intervention_failures (holder);
CREATE INDEX failure_like ON intervention_failures (fingerprint, created);
CREATE INDEX failure_dropped ON intervention_failures (reason) WHERE admission = 'dropped'
"""
# What is there with that id goes, and what comes has another place.
_ADD_ARCHIVED = store.ADD_ARCHIVED.replace("INSERT", "INSERT OR REPLACE")
_ADD_FAILURE = store.ADD_FAILURE.replace("INSERT", "INSERT OR REPLACE")
_BUSY_S = 30.0
# A file that somebody emptied while another has it open is never free: then it is kept in memory.
_OPENING_S = 1.0
_ENDING_BYTES = 64
# What could not be put back counts as closed before any time, and is not kept.
_BEFORE_ALL, _KEPT = "0", "1"
Mark = tuple[int, int, int]
_UNSTORABLE = (sqlite3.InterfaceError, sqlite3.ProgrammingError)  # by Python's version

_Run = Callable[..., sqlite3.Cursor]


class FileHistory(store.Store):
    """Every method raises StorageError if a file cannot be read."""

    begins = "{0} >= ?1 AND {0} < ?1 || char(1114111)"
    resolved = (
        "place IN (SELECT r.place FROM json_each(?) JOIN resolved r ON r.fingerprint = value)"
    )
    others = "id NOT IN (SELECT value FROM json_each(?))"

    def __init__(self, home: Path) -> None:
        self._home = home
        self._archive, self._journal = places.archive_file(home), places.transitions_file(home)
        self._logs = places.error_log_folder(home)
        self._index = _Index(places.history_index(home))

    def knows(self, failure: Entry) -> bool:
        """Asked a second time, while the archive is the same, it does not ask the index again: so
        a put asks before it takes the lock."""
        with reading(self._archive):
            asked = (failure["id"], failure["fingerprint"], places.mark_of(self._archive))
        if asked != self._index.unknown:
            if super().knows(failure):
                return True
            self._index.unknown = asked
        return False

    def upkeep(self, action: str) -> list[Transition]:
        """The lines that are about no entry (`rebuild`, `prune`), the latest first."""
        sql = (
            "SELECT line FROM intervention_transitions WHERE id IS NULL AND action = ?"
            " ORDER BY place DESC"
        )
        return cast(list[Transition], list(jsonl.records(self._lines(self._rows(sql, action)))))

    def admitted(self) -> Counter[str]:
        """How many failures were accepted, merged and counted."""
        sql = (
            "SELECT admission, count(*) FROM intervention_failures"
            " WHERE admission <> 'dropped' GROUP BY 1"
        )
        return Counter(dict(self._rows(sql)))

    def failures_of(self, intervention_id: str) -> Iterator[dict[str, Any]]:
        """The lines of all failures that this entry holds, its own first."""
        sql = (
            "SELECT line FROM intervention_failures WHERE holder = ?1 AND line IS NOT NULL"
            " ORDER BY id <> ?1, place"
        )
        return jsonl.records(self._lines(self._rows(sql, intervention_id)))

    def missing(self, present: Collection[str], *, closed: bool = False) -> list[str]:
        """Ids of acknowledged entries that are open as far as is known and not among `present`;
        with `closed` also of those that are closed and in no archive, as far as it is kept."""
        rows = self._rows("SELECT id, '' FROM acknowledged WHERE open")
        if closed:
            sql = "SELECT id, closed_at FROM acknowledged WHERE archived IS NULL AND NOT open"
            rows += self._rows(sql)
        kept_from = max([_KEPT, *(line["closed_before"] for line in self.upkeep("prune"))])
        kept = (name for name, closed_at in rows if not closed_at or closed_at >= kept_from)
        return sorted(name for name in kept if name not in present)

    def archived_count(self, closed_before: str) -> int:
        """How many archived entries were closed before then."""
        sql = "SELECT count(*) FROM intervention_archive WHERE closed_at < ?"
        return sum(number for (number,) in self._rows(sql, closed_before, logs=None))

    def archived_lines(self, closed_from: str) -> Iterator[bytes]:
        """The lines of the archive's entries that were not closed before then."""
        sql = "SELECT entry FROM intervention_archive WHERE closed_at >= ? ORDER BY place"
        return self._lines(self._rows(sql, closed_from, logs=None))

    def knows_any(self, *, read_on: bool = True) -> bool:
        """Whether an entry was ever acknowledged here, as far as the files or the index alone know
        of it."""
        marks = self._marks() if read_on else {}
        return bool(self._answer("SELECT 1 FROM acknowledged LIMIT 1", (), marks))

    # Reading

    def _rows(self, sql: str, *values: object, logs: str | None = "") -> store.Rows:
        with reading(self._archive.parent):
            marks = self._marks(logs)
        return self._answer(sql, values, marks) if logs is not None or any(marks.values()) else []

    def _answer(
        self, sql: str, values: Iterable[object], marks: Mapping[Path, Mark | None]
    ) -> store.Rows:
        """Ask the index, once it knows these files as they are now."""
        # It outlives the files that it was made of.
        if not (any(marks.values()) or self._index.path.exists()):
            return []
        with reading(self._archive.parent):
            while True:
                try:
                    return self._caught_up(marks).execute(sql, _bound(values)).fetchall()
                except sqlite3.Error as error:
                    if not self._index.start_anew(error):
                        raise

    def _marks(self, logs: str | None = "") -> dict[Path, Mark | None]:
        """A put asks the archive alone: a look at the logs would cost more than the put."""
        if logs is None:
            return {self._archive: places.mark_of(self._archive)}
        files = (*places.error_logs(self._home, logs), self._journal, self._archive)
        return {path: places.mark_of(path) for path in files}

    def _lines(self, rows: store.Rows) -> Iterator[bytes]:
        found = (where.rsplit(" ", 2) for where, *_ in rows)
        for name, spans in groupby(found, key=lambda where: where[0]):
            path = self._home / name
            # An old log may be removed.
            with reading(path), suppress(FileNotFoundError), path.open("rb", buffering=0) as file:
                for _, at, length in spans:
                    yield os.pread(file.fileno(), int(length), int(at))

    def _caught_up(self, marks: Mapping[Path, Mark | None]) -> sqlite3.Connection:
        connection = self._index.connection()
        run = connection.execute
        # Asked each time: another process may have made it anew, and have read nothing yet.
        if not all(_known(run, path)[0] == mark for path, mark in marks.items()):
            with connection:
                run("BEGIN IMMEDIATE")
                if not all(self._read_on(run, path) for path in marks):
                    _make_anew(run)
                    # All, for somebody else may just have found what they ask of to be there.
                    for path in self._marks():
                        self._read_on(run, path)
        return connection

    def _read_on(self, run: _Run, path: Path) -> bool:
        """Index its new lines; False if it is not the file that was indexed so far."""
        mark, (known, read_to, ending) = places.mark_of(path), _known(run, path)
        if mark is None or known == mark:
            # An old log may be removed.
            return known == mark or path.parent == self._logs
        if known is not None:
            grown = known[0] == mark[0] and known[1] < mark[1]
            if not grown or not jsonl.ends_with(path, read_to, ending):
                return False
        add = {self._archive: _add_archived, self._journal: _add_transition}.get(path, _add_failure)
        name = path.relative_to(self._home)
        for at, line in jsonl.lines(path, read_to):
            read_to, ending = at + len(line) + 1, line[-_ENDING_BYTES:]
            # Another program may have damaged it.
            with suppress(ValueError, TypeError, OverflowError, KeyError, *_UNSTORABLE):
                add(run, jsonl.parse_line(line) or {}, f"{name} {at} {len(line)}")
        row = (str(path), *mark, read_to, ending)
        run("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?)", row)
        return True


def _bound(values: Iterable[object]) -> list[object]:
    return [json.dumps(value) if isinstance(value, list) else value for value in values]


def _add_archived(run: _Run, record: dict[str, Any], where: str) -> None:
    entry = complete(record)
    row = store.archive_row(entry)
    name, closed_at, names = row[0], row[2], cast(list[str], row[-1])
    place = run(_ADD_ARCHIVED, _bound((*row, where))).lastrowid
    for fingerprint in names:
        run("INSERT OR IGNORE INTO resolved VALUES (?, ?)", (fingerprint, place))
    run(
        "INSERT INTO acknowledged VALUES (?1, ?2, 0, ?3, 1) ON CONFLICT DO UPDATE SET"
        " version = max(version, ?2), open = open AND version > ?2, closed_at = ?3, archived = 1",
        (name, entry["version"], closed_at),
    )
    _add_failed(run, {**entry, "intervention_id": name, "admission": "accepted"}, None)
    samples = [entry.get("latest_sample"), *(row.get("sample") for row in entry["merged"])]
    for sample in filter(None, samples):
        _add_held(run, sample.get("id"), entry["id"])


def _add_transition(run: _Run, line: dict[str, Any], where: str) -> None:
    name, action, after = line.get("id"), line.get("action"), line.get("after")
    # An older version noted the turns here that did not fit the queue file.
    if not is_transition(line) or action == "turns":
        return
    sql = (
        "INSERT OR IGNORE INTO intervention_transitions (name, id, version_from, action, line)"
        " VALUES (?, ?, ?, ?, ?)"
    )
    noted = run(sql, (line["transition_id"], name, line.get("version_from"), action, where))
    if not noted.rowcount:
        return
    if action == "drain":
        _add_held(run, line.get("failure_id"), name)
        if name == line.get("failure_id"):
            run("INSERT OR IGNORE INTO acknowledged (id, open) VALUES (?, 1)", (name,))
    for lost in line.get("given_up") or ():
        gone = (lost, 2**62, False, _BEFORE_ALL, None)
        run("INSERT OR REPLACE INTO acknowledged VALUES (?, ?, ?, ?, ?)", gone)
    if not isinstance(after, dict):
        return
    # Older versions noted a change before it was made: one that began here was not made.
    sql = "DELETE FROM intervention_transitions WHERE id = ? AND version_from >= ? AND place < ?"
    run(sql, (name, line["version_from"], noted.lastrowid))
    closed = after.get("resolved_at") or after.get("dismissed_at")
    says = "resolved_at" in after or "dismissed_at" in after
    run(
        "INSERT INTO acknowledged (id, version, open, closed_at)"
        " VALUES (?1, ?2, coalesce(?3, 1), ?4)"
        " ON CONFLICT DO UPDATE SET version = ?2, open = coalesce(?3, open),"
        " closed_at = iif(?3 IS NULL, closed_at, ?4) WHERE ?2 >= version",
        (name, line["version_to"], not closed if says else None, closed),
    )


def _add_failure(run: _Run, line: dict[str, Any], where: str) -> None:
    holder, admission = line.get("intervention_id"), line.get("admission")
    if not (holder or (admission == "dropped" and where.startswith(_EMERGENCY_LOGS))):
        return
    _add_failed(run, line, where)
    if holder:
        # It may be in the emergency log too, if its writer had given up waiting.
        _add_held(run, line.get("id"), holder)
        run("INSERT OR IGNORE INTO acknowledged (id, open) VALUES (?, 1)", (holder,))


_EMERGENCY_LOGS = str(places.error_log_folder(Path()) / store.EMERGENCY)


def _add_failed(run: _Run, said: Mapping[str, Any], where: str | None) -> None:
    """What a log says first counts, and more than what the archive says."""
    row = store.failure_row(said)
    sql = "SELECT holder, line FROM intervention_failures WHERE id = ?"
    holder, line = run(sql, row[:1]).fetchone() or (None, None)
    if line is None:
        run(_ADD_FAILURE, _bound((row[0], holder or row[1], *row[2:], where)))


def _add_held(run: _Run, failure_id: str | None, holder: str | None) -> None:
    sql = (
        "INSERT INTO intervention_failures (id, holder) VALUES (?1, ?2)"
        " ON CONFLICT DO UPDATE SET holder = ?2"
    )
    if failure_id and holder:
        run(sql, (failure_id, holder))


class _Connection(sqlite3.Connection):
    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # it could not be opened
            self.close()


class _Index(threading.local):
    """SQLite's connections are of one thread, and of one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tried = self._in_memory = False
        self._connection: _Connection | None = None
        self._process = 0
        # The failure that it did not know, and what the archive was like then.
        self.unknown: tuple[str, str, Mark | None] | None = None

    def connection(self) -> sqlite3.Connection:
        if self._connection is None or self._process != os.getpid():
            # Who only reads makes no folder.
            in_memory = self._in_memory or not self.path.parent.is_dir()
            self._connection, self._process = _opened(None if in_memory else self.path), os.getpid()
        return self._connection

    def start_anew(self, error: sqlite3.Error) -> bool:
        """In another file if this one is damaged, in memory if none can be used; False if it was in
        memory already."""
        self._connection = None
        if self._in_memory:
            return False
        self._in_memory = self._tried or isinstance(error, sqlite3.OperationalError)
        if not self._in_memory:
            self._tried = True
            for end in ("", "-wal", "-shm"):
                Path(f"{self.path}{end}").unlink(missing_ok=True)
        return True


def _opened(path: Path | None) -> _Connection:
    if path is not None:
        with suppress(OSError):  # SQLite says so, too
            places.create_private(path)
    # Each thread has its own; what is left of one that has ended, another may close.
    connection = sqlite3.connect(
        path or ":memory:",
        timeout=_OPENING_S,
        isolation_level=None,
        check_same_thread=False,
        factory=_Connection,
    )
    run = connection.execute
    # Readers are in no writer's way, and no commit waits for the disk: what it loses is read again.
    run("PRAGMA journal_mode = WAL")
    run("PRAGMA synchronous = NORMAL")
    if not _is_current(run):
        with connection:
            run("BEGIN IMMEDIATE")
            if not _is_current(run):
                _make_anew(run)
    run(f"PRAGMA busy_timeout = {_BUSY_S * 1000:.0f}")
    return connection


def _is_current(run: _Run) -> bool:
    return bool(run("PRAGMA user_version").fetchone()[0] == _VERSION)


def _make_anew(run: _Run) -> None:
    for (name,) in run("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        run(f"DROP TABLE {name}")
    for statement in _SCHEMA.split(";\n"):
        run(statement)
    run(f"PRAGMA user_version = {_VERSION}")


def _known(run: _Run, path: Path) -> tuple[Mark | None, int, bytes]:
    """The file as it was when it was indexed, how far it was read, and the end of the last line."""
    sql = "SELECT inode, size, time, read_to, ending FROM file WHERE path = ?"
    row = run(sql, (str(path),)).fetchone()
    return (row[:3], row[3], row[4]) if row else (None, 0, b"")
