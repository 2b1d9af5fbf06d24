"""What a client is told of an error: the one place that knows kinds, codes and statuses
(rag-error-model.md; graceful-degradation-adr.md under the policy `graceful`).

Everything here is pure. `rendering.py` makes a response of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal

from unified_flow.api.ratelimit import Rate
from unified_flow.config.document_roots import DEFAULT_COLLECTION
from unified_flow.engine.outcome import Outcome
from unified_flow.errors import DraftRejectedError, InputError, LimitReachedError
from unified_flow.errors.safe_messages import MESSAGES, Language
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

CODES: dict[Kind, tuple[Code, int]] = {
    "ValidationError": ("VALIDATION_ERROR", HTTPStatus.BAD_REQUEST),
    "RetrievalError": ("RETRIEVAL_ERROR", HTTPStatus.BAD_GATEWAY),
    "LlmError": ("LLM_ERROR", HTTPStatus.BAD_GATEWAY),
    "RateLimitError": ("RATE_LIMITED", HTTPStatus.TOO_MANY_REQUESTS),
    "InternalRagError": ("INTERNAL_ERROR", HTTPStatus.INTERNAL_SERVER_ERROR),
    "UnexpectedError": ("INTERNAL_ERROR", HTTPStatus.INTERNAL_SERVER_ERROR),
}
KIND_OF_CODE: dict[str, Kind] = {
    "RETRIEVAL_ERROR": "RetrievalError",
    "LLM_ERROR": "LlmError",
    "RATE_LIMITED": "RateLimitError",
    "INTERNAL_ERROR": "InternalRagError",
}
CLIENT_CLOSED = 499  # nobody is there to read it; the log and the metrics are
RETRY_AFTER_S = 1.0  # what the ADR's own example says


@dataclass(frozen=True)
class Problem:
    """`text` is a key of the catalogue, `values` what it is filled with. `detail`: the message
    stands under that name too, as the ADR has it. `answer` is a key of the catalogue, too, of what
    stands in place of an answer, with `more` beside it. `intervention_id` is for the log alone.
    """

    kind: Kind
    text: str
    status: int
    details: Mapping[str, Any] | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    retry_after_s: float | None = None
    detail: bool = False
    degraded: bool = False
    answer: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    intervention_id: str | None = None

    @property
    def code(self) -> Code:
        return CODES[self.kind][0]

    def message(self, language: Language) -> str:
        texts = MESSAGES[language]
        values = dict(self.values)
        if isinstance(rate := values.get("rate"), Rate):
            values["rate"] = texts[f"per_{rate.per}"].format(n=rate.most)
        return texts[self.text].format(**values)

    def body(self, request_id: str, language: Language) -> dict[str, Any]:
        """The envelope, in the order of the document."""
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
        if self.detail:
            body["detail"] = message
        if self.answer is not None:
            body["answer"] = MESSAGES[language][self.answer]
        return body | dict(self.more)


def invalid(
    text: str, status: int = HTTPStatus.BAD_REQUEST, field_name: str | None = None
) -> Problem:
    """What the client has to mend: 4xx with VALIDATION_ERROR."""
    details = {"field": field_name} if field_name is not None else None
    return Problem("ValidationError", text, status, details, {"field": field_name})


def of_status(status: int) -> Problem:
    """Any other refusal that HTTP knows."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return limited("requests")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return unexpected()
    known = f"status_{status}"
    return invalid(known if known in MESSAGES["en"] else "status_400", status)


def limited(limit: str, rate: Rate | None = None, retry_after_s: float = RETRY_AFTER_S) -> Problem:
    """429. `limit` says which limit it was (`details.limit`)."""
    return Problem(
        "RateLimitError",
        "RATE_LIMITED",
        HTTPStatus.TOO_MANY_REQUESTS,
        {"limit": limit},
        {"rate": rate},
        retry_after_s=retry_after_s,
    )


def unexpected(intervention_id: str | None = None) -> Problem:
    return Problem(
        "UnexpectedError",
        "UNEXPECTED",
        HTTPStatus.INTERNAL_SERVER_ERROR,
        intervention_id=intervention_id,
    )


