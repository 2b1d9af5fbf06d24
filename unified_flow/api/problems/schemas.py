"""The errors as OpenAPI shows them, with the documented examples."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from unified_flow.api.facts import PROBLEM_JSON
from unified_flow.api.problems.problem import Code, Kind
from unified_flow.api.sources import Source
from unified_flow.api.trace import Trace

ErrorBody = dict[str, Any]


class ErrorDetails(BaseModel):
    """For whoever looks into it; each error has those that mean something there."""

    model_config = ConfigDict(frozen=True, extra="allow")

    field: str | None = Field(default=None, description="what is wrong in the request")
    stage: str | None = Field(default=None, description="llm, retriever or answer_pipeline")
    workspace_id: str | None = Field(default=None, description="the collection that was searched")
    limit: str | None = Field(default=None, description="which limit was reached")
    trace: Trace | None = Field(default=None, description="if the request asked for it")


class ErrorEnvelope(BaseModel):
    """rag-error-model.md, "Grundformat"; under `graceful` with what the ADR adds."""

    model_config = ConfigDict(
        frozen=True,
        json_schema_extra={
            "example": {
                "error": True,
                "type": "LlmError",
                "code": "LLM_ERROR",
                "message": "Kunde inte generera svar just nu.",
                "request_id": "2025-11-16-abc123",
                "details": {"stage": "llm"},
            }
        },
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


class OpenAIProblem(BaseModel):
    """The four fields of that API, with our code; the rest of the envelope stands beside them."""

    model_config = ConfigDict(frozen=True)

    message: str = Field(description="safe to show to a user")
    type: str
    param: str | None
    code: Code
    request_id: str
    details: dict[str, Any]
    answer: str | None = Field(default=None, description="graceful: in place of an answer")
    sources: list[Source] | None = Field(default=None, description="graceful: what was found")
    metadata: dict[str, Any] | None = Field(default=None, description="graceful: confidence 0")


class OpenAIError(BaseModel):
    """An error as clients of the OpenAI API expect it."""

    model_config = ConfigDict(frozen=True)

    error: OpenAIProblem


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


def _example(kind: str, code: str, message: str, number: int, details: Any = None) -> ErrorBody:
    body: ErrorBody = {
        "error": True,
        "type": kind,
        "code": code,
        "message": message,
        "request_id": f"2025-11-16-req-{number:03d}",
    }
    return body | ({"details": details} if details is not None else {})


# The six of the document, field for field.
EXAMPLES: dict[int, dict[str, ErrorBody]] = {
    400: {
        "ValidationError": _example(
            "ValidationError",
            "VALIDATION_ERROR",
            "Frågan får inte vara tom.",
            1,
            {"field": "query"},
        )
    },
    502: {
        "RetrievalError": _example(
            "RetrievalError",
            "RETRIEVAL_ERROR",
            "Kunde inte hämta källor just nu.",
            2,
            {"stage": "retriever", "workspace_id": "default"},
        ),
        "LlmError": _example(
            "LlmError", "LLM_ERROR", "Kunde inte generera svar just nu.", 3, {"stage": "llm"}
        ),
    },
    429: {
        "RateLimitError": _example(
            "RateLimitError",
            "RATE_LIMITED",
            "För många förfrågningar. Vänta en stund och försök igen.",
            4,
            {"limit": "user_per_minute"},
        )
    },
    500: {
        "InternalRagError": _example(
            "InternalRagError",
            "INTERNAL_ERROR",
            "Ett internt fel uppstod i RAG-motorn.",
            5,
            {"stage": "answer_pipeline"},
        ),
        "UnexpectedError": _example(
            "UnexpectedError", "INTERNAL_ERROR", "Ett internt fel uppstod. Försök igen senare.", 6
        ),
    },
}
MEANINGS = {
    400: "The question or a parameter cannot be accepted; `details.field` names it",
    401: "A bearer token is missing or wrong",
    403: "Not allowed here",
    404: "There is no such thing",
    405: "Another method",
    408: "The request came too slowly",
    409: "It is not in that state, or somebody was first",
    413: "The request is too large",
    415: "The body is not JSON",
    422: "The body has not the expected form; `details.field` names what is wrong",
    429: "Too many requests; see Retry-After",
    500: "An internal error; it waits for a person, and `request_id` finds it",
    502: "Retrieval or the model failed (policy `fail_fast`)",
    503: "Something is down or slow (policy `graceful`, with `sources` where there are any), "
    "or the service takes no questions now",
}


BEARER = {"type": "http", "scheme": "bearer"}
SCHEMES = {
    "client": BEARER | {"description": "needed where the service has such a token"},
    "triage": BEARER | {"description": "opens what a client's token does, and triage"},
}


def secured(description: dict[str, Any], open_paths: Collection[str]) -> dict[str, Any]:
    """With the tokens that each route wants, which are looked at before any route is."""
    description["components"]["securitySchemes"] = SCHEMES
    for path, methods in description["paths"].items():
        for route in methods.values():
            if {"triage", "guardrails"}.intersection(route["tags"]):
                route["security"] = [{"triage": []}]
            elif path not in open_paths:
                route["security"] = [{}, {"client": []}, {"triage": []}]
    return description


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """`responses=` of a route: these, and those that any request can get."""
    found: dict[int | str, dict[str, Any]] = {}
    for status in sorted({*statuses, 400, 401, 403, 500, 503}):
        examples = {name: {"value": body} for name, body in EXAMPLES.get(status, {}).items()}
        found[status] = {
            "model": ErrorEnvelope,
            "description": MEANINGS[status],
            "content": {
                "application/json": {"examples": examples} if examples else {},
                PROBLEM_JSON: {"schema": {"type": "object"}},
            },
        }
    return found


def openai_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The same of a route that speaks the OpenAI API."""
    return {
        status: {"model": OpenAIError, "description": MEANINGS[int(status)]}
        for status in errors(*statuses)
    }
