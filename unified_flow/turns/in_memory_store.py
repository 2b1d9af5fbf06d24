"""Turns in memory, for tests and for programs that keep none: they end with their process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from itertools import count
from time import time_ns

from unified_flow.lib.compact_json import encode
from unified_flow.turns.events import AnyEvent
from unified_flow.turns.lines import events_in, sealed
from unified_flow.turns.lock import PAUSE_S
from unified_flow.turns.store import Delivery, TurnLease, TurnMark, TurnStore


class _Journal:
    """The lines of a turn, as in a file: what is read back is no object of whoever wrote it."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.written_at = time_ns()
        self.held = False


class InMemoryTurnStore(TurnStore):
    def __init__(self) -> None:
        self._turns: dict[int, _Journal] = {}
        self._next = count(1)
        self._answering: set[str] = set()
        self._begun: dict[str, int] = {}

    def place(self, turn_id: int | None = None) -> str:
        return "memory" if turn_id is None else f"memory, turn {turn_id}"

    async def create(self, *, kept: bool = True) -> TurnLease:
        turn_id = next(self._next)
        self._turns[turn_id] = _Journal()
        return _MemoryLease(self._turns, turn_id)

    async def open(self, turn_id: int) -> TurnLease:
        return _MemoryLease(self._turns, turn_id)

    @asynccontextmanager
    async def delivery(self, message: str) -> AsyncIterator[Delivery]:
        while message in self._answering:
            await asyncio.sleep(PAUSE_S)
        self._answering.add(message)
        cancelled = False
        try:
            yield Delivery(self._begun.get(message), partial(self._begun.__setitem__, message))
        except asyncio.CancelledError:
            cancelled = True
            raise
        finally:
            self._answering.discard(message)
            if not cancelled:
                self._begun.pop(message, None)

    async def read(self, turn_id: int) -> list[AnyEvent]:
        lines = _found(self._turns, turn_id).lines
        return [event for _, event in events_in(lines, self.place(turn_id))]

    async def ids(self) -> list[int]:
        return sorted(self._turns)

    async def mark(self, turn_id: int) -> TurnMark | None:
        found = self._turns.get(turn_id)
        return TurnMark(sum(map(len, found.lines)), found.written_at) if found else None

    async def sizes(self) -> dict[int, int]:
        return {n: mark.size or 0 for n, mark in (await self.marks()).items()}

    async def is_held(self, turn_id: int) -> bool:
        found = self._turns.get(turn_id)
        return found is not None and found.held

    async def sweep(self, before: datetime | None) -> None:
        for turn_id, found in list(self._turns.items()):
            old = before is not None and found.written_at < before.timestamp() * 1e9
            if old and not found.lines and not found.held:
                del self._turns[turn_id]


class _MemoryLease(TurnLease):
    def __init__(self, turns: dict[int, _Journal], turn_id: int) -> None:
        self._turns = turns
        self.turn_id = turn_id
        self._journal = _found(turns, turn_id)
        if self._journal.held:
            raise BlockingIOError(11, "somebody runs the turn", f"turn {turn_id}")
        self._journal.held = self._holds = True

    async def append(self, event: AnyEvent) -> None:
        lines = self._journal.lines
        lines.append(sealed(encode(event), len(lines) + 1))
        self._journal.written_at = time_ns()

    async def remove(self, *, reserve: bool = False) -> None:
        if self._holds:
            self._turns.pop(self.turn_id, None)

    async def release(self) -> None:
        if self._holds:
            self._journal.held = self._holds = False


def _found(turns: dict[int, _Journal], turn_id: int) -> _Journal:
    if turn_id not in turns:
        raise FileNotFoundError(2, "there is no such turn", f"turn {turn_id}")
    return turns[turn_id]
