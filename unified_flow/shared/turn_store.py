"""Turns in PostgreSQL: a row a turn, and a row a line of its journal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Any

from unified_flow.shared.database import Database
from unified_flow.shared.lock_session import HELD_KEYS, LockSession
from unified_flow.shared.turn_lease import TURN_LOCK, PostgresLease, digest_of, in_thread
from unified_flow.shared.workflows import queue_name
from unified_flow.turns.events import VERSION, AnyEvent, TurnStarted
from unified_flow.turns.lines import events_in, one_event
from unified_flow.turns.store import Delivery, TurnLease, TurnMark, TurnStore

MESSAGE_LOCK = 2 << 48  # and the beginning of the message's digest
PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.25
LETS_GO_S = 1.0  # who has ended a run

_QUEUED = "(live AND status = 'queued')"
_LOCKED = f"%(lock)s + turn_id IN ({HELD_KEYS})"
_MARK = "nullif(lines, 0), (extract(epoch FROM changed_at) * 1000000)::bigint * 1000"


class PostgresTurnStore(TurnStore):
    """A turn that begins or goes on is queued for a worker, unless `max_queued` wait. None: it is
    run by whoever holds its lease, as by a worker, and each lease has a session of its own."""

    def __init__(
        self,
        database: Database,
        *,
        max_queued: int | None = None,
        worker_id: str | None = None,
    ) -> None:
        self.database = database
        self.max_queued = max_queued
        self.worker_id = worker_id
        self._shared = LockSession(database)
        self._idle: list[LockSession] = []

    def place(self, turn_id: int | None = None) -> str:
        return self.database.named if turn_id is None else f"{self.database.named}, turn {turn_id}"

    def _session(self) -> LockSession:
        """For a lease."""
        if self.max_queued is not None:
            return self._shared
        with suppress(IndexError):
            return self._idle.pop()
        return LockSession(self.database)

    def keep(self, session: LockSession) -> None:
        """For the next lease."""
        if session is not self._shared:
            self._idle.append(session)

    async def _row(self, query: str, **values: object) -> Any:
        return await in_thread(partial(self.database.row, query, **values))

    async def _rows(self, query: str, **values: object) -> list[Any]:
        return await in_thread(partial(self.database.rows, query, **values))

    async def create(self) -> TurnLease:
        row = await self._row("INSERT INTO turns DEFAULT VALUES RETURNING turn_id")
        return await in_thread(partial(self._leased, row[0]))

    async def open(self, turn_id: int) -> TurnLease:
        """Also one that no worker has yet: it is taken from the queue."""
        query = f"SELECT live AND NOT {_QUEUED} FROM turns WHERE turn_id = %(turn_id)s"
        ends_at = monotonic() + LETS_GO_S
        for pause_s in _pauses_s():
            row = await self._row(query, turn_id=turn_id)
            if row is not None and row[0]:
                break
            try:
                lease = await in_thread(partial(self._leased, turn_id))
            except BlockingIOError:
                if monotonic() > ends_at:
                    raise
            else:
                if not lease.live or lease.queued:
                    return lease
                await lease.release()
            await asyncio.sleep(pause_s)
        raise BlockingIOError(11, "it is with the workers", self.place(turn_id))

    async def claim(self, turn_id: int, run: int, *, wait: bool = True) -> PostgresLease | None:
        """A run that is queued or whose worker is gone, once nobody else writes the turn; None if
        it has ended, or the turn is gone. Raises BlockingIOError, if it is not to `wait`."""
        for pause_s in _pauses_s():
            try:
                lease = await in_thread(partial(self._leased, turn_id))
            except FileNotFoundError:
                break
            except BlockingIOError:
                if not wait:
                    raise
            else:
                if lease.live and lease.run == run:
                    return lease
                await lease.release()
                break
            await asyncio.sleep(pause_s)
        return None

    def _leased(self, turn_id: int) -> PostgresLease:
        """Raises BlockingIOError while somebody writes the turn, and FileNotFoundError."""
        session = self._session()
        key = TURN_LOCK + turn_id
        if not self.database.waiting(partial(session.try_lock, key)):
            self.keep(session)
            raise BlockingIOError(11, "somebody runs the turn", self.place(turn_id))
        query = (
            f"SELECT lines, live, run, streamed, followers > 0, {_QUEUED} FROM turns"
            " WHERE turn_id = %(turn_id)s"
        )
        row = self.database.row(query, turn_id=turn_id)
        if row is None:
            session.unlock(key)
            self.keep(session)
            raise FileNotFoundError(2, "there is no such turn", self.place(turn_id))
        return PostgresLease(
            turn_id, session, self.database, self.keep, self.max_queued, self.worker_id, *row
        )

    @asynccontextmanager
    async def delivery(self, message: str) -> AsyncIterator[Delivery]:
        """A turn that is live is found when it is dispatched once more, so that nobody waits for
        whoever asked first."""
        digest = digest_of(message)
        key = MESSAGE_LOCK + int(digest[:12], 16)
        lock = partial(self._shared.try_lock, key)
        is_live = "SELECT 1 FROM turns WHERE message = %(digest)s AND live"
        for pause_s in _pauses_s():
            if await in_thread(partial(self.database.waiting, lock)):
                break
            if await self._row(is_live, digest=digest):
                yield Delivery(None, lambda turn_id: None)
                return
            await asyncio.sleep(pause_s)
        try:
            query = (
                "SELECT turn_id FROM turns WHERE message = %(digest)s AND status = 'interrupted'"
                " ORDER BY turn_id DESC LIMIT 1"
            )
            row = await self._row(query, digest=digest)
            yield Delivery(row[0] if row else None, lambda turn_id: None)
        finally:
            await in_thread(partial(self._shared.unlock, key))

    async def read(self, turn_id: int) -> list[AnyEvent]:
        return (await self.read_on(turn_id, 0))[0]

    async def read_on(self, turn_id: int, known: int) -> tuple[list[AnyEvent], int, bool]:
        """What was added after line `known`, the last line now, and whether a run is live."""
        query = (
            "SELECT live, line FROM turns LEFT JOIN turn_events"
            " ON turn_events.turn_id = turns.turn_id AND seq > %(known)s"
            " WHERE turns.turn_id = %(turn_id)s ORDER BY seq"
        )
        rows = await self._rows(query, turn_id=turn_id, known=known)
        if not rows:
            raise FileNotFoundError(2, "there is no such turn", self.place(turn_id))
        lines = [line for _, line in rows if line is not None]
        if known:
            events = [one_event(line, self.place(turn_id)) for line in lines]
        else:
            events = [event for _, event in events_in(lines, self.place(turn_id), _as_it_is)]
        return events, known + len(lines), rows[0][0]

    async def first(self, turn_id: int) -> TurnStarted | None:
        query = (
            "SELECT line FROM turns LEFT JOIN turn_events ON turn_events.turn_id = turns.turn_id"
            " AND seq = 1 WHERE turns.turn_id = %(turn_id)s"
        )
        row = await self._row(query, turn_id=turn_id)
        if row is None:
            raise FileNotFoundError(2, "there is no such turn", self.place(turn_id))
        if row[0] is None:
            return None
        event = next(events_in([row[0]], self.place(turn_id), _as_it_is))[1]
        return event if isinstance(event, TurnStarted) else None

    async def ids(self) -> list[int]:
        query = "SELECT turn_id FROM turns ORDER BY turn_id"
        return [turn_id for (turn_id,) in await self._rows(query)]

    async def mark(self, turn_id: int) -> TurnMark | None:
        query = f"SELECT {_MARK} FROM turns WHERE turn_id = %(turn_id)s"
        row = await self._row(query, turn_id=turn_id)
        return TurnMark(*row) if row else None

    async def marks(self) -> dict[int, TurnMark]:
        query = f"SELECT turn_id, {_MARK} FROM turns ORDER BY turn_id"
        return {row[0]: TurnMark(*row[1:]) for row in await self._rows(query)}

    async def sizes(self) -> dict[int, int]:
        query = (
            "SELECT turn_id, coalesce(sum(octet_length(line)), 0)::bigint FROM turns"
            " LEFT JOIN turn_events USING (turn_id) GROUP BY turn_id ORDER BY turn_id"
        )
        return dict(await self._rows(query))

    async def is_held(self, turn_id: int) -> bool:
        """Also while it waits for a worker, or for another one."""
        query = f"SELECT live OR {_LOCKED} FROM turns WHERE turn_id = %(turn_id)s"
        row = await self._row(query, turn_id=turn_id, lock=TURN_LOCK)
        return bool(row and row[0])

    async def is_queued(self, turn_id: int) -> bool:
        row = await self._row(
            f"SELECT {_QUEUED} FROM turns WHERE turn_id = %(turn_id)s", turn_id=turn_id
        )
        return bool(row and row[0])

    async def sweep(self, before: datetime | None) -> None:
        query = (
            "DELETE FROM turns WHERE lines = 0 AND changed_at < %(before)s"
            f" AND NOT {_LOCKED} RETURNING 1"
        )
        if before is not None:
            await self._rows(query, before=before, lock=TURN_LOCK)

    async def leave(self, turn_id: int) -> int | None:
        """One follower less; the run that is live and has none any more."""
        query = (
            "UPDATE turns SET followers = followers - 1 WHERE turn_id = %(turn_id)s AND live"
            " RETURNING CASE WHEN followers <= 0 THEN run END"
        )
        row = await self._row(query, turn_id=turn_id)
        return int(row[0]) if row and row[0] is not None else None

    def queue_of(self, turn_id: int) -> tuple[str, int]:
        """Where the turn waits for a worker that can read its journal; and the number of its run
        that is live, or 0."""
        query = (
            "SELECT journal_version, CASE WHEN live THEN run ELSE 0 END FROM turns"
            " WHERE turn_id = %(turn_id)s"
        )
        version, run = self.database.row(query, turn_id=turn_id) or (VERSION, 0)
        return queue_name(version), run

    def close(self) -> None:
        for session in (self._shared, *self._idle):
            session.close()


def _pauses_s() -> Iterator[float]:
    """Of who tries again until somebody else lets go."""
    pause_s = PAUSE_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _as_it_is(record: Any) -> Any:
    return record
