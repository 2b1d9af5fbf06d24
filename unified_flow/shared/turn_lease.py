"""The right to write a turn in PostgreSQL, and how its lines are written.

Its holder has an advisory lock on the turn, and writes through the very session that holds it: one
that was taken for dead, and was frozen, can write no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, ParamSpec, TypeVar

from psycopg.errors import UniqueViolation

from interventions.errors import QueueError
from unified_flow.errors import DatabaseAwayError, QueueFullError
from unified_flow.errors.turns import PROCESS_DIED
from unified_flow.lib.threads import to_the_end
from unified_flow.shared.database import Database, joining
from unified_flow.shared.lock_session import LockSession
from unified_flow.shared.stored_text import storable
from unified_flow.shared.workflows import ENQUEUE, queue_name
from unified_flow.turns.events import (
    VERSION,
    AnyEvent,
    TurnResumed,
    TurnStarted,
    TurnTakenOver,
)
from unified_flow.turns.journal import must_be_durable
from unified_flow.turns.lines import encode, sealed
from unified_flow.turns.store import ReportingLease, RunLostError

T = TypeVar("T")
P = ParamSpec("P")

TURN_LOCK = 1 << 48  # and the turn's number
CHANNEL = "turns"
BEGINS = (TurnStarted, TurnResumed, TurnTakenOver)

# Nothing, if somebody else has added lines.
_ADD = """
    WITH added AS (
        INSERT INTO turn_events (turn_id, seq, line)
        SELECT turn_id, lines + n, line
        FROM turns, unnest(%(new)b::bytea[]) WITH ORDINALITY AS given (line, n)
        WHERE turn_id = %(turn_id)s AND lines = %(lines)s
    )
"""
_NAMES = ", ".join(
    f"{name} = coalesce(%({name})s, {name})" for name in ("message", "request_id", "user_id")
)
# Lines, the status that they leave, and the news of it are one.
_WRITE = f"""
    {_ADD}
    UPDATE turns SET lines = %(lines)s + %(count)s, changed_at = clock_timestamp(),
        status = coalesce(%(status)s, status), live = live AND NOT %(stops)s,
        journal_version = greatest(journal_version, %(version)s),
        worker_id = coalesce(%(worker_id)s, worker_id), {_NAMES}
    WHERE turn_id = %(turn_id)s AND lines = %(lines)s
    RETURNING pg_notify('{CHANNEL}', turn_id || ' ' || CASE WHEN live THEN '' ELSE status END)
"""
_DISPATCH = f"""
    {_ADD}
    UPDATE turns SET lines = %(lines)s + %(count)s, changed_at = clock_timestamp(),
        status = 'queued', live = true, run = run + 1, streamed = %(streamed)s,
        followers = CASE WHEN live THEN followers ELSE 0 END + 1,
        journal_version = %(version)s, worker_id = NULL, {_NAMES}
    WHERE turn_id = %(turn_id)s AND lines = %(lines)s AND NOT EXISTS (
        SELECT FROM turns AS same WHERE message = %(message)s AND (live OR status = 'answered')
    )
    RETURNING {ENQUEUE}, pg_notify('{CHANNEL}', turn_id || ' '), pg_advisory_unlock(%(lock)s)
"""
# It may have ended since its answer was looked for.
_FOLLOW_SAME = """
    UPDATE turns SET followers = followers + 1
    WHERE message = %(message)s AND (live OR status = 'answered') RETURNING turn_id
"""
_IS_FULL = """
    SELECT count(*) >= %(most)s FROM (
        SELECT FROM turns WHERE live AND status = 'queued' LIMIT %(most)s
    ) AS waiting
