"""What only grows: the archive, the journal of transitions, the error logs, found by an index.

The files of lines are what counts. The index (SQLite, `intervention_history.sqlite`) says where in
them something lies, is brought up to date when it is asked, and is made anew when it is missing, of
another version, or does not fit a file any more. Where it cannot be written it is kept in memory.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from interventions import home as places
from interventions.entry import Entry, Transition, complete, fingerprints, severity_rank, short_id
from interventions.settings import RetentionSettings
from interventions.storage import jsonl
from interventions.storage.queue_file import TurnsByFailure, is_transition, reading
from interventions.storage.store import EntryFigures, FailureCount, figures_of
from interventions.times import from_text, utc_now

_VERSION = 6
_SCHEMA = """
CREATE TABLE file (path TEXT PRIMARY KEY, inode, size, time, read_to, ending);
-- Every entry that was accepted, changed or archived: `at` is its latest line in the archive.
CREATE TABLE entry (
    id TEXT PRIMARY KEY, short, version DEFAULT 1, open, closed_at, at, length, hours, regression,
    verified
);
CREATE INDEX entry_open ON entry (id) WHERE open;
CREATE INDEX entry_not_archived ON entry (id) WHERE at IS NULL;
CREATE INDEX entry_closed ON entry (closed_at, at) WHERE at IS NOT NULL;
CREATE INDEX entry_short ON entry (short) WHERE at IS NOT NULL;
CREATE TABLE resolved (fingerprint, at, id, still, PRIMARY KEY (fingerprint, at)) WITHOUT ROWID;
CREATE INDEX resolved_id ON resolved (id);
CREATE TABLE transition (name TEXT UNIQUE, id, version_from, action, at INTEGER, length);
CREATE INDEX transition_id ON transition (id, at);
CREATE INDEX transition_at ON transition (at);
CREATE INDEX transition_upkeep ON transition (action) WHERE id IS NULL;
-- Failures of the logs, and the entry that holds each. Without a log it is one of which the journal
-- or the archive knew first: drained, or an entry that is archived, or a sample of one.
CREATE TABLE failure (
    id TEXT UNIQUE, holder, admission, reason, severity, created, phase, fingerprint,
    log, at, length, turns
);
CREATE INDEX failure_holder ON failure (holder);
CREATE INDEX failure_dropped ON failure (reason) WHERE admission = 'dropped';
CREATE INDEX failure_waiting ON failure (severity, created) WHERE holder IS NULL
"""
_BUSY_S = 30.0
# A file that somebody emptied while another has it open is never free: then it is kept in memory.
_OPENING_S = 1.0
_ENDING_BYTES = 64
_PAGE = 500
# What could not be put back counts as closed before any time, and is not kept.
_BEFORE_ALL, _KEPT = "0", "1"
Mark = tuple[int, int, int]
_UNSTORABLE = (sqlite3.InterfaceError, sqlite3.ProgrammingError)  # by Python's version

Place = tuple[int, int]  # offset and length of a line
_Run = Callable[..., sqlite3.Cursor]


class History:
    """What `Store` says of the archive and the journal, what `FailureLog` says, and more. Every
    method raises StorageError if a file cannot be read."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._archive, self._journal = places.archive_file(home), places.transitions_file(home)
        self._logs = places.error_log_folder(home)
        self._index = _Index(places.history_index(home))

    def catch_up(self) -> None:
        """Index what is new of the archive: before the lock is taken, rather than under it. What
        is asked of it just after need not look at the index for that again."""
        mark = places.mark_of(self._archive)
        self._archive_rows("SELECT 1")
        self._index.seen = {self._archive: mark}

    # The archive

    def archived_one(self, intervention_id: str) -> Entry | None:
        sql = "SELECT at, length FROM entry WHERE id = ? AND at IS NOT NULL"
        return next(self._entries(self._archive_rows(sql, intervention_id)), None)

    def archived_ids(self, beginning: str) -> list[str]:
        sql = "SELECT id FROM entry WHERE at IS NOT NULL AND {0} >= ? AND {0} < ? LIMIT 100"
        bounds = (beginning, beginning + chr(0x10FFFF))
        found = [self._archive_rows(sql.format(column), *bounds) for column in ("id", "short")]
        return sorted({name for rows in found for (name,) in rows})

    def archived_closed(self) -> Iterator[Entry]:
        sql = (
            "SELECT at, length, closed_at FROM entry WHERE at IS NOT NULL"
            " AND (closed_at, at) < (?, ?) ORDER BY closed_at DESC, at DESC LIMIT ?"
        )
        before: tuple[object, ...] = (chr(0x10FFFF), 0)
        while rows := self._archive_rows(sql, *before, _PAGE):
            yield from self._entries(rows)
            before = (rows[-1][2], rows[-1][0])

    def archived_resolved(self, names: Iterable[str], *, still: bool = False) -> Iterator[Entry]:
        wanted = sorted(names)
        sql = (
            "SELECT DISTINCT e.at, e.length FROM resolved r JOIN entry e ON e.id = r.id"
            f" WHERE r.fingerprint IN ({', '.join('?' * len(wanted))}) AND r.still >= ?"
            " ORDER BY e.at DESC"
        )
        yield from self._entries(self._archive_rows(sql, *wanted, still))

    def archived_figures(
        self, without: Collection[str], closed_since: str = ""
    ) -> list[EntryFigures]:
        sql = (
            "SELECT hours, regression, closed_at, verified FROM entry WHERE at IS NOT NULL"
            f" AND closed_at >= ? AND id NOT IN ({', '.join('?' * len(without))})"
        )
        return list(map(EntryFigures._make, self._archive_rows(sql, closed_since, *without)))

    # The journal

    def journal(self, intervention_id: str | None = None) -> Iterator[Transition]:
        of_one, names = ("", []) if intervention_id is None else ("AND id = ?3", [intervention_id])
        sql = f"SELECT at, length FROM transition WHERE at < ?1 {of_one} ORDER BY at DESC LIMIT ?2"
        before = 2**62
        while rows := self._rows(sql, before, _PAGE, *names):
            yield from cast(Iterator[Transition], self._lines(self._journal, rows))
            before = rows[-1][0]

    def upkeep(self, action: str) -> list[Transition]:
        """The lines that are about no entry (`rebuild`, `prune`), the latest first."""
        sql = "SELECT at, length FROM transition WHERE id IS NULL AND action = ? ORDER BY at DESC"
        return cast(list[Transition], list(self._lines(self._journal, self._rows(sql, action))))

    # The logs

    def dropped_by_reason(self) -> Counter[str]:
        sql = "SELECT reason, count(*) FROM failure WHERE admission = 'dropped' GROUP BY 1"
        return Counter(dict(self._rows(sql, marks=self._marks("emergency_"))))

    def admitted(self) -> Counter[str]:
        """How many failures were accepted, merged and counted."""
        sql = "SELECT admission, count(*) FROM failure WHERE admission <> 'dropped' GROUP BY 1"
        return Counter(dict(self._rows(sql)))

    def failures_since(self, moment: datetime, step: timedelta) -> list[FailureCount]:
        """Failures of the logs, and archived entries that are in no log any more."""
        sql = (
            "SELECT CAST((created - ?1) / ?2 AS INTEGER), severity, phase, fingerprint,"
            " admission, count(*) FROM failure WHERE created >= ?1 GROUP BY 1, 2, 3, 4, 5"
        )
        rows = self._rows(sql, moment.timestamp(), step.total_seconds())
        return [FailureCount(*row) for row in rows]

    def latest_failure(self, fingerprint: str) -> Mapping[str, Any] | None:
        """Its line of the log, or the archived entry that holds it."""
        sql = (
            "SELECT holder, log, at, length FROM failure WHERE fingerprint = ?"
            " AND created ORDER BY created DESC LIMIT 1"
        )
        for holder, log, *place in self._rows(sql, fingerprint):
            line = next(self._logged([(log, *place)]), None) if log else None
            return line or self.archived_one(holder or "")
        return None

    def waiting(self) -> tuple[int, Iterator[dict[str, Any]]]:
        sql = "SELECT log, at, length FROM failure WHERE holder IS NULL ORDER BY severity, created"
        rows = self._rows(sql, marks=self._marks("emergency_"))
        return len(rows), self._logged(rows)

    def waiting_turns(self) -> set[int]:
        sql = "SELECT turns FROM failure WHERE holder IS NULL"
        rows = self._rows(sql, marks=self._marks("emergency_"))
        return {turn for (turns,) in rows for turn in _numbers(turns)}

    def turns_by_failure(self, intervention_id: str) -> TurnsByFailure:
        sql = (
            "SELECT fingerprint, turns FROM failure WHERE holder = ? AND log IS NOT NULL"
            " ORDER BY log, at"
        )
        rows = self._rows(sql, intervention_id)
        return [(fingerprint, _numbers(turns)) for fingerprint, turns in rows]

    def failures_of(self, intervention_id: str) -> Iterator[dict[str, Any]]:
        """The lines of all failures that this entry holds, its own first."""
        sql = (
            "SELECT log, at, length FROM failure WHERE holder = ?1 AND log IS NOT NULL"
            " ORDER BY id <> ?1, log, at"
        )
        return self._logged(self._rows(sql, intervention_id))

    def holder(self, failure_id: str) -> str | None:
        sql = (
            "SELECT holder FROM failure WHERE id = ?1 AND holder IS NOT NULL"
            " UNION ALL SELECT id FROM entry WHERE id = ?1 AND at > 0"
        )
        rows = self._rows(sql, failure_id)
        return str(rows[0][0]) if rows else None

    # What should be there

    def missing(self, present: Collection[str], *, closed: bool = False) -> list[str]:
        """Ids of acknowledged entries that are open as far as is known and not among `present`;
        with `closed` also of those that are closed and in no archive, as far as it is kept."""
        rows = self._rows("SELECT id, '' FROM entry WHERE open")
        if closed:
            rows += self._rows("SELECT id, closed_at FROM entry WHERE at IS NULL AND NOT open")
        kept_from = max([_KEPT, *(line["closed_before"] for line in self.upkeep("prune"))])
        kept = (name for name, closed_at in rows if not closed_at or closed_at >= kept_from)
        return sorted(name for name in kept if name not in present)

    def knows_any(self, *, read_on: bool = True) -> bool:
        """Whether an entry was ever acknowledged here, as far as the files or the index alone know
        of it."""
        return bool(self._rows("SELECT 1 FROM entry LIMIT 1", marks=None if read_on else {}))

    def _kept(self, keep: RetentionSettings) -> tuple[str, list[Place], int]:
        """What was closed before which moment goes, where the others' lines are, how many go."""
        closed_from, most = keep.archive_from(utc_now()), keep.archive_entries
        sql = "SELECT closed_at, at, length FROM entry WHERE at IS NOT NULL ORDER BY 1 DESC"
        rows = self._archive_rows(sql) if closed_from or most else []
        latest = rows[most - 1][0] if 0 < most <= len(rows) else ""
        closed_from = max(closed_from, latest)
        kept = sorted((at, length) for closed_at, at, length in rows if closed_at >= closed_from)
        return closed_from, kept, len(rows) - len(kept)

    # Reading

    def _rows(
        self, sql: str, *arguments: object, marks: Mapping[Path, Mark | None] | None = None
    ) -> list[tuple[Any, ...]]:
        """What the index answers once it knows these files as they are now, or all."""
        with reading(self._archive.parent):
            marks = self._marks() if marks is None else marks
            # An index outlives the files that it was made of.
            if not (any(marks.values()) or self._index.path.exists()):
                return []
            while True:
                try:
                    return self._caught_up(marks).execute(sql, arguments).fetchall()
                except sqlite3.Error as error:
                    if not self._index.start_anew(error):
                        raise

    def _archive_rows(self, sql: str, *arguments: object) -> list[tuple[Any, ...]]:
        """Asked by every put: a look at the logs would cost more than the put."""
        mark = places.mark_of(self._archive)
        return self._rows(sql, *arguments, marks={self._archive: mark}) if mark else []

    def _marks(self, logs: str = "") -> dict[Path, Mark | None]:
        """Of the files, with the logs whose names begin so."""
        with reading(self._logs):
            files = (*places.error_logs(self._home, logs), self._journal, self._archive)
            return {path: places.mark_of(path) for path in files}

    def _entries(self, rows: Sequence[Sequence[Any]]) -> Iterator[Entry]:
        for record in self._lines(self._archive, rows):
            with suppress(ValueError):
                yield _plain(record)

    def _lines(self, path: Path, rows: Sequence[Sequence[Any]]) -> Iterator[dict[str, Any]]:
        if rows:
            with reading(path):
                yield from jsonl.at(path, rows)

    def _logged(self, rows: Iterable[Sequence[Any]]) -> Iterator[dict[str, Any]]:
        for name, *place in rows:
            if (log := self._logs / name).exists():  # an old one may be removed
                yield from self._lines(log, [place])

    def _caught_up(self, marks: Mapping[Path, Mark | None]) -> sqlite3.Connection:
        connection = self._index.connection()
        run = connection.execute
        known = marks == self._index.seen
        if not (known or all(_known(run, path)[0] == mark for path, mark in marks.items())):
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
        for at, line in jsonl.lines(path, read_to):
            read_to, ending = at + len(line) + 1, line[-_ENDING_BYTES:]
            record = jsonl.parse_line(line)
            # Another program may have damaged it.
            with suppress(ValueError, TypeError, OverflowError, *_UNSTORABLE):
                add(run, record or {}, (at, len(line)), path.name)
        row = (str(path), *mark, read_to, ending)
        run("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?)", row)
        return True


