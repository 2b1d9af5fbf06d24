"""The one place that catches what a phase raises: log, intervention, typed error.

What a failure does is the policy's decision; what a person reads is `failure_report.py`'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

from interventions.secrets.redaction import redact_text
from unified_flow.engine.failure_report import FailureReport, report_failure, severity_of
from unified_flow.engine.live_context import LivePhaseContext
from unified_flow.engine.outcome import phase_error
from unified_flow.engine.phase_table import BY_NAME
from unified_flow.engine.prefetch import Prefetch
from unified_flow.engine.routing import Step
from unified_flow.engine.services import Services
from unified_flow.engine.turn_run import CallSite, TurnRun
from unified_flow.errors import LimitReachedError, wire_name
from unified_flow.errors.classification import classify, kind_of
from unified_flow.lib.clock import elapsed_ms
from unified_flow.lib.threads import ended
from unified_flow.phases.errors import PhaseError
from unified_flow.policies import Action, Failure, Retry, Stop
from unified_flow.turns.events import Limit, PhaseCompleted, PhaseFailed, PhaseStarted
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.passage import Passage
from unified_flow.turns.sources import retrieved_passages
from unified_flow.turns.store import ReportingLease

logger = logging.getLogger(__name__)

REPORT_TIMEOUT_S = 1.0


async def run_phase(step: Step, ledger: Ledger, run: TurnRun, prefetch: Prefetch | None) -> None:
    """Run one phase to its end and record its result.

    Raises the phase's own error, with the original as cause, once the failure is recorded. After
    several attempts that is the failure of the first.
    """
    number = ledger.turn.visit_number(step.phase)
    await _Visit(step, ledger, run.services, run, prefetch, number).run()


@dataclass
class _Visit:
    """One visit of a phase, in one attempt or more; `model` is the one of the next."""

    step: Step
    ledger: Ledger
    services: Services
    turn_run: TurnRun
    prefetch: Prefetch | None
    number: int
    attempt: int = 0
    model: str | None = None
    first: tuple[Failure, LivePhaseContext | None] | None = None
    report: FailureReport | None = None

    async def run(self) -> None:
        while (retry := await self._try()) is not None:
            self.model = retry.model
            await self.services.pause(retry.after_s)

    async def _try(self) -> Retry | None:
        """None once the phase has completed, else how to try again; raises as `run_phase` does."""
        self.attempt += 1
        phase, started = self.step.phase, perf_counter()
        context: LivePhaseContext | None = None
        try:
            context = await self._enter()
            if self.step.limit is not None:
                raise self.step.limit
            result = BY_NAME[phase].run(self.ledger.turn, context)
            if self.prefetch is not None:
                result = self.prefetch.run_beside(result, context.set_call_site)
            output = await self.turn_run.within_time(result)
            took = elapsed_ms(started)
            await self.ledger.record(
                PhaseCompleted(phase=phase, visit=self.number, output=output, duration_ms=took)
            )
            self.services.guardrails.succeeded(self.attempt)
            return None
        except Exception as exc:  # noqa: BLE001 - whatever a phase raises is its failure
            failure = self._failure(exc, context)
            self.first = self.first or (failure, context)
            took, policy = elapsed_ms(started), self.services.policy
            # Only a person repeats a call that may have written.
            retry = None if self.ledger.turn.unfinished_writes else policy.again(failure)
            action: Action = retry or policy.ends(self.first[0])
            if isinstance(action, Stop):
                raise await self._stop(action, took) from self.first[0].error
            # Without a report nobody would learn of a model that is replaced for days.
            replaced = action.model not in (None, failure.model)
            await self._record(failure, action, took, report=self.first if replaced else None)
            self.services.guardrails.tried(self.attempt, redact_text(str(exc)))
            return action

    async def _enter(self) -> LivePhaseContext:
        ledger, services, phase = self.ledger, self.services, self.step.phase
        recipe = self.turn_run.recipe(phase)
        context = LivePhaseContext(
            phase, recipe, ledger, services, model=self.model, prefetch=self.prefetch
        )
        await ledger.record(
            PhaseStarted(
                phase=phase,
                visit=self.number,
                attempt=self.attempt,
                model=self.model or services.models.name_of(recipe.head),
                recipe_digest=recipe.digest,
            )
        )
        if recipe.head.role == "none":
            await ledger.checkpoint()  # visible to observers and to recovery without a model call
        return context

    def _failure(self, exc: Exception, context: LivePhaseContext | None) -> Failure:
        site = context.call_site if context else CallSite()
        meaning = classify(exc, site.stage)
        left_s = self.turn_run.left_s
        return Failure(self.step.phase, site.tool, self.attempt, meaning, exc, site.model, left_s)

    async def _stop(self, action: Stop, took_ms: float) -> PhaseError:
        """Report and record the failure; the error to raise."""
        assert self.first is not None
        failure, context = replace(self.first[0], attempt=self.attempt), self.first[1]
        prefetched: list[Passage] = []
        try:
            if not isinstance(self.ledger.lease, ReportingLease):
                await self._report_once(failure, context)
            found_nothing = action.answer == "degrade" and not retrieved_passages(self.ledger.turn)
            if found_nothing and self.prefetch is not None:
                prefetched = await self.prefetch.passages()
        finally:
            await self._record(failure, action, took_ms, prefetched, report=(failure, context))
        return phase_error(self.ledger.turn, self.services.settings.language)

    async def _report_once(
        self, failure: Failure, context: LivePhaseContext | None
    ) -> FailureReport:
        """One report a visit. On cancellation, finish reporting, then re-raise: the intervention
        refers to journal lines that must exist."""
        if self.report is not None:
            return self.report
        ledger, services = self.ledger, self.services
        await self._flush()
        reporting = asyncio.create_task(
            asyncio.to_thread(report_failure, failure, context, ledger.turn, services)
        )
        services.reporting[reporting] = ledger.turn.turn_id
        reporting.add_done_callback(services.reporting.pop)
        # A policy with time-outs does not let the queue's lock delay the answer.
        bounded = services.policy.bounds.pipeline_s is not None
        try:
            timeout = REPORT_TIMEOUT_S if bounded else None
            done, _ = await asyncio.wait({reporting}, timeout=timeout)
        except asyncio.CancelledError:
            with suppress(asyncio.CancelledError):
                await ended(reporting)
            self.report = reporting.result()
            raise
        self.report = reporting.result() if done else FailureReport()
        return self.report

    async def _flush(self) -> None:
        """Put the phase's lines on disk before waiting for the queue's lock, in case the process
        dies meanwhile."""
        try:
            await self.ledger.lease.flush()
        except OSError as exc:
            turn_id = self.ledger.turn.turn_id
            logger.critical("the journal of turn %s cannot be written: %s", turn_id, exc)

    async def _record(
        self,
        failure: Failure,
        action: Action,
        took_ms: float,
        prefetched: Sequence[Passage] = (),
        *,
        report: tuple[Failure, LivePhaseContext | None] | None,
    ) -> None:
        """`report`: what the visit's report is made of, if it is to have one by now."""
        event_of = partial(self._event, failure, action, took_ms, prefetched)
        ledger, lease = self.ledger, self.ledger.lease
        if report is None:
            await ledger.record_always(event_of(None))
        elif self.report is None and isinstance(lease, ReportingLease):
            put = partial(report_failure, *report, ledger.turn, self.services)
            self.report, event = await lease.append_with(put, event_of)
            await ledger.took(event)
        else:
            await ledger.record_always(event_of(await self._report_once(*report)))

    def _event(
        self,
        failure: Failure,
        action: Action,
        took_ms: float,
        prefetched: Sequence[Passage],
        report: FailureReport | None,
    ) -> PhaseFailed:
        error, hint = failure.error, getattr(failure.error, "hint", None)
        behind, limited = error.__cause__, isinstance(error, LimitReachedError)
        return PhaseFailed(
            phase=failure.phase,
            visit=self.number,
            attempt=failure.attempt,
            error_type=wire_name(error),
            error_message=redact_text(str(error)),
            category=failure.meaning.category,
            code=failure.meaning.code,
            kind=kind_of(error),
            stage=failure.meaning.stage,
            severity=severity_of(failure),
            hint=hint and redact_text(hint),
            cause=redact_text(f"{type(behind).__name__}: {behind}") if behind is not None else None,
            retry_after_s=failure.retry_after_s,
            limit=Limit.model_validate(error, from_attributes=True) if limited else None,
            tool=failure.tool,
            intervention_id=report.intervention_id if report else None,
            admission=report.admission if report else None,
            action="retry" if isinstance(action, Retry) else action.answer,
            duration_ms=took_ms,
            environment=report.environment if report else {},
            retrieved=[passage.model_dump(mode="json") for passage in prefetched],
        )
