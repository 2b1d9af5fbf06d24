"""A turn as a fold over its journal: `apply` takes a turn and an event, and gives the next turn.

What the loop does next is read off the turn too (`routing.py`), so a turn that is read back
from disk stands exactly where it stood.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
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
    Runner,
    ToolCompleted,
    ToolStarted,
    TurnAbandoned,
    TurnCompleted,
    TurnInterrupted,
    TurnResumed,
    TurnStarted,
)
from unified_flow.records import changed
from unified_flow.sections import Sections

Status = Literal["running", "answered", "clarify", "failed", "interrupted", "abandoned"]
OUTCOME_UNKNOWN = {"tool_timeout", "http_error"}

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
    """One run of one phase. `number` counts the runs of this phase from 1.

    `before` is what the phases before it had written, for going back. A visit whose process died
    is interrupted; one that a person went back behind is dropped.
    """

    phase: str
    number: int
    status: Literal["running", "completed", "failed", "interrupted", "dropped"]
    duration_ms: float = 0.0
    before: Sections = field(default_factory=Sections, repr=False)
    model: str | None = None
    recipe_digest: str | None = None


@dataclass(frozen=True)
class Counters:
    """How often the loops have turned. They start anew when a person resumes the turn."""

    planning: int = 0
    retries: int = 0
    revisions: int = 0
    model_calls: int = 0


@dataclass(frozen=True)
class Write:
    """A call of a tool that writes. Not `done`: begun, and whether it had its effect is unknown."""

    call: int
    tool: str
    args: dict[str, Any]
    done: bool = False


@dataclass(frozen=True)
class Retry:
    """The intervention that the resumed turn is a retry of. `passed`: its phase has completed."""

    intervention_id: str
    phase: str
    by: str
    via: str
    note: str | None = None
    passed: bool = False


@dataclass(frozen=True)
class Failure:
    phase: str
    error_type: str
    error_message: str
    category: str
    tool: str | None
    intervention_id: str | None
    admission: str | None
    environment: dict[str, Any] = field(default_factory=dict, repr=False)


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
    config_digest: str = ""
    asked_with: dict[str, Any] = field(default_factory=dict)
    runner: Runner | None = None
    runs_since: datetime | None = None
    resumed: int = 0
    retry: Retry | None = None
    writes: tuple[Write, ...] = ()

    @property
    def running(self) -> str | None:
        """The phase that has begun and not ended."""
        last = self.visits[-1] if self.visits else None
        return last.phase if last is not None and last.status == "running" else None

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
        ended = ("completed", "dropped")
        return 1 + sum(v.phase == phase and v.status in ended for v in self.visits)

    def first_visit(self, phase: str) -> int | None:
        """The place in `visits` of the first run of `phase` that still counts."""
        places = enumerate(self.visits)
        return next((n for n, v in places if v.phase == phase and v.status != "dropped"), None)


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
                config_digest=event.config_digest,
                asked_with=event.asked_with,
                runner=event.runner,
                runs_since=event.at,
            )
        case TurnResumed():
            return _resume(turn, event)
        case TurnAbandoned():
            return changed(turn, status="abandoned")
        case PhaseStarted():
            visit = Visit(
                event.phase,
                event.visit,
                "running",
                before=turn.sections,
                model=event.model,
                recipe_digest=event.recipe_digest,
            )
            return changed(turn, status="running", visits=(*turn.visits, visit), failure=None)
        case ModelCalled():
            calls = turn.counters.model_calls + 1
            return changed(turn, counters=changed(turn.counters, model_calls=calls))
        case ToolStarted():
            if "writes" not in event.access:
                return turn
            write = Write(event.call, event.tool, event.args)
            return changed(turn, writes=(*turn.writes, write))
        case ToolCompleted():
            result = results.ToolResult.model_validate(event.output)
            done = {**turn.tools_done, event.call: result}
            return changed(turn, tools_done=done, writes=_all_done(turn.writes))
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
                environment=event.environment,
            )
            visits = _ended(turn, event, "failed")
            # A tool that raises says that it did not write; a call that was cut off says nothing.
            told = event.category not in OUTCOME_UNKNOWN
            writes = tuple(w for w in turn.writes if w.done) if told else turn.writes
            status: Status = "running" if event.action == "retry" else "failed"
            return changed(turn, visits=visits, status=status, failure=failure, writes=writes)
        case TurnInterrupted():
            return changed(turn, status="interrupted")
        case TurnCompleted():
            return changed(
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
    visit = turn.visits[-1] if begun else Visit(event.phase, event.visit, status)
    if not begun:
        visit = changed(visit, before=turn.sections)
    return (*before, changed(visit, status=status, duration_ms=event.duration_ms))


def _complete(turn: Turn, event: PhaseCompleted) -> Turn:
    output = OUTPUT[event.phase].validate_python(event.output)
    counters = turn.counters
    if event.phase == "coordinator":
        output = (*turn.sections.coordinator, *output)
    elif event.phase == "planner":
        counters = changed(counters, planning=counters.planning + 1)
    elif event.phase == "validation" and output.decision == "RETRY":
        counters = changed(counters, retries=counters.retries + 1, planning=0)
    elif event.phase == "validation" and output.decision == "REVISE":
        counters = changed(counters, revisions=counters.revisions + 1)
    retry = turn.retry
    if retry is not None and retry.phase == event.phase:
        retry = changed(retry, passed=True)
    return changed(
        turn,
        retry=retry,
        visits=_ended(turn, event, "completed"),
        sections=changed(turn.sections, **{event.phase: output}),
        counters=counters,
        tools_done={},
    )


def _all_done(writes: tuple[Write, ...]) -> tuple[Write, ...]:
    """Tools run one after another, so whatever had begun is done when a result comes."""
    return tuple(w if w.done else changed(w, done=True) for w in writes)


def _resume(turn: Turn, event: TurnResumed) -> Turn:
    """The turn ready to go on: as it stood, or as it stood before a phase, and perhaps edited."""
    visits = tuple(
        changed(v, status="interrupted") if v.status == "running" else v for v in turn.visits
    )
    sections, done = turn.sections, turn.tools_done
    place = turn.first_visit(event.phase) if event.rewound else None
    if place is not None:
        sections, done = visits[place].before, {}
        dropped = (changed(v, status="dropped") for v in visits[place:])
        visits = (*visits[:place], *dropped)
    edited = dict(event.edited)
    question = edited.pop("question", turn.question)
    if edited:
        replaced = {name: OUTPUT[name].validate_python(value) for name, value in edited.items()}
        before, sections = sections.planner, changed(sections, **replaced)
        done = {n: r for n, r in done.items() if _same_request(n, before, sections.planner)}
    retry = None
    if event.retry_of is not None and event.retry_phase is not None:
        old = turn.retry if not event.rewound else None
        passed = old is not None and old.intervention_id == event.retry_of and old.passed
        retry = Retry(
            event.retry_of, event.retry_phase, event.by, event.via, event.note, passed=passed
        )
    return changed(
        turn,
        status="running",
        question=question,
        sections=sections,
        visits=visits,
        counters=Counters(),
        tools_done=done,
        failure=None,
        config_digest=event.config_digest,
        asked_with=event.asked_with,
        runner=event.runner,
        runs_since=event.at,
        resumed=turn.resumed + 1,
        retry=retry,
        writes=tuple(w for w in turn.writes if w.done),
    )


def _same_request(place: int, old: results.Plan | None, new: results.Plan | None) -> bool:
    """A result stands only for the very request that it answered."""
    if old is None or new is None or place >= len(new.tool_requests):
        return False
    return old.tool_requests[place] == new.tool_requests[place]
