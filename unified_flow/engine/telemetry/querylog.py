"""`logs/rag_queries.jsonl`: one line for every request, failed or not (rag-error-model.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from interventions.storage import jsonl
from unified_flow.engine.telemetry.request_line import RequestLine
from unified_flow.turns.journal import encode

LogRequest = Callable[[RequestLine], None]


def log_path(home: Path) -> Path:
    return home / "logs" / "rag_queries.jsonl"


class QueryLog:
    def __init__(self, home: Path) -> None:
        self.path = log_path(home)

    def append(self, line: RequestLine) -> None:
        """Raises OSError if it is not written whole."""
        jsonl.append(self.path, encode(line.model_dump(mode="json")))
