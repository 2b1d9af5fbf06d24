"""Going on with a turn whose process is gone, without a person."""

from __future__ import annotations

from unified_flow.engine.environment import beginning
from unified_flow.engine.services import Services
from unified_flow.errors import RetrievalError
from unified_flow.turns.events import TurnTakenOver
from unified_flow.turns.ledger import Ledger, Observer
from unified_flow.turns.turn import Turn

# Whatever ends a third process may be the turn itself: then a person looks at it.
MOST_TAKEN_OVER = 2


def may_be_taken_over(turn: Turn) -> bool:
    """Of a turn that nobody runs. Only a person lets a call that may have written be repeated."""
    stopped = turn.status in ("running", "interrupted")
    return stopped and turn.taken_over < MOST_TAKEN_OVER and all(w.done for w in turn.writes)


async def take_over(
    turn_id: int, request_id: str, services: Services, observer: Observer | None = None
) -> Ledger | None:
    """The turn of that request, to go on here where it stands; None if somebody runs it, or nobody
    may."""
    try:
        ledger = await Ledger.open(services.turns, turn_id, observer)
    except (OSError, RetrievalError):
        return None
    if ledger.turn.request_id == request_id and may_be_taken_over(ledger.turn):
        try:
            await ledger.begin(TurnTakenOver(**beginning(services)))
            return ledger
        except OSError:
            pass
    await ledger.lease.release()
    return None
