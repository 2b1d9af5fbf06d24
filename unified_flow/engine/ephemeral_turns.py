"""Turns that are not kept and that failed: they go when their intervention is closed.

What closes it (a terminal, the monitor, the API) knows nothing of turns, so the flow looks once a
minute which turns are still needed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from time import monotonic

from interventions.errors import QueueError
from unified_flow.engine.dead_turns import report_dead_turns
from unified_flow.engine.services import Services
from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import JournalVersionError
from unified_flow.turns.archive import read_turn
from unified_flow.turns.store import TurnLease, TurnStore

logger = logging.getLogger(__name__)

EVERY_S = 60.0
AT_ONCE = 100  # each holds a descriptor while it is looked at


class EphemeralTurns:
    """The turns of one home, those that earlier processes have left included."""

    def __init__(self, services: Services, clock: Callable[[], float] = monotonic) -> None:
        self._turns, self._queue = services.turns, services.queue
        self._log, self._reporting = services.query_log, services.reporting
        self._clock = clock
        self._waiting: set[int] | None = None
        self._next_at = 0.0
        self._look: asyncio.Future[int] | None = None

    def failed(self, turn_id: int) -> None:
        """The turn waits for a person."""
        if self._waiting is not None:
            self._waiting.add(turn_id)

    def remove_closed_soon(self) -> None:
        """Beside the turns, at most once a minute."""
        if self._clock() >= self._next_at and (self._look is None or self._look.done()):
            self._next_at = self._clock() + EVERY_S
            self._look = asyncio.ensure_future(self.remove_closed())

    async def aclose(self) -> None:
        if self._look is not None:
            await self._look

    async def remove_closed(self) -> int:
        """How many were removed. Never raises: the next look may have more luck."""
        try:
            await report_dead_turns(self._turns, self._queue, self._log)
            if self._waiting is None:
                self._waiting = await ephemeral_ids(self._turns)
            closed = sorted(await self._closed(self._waiting))
            removed: set[int] = set()
            for first in range(0, len(closed), AT_ONCE):
                removed |= await self._remove(closed[first : first + AT_ONCE])
            self._waiting -= removed
            if left := [turn_id for turn_id in closed if turn_id not in removed]:
                await report_dead_turns(self._turns, self._queue, self._log, among=left)
            return len(removed)
        except (OSError, QueueError) as exc:
            logger.warning("turns that are not kept stay for now: %s", exc)
            return 0

    async def _closed(self, turn_ids: Iterable[int]) -> set[int]:
        """Those that no failure needs; what is being reported is looked for first."""
        reported = {turn_id for turn_id in turn_ids if not self._reporting[turn_id]}
        return reported - await asyncio.to_thread(self._queue.turns_needed)

    async def _remove(self, turn_ids: Sequence[int]) -> set[int]:
        """Those that are gone now. Not while somebody runs one (it has begun just now, or is being
        resumed), nor if its process died and nobody knows, nor what a newer version has written.

        What is needed is asked again while nobody else can run them: one may have failed since.
        """
        gone, held = set[int](), list[TurnLease]()
        try:
            for turn_id in turn_ids:
                try:
                    held.append(await self._turns.open(turn_id))
                except BlockingIOError:
                    continue
                except FileNotFoundError:
                    gone.add(turn_id)
            closed = await self._closed(lease.turn_id for lease in held)
            for lease in held:
                if lease.turn_id in closed and not await self._must_stay(lease.turn_id):
                    await lease.remove()
                    gone.add(lease.turn_id)
        finally:
            for lease in held:
                await lease.release()
        return gone

    async def _must_stay(self, turn_id: int) -> bool:
        with suppress(RetrievalError):
            try:
                turn, _ = await read_turn(self._turns, turn_id)
                return bool(turn.turn_id) and turn.status == "running"
            except JournalVersionError:
                return True
        return False


async def ephemeral_ids(turns: TurnStore) -> set[int]:
    """Every turn in the store that is not kept."""
    found = set()
    for turn_id in await turns.ids():
        with suppress(FileNotFoundError, RetrievalError):
            began = await turns.first(turn_id)
            if began is not None and not began.persist:
                found.add(turn_id)
        await asyncio.sleep(0)  # there may be thousands, and other turns run meanwhile
    return found
