"""How an answer came about, or the error in its place (data-model.md): what `trace` adds to either.

In an error it stands in `details`, which is for whoever looks into it, and only if asked for: the
envelope is else what rag-error-model.md says. It holds what is public of the ErrorContext.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from unified_flow.api.problems.problem import Problem
from unified_flow.api.sources import retrievals_of
from unified_flow.errors import InputError
from unified_flow.errors.classification import ERROR_TYPES, classify
from unified_flow.errors.safe_messages import MESSAGES, Language, safe_message
from unified_flow.turns.events import Observed, now, stamp
from unified_flow.turns.folding import apply
from unified_flow.turns.passage import public_text
from unified_flow.turns.turn import Turn
from unified_flow.turns.wire.agents import AgentResponse, agent_responses
from unified_flow.turns.wire.failure import ErrorContext, ErrorType, error_context, may_pass
from unified_flow.turns.wire.message import (
    MAX_CONTENT_CHARS,
    Message,
    assistant_message,
    user_message,
)
from unified_flow.turns.wire.retrieved import QueryResult


class Trace(BaseModel):
    """How the answer came about (data-model.md)."""

    model_config = ConfigDict(frozen=True)

    messages: list[Message]
    agents: list[AgentResponse] = Field(description="with the phases that each one stands for")
    retrievals: list[QueryResult]


class Followed:
    """The turn as far as it has come, for one that raises an error instead of ending; an
    observer."""

    def __init__(self) -> None:
        self.turn = Turn()

    def __call__(self, event: Observed) -> None:
        self.turn = apply(self.turn, event)


def trace_of(turn: Turn, answer: str, language: Language) -> Trace:
    """Of a turn that has come to its end, whose user is told `answer`."""
    return Trace(
        messages=[
            _shown(user_message(turn), turn.question),
            _shown(assistant_message(turn), answer),
        ],
        agents=agent_responses(turn.phases, _error_of(turn, language), turn.duration_ms),
        retrievals=retrievals_of(turn),
    )


def with_trace(problem: Problem, turn: Turn, error: Exception, language: Language) -> Problem:
    """The problem, with how it came about in its details. `turn` is as it stood: an empty one if
    none was begun."""
    context = _error_of(turn, language) or _outside_a_phase(error, turn, language)
    trace = Trace(
        messages=[_shown(user_message(turn), turn.question)] if turn.question else [],
        agents=agent_responses(turn.phases, context),
        retrievals=retrievals_of(turn),
    )
    details: Mapping[str, Any] = problem.details or {}
    return replace(problem, details={**details, "trace": trace.model_dump(mode="json")})


def _shown(message: Message, text: str) -> Message:
    return message.model_copy(update={"content": public_text(text)[:MAX_CONTENT_CHARS]})


def _error_of(turn: Turn, language: Language) -> ErrorContext | None:
    """What its failed phase has left, in the words of the client's language."""
    failure = turn.failure
    if failure is None:
        return None
    code = failure.code or "INTERNAL_ERROR"
    told = failure.intervention_id is not None or failure.admission == "pending"
    error_type = ErrorType(ERROR_TYPES.get(failure.category, "unknown"))
    return ErrorContext(
        error_type=error_type,
        original_error=f"{failure.error_type}: {failure.error_message}",
        user_safe_message=safe_message(code, notified=told, language=language),
        retry_able=may_pass(error_type, failure.kind),
        log_details={
            "timestamp": stamp(now()),
            "request_id": turn.request_id,
            "intervention_id": failure.intervention_id,
        },
    )


def _outside_a_phase(error: Exception, turn: Turn, language: Language) -> ErrorContext:
    """Of what kept a turn from beginning, or went wrong beside its phases."""
    if not isinstance(error, InputError):
        text = safe_message("UNEXPECTED", notified=True, language=language)
        meaning = classify(error, "answer_pipeline")
        return error_context(error, meaning, text, request_id=turn.request_id)
    return ErrorContext(
        error_type=ErrorType.VALIDATION_ERROR,
        original_error=public_text(str(error)),
        user_safe_message=MESSAGES[language][error.reason].format(field=error.field),
        retry_able=False,
        log_details={"timestamp": stamp(now()), "request_id": turn.request_id},
    )
