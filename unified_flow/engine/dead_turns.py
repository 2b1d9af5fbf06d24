"""Turns whose process died (killed, out of memory, a power cut) reach a person like any failure:
the process that notices them first puts one intervention for each phase that ran. One whose message
comes again goes on without a person."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from interventions import InterventionQueue, InterventionRequest
from interventions.entry import Entry, is_about, is_open
from interventions.errors import QueueError
from interventions.times import from_text
from unified_flow.config.tables import Limits
from unified_flow.engine.environment import beginning
from unified_flow.engine.failure_report import log_failure, ribbon
from unified_flow.engine.routing import Step, next_step
from unified_flow.engine.services import Services
from unified_flow.engine.telemetry.query_log import QueryLog, RequestLine
from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import PROCESS_DIED, JournalVersionError
from unified_flow.turns.events import TurnInterrupted, TurnTakenOver
from unified_flow.turns.ledger import Ledger, Observer
from unified_flow.turns.store import TurnStore
from unified_flow.turns.turn import Turn

MESSAGE = "the process that ran it died: it was killed, ran out of memory, or the power went"
# Whatever ends a third process, and no phase has completed meanwhile, may be the turn itself: then
# a person looks at it. On a slow machine processes are taken for dead, and turns get on.
MOST_SETBACKS = 2
AT_ONCE = 200  # each holds a descriptor while it is looked at
SHOWN = 20


@dataclass(frozen=True)
class DeadTurn:
    """`intervention_id` is None where the failure found no room in the queue."""

    turn_id: int
    phase: str
    intervention_id: str | None


async def report_dead_turns(
    turns: TurnStore,
    queue: InterventionQueue,
    log: QueryLog,
    *,
    among: Sequence[int] | None = None,
) -> list[DeadTurn]:
    """Report the dead turns that nobody has, of the store's unreleased turns or `among` others.
    Afterwards each is interrupted, and can be resumed; one that a living process runs is left
    alone. Raises OSError where the turns cannot be read; of the queue's own trouble nothing."""
    seen = await turns.unreleased() if among is None else among
    found: list[DeadTurn] = []
    if seen:
        async with turns.delivery(PROCESS_DIED):  # of processes that start at once, one reports
            for first in range(0, len(seen), AT_ONCE):
                found += await _report(seen[first : first + AT_ONCE], turns, queue, log)
    return found


async def _report(
    seen: Sequence[int], turns: TurnStore, queue: InterventionQueue, log: QueryLog
) -> list[DeadTurn]:
    found: list[DeadTurn] = []
    held: dict[str, list[Ledger]] = defaultdict(list)
    async with AsyncExitStack() as leases:
        for turn_id in seen:
            with suppress(OSError, RetrievalError):  # it is run again, gone, or damaged
                ledger = await Ledger.open(turns, turn_id)
                leases.push_async_callback(ledger.lease.release)
                if ledger.turn.turn_id and ledger.turn.status == "running":
                    held[_phase(ledger.turn)].append(ledger)
        for phase, ledgers in held.items():
            dead = [ledger.turn for ledger in ledgers]
            reported = await asyncio.to_thread(_put, phase, dead, queue)
            for ledger in ledgers:
                turn_id = ledger.turn.turn_id
                intervention_id = reported[turn_id]
                found.append(DeadTurn(turn_id, phase, intervention_id))
                with suppress(OSError):  # the disk is full; the queue knows of it
                    await ledger.record(TurnInterrupted(phase=phase, reason=PROCESS_DIED))
                    await ledger.lease.flush()
                    line = RequestLine.of_turn(ledger.turn)
                    failed = {"type": PROCESS_DIED, "intervention_id": intervention_id}
                    log.append(line.model_copy(update={"error": True, **failed}))
    return found


def _phase(turn: Turn) -> str:
    """The one that ran, else the next."""
    step = next_step(turn, Limits())
    return turn.stopped_in or (step.phase if isinstance(step, Step) else "save")


def _put(phase: str, dead: Sequence[Turn], queue: InterventionQueue) -> dict[int, str | None]:
    """The intervention of each. A process may have died when it had put the failure, and whoever
    noticed may have died too."""
    entries: Sequence[Entry] = ()
    with suppress(QueueError):  # then the failure goes to the emergency log
        entries = [entry for entry in queue.entries() if is_open(entry) and entry["phase"] == phase]
    reported = {turn.turn_id: _reported(turn, entries) for turn in dead}
    if new := [turn for turn in dead if reported[turn.turn_id] is None]:
        request = _request(phase, new)
        log_failure(request, service="answer_pipeline")
        admission = queue.put(request)
        reported |= {turn.turn_id: admission.intervention_id for turn in new}
    return reported


def _reported(turn: Turn, entries: Sequence[Entry]) -> str | None:
    since = turn.runs_since
    about = (entry for entry in entries if is_about(entry, turn.turn_id))
    return next((e["id"] for e in about if since and from_text(e["last_seen"]) >= since), None)


def _request(phase: str, dead: Sequence[Turn]) -> InterventionRequest:
    first, *others = dead
    shown = [
        {"turn_id": turn.turn_id, "question": turn.question, "run_by": str(turn.runner)}
        for turn in dead[:SHOWN]
    ]
    return InterventionRequest.model_validate(
        {
            "type": "error",
            "severity": "high",
            "phase": phase,
            "error_type": PROCESS_DIED,
            "error_message": MESSAGE,
            "error_category": "unknown_error",
            "session_id": first.session_id,
            "turn_id": first.turn_id,
            "turns": [turn.turn_id for turn in others],
            "request_id": first.request_id,
            "context": {
                "query": first.question,
                "turn": {"ribbon": ribbon(first.interrupted()), "question": first.question},
                "died": shown,
                "hint": "all that were cut off go on with: unified-flow turns recover --all",
            },
        }
    )


def may_be_taken_over(turn: Turn) -> bool:
    """For a turn that nobody runs. Only a person repeats a call that may have written."""
    stopped = turn.status in ("running", "interrupted")
    return stopped and turn.setbacks < MOST_SETBACKS and not turn.unfinished_writes


async def take_over(
    turn_id: int, request_id: str, services: Services, observer: Observer | None = None
) -> Ledger | None:
    """The turn of that request, to go on here where it stands; None if somebody runs it, or nobody
    may. Raises JournalVersionError: a newer version goes on with it."""
    try:
        ledger = await Ledger.open(services.turns, turn_id, observer)
    except JournalVersionError:
        raise
    except (OSError, RetrievalError):
        return None
    if ledger.turn.request_id == request_id and may_be_taken_over(ledger.turn):
        try:
            await ledger.begin(TurnTakenOver(**beginning(services)))
            return ledger
        except OSError:
            pass
    await ledger.lease.release()
    return None
