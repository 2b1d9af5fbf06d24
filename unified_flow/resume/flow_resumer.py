"""What `interventions retry` and `resolve --retry` find through `interventions.resumers`."""

from __future__ import annotations

import asyncio
from pathlib import Path

from interventions.retry.contract import Resumer, RetryRequest, RetryResult, Started
from unified_flow.engine.telemetry.logs import logged
from unified_flow.errors import ConfigError, InputError, RetrievalError
from unified_flow.errors.turns import NotResumableError
from unified_flow.resume.human_input import ResumeRequest
from unified_flow.resume.prepared_turn import flow_for, prepare, resume_prepared
from unified_flow.turns.events import Observed, TurnResumed
from unified_flow.turns.ledger import Observer


class FlowResumer(Resumer):
    """Resumes turns of `unified_flow`, each in an event loop of its own."""

    def retry(self, home: Path, request: RetryRequest) -> RetryResult:
        """Raises QueueError for a turn that cannot be resumed (busy, nothing left to do, no such
        turn)."""
        turn_id = request.turn_id
        try:
            ready = prepare(
                home,
                turn_id,
                _wanted(request),
                pick_flow=lambda turn: flow_for(turn, home, **request.options),
                ask=request.ask,
                edit=request.edit,
            )
        except (ConfigError, InputError, RetrievalError) as exc:
            # It says nothing about the fix: this turn cannot be begun, and another may.
            why = f"turn {turn_id} cannot be resumed: {exc}"
            raise NotResumableError(why, hint=exc.hint or "") from exc
        with logged(home):
            return asyncio.run(resume_prepared(ready, observer=_follower(request.started)))


def _wanted(request: RetryRequest) -> ResumeRequest:
    return ResumeRequest(
        from_phase=request.from_phase,
        rerun_tools=request.rerun_tools,
        tools_done=request.tools_done,
        intervention_id=request.intervention_id,
        note=request.note,
        by=request.by,
        via=request.via,
        grant=request.grant,
        answer=request.answer,
    )


def _follower(started: Started | None) -> Observer | None:
    def follow(event: Observed) -> None:
        if started is not None and isinstance(event, TurnResumed):
            started(event.phase, event.changed)

    return follow if started is not None else None
