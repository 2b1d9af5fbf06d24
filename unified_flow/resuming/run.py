"""Resuming a turn as a person expects it: refused with a reason, announced, verified, closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interventions.errors import QueueError
from interventions.home import find_home
from unified_flow.archive import TurnArchive
from unified_flow.errors import PhaseError
from unified_flow.events import TurnResumed
from unified_flow.flow import UnifiedFlow
from unified_flow.ledger import Observer
from unified_flow.resuming import changes, giving
from unified_flow.resuming.decision import where_to_go_on
from unified_flow.resuming.errors import NoSuchTurnError, NotResumableError, TurnBusyError
from unified_flow.resuming.settling import own_intervention, settle
from unified_flow.runner import this_process
from unified_flow.turn import Failure, Turn, Write
from unified_flow.wiring import wire

TRIES = 5
PAUSE_S = 0.02


@dataclass(frozen=True)
class Resumption:
    """What the person asks for.

    `note` closes the intervention once its phase has completed; None leaves that to the caller.
    `edited` replaces what the phase `edited_for` reads (events.TurnResumed). `asked_about` are the
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
    grant: str | None = None
    answer: str | None = None


@dataclass(frozen=True)
class Resumed:
    """How it went. `before` is the failure that was retried; `trouble` is the queue's, if any."""

    turn: Turn
    error: PhaseError | None
    before: Failure | None
    went_on: TurnResumed
    closed: str | None = None
    trouble: str | None = None

    @property
    def passed(self) -> bool:
        """The phase that had failed has completed since."""
        retry = self.turn.retry
        if retry is not None:
            return retry.passed
        failed = self.turn.failure.phase if self.turn.failure else None
        return failed is None or (self.before is not None and failed != self.before.phase)


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
    queue = flow.services.queue
    before: Failure | None = None
    went_on: TurnResumed | None = None

    def decide(turn: Turn) -> TurnResumed:
        nonlocal before, went_on
        if not turn.turn_id:
            raise NoSuchTurnError(f"turn {turn_id} was never begun: its journal is empty")
        before = turn.failure
        try:
            went_on = _event(flow, turn, wanted)
        except NotResumableError:
            # The process that finished it may have died before it could close the intervention.
            settle(turn, queue, outcome=turn.status)
            raise
        return went_on

    error: PhaseError | None = None
    try:
        turn = await _when_free(flow, turn_id, decide, observer)
    except PhaseError as exc:
        error = exc
        turn = load(flow.services.home, turn_id)
    assert went_on is not None
    try:
        closed = settle(turn, queue, outcome=turn.status) if error is None else None
    except QueueError as exc:
        return Resumed(turn, error, before, went_on, trouble=str(exc))
    name = closed["id"] if closed else None
    if error is None and turn.failure is None:
        # Others of its interventions are about failures that it has left behind.
        with suppress(QueueError):
            why = f"turn {turn_id} was resumed by {went_on.by} and is {turn.status}"
            queue.supersede(turn_id, why, by=wanted.by, via=wanted.via)
    if error is not None and turn.retry is not None and turn.retry.passed:
        name = turn.retry.intervention_id  # closed when the later failure was reported
    return Resumed(turn, error, before, went_on, closed=name)


async def _when_free(
    flow: UnifiedFlow,
    turn_id: int,
    decide: Callable[[Turn], TurnResumed],
    observer: Observer | None,
) -> Turn:
    """A look at the turn (`turns list`) takes its lock for a moment; whoever runs it keeps it."""
    for left in reversed(range(TRIES)):
        try:
            return await flow.resume(turn_id, decide, observer=observer)
        except FileNotFoundError as exc:
            raise NoSuchTurnError(
                f"there is no turn {turn_id} in {flow.services.folders.root}",
                hint="the turns: unified-flow turns list",
            ) from exc
        except BlockingIOError as exc:
            if not left:
                raise _busy(load(flow.services.home, turn_id)) from exc
            await asyncio.sleep(PAUSE_S)
    raise AssertionError("unreachable")


def _busy(turn: Turn) -> TurnBusyError:
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
    own = own_intervention(turn, services.queue, wanted.intervention_id)
    runner = this_process(wanted.by)
    given = giving.given(
        services,
        turn,
        grant=wanted.grant,
        answer=wanted.answer,
        edited=wanted.edited,
        rewound=wanted.from_phase is not None,
    )
    return TurnResumed(
        phase=phase,
        rewound=wanted.from_phase is not None,
        runner=runner,
        by=runner.user,
        via=wanted.via,
        config_digest=services.config_digest,
        asked_with=services.asked_with,
        retry_of=own[0] if own else None,
        retry_phase=own[1] if own else None,
        note=wanted.note,
        changed=changes.differences(changes.then(turn), changes.now(services)),
        edited=dict(wanted.edited),
        tools_done=[write.call for write in begun] if wanted.tools_done else [],
        environment=changes.at_start(services),
        given=given,
    )
