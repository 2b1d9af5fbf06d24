"""What a failure does: the boundary asks the policy; the phases know nothing of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from unified_flow import errors
from unified_flow.errors import CircuitOpenError, PipelineTimeoutError
from unified_flow.errors.classification import Classification, classify
from unified_flow.errors.kinds import TIMEOUTS, kind_of, retry_after_s

# The longest pause where the turn's time has no bound.
LONGEST_WAIT_S = 60.0
Scope = Literal["retrieval", "model", "pipeline", "other"]


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

    @classmethod
    def outside_a_phase(cls, error: Exception) -> Failure:
        """A failure before the turn's first phase, or outside them."""
        return cls("unknown", None, 1, classify(error, "answer_pipeline"), error)

    @property
    def scope(self) -> Scope:
        """What is down or slow: the search, a model, the turn as a whole, or something else."""
        if isinstance(self.error, errors.PipelineTimeoutError):
            return "pipeline"
        if self.meaning.stage == "retriever":
            return "retrieval"
        rejected = isinstance(self.error, errors.DraftRejectedError)  # by a model that works
        return "model" if self.meaning.stage == "llm" and not rejected else "other"

    @property
    def timed_out(self) -> bool:
        return isinstance(self.error, TIMEOUTS)

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
    """End the turn, with an intervention. `answer` tells the client's side what to make of it."""

    answer: Literal["halt", "degrade", "silence"] = "halt"


Action = Retry | Stop


class Policy(Protocol):
    """`again` decides on another attempt after every failure; where it says None, or no attempt may
    follow, `ends` decides on the visit's first failure."""

    @property
    def name(self) -> str: ...

    @property
    def bounds(self) -> Bounds: ...

    def again(self, failure: Failure) -> Retry | None: ...

    def ends(self, failure: Failure) -> Stop: ...


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
