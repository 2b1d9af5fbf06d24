"""What a client learns of an error: the one place that knows kinds, codes and statuses
(rag-error-model.md; graceful-degradation-adr.md under the policy `graceful`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Literal

from starlette.exceptions import HTTPException

from interventions.errors import (
    AmbiguousIdError,
    ArgumentError,
    ConflictError,
    NotFoundError,
    QueryError,
    QueueError,
)
from unified_flow.api.access import Rate
from unified_flow.config.document_roots import DEFAULT_COLLECTION
from unified_flow.config.settings import Settings
from unified_flow.engine.outcome import Outcome
from unified_flow.errors import ConfigError, InputError, QueueFullError, RetrievalError
from unified_flow.errors.safe_messages import MESSAGES, Language
from unified_flow.errors.turns import (
    NoSuchTurnError,
    NotResumableError,
    TurnBusyError,
    TurnStoppedError,
)
from unified_flow.phases.errors import PhaseError

Kind = Literal[
    "ValidationError",
    "RetrievalError",
    "LlmError",
    "RateLimitError",
    "InternalRagError",
    "UnexpectedError",
]
Code = Literal["VALIDATION_ERROR", "RETRIEVAL_ERROR", "LLM_ERROR", "RATE_LIMITED", "INTERNAL_ERROR"]

Reason = Literal["saturated", "stopping", "queue_full", "storage", "not_ready"]

CODES: dict[Kind, tuple[Code, int]] = {
    "ValidationError": ("VALIDATION_ERROR", HTTPStatus.BAD_REQUEST),
    "RetrievalError": ("RETRIEVAL_ERROR", HTTPStatus.BAD_GATEWAY),
    "LlmError": ("LLM_ERROR", HTTPStatus.BAD_GATEWAY),
    "RateLimitError": ("RATE_LIMITED", HTTPStatus.TOO_MANY_REQUESTS),
    "InternalRagError": ("INTERNAL_ERROR", HTTPStatus.INTERNAL_SERVER_ERROR),
    "UnexpectedError": ("INTERNAL_ERROR", HTTPStatus.INTERNAL_SERVER_ERROR),
}
KIND_OF_CODE: dict[str, Kind] = {
    code: kind for kind, (code, _) in CODES.items() if kind != "UnexpectedError"
}
CLIENT_CLOSED = 499  # nobody reads it; the log and the metrics count it
RETRY_AFTER_S = 1.0  # from the ADR's own example


@dataclass(frozen=True)
class Problem:
    """`message_key` is a key of MESSAGES, whose text may name `details.field` and `rate`.
    `final`: the same request again helps nobody; OpenAI's clients heed the header. The connection
    `closes` where nobody knows what the next byte on it means. `fallback` goes
    beside a text in place of an answer. `intervention_id` is for the log alone, `reason` for the
    metrics."""

    kind: Kind
    message_key: str
    status: int
    details: Mapping[str, Any] | None = None
    rate: Rate | None = None
    retry_after_s: float | None = None
    degraded: bool = False
    closes: bool = False
    final: bool = False
    fallback: Mapping[str, Any] | None = None
    intervention_id: str | None = None
    reason: Reason | None = None

    @property
    def code(self) -> Code:
        return CODES[self.kind][0]

    @property
    def headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        if self.retry_after_s is not None:
            headers["Retry-After"] = str(max(1, math.ceil(self.retry_after_s)))
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        if self.final:
            headers["X-Should-Retry"] = "false"
        if self.closes:
            headers["Connection"] = "close"
        return headers

    def message(self, language: Language) -> str:
        texts = MESSAGES[language]
        field = (self.details or {}).get("field")
        rate = texts[f"per_{self.rate.per}"].format(n=self.rate.most) if self.rate else None
        return texts[self.message_key].format(field=field, rate=rate)

    def envelope(self, request_id: str, language: Language) -> dict[str, Any]:
        """The body, in the document's order; a degraded one repeats the message as `detail`."""
        message = self.message(language)
        body: dict[str, Any] = {
            "error": True,
            "type": self.kind,
            "code": self.code,
            "message": message,
            "request_id": request_id,
        }
        if self.details is not None:
            body["details"] = dict(self.details)
        if self.degraded:
            body["detail"] = message
        if self.fallback is not None:
            body |= {"answer": MESSAGES[language]["graceful_fallback"], **self.fallback}
        return body


class ProblemError(HTTPException):
    """A route raises it, and the client gets the problem. FastAPI lets an HTTPException pass."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.status)
        self.problem = problem


def of_kind(kind: Kind, details: Mapping[str, Any], **more: Any) -> Problem:
    """A problem with the status of its kind; `more` are further fields."""
    code, status = CODES[kind]
    return Problem(kind, code, status, details, **more)


def invalid(
    message_key: str, status: int = HTTPStatus.BAD_REQUEST, field_name: str | None = None
) -> Problem:
    """What the client has to correct: 4xx with VALIDATION_ERROR."""
    details = {"field": field_name} if field_name is not None else None
    return Problem("ValidationError", message_key, status, details)


def of_status(status: int) -> Problem:
    """Any other refusal that HTTP knows."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return limited("requests")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return unexpected()
    key = f"status_{status}"
    problem = invalid(key if key in MESSAGES["en"] else "status_400", status)
    final = status == HTTPStatus.CONFLICT
    return replace(problem, closes=status == HTTPStatus.REQUEST_TIMEOUT, final=final)


def limited(limit: str, rate: Rate | None = None, retry_after_s: float = RETRY_AFTER_S) -> Problem:
    """429; `limit` names the limit that was reached (`details.limit`)."""
    return of_kind("RateLimitError", {"limit": limit}, rate=rate, retry_after_s=retry_after_s)


