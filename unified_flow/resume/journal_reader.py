"""The turns as the monitor shows them (entry point group `interventions.turns`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from interventions.entry import Entry, short_id
from interventions.errors import ConflictError, NotFoundError
from interventions.retry.contract import LiveTurn, TurnReader
from interventions.times import to_text
from unified_flow.engine.failure_report import ribbon
from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import JournalVersionError
from unified_flow.lib.threads import wait_for
from unified_flow.stores import turn_store
from unified_flow.turns.archive import TurnArchive, read_turn
from unified_flow.turns.events import (
    AnyEvent,
    HistoryRead,
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
from unified_flow.turns.store import TurnMark
from unified_flow.turns.turn import Turn

Step = dict[str, Any]


class JournalReader(TurnReader):
    """Reads journals only; a journal that has not grown is not read again."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, int], tuple[TurnMark, LiveTurn]] = {}

    def latest(self, home: Path, limit: int) -> Sequence[LiveTurn]:
        """The turns that were begun or went on last, running ones first, then the newest."""
        marks = wait_for(turn_store(home).marks())
        begun = [(mark.written_at, turn_id) for turn_id, mark in marks.items() if mark.size]
        newest = [self.turn(home, turn_id) for _, turn_id in sorted(begun)[: -limit - 1 : -1]]
        found = [turn for turn in newest if turn is not None]
        return sorted(found, key=lambda turn: turn["status"] != "running")

    def as_pytest(self, entry: Entry, home: Path) -> str:
        """The failure of the entry's turn as a test. Raises QueueError if it cannot be one."""
        from unified_flow.resume.replay.export import NotReplayableError, as_test

        turns, turn_id = turn_store(home), entry["turn_id"]
        try:
            return as_test(wait_for(read_turn(turns, turn_id))[1], entry["id"])
        except FileNotFoundError as exc:
            raise NotFoundError(f"there is no turn {turn_id} in {turns.place()}") from exc
        except (NotReplayableError, RetrievalError) as exc:
            hint = f"to see whether it is mended: interventions retry {short_id(entry['id'])}"
            raise ConflictError(str(exc), hint=hint) from exc

    def changes(self, home: Path, turn_id: int) -> Sequence[str]:
        """With today's settings, as a resumed turn would have them. Raises QueueError for a turn
        that cannot be read, RetrievalError for settings with which it cannot go on."""
        from unified_flow.engine.environment import changed_since  # late: it loads the whole flow
        from unified_flow.resume.lookup import flow_for, load_turn

        turn = load_turn(home, turn_id)

        async def compared() -> list[str]:
            async with flow_for(turn, home) as flow:
                return changed_since(turn, flow.services)

        return wait_for(compared())

    def turn(self, home: Path, turn_id: int) -> LiveTurn | None:
        """None for a turn that is not there or whose journal is damaged."""
        turns = turn_store(home)
        known = self._known.get((home, turn_id))
        try:
            if (mark := wait_for(turns.mark(turn_id))) is None:
                return None
            changed_s = mark.written_at / 1e9
            # A turn that seems to run may have lost its process without a trace in the journal.
            if known is not None and known[0] == mark and known[1]["status"] != "running":
                return known[1]
            found = wait_for(TurnArchive(turns).load_with_events(turn_id, mark))
            if found is None:
                return None
        except JournalVersionError as exc:
            # Not lost: the version that wrote it can go on with it.
            unread = _shown(Turn(turn_id, status="interrupted"), (), changed_s)
            told: LiveTurn = {**unread, "error": str(exc)}
            return told
        except (OSError, RetrievalError):
            return None
        shown = _shown(*found, changed_s)
        self._known[home, turn_id] = (mark, shown)
        return shown


def _shown(turn: Turn, events: Sequence[AnyEvent], changed_s: float) -> LiveTurn:
    failure = turn.failure
    return {
        "turn_id": turn.turn_id,
        "status": turn.status,
        "session_id": turn.session_id,
        "question": turn.question,
        "started_at": to_text(turn.started_at) if turn.started_at else "",
        "changed_at": to_text(datetime.fromtimestamp(changed_s, UTC)),
        "duration_ms": turn.duration_ms or None,
        "ribbon": ribbon(turn),
        "doing": _doing(events) if turn.status == "running" else "",
        "error": f"{failure.error_type}: {failure.error_message}" if failure else "",
        "intervention_id": failure.intervention_id if failure else None,
        "steps": steps(events, running=turn.status == "running"),
        "answer": turn.response or "",
        "sources": list(dict.fromkeys(f"{each.source}: {each.quote}" for each in turn.citations)),
    }


def _doing(events: Sequence[AnyEvent]) -> str:
    """What the last line says is going on: a tool, or the model of a phase."""
    match last := events[-1]:
        case ToolStarted():
            return last.tool
        case PhaseStarted():
            return f"{last.phase} ({last.model})" if last.model else last.phase
        case HistoryRead() | ModelCalled() | ModelFailed() | ToolCompleted():
            return last.phase
        case _:
            return ""


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
