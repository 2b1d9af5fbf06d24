"""A turn as a fold over its journal: `apply` takes a turn and an event, and gives the next turn.

What the loop does next is read off the turn too (`routing.py`), so a turn that is read back
from disk stands exactly where it stood.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from functools import reduce
from typing import Any, Literal, TypeVar, assert_never

from pydantic import TypeAdapter, ValidationError

from unified_flow.turns import events, results
from unified_flow.turns.events import (
    AnyEvent,
    Observed,
    PhaseCompleted,
    PhaseFailed,
    TurnResumed,
    Write,
)
from unified_flow.turns.lines import unlike
from unified_flow.turns.sections import changed
from unified_flow.turns.turn import (
    NOT_BEGUN,
    Counters,
    RetriedIntervention,
    Status,
    Turn,
    Visit,
)

Valid = TypeVar("Valid")

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

# The `phase` of an intervention about a failed check: no phase, but retried as one.
GUARDRAILS = "guardrails"
HISTORY = TypeAdapter(tuple[results.PriorTurn, ...])
RESULT = TypeAdapter(results.ToolResult)
DONE = {"done": True}
# What a turn has from its first event, by the same name.
BEGUN_WITH = events.TurnStarted.model_fields.keys() & {each.name for each in fields(Turn)}


class JournalOrderError(Exception):
    """An intact event that cannot follow the ones before it: lines are missing from the journal, or
    were moved. `archive.py` turns it into a RetrievalError."""

    def __init__(self, event: Observed, turn: Turn, why: str) -> None:
        super().__init__(f"{event.event} of turn {turn.turn_id or '?'}: {why}")
        self.event = event
        self.turn = turn


class UnknownValueError(JournalOrderError):
    """An intact event with a phase or a value of another version of the program."""


def fold(journal: Iterable[AnyEvent]) -> Turn:
    """Raises JournalOrderError."""
    return reduce(apply, journal, NOT_BEGUN)


def apply(turn: Turn, event: Observed) -> Turn:
    """Raises JournalOrderError for an event that cannot come next, or whose values do not fit."""
    # By name: pydantic takes long to say that a model is not of a class.
    match event.event:
        case "phase_started":
            _must_be_known(event, turn)
            asks = (event.model, event.recipe_digest)
            visit = Visit(event.phase, event.visit, "running", 0.0, turn.sections, *asks)
            return changed(turn, status="running", visits=(*turn.visits, visit), failure=None)
        case "phase_completed":
            _must_be_known(event, turn)
            return _complete(turn, event)
        case "model_called" | "model_failed":
            calls = turn.counters.model_calls + 1
            return changed(turn, counters=changed(turn.counters, model_calls=calls))
        case "tool_started":
            if "writes" not in event.access:
                return turn
            write = Write(call=event.call, tool=event.tool, args=event.args)
            return changed(turn, writes=(*turn.writes, write))
        case "tool_completed":
            result = _valid(RESULT, event.output, turn, event)
            done = {**turn.tools_done, event.call: result}
            given = None if turn.given and turn.given.tool == result.tool else turn.given
            return changed(turn, tools_done=done, writes=_all_done(turn.writes), given=given)
        case "turn_started":
            same = {name: getattr(event, name) for name in BEGUN_WITH}
            return changed(NOT_BEGUN, started_at=event.at, runs_since=event.at, **same)
        case "turn_completed":
            return changed(
                turn, status=event.status, saved=event.saved, duration_ms=event.duration_ms
            )
        case "history_read":
            return changed(turn, history=_valid(HISTORY, event.turns, turn, event))
        case "phase_failed":
            _must_be_known(event, turn)
            visits = _ended(turn, event, "failed")
            # A writing tool may have had its effect before it raised, or before its result found
            # no room in the journal: its call stays unfinished.
            status: Status = "running" if event.action == "retry" else "failed"
            tried = turn.retry_count + (event.action == "retry" or event.attempt > 1)
            return changed(
                turn,
                visits=visits,
                status=status,
                failure=event,
                last_failure=event,
                retry=_judged(turn, event.phase, passed=False),
                retry_count=tried,
            )
        case "guardrail_checked":
            passed = event.decision == "pass"
            retry = _judged(turn, GUARDRAILS, passed=True) if passed else turn.retry
            return changed(turn, **{event.stage: event}, retry=retry)
        case "text_arrived":
            return turn
        case "turn_resumed":
            return _resume(turn, event)
        case "turn_taken_over":
            return changed(
                turn.interrupted(),
                status="running",
                config_digest=event.config_digest,
                environment=event.environment,
                runner=event.runner,
                runs_since=event.at,
                taken_over=turn.taken_over + (not event.dispatched),
                setbacks=turn.setbacks + (not event.dispatched),
            )
        case "turn_interrupted":
            return turn.interrupted()
        case "turn_abandoned":
            return changed(turn.interrupted(), status="abandoned")
        case "turn_salvaged":
            stopped = turn.interrupted() if turn.status == "running" else turn
            return changed(stopped, writes=(*turn.writes, *event.calls))
        case _:
            assert_never(event)


def _must_be_known(event: events.PhaseStarted | PhaseCompleted | PhaseFailed, turn: Turn) -> None:
    if event.phase not in OUTPUT:
        raise UnknownValueError(event, turn, f"there is no phase {event.phase!r} here")


def _output(phase: str, value: Any, turn: Turn, event: Observed) -> Any:
    if phase not in OUTPUT:
        raise UnknownValueError(event, turn, f"there is no section {phase!r} here")
    return _valid(OUTPUT[phase], value, turn, event, phase)


def _valid(
    kind: TypeAdapter[Valid], value: Any, turn: Turn, event: Observed, within: str = ""
) -> Valid:
    try:
        return kind.validate_python(value)
    except ValidationError as exc:
        raise UnknownValueError(event, turn, unlike(exc, within=within)) from exc


def _judged(turn: Turn, phase: str, *, passed: bool) -> RetriedIntervention | None:
    """What the turn is a retry of, once `phase` has completed or failed: a turn may come back to
    one that it has passed."""
    retry = turn.retry
    return changed(retry, passed=passed) if retry and retry.phase == phase else retry


def _ended(
    turn: Turn, event: PhaseCompleted | PhaseFailed, status: Literal["completed", "failed"]
) -> tuple[Visit, ...]:
    """End the running visit. A phase whose recipe cannot be read fails before it begins one."""
    begun = bool(turn.visits) and turn.visits[-1].status == "running"
    before = turn.visits[:-1] if begun else turn.visits
    visit = turn.visits[-1] if begun else Visit(event.phase, event.visit, status)
    if not begun:
        visit = changed(visit, before=turn.sections)
    return (*before, changed(visit, status=status, duration_ms=event.duration_ms))


def _complete(turn: Turn, event: PhaseCompleted) -> Turn:
    output = _output(event.phase, event.output, turn, event)
    counters = turn.counters
    if event.phase == "coordinator":
        output = (*turn.sections.coordinator, *output)
    elif event.phase == "planner":
        counters = changed(counters, planning=counters.planning + 1)
    elif event.phase == "validation" and output.decision == "RETRY":
        counters = changed(counters, retries=counters.retries + 1, planning=0)
    elif event.phase == "validation" and output.decision == "REVISE":
        counters = changed(counters, revisions=counters.revisions + 1)
    last = turn.last_failure
    return changed(
        turn,
        retry=_judged(turn, event.phase, passed=True),
        last_failure=None if last is not None and last.phase == event.phase else last,
        setbacks=0,
        visits=_ended(turn, event, "completed"),
        sections=changed(turn.sections, **{event.phase: output}),
        counters=counters,
        tools_done={},
    )


def _all_done(writes: tuple[Write, ...]) -> tuple[Write, ...]:
    """Tools run one after another, and only a person lets a turn with an unknown effect go on, so
    every earlier call is done, or decided, when a result comes."""
    return tuple(w if w.done else w.model_copy(update=DONE) for w in writes)


def _resume(turn: Turn, event: TurnResumed) -> Turn:
    """The turn ready to go on: as it was, or as it was before a phase, perhaps edited."""
    visits = turn.interrupted().visits
    sections, done, history = turn.sections, turn.tools_done, turn.history
    rewound_to = turn.first_visit(event.phase) if event.rewound else None
    if rewound_to is not None:
        sections, done = visits[rewound_to].before, {}
        dropped = (changed(v, status="dropped") for v in visits[rewound_to:])
        history = history if rewound_to else None
        visits = (*visits[:rewound_to], *dropped)
    done = _with_results_of_done_calls(turn, event, done)
    edited = dict(event.edited)
    question = edited.pop("question", turn.question)
    if edited:
        replaced = {name: _output(name, value, turn, event) for name, value in edited.items()}
        standing, sections = changed(turn, sections=sections), changed(sections, **replaced)
        if "planner" in edited:
            done = _moved_to_edited_plan(standing, event, done, sections.planner)
    retry = None
    if event.retry_of is not None and event.retry_phase is not None:
        old = turn.retry if not event.rewound else None
        passed = old is not None and old.intervention_id == event.retry_of and old.passed
        retry = RetriedIntervention(
            event.retry_of, event.retry_phase, event.by, event.via, event.note, passed=passed
        )
    return changed(
        turn,
        status="running",
        question=question,
        sections=sections,
        history=history,
        visits=visits,
        counters=Counters(),
        tools_done=done,
        failure=None,
        config_digest=event.config_digest,
        asked_with=event.asked_with,
        environment=event.environment,
        runner=event.runner,
        runs_since=event.at,
        resumed=turn.resumed + 1,
        taken_over=0,
        setbacks=0,
        retry=retry,
        # A passed check stays passed; a new reply, or one whose grounds a person edited, is checked
        # again.
        pre=turn.pre if turn.should_respond and "question" not in event.edited else None,
        post=turn.post if turn.should_respond and not (event.rewound or edited) else None,
        retry_count=0,
        given=event.given or turn.given,
        writes=_all_done(tuple(w for w in turn.writes if w.done or w.call in event.tools_done)),
    )


def _with_results_of_done_calls(
    turn: Turn, event: TurnResumed, done: dict[int, results.ToolResult]
) -> dict[int, results.ToolResult]:
    """Calls that a person counts as done get a result that says so; the tool's answer is lost."""
    plan = turn.sections.planner
    taken = dict(done)
    for write in turn.unfinished_writes:
        if plan is None or write.call not in event.tools_done:
            continue
        for place, asked in enumerate(plan.tool_requests):
            if place not in taken and (asked.tool, asked.args) == (write.tool, write.args):
                taken[place] = results.ToolResult(
                    tool=asked.tool,
                    goal_id=asked.goal_id,
                    success=True,
                    result=f"done, as {event.by} says; what the tool answered is not known",
                    duration_ms=0.0,
                )
                break
    return taken


def _moved_to_edited_plan(
    turn: Turn, event: TurnResumed, done: dict[int, results.ToolResult], new: results.Plan | None
) -> dict[int, results.ToolResult]:
    """The results at the places where the edited plan makes the same requests, so that no call is
    repeated for a new place. Raises JournalOrderError for a result of no request."""
    old = turn.sections.planner
    if old is None or new is None:
        return {}
    if any(place >= len(old.tool_requests) for place in done):
        raise JournalOrderError(event, turn, "a tool answered what the plan does not ask for")
    left = [(old.tool_requests[place], result) for place, result in sorted(done.items())]
    places: dict[int, results.ToolResult] = {}
    for place, asked in enumerate(new.tool_requests):
        for known, result in left:
            if (known.tool, known.args) == (asked.tool, asked.args):
                places[place] = result.model_copy(update={"goal_id": asked.goal_id})
                left.remove((known, result))
                break
    return places
