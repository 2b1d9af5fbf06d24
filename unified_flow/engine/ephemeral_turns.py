"""Turns that are not kept and that failed: they go when their intervention is closed.

What closes it (a terminal, the monitor, the API) knows nothing of turns, so the flow looks once a
minute which turns are still needed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

from interventions.errors import QueueError
from unified_flow.engine.dead_turns import report_dead_turns
from unified_flow.engine.services import Services
from unified_flow.errors import RetrievalError
from unified_flow.turns.removal import remove
from unified_flow.turns.store import TurnStore
from unified_flow.turns.turn import UNDER_WAY, Turn

logger = logging.getLogger(__name__)

EVERY_S = 60.0


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
            closed = sorted(self._waiting - await asyncio.to_thread(self._needed))
            removed = await remove(self._turns, closed, needed=self._needed, may_go=_may_go)
            self._waiting -= removed
            if left := [turn_id for turn_id in closed if turn_id not in removed]:
                await report_dead_turns(self._turns, self._queue, self._log, among=left)
            return len(removed)
        except (OSError, QueueError) as exc:
            logger.warning("turns that are not kept stay for now: %s", exc)
            return 0

    def _needed(self) -> set[int]:
        """What is being reported is looked for first."""
        return set(self._reporting.values()) | self._queue.turns_needed()


def _may_go(turn: Turn | None) -> bool:
    """Whether the turn may be removed: not if its process died and nobody knows."""
    return turn is None or not turn.turn_id or turn.status not in UNDER_WAY


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
