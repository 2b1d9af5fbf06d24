"""The error of each phase: a turn that halted raises it.

UnifiedFlowError
└── PhaseError                a phase failed: the turn has halted
    ├── QueryAnalyzerError, ReflectionError, ContextGathererError, PlannerError,
    │   CoordinatorError, SynthesisError, ValidationError, SaveError
    └── LoopLimitError
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interventions.secrets.redaction import redact
from unified_flow.errors import UnifiedFlowError
from unified_flow.policies import Failure
from unified_flow.turns.passage import Passage
from unified_flow.turns.sections import written
from unified_flow.turns.turn import Turn


class PhaseError(UnifiedFlowError):
    """A phase failed and the turn has halted; the original exception is `__cause__`.

    `turn` is as it stands in the journal, the failure included. `failure` is the first attempt's,
    with the number of the last (`attempts`); its `scope` is the row of the policy's table, `code`
    the client's (rag-error-model.md). `intervention_id` is None if the queue refused it, or has not
    answered yet; `admission` says which ("pending" for the latter). `answer` (`halt`, `degrade` or
    `silence`) is what the client's side makes of it. `retry_after_s`: seconds until asking again
    makes sense, None if unknown. `retrieved` holds the passages for a degraded answer, best first.
    """

    def __init__(
        self,
        message: str,
        *,
        turn: Turn,
        failure: Failure,
        severity: str,
        user_safe_message: str,
        retrieved: Sequence[Passage] = (),
    ) -> None:
        super().__init__(message, hint=getattr(failure.error, "hint", None))
        recorded = turn.failure
        assert recorded is not None
        self.turn = turn
        self.turn_id = turn.turn_id
        self.request_id = turn.request_id
        self.session_id = turn.session_id
        self.failure = failure
        self.phase = failure.phase
        self.category = failure.meaning.category
        self.code = failure.meaning.code
        self.stage = failure.meaning.stage
        self.scope = failure.scope
        self.attempts = failure.attempt
        self.retry_after_s = failure.retry_after_s
        self.severity = severity
        self.intervention_id = recorded.intervention_id
        self.admission = recorded.admission
        self.answer = recorded.action
        self.user_safe_message = user_safe_message
        self.retrieved = list(retrieved)

    @property
    def partial(self) -> Mapping[str, Any]:
        """What the turn had so far, by section name; redacted."""
        sections: dict[str, Any] = redact(written(self.turn.sections))
        return sections


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
