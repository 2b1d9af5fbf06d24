"""The one place that catches: any exception of a phase becomes log, intervention, typed error.

What the failure does is the policy's to say; how it is told is `report.py`'s.
"""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter

from interventions.redaction import redact
from unified_flow.classify import classify
from unified_flow.clock import elapsed_ms
from unified_flow.errors import LimitReachedError, LoopLimitError, PhaseError
from unified_flow.events import PhaseCompleted, PhaseFailed, PhaseStarted
from unified_flow.journal import digest
from unified_flow.kit import Kit, Where
from unified_flow.ledger import Ledger
from unified_flow.phases import BY_NAME
from unified_flow.policies import Failure, Retry, Stop
from unified_flow.report import Told, redacted_message, tell
from unified_flow.routing import Step
from unified_flow.sections import written
from unified_flow.services import Services

logger = logging.getLogger(__name__)


async def run_phase(step: Step, ledger: Ledger, services: Services) -> None:
    """Run one phase to its end and record its result.

    Raises the phase's own error, with the original as cause, once the failure is recorded.
    """
    visit = ledger.turn.visit_number(step.phase)
    attempt = 1
    while True:
        started = perf_counter()
        kit: Kit | None = None
        try:
            kit = _enter(step, visit, attempt, ledger, services)
            if step.limit is not None:
                raise step.limit
            output = await BY_NAME[step.phase].run(ledger.turn, kit)
            took = elapsed_ms(started)
            ledger.record(
                PhaseCompleted(phase=step.phase, visit=visit, output=output, duration_ms=took)
            )
            return
        except Exception as exc:  # whatever a phase raises is its failure
            where = kit.where if kit else Where()
            meaning = classify(exc, where.stage)
            failure = Failure(step.phase, where.tool, attempt, meaning, exc)
            action = services.policy.decide(failure)
            if isinstance(action, Retry) and any(not write.done for write in ledger.turn.writes):
                action = Stop()  # a call that may have written is a person's to repeat
            told = None
            if isinstance(action, Stop):
                _flush(ledger)
                told = await asyncio.to_thread(tell, failure, kit, ledger.turn, services)
            _record_failure(failure, visit, told, action, elapsed_ms(started), ledger)
            if told is not None:
                raise _phase_error(failure, told, ledger) from exc
            assert isinstance(action, Retry)
            await asyncio.sleep(action.after_s)
            attempt += 1


def _enter(step: Step, visit: int, attempt: int, ledger: Ledger, services: Services) -> Kit:
    recipe = services.recipe(step.phase)
    kit = Kit(step.phase, recipe, ledger, services)
    model = services.models.name_of(recipe)
    ledger.record(
        PhaseStarted(
            phase=step.phase,
            visit=visit,
            attempt=attempt,
            input_digest=digest([ledger.turn.question, kit.sections]),
            model=model,
            recipe_digest=recipe.digest,
        )
    )
    if model is None:
        ledger.flush()  # the others do before they ask theirs
    return kit


def _flush(ledger: Ledger) -> None:
    """Telling may wait for the queue's lock; what the phase has done is on disk by then, should
    the process not live to say how it ended."""
    try:
        ledger.flush()
    except OSError as exc:
        logger.critical("the journal in %s cannot be written: %s", ledger.folder, exc)


def _record_failure(
    failure: Failure,
    visit: int,
    told: Told | None,
    action: Retry | Stop,
    duration_ms: float,
    ledger: Ledger,
) -> None:
    event = PhaseFailed(
        phase=failure.phase,
        visit=visit,
        attempt=failure.attempt,
        error_type=type(failure.error).__name__,
        error_message=redacted_message(failure.error),
        category=failure.meaning.category,
        tool=failure.tool,
        intervention_id=told.intervention_id if told else None,
        admission=told.admission if told else None,
        action="retry" if isinstance(action, Retry) else action.answer,
        duration_ms=duration_ms,
        environment=told.environment if told else {},
    )
    try:
        ledger.record(event)
    except OSError as exc:
        # The journal's own trouble must not mask the phase's; a person has been told of that.
        logger.critical("the journal in %s cannot be written: %s", ledger.folder, exc)


def _phase_error(failure: Failure, told: Told, ledger: Ledger) -> PhaseError:
    turn, meaning = ledger.turn, failure.meaning
    limit = isinstance(failure.error, LimitReachedError)
    kind = LoopLimitError if limit else BY_NAME[failure.phase].ERROR
    what = f"tool {failure.tool}" if failure.tool else failure.phase
    return kind(
        f"{what} failed: {type(failure.error).__name__}: {redacted_message(failure.error)}",
        phase=failure.phase,
        severity=told.severity,
        turn_id=turn.turn_id,
        request_id=turn.request_id,
        session_id=turn.session_id,
        category=meaning.category,
        code=meaning.code,
        stage=meaning.stage,
        intervention_id=told.intervention_id,
        admission=told.admission,
        context=told.context,
        partial=redact(written(turn.sections)),
        hint=getattr(failure.error, "hint", None),
    )
