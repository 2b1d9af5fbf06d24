"""The error of each phase: a turn that halted raises it.

UnifiedFlowError
└── PhaseError                a phase failed: the turn has halted
    ├── QueryAnalyzerError, ReflectionError, ContextGathererError, PlannerError,
    │   CoordinatorError, SynthesisError, ValidationError, SaveError
    └── LoopLimitError
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interventions.secrets.redaction import redact
from unified_flow.errors import UnifiedFlowError
from unified_flow.errors.classification import STAGE_OF_CODE
from unified_flow.errors.safe_messages import Language, safe_message
from unified_flow.policies import scope_of
from unified_flow.turns.sections import written
from unified_flow.turns.sources import retrieved_passages
from unified_flow.turns.turn import Turn


class PhaseError(UnifiedFlowError):
    """A phase failed and the turn has halted; where it ran, the original exception is `__cause__`.

    Everything else comes from the turn, as it stands in the journal, so that another process says
    the same, word for word. `failure` is the recorded one: the first attempt's, with the number of
    the last (`attempts`); its `scope` is the row of the policy's table, `code` the client's
    (rag-error-model.md). `intervention_id` is None if the queue refused it, or has not answered
    yet; `admission` says which ("pending" for the latter). `answer` (`halt`, `degrade` or
    `silence`) is what the client's side makes of it. `retrieved` holds the passages for a degraded
    answer, best first.
    """

    def __init__(self, turn: Turn, language: Language = "en") -> None:
        failure = turn.failure
        assert failure is not None
        what = f"tool {failure.tool}" if failure.tool else failure.phase
        said = f"{what} failed: {failure.error_type}: {failure.error_message}"
        super().__init__(said, hint=failure.hint)
        self.turn = turn
        self.turn_id = turn.turn_id
        self.request_id = turn.request_id
        self.session_id = turn.session_id
        self.failure = failure
        self.phase = failure.phase
        self.category = failure.category
        self.code = failure.code or "INTERNAL_ERROR"
        self.stage = failure.stage or STAGE_OF_CODE.get(self.code, "answer_pipeline")
        self.scope = scope_of(failure.error_type, self.stage)
        self.attempts = failure.attempt
        self.retry_after_s = failure.retry_after_s
        self.severity = failure.severity or "high"
        self.intervention_id = failure.intervention_id
        if self.intervention_id is not None:
            self.add_note(f"next: interventions show {self.intervention_id}")
        self.admission = failure.admission
        self.answer = failure.action
        self.user_safe_message = safe_message(
            self.code, notified=failure.notified, language=language
        )
        self.retrieved = retrieved_passages(turn) if self.answer == "degrade" else []

    @property
    def partial(self) -> Mapping[str, Any]:
        """What the turn had so far, by section name; redacted."""
        sections: dict[str, Any] = redact(written(self.turn.sections))
        return sections


class QueryAnalyzerError(PhaseError): ...


class ReflectionError(PhaseError): ...


class ContextGathererError(PhaseError): ...


class PlannerError(PhaseError): ...


class CoordinatorError(PhaseError): ...


class SynthesisError(PhaseError): ...


class ValidationError(PhaseError): ...


class SaveError(PhaseError): ...


class LoopLimitError(PhaseError):
    """A loop ran to its limit; the cause is the `LimitReachedError` that says which."""
