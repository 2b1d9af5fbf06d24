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

Told = asyncio.Queue[str]


class TurnFollower:
    """Listens to all turns on one connection, once somebody follows the first one."""

    def __init__(self, store: PostgresTurnStore) -> None:
        self._store = store
        self._told: dict[str, list[tuple[asyncio.AbstractEventLoop, Told]]] = defaultdict(list)
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
        with self._heard_of(turn_id) as told:
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
                await _news(told, text, show)

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
    def _heard_of(self, turn_id: int) -> Iterator[Told]:
        turn = str(turn_id)  # another program may use a channel of this name for its own words
        waiter = (asyncio.get_running_loop(), Told())
        with self._guard:
            self._told[turn].append(waiter)
            if self._listener is None:
                self._listener = Listener(self._store.database, CHANNEL, self._heard)
        try:
            yield waiter[1]
        finally:
            with self._guard:
                self._told[turn].remove(waiter)
                if not self._told[turn]:
                    del self._told[turn]

    def _heard(self, payload: str | None) -> None:
        with self._guard:
            if payload is None:  # some may have been missed
                waiters = [waiter for several in self._told.values() for waiter in several]
                told = ""
            else:
                turn, _, told = payload.partition(" ")
                waiters = list(self._told.get(turn, ()))
        for loop, queue in waiters:
            with suppress(RuntimeError):  # its loop has ended
                loop.call_soon_threadsafe(queue.put_nowait, told)


async def _news(told: Told, text: TextReceiver, show: Callable[[TextArrived], object]) -> None:
    """Returns a moment after there is something to read, and at once when it is the last."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + CHECK_S
    while True:
        try:
            async with asyncio.timeout_at(deadline):  # wait_for may lose a cancellation
                news = await told.get()
        except TimeoutError:
            return
        if news.startswith(MARK):
            if (arrived := text.received(news)) is not None:
                show(arrived)
        elif news:  # how it has ended
            return
        else:
            deadline = min(deadline, loop.time() + TOGETHER_S)
