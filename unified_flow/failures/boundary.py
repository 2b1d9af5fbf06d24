"""The one place that catches: any exception of a phase becomes log, intervention, typed error.

What the failure does is the policy's to say; how it is told is `report.py`'s.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from time import perf_counter

from unified_flow.clock import elapsed_ms
from unified_flow.errors import LimitReachedError, LoopLimitError, PhaseError
from unified_flow.failures.classify import classify
from unified_flow.failures.report import Told, redacted_message, tell, untold
from unified_flow.phases import BY_NAME
from unified_flow.policies import Action, Failure, Retry, Stop
from unified_flow.policies.kinds import kind_of
from unified_flow.policies.tries import Again, go_on
from unified_flow.retrieval import Passage
from unified_flow.running.course import Course
from unified_flow.running.kit import Kit
from unified_flow.running.routing import Step
from unified_flow.running.settling import ended
from unified_flow.running.where import Where
from unified_flow.services import Services
from unified_flow.turns.events import Limit, PhaseCompleted, PhaseFailed, PhaseStarted
from unified_flow.turns.journal import digest
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.turn import Turn

logger = logging.getLogger(__name__)

TELL_S = 1.0


async def run_phase(
    step: Step, ledger: Ledger, services: Services, course: Course | None = None
) -> None:
    """Run one phase to its end and record its result.

    Raises the phase's own error, with the original as cause, once the failure is recorded. Where
    the policy has let it try again, that is about the try that failed first.
    """
    visit = _Visit(step, ledger, services, course or Course())
    again = await visit.run()
    if again is not None:
        await go_on(again, visit.run, pause=services.pause, tell=services.guardrails.tried)


class _Visit:
    """One visit of a phase, in one try or more."""

    def __init__(self, step: Step, ledger: Ledger, services: Services, course: Course) -> None:
        self._step = step
        self._ledger = ledger
        self._services = services
        self._course = course
        self._number = ledger.turn.visit_number(step.phase)
        self._attempt = 0
        self._model: str | None = None
        self._earliest: tuple[Failure, Kit | None] | None = None
        self._told: Told | None = None

    async def run(self) -> Again | None:
        """The next try. None if the phase has completed; raises what `run_phase` does."""
        self._attempt += 1
        step, course, started = self._step, self._course, perf_counter()
        kit: Kit | None = None
        try:
            kit = self._enter()
            if step.limit is not None:
                raise step.limit
            output = await course.run(BY_NAME[step.phase].run(self._ledger.turn, kit), kit.stand)
            took = elapsed_ms(started)
            self._ledger.record(
                PhaseCompleted(
                    phase=step.phase, visit=self._number, output=output, duration_ms=took
                )
            )
            self._services.guardrails.succeeded(self._attempt)
            return None
        except Exception as exc:  # noqa: BLE001 - whatever a phase raises is its failure
            failure = _failure(exc, step.phase, self._attempt, kit, course)
            self._earliest = self._earliest or (failure, kit)
            action = _decide(failure, self._earliest[0], self._ledger, self._services)
            took = elapsed_ms(started)
            if isinstance(action, Stop):
                raise await self._ended(action, took) from self._earliest[0].error
            # A model that is given up for another would else be down for days and nobody know.
            given_up = action.model not in (None, failure.model)
            told = await self._tell(self._earliest) if given_up else None
            self._record(failure, told, action, took)
            self._model = action.model
            return Again(self._attempt, action.after_s, redacted_message(exc))

    def _enter(self) -> Kit:
        ledger, services, phase = self._ledger, self._services, self._step.phase
        recipe = self._course.recipe(services, phase)
        prefetch = self._course.prefetch
        kit = Kit(phase, recipe, ledger, services, model=self._model, prefetch=prefetch)
        ledger.record(
            PhaseStarted(
                phase=phase,
                visit=self._number,
                attempt=self._attempt,
                input_digest=digest([ledger.turn.question, kit.sections]),
                model=self._model or services.models.name_of(recipe),
                recipe_digest=recipe.digest,
            )
        )
        if recipe.head.role == "none":
            ledger.checkpoint()  # a phase that asks no model may be killed in, and watched, too
        return kit

    async def _ended(self, action: Stop, took_ms: float) -> PhaseError:
        """The error of a phase that is not tried again, told and recorded."""
        assert self._earliest is not None
        failure, kit = replace(self._earliest[0], attempt=self._attempt), self._earliest[1]
        course, ledger = self._course, self._ledger
        try:
            told = await self._tell((failure, kit))
        except asyncio.CancelledError:
            assert self._told is not None
            self._record(failure, self._told, action, took_ms)
            raise
        self._record(failure, told, action, took_ms)
        found = await course.retrieved(ledger.turn) if action.answer == "degrade" else []
        return _phase_error(failure, told, action, found, ledger.turn)

    async def _tell(self, of: tuple[Failure, Kit | None]) -> Told:
        """A person hears of the visit's failure, once. Who is cancelled meanwhile goes when that is
        done: the intervention comes all the same, and what it is about must be there then."""
        if self._told is not None:
            return self._told
        (failure, kit), ledger, services = of, self._ledger, self._services
        _flush(ledger)
        self._course.telling = telling = asyncio.create_task(
            asyncio.to_thread(tell, failure, kit, ledger.turn, services)
        )
        try:
            self._told = await _told_in_time(telling, failure, ledger, services)
        except asyncio.CancelledError:
            with suppress(asyncio.CancelledError):
                await ended(telling)
            self._told = telling.result()
            raise
        return self._told

    def _record(self, failure: Failure, told: Told | None, action: Action, took_ms: float) -> None:
        self._ledger.insist(
            PhaseFailed(
                phase=failure.phase,
                visit=self._number,
                attempt=failure.attempt,
                error_type=type(failure.error).__name__,
                error_message=redacted_message(failure.error),
                category=failure.meaning.category,
                code=failure.meaning.code,
                kind=kind_of(failure.error),
                limit=_limit(failure.error),
                tool=failure.tool,
                intervention_id=told.intervention_id if told else None,
                admission=told.admission if told else None,
                action="retry" if isinstance(action, Retry) else action.answer,
                duration_ms=took_ms,
                environment=told.environment if told else {},
            )
        )


def _limit(error: Exception) -> Limit | None:
    if not isinstance(error, LimitReachedError):
        return None
    return Limit(loop=error.loop, iterations=error.iterations, limit=error.limit)


def _failure(exc: Exception, phase: str, attempt: int, kit: Kit | None, course: Course) -> Failure:
    where = kit.where if kit else Where()
    meaning = classify(exc, where.stage)
    return Failure(phase, where.tool, attempt, meaning, exc, where.model, course.left_s)


def _decide(failure: Failure, first: Failure, ledger: Ledger, services: Services) -> Action:
    """Another try, else what the policy makes of the try that failed first. A call that may have
    written is a person's to repeat."""
    may_repeat = all(write.done for write in ledger.turn.writes)
    again = services.policy.again(failure) if may_repeat else None
    return again or services.policy.ends(first)


