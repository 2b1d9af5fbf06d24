"""Telling a person what failed: the log record, the intervention, the words for the user."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

import httpx

from interventions import Admission, InterventionRequest
from interventions.errors import QueueError
from interventions.secrets.redaction import redact_text
from unified_flow.errors import LimitReachedError, LoopLimitError, PhaseError
from unified_flow.failures.classify import classify
from unified_flow.failures.evidence import recipe_and_model, turn_context
from unified_flow.failures.messages import safe_message
from unified_flow.failures.outcome import Outcome
from unified_flow.phases import BY_NAME
from unified_flow.policies import Failure
from unified_flow.resuming.settling import Word, settle
from unified_flow.running.kit import Kit
from unified_flow.services import Services
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.turn import Turn
from unified_flow.web.errors import PageError
from unified_flow.wire.failure import ErrorContext, error_context

logger = logging.getLogger("unified_flow")


@dataclass(frozen=True)
class Told:
    """What became of a failure report; `intervention_id` is None if the queue refused it, or has
    not answered yet (`admission` "pending")."""

    intervention_id: str | None
    admission: str
    severity: str
    context: ErrorContext
    environment: dict[str, Any]


def redacted_message(error: BaseException) -> str:
    return redact_text(str(error))


def tell(failure: Failure, kit: Kit | None, turn: Turn, services: Services) -> Told:
    """Log the failure and put it in the queue. Never raises: the queue keeps its own trouble."""
    _close_what_was_passed(failure, turn, services)
    request = _request(failure, kit, turn, services)
    _log(failure.error, request, service=failure.meaning.stage)
    admission = services.queue.put(request)
    return _told(
        failure,
        turn,
        services,
        intervention_id=admission.intervention_id,
        admission=str(admission.kind),
        environment=request.environment,
    )


def untold(failure: Failure, turn: Turn, services: Services) -> Told:
    """While `tell` has not come to its end: it is being told, and under no name as yet."""
    return _told(failure, turn, services, intervention_id=None, admission="pending", environment={})


def _told(
    failure: Failure,
    turn: Turn,
    services: Services,
    *,
    intervention_id: str | None,
    admission: str,
    environment: dict[str, Any],
) -> Told:
    return Told(
        intervention_id=intervention_id,
        admission=admission,
        severity=_severity(failure),
        context=error_context(
            failure.error,
            failure.meaning,
            safe_message(
                failure.meaning.code,
                told=intervention_id is not None or admission == "pending",
                language=services.settings.language,
            ),
            request_id=turn.request_id,
            phase=failure.phase,
            stage=failure.meaning.stage,
            intervention_id=intervention_id,
        ),
        environment=environment,
    )


def _severity(failure: Failure) -> str:
    limit = isinstance(failure.error, LimitReachedError)
    return "high" if limit else BY_NAME[failure.phase].SEVERITY


def _request(
    failure: Failure, kit: Kit | None, turn: Turn, services: Services
) -> InterventionRequest:
    limit = failure.error if isinstance(failure.error, LimitReachedError) else None
    context: dict[str, Any] = {
        "query": turn.question,
        "turn": turn_context(failure.phase, kit, turn),
    }
    if kit is not None and kit.where.tool_args is not None:
        context["tool_args"] = kit.where.tool_args
    if limit is not None:
        context |= {"loop": limit.loop, "iterations": limit.iterations, "limit": limit.limit}
    if hint := getattr(failure.error, "hint", None):
        context["hint"] = hint
    if model_call := getattr(failure.error, "model_call", None):
        context["model_call"] = model_call
    if isinstance(failure.error, PageError) and failure.error.url:
        context["url"] = failure.error.url
    request = InterventionRequest.from_exception(
        failure.error,
        type=failure.meaning.intervention_type,
        severity=_severity(failure),
        phase=failure.phase,
        tool=failure.tool,
        session_id=turn.session_id,
        turn_id=turn.turn_id,
        request_id=turn.request_id,
        error_category=failure.meaning.category,
        context=context,
        environment={"config_digest": services.config_digest, **recipe_and_model(kit)},
        home=services.home,
    )
    changes: dict[str, Any] = {"error_type": LoopLimitError.__name__} if limit else {}
    # What a failure in another phase means for the retried intervention is `settle`'s to say.
    retry = turn.retry
    if retry is not None and retry.phase == failure.phase:
        changes |= {"retry_of": retry.intervention_id}
    return request.model_copy(update=changes)


def _close_what_was_passed(failure: Failure, turn: Turn, services: Services) -> None:
    """A later phase failed: the intervention that was retried is solved, and makes room."""
    retry = turn.retry
    if retry is None or retry.phase == failure.phase:
        return
    try:
        archive = TurnArchive(services.folders)
        word = Word(retry.note, retry.by, retry.via, frozenset({retry.intervention_id}))
        settle(turn, services.queue, archive, word, outcome=f"failed in {failure.phase}")
    except QueueError as exc:
        logger.critical("%s could not be resolved: %s", retry.intervention_id, exc)


async def heard(
    error: Exception, outcome: Outcome, session_id: str, request_id: str, services: Services
) -> str | None:
    """The intervention under which a person hears of the error; None if there is none, or if what
    went wrong is the caller's to mend."""
    if isinstance(error, PhaseError):
        return error.intervention_id
    if not outcome.unheard:
        return None
    telling = asyncio.to_thread(tell_outside_a_phase, error, session_id, request_id, services)
    return (await telling).intervention_id


def tell_outside_a_phase(
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
    _log(error, request, service=meaning.stage)
    return services.queue.put(request)


def _log(error: BaseException, request: InterventionRequest, *, service: str) -> None:
    """One error record with the fields of both documents' logging standards."""
    status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else None
    logger.error(
        "[%s] %s",
        request.phase,
        request.error_type,
        extra={
            "component": request.phase,
            "operation": request.tool or "run",
            "service": service,
            "error_type": request.error_type,
            "error_message": redacted_message(error),
            "session_id": request.session_id,
            "turn_id": request.turn_id,
            "request_id": request.request_id,
            "status_code": status,
            "traceback": redact_text(request.traceback or ""),
        },
    )
