"""Turns that are not to be kept, and that failed: they go when their intervention is closed.

Whoever closes one (a terminal, the monitor, the API) knows nothing of turns, so the flow looks now
and then what is still needed.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

from interventions import InterventionQueue
from interventions.entry import turns_needed
from interventions.errors import QueueError
from unified_flow.errors import RetrievalError
from unified_flow.turns.journal import NAME, begun
from unified_flow.turns.lock import is_held
from unified_flow.turns.turn_folders import TurnFolders

logger = logging.getLogger(__name__)

EVERY_S = 60.0


class EphemeralTurns:
    """The turns of one home. What earlier processes have left is found with the first look."""

    def __init__(
        self,
        folders: TurnFolders,
        queue: InterventionQueue,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._folders = folders
        self._queue = queue
        self._clock = clock
        self._waiting: set[int] | None = None
        self._unreported: set[int] = set()
        self._next_at = 0.0
        self._look: asyncio.Future[int] | None = None

    def failed(self, turn_id: int, reporting: asyncio.Task[Any] | None = None) -> None:
        """The turn waits for a person. While `reporting` runs, no intervention names it yet, which
        does not mean that it is closed."""
        if reporting is not None and not reporting.done():
            self._unreported.add(turn_id)
            reporting.add_done_callback(lambda _: self._unreported.discard(turn_id))
        if self._waiting is not None:
            self._waiting.add(turn_id)

    def look_now_and_then(self) -> None:
        """Beside the turns, at most once a minute."""
        if self._clock() >= self._next_at and (self._look is None or self._look.done()):
            self._next_at = self._clock() + EVERY_S
            self._look = asyncio.ensure_future(asyncio.to_thread(self.remove_closed))

    async def aclose(self) -> None:
        if self._look is not None:
            await self._look

    def remove_closed(self) -> int:
        """How many were removed. Never raises: the next look may have more luck."""
        try:
            if self._waiting is None:
                self._waiting = unkept(self._folders)
            told = self._waiting - self._unreported  # before the queue is read
            closed = told - turns_needed(self._queue.entries())
            removed = {turn_id for turn_id in closed if self._remove(turn_id)}
            self._waiting -= removed
            return len(removed)
        except (OSError, QueueError) as exc:
            logger.warning("turns that are not to be kept stay for now: %s", exc)
            return 0

    def _remove(self, turn_id: int) -> bool:
        """Not while somebody runs it: it has begun just now, or is being resumed."""
        folder = self._folders.path(turn_id)
        with suppress(FileNotFoundError):
            if is_held(folder / NAME):
                return False
            shutil.rmtree(folder)
        return True


def unkept(folders: TurnFolders) -> set[int]:
    """Every turn on disk that is not to be kept, by the first line of its journal."""
    return {turn_id for turn_id in folders.ids() if not _is_kept(folders, turn_id)}


def _is_kept(folders: TurnFolders, turn_id: int) -> bool:
    with suppress(FileNotFoundError, RetrievalError):
        began = begun(folders.path(turn_id))
        return began is None or began.persist
    return True
