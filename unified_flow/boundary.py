"""The one place that catches: any exception of a phase becomes log, intervention, typed error.

What the failure does is the policy's to say; how it is told is `report.py`'s.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from time import perf_counter

from interventions.redaction import redact
from unified_flow.classify import classify
from unified_flow.clock import elapsed_ms
from unified_flow.course import Course
from unified_flow.errors import LimitReachedError, LoopLimitError, PhaseError
from unified_flow.events import PhaseCompleted, PhaseFailed, PhaseStarted
from unified_flow.journal import digest
from unified_flow.kit import Kit
from unified_flow.ledger import Ledger
from unified_flow.phases import BY_NAME
from unified_flow.policies import Action, Failure, Retry, Stop
from unified_flow.policies.graceful import retry_after_s
from unified_flow.report import Told, redacted_message, tell, untold
from unified_flow.retrieval import Passage
from unified_flow.routing import Step
from unified_flow.sections import written
from unified_flow.services import Services
from unified_flow.where import Where

logger = logging.getLogger(__name__)

TELL_S = 1.0


async def run_phase(
    step: Step, ledger: Ledger, services: Services, course: Course | None = None
) -> None:
    """Run one phase to its end and record its result.

    Raises the phase's own error, with the original as cause, once the failure is recorded. Where
    the policy has let it try again, that is about the try that failed first.
    """
    course = course or Course()
    visit = ledger.turn.visit_number(step.phase)
    attempt, model = 1, None
    earliest: tuple[Failure, Kit | None] | None = None
    while True:
        started = perf_counter()
        kit: Kit | None = None
        try:
            kit = _enter(step, visit, attempt, ledger, services, course, model)
            if step.limit is not None:
                raise step.limit
            output = await course.run(BY_NAME[step.phase].run(ledger.turn, kit), kit.stand)
            took = elapsed_ms(started)
            ledger.record(
                PhaseCompleted(phase=step.phase, visit=visit, output=output, duration_ms=took)
            )
            services.guardrails.succeeded(attempt)
            return
        except Exception as exc:  # noqa: BLE001 - whatever a phase raises is its failure
            failure = _failure(exc, step.phase, attempt, kit, course)
            earliest = earliest or (failure, kit)
            action = _decide(failure, earliest[0], ledger, services)
            took = elapsed_ms(started)
            if isinstance(action, Retry):
                _record_failure(failure, visit, None, action, took, ledger)
                services.guardrails.tried(attempt, redacted_message(exc))
                await services.pause(action.after_s)
                attempt, model = attempt + 1, action.model
                continue
            failure, kit = replace(earliest[0], attempt=attempt), earliest[1]
            _flush(ledger)
            course.telling = asyncio.create_task(
                asyncio.to_thread(tell, failure, kit, ledger.turn, services)
            )
            try:
                told = await _told_in_time(course.telling, failure, ledger, services)
            except asyncio.CancelledError:
                # The intervention comes all the same, and what it is about must be there then.
                told = await _whatever_happens(course.telling)
                _record_failure(failure, visit, told, action, took, ledger)
                raise
            _record_failure(failure, visit, told, action, took, ledger)
            found = await course.retrieved(ledger.turn) if action.answer == "degrade" else []
            raise _phase_error(failure, told, action, found, ledger) from failure.error


def _failure(exc: Exception, phase: str, attempt: int, kit: Kit | None, course: Course) -> Failure:
    where = kit.where if kit else Where()
    meaning = classify(exc, where.stage)
    return Failure(phase, where.tool, attempt, meaning, exc, where.model, course.left_s)


def _decide(failure: Failure, first: Failure, ledger: Ledger, services: Services) -> Action:
    """What the policy says; at the end of several tries, what it says of the first of them."""
    action = services.policy.decide(failure)
    if isinstance(action, Retry):
        if any(not write.done for write in ledger.turn.writes):
            return Stop()  # a call that may have written is a person's to repeat
        return action
    if failure is first:
        return action
    of_first = services.policy.decide(replace(first, attempt=failure.attempt, left_s=0.0))
    return of_first if isinstance(of_first, Stop) else action


async def _told_in_time(
    telling: asyncio.Task[Told], failure: Failure, ledger: Ledger, services: Services
) -> Told:
    """Under a policy with time-outs a queue that somebody holds must not hold the answer too: it
    is told all the same, and the answer does not know under which name."""
    bounded = services.policy.bounds.pipeline_s is not None
    done, _ = await asyncio.wait({telling}, timeout=TELL_S if bounded else None)
    return telling.result() if done else untold(failure, ledger.turn, services)


async def _whatever_happens(telling: asyncio.Task[Told]) -> Told:
    """Its result, however often whoever waits for it is cancelled meanwhile."""
    while not telling.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait({telling})
    return telling.result()


def _enter(
    step: Step,
    visit: int,
    attempt: int,
    ledger: Ledger,
    services: Services,
    course: Course,
    model: str | None,
) -> Kit:
    recipe = services.recipe(step.phase)
    kit = Kit(step.phase, recipe, ledger, services, model=model, prefetch=course.prefetch)
    model = model or services.models.name_of(recipe)
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
    if recipe.head.role == "none":
        ledger.flush()  # a phase that asks no model may be killed in, and watched, too
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
    ledger.insist(
        PhaseFailed(
            phase=failure.phase,
            visit=visit,
            attempt=failure.attempt,
            error_type=type(failure.error).__name__,
            error_message=redacted_message(failure.error),
            category=failure.meaning.category,
            code=failure.meaning.code,
            tool=failure.tool,
            intervention_id=told.intervention_id if told else None,
            admission=told.admission if told else None,
            action="retry" if isinstance(action, Retry) else action.answer,
            duration_ms=duration_ms,
            environment=told.environment if told else {},
        )
    )


def _phase_error(
    failure: Failure, told: Told, action: Stop, retrieved: list[Passage], ledger: Ledger
) -> PhaseError:
    turn, meaning = ledger.turn, failure.meaning
    wait_s = action.retry_after_s
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
        answer=action.answer,
        scope=failure.scope,
        timed_out=failure.timed_out,
        retry_after_s=retry_after_s(failure.error) if wait_s is None else wait_s,
        retrieved=retrieved,
    )
