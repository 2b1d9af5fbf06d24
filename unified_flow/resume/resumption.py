"""Resuming a turn as a person expects it: refused with a reason, announced, verified, closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from interventions import InterventionQueue
from interventions.errors import QueueError
from interventions.secrets.redaction import redact_text
from unified_flow.engine import environment
from unified_flow.engine.resolution import Settled, Word, needed_by_others, own_intervention, settle
from unified_flow.engine.services import Services
from unified_flow.engine.telemetry.querylog import LogRequest
from unified_flow.errors.turns import NotResumableError
from unified_flow.flow import UnifiedFlow
from unified_flow.phases.errors import PhaseError
from unified_flow.resume import edited_input, giving
from unified_flow.resume.comparison import difference
from unified_flow.resume.entry_phase import where_to_go_on
from unified_flow.resume.taking import let_go_on, take_up
from unified_flow.tools.permission.grants import Scope
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.events import TurnResumed
from unified_flow.turns.journal import digest
from unified_flow.turns.ledger import Ledger, Observer
from unified_flow.turns.runner import this_process
from unified_flow.turns.turn import Failure, Turn, Write

logger = logging.getLogger("unified_flow")


@dataclass(frozen=True)
class Resumption:
    """What the person asks for.

    `note` closes the intervention once its phase has completed; None leaves that to the caller.
    `edited` replaces what the phase `edited_for` reads (events.TurnResumed), and was made of the
    input with the digest `edited_from`. `asked_about` are the
    calls for which a person chose `rerun_tools` or `tools_done`. `grant` (once, session or always)
    and `answer` are for the call at which the turn stopped (giving.py).
    """

    from_phase: str | None = None
    rerun_tools: bool = False
    tools_done: bool = False
    asked_about: tuple[Write, ...] = ()
    intervention_id: str | None = None
    note: str | None = None
    by: str | None = None
    via: str = "library"
    edited: Mapping[str, Any] = field(default_factory=dict)
    edited_for: str | None = None
    edited_from: str | None = None
    grant: str | None = None
    answer: str | None = None


@dataclass(frozen=True)
class Resumed:
    """How it went. `before` is the failure that was retried. `passed`: the phase that had failed
    has completed since, and not failed anew. `closed` is the intervention that was resolved by
    it; `waiting` is a turn for whose sake it stays open. `trouble` is the queue's, if any."""

    turn: Turn
    error: PhaseError | None
    before: Failure | None
    went_on: TurnResumed
    passed: bool
    closed: str | None = None
    waiting: int | None = None
    trouble: str | None = None

    @property
    def failed(self) -> bool:
        """A phase failed, the one that had failed or a later one."""
        return self.error is not None or self.turn.failure is not None

    @property
    def failed_again(self) -> bool:
        return self.failed and not self.passed

    @property
    def status(self) -> str:
        """How the turn ended; `failed` also where the journal had no room for the failure."""
        return "failed" if self.failed else self.turn.status

    @property
    def difference(self) -> list[str]:
        """In what the failure now differs from the one before; empty without two."""
        return difference(self.before, self.turn.failure)


async def resume_turn(
    flow: UnifiedFlow,
    turn_id: int,
    wanted: Resumption,
    *,
    observer: Observer | None = None,
    log: LogRequest | None = None,
) -> Resumed:
    """Let the turn go on. A failure of the resumed turn is in the answer, not raised.

    Raises NoSuchTurnError, NotResumableError, TurnBusyError, RetrievalError for a damaged journal,
    and ConfigError or RecipeError for settings that are wrong; nothing has happened then.
    `observer` sees the `turn_resumed` event, with what has changed, before anything runs; `log` as
    in `UnifiedFlow.process`.
    """
    services = flow.services
    with take_up(services.folders, turn_id, observer) as ledger:
        before = ledger.turn
        try:
            plan = _plan(services, before, wanted)
        except NotResumableError as exc:
            refused: NotResumableError | None = exc
        else:
            refused = None
            let_go_on(ledger, plan.event)
            if plan.keep is not None:
                tool, scope = plan.keep
                services.gate.remember(tool, cast(Scope, scope), session_id=before.session_id)
            error = await _ran(flow, ledger, log)
        turn = ledger.turn  # as soon as its lock is free, what is on disk may be another's doing
    # The queue's lock may take its time, and this loop may serve others.
    if refused is not None:
        await asyncio.to_thread(_close_what_was_left, services, before, wanted)
        raise refused
    return await asyncio.to_thread(_settled, services, wanted, before, plan.event, turn, error)


async def _ran(flow: UnifiedFlow, ledger: Ledger, log: LogRequest | None) -> PhaseError | None:
    try:
        await flow.resume(ledger, log)
    except PhaseError as exc:
        return exc
    return None


def _close_what_was_left(services: Services, turn: Turn, wanted: Resumption) -> None:
    """The process that finished the turn may have died, or found the queue locked, before it could
    close the intervention."""
    retry = turn.retry
    if retry is None:
        return
    note = retry.note if wanted.note is None else wanted.note
    word = Word(note, retry.by, retry.via, _said_of(turn, turn, wanted))
    try:
        archive = TurnArchive(services.folders)
        settle(turn, services.queue, archive, word, outcome=turn.status)
    except QueueError as exc:
        logger.warning("what turn %s has got past is still open: %s", turn.turn_id, exc)


