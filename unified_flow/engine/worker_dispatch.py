"""Turns that workers run, on this machine or another, and this process follows."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

from unified_flow.engine.outcome import phase_error
from unified_flow.engine.services import Dispatcher
from unified_flow.errors import DatabaseAwayError, RetrievalError
from unified_flow.errors.safe_messages import Language
from unified_flow.errors.turns import TurnStoppedError
from unified_flow.lib.threads import to_the_end
from unified_flow.shared import workflows
from unified_flow.shared.notifications import Listener
from unified_flow.shared.text_relay import MARK, TextReceiver
from unified_flow.shared.turn_lease import CHANNEL, PostgresLease, ends_run
from unified_flow.shared.turn_store import PostgresTurnStore
from unified_flow.turns.events import TurnInterrupted
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.turn import Turn

TOGETHER_S = 0.05  # lines that come within it are read at once
CHECK_S = 5.0  # should a notification be lost
AWAY_S = 1.0

News = asyncio.Queue[str]
Waiter = tuple[str, asyncio.AbstractEventLoop, News]  # the number of the turn, as a text


class Workers(Dispatcher):
    """The caller sees what happens as if it happened here. A cancellation leaves the turn, and
    ends it where nobody else waits for it, unless this process is `stopping`: whoever asked may ask
    another one. All turns are listened to on one connection."""

    runs_here = False

    def __init__(self, store: PostgresTurnStore, language: Language) -> None:
        self._store = store
        self._language: Language = language
        self._waiters: list[Waiter] = []
        self._guard = threading.Lock()
        self._listener: Listener | None = None

    async def run(self, ledger: Ledger, here: Callable[[], Awaitable[Turn]]) -> Turn:
        lease = ledger.lease
        assert isinstance(lease, PostgresLease)
        turn_id = await lease.dispatch(streamed=ledger.watched)
        known = lease.lines
        if turn_id != lease.turn_id:
            ledger.forget()
            known = 0
        try:
            await self._follow(ledger, turn_id, known)
        except asyncio.CancelledError:
            if not self.stopping:
                with suppress(DatabaseAwayError):
                    await to_the_end(self._leave(turn_id, lease.run))
            raise
        if ledger.turn.status == "failed":
            raise phase_error(ledger.turn, self._language)
        if ledger.turn.status in ("interrupted", "abandoned"):
            raise TurnStoppedError(turn_id, ledger.turn.status)
        if ledger.turn.status == "running":
            raise RetrievalError(
                f"turn {turn_id} could not be run by a worker",
                hint="the intervention says why: interventions list",
            )
        return ledger.turn

    async def _follow(self, ledger: Ledger, turn_id: int, known: int) -> None:
        """Every event after line `known`, until the run of the turn has ended, whatever goes on
        after it; while the database is away it waits. Raises FileNotFoundError if the turn is
        removed, and JournalVersionError."""
        text = TextReceiver()
        with self._news_of(turn_id) as news:
            while True:
                has_earlier_runs = not known
                try:
                    events, known, live = await self._store.read_on(turn_id, known)
                except DatabaseAwayError:
                    await asyncio.sleep(AWAY_S)
                    continue
                for event in events:
                    await ledger.took(event)
                    if ends_run(event) and not has_earlier_runs:
                        return
                if not live:
                    return
                await _something_to_read(news, text, ledger)

    async def _leave(self, turn_id: int, run: int) -> None:
        """Leave the turn, whose caller has gone; it is cancelled if nobody else waits for it.
        Raises DatabaseAwayError."""
        if not await self._store.leave(turn_id, run):
            return
        await asyncio.to_thread(workflows.cancel, self._store.database, turn_id, run)
        # A worker that is at it notices within a second; where none has it, none comes any more.
        patience_s = math.inf if await self._store.is_queued(turn_id) else 0.0
        with suppress(BlockingIOError):
            lease = await self._store.claim(turn_id, run, patience_s)
            if lease is not None:
                await lease.append(TurnInterrupted(phase=None, reason="CancelledError"))
                await lease.release()

    def close(self) -> None:
        with self._guard:
            listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()  # nobody waits for anything, until the flow is used again

    @contextmanager
    def _news_of(self, turn_id: int) -> Iterator[News]:
        waiter = (str(turn_id), asyncio.get_running_loop(), News())
        with self._guard:
            self._waiters.append(waiter)
            if self._listener is None:
                self._listener = Listener(self._store.database, CHANNEL, self._pass_on)
        try:
            yield waiter[2]
        finally:
            with self._guard:
                self._waiters.remove(waiter)

    def _pass_on(self, payload: str | None) -> None:
        """None, if some may have been missed: everybody looks."""
        turn, _, news = (payload or "").partition(" ")
        with self._guard:
            waiters = [waiter for waiter in self._waiters if payload is None or waiter[0] == turn]
        for _, loop, queue in waiters:
            with suppress(RuntimeError):  # its loop has ended
                loop.call_soon_threadsafe(queue.put_nowait, news)


async def _something_to_read(news: News, text: TextReceiver, ledger: Ledger) -> None:
    """Returns a moment after there is something to read, and at once when it is the last; shows the
    text that comes meanwhile."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + CHECK_S
    while True:
        try:
            async with asyncio.timeout_at(deadline):  # wait_for may lose a cancellation
                said = await news.get()
        except TimeoutError:
            return
        if said.startswith(MARK):
            if (arrived := text.received(said)) is not None:
                ledger.show(arrived)
        elif said:  # how it has ended
            return
        else:
            deadline = min(deadline, loop.time() + TOGETHER_S)
