"""Abandoning turns, and salvaging a damaged one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from interventions import InterventionQueue
from interventions.entry import Entry, is_open, turns_of
from interventions.errors import QueueError
from unified_flow.engine.retried_interventions import waiting_turn
from unified_flow.errors import RetrievalError, UnifiedFlowError
from unified_flow.errors.turns import JournalVersionError, NotResumableError
from unified_flow.lib.threads import to_the_end, wait_for
from unified_flow.resume.resumption import open_turn, refusals
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.events import TurnAbandoned, TurnSalvaged, this_process
from unified_flow.turns.store import TurnStore
from unified_flow.turns.turn import FINISHED


@dataclass(frozen=True)
class Abandoned:
    """How many turns were given up, how many interventions are marked as superseded, and why some
    turns were not given up."""

    turns: int
    superseded: int
    refused: list[UnifiedFlowError | QueueError]


async def abandon(
    turns: TurnStore,
    queue: InterventionQueue,
    turn_ids: Sequence[int],
    reason: str,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Abandoned:
    """Give all of them up, and mark their interventions, but for those that other turns wait for.

    Of a turn that was given up before, or whose journal is damaged, what is unmarked is marked; it
    is refused where there is nothing. Raises StorageError. Cancelled, it marks those of the turns
    given up by then; killed, or with the queue locked, it leaves that to the next time, whichever
    turns that takes.
    """
    given_up = set[int]()
    late: dict[int, UnifiedFlowError | QueueError] = {}
    refused: list[UnifiedFlowError | QueueError] = []
    archive = TurnArchive(turns)

    def supersede() -> int:
        marked = 0
        for entry in filter(is_open, queue.entries()):
            about = given_up.intersection(turns_of(entry))
            if not about and not entry["superseded"]:
                about = late.keys() & turns_of(entry) or _given_up_before(archive, entry)
            if about and waiting_turn(entry, archive) is None:
                named = f"turn {min(about)} was" if len(about) == 1 else f"{len(about)} turns were"
                found = queue.supersede([entry["id"]], _why(named, reason), via="cli")
                marked += len(found)
                for turn_id in about if found else ():
                    late.pop(turn_id, None)
        return marked

    marked = 0
    try:
        for done, turn_id in enumerate(turn_ids, 1):
            try:
                if await _give_up(turns, turn_id, reason):
                    given_up.add(turn_id)
                else:
                    late[turn_id] = _nothing_to_give_up(turn_id, "abandoned")
            except JournalVersionError as exc:
                refused.append(exc)  # another version can go on with it
            except RetrievalError as exc:
                late[turn_id] = exc
            except (UnifiedFlowError, QueueError) as exc:
                refused.append(exc)
            progress(done, len(turn_ids))
    finally:
        marked = await to_the_end(asyncio.to_thread(supersede))
    return Abandoned(len(given_up), marked, [*refused, *late.values()])


def _given_up_before(archive: TurnArchive, entry: Entry) -> set[int]:
    """The entry's own turn, if that is so."""
    with suppress(RetrievalError):
        turn = wait_for(archive.load(entry["turn_id"]))
        return {turn.turn_id} if turn is not None and turn.status == "abandoned" else set()
    return set()


async def _give_up(turns: TurnStore, turn_id: int, reason: str) -> bool:
    """False for one that was given up before."""
    async with await open_turn(turns, turn_id) as ledger:
        if ledger.turn.status == "abandoned":
            return False
        if ledger.turn.status in FINISHED:
            raise _nothing_to_give_up(turn_id, ledger.turn.status)
        async with refusals(turns, turn_id):
            await ledger.begin(TurnAbandoned(by=this_process().user, reason=reason))
        return True


def _why(named: str, reason: str) -> str:
    return f"{named} abandoned by {this_process().user}" + (f": {reason}" if reason else "")


async def salvage(turns: TurnStore, turn_id: int) -> tuple[int, TurnSalvaged]:
    """Keep a damaged turn up to its last whole line, so that it can be resumed.

    Raises NoSuchTurnError, TurnBusyError, JournalVersionError, and NotResumableError where nothing
    is damaged, nothing can be kept, or there is no room.
    """
    async with refusals(turns, turn_id):
        return await turns.salvage(turn_id, this_process().user)


def _nothing_to_give_up(turn_id: int, status: str) -> NotResumableError:
    return NotResumableError(f"turn {turn_id} is {status}: there is nothing to give up")
