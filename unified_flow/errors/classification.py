"""What an exception means: the one table (system.md, "Errors").

A row matches by exception type and, where the same exception means different things, by the
stage at which it was raised: `llm` (a model call), `retriever` (the index, doc.search) or
`answer_pipeline` (everything else). The first row that matches wins.

`kind_of` is the one answer to whether asking again may help: policies retry by it, and clients read
it (error-handling-architecture.md, "Future: Production Mode").

| kind | what it is | what helps |
|---|---|---|
| transient | a network, a store or a server that was away or slow for a moment | trying again |
| recoverable | a limit, or a reply that is of no use | trying again later, else a fallback |
| permanent | a wrong key, a model that does not exist, a broken file | a person |
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

import httpx

from unified_flow import errors
from unified_flow.errors.sqlite import is_locked

Stage = Literal["llm", "retriever", "answer_pipeline"]


@dataclass(frozen=True)
class Classification:
    """`error_type` is the ErrorType of data-model.md; `code` that of rag-error-model.md."""

    category: str
    error_type: str
    code: str
    stage: Stage
    intervention_type: str


CODE_OF_STAGE: dict[Stage, str] = {
    "llm": "LLM_ERROR",
    "retriever": "RETRIEVAL_ERROR",
    "answer_pipeline": "INTERNAL_ERROR",
}
STAGE_OF_CODE = {code: stage for stage, code in CODE_OF_STAGE.items()}


@dataclass(frozen=True)
class Row:
    """`code` None means: by stage."""

    types: tuple[type[BaseException], ...]
    category: str
    error_type: str
    code: str | None = None
    stages: tuple[Stage, ...] = ("llm", "retriever", "answer_pipeline")
    when: Callable[[BaseException], bool] = lambda exc: True


def _status(*codes: int) -> Callable[[BaseException], bool]:
    return lambda exc: isinstance(exc, httpx.HTTPStatusError) and exc.response.status_code in codes


HTTP = (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL)
TOOL: tuple[Stage, ...] = ("retriever", "answer_pipeline")

TABLE: tuple[Row, ...] = (
    Row((httpx.HTTPStatusError,), "llm_error", "llm", "RATE_LIMITED", ("llm",), _status(429)),
    Row((httpx.HTTPStatusError,), "http_error", "network", "RATE_LIMITED", TOOL, _status(429)),
    Row((httpx.HTTPStatusError,), "permission_error", "agent", None, TOOL, _status(401, 403)),
    Row((httpx.TimeoutException, errors.ToolTimeoutError), "tool_timeout", "network", None, TOOL),
    Row((httpx.TimeoutException, TimeoutError), "llm_error", "llm", None, ("llm",)),
    Row(HTTP, "http_error", "network", None, TOOL),
    Row(HTTP, "llm_error", "llm", None, ("llm",)),
    Row(
        (errors.NotJSONError, errors.SchemaMismatchError, errors.ToolArgumentError),
        "parse_error",
        "llm",
        "LLM_ERROR",
    ),
    Row((errors.PipelineTimeoutError,), "tool_timeout", "network", "INTERNAL_ERROR"),
    Row((errors.ModelError,), "llm_error", "llm", "LLM_ERROR"),
    Row((json.JSONDecodeError,), "parse_error", "llm", "LLM_ERROR"),
    Row((errors.ToolServerError,), "http_error", "network", "INTERNAL_ERROR"),
    Row((errors.LimitReachedError,), "limit_error", "agent", "INTERNAL_ERROR"),
    Row((errors.DraftRejectedError,), "draft_error", "llm", "LLM_ERROR"),
    Row((errors.ConfigError,), "config_error", "agent", "INTERNAL_ERROR"),
    Row((errors.RetrievalError, sqlite3.Error), "retrieval_error", "database", "RETRIEVAL_ERROR"),
    Row((errors.HumanNeededError,), "escalation", "agent", "INTERNAL_ERROR"),
    Row((PermissionError,), "permission_error", "agent", "INTERNAL_ERROR"),
)

ERROR_TYPES = {row.category: row.error_type for row in TABLE}  # a category has one


def classify(exc: BaseException, stage: Stage) -> Classification:
    """What `exc`, raised at `stage`, means. Total: anything unknown is `unknown_error`."""
    for row in TABLE:
        if isinstance(exc, row.types) and stage in row.stages and row.when(exc):
            code = row.code or CODE_OF_STAGE[stage]
            return Classification(
                row.category,
                row.error_type,
                code,
                _stage_of(code, stage),
                _type_of(exc, row.category),
            )
    unknown = "unknown_error"
    return Classification(unknown, "unknown", CODE_OF_STAGE[stage], stage, _type_of(exc, unknown))


def _type_of(exc: BaseException, category: str) -> str:
    """The intervention's type: the error's own, else one by the category."""
    if isinstance(exc, errors.UnifiedFlowError) and exc.intervention_type is not None:
        return exc.intervention_type
    if category == "permission_error":
        return "permission"
    return "schema_failure" if category == "parse_error" else "error"


def _stage_of(code: str, stage: Stage) -> Stage:
    """A stage that fits the code, whatever was running when the exception came up."""
    return STAGE_OF_CODE.get(code, stage)


TIMEOUTS = (
    TimeoutError,
    httpx.TimeoutException,
    errors.GenerationTimeoutError,
    errors.PipelineTimeoutError,
    errors.ToolTimeoutError,
)

Kind = Literal["transient", "recoverable", "permanent"]

_PASSING_STATUS = (408, 425, 500, 502, 503, 504)
_UNUSABLE = (
    errors.EmptyReplyError,
    errors.CutReplyError,
    errors.NotJSONError,
    errors.SchemaMismatchError,
)
# What is full or paused now has room again later.
_LIMITS = (errors.CircuitOpenError, errors.QueueFullError, errors.NoTurnError)


def kind_of(error: BaseException) -> Kind:
    if isinstance(error, httpx.HTTPStatusError):
        return kind_of_status(error.response.status_code)
    if isinstance(error, (*TIMEOUTS, httpx.TransportError)) or _is_locked(error):
        return "transient"
    return "recoverable" if isinstance(error, (*_UNUSABLE, *_LIMITS)) else "permanent"


def kind_of_status(status: int) -> Kind:
    """What kind of failure an HTTP status of 400 and up is."""
    if status == httpx.codes.TOO_MANY_REQUESTS:
        return "recoverable"
    return "transient" if status in _PASSING_STATUS else "permanent"


def _is_locked(error: BaseException) -> bool:
    """Whether another process holds the store; the stores say so in their own words."""
    return is_locked(error.__cause__ if isinstance(error, errors.RetrievalError) else error)


DEFAULT_RETRY_AFTER_S = 1.0
# The longest wait to tell a client: one that obeys a wrong date would never ask again.
LONGEST_RETRY_AFTER_S = 3600.0


def retry_after_s(error: Exception, now: datetime | None = None) -> float | None:
    """Seconds until it makes sense to ask again; None if no server has said so.

    A server that limits the rate without saying until when means a second; one that is down or
    overloaded (503) need not know.
    """
    if isinstance(error, errors.CircuitOpenError):
        return error.retry_after_s
    if not isinstance(error, httpx.HTTPStatusError):
        return None
    limited = error.response.status_code == httpx.codes.TOO_MANY_REQUESTS
    if not limited and error.response.status_code != httpx.codes.SERVICE_UNAVAILABLE:
        return None
    unsaid = DEFAULT_RETRY_AFTER_S if limited else None
    said = error.response.headers.get("retry-after", "").strip()
    if said.isdecimal() and said.isascii() and len(said) < 10:
        return min(float(said), LONGEST_RETRY_AFTER_S)
    try:
        until = parsedate_to_datetime(said)
    except ValueError:
        return unsaid
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    left_s = (until - (now or datetime.now(UTC))).total_seconds()
    return min(max(0.0, left_s), LONGEST_RETRY_AFTER_S)
