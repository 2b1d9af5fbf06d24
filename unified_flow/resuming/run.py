"""Resuming a turn as a person expects it: refused with a reason, announced, verified, closed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from interventions.entry import is_open
from interventions.errors import QueueError
from interventions.home import find_home
from interventions.redaction import redact_text
from unified_flow.archive import TurnArchive
from unified_flow.errors import PhaseError
from unified_flow.events import Observed, PhaseCompleted, PhaseFailed, TurnResumed
from unified_flow.flow import UnifiedFlow
from unified_flow.folding import apply
from unified_flow.journal import digest
from unified_flow.ledger import Observer
from unified_flow.resuming import changes, editing, giving
from unified_flow.resuming.comparison import difference
from unified_flow.resuming.decision import where_to_go_on
from unified_flow.resuming.errors import NoSuchTurnError, NotResumableError, TurnBusyError
from unified_flow.resuming.settling import (
    needed_by_others,
    own_intervention,
    settle,
    settle_counted,
    waiting_too,
)
from unified_flow.runner import this_process
from unified_flow.turn import Failure, Turn, Write
from unified_flow.wiring import wire

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
    def difference(self) -> list[str]:
        """In what the failure now differs from the one before; empty without two."""
        return difference(self.before, self.turn.failure)


def load(home: Path, turn_id: int) -> Turn:
    """Raises NoSuchTurnError, and RetrievalError for a damaged journal."""
    archive = TurnArchive.of(home)
    turn = archive.load(turn_id)
    if turn is None or not turn.turn_id:
        raise NoSuchTurnError(
            f"there is no turn {turn_id} in {archive.folders.root}",
            hint="the turns: unified-flow turns list",
        )
    return turn


def flow_of(turn: Turn, home: Path, **given: Any) -> UnifiedFlow:
    """A flow with today's settings, those that came with the question, and `given` over both."""
    asked = turn.asked_with | {key: value for key, value in given.items() if value is not None}
    return UnifiedFlow(wire(find_home(home), docs=asked.pop("docs", None), **asked))


async def resume_turn(
    flow: UnifiedFlow, turn_id: int, wanted: Resumption, *, observer: Observer | None = None
) -> Resumed:
    """Let the turn go on. A failure of the resumed turn is in the answer, not raised.

    Raises NoSuchTurnError, NotResumableError and TurnBusyError, and then nothing has happened.
    `observer` sees the `turn_resumed` event, with what has changed, before anything runs.
    """
    going = _Going(flow, turn_id, wanted, observer)
    error: PhaseError | None = None
    try:
        await _taken_up(flow, turn_id, going)
    except PhaseError as exc:
        error = exc
    # The queue's lock may take its time, and this loop may serve others.
    return await asyncio.to_thread(_settled, flow, going, error)


class _Going:
    """The turn as it goes on, kept from its events: as soon as its lock is free, what is on disk
    may be somebody else's doing."""

    def __init__(
        self, flow: UnifiedFlow, turn_id: int, wanted: Resumption, observer: Observer | None
    ) -> None:
        self.turn = Turn()
        self.before: Failure | None = None
        self.went_on: TurnResumed | None = None
        self._flow = flow
        self._turn_id = turn_id
        self._wanted = wanted
        self._observer = observer
        self.resumed_before = 0
        self._completed: set[str] = set()

    def decide(self, turn: Turn) -> TurnResumed:
        if not turn.turn_id:
            raise NoSuchTurnError(f"turn {self._turn_id} was never begun: its journal is empty")
        # A retry that was stopped is none: what it would have been held against counts still.
        self.turn, self.before = turn, turn.failure or turn.last_failure
        self.resumed_before = turn.resumed
        try:
            self.went_on = _event(self._flow, turn, self._wanted)
        except NotResumableError:
            # The process that finished it may have died before it could close the intervention.
            archive = TurnArchive(self._flow.services.folders)
            settle(turn, self._flow.services.queue, archive, outcome=turn.status)
            raise
        return self.went_on

    def follow(self, event: Observed) -> None:
        self.turn = apply(self.turn, event)
        match event:
            case PhaseCompleted():
                self._completed.add(event.phase)
            case PhaseFailed():
                self._completed.discard(event.phase)
        if self._observer is None:
            return
        try:
            self._observer(event)
        except Exception as exc:  # noqa: BLE001 - an onlooker's trouble is not the turn's
            logger.warning("the observer of turn %s failed: %r", self._turn_id, exc)
            self._observer = None

    @property
    def about(self) -> str | None:
        """The phase that had failed; None if the turn was stopped."""
        if self.turn.retry is not None:
            return self.turn.retry.phase
        return self.before.phase if self.before is not None else None

    @property
    def passed(self) -> bool:
        if self.turn.retry is not None:
            return self.turn.retry.passed
        return self.about is None or self.about in self._completed


