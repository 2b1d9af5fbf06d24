"""Retry, then resolve: one entry's turn, and every turn that waits for the same fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal, get_args

from interventions.entry import Entry, closed_at, is_open, short_id
from interventions.errors import ConflictError, QueueError
from interventions.plaintext import one_line
from interventions.retry import contract
from interventions.retry.contract import RetryRequest, RetryResult
from interventions.secrets.redaction import redact_text
from interventions.view.groups import turns_of_others

if TYPE_CHECKING:
    from interventions.queue import InterventionQueue


INTERRUPTED = "it was interrupted"
STOPPED = "it was stopped while it ran"
# After Ctrl-C: a turn may still pass, and a server that hangs delays nobody for longer.
PATIENCE_S = 5.0
# Ctrl-C that comes just as a wait begins does not end it.
ONE_WAIT_S = 0.5


def retry_entry(
    queue: InterventionQueue, request: RetryRequest, *, expected_version: int | None = None
) -> tuple[Entry, RetryResult]:
    """Resume the turn, and resolve the entry that the request names, verified, if its phase has
    completed and no other turn needs it. The entry after that, and the result.

    Raises ConflictError, and then nothing has happened, for an entry that is closed or is not
    `expected_version`; ConflictError if somebody dismissed it meanwhile; another QueueError if the
    turn cannot be resumed.
    """
    before = entry_to_retry(queue, request.intervention_id or "", expected_version)
    resumer = contract.find_resumer()
    try:
        result = retry(queue.home, request, resumer)
    except QueueError:
        now = queue.find(before["id"])
        if now["resolved_at"] is None:
            raise
        # An earlier run resumed the turn and died before it closed the entry; now it is closed.
        return now, RetryResult(now["turn_id"], contract.ANSWERED_BEFORE)
    finally:
        contract.done_with(resumer)
    if result.solved:
        ended, by, via = result.status or "past the phase", request.by, request.via
        queue.close_retried([before["id"]], request.note, outcome=ended, by=by, via=via)
    now = queue.find(before["id"])
    if now["dismissed_at"] is not None:
        hint = f"interventions show {short_id(now['id'])}"
        raise ConflictError(f"{now['id']} was dismissed while its turn went on", hint=hint)
    return now, result


def retry(home: Path, request: RetryRequest, resumer: contract.Resumer) -> RetryResult:
    """Resume the turn. Raises QueueError if it cannot be resumed."""
    if not request.turn_id:
        what = f"{request.intervention_id} belongs to no turn, so there is nothing to retry"
        raise ConflictError(what, hint="mend the cause and resolve it with a note")
    try:
        result = resumer.retry(home, request)
        if not isinstance(result, RetryResult):
            raise TypeError(f"the resumer answers a RetryResult, not {type(result).__name__}")
    except QueueError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever the resumed turn raises is its failure
        what = f"{type(error).__name__}: {error}"
        result = RetryResult(request.turn_id, contract.FAILED, passed=False, message=what)
    if not result.failed:
        return result
    what, *difference = map(_clean, (result.message or "it failed again", *result.difference))
    return replace(result, message=what, difference=difference)


def _clean(text: str) -> str:
    return one_line(redact_text(text))


def entry_to_retry(
    queue: InterventionQueue, intervention_id: str, expected_version: int | None = None
) -> Entry:
    """The entry, if a retry of it may begin. Raises NotFoundError; ConflictError for one that is
    closed or is not `expected_version`."""
    entry = queue.find(intervention_id)
    if not is_open(entry):
        same = (e for e in queue.entries() if e["fingerprint"] == entry["fingerprint"])
        alike = next(filter(is_open, same), None)
        hint = f"interventions reopen {short_id(entry['id'])}"
        if alike is not None:
            hint = f"the same failure waits in: interventions retry {short_id(alike['id'])}"
        raise ConflictError(f"{entry['id']} is closed", hint=hint)
    queue.check_version(entry, expected_version)
    return entry


def _reported_in(result: RetryResult) -> str:
    again = result.intervention_id
    return f"intervention {short_id(again)}" if again else "not queued"


def result_lines(entry: Entry, result: RetryResult) -> list[str]:
    """The result of a turn that got past the failed phase, in lines for a person; none for a result
    that says nothing, or of one that did not."""
    turn, name, lines = f"turn {entry['turn_id']}", short_id(entry["id"]), []
    if result.failed_again:
        return []  # StillOpenError says it
    if result.failed:
        where = _reported_in(result)
        past = f"{turn} got past {entry['phase']}, then failed in {result.phase} ({where})"
        lines.append(f"{past}: {(result.message or '')[:300]}")
    elif result.status == contract.ANSWERED_BEFORE:
        lines.append(f"{turn} was answered before; what was left was to close {name}")
    elif result.status:
        where = result.resumed_at or entry["phase"]
        lines.append(f"{turn} went on from {where} and is {result.status}")
    if result.trouble:
        closes = f"the next interventions retry {name} does"
        lines.append(f"warning: it could not be resolved ({closes}): {result.trouble}")
    return list(map(_clean, lines))


@dataclass(frozen=True)
class WaitingTurn:
    """A turn that waits for a fix, and the entry under which it is known. One that is not `alike`
    failed with another failure, which the entry holds."""

    turn_id: int
    entry: Entry
    alike: bool = True

    @property
    def named(self) -> str | None:
        """The entry, if it is the turn's own."""
        return self.entry["id"] if self.entry["turn_id"] == self.turn_id else None


