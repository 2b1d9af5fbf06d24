"""What only grows of the queue in PostgreSQL: the archive, the journal of transitions, and what
became of each failure.

A line or an entry is stored as JSON in ASCII, so that no character in it is one that PostgreSQL
does not take; the columns beside it are what it is found by.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from psycopg import Cursor

from interventions.entry import (
    SEVERITIES,
    Entry,
    Transition,
    complete,
    fingerprints,
    severity_rank,
    short_id,
    turns_of,
)
from interventions.settings import RetentionSettings
from interventions.storage.history import History
from interventions.storage.jsonl import decode
from interventions.storage.store import (
    Admission,
    EntryFigures,
    FailureCount,
    Transaction,
    figures_of,
)
from interventions.times import from_text, utc_now
from unified_flow.shared.database import Connection
from unified_flow.shared.stored_text import encoded, storable

_PAGE, _LAST = 100, 2**62
_MOST_MESSAGE = 300  # characters: a sample for the trends
_ONE = "SELECT entry FROM intervention_archive WHERE id = %s"
_RESOLVED = (
    "SELECT entry, place FROM intervention_archive WHERE resolved && %s"
    " AND (still_resolved OR NOT %s) AND place < %s ORDER BY place DESC LIMIT %s"
)
_ADD_FAILURE = """
INSERT INTO intervention_failures (id, holder, admission, reason, severity, created, phase,
    fingerprint, error_type, error_message, turns, line)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE SET holder = coalesce(intervention_failures.holder, EXCLUDED.holder)
