"""One cause, many turns: one of them first, and only if that helps, the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from interventions.entry import Entry, is_open
from interventions.errors import NoResumerError, QueueError
from interventions.resumers import RetryFailedError, retry

Came = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True)
class Waiting:
    """A turn that waits for a fix, and the entry under which it is known."""

    turn_id: int
    entry: Entry


@dataclass(frozen=True)
class Outcome:
    """`what` is the turn's state if it passed the phase, else the reason."""

    turn_id: int
    came: Came
    what: str


Progress = Callable[[Outcome, int, int], None]


def waiting(entry: Entry, entries: Iterable[Entry]) -> list[Waiting]:
    """Every turn that the entry blocks, its own first: those counted on it or merged into it, and
    those of open entries with the same fingerprint. Each turn once."""
    same = [
        other
        for other in entries
        if is_open(other)
        and other["id"] != entry["id"]
        and other["fingerprint"] == entry["fingerprint"]
    ]
    own = [Waiting(each["turn_id"], each) for each in (entry, *same)]
    counted = [Waiting(turn, each) for each in (entry, *same) for turn in each.get("turns") or ()]
    found: dict[int, Waiting] = {}
    for turn in (*own, *counted):
        if turn.turn_id:
            found.setdefault(turn.turn_id, turn)
    return list(found.values())


def retry_all(
    turns: list[Waiting], home: Path, *, jobs: int, progress: Progress, **options: Any
) -> list[Outcome]:
    """Retry one turn; if it gets past its phase, the others, `jobs` at a time.

    A turn that has nothing left to do, or that somebody else is resuming, is skipped, so that an
    interrupted run can be run again. Raises NoResumerError. When interrupted, the turns that run
    are brought to their end first.
    """
    done: list[Outcome] = []
    rest = list(turns)

    def report(outcome: Outcome) -> None:
        done.append(outcome)
        progress(outcome, len(done), len(turns))

    while rest:
        canary = _one(rest.pop(0), home, options)
        report(canary)
        if canary.came == "failed":
            reason = f"turn {canary.turn_id} was tried first and failed"
            for turn in rest:
                report(Outcome(turn.turn_id, "skipped", reason))
            return done
        if canary.came == "passed":
            break
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        running = [pool.submit(_one, turn, home, options) for turn in rest]
        try:
            for future in as_completed(running):
                report(future.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return done


def _one(turn: Waiting, home: Path, options: dict[str, Any]) -> Outcome:
    try:
        result = retry(turn.entry, home, turn_id=turn.turn_id, **options)
    except RetryFailedError as error:
        return Outcome(turn.turn_id, "failed", str(error))
    except NoResumerError:
        raise
    except QueueError as error:
        return Outcome(turn.turn_id, "skipped", str(error))
    status = str(result.get("status") or "done")
    if status == "failed":
        status = f"failed later, in {result.get('phase')}: {result.get('intervention_id')}"
    return Outcome(turn.turn_id, "passed", status)