def _add_archived(run: _Run, record: dict[str, Any], place: Place, log: str) -> None:
    entry = _plain(record)
    name, figures = entry["id"], figures_of(entry)
    run(
        "INSERT INTO entry VALUES (?1, ?2, ?3, 0, ?6, ?8, ?9, ?4, ?5, ?7) ON CONFLICT (id)"
        " DO UPDATE SET short = ?2, version = max(version, ?3), open = open AND version > ?3,"
        " hours = ?4, regression = ?5, closed_at = ?6, verified = ?7, at = ?8, length = ?9",
        (name, short_id(name), entry["version"], *figures, *place),
    )
    _add_held(run, name, name)
    sql = (
        "UPDATE failure SET admission = 'accepted', severity = ?2, created = ?3, phase = ?4,"
        " fingerprint = ?5 WHERE id = ?1 AND log IS NULL"
    )
    run(sql, (name, *_kind_of(record)))
    run("DELETE FROM resolved WHERE id = ?", (name,))
    for fingerprint in fingerprints(entry, resolved=True):
        row = (fingerprint, place[0], name, bool(entry["resolved_at"]))
        run("INSERT OR REPLACE INTO resolved VALUES (?, ?, ?, ?)", row)
    samples = [entry.get("latest_sample"), *(row.get("sample") for row in entry["merged"])]
    for sample in filter(None, samples):
        _add_held(run, sample.get("id"), name)


