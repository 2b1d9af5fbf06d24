"""The error of each phase: a turn that halted raises it.

UnifiedFlowError
└── PhaseError                a phase failed: the turn has halted
    ├── QueryAnalyzerError, ReflectionError, ContextGathererError, PlannerError,
    │   CoordinatorError, SynthesisError, ValidationError, SaveError
    └── LoopLimitError
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from interventions.secrets.redaction import redact
from unified_flow.errors import UnifiedFlowError
from unified_flow.policies import Failure, Scope, Stop
from unified_flow.turns.passage import Passage
from unified_flow.turns.sections import written
from unified_flow.turns.turn import Turn
from unified_flow.turns.wire.failure import ErrorContext


@dataclass(frozen=True)
class FailureReport:
    """What the queue made of a failure; `intervention_id` is None if the queue refused it, or has
    not answered yet (`admission` "pending")."""

    intervention_id: str | None
    admission: str
    severity: str
    context: ErrorContext
    environment: dict[str, Any]


class PhaseError(UnifiedFlowError):
    """A phase failed and the turn has halted; the original exception is `__cause__`.

    `turn` is as it stands in the journal, the failure included. `failure` is the first attempt's,
    with the number of the last; `report` is what the queue made of it, `stop` what the policy
    decided. `retrieved` holds the passages for a degraded answer, best first.
    """

    def __init__(
        self,
        message: str,
        *,
        turn: Turn,
        failure: Failure,
        report: FailureReport,
        stop: Stop,
        retrieved: Sequence[Passage] = (),
    ) -> None:
        super().__init__(message, hint=getattr(failure.error, "hint", None))
        self.turn = turn
        self.failure = failure
        self.report = report
        self.stop = stop
        self.retrieved = list(retrieved)

    @property
    def phase(self) -> str:
        return self.failure.phase

    @property
    def turn_id(self) -> int:
        return self.turn.turn_id

    @property
    def request_id(self) -> str:
        return self.turn.request_id

    @property
    def session_id(self) -> str:
        return self.turn.session_id

    @property
    def partial(self) -> Mapping[str, Any]:
        """What the turn had so far, by section name; redacted."""
        sections: dict[str, Any] = redact(written(self.turn.sections))
        return sections

    @property
    def category(self) -> str:
        return self.failure.meaning.category

    @property
    def code(self) -> str:
        """The client's (rag-error-model.md)."""
        return self.failure.meaning.code

    @property
    def stage(self) -> str:
        return self.failure.meaning.stage

    @property
    def scope(self) -> Scope:
        """Which row of the policy's table this is."""
        return self.failure.scope

    @property
    def attempts(self) -> int:
        """How often the phase was tried."""
        return self.failure.attempt

    @property
    def retry_after_s(self) -> float | None:
        """Seconds until asking again makes sense; None if unknown."""
        return self.failure.retry_after_s

    @property
    def severity(self) -> str:
        return self.report.severity

    @property
    def intervention_id(self) -> str | None:
        """None if the queue refused it; `admission` says why."""
        return self.report.intervention_id

    @property
    def admission(self) -> str:
        return self.report.admission

    @property
    def context(self) -> ErrorContext:
        """The failure as the wire knows it."""
        return self.report.context

    @property
    def user_safe_message(self) -> str:
        return self.report.context.user_safe_message

    @property
    def answer(self) -> Literal["halt", "degrade", "silence"]:
        """What the client's side makes of it."""
        return self.stop.answer


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