RetriedStatus = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True)
class RetriedTurn:
    """One retry. `what` is the turn's state if it passed, else the reason. `error` is why it could
    not be resumed, `result` how it went if it was."""

    turn_id: int
    status: RetriedStatus
    what: str
    error: QueueError | None = None
    result: RetryResult | None = None


Progress = Callable[[RetriedTurn, int, int], None]


def tally(tried: Iterable[RetriedTurn]) -> str:
    """`passed 2, failed 0, skipped 1`"""
    counts = Counter(one.status for one in tried)
    return ", ".join(f"{status} {counts[status]}" for status in get_args(RetriedStatus))


def waiting_turns(entry: Entry, entries: Iterable[Entry]) -> list[WaitingTurn]:
    """Every turn that the entry blocks, each once: its own, those of open entries with the same
    fingerprint, those counted on them, and last those that failed with what else these hold.

    Turns counted on an entry that has been closed since still wait: one turn was resumed, and the
    others only if that run finished.
    """
    entries = list(entries)
    # Who closed one may have another clock than who put this one, which names what was closed then.
    last_before = next((closed_at(e) for e in entries if e["id"] == entry["regression_of"]), "")
    since = min(last_before, entry["created_at"])
    alike = (e for e in entries if e["fingerprint"] == entry["fingerprint"])
    same = [e for e in alike if is_open(e) or (e["resolved_at"] or "") > since]
    holders = [entry, *(each for each in same if each["id"] != entry["id"])]
    own = [WaitingTurn(e["turn_id"], e) for e in holders if e is entry or is_open(e)]
    counted = []
    for each in holders:
        others = turns_of_others(each)
        counted += [WaitingTurn(turn, each, turn not in others) for turn in each["turns"]]
    found: dict[int, WaitingTurn] = {}
    for turn in sorted((*own, *counted), key=lambda turn: not turn.alike):
        if turn.turn_id:
            found.setdefault(turn.turn_id, turn)
    return list(found.values())


def retry_all(
    turns: Mapping[int, str | None],
    home: Path,
    request: RetryRequest,
    *,
    jobs: int,
    progress: Progress | None = None,
    interrupted: Callable[[int], None] = lambda running: None,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[list[RetriedTurn], bool]:
    """Retry one turn; if it passes, retry the others, `jobs` at a time. Returns the result of each,
    and whether it was interrupted. `turns` are in their order, each with the entry that is its own,
    if any; `request` is sent for each, under its own turn.

    A turn that has nothing left to do, or that another process is resuming, is skipped, so that an
    interrupted run can be repeated. Once `stop` returns true no turn begins, and running ones
    finish. After Ctrl-C no turn begins, and running ones (`interrupted` gets their number) have
    PATIENCE_S to finish; a second Ctrl-C does not wait. Turns may still run then, in threads that
    only the end of the process stops. Raises NoResumerError.
    """
    from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait  # late

    done: list[RetriedTurn] = []
    left = dict.fromkeys(turns)  # by turn, in their order
    resumer = contract.find_resumer()

    def try_turn(turn_id: int) -> RetriedTurn:
        if stop():
            return RetriedTurn(turn_id, "skipped", INTERRUPTED)
        own = replace(request, turn_id=turn_id, intervention_id=turns[turn_id])
        return _retry_turn(home, own, resumer)

    def report(outcome: RetriedTurn) -> None:
        del left[outcome.turn_id]
        done.append(outcome)
        if progress is not None:
            progress(outcome, len(done), len(turns))

    def skip_others(why: str) -> None:
        for turn_id in tuple(left):
            report(RetriedTurn(turn_id, "skipped", why))

    pool = ThreadPoolExecutor(max_workers=jobs)
    futures: dict[Future[RetriedTurn], int] = {}
    try:
        for first in turns:
            report(canary := try_turn(first))
            if canary.status == "failed":
                skip_others(f"turn {first} was tried first and failed")
            if canary.status != "skipped":
                break
        for turn_id in left:
            futures[pool.submit(try_turn, turn_id)] = turn_id
        unreported = set(futures)
        while unreported:
            ended, unreported = wait(unreported, ONE_WAIT_S, FIRST_COMPLETED)
            for future in ended:
                report(future.result())
        contract.done_with(resumer)
        return done, False
    except KeyboardInterrupt:
        running = [future for future in futures if not future.cancel()]
        with suppress(KeyboardInterrupt):  # the second one may come at any moment
            unfinished = {future for future in running if not future.done()}
            interrupted(len(unfinished))
            ends_at = monotonic() + PATIENCE_S
            while unfinished and monotonic() < ends_at:
                unfinished = wait(unfinished, ONE_WAIT_S).not_done
        for future in running:
            if futures[future] in left:
                stopped = RetriedTurn(futures[future], "skipped", STOPPED)
                report(future.result() if future.done() else stopped)
        skip_others(INTERRUPTED)
        return done, True
    finally:
        # Turns that still run after Ctrl-C are not waited for.
        pool.shutdown(wait=False, cancel_futures=True)


def _retry_turn(home: Path, request: RetryRequest, resumer: contract.Resumer) -> RetriedTurn:
    turn_id = request.turn_id
    try:
        result = retry(home, request, resumer)
    except QueueError as error:
        return RetriedTurn(turn_id, "skipped", _clean(str(error)), error)
    if result.failed_again:
        return RetriedTurn(turn_id, "failed", result.message or "", result=result)
    if result.failed:
        what = f"it got past its phase, then failed in {result.phase} ({_reported_in(result)})"
        return RetriedTurn(turn_id, "failed", what, result=result)
    return RetriedTurn(turn_id, "passed", result.status or "done", result=result)