def _add_transition(run: _Run, line: dict[str, Any], place: Place, log: str) -> None:
    name, action, after = line.get("id"), line.get("action"), line.get("after")
    # An older version noted the turns here that did not fit the queue file.
    if not is_transition(line) or action == "turns":
        return
    row = (line.get("transition_id"), name, line.get("version_from"), action, *place)
    noted = run("INSERT OR IGNORE INTO transition VALUES (?, ?, ?, ?, ?, ?)", row)
    if not noted.rowcount:
        return
    if action == "drain":
        _add_held(run, line.get("failure_id"), name)
        if name == line.get("failure_id"):
            run("INSERT OR IGNORE INTO entry (id, open) VALUES (?, 1)", (name,))
    for lost in line.get("given_up") or ():
        sql = "INSERT OR REPLACE INTO entry (id, version, open, closed_at) VALUES (?, ?, 0, ?)"
        run(sql, (lost, 2**62, _BEFORE_ALL))
    if not isinstance(after, dict):
        return
    # Older versions noted a change before it was made: one that began here was not made.
    sql = "DELETE FROM transition WHERE id = ? AND version_from >= ? AND at < ?"
    run(sql, (*row[1:3], place[0]))
    closed = after.get("resolved_at") or after.get("dismissed_at")
    says = "resolved_at" in after or "dismissed_at" in after
    run(
        "INSERT INTO entry (id, version, open, closed_at) VALUES (?1, ?2, coalesce(?3, 1), ?4)"
        " ON CONFLICT (id) DO UPDATE SET version = ?2, open = coalesce(?3, open),"
        " closed_at = iif(?3 IS NULL, closed_at, ?4) WHERE ?2 >= version",
        (name, line.get("version_to"), not closed if says else None, closed),
    )


