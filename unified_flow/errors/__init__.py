"""Every error the flow raises on purpose; `PhaseError`, with which a turn halts, is in
`phases/errors.py`.

What the network does (httpx errors) is not wrapped; `classification.py` says what it means where.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Literal

from interventions.errors import how_to_install

Loop = Literal["planning_loop", "retry", "revise", "model_calls"]


class UnifiedFlowError(Exception):
    """What happened, with its values; `hint` says what a person can do about it.

    `intervention_type` is for errors whose type does not follow from their category.
    """

    intervention_type: ClassVar[str | None] = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        if hint is not None:
            self.add_note(f"hint: {hint}")  # a traceback shows it


class InputError(UnifiedFlowError):
    """The question or a parameter is unusable; `field` names it (rag-error-model.md, 1).

    `reason` is the text of the catalogue that a client gets, without any value.
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
    """The class name that others see: bad input is a ValidationError (system.md), a limit the
    error that the turn halts with."""
    if isinstance(error, LimitReachedError):
        return "LoopLimitError"
    return "ValidationError" if isinstance(error, InputError) else type(error).__name__


class ConfigError(UnifiedFlowError):
    """Settings, a recipe or a tool name that does not exist."""


class RecipeError(ConfigError):
    """A recipe that does not exist, or cannot be read."""


class ToolNotFoundError(ConfigError):
    """There is no tool of that name."""


class NoTurnError(ConfigError):
    """The home takes no turn: its disk is full, or it cannot be written."""


class ModelError(UnifiedFlowError):
    """A language model answered, and the answer is no use."""


class EmptyReplyError(ModelError):
    """The reply holds nothing."""


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
    """The reply is JSON of another form than was asked for."""


class GenerationTimeoutError(ModelError):
    """No reply within the time that the policy gives a call."""


class CircuitOpenError(ModelError):
    """It was not asked, as it keeps failing; `retry_after_s` is when a call may be tried again."""

    def __init__(self, message: str, *, retry_after_s: float, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class RetrievalError(UnifiedFlowError):
    """The document index or another store cannot be read."""


class DatabaseAwayError(RetrievalError):
    """The database that machines share cannot be reached, or has ended the session. Nothing has
    failed: the same may work in a moment."""


class ToolError(UnifiedFlowError):
    """A tool ran, and failed or returned what is of no use."""


class ToolArgumentError(ToolError):
    """What a tool was called with does not fit it; it did not run."""


class ToolTimeoutError(ToolError):
    """A tool did not finish in its time."""


class ToolServerError(ToolError):
    """An MCP server cannot be reached, or has gone: what became of the call is unknown."""


class ToolDeniedError(ToolError, PermissionError):
    """A tool that may not run without leave. It did not run."""


class HumanNeededError(ToolError):
    """The turn waits for what a person answers; the message is the question."""

    intervention_type = "escalation"


class QueueFullError(UnifiedFlowError):
    """Refused before it began: a failure of this turn would find no room in the queue, or too many
    turns wait for a worker."""


class LimitReachedError(UnifiedFlowError):
    """`loop` turned `iterations` times, and `limit` allows no more; `reasons` are those of each
    round. A caller, the queue and the journal know it as `LoopLimitError`."""

    intervention_type = "limit_exceeded"

    def __init__(
        self, loop: Loop, iterations: int, limit: int, reasons: Sequence[str] = ()
    ) -> None:
        rounds = "".join(f"; round {n}: {said}" for n, said in enumerate(reasons, 1))
        super().__init__(
            f"{loop} reached its limit of {limit} after {iterations} iterations{rounds}",
            hint=f"mend what the last round names, or raise limits.{loop}"
            if reasons
            else f"find out why it does not come to an end; the setting is limits.{loop}",
        )
        self.loop = loop
        self.iterations = iterations
        self.limit = limit


class PipelineTimeoutError(UnifiedFlowError):
    """The turn has used up the time that the policy gives it as a whole."""


class DraftRejectedError(UnifiedFlowError):
    """Validation says FAIL: neither other words nor another search would help."""

    def __init__(self, issues: Sequence[str] = ()) -> None:
        super().__init__(
            f"the verdict on the draft is FAIL: {'; '.join(issues) or 'no issue named'}",
            hint="compare the draft with its sources; mend the documents, the recipe or the model",
        )


class FileUnusableError(ToolError):
    """A file inside the allowed folders that is not there, is no text, or is too large."""


class PathRefusedError(ToolError, PermissionError):
    """A path outside the folders that file tools may read."""


class PageError(ToolError):
    """`url` is the address that was asked for, or the one that it redirected to."""

    def __init__(self, message: str, *, url: str = "", hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.url = url


class PageUnusableError(PageError):
    """The page is there, but it is too large or no text."""


class PageTimeoutError(PageError, ToolTimeoutError):
    """A web page did not come in its time."""


class AddressRefusedError(PageError, PermissionError):
    """Where no request is sent: a private address, another scheme, a port that is not allowed."""


class PageRefusedError(PageError, PermissionError):
    """A site that wants a login, or lets no program in."""


class CaptchaError(PageError, PermissionError):
    """A site wants to see a person first."""

    intervention_type = "captcha"


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Around imports of what only the extra installs; `what` a person wants needs them. Raises
    ConfigError, also for a package that lacks a library of the system."""
    try:
        yield
    except ImportError as exc:
        raise ConfigError(
            f"{what} needs the extra `{extra}`: {exc}",
            hint=how_to_install(extra),
        ) from exc