def unauthorized(wait_s: float) -> Problem:
    """A request without the token that it needs; 429 where its address is to wait, too."""
    if wait_s:
        return limited("unauthorized", retry_after_s=wait_s)
    return of_status(HTTPStatus.UNAUTHORIZED)


def unexpected(intervention_id: str | None = None) -> Problem:
    return Problem(
        "UnexpectedError",
        "UNEXPECTED",
        HTTPStatus.INTERNAL_SERVER_ERROR,
        intervention_id=intervention_id,
    )


def unavailable(reason: Reason) -> Problem:
    """503, for a `reason` that the metrics count (system.md, "Client envelope")."""
    return Problem(
        "InternalRagError",
        "unavailable",
        HTTPStatus.SERVICE_UNAVAILABLE,
        {"stage": "answer_pipeline"},
        retry_after_s=RETRY_AFTER_S,
        reason=reason,
    )


# Exceptions that a route lets rise. Any other is a defect of the service: the gate reports it, and
# the client gets a 500. Why a question has no answer is `of_turn_error`'s to say.
PROBLEM_OF: dict[type[Exception], Callable[[Any], Problem]] = {
    InputError: lambda exc: invalid(exc.reason, field_name=exc.field),
    # Files cannot be read or written just now. No intervention: every retry would add another.
    ConfigError: lambda exc: unavailable("storage"),
    RetrievalError: lambda exc: unavailable("storage"),
    QueueFullError: lambda exc: unavailable("queue_full"),
    QueueError: lambda exc: unavailable("storage"),
    NotFoundError: lambda exc: of_status(HTTPStatus.NOT_FOUND),
    AmbiguousIdError: lambda exc: of_status(HTTPStatus.CONFLICT),
    ConflictError: lambda exc: of_status(HTTPStatus.CONFLICT),
    ArgumentError: lambda exc: invalid("field_wrong", field_name=exc.argument),
    QueryError: lambda exc: invalid("field_wrong", field_name="query"),
    NoSuchTurnError: lambda exc: invalid("retry_impossible", HTTPStatus.CONFLICT),
    NotResumableError: lambda exc: invalid("retry_impossible", HTTPStatus.CONFLICT),
    TurnBusyError: lambda exc: invalid("retry_busy", HTTPStatus.CONFLICT),
    # OpenAI's clients would repeat a 409 of their own accord.
    TurnStoppedError: lambda exc: replace(
        invalid(f"turn_{exc.status}", HTTPStatus.CONFLICT), final=True
    ),
}


def of_exception(error: Exception) -> Problem:
    """The problem of the nearest class in the table. Raises KeyError if there is none."""
    known = next((cls for cls in type(error).__mro__ if cls in PROBLEM_OF), type(error))
    return PROBLEM_OF[known](error)


def of_turn_error(
    error: Exception,
    outcome: Outcome,
    intervention_id: str | None,
    settings: Settings,
    sources: list[dict[str, Any]],
) -> Problem:
    """How HTTP says the outcome of a turn that raised `error`; `sources` are what the turn had
    retrieved, for the ADR's fallback."""
    if isinstance(error, PhaseError):
        if outcome.answer == "degraded":
            return _degraded(error, settings, sources)
        # Not an internal error that the classification knows.
        if error.code == "INTERNAL_ERROR" and error.category == "unknown_error":
            return unexpected(error.intervention_id)
        return _halted(error, settings.collection)
    if outcome.answer == "unexpected":
        return unexpected(intervention_id)
    return replace(of_exception(error), intervention_id=intervention_id)


def _halted(error: PhaseError, collection: str) -> Problem:
    """fail_fast: the table of rag-error-model.md."""
    wait_s = error.retry_after_s
    if wait_s is None and error.code == "RATE_LIMITED":
        wait_s = RETRY_AFTER_S
    return of_kind(
        KIND_OF_CODE[error.code],
        _details(error, collection),
        retry_after_s=wait_s,
        final=error.failure.kind == "permanent",
        intervention_id=error.intervention_id,
    )


def _degraded(error: PhaseError, settings: Settings, sources: list[dict[str, Any]]) -> Problem:
    """graceful: the ADR's decision table, whose text names the service's own limit."""
    problem = replace(_halted(error, settings.collection), degraded=True)
    if error.code == "RATE_LIMITED":
        rate = Rate.parse(settings.serve.rate_limit)
        key = "status_429" if rate is not None else "RATE_LIMITED"
        return replace(problem, message_key=key, rate=rate)
    generates = error.scope in ("model", "loop")
    text = "model" if generates else error.scope
    problem = replace(
        problem,
        kind="InternalRagError" if error.scope == "pipeline" else problem.kind,
        message_key=f"graceful_{text}" if text != "other" else "unavailable",
        status=HTTPStatus.SERVICE_UNAVAILABLE,
    )
    if not generates or not sources:
        return problem
    metadata = {
        "confidence_score": 0.0,
        "num_sources_retrieved": len(sources),
        "error_type": "llm_service_unavailable",
        "degraded": True,
    }
    fallback = {"sources": sources, "metadata": metadata}
    return replace(problem, fallback=fallback)


def _details(error: PhaseError, collection: str) -> dict[str, Any]:
    if error.code == "RATE_LIMITED":
        return {"limit": "model" if error.stage == "llm" else "upstream"}
    if error.code == "RETRIEVAL_ERROR":
        workspace = "default" if collection == DEFAULT_COLLECTION else collection
        return {"stage": "retriever", "workspace_id": workspace}
    return {"stage": error.stage}
