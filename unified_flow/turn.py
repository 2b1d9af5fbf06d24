"""A turn as a fold over its journal: `apply` takes a turn and an event, and gives the next turn.

What the loop does next is read off the turn too (`routing.py`), so a turn that is read back
from disk stands exactly where it stood.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import Any, Literal, assert_never

from pydantic import TypeAdapter

from unified_flow import results
from unified_flow.events import (
    AnyEvent,
    ModelCalled,
    PhaseCompleted,
    PhaseFailed,
    PhaseStarted,
    ToolCompleted,
    ToolStarted,
    TurnCompleted,
    TurnInterrupted,
    TurnStarted,
)
from unified_flow.sections import Sections

Status = Literal["running", "answered", "clarify", "failed", "interrupted"]

OUTPUT: dict[str, TypeAdapter[Any]] = {
    "query_analyzer": TypeAdapter(results.QueryAnalysis),
    "reflection": TypeAdapter(results.Reflection),
    "context_gatherer": TypeAdapter(results.GatheredContext),
    "planner": TypeAdapter(results.Plan),
    "coordinator": TypeAdapter(tuple[results.ToolResult, ...]),
    "synthesis": TypeAdapter(results.Draft),
    "validation": TypeAdapter(results.Verdict),
    "save": TypeAdapter(results.Saved),
}


@dataclass(frozen=True)
class Visit:
    """One run of one phase. `number` counts the runs of this phase from 1."""

    phase: str
    number: int
    status: Literal["running", "completed", "failed"]
    duration_ms: float = 0.0


@dataclass(frozen=True)
class Counters:
    """How often the loops have turned. They start anew when a person resumes the turn."""

    planning: int = 0
    retries: int = 0
    revisions: int = 0
    model_calls: int = 0


@dataclass(frozen=True)
class Failure:
    phase: str
    error_type: str
    error_message: str
    category: str
    tool: str | None
    intervention_id: str | None
    admission: str | None


@dataclass(frozen=True)
class Turn:
    """One question on its way through the phases. Immutable; `apply` makes the next one."""

    turn_id: int = 0
    session_id: str = ""
    request_id: str = ""
    user_id: str = "default"
    channel: str | None = None
    question: str = ""
    policy: str = "fail_fast"
    started_at: datetime | None = None
    status: Status = "running"
    sections: Sections = field(default_factory=Sections)
    visits: tuple[Visit, ...] = ()
    counters: Counters = field(default_factory=Counters)
    tools_done: dict[int, results.ToolResult] = field(default_factory=dict)
    failure: Failure | None = None
    saved: bool = False
    duration_ms: float = 0.0

    @property
    def response(self) -> str | None:
        """What the user is told: the answer, or the question that clarifies theirs."""
        if self.status == "clarify":
            return self.clarification_question
        return self.sections.synthesis.response if self.sections.synthesis else None

    @property
    def clarification_question(self) -> str | None:
        if self.sections.planner and self.sections.planner.route == "clarify":
            return self.sections.planner.clarification_question
        if self.sections.reflection and self.sections.reflection.decision == "CLARIFY":
            return self.sections.reflection.clarification_question
        return None

    @property
    def citations(self) -> list[results.Citation]:
        return list(self.sections.synthesis.citations) if self.sections.synthesis else []

    @property
    def abstained(self) -> bool:
        return self.sections.synthesis is not None and self.sections.synthesis.abstained

    @property
    def completed(self) -> str | None:
        """The phase that completed last; what comes next follows from it."""
        done = (visit.phase for visit in reversed(self.visits) if visit.status == "completed")
        return next(done, None)

    def visit_number(self, phase: str) -> int:
        """The number that the next completed run of `phase` will bear."""
        return 1 + sum(v.phase == phase and v.status == "completed" for v in self.visits)


def fold(events: Iterable[AnyEvent]) -> Turn:
    return reduce(apply, events, Turn())


def apply(turn: Turn, event: AnyEvent) -> Turn:
    match event:
        case TurnStarted():
            return Turn(
                turn_id=event.turn_id,
                session_id=event.session_id,
                request_id=event.request_id,
                user_id=event.user_id,
                channel=event.channel,
                question=event.question,
                policy=event.policy,
                started_at=event.at,
            )
        case PhaseStarted():
            visit = Visit(event.phase, event.visit, "running")
            return replace(turn, status="running", visits=(*turn.visits, visit), failure=None)
        case ModelCalled():
            calls = turn.counters.model_calls + 1
            return replace(turn, counters=replace(turn.counters, model_calls=calls))
        case ToolStarted():
            return turn
        case ToolCompleted():
            result = results.ToolResult.model_validate(event.output)
            return replace(turn, tools_done={**turn.tools_done, event.call: result})
        case PhaseCompleted():
            return _complete(turn, event)
        case PhaseFailed():
            failure = Failure(
                phase=event.phase,
                error_type=event.error_type,
                error_message=event.error_message,
                category=event.category,
                tool=event.tool,
                intervention_id=event.intervention_id,
                admission=event.admission,
            )
            visits = _ended(turn, event, "failed")
            return replace(turn, visits=visits, status="failed", failure=failure)
        case TurnInterrupted():
            return replace(turn, status="interrupted")
        case TurnCompleted():
            return replace(
                turn, status=event.status, saved=event.saved, duration_ms=event.duration_ms
            )
        case _:
            assert_never(event)


def _ended(
    turn: Turn, event: PhaseCompleted | PhaseFailed, status: Literal["completed", "failed"]
) -> tuple[Visit, ...]:
    """The running visit ends. A phase whose recipe cannot be read fails before it has begun one."""
    begun = bool(turn.visits) and turn.visits[-1].status == "running"
    before = turn.visits[:-1] if begun else turn.visits
    return (*before, Visit(event.phase, event.visit, status, event.duration_ms))


def _complete(turn: Turn, event: PhaseCompleted) -> Turn:
    output = OUTPUT[event.phase].validate_python(event.output)
    counters = turn.counters
    if event.phase == "coordinator":
        output = (*turn.sections.coordinator, *output)
    elif event.phase == "planner":
        counters = replace(counters, planning=counters.planning + 1)
    elif event.phase == "validation" and output.decision == "RETRY":
        counters = replace(counters, retries=counters.retries + 1, planning=0)
    elif event.phase == "validation" and output.decision == "REVISE":
        counters = replace(counters, revisions=counters.revisions + 1)
    return replace(
        turn,
        visits=_ended(turn, event, "completed"),
        sections=replace(turn.sections, **{event.phase: output}),
        counters=counters,
        tools_done={},
    )
