"""What a failure does: the boundary asks the policy; the phases know nothing of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from unified_flow.errors import (
    CircuitOpenError,
    DraftRejectedError,
    PipelineTimeoutError,
    wire_name,
)
from unified_flow.errors.classification import Classification, kind_of, retry_after_s

if TYPE_CHECKING:
    # A phase loads this module, and little of the configuration.
    from unified_flow.config.tables import GracefulSettings

# The longest pause where the turn's time has no bound.
LONGEST_WAIT_S = 60.0
Scope = Literal["retrieval", "model", "loop", "pipeline", "other"]


@dataclass(frozen=True)
class Bounds:
    """How long a search and a turn may take, in seconds; None: no bound. A model call's own
    bound is the registry's (models/registry.py).

    `searches_first`: the question is searched for beside the first phase, so that there is
    something to show should a model fail.
    """

    search_s: float | None = None
    pipeline_s: float | None = None
    searches_first: bool = False


UNBOUNDED = Bounds()


def scope_of(error_type: str, stage: str) -> Scope:
    """What is down, or comes to no end: the search, a model, a loop, the turn, or another thing."""
    if error_type == PipelineTimeoutError.__name__:
        return "pipeline"
    if stage == "retriever":
        return "retrieval"
    if error_type == "LoopLimitError":
        return "loop"  # no answer came about, as when a model fails, and none would
    rejected = error_type == DraftRejectedError.__name__  # by a model that works
    return "model" if stage == "llm" and not rejected else "other"


@dataclass(frozen=True)
class Failure:
    """One failed attempt of a phase, classified. `attempt` counts from 1 within the visit; `model`
    is the one that was asked; `left_s` is what is left of the turn's time, None without a bound."""

    phase: str
    tool: str | None
    attempt: int
    meaning: Classification
    error: Exception
    model: str | None = None
    left_s: float | None = None

    @property
    def scope(self) -> Scope:
        return scope_of(wire_name(self.error), self.meaning.stage)

    @property
    def retry_after_s(self) -> float | None:
        """Seconds until it makes sense to ask again; None if no server has said so."""
        return retry_after_s(self.error)


@dataclass(frozen=True)
class Retry:
    """Try the phase again after `after_s` seconds, with another `model` if one is named."""

    after_s: float
    model: str | None = None


@dataclass(frozen=True)
class Stop:
    """End the turn, with an intervention. `answer` is what the client gets."""

    answer: Literal["halt", "degrade", "silence"] = "halt"


Action = Retry | Stop


class Policy(Protocol):
    """`again` decides on another attempt after every failure; where it says None, or no attempt may
    follow, `ends` decides on the visit's first failure."""

    name: str
    bounds: Bounds = UNBOUNDED

    def again(self, failure: Failure) -> Retry | None:
        return None

    def ends(self, failure: Failure) -> Stop:
        return Stop("halt")


def retry_wait_s(failure: Failure, *, attempts: int, first_s: float) -> float | None:
    """Seconds before the next of `attempts` attempts in all: `first_s`, doubled each time, and
    never less than the server asks for. None if no attempt is left, none would help, or it would
    come too late."""
    # Neither passes within this turn: its time is up, or the circuit stays open longer.
    hopeless = isinstance(failure.error, PipelineTimeoutError | CircuitOpenError)
    if hopeless or failure.attempt >= attempts or kind_of(failure.error) == "permanent":
        return None
    doubled = 2.0 ** min(failure.attempt - 1, 60)  # far beyond any wait, and no overflow
    wait_s = max(first_s * doubled, failure.retry_after_s or 0.0)
    longest_s = LONGEST_WAIT_S if failure.left_s is None else failure.left_s
    return wait_s if wait_s < longest_s else None


class FailFast(Policy):
    """The default policy: every failure halts the turn. No retry, no fallback."""

    name = "fail_fast"


class Graceful(Policy):
    """Partial answers instead of none (graceful-degradation-adr.md): chosen for end users.

    What the table of that document names degrades: the search, a model, the turn's time. Anything
    else halts as under `fail_fast`, and so does a failed save, which does not cost the answer.
    """

    name = "graceful"

    def __init__(self, settings: GracefulSettings) -> None:
        self.settings = settings
        self.bounds = Bounds(
            search_s=settings.search_timeout_s,
            pipeline_s=settings.pipeline_timeout_s,
            searches_first=True,
        )

    def again(self, failure: Failure) -> Retry | None:
        """Another try, if there is hope and time for one; after the last, the other model."""
        if not _degrades(failure) or failure.scope == "loop":
            return None
        second = self.settings.failover
        if self.settings.retries:
            tries, first_s = 1 + self.settings.retries, self.settings.backoff_s
            wait_s = retry_wait_s(failure, attempts=tries, first_s=first_s)
            if wait_s is not None:
                return Retry(wait_s, failure.model if failure.model == second else None)
        if (
            second is not None
            and failure.scope == "model"
            and failure.model not in (None, second)
            and (failure.left_s is None or failure.left_s > 0)
        ):
            return Retry(0.0, second)
        return None

    def ends(self, failure: Failure) -> Stop:
        return Stop("degrade" if _degrades(failure) else "halt")


def _degrades(failure: Failure) -> bool:
    return failure.scope != "other" and failure.phase != "save"


MAX_ATTEMPTS = 3
RETRY_DELAY_S = 2.0


class Silent(Policy):
    """No visible message at all (silent-errors-and-guardrails.md): chosen for automated replies.

    A model whose failure may pass is asked up to three times, an unusable reply included ("an
    error of the model that may be temporary"); after that, and for any other failure, the user
    gets no message. A failed save does not cost the answer, as under every policy.
    """

    name = "silent"

    def again(self, failure: Failure) -> Retry | None:
        if failure.scope != "model":
            return None
        # 2 s, 4 s; 8 s would come next if there were more attempts.
        wait_s = retry_wait_s(failure, attempts=MAX_ATTEMPTS, first_s=RETRY_DELAY_S)
        return Retry(wait_s) if wait_s is not None else None

    def ends(self, failure: Failure) -> Stop:
        return Stop("halt" if failure.phase == "save" else "silence")