def _said_of(before: Turn, turn: Turn, wanted: Resumption) -> frozenset[str]:
    """The retried intervention, the one that was named, and one whose retry got past its phase
    before, when it could not be closed."""
    late = before.retry if before.retry is not None and before.retry.passed else None
    retries = [each.intervention_id for each in (late, turn.retry) if each is not None]
    return frozenset([*retries, *filter(None, [wanted.intervention_id])])


def _settled(
    services: Services,
    wanted: Resumption,
    before: Turn,
    event: TurnResumed,
    turn: Turn,
    error: PhaseError | None,
) -> Resumed:
    """Close what the turn has got past, and mark what it has left behind."""
    queue, archive = services.queue, TurnArchive(services.folders)
    # A retry that was stopped is none: what it would have been held against counts still.
    failed = before.failure or before.last_failure
    done = Resumed(turn, error, failed, event, _has_passed(turn, failed, error))
    word = Word(event.note, event.by, event.via, _said_of(before, turn, wanted))
    try:
        outcome = turn.status if error is None else f"failed in {error.phase}"
        settled = settle(turn, queue, archive, word, outcome=outcome)
        if error is None and turn.failure is None and not turn.waits and not settled.waiting:
            # Others of its interventions are about failures that it has left behind.
            why = f"turn {turn.turn_id} was resumed by {event.by} and is {turn.status}"
            keep = needed_by_others(turn, queue, archive)
            queue.supersede(turn.turn_id, why, keep=keep, by=event.by, via=event.via)
        closed = _closed(turn, queue, settled)
    except QueueError as exc:
        return replace(done, trouble=str(exc))
    waiting = None if closed else next(iter(settled.waiting.values()), None)
    return replace(done, closed=closed, waiting=waiting)


def _has_passed(turn: Turn, failed: Failure | None, error: PhaseError | None) -> bool:
    """The phase that had failed has completed since, and not failed anew; nothing had failed in a
    turn that was stopped."""
    if turn.retry is not None:
        return turn.retry.passed and (error is None or error.phase != turn.retry.phase)
    return failed is None or turn.is_past(failed.phase)


def _closed(turn: Turn, queue: InterventionQueue, settled: Settled) -> str | None:
    """The retried intervention, if it was resolved just now or when a later failure was told; else
    another that was."""
    if turn.retry is not None and turn.retry.passed:
        entry = queue.find(turn.retry.intervention_id)
        if entry["resolved_at"] and entry["resolutions"][-1].get("verified"):
            return str(entry["id"])
    return next(iter(settled.solved), None)


@dataclass(frozen=True)
class Plan:
    """How the turn goes on; `keep` is a leave (tool, scope) that outlives the call."""

    event: TurnResumed
    keep: tuple[str, str] | None


def _plan(services: Services, turn: Turn, wanted: Resumption) -> Plan:
    """Looks at the queue, the settings and git, and changes nothing."""
    phase = where_to_go_on(
        turn,
        services.settings.limits,
        from_phase=wanted.from_phase,
        rerun_tools=wanted.rerun_tools,
        tools_done=wanted.tools_done,
    )
    begun = [write for write in turn.writes if not write.done]
    if wanted.asked_about and any(write not in wanted.asked_about for write in begun):
        raise NotResumableError(f"turn {turn.turn_id} went on while it was being asked about")
    if wanted.edited_for not in (None, phase):
        raise NotResumableError(
            f"turn {turn.turn_id} went on to {phase} while {wanted.edited_for} was being edited"
        )
    rewound = wanted.from_phase is not None
    if wanted.edited_from is not None:
        stands = edited_input.shown(services, turn, phase, rewound=rewound)
        if digest(stands) != wanted.edited_from:
            raise NotResumableError(
                f"turn {turn.turn_id} went on while its input was being edited: what {phase} "
                "reads is not what you saw"
            )
    own = own_intervention(turn, services.queue, wanted.intervention_id)
    runner = this_process(wanted.by)
    given = giving.given(
        services,
        turn,
        grant=wanted.grant,
        answer=wanted.answer,
        edited=wanted.edited,
        rewound=rewound,
    )
    event = TurnResumed(
        phase=phase,
        rewound=rewound,
        runner=runner,
        by=runner.user,
        via=wanted.via,
        config_digest=services.config_digest,
        asked_with=services.asked_with,
        retry_of=own[0] if own else None,
        retry_phase=own[1] if own else None,
        note=redact_text(wanted.note) if wanted.note is not None else None,
        changed=environment.differences(environment.then(turn), environment.now(services)),
        edited=dict(wanted.edited),
        tools_done=[write.call for write in begun] if wanted.tools_done else [],
        environment=environment.at_start(services),
        given=given,
    )
    keep = (given.tool, given.grant) if given is not None and given.grant is not None else None
    return Plan(event, keep)
