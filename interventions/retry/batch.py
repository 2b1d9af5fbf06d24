"""One cause, many turns: one of them first, and only if that helps, the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from interventions.entry import Entry, is_open, short_id
from interventions.errors import NoResumerError, QueueError
from interventions.retry.contract import RetryFailedError, RetryRequest
from interventions.retry.resumers import retry

INTERRUPTED = "it was interrupted"
STOPPED = "it was stopped while it ran"
# After Ctrl-C: a turn may end well meanwhile, and a server that hangs holds nobody up.
PATIENCE_S = 5.0
Came = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True)
class WaitingTurn:
    """A turn that waits for a fix, and the entry under which it is known."""

    turn_id: int
    entry: Entry


@dataclass(frozen=True)
class RetriedTurn:
    """`what` is the turn's state if it passed, else the reason: it failed, in whatever phase.
    `error` is what kept it from being resumed; `untold`: its failure found no way to a person."""

    turn_id: int
    came: Came
    what: str
    error: QueueError | None = None
    untold: bool = False


Progress = Callable[[RetriedTurn, int, int], None]


def waiting_turns(entry: Entry, entries: Iterable[Entry]) -> list[WaitingTurn]:
    """Every turn that the entry blocks, its own first: those counted on it or merged into it, and
    those of open entries with the same fingerprint. Each turn once.

    What was counted on an entry that has been closed since waits still: one turn was resumed, and
    the others only if the run that did it came to its end.
    """
    same = [
        other
        for other in entries
        if other["id"] != entry["id"]
        and other["fingerprint"] == entry["fingerprint"]
        and (is_open(other) or (other["resolved_at"] or "") >= entry["created_at"])
    ]
    own = [WaitingTurn(each["turn_id"], each) for each in (entry, *filter(is_open, same))]
    counted = [
        WaitingTurn(turn, each) for each in (entry, *same) for turn in each.get("turns") or ()
    ]
    found: dict[int, WaitingTurn] = {}
    for turn in (*own, *counted):
        if turn.turn_id:
            found.setdefault(turn.turn_id, turn)
    return list(found.values())


def retry_all(
    turns: list[WaitingTurn],
    home: Path,
    request: RetryRequest,
    *,
    jobs: int,
    progress: Progress,
    interrupted: Callable[[int], None] = lambda running: None,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[list[RetriedTurn], bool]:
    """Retry one turn; if it comes to a good end, the others, `jobs` at a time. Gives what came of
    each, and whether it was interrupted. `request` is put for each, under its own turn.

    A turn that has nothing left to do, or that somebody else is resuming, is skipped, so that an
    interrupted run can be run again. Once `stop` says so no turn is begun, those that run come to
    their end, and each is reported. After Ctrl-C no turn is begun, and those that run
    (`interrupted` is told how many) have PATIENCE_S to come to their end; a second one does not
    wait. Turns may still run then, in threads that only the end of the process stops. Raises
    NoResumerError.
    """
    done: list[RetriedTurn] = []
    rest = list(turns)

    def report(outcome: RetriedTurn) -> None:
        done.append(outcome)
        progress(outcome, len(done), len(turns))

    def skip(left: Iterable[WaitingTurn], why: str) -> None:
        for turn in left:
            report(RetriedTurn(turn.turn_id, "skipped", why))

    while rest:
        first = rest.pop(0)
        try:
            canary = _one(first, home, stop, request)
        except KeyboardInterrupt:
            skip((first, *rest), INTERRUPTED)
            return done, True
        report(canary)
        if canary.came == "failed":
            skip(rest, f"turn {canary.turn_id} was tried first and failed")
            return done, False
        if canary.came == "passed":
            break
    pool = ThreadPoolExecutor(max_workers=jobs)
    running = {pool.submit(_one, turn, home, stop, request): turn for turn in rest}
    try:
        for future in as_completed(running):
            report(future.result())
    except KeyboardInterrupt:
        told = {outcome.turn_id for outcome in done}
        unused = {future: turn for future, turn in running.items() if future.cancel()}
        left = [f for f, turn in running.items() if f not in unused and turn.turn_id not in told]
        with suppress(KeyboardInterrupt, TimeoutError):  # the second may come while this is said
            interrupted(len(left))
            for future in as_completed(left, timeout=PATIENCE_S):
                report(future.result())
        told = {outcome.turn_id for outcome in done}
        skip((running[future] for future in left if running[future].turn_id not in told), STOPPED)
        skip(unused.values(), INTERRUPTED)
        return done, True
    finally:
        # Whoever is here with turns still running does not wait: after Ctrl-C, or no resumer.
        pool.shutdown(wait=False, cancel_futures=True)
    return done, False


def _one(
    turn: WaitingTurn, home: Path, stop: Callable[[], bool], request: RetryRequest
) -> RetriedTurn:
    if stop():
        return RetriedTurn(turn.turn_id, "skipped", INTERRUPTED)
    own = turn.turn_id == turn.entry["turn_id"]
    named = turn.entry["id"] if own else None
    try:
        result = retry(home, replace(request, turn_id=turn.turn_id, intervention_id=named))
    except RetryFailedError as error:
        return RetriedTurn(turn.turn_id, "failed", str(error))
    except NoResumerError:
        raise
    except QueueError as error:
        return RetriedTurn(turn.turn_id, "skipped", str(error), error)
    if result.failed:
        again = result.intervention_id
        where = f"intervention {short_id(again)}" if again else "nobody was told"
        said = f"it got past its phase, then failed in {result.phase} ({where})"
        return RetriedTurn(turn.turn_id, "failed", said, untold=again is None)
    return RetriedTurn(turn.turn_id, "passed", result.status or "done")
