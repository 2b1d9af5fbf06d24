"""Abandoning a turn, salvaging a damaged one, and pruning old finished ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from interventions import InterventionQueue
from interventions.home import make_private_folder
from unified_flow.engine.retried_interventions import awaited_by_others
from unified_flow.errors import RetrievalError
from unified_flow.errors.turns import JournalVersionError, NotResumableError, TurnBusyError
from unified_flow.resume.resumption import begin_run, open_turn, unwritable
from unified_flow.turns.archive import TurnArchive, TurnFolders, read_turn
from unified_flow.turns.events import TurnAbandoned, this_process
from unified_flow.turns.journal import NAME, Journal
from unified_flow.turns.salvage import Salvaged, salvaged
from unified_flow.turns.turn import FINISHED, Turn

PRUNED = "pruned_"


def abandon(folders: TurnFolders, queue: InterventionQueue, turn_id: int, reason: str) -> int:
    """Give the turn up; the number of its interventions that are marked as superseded: those for
    which no other turn waits.

    Given up again, or with an unreadable journal, the turn only has its interventions marked.
    Raises NoSuchTurnError, TurnBusyError, NotResumableError for a finished turn, StorageError,
    JournalVersionError, and RetrievalError for one that is damaged and in no intervention.
    """
    by = this_process().user
    why = f"turn {turn_id} was abandoned by {by}" + (f": {reason}" if reason else "")
    archive = TurnArchive(folders)
    unreadable: RetrievalError | None = None
    try:
        turn = archive.require(turn_id)
    except JournalVersionError:
        raise  # another version can go on with it
    except RetrievalError as exc:
        turn, unreadable = Turn(turn_id=turn_id), exc
    again = turn.status == "abandoned"
    if unreadable is None and not again:
        with open_turn(folders, turn_id) as ledger:
            if ledger.turn.status in FINISHED:
                raise _nothing_to_give_up(ledger.turn)
            begin_run(ledger, TurnAbandoned(by=by, reason=reason))
    keep = awaited_by_others(turn, queue, archive)
    if again:
        # The queue may have been locked, or the process killed, before all could be marked.
        keep |= {entry["id"] for entry in queue.entries() if entry.get("superseded")}
    marked = len(queue.supersede(turn_id, why, keep=keep, via="cli"))
    if unreadable is not None and not marked:
        raise unreadable
    if again and not marked:
        raise _nothing_to_give_up(turn)
    return marked


def salvage(folders: TurnFolders, turn_id: int) -> Salvaged:
    """Keep a damaged turn up to its last whole line, so that it can be resumed.

    Raises NoSuchTurnError, TurnBusyError, JournalVersionError, and NotResumableError where nothing
    is damaged, nothing can be kept, or there is no room.
    """
    folder = folders.path(turn_id)
    try:
        return salvaged(folder, this_process().user)
    except FileNotFoundError as exc:
        raise TurnArchive(folders).no_such_turn(turn_id) from exc
    except BlockingIOError as exc:
        raise TurnBusyError(f"turn {turn_id} runs now", hint="wait until it is done") from exc
    except OSError as exc:
        raise unwritable(folders, turn_id, exc) from exc


def _nothing_to_give_up(turn: Turn) -> NotResumableError:
    return NotResumableError(f"turn {turn.turn_id} is {turn.status}: there is nothing to give up")


def prunable(
    archive: TurnArchive, keep: set[int], before: datetime, *, newest: bool = False
) -> list[int]:
    """Finished turns last written to before `before`, that nothing open needs; oldest first.

    The newest turn stays whatever it is, unless `newest` says otherwise.
    """
    found = []
    for turn_id in archive.folders.ids()[: None if newest else -1]:
        journal = archive.folders.path(turn_id) / NAME
        with suppress(FileNotFoundError, RetrievalError):
            if turn_id in keep or not _is_old(journal.parent, before):
                continue
            turn = archive.load(turn_id)
            if turn is not None and _finished(turn):
                found.append(turn_id)
    return found


def _finished(turn: Turn) -> bool:
    """An answer that could not be saved is not: it can still be."""
    unsaved = turn.status == "answered" and not turn.saved
    return turn.status in FINISHED and not unsaved


def prune(
    folders: TurnFolders,
    turn_ids: Iterable[int],
    *,
    keep: Callable[[], set[int]] = set,
    before: datetime | None = None,
) -> int:
    """Remove them, and what an interrupted run has left; how many. Raises OSError.

    Each is checked again under its lock, since it may have been resumed and have failed meanwhile:
    `keep` returns the turns that are needed by now. The newest leaves an empty folder, so that its
    number is not used again.
    """
    done = 0
    newest = max(folders.ids(), default=0)
    for turn_id in turn_ids:
        folder = folders.path(turn_id)
        # Somebody has taken it up again, or has removed it.
        with suppress(BlockingIOError, FileNotFoundError, RetrievalError):
            held = Journal(folder, create=False)
            try:
                fresh = before is not None and not _is_old(folder, before)
                if fresh or turn_id in keep() or not _finished(read_turn(folder)[0]):
                    continue
                folder.rename(_aside(folder))
                if turn_id == newest:
                    make_private_folder(folder)
            finally:
                held.close()
            done += 1
    if before is not None:
        _remove_never_begun(folders, before)
    for left in folders.root.glob(f"{PRUNED}*"):
        shutil.rmtree(left, ignore_errors=True)  # two may be at it
    return done


def _remove_never_begun(folders: TurnFolders, before: datetime) -> None:
    """A process that dies between taking a number and writing the first line leaves a folder
    without a turn."""
    for turn_id in folders.ids()[:-1]:
        folder = folders.path(turn_id)
        # One that holds anything cannot be removed, and one that is gone was somebody else's.
        with suppress(OSError):
            if folder.stat().st_mtime >= before.timestamp():
                continue
            if (folder / NAME).exists():
                held = Journal(folder, create=False)
                try:
                    if (folder / NAME).stat().st_size == 0:
                        (folder / NAME).unlink()
                finally:
                    held.close()
            folder.rmdir()


def _is_old(folder: Path, before: datetime) -> bool:
    return (folder / NAME).stat().st_mtime < before.timestamp()


def _aside(folder: Path) -> Path:
    return folder.with_name(PRUNED + folder.name)
