"""From a request id to what became of it: query log, turn, intervention."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from interventions import InterventionQueue
from interventions.entry import Entry
from interventions.errors import NotFoundError
from interventions.home import find_home
from interventions.queue import queue_at
from interventions.secrets.redaction import redact_text
from interventions.times import utc_now
from interventions.view.groups import entry_view
from unified_flow.engine.telemetry.query_log import PhaseLine, QueryLog, RequestLine
from unified_flow.lib.threads import wait_for
from unified_flow.stores import turn_archive
from unified_flow.turns.wire.agents import PHASES_OF

AGENT_OF = {phase: str(agent) for agent, phases in PHASES_OF.items() for phase in phases}


class TracedPhase(PhaseLine):
    """`agent` is the one of data-model.md that the phase stands for, if any."""

    agent: str | None


class Waiting(BaseModel):
    """The intervention as it stands now; redacted."""

    model_config = ConfigDict(frozen=True)

    id: str
    state: str
    severity: str
    phase: str
    tool: str | None
    error_type: str
    error_category: str | None
    error_message: str
    resolution: str | None


class RequestTrace(RequestLine):
    """`intervention` is null also for one that is in no queue and no archive any more."""

    phases: tuple[TracedPhase, ...] = ()
    intervention: Waiting | None = None


def trace(home: Path | str | None, request_id: str) -> list[RequestTrace]:
    """Every request of that id, oldest first: its line, and the intervention as it stands now.

    A client may use an id again, so there may be several; [] for an unknown one. Raises OSError
    for a log that cannot be read, RetrievalError for a damaged journal, QueueError.
    """
    root = find_home(home)
    found = list(QueryLog(root).of_request(request_id))
    if not found and not request_id.isdecimal():
        # Killed before its line was written, or the log has been cleared: the journal knows.
        turn = wait_for(turn_archive(root).find(request_id))
        found = [RequestLine.of_turn(turn)] if turn is not None else []
    return [_traced(line, root) for line in found]


def _traced(line: RequestLine, root: Path) -> RequestTrace:
    said = line.model_dump()
    for phase in said["phases"]:
        phase["agent"] = AGENT_OF.get(phase["name"])
    try:
        entry = _entry(line, queue_at(root))
    except NotFoundError:
        entry = None
    waiting = None
    if entry is not None:
        message = redact_text(entry["error_message"])
        view = {"error_category": None, **entry_view(entry, utc_now())}
        waiting = Waiting.model_validate({**view, "error_message": message})
    return RequestTrace(**said, intervention=waiting)


def _entry(line: RequestLine, queue: InterventionQueue) -> Entry | None:
    """Of a line that was written before the queue had answered, or of a turn that another model has
    saved, that of its turn.

    Raises NotFoundError."""
    if line.intervention_id:
        return queue.find(line.intervention_id)
    if not line.turn_id or not (line.error or line.degraded):
        return None
    return next((entry for entry in queue.entries() if entry["turn_id"] == line.turn_id), None)