"""


class QueueHistory:
    """The part of the store that reads rows which are never changed again."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._thread = threading.local()

    def _reading(self) -> AbstractContextManager[Connection]:
        """A connection; inside a transaction its own. Database errors become StorageErrors."""
        raise NotImplementedError

    def transaction(self, timeout_s: float) -> AbstractContextManager[Transaction]:
        raise NotImplementedError

    def _rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        ahead: dict[str, Cursor[Any]] = getattr(self._thread, "ahead", {})
        with self._reading() as connection:
            cursor = ahead.pop(f"{sql} {values}", None) or connection.execute(sql, values)
            return cursor.fetchall()

    def _pages(self, sql: str, *values: object, after: Sequence[object]) -> Iterator[Any]:
        """The records that come first in the rows; by what comes behind them the next page is
        found. Each is read when it is asked for."""
        while rows := self._rows(sql, *values, *after, _PAGE):
            yield from (decode(row[0]) for row in rows)
            after = rows[-1][1:]

    @contextmanager
    def _asked_ahead(self, connection: Connection, failure: Entry | None) -> Iterator[None]:
        """Of a failure that is put, what `_rows` will answer without asking once more."""
        questions: list[tuple[str, tuple[object, ...]]] = []
        if failure is not None:
            names = [storable(failure["fingerprint"])]
            questions.append((_ONE, (storable(failure["id"]),)))
            questions.append((_RESOLVED, (names, True, _LAST, _PAGE)))
        self._thread.ahead = {
            f"{sql} {values}": connection.execute(sql, values) for sql, values in questions
        }
        try:
            yield
        finally:
            self._thread.ahead = {}

    # The archive

    def archived_one(self, intervention_id: str) -> Entry | None:
        rows = self._rows(_ONE, storable(intervention_id))
        return next((complete(decode(text)) for (text,) in rows), None)

    def archived_ids(self, beginning: str) -> list[str]:
        sql = (
            "SELECT id FROM intervention_archive WHERE starts_with(id, %s)"
            " UNION SELECT id FROM intervention_archive WHERE starts_with(short, %s) LIMIT 100"
        )
        return sorted(name for (name,) in self._rows(sql, *[storable(beginning)] * 2))

    def archived_closed(self) -> Iterator[Entry]:
        sql = (
            "SELECT entry, closed_at, place FROM intervention_archive"
            " WHERE (closed_at, place) < (%s, %s) ORDER BY closed_at DESC, place DESC LIMIT %s"
        )
        return map(complete, self._pages(sql, after=(chr(0x10FFFF), 0)))

    def archived_resolved(self, names: Iterable[str], *, still: bool = False) -> Iterator[Entry]:
        wanted = list(map(storable, names))
        return map(complete, self._pages(_RESOLVED, wanted, still, after=(_LAST,)))

    def archived_figures(
        self, without: Collection[str], closed_since: str = ""
    ) -> list[EntryFigures]:
        sql = (
            "SELECT hours, regression, closed_at, verified FROM intervention_archive"
            " WHERE closed_at >= %s AND id <> ALL (%s)"
        )
        return list(
            map(EntryFigures._make, self._rows(sql, closed_since, list(map(storable, without))))
        )

    def prune(self, keep: RetentionSettings, line: Transition, timeout_s: float) -> int:
        """With what became of the failures that the entries held."""
        sql = "SELECT closed_at FROM intervention_archive ORDER BY closed_at DESC LIMIT 1 OFFSET %s"
        rows = self._rows(sql, keep.archive_entries - 1) if keep.archive_entries else []
        closed_before = max([keep.archive_from(utc_now()), *(str(row[0]) for row in rows)])
        if not closed_before:
            return 0
        sql = "DELETE FROM intervention_archive WHERE closed_at < %s RETURNING id"
        with self.transaction(timeout_s) as work, self._reading() as connection:
            gone = [name for (name,) in connection.execute(sql, [closed_before])]
            if gone:
                sql = "DELETE FROM intervention_failures WHERE holder = ANY (%s)"
                connection.execute(sql, [gone])
                work.to_journal.append({**line, "closed_before": closed_before})
        return len(gone)

    # The journal

    def journal(self, intervention_id: str | None = None) -> Iterator[Transition]:
        sql = (
            "SELECT line, place FROM intervention_transitions"
            " WHERE (%s::text IS NULL OR id = %s) AND place < %s ORDER BY place DESC LIMIT %s"
        )
        name = None if intervention_id is None else storable(intervention_id)
        return self._pages(sql, name, name, after=(_LAST,))

    # The failures

    def dropped_by_reason(self) -> Counter[str]:
        sql = (
            "SELECT reason, count(*) FROM intervention_failures"
            " WHERE admission = 'dropped' GROUP BY reason"
        )
        return Counter(dict(self._rows(sql)))

    def failures_since(self, moment: datetime, step: timedelta) -> list[FailureCount]:
        sql = (
            "SELECT floor((created - %s) / %s)::int, severity, phase, fingerprint, admission,"
            " count(*) FROM intervention_failures WHERE created >= %s GROUP BY 1, 2, 3, 4, 5"
        )
        since = moment.timestamp()
        return [FailureCount(*row) for row in self._rows(sql, since, step.total_seconds(), since)]

    def latest_failure(self, fingerprint: str) -> Mapping[str, Any] | None:
        sql = (
            "SELECT error_type, error_message FROM intervention_failures"
            " WHERE fingerprint = %s ORDER BY created DESC LIMIT 1"
        )
        names = ("error_type", "error_message")
        rows = self._rows(sql, storable(fingerprint))
        return next((dict(zip(names, row, strict=True)) for row in rows), None)

    def waiting(self) -> tuple[int, Iterator[dict[str, Any]]]:
        """How many failures were dropped and are in no entry, on this machine or any other while
        the database could be reached; and their lines, the oldest critical first."""
        self._gather()
        sql = "SELECT count(*) FROM intervention_failures WHERE holder IS NULL"
        ((count,),) = self._rows(sql)
        sql = (
            "SELECT line, severity, created, place FROM intervention_failures WHERE holder IS NULL"
            " AND (severity, created, place) > (%s, %s, %s) ORDER BY 2, 3, 4 LIMIT %s"
        )
        return count, self._pages(sql, after=(-1, 0, 0))

    def waiting_turns(self) -> set[int]:
        """The turns that the failures in `waiting` have stopped."""
        self._gather()
        sql = "SELECT DISTINCT unnest(turns) FROM intervention_failures WHERE holder IS NULL"
        return {turn for (turn,) in self._rows(sql)}

    def _gather(self) -> None:
        """Bring what waits in this machine's emergency log, and came there while the database was
        away, to where every machine sees it. The files stay as they are."""
        lines = list(History(self._home).waiting()[1])
        if not lines:
            return
        with self._reading() as connection:
            sql = "SELECT id FROM intervention_failures WHERE id = ANY (%s)"
            names = [storable(str(line.get("id"))) for line in lines]
            known = {name for (name,) in connection.execute(sql, [names])}
            new = [line for line in lines if storable(str(line.get("id"))) not in known]
            add_failures(connection, [(line, line) for line in new])

    def holder(self, failure_id: str) -> str | None:
        sql = (
            "SELECT holder FROM intervention_failures WHERE id = %s AND holder IS NOT NULL"
            " UNION ALL SELECT id FROM intervention_archive WHERE id = %s"
        )
        rows = self._rows(sql, *[storable(failure_id)] * 2)
        return str(rows[0][0]) if rows else None

    def turns_by_failure(self, intervention_id: str) -> list[tuple[str, list[int]]]:
        """(fingerprint, turns) of each failure that this entry holds, the oldest first."""
        sql = (
            "SELECT fingerprint, turns FROM intervention_failures WHERE holder = %s ORDER BY place"
        )
        return [(name, turns) for name, turns in self._rows(sql, storable(intervention_id))]