"""


def digest_of(message: str) -> str:
    return sha256(message.encode(errors="surrogatepass")).hexdigest()


def columns_of(event: AnyEvent) -> dict[str, str | None]:
    """What a turn is found by, if it begins so; `message` is the same for one delivered again."""
    if not isinstance(event, TurnStarted):
        return {"message": None, "request_id": None, "user_id": None}
    message = (event.session_id, event.request_id, event.user_id, event.question)
    return {
        "message": digest_of("\0".join(message)),
        "request_id": storable(event.request_id),
        "user_id": storable(event.user_id),
    }


def status_after(event: AnyEvent) -> str | None:
    """The status of the turn once it is the last line; None: as before."""
    match event.event:
        case "turn_started" | "turn_resumed" | "turn_taken_over":
            return "running"
        case "turn_completed":
            return event.status
        case "phase_failed" if event.action != "retry":
            return "failed"
        case "turn_interrupted":
            return "interrupted"
        case "turn_abandoned":
            return "abandoned"
    return None


def ends_run(event: AnyEvent) -> bool:
    """A failed `save` does not: the answer follows it."""
    if event.event == "phase_failed" and event.phase == "save":
        return event.action != "retry" and event.error_type == PROCESS_DIED
    return status_after(event) not in (None, "running")


@dataclass(eq=False)
class PostgresLease(ReportingLease):
    """`lines` are those in the database; `live`, `run`, `streamed`, `followed` (somebody waits for
    the answer) and `queued` (no worker has it yet) are how the turn stood. `leave` is told when the
    session is free."""

    turn_id: int
    session: LockSession
    leave: Callable[[LockSession], object]
    database: Database
    max_queued: int | None
    worker_id: str | None
    lines: int
    live: bool
    run: int
    streamed: bool
    followed: bool
    queued: bool
    _waiting: list[tuple[AnyEvent, bytes]] = field(default_factory=list)
    _begins: bool = False  # what waits is the beginning of a run that is to be queued
    _state: Literal["held", "dispatched", "released"] = "held"

    @property
    def _key(self) -> int:
        return TURN_LOCK + self.turn_id

    async def append(self, event: AnyEvent) -> None:
        self._waiting.append((event, self._line(event, len(self._waiting))))
        if isinstance(event, BEGINS) and self.max_queued is not None:
            self._begins = True
        if must_be_durable(event) or ends_run(event):
            try:
                await self.flush()
            except DatabaseAwayError:
                self._waiting.pop()
                raise

    def _line(self, event: AnyEvent, before: int) -> bytes:
        return sealed(encode(event), self.lines + before + 1)

    async def append_with(
        self, put: Callable[[], T], event_of: Callable[[T], AnyEvent]
    ) -> tuple[T, AnyEvent]:
        return await in_thread(self._put, put, event_of)

    def _put(self, put: Callable[[], T], event_of: Callable[[T], AnyEvent]) -> tuple[T, AnyEvent]:
        before = len(self._waiting)
        done: list[tuple[T, AnyEvent]] = []

        def work() -> None:
            del self._waiting[before:], done[:]
            connection = self.session.connection
            with self.database.away(), connection.transaction(), joining(connection):
                try:
                    result = put()
                except QueueError as exc:  # others hold the queue, or it was away just now
                    raise DatabaseAwayError(str(exc)) from exc
                event = event_of(result)
                self._waiting.append((event, self._line(event, before)))
                self._insert()
                done.append((result, event))

        self._in_the_session_that_holds_it(work)
        return done[0]

    async def flush(self) -> None:
        if self._waiting and not self._begins:
            await in_thread(self._in_the_session_that_holds_it, self._insert)

    def _in_the_session_that_holds_it(self, work: Callable[[], None]) -> None:
        """`work` writes what waits. If the session ends, it is done again in the next one, unless
        somebody else has the turn or has written it: RunLostError. Raises DatabaseAwayError."""

        def once() -> None:
            with self.session.guard:
                if self.session.holds(self._key) or not self._regained():
                    work()

        self.database.waiting(once)
        self.lines += len(self._waiting)
        self._waiting.clear()

    def _regained(self) -> bool:
        """Whether what waits was written just before the session ended."""
        if not self.session.try_lock(self._key):
            raise self._lost()
        query = (
            "SELECT lines, (SELECT line FROM turn_events WHERE turn_id = turns.turn_id"
            " AND seq = lines) FROM turns WHERE turn_id = %(turn_id)s"
        )
        row = self.session.one(query, {"turn_id": self.turn_id})
        if row is not None and row[0] == self.lines:
            return False
        if row is not None and self._waiting and row[1] == self._waiting[-1][1]:
            return True
        self.session.unlock(self._key)
        raise self._lost()

    def _insert(self) -> None:
        if self.session.one(_WRITE, self._values()) is None:
            raise self._lost()

    def _lost(self) -> RunLostError:
        self._waiting.clear()  # it is the other's turn: nothing more of this one
        return RunLostError(self.turn_id)

    def _values(self) -> dict[str, Any]:
        events = [event for event, _ in self._waiting]
        return {
            "turn_id": self.turn_id,
            "lines": self.lines,
            "new": [line for _, line in self._waiting],
            "count": len(events),
            "status": next(filter(None, map(status_after, reversed(events))), None),
            "stops": any(map(ends_run, events)),
            "version": VERSION if any(isinstance(event, BEGINS) for event in events) else 0,
            "worker_id": self.worker_id,
            **columns_of(events[0]),
        }

    async def dispatch(self, *, streamed: bool) -> int:
        """Queue the turn for a worker, in the transaction that begins its run. The turn that is
        run: another one, if that answers the same message already. `streamed`: somebody wants the
        text while a model writes it. Raises QueueFullError."""
        try:
            return await in_thread(self._dispatch, streamed)
        except BaseException:
            self.drop()  # it has not begun
            raise

    def _dispatch(self, streamed: bool) -> int:
        assert self.max_queued is not None
        if not self.lines and self.database.row(_IS_FULL, most=self.max_queued)[0]:
            self._delete()
            raise QueueFullError(
                f"{self.max_queued} turns wait for a worker",
                hint="start more of them: unified-flow worker; the setting is shared.max_queued",
            )
        news = {"streamed": streamed, "queue": queue_name(), "lock": self._key}
        values = self._values() | news

        def work() -> None:
            if self.session.one(_DISPATCH, values) is None:
                raise self._lost()

        try:
            self._in_the_session_that_holds_it(work)
        except (UniqueViolation, RunLostError) as exc:
            row = self.database.row(_FOLLOW_SAME, message=values["message"])
            if row is None and isinstance(exc, RunLostError):
                raise
            if row is None:  # it has failed just now
                return self._dispatch(streamed)
            self._delete()
            return int(row[0])
        self.session.unlocked(self._key)
        self._state, self.run = "dispatched", self.run + 1
        return self.turn_id

    async def give_up(self) -> None:
        """The run has ended, and no line says how: the turn cannot be run here."""
        query = f"""
            UPDATE turns SET live = false, changed_at = clock_timestamp()
            WHERE turn_id = %(turn_id)s
            RETURNING pg_notify('{CHANNEL}', turn_id || ' ended')
        """
        await in_thread(self.database.row, query, turn_id=self.turn_id)

    def drop(self) -> None:
        self._waiting.clear()
        self._begins = False

    async def remove(self, *, reserve: bool = False) -> None:
        """No number is ever given twice."""
        if self._state == "held":
            await in_thread(self._delete)
        elif self._state == "dispatched":
            query = "DELETE FROM turns WHERE turn_id = %(turn_id)s AND NOT live RETURNING 1"
            await in_thread(self.database.row, query, turn_id=self.turn_id)

    def _delete(self) -> None:
        query = "DELETE FROM turns WHERE turn_id = %(turn_id)s RETURNING 1"
        if self.session.holds(self._key):
            self.session.one(query, {"turn_id": self.turn_id})
        self.let_go()

    async def release(self) -> None:
        if self._state != "held":
            return
        self._begins = False
        try:
            await self.flush()
        finally:
            await in_thread(self.let_go)

    def let_go(self) -> None:
        self.drop()
        self._state = "released"
        self.session.unlock(self._key)
        self.leave(self.session)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """To its end: a statement that was sent is not called back."""
    return await to_the_end(asyncio.to_thread(work, *args, **kwargs))
