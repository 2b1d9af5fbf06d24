"""What `interventions retry` and `resolve --retry` find through `interventions.resumers`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unified_flow.errors import ConfigError, InputError, PhaseError, RetrievalError
from unified_flow.flow import UnifiedFlow
from unified_flow.resuming.asking import asked
from unified_flow.resuming.errors import NotResumableError
from unified_flow.resuming.run import Resumed, Resumption, flow_of, load, resume_turn
from unified_flow.telemetry.logs import logged
from unified_flow.turns.events import Observed, TurnResumed

OPTIONS = (
    "from_phase",
    "rerun_tools",
    "tools_done",
    "intervention_id",
    "note",
    "answer",
    "grant",
    "by",
    "via",
)


Started = Callable[[str, Sequence[str]], None]


class FlowResumer:
    """Resumes turns of `unified_flow`, each in an event loop of its own."""

    def resume(self, turn_id: int, home: Path, **options: Any) -> Mapping[str, Any]:
        """`status` is how the turn ended, or `failed` if a phase failed; `passed` says whether
        the phase that had failed has completed. Raises QueueError for a turn that cannot be
        resumed (busy, nothing left to do, no such turn)."""
        if unknown := sorted(options.keys() - {*OPTIONS, "ask", "edit", "started"}):
            raise TypeError(f"there is no option {', '.join(unknown)}")
        wanted = Resumption(**{key: options[key] for key in OPTIONS if key in options})
        try:
            turn = load(home, turn_id)
            flow = flow_of(turn, home)
            ask, edit = options.get("ask"), options.get("edit")
            wanted = asked(wanted, turn, flow.services, ask=ask, edit=edit)
        except (ConfigError, InputError, RetrievalError) as exc:
            # It says nothing about the fix: this turn cannot be begun, and another may.
            why = f"turn {turn_id} cannot be resumed: {exc}"
            raise NotResumableError(why, hint=exc.hint or "") from exc
        with logged(home):
            return _told(asyncio.run(_resume(flow, turn_id, wanted, options.get("started"))))


async def _resume(
    flow: UnifiedFlow, turn_id: int, wanted: Resumption, started: Started | None
) -> Resumed:
    def follow(event: Observed) -> None:
        if started is not None and isinstance(event, TurnResumed):
            started(event.phase, event.changed)

    async with flow:
        return await resume_turn(flow, turn_id, wanted, observer=follow)


def _told(resumed: Resumed) -> dict[str, Any]:
    turn, failure, error = resumed.turn, resumed.turn.failure, resumed.error
    return {
        "turn_id": turn.turn_id,
        "status": resumed.status,
        "passed": resumed.passed,
        "from": resumed.went_on.phase,
        "changed": resumed.went_on.changed,
        "response": None if resumed.failed else turn.response,
        "phase": failure.phase if failure else error and error.phase,
        "intervention_id": failure.intervention_id if failure else error and error.intervention_id,
        "message": f"{failure.error_type}: {failure.error_message}" if failure else _said(error),
        "difference": resumed.difference,
        "closed": resumed.closed,
        "waiting": resumed.waiting,
        "trouble": resumed.trouble,
    }


def _said(error: PhaseError | None) -> str | None:
    """Of a failure for which the journal had no room."""
    return str(error) if error is not None else None
