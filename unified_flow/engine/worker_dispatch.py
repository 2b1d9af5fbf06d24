"""Turns that workers run, on this machine or another, and this process follows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from unified_flow.engine.outcome import phase_error
from unified_flow.engine.services import Dispatcher
from unified_flow.errors import DatabaseAwayError, RetrievalError
from unified_flow.errors.safe_messages import Language
from unified_flow.lib.threads import to_the_end
from unified_flow.shared.following import TurnFollower
from unified_flow.shared.turn_lease import PostgresLease
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.turn import Turn


class Workers(Dispatcher):
    """The caller sees what happens as if it happened here. A cancellation leaves the turn, and
    ends it where nobody else waits for it."""

    runs_here = False

    def __init__(self, follower: TurnFollower, language: Language) -> None:
        self._follower = follower
        self._language: Language = language

    async def run(self, ledger: Ledger, here: Callable[[], Awaitable[Turn]]) -> Turn:
        lease = ledger.lease
        assert isinstance(lease, PostgresLease)
        turn_id = await lease.dispatch(streamed=ledger.watched)
        known = lease.lines
        if turn_id != lease.turn_id:
            ledger.forget()
            known = 0
        try:
            await self._follower.follow(turn_id, known, ledger.took, ledger.show)
        except asyncio.CancelledError:
            with suppress(DatabaseAwayError):
                await to_the_end(self._follower.leave(turn_id))
            raise
        if ledger.turn.status == "failed":
            raise phase_error(ledger.turn, self._language)
        if ledger.turn.status in ("interrupted", "abandoned"):
            raise RetrievalError(
                f"turn {turn_id} was {ledger.turn.status} by somebody else", hint="ask again"
            )
        if ledger.turn.status == "running":
            raise RetrievalError(
                f"turn {turn_id} could not be run by a worker",
                hint="the intervention says why: interventions list",
            )
        return ledger.turn

    def close(self) -> None:
        self._follower.close()
