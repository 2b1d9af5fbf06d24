"""What a replay needs of a turn: a pure reading of its journal.

Only what still counts is taken: visits that a person went back behind, and failed or interrupted
ones that were resumed, are left out, but for the tool calls that they had done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict

from unified_flow import results
from unified_flow.events import (
    AnyEvent,
    ModelCalled,
    PhaseCompleted,
    PhaseFailed,
    PhaseStarted,
    ToolCompleted,
    ToolStarted,
    TurnResumed,
)
from unified_flow.folding import apply
from unified_flow.turn import Turn


class Plain(BaseModel):
    model_config = ConfigDict(frozen=True)


class Reply(Plain):
    """What a model said, and a digest of all that it had been told."""

    text: str
    request_digest: str = ""


class Call(Plain):
    """A tool call; `output` is None if it failed."""

    tool: str
    args: dict[str, Any]
    output: results.ToolResult | None = None


class Visit(Plain):
    phase: str
    replies: tuple[Reply, ...] = ()
    calls: tuple[Call, ...] = ()
    output: Any = None
    completed: bool = False


class Failed(Plain):
    """How the turn ended, if a phase failed. Redacted."""

    phase: str
    error_type: str
    message: str
    tool: str | None = None

    @property
    def limit(self) -> bool:
        """A loop limit: nothing was asked or called, so that there is nothing to play."""
        return self.error_type == "LimitReachedError"


class Recording(Plain):
    """`edited`: a person changed what a phase reads, which no model or tool has answered; such a
    turn cannot be replayed."""

    turn_id: int = 0
    session_id: str = "replay"
    user_id: str = "default"
    question: str = ""
    visits: tuple[Visit, ...] = ()
    failed: Failed | None = None
    resumed: bool = False
    edited: bool = False


def record(events: Iterable[AnyEvent]) -> Recording:
    """The recording of a turn."""
    turn, visits, edited = Turn(), list[Visit](), False
    for event in events:
        before, turn = turn, apply(turn, event)
        match event:
            case PhaseStarted():
                visits.append(Visit(phase=event.phase, calls=_carried(visits, event)))
            case ModelCalled():
                reply = Reply(text=event.reply, request_digest=event.request_digest)
                _add(visits, replies=(*visits[-1].replies, reply))
            case ToolStarted():
                call = Call(tool=event.tool, args=event.args)
                _add(visits, calls=(*(c for c in visits[-1].calls if c.output), call))
            case ToolCompleted():
                *done, last = visits[-1].calls
                output = results.ToolResult.model_validate(event.output)
                _add(visits, calls=(*done, last.model_copy(update={"output": output})))
            case PhaseCompleted():
                _add(visits, output=event.output, completed=True)
            case PhaseFailed() if not visits or visits[-1].phase != event.phase:
                visits.append(Visit(phase=event.phase))
            case TurnResumed():
                edited = edited or bool(event.edited)
                visits = _before(visits, before, event.phase) if event.rewound else visits
    kept = [v for n, v in enumerate(visits) if v.completed or n == len(visits) - 1]
    failure = turn.failure
    return Recording(
        turn_id=turn.turn_id,
        session_id=turn.session_id,
        user_id=turn.user_id,
        question=turn.question,
        visits=tuple(kept),
        failed=Failed(
            phase=failure.phase,
            error_type=failure.error_type,
            message=failure.error_message,
            tool=failure.tool,
        )
        if failure
        else None,
        resumed=turn.resumed > 0,
        edited=edited,
    )


def _add(visits: list[Visit], **changes: Any) -> None:
    visits[-1] = visits[-1].model_copy(update=changes)


def _carried(visits: list[Visit], event: PhaseStarted) -> tuple[Call, ...]:
    """Tool calls that a visit had done before it stopped; the next one does not do them again."""
    if not visits or visits[-1].completed or visits[-1].phase != event.phase:
        return ()
    return tuple(call for call in visits[-1].calls if call.output)


def _before(visits: list[Visit], turn: Turn, phase: str) -> list[Visit]:
    """The completed visits that stay when a person goes back to `phase`."""
    place = turn.first_visit(phase)
    if place is None:
        return visits
    stay = sum(visit.status == "completed" for visit in turn.visits[:place])
    return [visit for visit in visits if visit.completed][:stay]
