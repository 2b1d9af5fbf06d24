"""Turns in PostgreSQL: a row a turn, and a row a line of its journal."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from time import monotonic

from unified_flow.shared.database import LIVING, Database, pauses_s
from unified_flow.shared.turn_lease import PostgresLease, digest_of, in_thread
from unified_flow.turns.events import AnyEvent, TurnStarted
from unified_flow.turns.lines import events_in, one_event
from unified_flow.turns.store import Delivery, TurnLease, TurnMark, TurnStore

PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.25
LETS_GO_S = 1.0  # who has ended a run

_QUEUED = "(live AND status = 'queued')"


class PostgresTurnStore(TurnStore):
    """A turn that begins or goes on is queued for a worker, unless `max_queued` wait. None: it is
    run by whoever holds its lease, as by a worker."""

    def __init__(self, database: Database, *, max_queued: int | None = None) -> None:
        self.database = database
        self.max_queued = max_queued

    def place(self, turn_id: int | None = None) -> str:
        return self.database.named if turn_id is None else f"{self.database.named}, turn {turn_id}"

    async def create(self, *, kept: bool = True) -> TurnLease:
        """A number: the turn's row is made with its first line."""
        query = "SELECT nextval(pg_get_serial_sequence('turns', 'turn_id'))"
        (turn_id,) = await in_thread(self.database.row, query)
        self.database.hold(turn_id)
        return PostgresLease(turn_id, self.database, self.max_queued)

    async def open(self, turn_id: int) -> TurnLease:
        """Also a turn that no worker has yet: it is taken from the queue."""
        lease = await self._lease(turn_id, f"(NOT live OR {_QUEUED})", LETS_GO_S)
        if lease is None:
            raise BlockingIOError(11, "it is with the workers", self.place(turn_id))
        return lease

    async def claim(
        self, turn_id: int, run: int, patience_s: float = math.inf
    ) -> PostgresLease | None:
        """A run that is queued or whose worker is gone, once nobody else writes the turn; None if
        it has ended, or the turn is gone. Raises BlockingIOError if somebody does for longer."""
        with suppress(FileNotFoundError):
            return await self._lease(turn_id, f"live AND run = {run}", patience_s)
        return None

    async def _lease(self, turn_id: int, wanted: str, patience_s: float) -> PostgresLease | None:
        """None if `wanted` is not true of the turn. Raises BlockingIOError if somebody writes it
        for longer, and FileNotFoundError."""
        ends_at = monotonic() + patience_s
        for pause_s in pauses_s(PAUSE_S, LONGEST_PAUSE_S):
            is_wanted, lease = await in_thread(self._take, turn_id, wanted)
            if lease is not None or not is_wanted:
                return lease
            if monotonic() >= ends_at:
                break
            await asyncio.sleep(pause_s)
        raise BlockingIOError(11, "somebody runs the turn", self.place(turn_id))

    def _take(self, turn_id: int, wanted: str) -> tuple[bool, PostgresLease | None]:
        """Whether `wanted` is true of the turn, as far as is known; and the lease, unless somebody
        else has it."""
        if not self.database.hold(turn_id):
            return True, None
        # The names that `taken` gives are its own: `wanted` speaks of the columns of turns.
        query = f"""
            WITH taken (number, known, its_run, sends_text, is_followed) AS (
                UPDATE turns SET worker_id = %(holder)s
                WHERE turn_id = %(turn_id)s AND {wanted} AND (
                    worker_id IS NULL OR worker_id = %(holder)s OR worker_id NOT IN {LIVING}
                )
                RETURNING turn_id, lines, run, streamed, followers > 0
            )
            SELECT {wanted}, known, its_run, sends_text, is_followed
            FROM turns LEFT JOIN taken ON number = turn_id WHERE turn_id = %(turn_id)s
        """
        row = None
        try:
            row = self.database.row(query, turn_id=turn_id, holder=self.database.program)
        finally:
            if row is None or row[1] is None:
                self.database.release(turn_id)
        if row is None:
            raise self._unknown(turn_id)
        is_wanted, lines, *stood = row
        if lines is None:
            return is_wanted, None
        return is_wanted, PostgresLease(turn_id, self.database, self.max_queued, lines, *stood)

    def _unknown(self, turn_id: int) -> FileNotFoundError:
        return FileNotFoundError(2, "there is no such turn", self.place(turn_id))

    @asynccontextmanager
    async def delivery(self, message: str) -> AsyncIterator[Delivery]:
        """Nobody waits for the first caller: a turn of the message that is live, or that another
        process begins meanwhile, is found when this one is dispatched."""
        digest = digest_of(message)
        query = (
            "SELECT live, followers > 0, turn_id FROM turns"
            " WHERE message = %(digest)s AND (live OR status = 'interrupted')"
            " ORDER BY live DESC, turn_id DESC LIMIT 1"
        )
        for pause_s in pauses_s(PAUSE_S, LONGEST_PAUSE_S):
            is_alone = self.database.hold(digest)
            try:
                row = await in_thread(self.database.row, query, digest=digest)
                is_live, is_followed, interrupted = row or (False, False, None)
                if is_live and is_followed:
                    yield Delivery(None)
                    return
                if is_alone and not is_live:
                    yield Delivery(interrupted)
                    return
            finally:
                if is_alone:
                    self.database.release(digest)
            # One that its last follower has left is cancelled just now, and goes on then.
            await asyncio.sleep(pause_s)

    async def read(self, turn_id: int) -> list[AnyEvent]:
        return (await self.read_on(turn_id, 0))[0]

    async def read_on(self, turn_id: int, known: int) -> tuple[list[AnyEvent], int, bool]:
        """What was added after line `known`, the last line now, and whether a run is live."""
        live, lines = await self._lines(turn_id, "seq > %(known)s", known=known)
        if known:
            events = [one_event(line, self.place(turn_id)) for line in lines]
        else:
            events = self._events(turn_id, lines)
        return events, known + len(lines), live

    async def first(self, turn_id: int) -> TurnStarted | None:
        _, lines = await self._lines(turn_id, "seq = 1")
        event = next(iter(self._events(turn_id, lines)), None)
        return event if isinstance(event, TurnStarted) else None

    async def _lines(self, turn_id: int, where: str, **values: object) -> tuple[bool, list[bytes]]:
        """Whether a run is live, and its lines for which `where` is true."""
        query = (
            "SELECT live, line FROM turns LEFT JOIN turn_events"
            f" ON turn_events.turn_id = turns.turn_id AND {where}"
            " WHERE turns.turn_id = %(turn_id)s ORDER BY seq"
        )
        rows = await in_thread(self.database.rows, query, turn_id=turn_id, **values)
        if not rows:
            raise self._unknown(turn_id)
        return rows[0][0], [line for _, line in rows if line is not None]

    def _events(self, turn_id: int, lines: list[bytes]) -> list[AnyEvent]:
        return [event for _, event in events_in(lines, self.place(turn_id))]

    async def ids(self) -> list[int]:
        return list(await self.marks())

    async def mark(self, turn_id: int) -> TurnMark | None:
        return (await self._marks("turn_id = %(turn_id)s", turn_id=turn_id)).get(turn_id)

    async def marks(self) -> dict[int, TurnMark]:
        return await self._marks("true")

    async def _marks(self, where: str, **values: object) -> dict[int, TurnMark]:
        query = (
            "SELECT turn_id, lines, (extract(epoch FROM changed_at) * 1000000)::bigint * 1000"
            f" FROM turns WHERE {where} ORDER BY turn_id"
        )
        rows = await in_thread(self.database.rows, query, **values)
        return {turn_id: TurnMark(*mark) for turn_id, *mark in rows}

    async def sizes(self) -> dict[int, int]:
        query = (
            "SELECT turn_id, coalesce(sum(octet_length(line)), 0)::bigint FROM turns"
            " LEFT JOIN turn_events USING (turn_id) GROUP BY turn_id ORDER BY turn_id"
        )
        return dict(await in_thread(self.database.rows, query))

    async def is_held(self, turn_id: int) -> bool:
        """Whether somebody runs it, or it waits for a worker, its first or another one."""
        is_here = self.database.holds(turn_id)
        return is_here or await self._is(f"live OR worker_id IN {LIVING}", turn_id)

    async def is_queued(self, turn_id: int) -> bool:
        return await self._is(_QUEUED, turn_id)

    async def _is(self, condition: str, turn_id: int) -> bool:
        query = f"SELECT {condition} FROM turns WHERE turn_id = %(turn_id)s"
        row = await in_thread(self.database.row, query, turn_id=turn_id)
        return bool(row and row[0])

    async def leave(self, turn_id: int, run: int) -> bool:
        """Take one follower from the run, never two: it is tried once. True if it is live and has
        none any more. Raises DatabaseAwayError."""
        query = (
            "UPDATE turns SET followers = followers - 1"
            " WHERE turn_id = %s AND run = %s AND live RETURNING followers <= 0"
        )

        def left() -> bool:
            with self.database.connection() as connection:
                return connection.execute(query, (turn_id, run)).fetchone() == (True,)

        return await in_thread(left)
