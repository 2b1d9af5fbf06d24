"""The right to write a turn in PostgreSQL, and how its lines are written.

Its holder's name is in the turn's row, without which it can write nothing. Whoever has no session
any more loses the turn to the next who wants it: one that was taken for dead, and was frozen, finds
another's name there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, Literal, ParamSpec, TypeVar

from psycopg.errors import UniqueViolation

from interventions.errors import QueueError
from unified_flow.errors import DatabaseAwayError, QueueFullError
from unified_flow.errors.turns import PROCESS_DIED
from unified_flow.lib.compact_json import encode
from unified_flow.lib.threads import to_the_end
from unified_flow.shared.database import Database, joining, storable
from unified_flow.shared.workflows import ENQUEUE, queue_name
from unified_flow.turns.events import VERSION, AnyEvent, TurnResumed, TurnStarted, TurnTakenOver
from unified_flow.turns.journal import must_be_durable
from unified_flow.turns.lines import sealed
from unified_flow.turns.store import ReportingLease, RunLostError

T = TypeVar("T")
P = ParamSpec("P")

CHANNEL = "turns"
BEGINS = (TurnStarted, TurnResumed, TurnTakenOver)

# In one transaction with the first line. Sent again, for its answer was lost, it finds its own row.
_NEW = """
    INSERT INTO turns (turn_id, worker_id, message, user_id)
    VALUES (%(turn_id)s, %(holder)s, %(message)s, %(user_id)s)
    ON CONFLICT (turn_id) DO NOTHING
"""
# Nothing, if another has the turn, or has added lines.
_MINE = "turn_id = %(turn_id)s AND lines = %(lines)s AND worker_id = %(holder)s"
_ADD = """
    added AS (
        INSERT INTO turn_events (turn_id, seq, line)
        SELECT turn_id, %(lines)s + n, line
        FROM mine, unnest(%(new)b::bytea[]) WITH ORDINALITY AS given (line, n)
    )
"""
# Lines, the status that they leave, and the news of it are one.
_WRITE = f"""
    WITH mine AS (
        UPDATE turns SET lines = %(lines)s + %(count)s, changed_at = clock_timestamp(),
            status = coalesce(%(status)s, status), live = live AND NOT %(stops)s,
            journal_version = greatest(journal_version, %(version)s)
        WHERE {_MINE} RETURNING turn_id, live, status
    ), {_ADD}
    SELECT pg_notify('{CHANNEL}', turn_id || ' ' || CASE WHEN live THEN '' ELSE status END)
    FROM mine
"""
_DISPATCH = f"""
    WITH mine AS (
        UPDATE turns SET lines = %(lines)s + %(count)s, changed_at = clock_timestamp(),
            status = 'queued', live = true, run = run + 1, streamed = %(streamed)s,
            followers = CASE WHEN live THEN followers ELSE 0 END + 1,
            journal_version = %(version)s, worker_id = NULL
        WHERE {_MINE} AND NOT EXISTS (
            SELECT FROM turns AS same WHERE message = %(message)s AND (live OR status = 'answered')
        )
        RETURNING turn_id, run, user_id
    ), {_ADD}
    SELECT {ENQUEUE}, pg_notify('{CHANNEL}', turn_id || ' ') FROM mine
"""
# It may have ended since its answer was looked for. A run without followers is being cancelled.
_FOLLOW_SAME = """
    UPDATE turns SET followers = followers + 1
    WHERE message = %(message)s AND (live AND followers > 0 OR status = 'answered')
    RETURNING turn_id, run
"""
_IS_FULL = """
    SELECT count(*) >= %(most)s FROM (
        SELECT FROM turns WHERE live AND status = 'queued' LIMIT %(most)s
    ) AS waiting
