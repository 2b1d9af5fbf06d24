"""One turn, from where it stands to its end: the loop that follows what routing says comes next."""

from __future__ import annotations

import asyncio
import logging
from contextlib import nullcontext
from time import perf_counter
from typing import Literal

from unified_flow.engine.boundary import run_phase
from unified_flow.engine.prefetch import Prefetch
from unified_flow.engine.routing import End, next_step
from unified_flow.engine.turn_run import TurnRun
from unified_flow.lib.clock import elapsed_ms
from unified_flow.phases.errors import PhaseError, SaveError
from unified_flow.turns.events import TurnCompleted, TurnInterrupted
from unified_flow.turns.ledger import Ledger
from unified_flow.turns.turn import Turn

Ended = Literal["answered", "clarify", "silenced"]

logger = logging.getLogger(__name__)


async def run_turn(ledger: Ledger, run: TurnRun) -> Turn:
    """The turn to its end, which is journalled. Raises as `UnifiedFlow.process` does."""
    traces, started = run.services.traces, perf_counter()
    with traces.of(ledger) if traces is not None else nullcontext():
        try:
            status = await _run_phases(ledger, run)
            saved = status == "answered" and ledger.turn.persist
        except SaveError:
            # The answer stands: a failed save must not cost the user what the turn found.
            status, saved = "answered", False
        except (asyncio.CancelledError, KeyboardInterrupt) as exc:
            if ledger.turn.status != "failed":  # cancelled while its failure was reported
                interrupted = type(exc).__name__
                await _close(
                    ledger, TurnInterrupted(phase=ledger.turn.stopped_in, reason=interrupted)
                )
            raise
        except PhaseError as exc:
            if exc.answer == "silence":
                await run.services.guardrails.failed(ledger.turn, exc)
            raise
        took = elapsed_ms(started)
        await _close(ledger, TurnCompleted(status=status, saved=saved, duration_ms=took))
    return ledger.turn


async def _run_phases(ledger: Ledger, run: TurnRun) -> Ended:
    """Phase after phase, between the guardrails; how the turn ended."""
    guardrails = run.services.guardrails
    if not await guardrails.admits(ledger, run.ends_at):
        return "silenced"
    prefetch = Prefetch.begin(ledger.turn, run)
    try:
        while True:
            step = next_step(ledger.turn, run.services.settings.limits)
            turn = ledger.turn
            if isinstance(step, End):
                if step.status == "answered":
                    return "answered"
                reply = turn.clarification_question or ""
                released = await guardrails.releases(ledger, reply, run.ends_at)
                return "clarify" if released else "silenced"
            # The reply is checked before it is saved, so that hardly anything is taken back.
            if step.phase == "save":
                reply = turn.response or ""
                if not await guardrails.releases(ledger, reply, run.ends_at):
                    return "silenced"
            await run_phase(step, ledger, run, prefetch)
    finally:
        if prefetch is not None:
            prefetch.end()


async def _close(ledger: Ledger, event: TurnCompleted | TurnInterrupted) -> None:
    """The turn's last line. It adds nothing to what the phases have written, so that a disk
    which fills up just now must cost neither the answer nor the cancellation."""
    try:
        await ledger.record(event)
        await ledger.checkpoint()
    except OSError as exc:
        logger.critical("turn %s lacks its last line: %s", ledger.turn.turn_id, exc)
