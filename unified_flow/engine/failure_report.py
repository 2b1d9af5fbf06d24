"""A failure's report: the log record, the intervention, the words for the user."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import httpx

from interventions import Admission, InterventionRequest
from interventions.secrets.redaction import redact_text
from unified_flow.engine.live_context import LivePhaseContext
from unified_flow.engine.outcome import Outcome
from unified_flow.engine.phase_table import BY_NAME
from unified_flow.engine.retried_interventions import resolve_retried
from unified_flow.engine.services import Services
from unified_flow.engine.telemetry.logs import log_error
from unified_flow.errors import LimitReachedError, PageError
from unified_flow.errors.classification import classify
from unified_flow.lib.trace_context import trace_id
from unified_flow.phases import NAMES
from unified_flow.phases.errors import LoopLimitError, PhaseError
from unified_flow.policies import Failure
from unified_flow.turns.results import ToolResult
from unified_flow.turns.sections import changed, written
from unified_flow.turns.turn import Turn

SHOWN = ("completed", "running", "failed", "interrupted")


@dataclass(frozen=True)
class FailureReport:
    """What the queue made of a failure; `intervention_id` is None if the queue refused it, or has
    not answered yet (`admission` "pending")."""

    intervention_id: str | None = None
    admission: str = "pending"
    environment: dict[str, Any] = field(default_factory=dict)


def report_failure(
    failure: Failure, context: LivePhaseContext | None, turn: Turn, services: Services
) -> FailureReport:
    """Log the failure and put it in the queue. Never raises: `put` handles the queue's own
    failures."""
    if turn.retry is not None and turn.retry.phase != failure.phase:
        # The intervention that was retried is solved, and makes room.
        resolve_retried(turn, services, outcome=f"failed in {failure.phase}")
    request = _request(failure, context, turn, services)
    log_failure(request, failure.error, service=failure.meaning.stage)
    admission = services.queue.put(request)
    return FailureReport(admission.intervention_id, str(admission.kind), request.environment)


async def report_unhandled(
    error: Exception, outcome: Outcome, session_id: str, request_id: str, services: Services
) -> str | None:
    """The intervention of an error that no phase raised; None where the caller has to mend it."""
    if isinstance(error, PhaseError):
        return error.intervention_id
    if not outcome.unreported:
        return None
    reporting = asyncio.to_thread(report_outside_a_phase, error, session_id, request_id, services)
    return (await reporting).intervention_id


def report_outside_a_phase(
    error: Exception, session_id: str, request_id: str, services: Services
) -> Admission:
    """A failure of the flow itself: critical, phase `unknown` ("Top-Level Error Handler")."""
    meaning = classify(error, "answer_pipeline")
    request = InterventionRequest.from_exception(
        error,
        type=meaning.intervention_type,
        severity="critical",
        phase="unknown",
        session_id=str(session_id),
        turn_id=0,
        request_id=str(request_id),
        error_category=meaning.category,
        environment={"config_digest": services.config_digest},
        home=services.home,
    )
    log_failure(request, error, service=meaning.stage)
    return services.queue.put(request)


def severity_of(failure: Failure) -> str:
    limit = isinstance(failure.error, LimitReachedError)
    return "high" if limit else BY_NAME[failure.phase].SEVERITY


def _request(
    failure: Failure, context: LivePhaseContext | None, turn: Turn, services: Services
) -> InterventionRequest:
    error, details = failure.error, dict[str, Any](query=turn.question)
    recipe_and_model, read = dict[str, Any](), dict[str, Any]()
    if context is not None:
        recipe_and_model = {
            "recipe": str(context.recipe.path),
            "recipe_digest": context.recipe.digest,
            "model": context.call_site.model,
        }
        # The evidence stands for the tools' results.
        read = written(changed(context.sections, coordinator=()))
        if context.call_site.tool_args is not None:
            details["tool_args"] = context.call_site.tool_args
    details["turn"] = {
        "ribbon": ribbon(turn, failed=failure.phase),
        "question": turn.question,
        "input": read,
        "evidence": [_evidence(result) for result in turn.sections.coordinator],
        **recipe_and_model,
    }
    changes: dict[str, Any] = {}
    if isinstance(error, LimitReachedError):
        details |= {"loop": error.loop, "iterations": error.iterations, "limit": error.limit}
        changes["error_type"] = LoopLimitError.__name__
    known = {
        "trace_id": trace_id(),
        "hint": getattr(error, "hint", None),
        "model_call": getattr(error, "model_call", None),
        "url": error.url if isinstance(error, PageError) else None,
    }
    details |= {name: value for name, value in known.items() if value}
    request = InterventionRequest.from_exception(
        error,
        type=failure.meaning.intervention_type,
        severity=severity_of(failure),
        phase=failure.phase,
        tool=failure.tool,
        session_id=turn.session_id,
        turn_id=turn.turn_id,
        request_id=turn.request_id,
        error_category=failure.meaning.category,
        context=details,
        environment={"config_digest": services.config_digest, **recipe_and_model},
        home=services.home,
    )
    # What a failure in another phase means for the retried intervention is decided by then.
    retry = turn.retry
    if retry is not None and retry.phase == failure.phase:
        changes |= {"retry_of": retry.intervention_id}
    return request.model_copy(update=changes)


def log_failure(
    request: InterventionRequest, error: BaseException | None = None, *, service: str
) -> None:
    """One error record with the fields of both documents' logging standards. `status_code` is that
    of the server that failed; over HTTP it is the one that a client got."""
    status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else None
    log_error(
        f"[{request.phase}] {request.error_type}",
        {
            "component": request.phase,
            "operation": request.tool or "run",
            "service": service,
            "error_type": request.error_type,
            "error_message": redact_text(request.error_message),
            "session_id": request.session_id,
            "turn_id": request.turn_id,
            "request_id": request.request_id,
            "status_code": status,
            "traceback": redact_text(request.traceback or ""),
        },
        error,
    )


def ribbon(turn: Turn, failed: str | None = None) -> list[dict[str, Any]]:
    """The eight phases, each completed, running, failed, interrupted or not_run; its latest visit
    counts."""
    latest = {visit.phase: visit for visit in turn.visits if visit.status in SHOWN}
    status = {name: visit.status for name, visit in latest.items()} | {failed: "failed"}
    took_ms = {name: visit.duration_ms for name, visit in latest.items()}
    return [
        {"name": name, "status": status.get(name, "not_run"), "duration_ms": took_ms.get(name)}
        for name in NAMES
    ]


def _evidence(result: ToolResult) -> dict[str, Any]:
    """For a search its query, and each passage's id, source and score."""
    found = result.result if isinstance(result.result, dict) else {}
    passages = [
        {"chunk_id": passage.chunk_id, "source": passage.source(), "score": passage.score}
        for passage in result.passages
    ]
    return {"tool": result.tool, "query": found.get("query"), "passages": passages}
