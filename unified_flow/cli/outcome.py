"""What came of a turn, as the one JSON object that scripts read, and as an exit code."""

from __future__ import annotations

from typing import Any

from interventions.cli.terminal import Code
from interventions.errors import QueueError
from interventions.secrets.redaction import redact, redact_text
from unified_flow.errors import UnifiedFlowError, wire_name
from unified_flow.phases.errors import PhaseError
from unified_flow.turns.passage import public_citation, public_text
from unified_flow.turns.turn import Turn


def of_turn(turn: Turn, error: PhaseError | None = None) -> dict[str, Any]:
    """The object of `ask --json`; a failed turn adds what is known of the failure."""
    status = "failed" if error else turn.status
    outcome: dict[str, Any] = {
        "response": None if error or turn.response is None else public_text(turn.response),
        "status": status,
        "clarification_question": public_text(turn.response or "") if status == "clarify" else None,
        "citations": []
        if error
        else [public_citation(c).model_dump(mode="json") for c in turn.citations],
        "abstained": turn.abstained and error is None,
        "error": error is not None,
        "session_id": turn.session_id,
        "turn_id": turn.turn_id,
        "request_id": turn.request_id,
        "saved": turn.saved,
        "phases": turn.phases,
        "model_calls": turn.counters.model_calls,
    }
    if error is not None:
        outcome |= {
            "error_type": type(error).__name__,
            "error_category": error.category,
            "phase": error.phase,
            "intervention_id": error.intervention_id,
            "message": str(error),
            "partial": error.partial,
        }
    elif not turn.should_respond:
        outcome |= {
            "should_respond": False,
            "error_message": redact_text(turn.error_message or ""),
            "guardrail_pre_result": redact(turn.guardrail_pre_result),
            "retry_count": turn.retry_count,
            "intervention_id": turn.failure.intervention_id if turn.failure else None,
        }
    elif turn.failure is not None:
        outcome["intervention_id"] = turn.failure.intervention_id
    return outcome


def of_refusal(error: UnifiedFlowError | QueueError, session_id: str) -> dict[str, Any]:
    """The same where no turn has begun or gone on (bad input, bad configuration, a turn that
    somebody else runs)."""
    return {
        "response": None,
        "status": "failed",
        "clarification_question": None,
        "citations": [],
        "abstained": False,
        "error": True,
        "session_id": session_id,
        "turn_id": None,
        "request_id": None,
        "saved": False,
        "phases": [],
        "model_calls": 0,
        "error_type": wire_name(error),
        "error_category": None,
        "phase": None,
        "intervention_id": None,
        "message": redact_text(str(error)),
        "partial": {},
    }


def exit_code(turn: Turn, error: PhaseError | None) -> Code:
    """4 if a failure reached nobody, even where the user has the answer; else 1 for a turn that
    failed, or 0: silence that a policy or a guardrail wants is what was to come."""
    told = turn.failure is None or turn.failure.intervention_id is not None
    if error is not None:
        return Code.FAILED if error.intervention_id is not None else Code.QUEUE
    return Code.DONE if told else Code.QUEUE
