"""Who runs a turn: on one machine this process, now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from unified_flow.turns.ledger import Ledger
from unified_flow.turns.turn import Turn


class Dispatcher(Protocol):
    """Asked whenever a turn begins or goes on, once its journal says so."""

    async def run(self, ledger: Ledger, here: Callable[[], Awaitable[Turn]]) -> Turn:
        """The turn, once it has stopped. `here` runs it in this process; one that has another
        process run it closes the ledger first. Raises the phase's PhaseError, wherever it ran
        (`phase_error` in outcome.py)."""
        ...


class ThisProcess(Dispatcher):
    async def run(self, ledger: Ledger, here: Callable[[], Awaitable[Turn]]) -> Turn:
        return await here()
