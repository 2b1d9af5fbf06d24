"""`logs/rag_queries.jsonl`: one line for every request, failed or not (rag-error-model.md).

It holds what links a request to its turn and its failure, and nothing that was said.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from interventions.storage import jsonl
from unified_flow.turns.events import now, stamp
from unified_flow.turns.journal import encode
from unified_flow.turns.turn import Turn


class QueryLog:
    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, turn: Turn, *, error_type: str | None, code: str | None) -> None:
        """One line for the turn. Raises OSError."""
        self.append(line_of(turn, error_type=error_type, code=code))

    def append(self, line: dict[str, Any]) -> None:
        """Raises OSError if it is not written whole."""
        jsonl.append(self.path, encode(line))


def line_of(turn: Turn, *, error_type: str | None, code: str | None) -> dict[str, Any]:
    return {
        "timestamp": stamp(now()),
        "request_id": turn.request_id,
        "session_id": turn.session_id,
        "turn_id": turn.turn_id,
        "channel": turn.channel,
        "policy": turn.policy,
        "status": turn.status,
        "abstained": turn.abstained,
        "saved": turn.saved,
        "question_chars": len(turn.question),
        "sources": len(turn.citations),
        "model_calls": turn.counters.model_calls,
        "phases": turn.phases,
        "error": turn.failure is not None,
        "type": error_type,
        "code": code,
        "intervention_id": turn.failure.intervention_id if turn.failure else None,
    }
