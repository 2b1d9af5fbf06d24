"""GET /turns/{id}: one turn as it is on disk, by its number or its request id."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path

from unified_flow.api.context import Served, for_triage
from unified_flow.api.problems import problem as problems
from unified_flow.api.problems.rendering import ProblemError
from unified_flow.api.problems.schemas import errors
from unified_flow.api.views import TurnView
from unified_flow.turns.archive import TurnArchive

router = APIRouter(tags=["triage"], dependencies=[Depends(for_triage)])


@router.get("/turns/{turn}", responses=errors(404, 422), response_model=TurnView)
def show_turn(serving: Served, turn: Annotated[str, Path(min_length=1, max_length=100)]) -> Any:
    """What was asked, what each phase wrote, how it ended. Needs the triage token."""
    found = TurnArchive(serving.flow.services.folders).find(turn)
    if found is None:
        raise ProblemError(problems.of_status(404))
    return TurnView.of(found)
