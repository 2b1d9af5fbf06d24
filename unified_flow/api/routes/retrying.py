"""POST /interventions/{id}/retry: a turn that goes on is a turn like any other to the service."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from interventions.entry import Entry
from interventions.errors import NotFoundError
from unified_flow.api.context import Serving
from unified_flow.api.facts import Facts
from unified_flow.api.problems import problem as problems
from unified_flow.api.problems.rendering import ProblemError
from unified_flow.api.running import unless_cancelled
from unified_flow.errors import ConfigError, InputError, RetrievalError
from unified_flow.errors.turns import NotResumableError
from unified_flow.flow import UnifiedFlow
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.prepared_turn import flow_for, prepare, resume_prepared
from unified_flow.turns.turn import Turn

CONFLICT = 409


async def retried(
    serving: Serving, facts: Facts, entry: Entry, *, note: str | None, by: str | None, via: str
) -> dict[str, Any]:
    """How its turn ended, whose intervention is closed if it got past that phase, as it is by the
    command. Raises ProblemError if it failed again, and what `exceptions.py` knows if it cannot go
    on."""
    if not entry["turn_id"]:
        raise ProblemError(problems.invalid("retry_impossible", CONFLICT))
    wanted = ResumeRequest(
        intervention_id=entry["id"],
        note=note or f"retried, and it got past {entry['phase']}",
        by=by,
        via=via,
        answer=note,
    )
    flow = serving.flow
    try:
        home, pick = flow.services.home, partial(_flow_for, flow)
        ready = await asyncio.to_thread(prepare, home, entry["turn_id"], wanted, pick_flow=pick)
        observer = serving.metrics.observe
        resuming = resume_prepared(ready, observer=observer, log=facts.keep, stays_open=flow)
        resumed = await unless_cancelled(resuming)
    except (NotFoundError, ConfigError, InputError, RetrievalError) as exc:
        raise NotResumableError(str(exc)) from exc  # the turn is what is wrong, not the request
    if resumed.failed_again:
        raise ProblemError(problems.invalid("retry_failed", CONFLICT))
    return {"status": resumed.status, "turn_id": ready.turn_id}


def _flow_for(flow: UnifiedFlow, turn: Turn) -> UnifiedFlow:
    """The service's own; another for a turn that somebody asked elsewhere with other settings."""
    suits = turn.asked_with == flow.services.asked_with
    return flow if suits else flow_for(turn, flow.services.home)
