"""From a request id to what became of it: query log, turn, intervention."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from interventions import InterventionQueue
from interventions.entry import Entry, state_of
from interventions.errors import NotFoundError
from interventions.home import find_home
from interventions.secrets.redaction import redact_text
from interventions.settings import queue_at
from interventions.timestamps import utc_now
from unified_flow.telemetry.querylog import line_of
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.turn import Turn
from unified_flow.wire.agents import PHASES_OF

LOG = Path("logs") / "rag_queries.jsonl"
AGENT_OF = {phase: str(agent) for agent, phases in PHASES_OF.items() for phase in phases}


def trace(home: Path | str | None, request_id: str) -> list[dict[str, Any]]:
    """Every request of that id, oldest first: its line, and the intervention as it stands now.

    A client may use an id again, so there may be several; [] if nobody knows it. Raises OSError
    for a log that cannot be read, RetrievalError for a damaged journal, QueueError.
    """
    root = find_home(home)
    found = [_with_intervention(line, root) for line in _lines(root / LOG, request_id)]
    if not found:
        # Killed before its line was written, or the log has been cleared: the journal knows.
        turn = TurnArchive.of(home).find(request_id) if not request_id.isdecimal() else None
        found = [] if turn is None else [_with_intervention(_of_turn(turn), root)]
    return found


def _lines(path: Path, request_id: str) -> Iterator[dict[str, Any]]:
    """Lines that are torn or foreign are none of this request."""
    if not path.exists():
        return
    wanted = json.dumps(request_id, ensure_ascii=False).encode()
    with path.open("rb") as log:
        for raw in log:
            if wanted not in raw:
                continue
            with suppress(ValueError):
                line = json.loads(raw)
                if isinstance(line, dict) and line.get("request_id") == request_id:
                    yield line


def _of_turn(turn: Turn) -> dict[str, Any]:
    line = line_of(turn, error_type=None, code=None)
    return line | {"type": turn.failure.error_type if turn.failure else None}


def _with_intervention(line: dict[str, Any], root: Path) -> dict[str, Any]:
    phases = [phase | {"agent": AGENT_OF.get(phase["name"])} for phase in line.get("phases") or []]
    known = line | {"phases": phases, "intervention": None}
    try:
        entry = _entry(line, queue_at(root))
    except NotFoundError:
        return known
    if entry is None:
        return known
    return known | {
        "intervention": {
            "id": entry["id"],
            "state": state_of(entry, utc_now()),
            "severity": entry["severity"],
            "phase": entry["phase"],
            "tool": entry.get("tool"),
            "error_type": entry["error_type"],
            "error_category": entry.get("error_category"),
            "error_message": redact_text(entry["error_message"]),
            "resolution": entry.get("resolution"),
        }
    }


def _entry(line: dict[str, Any], queue: InterventionQueue) -> Entry | None:
    """Of a line that was written before the queue had answered, or of a turn that another model has
    saved, that of its turn.

    Raises NotFoundError."""
    if wanted := line.get("intervention_id"):
        return queue.find(wanted)
    turn_id = line.get("turn_id")
    if not turn_id or not (line.get("error") or line.get("degraded")):
        return None
    return next((entry for entry in queue.entries() if entry["turn_id"] == turn_id), None)