def outcome(admission: Admission) -> dict[str, Any]:
    """As the lines of the error log have it."""
    return {
        "intervention_id": admission.intervention_id,
        "admission": str(admission.kind),
        "reason": admission.reason,
    }


def add_failures(
    connection: Connection, failures: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]
) -> None:
    """Each with what became of it; one that was dropped stays whole until it is drained."""
    if failures:
        connection.cursor().executemany(
            _ADD_FAILURE, [_failure_row(failure, said) for failure, said in failures]
        )


def add_transitions(connection: Connection, lines: Sequence[Transition]) -> None:
    if lines:
        connection.cursor().executemany(
            "INSERT INTO intervention_transitions (id, action, line) VALUES (%s, %s, %s)",
            [(_name(line), storable(line["action"]), encoded(line)) for line in lines],
        )
    drained = [(_name(x), storable(x["failure_id"])) for x in lines if x["action"] == "drain"]
    if drained:
        connection.cursor().executemany(
            "UPDATE intervention_failures SET holder = %s, line = NULL WHERE id = %s", drained
        )


def add_archived(connection: Connection, entries: Iterable[Entry]) -> None:
    """The last record of an id counts, and is the latest."""
    rows = [
        (
            *(storable(entry["id"]), storable(short_id(entry["id"])), figures.closed_at),
            *(figures.hours_to_resolve, figures.regression, figures.verified),
            bool(entry["resolved_at"]),
            sorted(map(storable, fingerprints(entry, resolved=True))),
            encoded(entry),
        )
        for entry in entries
        if (figures := figures_of(entry))
    ]
    if rows:
        connection.cursor().executemany(
            "DELETE FROM intervention_archive WHERE id = %s", [row[:1] for row in rows]
        )
        connection.cursor().executemany(
            "INSERT INTO intervention_archive (id, short, closed_at, hours, regression, verified,"
            " still_resolved, resolved, entry) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            rows,
        )


def _name(line: Transition) -> str | None:
    return storable(line["id"]) if line["id"] else None


def _failure_row(failure: Mapping[str, Any], said: Mapping[str, Any]) -> tuple[object, ...]:
    """The values of _ADD_FAILURE; without a time it comes last, and is in no window of one."""
    created = 0.0
    with suppress(ValueError, TypeError):
        created = from_text(failure.get("created_at") or "").timestamp()
    rank = severity_rank(failure.get("severity")) if created else len(SEVERITIES)
    texts = [str(failure.get(name) or "") for name in ("phase", "fingerprint", "error_type")]
    message = str(failure.get("error_message") or "")[:_MOST_MESSAGE]
    holder = said.get("intervention_id")
    return (
        storable(str(failure.get("id"))),
        storable(holder) if holder else None,
        said["admission"],
        said.get("reason") or "unknown",
        *(rank, created),
        *map(storable, [*texts, message]),
        sorted(turns_of(cast(Entry, failure))),
        None if holder else encoded(failure),
    )