def unavailable(intervention_id: str | None = None) -> Problem:
    """503: the queue or the disk is full, or the service stops (system.md, "Client envelope")."""
    return Problem(
        "InternalRagError",
        "unavailable",
        HTTPStatus.SERVICE_UNAVAILABLE,
        {"stage": "answer_pipeline"},
        retry_after_s=RETRY_AFTER_S,
        intervention_id=intervention_id,
    )


def of_error(
    error: Exception,
    outcome: Outcome,
    intervention_id: str | None,
    *,
    collection: str,
    rate: Rate | None,
    sources: list[dict[str, Any]],
) -> Problem:
    """How HTTP says the outcome of a turn that raised `error`.

    `rate` is the service's own limit, which the ADR's text names; `sources` are what the turn had
    retrieved, for the ADR's fallback.
    """
    if isinstance(error, PhaseError):
        if outcome.answer == "degraded":
            return _degraded(error, collection, rate, sources)
        return _halted(error, collection)
    if isinstance(error, InputError) and outcome.answer == "refused":
        return invalid(error.reason, field_name=error.field)
    if outcome.answer == "unavailable":
        return unavailable(intervention_id)
    return unexpected(intervention_id)


def _halted(error: PhaseError, collection: str) -> Problem:
    """fail_fast: the table of rag-error-model.md."""
    if error.code == "INTERNAL_ERROR" and not _is_explicit(error):
        return unexpected(error.intervention_id)
    kind = KIND_OF_CODE[error.code]
    code, status = CODES[kind]
    return Problem(
        kind,
        code,
        status,
        _details(error, collection),
        retry_after_s=_wait(error) if code == "RATE_LIMITED" else error.retry_after_s,
        intervention_id=error.intervention_id,
    )


def _is_explicit(error: PhaseError) -> bool:
    """Whether the classification knows it, or the flow itself has ended the turn."""
    ended = isinstance(error.__cause__, LimitReachedError | DraftRejectedError)
    return ended or error.category != "unknown_error"


def _degraded(
    error: PhaseError, collection: str, rate: Rate | None, sources: list[dict[str, Any]]
) -> Problem:
    """graceful: the ADR's decision table."""
    if error.code == "RATE_LIMITED":
        return Problem(
            "RateLimitError",
            "status_429" if rate is not None else "RATE_LIMITED",
            HTTPStatus.TOO_MANY_REQUESTS,
            _details(error, collection),
            {"rate": rate},
            retry_after_s=_wait(error),
            detail=True,
            degraded=True,
            intervention_id=error.intervention_id,
        )
    text = f"graceful_{error.scope}" if error.scope != "other" else "unavailable"
    answer, more = None, dict[str, Any]()
    if error.scope == "model" and sources:
        answer = "graceful_fallback"
        metadata = {
            "confidence_score": 0.0,
            "num_sources_retrieved": len(sources),
            "error_type": "llm_service_unavailable",
            "degraded": True,
        }
        more = {"sources": sources, "metadata": metadata}
    return Problem(
        "InternalRagError" if error.scope == "pipeline" else KIND_OF_CODE[error.code],
        text,
        HTTPStatus.SERVICE_UNAVAILABLE,
        _details(error, collection),
        retry_after_s=error.retry_after_s,
        detail=True,
        degraded=True,
        answer=answer,
        more=more,
        intervention_id=error.intervention_id,
    )


def _details(error: PhaseError, collection: str) -> dict[str, Any]:
    if error.code == "RATE_LIMITED":
        return {"limit": "model" if error.stage == "llm" else "upstream"}
    if error.code == "RETRIEVAL_ERROR":
        workspace = "default" if collection == DEFAULT_COLLECTION else collection
        return {"stage": "retriever", "workspace_id": workspace}
    return {"stage": error.stage}


def _wait(error: PhaseError) -> float:
    return error.retry_after_s if error.retry_after_s is not None else RETRY_AFTER_S
