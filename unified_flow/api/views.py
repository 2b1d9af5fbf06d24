"""What triage sees, in types: an intervention and a turn, both redacted."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from interventions.entry import Entry, entry_view
from interventions.secrets.redaction import redact
from interventions.times import utc_now
from unified_flow.engine.telemetry.query_log import PhaseLine
from unified_flow.turns.events import stamp
from unified_flow.turns.passage import public_text
from unified_flow.turns.sections import written
from unified_flow.turns.turn import Turn


class InterventionView(BaseModel):
    """As `interventions show --json`: what every entry has, and whatever else it holds."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str
    short_id: str
    state: str = Field(description="open, snoozed, resolved, dismissed")
    priority: str = Field(description="P0 is the most urgent")
    type: str
    severity: str
    phase: str
    tool: str | None
    error_type: str
    error_message: str
    session_id: str
    turn_id: int = Field(description="0: outside any turn")
    created_at: str
    first_seen: str
    last_seen: str
    occurrences: int
    version: int = Field(description="for `expected_version`")
    resolved_at: str | None
    resolution: str | None
    dismissed_at: str | None
    context: dict[str, Any]

    @classmethod
    def of(cls, entry: Entry) -> Self:
        return cls.model_validate(redact(entry_view(entry, utc_now())))


class TurnView(BaseModel):
    """What was asked, what each phase wrote, how it ended. Times in milliseconds."""

    model_config = ConfigDict(frozen=True)

    turn_id: int
    status: str
    session_id: str
    request_id: str
    question: str
    started_at: str | None
    duration_ms: float
    policy: str
    saved: bool
    phases: list[PhaseLine]
    failed_phase: str | None
    intervention_id: str | None
    sections: dict[str, Any] = Field(description="by the name of the phase that wrote it")
    response: str | None

    @classmethod
    def of(cls, turn: Turn) -> Self:
        view = {
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
        response = None if turn.response is None else public_text(turn.response)
        return cls.model_validate(redact(view) | {"response": response})


class RetriedView(BaseModel):
    """How the turn of a retried intervention has ended."""

    status: str
    turn_id: int
