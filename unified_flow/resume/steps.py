"""What happened in a turn, step by step with its time, from the events of its journal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from interventions.times import to_text
from unified_flow.turns.events import (
    AnyEvent,
    ModelCalled,
    ModelFailed,
    PhaseCompleted,
    PhaseFailed,
    PhaseStarted,
    ToolCompleted,
    ToolStarted,
    TurnResumed,
    TurnTakenOver,
)

Step = dict[str, Any]


def steps(events: Sequence[AnyEvent], *, running: bool) -> list[Step]:
    """`steps` of a LiveTurn. A model's call is known when it is over, a phase and a tool when they
    begin, too."""
    found: list[Step] = []
    begun: dict[str | int, Step] = {}
    for event in events:
        match event:
            case TurnResumed() | TurnTakenOver():
                _leave(begun)
                by = event.by if isinstance(event, TurnResumed) else "another process"
                found.append(_step("run", f"resumed by {by}", event.at, "completed"))
            case PhaseStarted():
                again = f" {event.visit}" if event.visit > 1 else ""
                begun[event.phase] = _step("phase", event.phase + again, event.at)
                found.append(begun[event.phase])
            case PhaseCompleted() | PhaseFailed():
                status = "completed" if isinstance(event, PhaseCompleted) else "failed"
                ended = {"status": status, "duration_ms": event.duration_ms}
                begun.pop(event.phase, {}).update(ended)
            case ModelCalled() | ModelFailed():
                at = event.at - timedelta(milliseconds=event.duration_ms)
                replied = isinstance(event, ModelCalled)
                step = _step("model", event.model, at, "completed" if replied else "failed")
                text = _text(event.reply) if isinstance(event, ModelCalled) else event.error_type
                found.append(step | {"duration_ms": event.duration_ms, "text": text})
            case ToolStarted():
                step = _step("tool", event.tool, event.at) | {"text": _text(event.args)}
                begun[event.call] = step
                found.append(step)
            case ToolCompleted():
                ended = {"status": "completed", "duration_ms": event.duration_ms}
                begun.pop(event.call, {}).update(ended)
    if not running:
        _leave(begun)
    return found


def _step(kind: str, name: str, at: datetime, status: str = "running") -> Step:
    began = {"started_at": to_text(at), "duration_ms": None}
    return {"kind": kind, "name": name, "status": status, **began, "text": ""}


def _leave(begun: dict[str | int, Step]) -> None:
    """Their process is gone, or their phase has failed."""
    for step in begun.values():
        step["status"] = "interrupted"
    begun.clear()


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
