"""Every error the flow raises on purpose.

UnifiedFlowError
├── InputError                what the caller sent cannot be a question (no intervention)
├── ConfigError               settings, a recipe or a tool name that does not exist
│   ├── RecipeError
│   ├── ToolNotFoundError
│   └── NoTurnError           no turn can be begun where it would have to be written
├── ModelError                a language model answered, and the answer is no use
│   ├── EmptyReplyError
│   ├── CutReplyError
│   ├── PromptTooLargeError   it was not asked: a section is over its budget
│   ├── ReplyTooLargeError
│   ├── NotJSONError          also a json.JSONDecodeError
│   ├── SchemaMismatchError
│   ├── GenerationTimeoutError
│   └── CircuitOpenError      it was not asked: it keeps failing
├── RetrievalError            the document index or another store cannot be read
├── ToolError
│   ├── ToolArgumentError
│   ├── ToolTimeoutError
│   ├── ToolServerError       an MCP server cannot be reached, or has gone
│   ├── HumanNeededError      a tool asks a person: an escalation
│   ├── ToolDeniedError       also a PermissionError
│   ├── FileUnusableError, PathRefusedError    of a file (`tools/errors.py`)
│   └── PageError             a web page (`web/errors.py`)
├── QueueFullError            the intervention queue is full and new turns are refused
├── LimitReachedError         a loop of the turn has run to its limit
├── PipelineTimeoutError      the turn's time is up
├── DraftRejectedError        the verdict is FAIL
└── PhaseError                a phase failed: the turn has halted
    ├── QueryAnalyzerError … SaveError (one for each phase)
    └── LoopLimitError

What the network does (httpx errors) is not wrapped; `classify.py` says what it means where.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from unified_flow.retrieval import Passage
    from unified_flow.wire.failure import ErrorContext

Loop = Literal["planning_loop", "retry", "revise", "model_calls"]
Scope = Literal["retrieval", "model", "pipeline", "other"]


class UnifiedFlowError(Exception):
    """What happened, with its values; `hint` says what a person can do about it.

    `intervention_type` is for errors whose type does not follow from their category.
    """

    intervention_type: ClassVar[str | None] = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class InputError(UnifiedFlowError):
    """The question or a parameter is unusable; `field` names it (rag-error-model.md, 1).

    `reason` is the text of the catalogue that tells a client so, without any value.
    """

    def __init__(
        self,
        message: str,
        *,
        field: str = "query",
        reason: str = "field_wrong",
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.field = field
        self.reason = reason


def wire_name(error: BaseException) -> str:
    """The class name that clients see; bad input is a ValidationError to them (system.md)."""
    return "ValidationError" if isinstance(error, InputError) else type(error).__name__


class ConfigError(UnifiedFlowError):
    pass


class RecipeError(ConfigError):
    pass


class ToolNotFoundError(ConfigError):
    pass


class NoTurnError(ConfigError):
    """The home takes no turn: its disk is full, or it cannot be written."""


class ModelError(UnifiedFlowError):
    pass


class EmptyReplyError(ModelError):
    pass


class CutReplyError(ModelError):
    """The reply ended before it was complete (token limit, or a stream without its end)."""


class PromptTooLargeError(ModelError):
    """A section of the turn takes more tokens than the recipe lets it; no model was asked."""


class ReplyTooLargeError(ModelError):
    """The server sent more than any answer can hold; reading stopped at the bound."""


class NotJSONError(ModelError, json.JSONDecodeError):
    """The reply holds no JSON object. `doc` is the reply, `pos` where reading stopped."""

    def __init__(self, message: str, doc: str, pos: int, *, hint: str | None = None) -> None:
        json.JSONDecodeError.__init__(self, message, doc, pos)
        self.hint = hint


class SchemaMismatchError(ModelError):
    pass


class GenerationTimeoutError(ModelError):
    """No reply within the time that the policy gives a call."""


class CircuitOpenError(ModelError):
    """`retry_after_s` is when a call may be tried again."""

    def __init__(self, message: str, *, retry_after_s: float, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class RetrievalError(UnifiedFlowError):
    pass


class ToolError(UnifiedFlowError):
    pass


class ToolArgumentError(ToolError):
    pass


class ToolTimeoutError(ToolError):
    pass


class ToolServerError(ToolError):
    """What became of the call is unknown."""


class ToolDeniedError(ToolError, PermissionError):
    """A tool that may not run without leave. It did not run."""


class HumanNeededError(ToolError):
    """The turn waits for what a person answers; the message is the question."""

    intervention_type = "escalation"


class QueueFullError(UnifiedFlowError):
    """Refused before it began: a failure of this turn would be seen by nobody."""


class LimitReachedError(UnifiedFlowError):
    """`loop` turned `iterations` times, and `limit` allows no more."""

    intervention_type = "limit_exceeded"

    def __init__(self, loop: Loop, iterations: int, limit: int) -> None:
        super().__init__(
            f"{loop} reached its limit of {limit} after {iterations} iterations",
            hint=f"find out why it does not come to an end; the setting is limits.{loop}",
        )
        self.loop = loop
        self.iterations = iterations
        self.limit = limit


class PipelineTimeoutError(UnifiedFlowError):
    """The turn has used up the time that the policy gives it as a whole."""


class DraftRejectedError(UnifiedFlowError):
    """Validation says FAIL: neither other words nor another search would help."""


class PhaseError(UnifiedFlowError):
    """A phase failed and the turn has halted; the original exception is `__cause__`.

    `intervention_id` is None if nobody could be told (then `admission` says why); `context` is the
    failure as the wire knows it; `partial` is what the turn had so far, by section name.

    Of the policy: `answer` says what the client's side makes of it, `scope` which row of its table
    this is, `attempts` how often the phase was tried, `retry_after_s` when to ask again (None:
    nobody knows); `retrieved` holds, for an answer that is degraded, the passages that were found
    for the question, redacted.
    """

    phase: str
    severity: str

    def __init__(
        self,
        message: str,
        *,
        phase: str,
        severity: str,
        turn_id: int,
        request_id: str,
        session_id: str,
        category: str = "unknown_error",
        code: str = "INTERNAL_ERROR",
        stage: str = "answer_pipeline",
        intervention_id: str | None = None,
        admission: str = "dropped",
        context: ErrorContext | None = None,
        partial: Mapping[str, Any] | None = None,
        hint: str | None = None,
        answer: Literal["halt", "degrade", "silence"] = "halt",
        scope: Scope = "other",
        timed_out: bool = False,
        attempts: int = 1,
        retry_after_s: float | None = None,
        retrieved: Sequence[Passage] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.phase = phase
        self.severity = severity
        self.turn_id = turn_id
        self.request_id = request_id
        self.session_id = session_id
        self.category = category
        self.code = code
        self.stage = stage
        self.intervention_id = intervention_id
        self.admission = admission
        self.context = context
        self.user_safe_message = context.user_safe_message if context is not None else ""
        self.partial = dict(partial or {})
        self.answer = answer
        self.scope = scope
        self.timed_out = timed_out
        self.attempts = attempts
        self.retry_after_s = retry_after_s
        self.retrieved = list(retrieved)


class QueryAnalyzerError(PhaseError):
    pass


class ReflectionError(PhaseError):
    pass


class ContextGathererError(PhaseError):
    pass


class PlannerError(PhaseError):
    pass


class CoordinatorError(PhaseError):
    pass


class SynthesisError(PhaseError):
    pass


class ValidationError(PhaseError):
    pass


class SaveError(PhaseError):
    pass


class LoopLimitError(PhaseError):
    """A loop ran to its limit; the cause is the `LimitReachedError` that says which."""
