"""Giving a turn up, and removing old finished ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from interventions import InterventionQueue
from interventions.entry import Entry, is_open
from unified_flow.archive import TurnArchive
from unified_flow.errors import RetrievalError
from unified_flow.events import TurnAbandoned
from unified_flow.journal import NAME, Journal, TurnFolders
from unified_flow.ledger import Ledger
from unified_flow.resuming.errors import NoSuchTurnError, NotResumableError, TurnBusyError
from unified_flow.runner import this_process
from unified_flow.turn import Turn

PRUNED = "pruned_"
FINISHED = ("answered", "clarify", "abandoned")


def abandon(folders: TurnFolders, queue: InterventionQueue, turn_id: int, reason: str) -> int:
    """Give the turn up; how many of its interventions are marked as superseded.

    Raises NoSuchTurnError, TurnBusyError, NotResumableError for a finished turn, StorageError.
    """
    by = this_process().user

    def decide(turn: Turn) -> TurnAbandoned:
        if not turn.turn_id:
            raise NoSuchTurnError(f"turn {turn_id} was never begun")
        if turn.status in FINISHED:
            raise NotResumableError(f"turn {turn_id} is {turn.status}: there is nothing to give up")
        return TurnAbandoned(by=by, reason=reason)

    try:
        with Ledger(folders.path(turn_id), first=decide):
            pass
    except FileNotFoundError as exc:
        raise NoSuchTurnError(f"there is no turn {turn_id} in {folders.root}") from exc
    except BlockingIOError as exc:
        raise TurnBusyError(f"turn {turn_id} is running", hint="stop it first") from exc
    said = f": {reason}" if reason else ""
    return len(queue.supersede(turn_id, f"turn {turn_id} was abandoned by {by}{said}", via="cli"))


def needed(entries: Iterable[Entry]) -> set[int]:
    """The turns that open interventions are about."""
    waiting = [entry for entry in entries if is_open(entry)]
    return {n for entry in waiting for n in (entry["turn_id"], *(entry.get("turns") or ()))}


def prunable(archive: TurnArchive, keep: set[int], before: datetime) -> list[int]:
    """Finished turns last written to before `before`, that nothing open needs; oldest first.

    The newest turn stays whatever it is: its number must not be given out again.
    """
    found = []
    for turn_id in archive.folders.ids()[:-1]:
        journal = archive.folders.path(turn_id) / NAME
        with suppress(FileNotFoundError, RetrievalError):
            if turn_id in keep or journal.stat().st_mtime >= before.timestamp():
                continue
            turn = archive.load(turn_id)
            if turn is not None and _finished(turn):
                found.append(turn_id)
    return found


def _finished(turn: Turn) -> bool:
    """An answer that could not be saved is not: it can still be."""
    unsaved = turn.status == "answered" and not turn.saved
    return turn.status in FINISHED and not unsaved


def prune(folders: TurnFolders, turn_ids: Iterable[int]) -> int:
    """Remove them, and what an interrupted run has left; how many. Raises OSError."""
    done = 0
    for turn_id in turn_ids:
        folder = folders.path(turn_id)
        with suppress(BlockingIOError):  # somebody has taken it up again
            held = Journal(folder, create=False)
            try:
                folder.rename(_aside(folder))
            finally:
                held.close()
            done += 1
    for left in folders.root.glob(f"{PRUNED}*"):
        shutil.rmtree(left)
    return done


def _aside(folder: Path) -> Path:
    return folder.with_name(PRUNED + folder.name)
