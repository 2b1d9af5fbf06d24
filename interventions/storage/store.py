"""The queue's storage, narrow enough that tables of a database can stand in for its files."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, cast

from interventions.entry import (
    SEVERITIES,
    Entry,
    Transition,
    closed_at,
    complete,
    fingerprints,
    is_open,
    severity_rank,
    short_id,
)
from interventions.settings import Limits, RetentionSettings
from interventions.storage.jsonl import parse_line, records
from interventions.storage.queue_file import LogLine, QueueState, TurnsByFailure, shortened
from interventions.times import earlier, from_text, to_text, utc_now

ADD_ARCHIVED = (
    "INSERT INTO intervention_archive (id, short, closed_at, hours, regression, verified,"
    " still_resolved, resolved, entry) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
ADD_FAILURE = (
    "INSERT INTO intervention_failures (id, holder, admission, reason, severity, created, phase,"
    " fingerprint, error_type, error_message, turns, line)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_PAGE, _LAST = 250, 2**62
_MOST_MESSAGE = 300  # characters: a sample for the trends
# Those of the logs that hold what was dropped, for `logs`.
EMERGENCY = "emergency_"
Rows = list[tuple[Any, ...]]


class AdmissionKind(StrEnum):
    ACCEPTED = "accepted"
    MERGED = "merged"
    COUNTED = "counted"
    DROPPED = "dropped"


@dataclass(frozen=True)
class Admission:
    """What happened to a put; false only when the failure was dropped.

    `reason` is why it is no entry of its own: `snoozed`, `retried`, `delivered` (a second time),
    `session`, `error_type`, or for a drop `queue_full`, `session_escalations`, `lock_timeout`,
    `corrupt`, `storage`. `detail` says more in words.
    """

    kind: AdmissionKind
    intervention_id: str | None
    reason: str = ""
    detail: str = ""

    def __bool__(self) -> bool:
        return self.kind is not AdmissionKind.DROPPED

    @property
    def fields(self) -> dict[str, str | None]:
        """The fields that a line of the error log has of it."""
        kind = {"admission": str(self.kind), "intervention_id": self.intervention_id}
        return {**kind, "reason": self.reason, "detail": self.detail}


class ClosedFigures(NamedTuple):
    """Of entries: the hours that each took to be resolved, in any order, and how many were
    verified, were dismissed, or came back."""

    hours: list[float]
    verified: int
    dismissed: int
    regressions: int


class FailureCount(NamedTuple):
    """Failures of one step of a window of time that are alike; `severity` is its rank."""

    step: int
    severity: int
    phase: str
    fingerprint: str
    admission: str
    failures: int


def figures_of(entries: Collection[Entry]) -> ClosedFigures:
    """Open entries among them count as regressions alone."""
    took = [hours for entry in entries if (hours := _hours_to_resolve(entry)) is not None]
    dismissed = sum(bool(entry["dismissed_at"]) and not entry["resolved_at"] for entry in entries)
    regressions = sum(bool(entry["regression_of"]) for entry in entries)
    return ClosedFigures(took, sum(map(_is_verified, entries)), dismissed, regressions)


def _hours_to_resolve(entry: Entry) -> float | None:
    if entry["resolved_at"] is None:
        return None
    return (from_text(entry["resolved_at"]) - from_text(entry["created_at"])) / timedelta(hours=1)


def _is_verified(entry: Entry) -> bool:
    rows = entry["resolutions"]
    return bool(entry["resolved_at"] and rows and rows[-1].get("verified"))


def make_room(
    entries: tuple[Entry, ...], max_size: int, changed: Collection[str] = ()
) -> tuple[tuple[Entry, ...], list[Entry]]:
    """(entries that stay, entries for the archive): at most `max_size` stay, all open ones, and
    those with an id in `changed`."""
    excess = len(entries) - max_size
    if excess <= 0:
        return entries, []
    may_leave = (e for e in entries if not is_open(e) and e["id"] not in changed)
    closed = sorted(may_leave, key=closed_at)
    leaving = closed[:excess]
    gone = {entry["id"] for entry in leaving}
    return tuple(entry for entry in entries if entry["id"] not in gone), leaving


@dataclass
class Transaction:
    """What one holder of the lock reads and wants written.

    Leaving the `with` block without an exception writes the archive, the new state together with
    the lines of the journal and of the error log, and then these; what changed nothing writes
    nothing.
    """

    state: QueueState
    to_archive: list[Entry] = field(default_factory=list)
    to_journal: list[Transition] = field(default_factory=list)
    to_log: list[LogLine] = field(default_factory=list)
    # The archive is written first, and whoever is killed then leaves there what was not done: an
    # entry leaves the queue with a later change than its own.
    changed: dict[str, Entry] = field(default_factory=dict)

    def store(self, entry: Entry, max_size: int, *, admitted: str = "") -> None:
        """The entry in the place of the one with its id, or at the end, and counted by how it was
        admitted. Closed entries for which there is no room move to the archive. The caller has
        checked (`complete`) that it can be read again."""
        entries, name = self.state.entries, entry["id"]
        names = [old["id"] for old in entries]
        at = names.index(name) if name in names else len(names)
        self.changed[name] = entry
        entries = (*entries[:at], shortened(entry), *entries[at + 1 :])
        entries, archived = make_room(entries, max_size, self.changed)
        counts = self.state.admitted
        if admitted:
            counts = {**counts, admitted: counts.get(admitted, 0) + 1}
        self.state = self.state._replace(entries=entries, admitted=counts)
        self.to_archive += archived


@dataclass(frozen=True)
class PutResult:
    """The failure as it is logged, what became of it, and the entry that has it if at hand.

    `event` is what people are notified of, empty if it is no news.
    """

    failure: Entry
    admission: Admission
    entry: Entry | None = None
    event: str = ""

    @classmethod
    def dropped(cls, failure: Entry, reason: str, detail: str) -> PutResult:
        return cls(failure, Admission(AdmissionKind.DROPPED, None, reason, detail))


Admit = Callable[[Transaction, Entry, Limits, "Store"], PutResult]
ParseEntry = Callable[[bytes], Entry | None]


def parse_entry(line: bytes) -> Entry | None:
    """A line of the archive as an entry; None if another program has damaged it."""
    with suppress(ValueError):
        return complete(parse_line(line) or {})
    return None


class Store:
    """What keeps a queue. Raises StorageError and its kinds, and nothing else of its own.

    What only grows, the archive, the journal and what became of every failure, is asked of three
    tables, which SQLite has as the index of the files of a home (`file_history.py`) and PostgreSQL
    as the records themselves. Their columns `entry` and `line` have a record, or say where it is
    (`_lines`); `place` is the order in which the rows came. Statements have `?` for a value,
    which may be a list.
    """

    @abstractmethod
    def read(self) -> QueueState:
        """The last committed state; CorruptQueueError if it was lost. Takes no lock."""

    @abstractmethod
    def stamp(self) -> object:
        """Cheap, and another one when `read` may answer something else."""

    @abstractmethod
    def transaction(
        self, timeout_s: float, *, restoring: bool = False
    ) -> AbstractContextManager[Transaction]:
        """Exclusive among all threads and processes; LockTimeoutError after `timeout_s`, and
        CorruptQueueError if the state was lost, but for who restores it."""

    @abstractmethod
    def submit(self, failure: Entry, limits: Limits, timeout_s: float, admit: Admit) -> PutResult:
        """`admit` one failure in a transaction, perhaps together with those of other waiters, and
        write it into the error log."""

    @abstractmethod
    def prune(self, keep: RetentionSettings, line: Transition, timeout_s: float) -> int:
        """Let the archive go of what is not kept, and note it: how many."""

    # How a database says that a column begins with a text, that an archived entry was resolved with
    # one of the fingerprints of a list, and that its id is none of a list.
    begins: str
    resolved: str
    others: str

    @abstractmethod
    def _rows(self, sql: str, *values: object, logs: str | None = "") -> Rows:
        """The answer. It lies in the archive alone if `logs` is None; else in that, the journal,
        and the logs whose names begin so."""

    @abstractmethod
    def _lines(self, rows: Rows) -> Iterator[bytes]:
        """The record of the first column of each, `entry` or `line`, read when it is asked for."""

    def _pages(
        self, sql: str, *values: object, after: Sequence[object], logs: str | None = ""
    ) -> Iterator[bytes]:
        """The records of the first column; the others say where the next page begins."""
        while rows := self._rows(sql, *values, *after, _PAGE, logs=logs):
            yield from self._lines(rows)
            after = rows[-1][1:]

    # The archive

    def knows(self, failure: Entry) -> bool:
        """Whether the archive has its id, or an entry that was resolved with its fingerprint: each
        put asks, and it is hardly ever so."""
        sql, values = self._is_known(failure)
        return self._rows(sql, *values, logs=None) == [(True,)]

    def _is_known(self, failure: Entry) -> tuple[str, tuple[object, ...]]:
        exists = "EXISTS (SELECT 1 FROM intervention_archive WHERE"
        sql = f"SELECT {exists} id = ?) OR {exists} still_resolved AND {self.resolved})"
        return sql, (failure["id"], [failure["fingerprint"]])

    def archived_one(self, intervention_id: str) -> Entry | None:
        """The archived entry of this id: one that is closed and had to leave the queue."""
        sql = "SELECT entry FROM intervention_archive WHERE id = ?"
        found = self._lines(self._rows(sql, intervention_id, logs=None))
        return next(map(parse_entry, found), None)

    def archived_ids(self, beginning: str) -> list[str]:
        """The ids that begin so, or whose random part does; not all of very many."""
        sql = "SELECT id FROM intervention_archive WHERE {} LIMIT 100"
        found: set[str] = set()
        for column in ("id", "short"):
            rows = self._rows(sql.format(self.begins.format(column)), beginning, logs=None)
            found |= {name for (name,) in rows}
        return sorted(found)

    def archived_closed(self, parse: ParseEntry = parse_entry) -> Iterator[Entry]:
        """All of the archive, the latest closed first, each read when it is asked for."""
        sql = (
            "SELECT entry, closed_at, place FROM intervention_archive"
            " WHERE (closed_at, place) < (?, ?) ORDER BY closed_at DESC, place DESC LIMIT ?"
        )
        return filter(None, map(parse, self._pages(sql, after=(chr(0x10FFFF), 0), logs=None)))

    def archived_resolved(self, names: Iterable[str], *, still: bool = False) -> Iterator[Entry]:
        """Entries with one of these fingerprints (merged ones included) that were resolved at some
        time, or with `still` are; the latest archived first, each read when it is asked for."""
        sql = (
            f"SELECT entry, place FROM intervention_archive WHERE {self.resolved}"
            " AND (still_resolved OR NOT ?) AND place < ? ORDER BY place DESC LIMIT ?"
        )
        found = self._pages(sql, sorted(names), still, after=(_LAST,), logs=None)
        return filter(None, map(parse_entry, found))

    def archived_figures(self, without: Collection[str], closed_since: str = "") -> ClosedFigures:
        """Figures of the archive, without these ids and without entries closed earlier."""
        chosen = f"FROM intervention_archive WHERE closed_at >= ? AND {self.others}"
        values = (closed_since, sorted(without))
        sql = (
            "SELECT count(*) FILTER (WHERE verified), count(*) FILTER (WHERE hours IS NULL),"
            f" count(*) FILTER (WHERE regression) {chosen}"
        )
        counts = self._rows(sql, *values, logs=None) or [(0, 0, 0)]
        # Last: more may be archived meanwhile, and never fewer are resolved than are verified.
        hours = self._rows(f"SELECT hours {chosen} AND hours IS NOT NULL", *values, logs=None)
        return ClosedFigures([took for (took,) in hours], *counts[0])

    def closed_before(self, keep: RetentionSettings) -> str:
        """What was closed before then is not kept; empty if all is."""
        sql = "SELECT closed_at FROM intervention_archive ORDER BY closed_at DESC LIMIT 1 OFFSET ?"
        most, days = keep.archive_entries, timedelta(days=keep.archive_days)
        rows = self._rows(sql, most - 1, logs=None) if most else []
        by_age = to_text(earlier(utc_now(), days)) if days else ""
        return max([by_age, *(str(row[0]) for row in rows)])

    # The journal

    def journal(self, intervention_id: str | None = None) -> Iterator[Transition]:
        """Every transition, or those of one entry; the latest first."""
        of_one, names = ("", []) if intervention_id is None else ("id = ? AND", [intervention_id])
        sql = (
            f"SELECT line, place FROM intervention_transitions WHERE {of_one} place < ?"
            " ORDER BY place DESC LIMIT ?"
        )
        return cast(Iterator[Transition], records(self._pages(sql, *names, after=(_LAST,))))

    # The failures

    def dropped_by_reason(self) -> Counter[str]:
        sql = (
            "SELECT reason, count(*) FROM intervention_failures"
            " WHERE admission = 'dropped' GROUP BY reason"
        )
        return Counter(dict(self._rows(sql, logs=EMERGENCY)))

    def failures_since(self, moment: datetime, step: timedelta) -> list[FailureCount]:
        # In whole seconds: SQLite and PostgreSQL round a fraction each in its own way.
        sql = (
            "SELECT (CAST(created AS bigint) - ?) / ?, severity, phase, fingerprint, admission,"
            " count(*) FROM intervention_failures WHERE created >= ? GROUP BY 1, 2, 3, 4, 5"
        )
        since = moment.timestamp()
        rows = self._rows(sql, int(since), int(step.total_seconds()), since)
        return list(map(FailureCount._make, rows))

    def latest_failure(self, fingerprint: str) -> tuple[str, str]:
        """Error type and message of what was put last with this fingerprint."""
        sql = (
            "SELECT error_type, error_message FROM intervention_failures"
            " WHERE fingerprint = ? ORDER BY created DESC LIMIT 1"
        )
        found = ((kind, said) for kind, said in self._rows(sql, fingerprint))
        return next(found, ("unknown", ""))

    def waiting(self) -> tuple[int, Iterator[dict[str, Any]]]:
        """How many failures were dropped and are in no entry, and their lines, the oldest critical
        first; a line is read when it is asked for."""
        sql = "SELECT count(*) FROM intervention_failures WHERE holder IS NULL"
        count = sum(number for (number,) in self._rows(sql, logs=EMERGENCY))
        sql = (
            "SELECT line, severity, created, place FROM intervention_failures WHERE holder IS NULL"
            " AND (severity, created, place) > (?, ?, ?) ORDER BY 2, 3, 4 LIMIT ?"
        )
        return count, records(self._pages(sql, after=(-1, 0, 0), logs=EMERGENCY))

    def waiting_turns(self) -> set[int]:
        """The turns that the failures in `waiting` have stopped."""
        sql = "SELECT CAST(turns AS text) FROM intervention_failures WHERE holder IS NULL"
        rows = self._rows(sql, logs=EMERGENCY)
        return {turn for (turns,) in rows for turn in _numbers(turns)}

    def turns_by_failure(self, intervention_id: str) -> TurnsByFailure:
        """Fingerprint and turns of each failure that the entry holds, the oldest first."""
        sql = (
            "SELECT fingerprint, CAST(turns AS text) FROM intervention_failures"
            " WHERE holder = ? AND turns IS NOT NULL ORDER BY place"
        )
        return [(name, _numbers(turns)) for name, turns in self._rows(sql, intervention_id)]

    def holder(self, failure_id: str) -> str | None:
        """The id of the entry that has a failure which a log calls dropped, as far as is known."""
        sql = (
            "SELECT holder FROM intervention_failures WHERE id = ? AND holder IS NOT NULL"
            " UNION ALL SELECT id FROM intervention_archive WHERE id = ?"
        )
        return next((str(name) for (name,) in self._rows(sql, failure_id, failure_id)), None)


def archive_row(entry: Entry) -> tuple[object, ...]:
    """The values of ADD_ARCHIVED but for the last one."""
    return (
        *(entry["id"], short_id(entry["id"]), closed_at(entry), _hours_to_resolve(entry)),
        *(bool(entry["regression_of"]), _is_verified(entry), bool(entry["resolved_at"])),
        sorted(fingerprints(entry, resolved=True)),
    )


def failure_row(line: Mapping[str, Any]) -> tuple[object, ...]:
    """The values of ADD_FAILURE but for the last one, of a line of a log. Without a time it comes
    last, and is in no window of one."""
    created = 0.0
    with suppress(ValueError, TypeError):
        created = from_text(line.get("created_at") or "").timestamp()
    rank = severity_rank(line.get("severity")) if created else len(SEVERITIES)
    texts = [str(line.get(name) or "") for name in ("phase", "fingerprint", "error_type")]
    message = str(line.get("error_message") or "")[:_MOST_MESSAGE]
    turns = (line.get("turn_id"), *(line.get("turns") or ()))
    return (
        *(line.get("id"), line.get("intervention_id") or None, line["admission"]),
        *(line.get("reason") or "unknown", rank, created, *texts, message),
        sorted({turn for turn in turns if isinstance(turn, int) and turn}),
    )


def _numbers(written: str) -> list[int]:
    """The numbers in a list, as either database writes it."""
    return list(map(int, re.findall(r"-?\d+", written)))
