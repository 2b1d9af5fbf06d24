"""A fork: a new turn that stands where an answered one stood before a phase. The old one stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interventions.times import utc_now
from unified_flow.engine.environment import beginning
from unified_flow.engine.services import Services
from unified_flow.errors.turns import NotResumableError
from unified_flow.turns.events import VERSION, AnyEvent, TurnStarted
from unified_flow.turns.fold import apply
from unified_flow.turns.input_checks import new_request_id
from unified_flow.turns.ledger import Ledger, Observer
from unified_flow.turns.turn import Turn


async def begin_fork(
    source: Ledger, phase: str, services: Services, *, by: str | None, observer: Observer | None
) -> int:
    """The number of a new turn, which has all that the turn of `source` had before `phase`. It asks
    under a request id of its own and in the same session.

    Raises NotResumableError if there is no room for it; there is no such turn then.
    """
    turn, began = source.turn, source.events[0]
    news = {
        **beginning(services, by),
        "version": VERSION,
        "request_id": new_request_id(),
        "policy": services.policy.name,
        "asked_with": services.asked_with,
        "fork_of": turn.turn_id,
        "earlier_than": turn.earlier_than or turn.turn_id,
        "copied": copied_before(phase, turn, source.events),
    }

    def first(turn_id: int) -> TurnStarted:
        assert isinstance(began, TurnStarted)
        return began.model_copy(update={**news, "at": utc_now(), "turn_id": turn_id})

    try:
        fork = await Ledger.create(services.turns, first, observer)
    except OSError as exc:
        raise NotResumableError(
            f"there is no room for a fork of turn {turn.turn_id} in {services.turns.place()}: "
            f"{exc.strerror or exc}",
            hint="make room there and make it writable; nothing has happened",
        ) from exc
    await fork.lease.release()
    return fork.turn.turn_id


def copied_before(phase: str, turn: Turn, events: Sequence[AnyEvent]) -> list[dict[str, Any]]:
    """The events between the beginning of the turn and the first run of `phase` that counts."""
    place = turn.first_visit(phase)
    assert place is not None, "an answered turn goes back to a phase that it has run"
    standing, copied = Turn(), list[dict[str, Any]]()
    for event in events:
        standing = apply(standing, event)
        if len(standing.visits) > place:
            break
        copied.append(event.model_dump(mode="json"))
    return copied[1:]
