"""Turns that are not kept and that failed: they go when their intervention is closed.

What closes it (a terminal, the monitor, the API) knows nothing of turns, so the flow looks once a
minute which turns are still needed.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

from interventions import InterventionQueue
from interventions.entry import turns_needed
from interventions.errors import QueueError
from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import JournalVersionError
from unified_flow.turns.archive import TurnFolders, read_turn
from unified_flow.turns.journal import NAME, begun
from unified_flow.turns.lock import is_held

logger = logging.getLogger(__name__)

EVERY_S = 60.0


class EphemeralTurns:
    """The turns of one home, those that earlier processes have left included. `reporting` holds
    turns that no intervention names yet."""

    def __init__(
        self,
        folders: TurnFolders,
        queue: InterventionQueue,
        reporting: Counter[int],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._folders = folders
        self._queue = queue
        self._clock = clock
        self._waiting: set[int] | None = None
        self._reporting = reporting
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
            self._look = asyncio.ensure_future(asyncio.to_thread(self.remove_closed))

    async def aclose(self) -> None:
        if self._look is not None:
            await self._look

    def remove_closed(self) -> int:
        """How many were removed. Never raises: the next look may have more luck."""
        try:
            if self._waiting is None:
                self._waiting = ephemeral_ids(self._folders)
            reported = {
                turn for turn in self._waiting if not self._reporting[turn]
            }  # before the queue
            closed = reported - turns_needed(self._queue.entries())
            removed = {turn_id for turn_id in closed if self._remove(turn_id)}
            self._waiting -= removed
            return len(removed)
        except (OSError, QueueError) as exc:
            logger.warning("turns that are not kept stay for now: %s", exc)
            return 0

    def _remove(self, turn_id: int) -> bool:
        """Not while somebody runs it (it has begun just now, or is being resumed), nor what a newer
        version has written."""
        folder = self._folders.path(turn_id)
        with suppress(FileNotFoundError):
            if is_held(folder / NAME) or _is_newer(folder):
                return False
            shutil.rmtree(folder)
        return True


def _is_newer(folder: Path) -> bool:
    with suppress(RetrievalError):
        try:
            read_turn(folder)
        except JournalVersionError:
            return True
    return False


def ephemeral_ids(folders: TurnFolders) -> set[int]:
    """Every turn on disk that is not kept, by the first line of its journal."""
    return {turn_id for turn_id in folders.ids() if not _is_kept(folders, turn_id)}


def _is_kept(folders: TurnFolders, turn_id: int) -> bool:
    with suppress(FileNotFoundError, RetrievalError):
        began = begun(folders.path(turn_id))
        return began is None or began.persist
    return True