def _settled(flow: UnifiedFlow, going: _Going, error: PhaseError | None) -> Resumed:
    """Close what the turn has got past, and mark what it has left behind."""
    turn, queue, went_on = going.turn, flow.services.queue, going.went_on
    assert went_on is not None
    archive = TurnArchive(flow.services.folders)
    failed = error.phase if error is not None else None
    passed = going.passed and (failed is None or going.about not in (None, failed))
    done = Resumed(turn, error, going.before, went_on, passed)
    outcome = turn.status if failed is None else f"failed in {failed}"
    try:
        closed = settle(turn, queue, archive, outcome=outcome) if passed else None
        if closed is None and turn.retry is None and passed:
            closed = settle_counted(turn, queue, archive, went_on, outcome=outcome)
        name = closed["id"] if closed else None
        waiting: int | None = None
        if closed is None and turn.retry is not None and turn.retry.passed:
            entry = queue.find(turn.retry.intervention_id)
            waiting = waiting_too(entry, turn, archive) if is_open(entry) else None
            if (failed or turn.failure) and entry["resolved_at"]:
                name = entry["id"]  # closed when the later failure was reported
        settled = error is None and turn.failure is None and not turn.waits
        if settled and waiting is None:
            # Others of its interventions are about failures that it has left behind.
            why = f"turn {turn.turn_id} was resumed by {went_on.by} and is {turn.status}"
            keep = needed_by_others(turn, queue, archive)
            queue.supersede(turn.turn_id, why, keep=keep, by=went_on.by, via=went_on.via)
    except QueueError as exc:
        return replace(done, trouble=str(exc))
    return replace(done, closed=name, waiting=waiting)


async def _taken_up(flow: UnifiedFlow, turn_id: int, going: _Going) -> None:
    """Run it; what keeps it from being begun is told apart from what happens in it."""
    try:
        await flow.resume(turn_id, going.decide, observer=going.follow)
    except FileNotFoundError as exc:
        if going.went_on is not None:
            raise
        raise NoSuchTurnError(
            f"there is no turn {turn_id} in {flow.services.folders.root}",
            hint="the turns: unified-flow turns list",
        ) from exc
    except BlockingIOError as exc:
        if going.went_on is not None:
            raise
        raise busy(load(flow.services.home, turn_id)) from exc
    except OSError as exc:
        if going.turn.turn_id and going.turn.resumed > going.resumed_before:
            raise
        raise NotResumableError(
            f"the journal of turn {turn_id} in {flow.services.folders.path(turn_id)} cannot be "
            f"written: {exc.strerror or exc}",
            hint="make room there and make it writable; nothing has happened",
        ) from exc


def busy(turn: Turn) -> TurnBusyError:
    since = f"{turn.runs_since:%Y-%m-%dT%H:%M:%SZ}" if turn.runs_since else "some time"
    doing = "resumed" if turn.resumed else "run"
    return TurnBusyError(
        f"turn {turn.turn_id} is being {doing} by {turn.runner or 'somebody'} since {since}",
        hint="wait until it is done; a process that died holds nothing",
    )


def _event(flow: UnifiedFlow, turn: Turn, wanted: Resumption) -> TurnResumed:
    services = flow.services
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
        stands = editing.shown(services, turn, phase, rewound=rewound)
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
    return TurnResumed(
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
        changed=changes.differences(changes.then(turn), changes.now(services)),
        edited=dict(wanted.edited),
        tools_done=[write.call for write in begun] if wanted.tools_done else [],
        environment=changes.at_start(services),
        given=given,
    )