"""


def digest_of(message: str) -> str:
    return sha256(message.encode(errors="surrogatepass")).hexdigest()


def columns_of(event: AnyEvent) -> dict[str, str | None]:
    """The columns of a turn that begins with this event; a message that is delivered again has the
    same `message`."""
    if not isinstance(event, TurnStarted):
        return {"message": None, "user_id": None}
    message = (event.session_id, event.request_id, event.user_id, event.question)
    return {"message": digest_of("\0".join(message)), "user_id": storable(event.user_id)}


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
    """`lines` are those in the database; `run`, `streamed` and `followed` (somebody waits for the
    answer) are how the turn stood."""

    turn_id: int
    database: Database
    max_queued: int | None
    lines: int = 0
    run: int = 0
    streamed: bool = False
    followed: bool = False
    _waiting: list[AnyEvent] = field(default_factory=list)
    _begins: bool = False  # what waits is the beginning of a run that is to be queued
    _state: Literal["held", "dispatched", "released"] = "held"

    async def append(self, event: AnyEvent) -> None:
        self._waiting.append(event)
        if isinstance(event, BEGINS) and self.max_queued is not None:
            self._begins = True
        if must_be_durable(event) or ends_run(event):
            try:
                await self.flush()
            except DatabaseAwayError:
                self._waiting.pop()
                raise

    async def append_all(self, events: Iterable[AnyEvent]) -> None:
        """Add events of an earlier time, in one transaction. Raises DatabaseAwayError."""
        self._waiting += events
        await self.flush()

    async def append_with(
        self, put: Callable[[], T], event_of: Callable[[T], AnyEvent]
    ) -> tuple[T, AnyEvent]:
        return await in_thread(self._put, put, event_of)

    def _put(self, put: Callable[[], T], event_of: Callable[[T], AnyEvent]) -> tuple[T, AnyEvent]:
        before = len(self._waiting)
        done: list[tuple[T, AnyEvent]] = []

        def work() -> None:
            if done and self._is_written():
                return
            del self._waiting[before:], done[:]
            with self.database.transaction() as connection, joining(connection):
                try:
                    result = put()
                except QueueError as exc:  # others hold the queue, or it was away just now
                    raise DatabaseAwayError(str(exc)) from exc
                done.append((result, event_of(result)))
                self._waiting.append(done[0][1])
                self._send(_WRITE)

        self._write(work)
        return done[0]

    async def flush(self) -> None:
        if self._waiting and not self._begins:
            await in_thread(self._write, partial(self._send, _WRITE))

    def _write(self, work: Callable[[], None]) -> None:
        """`work` sends what waits; while the database is away it is done again. Raises
        DatabaseAwayError, and RunLostError if somebody else has the turn."""
        self.database.waiting(work)
        self.lines += len(self._waiting)
        self._waiting.clear()

    def _send(self, query: str, **values: object) -> None:
        opened = self.database.connection if self.lines else self.database.transaction
        with opened() as connection, joining(connection):
            values |= self._values()
            if not self.lines:
                connection.execute(_NEW, values)
            row = connection.execute(query.encode(), values).fetchone()
            if row is None and not self._is_written():
                self._waiting.clear()  # it is the other's turn: nothing more of this one
                raise RunLostError(self.turn_id)

    def _is_written(self) -> bool:
        """Whether what waits was written just before the connection was lost."""
        query = "SELECT line FROM turn_events WHERE turn_id = %(turn_id)s AND seq = %(seq)s"
        seq = self.lines + len(self._waiting)
        row = self.database.row(query, turn_id=self.turn_id, seq=seq)
        return bool(row == (sealed(encode(self._waiting[-1]), seq),))

    def _values(self) -> dict[str, Any]:
        events = self._waiting
        return {
            "turn_id": self.turn_id,
            "lines": self.lines,
            "new": [sealed(encode(event), n) for n, event in enumerate(events, self.lines + 1)],
            "count": len(events),
            "status": next(filter(None, map(status_after, reversed(events))), None),
            "stops": any(map(ends_run, events)),
            "version": VERSION if any(isinstance(event, BEGINS) for event in events) else 0,
            "holder": self.database.program,
            **columns_of(events[0]),
        }

    async def dispatch(self, *, streamed: bool) -> int:
        """Queue the turn for a worker, in the transaction that begins its run. The turn that is
        run: another one, if that answers the same message already; `run` is its run then.
        `streamed`: somebody wants the text while a model writes it. Raises QueueFullError."""
        try:
            return await in_thread(self._dispatch, streamed)
        except BaseException:
            self.drop()  # it has not begun
            raise

    def _dispatch(self, streamed: bool) -> int:
        assert self.max_queued is not None
        if not self.lines and self.database.row(_IS_FULL, most=self.max_queued)[0]:
            self.let_go()
            raise QueueFullError(
                f"{self.max_queued} turns wait for a worker",
                hint="start more of them: unified-flow worker; the setting is shared.max_queued",
            )
        message = columns_of(self._waiting[0])["message"]
        try:
            self._write(partial(self._send, _DISPATCH, streamed=streamed, queue=queue_name()))
        except (UniqueViolation, RunLostError) as exc:
            if message is None and isinstance(exc, RunLostError):
                raise
            row = self.database.row(_FOLLOW_SAME, message=message)
            if row is None and message and isinstance(exc, UniqueViolation):
                return self._dispatch(streamed)  # it has failed just now
            self.let_go()
            if row is None:
                busy = "the turn of this message is being cancelled"
                if message is None:
                    busy = f"another turn answers the message of turn {self.turn_id}"
                raise QueueFullError(busy, hint="try again once that has ended") from exc
            self.run = row[1]
            return int(row[0])
        self._state, self.run = "dispatched", self.run + 1
        self.let_go()
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
        if self._state != "released":
            mine = "worker_id = %(holder)s" if self._state == "held" else "NOT live"
            query = f"DELETE FROM turns WHERE turn_id = %(id)s AND {mine} RETURNING 1"
            await in_thread(self.database.row, query, id=self.turn_id, holder=self.database.program)
            if self._state == "held":
                await in_thread(self.let_go)

    async def release(self) -> None:
        if self._state != "held":
            return
        self._begins = False
        try:
            await self.flush()
        finally:
            await in_thread(self.let_go)

    def let_go(self) -> None:
        """Others may take the turn: now, or once the database is back."""
        self.drop()
        if self._state == "held":
            self._state = "released"
            self._clear_name()
        self.database.release(self.turn_id)

    def _clear_name(self) -> None:
        query = (
            "UPDATE turns SET worker_id = NULL"
            " WHERE turn_id = %(id)s AND worker_id = %(holder)s RETURNING 1"
        )
        try:
            self.database.row(query, id=self.turn_id, holder=self.database.program)
        except DatabaseAwayError:
            self.database.once_back(self._clear_name_left)

    def _clear_name_left(self) -> None:
        """Unless this process has taken the turn again."""
        if self.database.hold(self.turn_id):
            self._clear_name()
            self.database.release(self.turn_id)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` returns; it is waited for even if cancelled: a sent statement runs."""
    return await to_the_end(asyncio.to_thread(work, *args, **kwargs))
