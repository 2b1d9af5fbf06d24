"""What a replay needs of a turn: a pure reading of its journal.

It leaves out visits that a person went back behind, and failed or interrupted ones that were
resumed, but for their completed tool calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from unified_flow.turns import events, results
from unified_flow.turns.archive import named_damage, read_turn
from unified_flow.turns.events import AnyEvent
from unified_flow.turns.fold import OUTPUT, JournalOrderError, apply
from unified_flow.turns.sections import written
from unified_flow.turns.store import TurnStore
from unified_flow.turns.turn import Turn

COORDINATOR = "coordinator"
OF_A_VISIT = (events.ModelCalled, events.ToolStarted, events.ToolCompleted, events.PhaseCompleted)
LIMIT_REACHED = frozenset({"LoopLimitError", "LimitReachedError"})  # the latter in older journals


class Plain(BaseModel):
    model_config = ConfigDict(frozen=True)


class RecordedReply(Plain):
    """A model's reply, and a digest of its request."""

    text: str
    request_digest: str = ""


class Call(BaseModel):
    """A tool call; `place` is its own in the plan, and `output` is None if it failed."""

    place: int
    tool: str
    args: dict[str, Any]
    output: results.ToolResult | None = None


class RecordedVisit(BaseModel):
    """`calls` are in the order of the plan."""

    phase: str
    replies: list[RecordedReply] = []
    calls: list[Call] = []
    output: Any = None
    completed: bool = False


class RecordedFailure(Plain):
    """How the turn ended, if a phase failed. Redacted."""

    phase: str
    error_type: str
    message: str
    tool: str | None = None

    @classmethod
    def of(cls, event: events.PhaseFailed) -> Self:
        return cls(
            phase=event.phase,
            error_type=event.error_type,
            message=event.error_message,
            tool=event.tool,
        )

    @property
    def limit(self) -> bool:
        """A loop limit: nothing was asked or called, so that there is nothing to play."""
        return self.error_type in LIMIT_REACHED


class RecordedResumption(Plain):
    """Somebody let the turn go on after `after` of its visits: the counters began anew.

    `standing`, if anything was edited by then, is the question and every section as they stood.
    """

    after: int
    phase: str
    standing: dict[str, Any] = {}


class Recording(Plain):
    """`question` is the one that was asked first. `history` is what the first phase was told of
    the session; None if it did not come so far. `unfinished`: no phase failed, it was stopped.
    `limits` are those that it ran into, of its own configuration."""

    turn_id: int = 0
    session_id: str = "replay"
    user_id: str = "default"
    question: str = ""
    visits: tuple[RecordedVisit, ...] = ()
    failed: RecordedFailure | None = None
    resumptions: tuple[RecordedResumption, ...] = ()
    history: tuple[results.PriorTurn, ...] | None = None
    unfinished: bool = False
    limits: dict[str, int] = {}


async def recorded(turns: TurnStore, turn_id: int) -> Recording:
    """The recording of a turn. Raises FileNotFoundError, and RetrievalError for a journal that is
    damaged."""
    _, journal = await read_turn(turns, turn_id)
    with named_damage(turns.place(turn_id), journal):
        return record(journal)


def record(journal: Iterable[AnyEvent]) -> Recording:
    """The recording of a turn. Raises JournalOrderError."""
    turn, asked = Turn(), ""
    visits, resumptions, edited = list[RecordedVisit](), list[RecordedResumption](), False
    for event in journal:
        before, turn = turn, apply(turn, event)
        if isinstance(event, OF_A_VISIT) and not visits:
            raise JournalOrderError(event, before, "no phase had begun")
        match event:
            case events.TurnStarted():
                asked = event.question
            case events.PhaseStarted():
                visits.append(RecordedVisit(phase=event.phase, calls=_carried(event, turn)))
            case events.ModelCalled():
                reply = RecordedReply(text=event.reply, request_digest=event.request_digest)
                visits[-1].replies.append(reply)
            case events.ToolStarted():
                call = Call(place=event.call, tool=event.tool, args=event.args)
                visits[-1].calls.append(call)
            case events.ToolCompleted():
                output, calls = turn.tools_done[event.call], visits[-1].calls
                begun = [call for call in calls if call.place == event.call]
                if output.success and not begun:
                    raise JournalOrderError(event, before, "its call had not begun")
                if not begun:  # refused before it began
                    calls += _calls_of_plan(event, turn, {event.call: output})
                for call in begun:
                    call.output = output
            case events.PhaseCompleted():
                visits[-1].output, visits[-1].completed = event.output, True
            case events.PhaseFailed() if not visits or visits[-1].phase != event.phase:
                visits.append(RecordedVisit(phase=event.phase))
            case events.PhaseFailed() if event.tool is not None and event.phase != COORDINATOR:
                # The search beside the phase failed, whatever a model had said by then.
                visits[-1].replies.clear()
            case events.TurnResumed():
                edited = edited or bool(event.edited)
                visits = _before(visits, before, event.phase) if event.rewound else visits
                after = sum(visit.completed for visit in visits)
                standing = _standing(turn) if edited else {}
                resumptions = [r for r in resumptions if r.after < after]
                resumptions.append(
                    RecordedResumption(after=after, phase=event.phase, standing=standing)
                )
    kept = [visit for visit in visits if visit.completed or visit is visits[-1]]
    for visit in kept:
        visit.calls.sort(key=lambda call: call.place)
    reached = turn.failure.limit if turn.failure else None
    return Recording(
        turn_id=turn.turn_id,
        session_id=turn.session_id,
        user_id=turn.user_id,
        question=asked,
        visits=tuple(kept),
        failed=RecordedFailure.of(turn.failure) if turn.failure else None,
        resumptions=tuple(resumptions),
        history=turn.history,
        unfinished=turn.failure is None and turn.status not in ("answered", "clarify"),
        limits={reached.loop: reached.limit} if reached else {},
    )


def _carried(event: events.PhaseStarted, turn: Turn) -> list[Call]:
    """Tool calls that a visit had done before it stopped; the next one does not do them again."""
    if turn.sections.planner is None or turn.visits[-1].phase != COORDINATOR:
        return []
    return _calls_of_plan(event, turn, turn.tools_done)


def _calls_of_plan(
    event: AnyEvent, turn: Turn, done: Mapping[int, results.ToolResult]
) -> list[Call]:
    plan = turn.sections.planner
    asked = plan.tool_requests if plan is not None else []
    if any(place >= len(asked) for place in done):
        raise JournalOrderError(event, turn, "a tool answered what the plan does not ask for")
    return [
        Call(place=place, tool=asked[place].tool, args=asked[place].args, output=output)
        for place, output in done.items()
    ]


def _standing(turn: Turn) -> dict[str, Any]:
    sections = written(turn.sections)
    return {"question": turn.question} | {n: sections[n] for n in OUTPUT if n in sections}


def _before(visits: list[RecordedVisit], turn: Turn, phase: str) -> list[RecordedVisit]:
    """The completed visits that stay when a person goes back to `phase`."""
    place = turn.first_visit(phase)
    if place is None:
        return visits
    stay = sum(visit.status == "completed" for visit in turn.visits[:place])
    return [visit for visit in visits if visit.completed][:stay]
