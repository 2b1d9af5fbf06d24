"""Resuming a turn as a person expects it: refused with a reason, announced, verified, closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from interventions import InterventionQueue
from interventions.errors import QueueError
from interventions.retry.contract import FAILED, RetryResult
from interventions.secrets.redaction import redact_text
from unified_flow.engine.environment import beginning, changed_since
from unified_flow.engine.retried_interventions import (
    Resolutions,
    left_behind,
    resolve_passed,
    resolve_retried,
    retried_intervention,
)
from unified_flow.engine.services import Services
from unified_flow.engine.telemetry.query_log import LogRequest
from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import NotResumableError, TurnBusyError
from unified_flow.flow import UnifiedFlow
from unified_flow.phases.errors import PhaseError
from unified_flow.resume.entry_phase import entry_phase, must_not_write_twice
from unified_flow.resume.fork import begin_fork
from unified_flow.resume.human_input import ResumeRequest, human_input
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.events import PhaseFailed, TurnResumed
from unified_flow.turns.ledger import Ledger, Observer
from unified_flow.turns.store import TurnStore
from unified_flow.turns.turn import UNDER_WAY, Turn


@dataclass(frozen=True, kw_only=True)
class ResumeResult(RetryResult):
    """The same for who knows turns: `event` is how the turn went on, `error` what it raised."""

    status: str
    turn: Turn
    event: TurnResumed
    error: PhaseError | None


async def resume_turn(
    flow: UnifiedFlow,
    turn_id: int,
    request: ResumeRequest,
    *,
    observer: Observer | None = None,
    log: LogRequest | None = None,
) -> ResumeResult:
    """Let the turn go on; one that is final, and that is to go back to a phase, stays as it is, and
    a fork of it goes on. A failure of the resumed turn is in the answer, not raised.

    Raises NoSuchTurnError, NotResumableError, TurnBusyError, RetrievalError for a damaged journal,
    and ConfigError or RecipeError for wrong settings; nothing has happened then.
    `observer` sees the `turn_resumed` event, with what has changed, before anything runs; `log` as
    in `UnifiedFlow.process`.
    """
    services = flow.services
    refused: NotResumableError | None = None
    error: PhaseError | None = None
    fork: int | None = None
    async with await open_turn(services.turns, turn_id, observer) as ledger:
        before = turn = ledger.turn
        try:
            event = await asyncio.to_thread(_event, services, before, request)
        except NotResumableError as exc:
            refused = exc
        else:
            if _forks(before, request):
                fork = await begin_fork(
                    ledger, event.phase, services, by=request.by, observer=observer
                )
            else:
                turn, error = await _go_on(flow, ledger, event, log)
    # In a thread: the queue's lock may take its time, and this loop may serve others.
    if refused is not None:
        # The process that finished the turn may have died, or found the queue locked, before it
        # could resolve the intervention.
        named = request.intervention_id
        await asyncio.to_thread(
            resolve_retried, before, services, before.status, request.note, named
        )
        raise refused
    if fork is not None:
        async with await open_turn(services.turns, fork, observer) as ledger:
            try:
                turn, error = await _go_on(flow, ledger, event, log)
            except NotResumableError:
                await ledger.lease.remove()
                raise
    return await asyncio.to_thread(_resolved, services, request, before, event, turn, error)


async def _go_on(
    flow: UnifiedFlow, ledger: Ledger, event: TurnResumed, log: LogRequest | None
) -> tuple[Turn, PhaseError | None]:
    """The turn after its run, and the error with which it ended. Raises NotResumableError if the
    run cannot begin."""
    async with refusals(flow.services.turns, ledger.turn.turn_id):
        await ledger.begin(event)
    try:
        return await flow.resume(ledger, log), None
    except PhaseError as exc:
        return exc.turn, exc


def _forks(turn: Turn, request: ResumeRequest) -> bool:
    return request.from_phase is not None and turn.is_final


async def open_turn(turns: TurnStore, turn_id: int, observer: Observer | None = None) -> Ledger:
    """The turn as it stands, which nobody else runs until the ledger is left.

    Raises NoSuchTurnError, TurnBusyError, NotResumableError if its journal cannot be opened, and
    RetrievalError if it is damaged. Nothing has happened then.
    """
    async with refusals(turns, turn_id):
        ledger = await Ledger.open(turns, turn_id, observer)
        if ledger.turn.turn_id:
            return ledger
        await ledger.lease.release()
        raise FileNotFoundError(2, "it was never begun", turns.place(turn_id))


@asynccontextmanager
async def refusals(turns: TurnStore, turn_id: int) -> AsyncIterator[None]:
    """What the store raises of a turn, in words for a person; nothing has happened then."""
    archive = TurnArchive(turns)
    try:
        yield
    except FileNotFoundError as exc:
        raise await archive.no_such_turn(turn_id) from exc
    except BlockingIOError as exc:
        with suppress(RetrievalError):
            raise busy_error(await archive.require(turn_id)) from exc
        raise TurnBusyError(f"turn {turn_id} runs now", hint="wait until it is done") from exc
    except OSError as exc:
        raise NotResumableError(
            f"the journal of turn {turn_id} in {turns.place(turn_id)} cannot be written: "
            f"{exc.strerror or exc}",
            hint="make room there and make it writable; nothing has happened",
        ) from exc


def busy_error(turn: Turn) -> TurnBusyError:
    since = f"{turn.runs_since:%Y-%m-%dT%H:%M:%SZ}" if turn.runs_since else "some time"
    doing = "resumed" if turn.resumed else "run"
    return TurnBusyError(
        f"turn {turn.turn_id} is being {doing} by {turn.runner or 'somebody'} since {since}",
        hint="wait until it is done; a process that died holds nothing",
    )


def _event(services: Services, turn: Turn, request: ResumeRequest) -> TurnResumed:
    """The event with which the turn goes on. Reads the queue, the settings and git, and changes
    nothing. Raises NotResumableError."""
    phase = entry_phase(turn, services.settings.limits, request.from_phase)
    rewound = request.from_phase is not None
    if not request.rerun_tools:
        must_not_write_twice(turn, phase, rewound=rewound, tools_done=request.tools_done)
    if request.seen is not None and _standing(request.seen) != _standing(turn):
        raise NotResumableError(
            f"turn {turn.turn_id} went on while it was being asked about or edited: "
            "it is not what you saw",
            hint="look at it again; nothing has happened",
        )
    forks = _forks(turn, request)
    # A failure of the fork is its own, and none of the turn of which it is one.
    retried = None if forks else retried_intervention(turn, services.queue, request.intervention_id)
    began = beginning(services, request.by)
    return TurnResumed(
        **began,
        phase=phase,
        rewound=rewound and not forks,
        by=began["runner"].user,
        via=request.via,
        asked_with=services.asked_with,
        retry_of=retried[0] if retried else None,
        retry_phase=retried[1] if retried else None,
        note=redact_text(request.note) if request.note is not None else None,
        changed=changed_since(turn, services),
        edited=dict(request.edited),
        tools_done=[write.call for write in turn.unfinished_writes] if request.tools_done else [],
        given=human_input(request, turn, services),
    )


def _standing(turn: Turn) -> Turn:
    """How far the turn is: one that is queued stands as one that was cut off does."""
    return turn.interrupted() if turn.status in UNDER_WAY else turn


def _resolved(
    services: Services,
    request: ResumeRequest,
    before: Turn,
    event: TurnResumed,
    turn: Turn,
    error: PhaseError | None,
) -> ResumeResult:
    """Resolve what the turn has passed, and mark the interventions that it has left behind."""
    queue, by, via = services.queue, event.by, event.via
    resumed = _result(before, event, turn, error)
    about = _retried_interventions(before, turn, request)
    outcome = turn.status if error is None else f"failed in {error.phase}"
    # What a fork has passed, the turn of which it is one may count as passed.
    judged = replace(turn, turn_id=before.turn_id, request_id=before.request_id)
    try:
        resolutions = resolve_passed(
            judged, services, event.note, about=about, outcome=outcome, by=by, via=via
        )
        if not resumed.failed and not turn.waits and not resolutions.waiting:
            why = f"turn {turn.turn_id} was resumed by {by} and is {turn.status}"
            left = left_behind(turn, queue, TurnArchive(services.turns))
            queue.supersede(left, why, by=by, via=via)
        closed = _closed(turn, queue, resolutions)
    except QueueError as exc:
        return replace(resumed, trouble=str(exc))
    waiting = None if closed else next(iter(resolutions.waiting.values()), None)
    return replace(resumed, closed=closed, waiting=waiting)


def _result(before: Turn, event: TurnResumed, turn: Turn, error: PhaseError | None) -> ResumeResult:
    # An interrupted retry does not count: the failure before it is still the one to compare with.
    was = before.failure or before.last_failure
    # Of a failure for which the journal had no room, the exception is all there is.
    failed = turn.failure or error
    return ResumeResult(
        turn_id=turn.turn_id,
        status=FAILED if failed else turn.status,
        passed=_has_passed(turn, was, error),
        resumed_at=event.phase,
        changed=event.changed,
        response=None if failed else turn.response,
        phase=failed.phase if failed else None,
        intervention_id=failed.intervention_id if failed else None,
        message=_text(turn.failure) if turn.failure else str(error) if error else None,
        difference=_difference(was, turn.failure),
        turn=turn,
        event=event,
        error=error,
    )


def _retried_interventions(before: Turn, turn: Turn, request: ResumeRequest) -> frozenset[str]:
    """The retried one, the one that was named, and one whose retry passed its phase earlier, when
    it could not be resolved."""
    earlier = before.retry if before.retry is not None and before.retry.passed else None
    retries = [retry.intervention_id for retry in (earlier, turn.retry) if retry is not None]
    return frozenset([*retries, *filter(None, [request.intervention_id])])


def _has_passed(turn: Turn, failed: PhaseFailed | None, error: PhaseError | None) -> bool:
    """Whether the phase that had failed has completed since; an interrupted turn had none."""
    if turn.retry is not None:
        return turn.retry.passed and (error is None or error.phase != turn.retry.phase)
    return failed is None or turn.is_past(failed.phase)


def _closed(turn: Turn, queue: InterventionQueue, resolutions: Resolutions) -> str | None:
    """The retried intervention, if it is resolved by now (a later failure resolves it when it is
    reported), else another that was resolved."""
    if turn.retry is not None and turn.retry.passed:
        entry = queue.find(turn.retry.intervention_id)
        if entry["resolved_at"] and entry["resolutions"][-1].get("verified"):
            return str(entry["id"])
    return next(iter(resolutions.solved), None)


def _difference(before: PhaseFailed | None, after: PhaseFailed | None) -> list[str]:
    """Lines that say how the failure differs from the one before; empty without two."""
    if before is None or after is None:
        return []
    if _text(before) == _text(after) and before.phase == after.phase:
        return ["the same error as before"]
    return [f"before: {before.phase}: {_text(before)}", f"now:    {after.phase}: {_text(after)}"]


def _text(failure: PhaseFailed) -> str:
    tool = f" ({failure.tool})" if failure.tool else ""
    return f"{failure.error_type}{tool}: {failure.error_message}"
