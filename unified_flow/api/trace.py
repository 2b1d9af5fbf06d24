"""How an answer came about, or the error in its place (data-model.md): what `trace` adds to either.

An error has it in `details`, so that the envelope stays that of rag-error-model.md, with the public
half of the ErrorContext.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from interventions.secrets.redaction import redact_for_asker
from interventions.times import to_text, utc_now
from unified_flow.api.problems import Problem
from unified_flow.errors import InputError
from unified_flow.errors.classification import ERROR_TYPES, classify
from unified_flow.errors.safe_messages import MESSAGES, Language, safe_message
from unified_flow.turns.sources import searches
from unified_flow.turns.turn import Turn
from unified_flow.turns.wire.agents import AgentResponse, agent_responses
from unified_flow.turns.wire.failure import ErrorContext, ErrorType, error_context, may_pass
from unified_flow.turns.wire.message import (
    MAX_CONTENT_CHARS,
    Message,
    assistant_message,
    user_message,
)
from unified_flow.turns.wire.query_result import QueryResult, query_result


class Trace(BaseModel):
    """How the answer came about (data-model.md)."""

    model_config = ConfigDict(frozen=True)

    messages: list[Message]
    agents: list[AgentResponse] = Field(description="with the phases of each")
    retrievals: list[QueryResult]


def trace_of(turn: Turn, answer: str, language: Language) -> Trace:
    """The trace of a turn that ended; `answer` is the text that its user gets."""
    return _trace(turn, _error_of(turn, language), _shown(assistant_message(turn), answer))


def with_trace(problem: Problem, turn: Turn, error: Exception, language: Language) -> Problem:
    """The problem with a trace in its details. `turn` holds what happened so far, and is
    empty if none began."""
    context = _error_of(turn, language) or _outside_a_phase(error, turn, language)
    details: Mapping[str, Any] = problem.details or {}
    return replace(
        problem, details={**details, "trace": _trace(turn, context).model_dump(mode="json")}
    )


def _trace(turn: Turn, error: ErrorContext | None, *answer: Message) -> Trace:
    asked = [_shown(user_message(turn), turn.question)] if turn.question else []
    return Trace(
        messages=[*asked, *answer],
        agents=agent_responses(turn.phases, error, turn.duration_ms),
        retrievals=_retrievals(turn),
    )


def _shown(message: Message, text: str) -> Message:
    return message.model_copy(update={"content": redact_for_asker(text)[:MAX_CONTENT_CHARS]})


def _retrievals(turn: Turn) -> list[QueryResult]:
    """What each search of the turn found."""
    results = []
    for query, passages, took_ms in searches(turn):
        shown = [p.model_copy(update={"text": redact_for_asker(p.text)}) for p in passages]
        results.append(query_result(redact_for_asker(query), shown, took_ms))
    return results


def _error_of(turn: Turn, language: Language) -> ErrorContext | None:
    """The failure of its phase, in the client's language."""
    failure = turn.failure
    if failure is None:
        return None
    code = failure.code or "INTERNAL_ERROR"
    error_type = ErrorType(ERROR_TYPES.get(failure.category, "unknown"))
    return ErrorContext(
        error_type=error_type,
        original_error=f"{failure.error_type}: {failure.error_message}",
        user_safe_message=safe_message(code, notified=failure.notified, language=language),
        retry_able=may_pass(error_type, failure.kind),
        log_details={
            "timestamp": to_text(utc_now()),
            "request_id": turn.request_id,
            "intervention_id": failure.intervention_id,
        },
    )


def _outside_a_phase(error: Exception, turn: Turn, language: Language) -> ErrorContext:
    """The trace of an error that kept a turn from beginning, or came up between its phases."""
    meaning = classify(error, "answer_pipeline")
    text = safe_message("UNEXPECTED", notified=True, language=language)
    if isinstance(error, InputError):
        meaning = replace(meaning, error_type=ErrorType.VALIDATION_ERROR.value)
        text = MESSAGES[language][error.reason].format(field=error.field)
    return error_context(error, meaning, text, request_id=turn.request_id)
