"""What an exception means: the one table (system.md, "Errors").

A row matches by exception type and, where the same exception means different things, by the
stage at which it was raised: `llm` (a model call), `retriever` (the index, doc.search) or
`answer_pipeline` (everything else). The first row that matches wins.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import httpx

from unified_flow import errors

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
    """As raised, else by the category."""
    if isinstance(exc, errors.UnifiedFlowError) and exc.intervention_type is not None:
        return exc.intervention_type
    if category == "permission_error":
        return "permission"
    return "schema_failure" if category == "parse_error" else "error"


def _stage_of(code: str, stage: Stage) -> Stage:
    """A stage that fits the code, whatever was running when the exception came up."""
    return STAGE_OF_CODE.get(code, stage)
