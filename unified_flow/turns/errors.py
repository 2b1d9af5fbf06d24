"""What is wrong with a turn on disk. The command's exit code is the class's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interventions.errors import NotFoundError

if TYPE_CHECKING:
    from unified_flow.turns.events import Observed
    from unified_flow.turns.turn import Turn


class NoSuchTurnError(NotFoundError):
    pass


class JournalOrderError(Exception):
    """An event, whole in itself, that no turn can have come to as it stood: lines are missing from
    the journal, or stand elsewhere. Whoever reads a folder makes a RetrievalError of it."""

    def __init__(self, event: Observed, turn: Turn, why: str) -> None:
        super().__init__(f"{event.event} of turn {turn.turn_id or '?'}: {why}")
        self.event = event
        self.turn = turn
