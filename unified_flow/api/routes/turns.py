"""GET /turns/{id}: one turn as it is on disk, by its number or its request id."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path

from interventions.secrets.redaction import redact
from unified_flow.api.context import Served, for_triage
from unified_flow.api.problems import problem as problems
from unified_flow.api.problems.rendering import ProblemError
from unified_flow.api.problems.schemas import errors
from unified_flow.shown import shown
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.events import stamp
from unified_flow.turns.sections import written
from unified_flow.turns.turn import Turn

router = APIRouter(tags=["triage"], dependencies=[Depends(for_triage)])


@router.get("/turns/{turn}", responses=errors(404, 422), response_model=dict[str, Any])
def show_turn(serving: Served, turn: Annotated[str, Path(min_length=1, max_length=100)]) -> Any:
    """What was asked, what each phase wrote, how it ended. Needs the triage token."""
    found = TurnArchive(serving.flow.services.folders).find(turn)
    if found is None:
        raise ProblemError(problems.of_status(404))
    return turn_view(found)


def turn_view(turn: Turn) -> dict[str, Any]:
    view: dict[str, Any] = redact(
        {
            "turn_id": turn.turn_id,
            "status": turn.status,
            "session_id": turn.session_id,
            "request_id": turn.request_id,
            "question": turn.question,
            "started_at": stamp(turn.started_at) if turn.started_at else None,
            "duration_ms": turn.duration_ms,
            "policy": turn.policy,
            "saved": turn.saved,
            "phases": turn.phases,
            "failed_phase": turn.failure.phase if turn.failure else None,
            "intervention_id": turn.failure.intervention_id if turn.failure else None,
            "sections": written(turn.sections),
        }
    )
    return view | {"response": None if turn.response is None else shown(turn.response)}