async def _told_in_time(
    telling: asyncio.Task[Told], failure: Failure, ledger: Ledger, services: Services
) -> Told:
    """Under a policy with time-outs a queue that somebody holds must not hold the answer too: it
    is told all the same, and the answer does not know under which name."""
    bounded = services.policy.bounds.pipeline_s is not None
    done, _ = await asyncio.wait({telling}, timeout=TELL_S if bounded else None)
    return telling.result() if done else untold(failure, ledger.turn, services)


def _flush(ledger: Ledger) -> None:
    """Telling may wait for the queue's lock; what the phase has done is on disk by then, should
    the process not live to say how it ended."""
    try:
        ledger.flush()
    except OSError as exc:
        logger.critical("the journal in %s cannot be written: %s", ledger.folder, exc)


def _phase_error(
    failure: Failure, told: Told, stop: Stop, retrieved: list[Passage], turn: Turn
) -> PhaseError:
    limit = isinstance(failure.error, LimitReachedError)
    kind = LoopLimitError if limit else BY_NAME[failure.phase].ERROR
    what = f"tool {failure.tool}" if failure.tool else failure.phase
    said = f"{what} failed: {type(failure.error).__name__}: {redacted_message(failure.error)}"
    return kind(said, turn=turn, failure=failure, told=told, stop=stop, retrieved=retrieved)
