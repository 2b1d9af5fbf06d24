"""Abandoning a turn, salvaging a damaged one, and pruning old finished ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime

from interventions import InterventionQueue
from interventions.entry import is_about, is_open, turns_of
from interventions.errors import QueueError
from unified_flow.engine.retried_interventions import awaited_by_others
from unified_flow.errors import RetrievalError, UnifiedFlowError
from unified_flow.errors.turns import JournalVersionError, NotResumableError
from unified_flow.lib.threads import to_the_end, wait_for
from unified_flow.resume.resumption import open_turn, refusals
from unified_flow.turns.archive import TurnArchive, read_turn
from unified_flow.turns.events import TurnAbandoned, TurnSalvaged, this_process
from unified_flow.turns.store import TurnStore
from unified_flow.turns.turn import FINISHED, Turn


async def abandon(turns: TurnStore, queue: InterventionQueue, turn_id: int, reason: str) -> int:
    """Give the turn up; the number of its interventions that are marked as superseded: those for
    which no other turn waits.

    Given up again, or with an unreadable journal, the turn only has its interventions marked.
    Raises NoSuchTurnError, TurnBusyError, NotResumableError for a finished turn, StorageError,
    JournalVersionError, and RetrievalError for one that is damaged and in no intervention.
    """
    archive = TurnArchive(turns)
    unreadable: RetrievalError | None = None
    try:
        turn = await archive.require(turn_id)
    except JournalVersionError:
        raise  # another version can go on with it
    except RetrievalError as exc:
        turn, unreadable = Turn(turn_id=turn_id), exc
    again = turn.status == "abandoned"
    if unreadable is None and not again:
        await _give_up(turns, turn_id, reason)

    def supersede() -> int:
        keep = awaited_by_others(turn, queue, archive)
        if again:
            # The queue may have been locked, or the process killed, before all could be marked.
            keep |= {entry["id"] for entry in queue.entries() if entry.get("superseded")}
        return len(
            queue.supersede(turn_id, _why(f"turn {turn_id} was", reason), keep=keep, via="cli")
        )

    marked = await asyncio.to_thread(supersede)
    if unreadable is not None and not marked:
        raise unreadable
    if again and not marked:
        raise _nothing_to_give_up(turn)
    return marked


async def abandon_all(
    turns: TurnStore,
    queue: InterventionQueue,
    turn_ids: Sequence[int],
    reason: str,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[int, int, list[str]]:
    """Give all of them up: how many were, how many interventions are marked as superseded, and why
    some were not. Raises StorageError. Cancelled, it marks those of the turns given up by then;
    killed, or with the queue locked, it leaves that to the next time, whichever turns that takes.
    """
    given_up: dict[int, Turn] = {}
    refused: list[str] = []
    archive = TurnArchive(turns)

    def given_up_before(turn_id: int) -> Turn | None:
        with suppress(RetrievalError):
            turn = wait_for(archive.load(turn_id))
            return turn if turn is not None and turn.status == "abandoned" else None
        return None

    def supersede() -> int:
        """By entry, of which each may hold thousands of them."""
        many = f"{len(given_up)} turns were" if len(given_up) > 1 else None
        looked_at, marked = set[str](), 0
        for entry in filter(is_open, queue.entries()):
            turn = next((given_up[each] for each in turns_of(entry) if each in given_up), None)
            if turn is None and not entry.get("superseded"):
                turn = given_up_before(entry["turn_id"])
                looked_at |= {e["id"] for e in queue.entries() if e.get("superseded")}
            if turn is not None:
                keep = looked_at | awaited_by_others(turn, queue, archive)
                why = _why(many or f"turn {turn.turn_id} was", reason)
                marked += len(queue.supersede(turn.turn_id, why, keep=keep, via="cli"))
                looked_at |= {e["id"] for e in queue.entries() if is_about(e, turn.turn_id)}
        return marked

    marked = 0
    try:
        for done, turn_id in enumerate(turn_ids, 1):
            try:
                await _give_up(turns, turn_id, reason)
                given_up[turn_id] = Turn(turn_id=turn_id)
            except (UnifiedFlowError, QueueError) as exc:
                refused.append(str(exc))
            progress(done, len(turn_ids))
    finally:
        marked = await to_the_end(asyncio.to_thread(supersede))
    return len(given_up), marked, refused


async def _give_up(turns: TurnStore, turn_id: int, reason: str) -> None:
    async with await open_turn(turns, turn_id) as ledger:
        if ledger.turn.status in FINISHED:
            raise _nothing_to_give_up(ledger.turn)
        async with refusals(turns, turn_id):
            await ledger.begin(TurnAbandoned(by=this_process().user, reason=reason))


def _why(named: str, reason: str) -> str:
    return f"{named} abandoned by {this_process().user}" + (f": {reason}" if reason else "")


async def salvage(turns: TurnStore, turn_id: int) -> tuple[int, TurnSalvaged]:
    """Keep a damaged turn up to its last whole line, so that it can be resumed.

    Raises NoSuchTurnError, TurnBusyError, JournalVersionError, and NotResumableError where nothing
    is damaged, nothing can be kept, or there is no room.
    """
    async with refusals(turns, turn_id):
        return await turns.salvage(turn_id, this_process().user)


def _nothing_to_give_up(turn: Turn) -> NotResumableError:
    return NotResumableError(f"turn {turn.turn_id} is {turn.status}: there is nothing to give up")


async def prunable(
    turns: TurnStore, keep: set[int], before: datetime, *, newest: bool = False
) -> list[int]:
    """Turns last written to before `before` that are finished, or failed with an intervention that
    is closed by now; oldest first. `keep` are those that something open needs.

    The newest turn stays whatever it is, unless `newest` says otherwise.
    """
    archive, found = TurnArchive(turns), []
    marks = list((await turns.marks()).items())
    for turn_id, mark in marks[: None if newest else -1]:
        if turn_id in keep or not mark.is_before(before):
            continue
        with suppress(RetrievalError):
            turn = await archive.load(turn_id)
            if turn is not None and _finished(turn, closed=True):
                found.append(turn_id)
    return found


def _finished(turn: Turn, *, closed: bool) -> bool:
    """An answer that could not be saved is not: it can still be. `closed`: no intervention about
    the turn is open, and so a failure that had one is done with."""
    if turn.status == "failed" and turn.failure is not None:
        return closed and turn.failure.intervention_id is not None
    unsaved = turn.status == "answered" and not turn.saved
    return turn.status in FINISHED and not unsaved


async def prune(
    turns: TurnStore,
    turn_ids: Iterable[int],
    *,
    keep: Callable[[], set[int]] | None = None,
    before: datetime | None = None,
) -> int:
    """Remove them, and what an interrupted run has left; how many. Raises OSError.

    Each is checked again while nobody else can run it, since it may have been resumed and have
    failed meanwhile: `keep` returns the turns that are needed by now; without it no failed one
    goes. The number of the newest is not used again.
    """
    done = 0
    newest = max(await turns.ids(), default=0)
    for turn_id in turn_ids:
        # Somebody has taken it up again, or has removed it.
        with suppress(BlockingIOError, FileNotFoundError, RetrievalError):
            lease = await turns.open(turn_id)
            try:
                mark = await turns.mark(turn_id)
                fresh = mark is None or (before is not None and not mark.is_before(before))
                if fresh or (keep is not None and turn_id in await asyncio.to_thread(keep)):
                    continue
                turn, _ = await read_turn(turns, turn_id)
                if _finished(turn, closed=keep is not None):
                    await lease.remove(reserve=turn_id == newest)
                    done += 1
            finally:
                await lease.release()
    await turns.sweep(before)
    return done
