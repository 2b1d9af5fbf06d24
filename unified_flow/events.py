"""The records of a turn's journal, format version 1. A turn is a fold over them (turn.py).

Times are UTC; durations are milliseconds. `visit` counts the runs of one phase in one turn
from 1 (loops come back to a phase), `attempt` the tries within one visit (a policy may retry).
Unknown fields of a newer version are kept.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

VERSION = 1


def now() -> datetime:
    return datetime.now(UTC)


class Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    at: datetime = Field(default_factory=now)


class TurnStarted(Event):
    event: Literal["turn_started"] = "turn_started"
    version: int = VERSION
    turn_id: int
    session_id: str
    request_id: str
    user_id: str
    channel: str | None
    question: str
    policy: str
    config_digest: str


class PhaseStarted(Event):
    """`input_digest` covers the question and every section that the recipe reads."""

    event: Literal["phase_started"] = "phase_started"
    phase: str
    visit: int
    attempt: int
    input_digest: str
    model: str | None
    recipe_digest: str | None


class ModelCalled(Event):
    """`request_digest` covers all that the model saw; `reply` is its text as it came."""

    event: Literal["model_called"] = "model_called"
    phase: str
    model: str
    request_digest: str
    reply: Any
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    duration_ms: float


class ToolStarted(Event):
    """`call` is the request's place in the plan, from 0."""

    event: Literal["tool_started"] = "tool_started"
    phase: str
    call: int
    tool: str
    goal_id: str
    args: dict[str, Any]
    access: list[str]


class ToolCompleted(Event):
    event: Literal["tool_completed"] = "tool_completed"
    phase: str
    call: int
    output: Any
    duration_ms: float


class PhaseCompleted(Event):
    event: Literal["phase_completed"] = "phase_completed"
    phase: str
    visit: int
    output: Any
    duration_ms: float


class PhaseFailed(Event):
    """`error_message` is redacted, as everything that a person reads."""

    event: Literal["phase_failed"] = "phase_failed"
    phase: str
    visit: int
    attempt: int
    error_type: str
    error_message: str
    category: str
    tool: str | None
    intervention_id: str | None
    admission: str | None
    action: str
    duration_ms: float


class TurnInterrupted(Event):
    """Somebody stopped the process or the task; no failure."""

    event: Literal["turn_interrupted"] = "turn_interrupted"
    phase: str | None
    reason: str


class TurnCompleted(Event):
    event: Literal["turn_completed"] = "turn_completed"
    status: Literal["answered", "clarify"]
    saved: bool
    duration_ms: float


AnyEvent = Annotated[
    TurnStarted
    | PhaseStarted
    | ModelCalled
    | ToolStarted
    | ToolCompleted
    | PhaseCompleted
    | PhaseFailed
    | TurnInterrupted
    | TurnCompleted,
    Field(discriminator="event"),
]
READER: TypeAdapter[AnyEvent] = TypeAdapter(AnyEvent)
