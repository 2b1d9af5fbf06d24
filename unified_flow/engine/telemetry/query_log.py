"""`logs/rag_queries.jsonl`: one line for every request, failed or not (rag-error-model.md).

A line holds what links a request to its turn and its failure, and none of the conversation.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict

from interventions.storage import jsonl
from interventions.times import to_text, utc_now
from unified_flow.errors import wire_name
from unified_flow.lib.compact_json import encode
from unified_flow.phases.errors import PhaseError
from unified_flow.stores import shared_database
from unified_flow.turns.turn import Turn

if TYPE_CHECKING:
    from unified_flow.shared.request_rows import RequestRows

logger = logging.getLogger(__name__)


class HttpLine(BaseModel):
    """`route` as it is described, never the path that was sent; `client` is the name of the token
    that it came with."""

    model_config = ConfigDict(frozen=True)

    method: str
    route: str
    status: int
    duration_ms: float
    client: str | None = None


class RequestLine(BaseModel):
    """Every line has every key. `status` is the turn's, or `served` or `refused` without one;
    `phases` are `Turn.phases`; `type` and `code` are those of the error; `http` is null for what
    came another way."""

    model_config = ConfigDict(frozen=True)

    timestamp: str
    request_id: str
    session_id: str | None = None
    turn_id: int | None = None
    channel: str | None = None
    policy: str
    status: str
    abstained: bool = False
    saved: bool = False
    degraded: bool = False
    question_chars: int = 0
    sources: int = 0
    model_calls: int = 0
    phases: list[dict[str, Any]] = []
    error: bool = False
    type: str | None = None
    code: str | None = None
    intervention_id: str | None = None
    http: HttpLine | None = None

    @classmethod
    def of_turn(cls, turn: Turn, error: BaseException | None = None) -> Self:
        """The line of a turn as it stands, with what it has raised."""
        failure = turn.failure
        kind = wire_name(error) if error is not None else None
        return cls(
            timestamp=to_text(utc_now()),
            request_id=turn.request_id,
            session_id=turn.session_id,
            turn_id=turn.turn_id,
            channel=turn.channel,
            policy=turn.policy,
            status=turn.status,
            abstained=turn.abstained,
            saved=turn.saved,
            degraded=turn.failed_over or (failure is not None and turn.status == "answered"),
            question_chars=len(turn.question),
            sources=len(turn.citations),
            model_calls=turn.counters.model_calls,
            phases=turn.phases,
            error=failure is not None,
            type=kind or (failure.error_type if failure is not None else None),
            code=error.code if isinstance(error, PhaseError) else None,
            intervention_id=failure.intervention_id if failure is not None else None,
        )

    @classmethod
    def without_turn(cls, request_id: str, policy: str, *, refused: bool) -> Self:
        status = "refused" if refused else "served"
        return cls(
            timestamp=to_text(utc_now()), request_id=request_id, policy=policy, status=status
        )


LogRequest = Callable[[RequestLine], None]


class QueryLog:
    """Only this class knows the file. In shared mode `rows` has the lines of all machines."""

    def __init__(self, home: Path, rows: RequestRows | None = None) -> None:
        self._path = home / "logs" / "rag_queries.jsonl"
        self._rows = rows

    @classmethod
    def of(cls, home: Path) -> Self:
        """Raises ConfigError for a shared database that cannot be used."""
        if (database := shared_database(home)) is None:
            return cls(home)
        from unified_flow.shared.request_rows import RequestRows

        return cls(home, RequestRows(database))

    def append(self, line: RequestLine) -> None:
        """What cannot be written is said at once, and written once this process can: a full disk
        must not turn an answer into a failure, nor mask the failure at hand."""
        encoded = encode(line)
        if self._rows is not None:
            self._rows.append(line.request_id, encoded.decode())
        try:
            jsonl.append_or_keep(self._path, encoded)
        except OSError as exc:
            logger.critical("%s cannot be written: %s", self._path, exc)

    def put_aside(self, day: date) -> None:
        """Begin a new file, so that the lines up to `day` can be removed as one. A writer that is
        at it ends its line in the old one. Raises OSError."""
        with suppress(FileNotFoundError, FileExistsError):
            # A rename would replace the one that another process puts aside just now.
            os.link(self._path, self._path.with_stem(f"rag_queries-{day}"))
            self._path.unlink()

    def forget(self, before: datetime) -> None:
        """Remove from the rows what was written before then; the files are removed by the day."""
        if self._rows is not None:
            self._rows.forget(before)

    def aside(self) -> list[Path]:
        """`rag_queries-YYYY-MM-DD.jsonl`, the oldest first."""
        return sorted(self._path.parent.glob("rag_queries-????-??-??.jsonl"))

    def of_request(self, request_id: str) -> Iterator[RequestLine]:
        """Oldest first, those of all machines before what is in this one's file alone. Lines that
        are torn or foreign are of no request. Raises OSError, and DatabaseAwayError."""
        shared = self._rows.of_request(request_id) if self._rows is not None else []
        known = [RequestLine.model_validate_json(line) for line in shared]
        yield from known
        yield from (line for line in self._in_files(request_id) if line not in known)

    def _in_files(self, request_id: str) -> Iterator[RequestLine]:
        wanted = json.dumps(request_id, ensure_ascii=False).encode()
        for path in (*self.aside(), self._path):
            with suppress(FileNotFoundError), path.open("rb") as log:
                for raw in log:
                    if wanted not in raw:
                        continue
                    with suppress(ValueError):
                        line = RequestLine.model_validate_json(raw)
                        if line.request_id == request_id:
                            yield line
