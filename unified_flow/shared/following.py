"""Turns that run on workers, as the process sees them that waits for their answers."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

from unified_flow.errors import DatabaseAwayError
from unified_flow.shared import workflows
from unified_flow.shared.notifications import Listener
from unified_flow.shared.text_relay import MARK, TextReceiver
from unified_flow.shared.turn_lease import CHANNEL
from unified_flow.shared.turn_store import PostgresTurnStore
from unified_flow.turns.events import AnyEvent, TextArrived, TurnInterrupted

TOGETHER_S = 0.05  # lines that come within it are read at once
CHECK_S = 5.0  # should a notification be lost
AWAY_S = 1.0

Received = asyncio.Queue[str]
Waiter = tuple[asyncio.AbstractEventLoop, Received]


class TurnFollower:
    """Listens to all turns on one connection, once somebody follows the first one."""

    def __init__(self, store: PostgresTurnStore) -> None:
        self._store = store
        self._waiters: dict[str, list[Waiter]] = defaultdict(list)
        self._guard = threading.Lock()
        self._listener: Listener | None = None

    async def follow(
        self,
        turn_id: int,
        known: int,
        took: Callable[[AnyEvent], Awaitable[None]],
        show: Callable[[TextArrived], object],
    ) -> None:
        """Every event after line `known`, until the run of the turn has ended; while the database
        is away it waits. Raises FileNotFoundError if the turn is removed, and JournalVersionError.
        """
        text = TextReceiver()
        with self._notifications_of(turn_id) as received:
            while True:
                try:
                    events, known, live = await self._store.read_on(turn_id, known)
                except DatabaseAwayError:
                    await asyncio.sleep(AWAY_S)
                    continue
                for event in events:
                    await took(event)
                if not live:
                    return
                await _something_to_read(received, text, show)

    async def leave(self, turn_id: int) -> None:
        """Who waited for the answer has gone: without anybody else the turn is cancelled. Raises
        DatabaseAwayError."""
        run = await self._store.leave(turn_id)
        if run is None:
            return
        with suppress(OSError):  # a worker is at it, which notices within a second
            lease = await self._store.claim(turn_id, run, wait=False)
            if lease is not None:
                await lease.append(TurnInterrupted(phase=None, reason="CancelledError"))
                await lease.release()
        await asyncio.to_thread(workflows.cancel, self._store.database, turn_id, run)

    def close(self) -> None:
        if self._listener is not None:
            self._listener.stop()  # nobody waits for anything any more

    @contextmanager
    def _notifications_of(self, turn_id: int) -> Iterator[Received]:
        turn = str(turn_id)  # another program may use a channel of this name for its own words
        waiter = (asyncio.get_running_loop(), Received())
        with self._guard:
            self._waiters[turn].append(waiter)
            if self._listener is None:
                self._listener = Listener(self._store.database, CHANNEL, self._pass_on)
        try:
            yield waiter[1]
        finally:
            with self._guard:
                self._waiters[turn].remove(waiter)
                if not self._waiters[turn]:
                    del self._waiters[turn]

    def _pass_on(self, payload: str | None) -> None:
        with self._guard:
            if payload is None:  # some may have been missed
                waiters = [waiter for several in self._waiters.values() for waiter in several]
                news = ""
            else:
                turn, _, news = payload.partition(" ")
                waiters = list(self._waiters.get(turn, ()))
        for loop, queue in waiters:
            with suppress(RuntimeError):  # its loop has ended
                loop.call_soon_threadsafe(queue.put_nowait, news)


async def _something_to_read(
    received: Received, text: TextReceiver, show: Callable[[TextArrived], object]
) -> None:
    """Returns a moment after there is something to read, and at once when it is the last."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + CHECK_S
    while True:
        try:
            async with asyncio.timeout_at(deadline):  # wait_for may lose a cancellation
                news = await received.get()
        except TimeoutError:
            return
        if news.startswith(MARK):
            if (arrived := text.received(news)) is not None:
                show(arrived)
        elif news:  # how it has ended
            return
        else:
            deadline = min(deadline, loop.time() + TOGETHER_S)
