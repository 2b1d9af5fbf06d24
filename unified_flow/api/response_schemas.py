"""Errors and streams as OpenAPI shows them, with the document's own examples."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from unified_flow.api import problems
from unified_flow.api.answer import DESCRIPTIONS, Source
from unified_flow.api.problems import Code, Kind
from unified_flow.api.trace import Trace

# The six of the document, in its order.
DOCUMENTED = (
    problems.invalid("question_empty", field_name="query"),
    problems.of_kind("RetrievalError", {"stage": "retriever", "workspace_id": "default"}),
    problems.of_kind("LlmError", {"stage": "llm"}),
    problems.limited("user_per_minute"),
    problems.of_kind("InternalRagError", {"stage": "answer_pipeline"}),
    problems.unexpected(),
)


class ErrorDetails(BaseModel):
    """For developers; each error has the fields that mean something there."""

    model_config = ConfigDict(frozen=True, extra="allow")

    field: str | None = Field(default=None, description="what is wrong in the request")
    stage: str | None = Field(default=None, description="llm, retriever or answer_pipeline")
    workspace_id: str | None = Field(default=None, description="the collection that was searched")
    limit: str | None = Field(default=None, description="which limit was reached")
    trace: Trace | None = Field(default=None, description="if requested")


class ErrorEnvelope(BaseModel):
    """rag-error-model.md, "Grundformat"; under `graceful` with what the ADR adds."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={"example": DOCUMENTED[2].envelope("2025-11-16-abc123", "sv")},
    )

    error: Literal[True] = Field(description="always true")
    type: Kind
    code: Code
    message: str = Field(description="safe to show to a user")
    request_id: str
    details: ErrorDetails | None = None
    detail: str | None = Field(default=None, description="graceful: the message once more")
    answer: str | None = Field(default=None, description="graceful: in place of an answer")
    sources: list[Source] | None = Field(default=None, description="graceful: what was found")
    metadata: dict[str, Any] | None = Field(default=None, description="graceful: confidence 0")


# Each event of a stream of server-sent events.
STREAM: dict[str, Any] = {
    "text/event-stream": {
        "schema": {
            "type": "object",
            "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
            "required": ["data"],
        }
    }
}


class EventStream(StreamingResponse):
    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[str] | Iterator[str]) -> None:
        # nginx would hold the events back.
        super().__init__(events, headers={"X-Accel-Buffering": "no"})


MEANINGS = {int(status): text for status, text in DESCRIPTIONS["meanings"].items()}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """`responses=` of a route: these, and those that any request can get."""
    responses: dict[int | str, dict[str, Any]] = {}
    for status in sorted({*statuses, 400, 401, 403, 429, 500, 503}):
        examples = {
            problem.kind: {"value": problem.envelope(f"2025-11-16-req-{number:03d}", "sv")}
            for number, problem in enumerate(DOCUMENTED, 1)
            if problem.status == status
        }
        responses[status] = {
            "model": ErrorEnvelope,
            "description": MEANINGS[status],
            "content": {"application/json": {"examples": examples} if examples else {}},
        }
    return responses


def openai_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The same for a route of the OpenAI API, whose clients know the form of its errors."""
    return {status: {"description": MEANINGS[int(status)]} for status in errors(*statuses)}
