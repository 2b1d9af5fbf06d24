"""The top-level handler: a turn as a dict that never raises (error-handling-architecture.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interventions.secrets.redaction import redact_text
from unified_flow.errors import PhaseError, wire_name
from unified_flow.failures.messages import safe_message
from unified_flow.failures.outcome import outcome_of
from unified_flow.failures.report import heard
from unified_flow.question import new_request_id
from unified_flow.services import Services
from unified_flow.shown import shown

if TYPE_CHECKING:
    from unified_flow.flow import UnifiedFlow


async def handle(
    flow: UnifiedFlow, session_id: str, message: str, **options: Any
) -> dict[str, Any]:
    """The top-level handler: the same as `process`, but as a dict that never raises.

    {"response", "error", "error_type", "phase", "intervention_id", "turn_id", "request_id"},
    and "partial" where a failed turn had got somewhere (error-handling-architecture.md,
    "Top-Level Error Handler"). Cancellation goes through.
    """
    request_id = options.pop("request_id", None) or new_request_id()
    try:
        turn = await flow.process(session_id, message, request_id=request_id, **options)
    except Exception as exc:  # noqa: BLE001 - the document's last line: nothing else may pass
        return await _failed(exc, session_id, request_id, flow.services)
    answer = _answer(shown(turn.response or ""), request_id, turn_id=turn.turn_id)
    if not turn.should_respond:
        return answer | {
            "should_respond": False,
            "error_message": turn.error_message,
            "guardrail_pre_result": turn.guardrail_pre_result,
            "retry_count": turn.retry_count,
        }
    if turn.failure is not None:
        answer |= {
            "saved": False,
            "phase": turn.failure.phase,
            "intervention_id": turn.failure.intervention_id,
        }
    return answer


async def _failed(
    error: Exception, session_id: str, request_id: str, services: Services
) -> dict[str, Any]:
    outcome = outcome_of(error, services.policy)
    intervention_id = await heard(error, outcome, session_id, request_id, services)
    if outcome.silenced:
        said = f"ERROR: {redact_text(str(error))}"
        return _answer("", request_id, error) | {"should_respond": False, "error_message": said}
    if isinstance(error, PhaseError):
        return _answer(error.user_safe_message, request_id, error, turn_id=error.turn_id)
    if outcome.answer == "refused":
        return _answer(redact_text(str(error)), request_id, error)
    told = intervention_id is not None
    text = safe_message("UNEXPECTED", told=told, language=services.settings.language)
    answer = _answer(text, request_id, error)
    if outcome.unheard:
        answer |= {"phase": "unknown", "intervention_id": intervention_id}
    return answer


def _answer(
    response: str, request_id: str, error: Exception | None = None, *, turn_id: int | None = None
) -> dict[str, Any]:
    failed = error if isinstance(error, PhaseError) else None
    answer: dict[str, Any] = {
        "response": response,
        "error": error is not None,
        "error_type": wire_name(error) if error else None,
        "phase": failed.phase if failed else None,
        "intervention_id": failed.intervention_id if failed else None,
        "turn_id": turn_id,
        "request_id": request_id,
    }
    if failed and failed.partial:
        answer["partial"] = failed.partial
    return answer