def _add_failure(run: _Run, line: dict[str, Any], place: Place, log: str) -> None:
    name, holder, admission = line.get("id"), line.get("intervention_id"), line.get("admission")
    if not (holder or (admission == "dropped" and log.startswith("emergency_"))):
        return
    found = (line.get("turn_id"), *(line.get("turns") or ()))
    turns = " ".join(f"{turn:d}" for turn in found if isinstance(turn, int) and turn)
    reason, kind = line.get("reason") or "unknown", _kind_of(line)
    row = (name, holder, admission, reason, *kind, log, *place, turns)
    run(
        "INSERT INTO failure VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)"
        " ON CONFLICT DO UPDATE SET holder = coalesce(holder, ?2), admission = ?3, reason = ?4,"
        " severity = ?5, created = ?6, phase = ?7, fingerprint = ?8, log = ?9, at = ?10,"
        " length = ?11, turns = ?12 WHERE log IS NULL",
        row,
    )
    if holder:
        # It may be in the emergency log too, if its writer had given up waiting.
        _add_held(run, name, holder)
        run("INSERT OR IGNORE INTO entry (id, open) VALUES (?, 1)", (holder,))


def _kind_of(failure: Mapping[str, Any]) -> tuple[int, float, str, str]:
    """Severity, time, phase and fingerprint; without a time it comes last, and in no window."""
    moment = 0.0
    with suppress(ValueError, TypeError):
        moment = from_text(failure.get("created_at") or "").timestamp()
    rank = severity_rank(failure.get("severity") if moment else None)
    return rank, moment, str(failure.get("phase")), str(failure.get("fingerprint") or "")


def _add_held(run: _Run, failure_id: str | None, holder: str | None) -> None:
    sql = "INSERT INTO failure (id, holder) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET holder = ?2"
    if failure_id and holder:
        run(sql, (failure_id, holder))


def _numbers(turns: str) -> list[int]:
    return list(map(int, turns.split()))


def _plain(record: Mapping[str, Any]) -> Entry:
    """Older archives have an index in each line."""
    return complete({name: value for name, value in record.items() if name != "index"})


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
        self.seen: Mapping[Path, Mark | None] = {}

    def connection(self) -> sqlite3.Connection:
        if self._connection is None or self._process != os.getpid():
            # Who only reads makes no folder.
            in_memory = self._in_memory or not self.path.parent.is_dir()
            self._connection, self._process = _opened(None if in_memory else self.path), os.getpid()
            self.seen = {}
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
