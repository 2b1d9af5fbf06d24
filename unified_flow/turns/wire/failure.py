"""ErrorContext: a failure, classified, with words that a user may see (data-model.md, 4).

The two halves are two classes: `PublicErrorContext` is what leaves the server, and what the
document's TypeScript type lists; `ErrorContext` adds what is logged and goes no further.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from interventions.secrets.names import NameKind, name_kind
from interventions.secrets.redaction import redact_text
from interventions.times import to_text, utc_now
from unified_flow.errors.classification import Classification, kind_of
from unified_flow.turns.wire import EXAMPLES

SHORTEST_SECRET = 8  # a shorter value of a variable would be found in ordinary words
_TRACE = re.compile(r"Traceback|File \"|^\s+at .{1,200}:\d+", re.MULTILINE)
_PATH = re.compile(r"(?<![\w:/.])(?:/[\w.+-]+){2,}|\b[A-Za-z]:\\\w")


class ErrorType(StrEnum):
    NETWORK_ERROR = "network"
    DATABASE_ERROR = "database"
    LLM_ERROR = "llm"
    VALIDATION_ERROR = "validation"
    AGENT_ERROR = "agent"
    UNKNOWN_ERROR = "unknown"


class PublicErrorContext(BaseModel):
    model_config = ConfigDict(frozen=True)

    error_type: ErrorType
    user_safe_message: str = Field(description="no stack trace, path, key or environment value")
    retry_able: bool = Field(description="whether the same request may succeed later")

    @field_validator("user_safe_message")
    @classmethod
    def _safe(cls, text: str) -> str:
        if _TRACE.search(text):
            raise ValueError("user_safe_message must not contain stack traces")
        if redact_text(text) != text or _holds_a_secret(text, os.environ):
            raise ValueError("user_safe_message must not contain sensitive information")
        if _PATH.search(text):
            raise ValueError("user_safe_message must not contain paths")
        return text


class ErrorContext(PublicErrorContext):
    """`original_error` and `log_details` are for the log (redacted there, as everything)."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLES["ErrorContext"]})

    original_error: str
    log_details: dict[str, Any] = Field(description="`timestamp`, `request_id` and more")

    @field_validator("log_details")
    @classmethod
    def _traceable(cls, details: dict[str, Any]) -> dict[str, Any]:
        if missing := {"timestamp", "request_id"} - details.keys():
            raise ValueError(f"log_details must include {' and '.join(sorted(missing))}")
        if not details["request_id"] or not details["timestamp"]:
            raise ValueError("log_details must not hold an empty timestamp or request_id")
        return details

    @model_validator(mode="after")
    def _transient(self) -> Self:
        if self.error_type is ErrorType.NETWORK_ERROR and not self.retry_able:
            raise ValueError("retry_able must be true for a network error, which is transient")
        return self

    @property
    def public(self) -> PublicErrorContext:
        return PublicErrorContext.model_validate(self, from_attributes=True)


def error_context(
    error: BaseException, meaning: Classification, safe_message: str, *, request_id: str
) -> ErrorContext:
    """What is known of a failure."""
    error_type = ErrorType(meaning.error_type)
    return ErrorContext(
        error_type=error_type,
        original_error=redact_text(f"{type(error).__name__}: {error}"),
        user_safe_message=safe_message,
        retry_able=may_pass(error_type, kind_of(error)),
        log_details={"timestamp": to_text(utc_now()), "request_id": request_id},
    )


def may_pass(error_type: ErrorType, kind: str | None) -> bool:
    """Whether asking again may help. The document takes whatever the network does for transient;
    what nobody has sorted (None) counts for no more than that."""
    return error_type is ErrorType.NETWORK_ERROR or kind in ("transient", "recoverable")


def _holds_a_secret(text: str, environ: Mapping[str, str]) -> bool:
    """Whether the value of a variable that is named like a secret stands in the text. One that is
    a plain word tells nothing, and must not forbid the word."""
    return any(
        len(value) >= SHORTEST_SECRET
        and not value.isalpha()
        and value in text
        and name_kind(name) is not NameKind.PLAIN
        for name, value in environ.items()
    )
