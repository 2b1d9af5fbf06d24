"""What is wrong with the queue's files, and how it is mended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from interventions import home as places
from interventions.entry import open_ones
from interventions.errors import CorruptQueueError, NoResumerError, StorageError
from interventions.queue import InterventionQueue
from interventions.recovery import recover
from interventions.retry.contract import lost_turns
from interventions.settings import RetentionSettings, settings_of
from interventions.storage.disk import obstacle
from interventions.storage.file_store import UNUSABLE_PREFIX, FileStore
from interventions.storage.lock import FairLock
from interventions.storage.queue_file import QueueState
from interventions.transitions import Actor

_MEND_MODES = "mend its permissions; the queue's files belong to the user who runs the flow"


@dataclass(frozen=True)
class Finding:
    """`fine` needs nothing; `mended` was wrong and is right now; `todo` is for a person."""

    what: str
    fine: bool = True
    mended: bool = False
    todo: str = ""


def examine(queue: InterventionQueue, *, mend: bool) -> list[Finding]:
    """What is well and what is not, the foundations first. Raises nothing of the queue."""
    findings = [Finding(f"home: {queue.home}")]
    try:
        findings += _folders(queue.home)
        if all(finding.fine for finding in findings):
            for check in (_lock, _queue, _modes, _logs, _retention, _turns):
                findings += check(queue, mend)
    except StorageError as error:
        findings.append(Finding(str(error), fine=False, todo=error.hint))
    except OSError as error:
        what = f"cannot read {error.filename}: {error.strerror or error}"
        findings.append(Finding(what, fine=False, todo=_MEND_MODES))
    return findings


def _folders(home: Path) -> Iterator[Finding]:
    for folder in (places.state_folder(home), places.error_log_folder(home)):
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        if (found := obstacle(existing)) is not None:
            yield Finding(str(found), fine=False, todo=found.hint)


def _lock(queue: InterventionQueue, mend: bool) -> Iterator[Finding]:
    path = places.lock_file(queue.home)
    if path.exists():
        with FairLock(path).hold(min(queue.lock_timeout_s, 2.0)):
            if mend:  # as the next writer would; a link may lead to itself
                places.sweep_temporary(Path(os.path.realpath(places.queue_file(queue.home))))
    yield Finding("the lock is free")


def _queue(queue: InterventionQueue, mend: bool) -> Iterator[Finding]:
    files = queue.store
    if not isinstance(files, FileStore):
        yield from _shared_queue(queue.store.read())
        return
    try:
        state = files.read()
        folder = f"{places.state_folder(queue.home)}/{UNUSABLE_PREFIX}*"
        wrong = [f"an entry cannot be read ({folder}): {why}" for _, why in state.unusable]
        wrong += [f"damaged queue file: {path.name}" for path in files.damaged_files()]
    except CorruptQueueError as error:
        wrong = [str(error)]
    if not wrong:
        yield Finding(f"the queue parses: {_counted(state)}")
        known = {entry["id"] for entry in state.entries}
        given_up = {name for line in files.upkeep("rebuild") for name in line.get("given_up") or ()}
        if lost := [name for name in given_up - known if files.archived_one(name) is None]:
            yield Finding(f"given up by an earlier rebuild: {', '.join(sorted(lost))}")
        return
    todo = "" if mend else "interventions doctor --rebuild"
    yield from (Finding(what, fine=False, mended=mend, todo=todo) for what in wrong)
    if mend:
        found = recover(queue, lost=True, via="doctor")
        names = f" with {', '.join(found.damaged)}" if found.damaged else ""
        what = f"restored {len(found.restored)} entries that were lost{names}"
        yield Finding(what, fine=False, mended=True)
        if found.given_up:
            what = f"no file knows what these were: {', '.join(found.given_up)}"
            todo = "they are lost; a backup of shared_state/ may have them"
            yield Finding(what, fine=False, todo=todo)


def _shared_queue(state: QueueState) -> Iterator[Finding]:
    yield Finding(f"the shared queue can be read: {_counted(state)}")
    for _, why in state.unusable:
        todo = "mend or delete its row in the table `interventions`"
        yield Finding(f"an entry cannot be read: {why}", fine=False, todo=todo)


def _counted(state: QueueState) -> str:
    return f"{len(state.entries)} entries, {len(open_ones(state.entries))} open"


def _modes(queue: InterventionQueue, mend: bool) -> Iterator[Finding]:
    home = queue.home
    folders = (places.state_folder(home), places.error_log_folder(home))
    files = (places.queue_file(home), places.archive_file(home), places.transitions_file(home))
    for path in (*folders, *files, *places.error_logs(home)):
        usable = os.access(path, os.R_OK | os.W_OK)
        # A group that was given access keeps it.
        if not path.exists() or (usable and not path.stat().st_mode & 0o007):
            continue
        mode = places.PRIVATE_FOLDER_MODE if path in folders else places.PRIVATE_FILE_MODE
        mended = False
        if mend:
            with suppress(OSError):  # of another user
                path.chmod(mode)
                mended = True
        wrong = "can be read by others" if usable else "cannot be read and written"
        todo = "" if mended else f"chmod {mode:o} {path}"
        yield Finding(f"{path} {wrong}", fine=False, mended=mended, todo=todo)


def _logs(queue: InterventionQueue, mend: bool) -> Iterator[Finding]:
    waiting, _ = queue.store.waiting()
    if waiting:
        yield Finding(f"{waiting} failures wait in the emergency log", todo="interventions drain")


def _retention(queue: InterventionQueue, mend: bool) -> Iterator[Finding]:
    """What `[retention]` does not keep; changes of people let go of it too, once a day."""
    line = Actor.current(via="doctor").line("prune")
    keep = settings_of(queue.home, RetentionSettings)
    if mend and (gone := queue.store.prune(keep, line, queue.lock_timeout_s)):
        yield Finding(f"the archive let go of {gone} entries")


def _turns(queue: InterventionQueue, mend: bool) -> Iterator[Finding]:
    """Turns that are lost: something to do, but no failure of the queue."""
    with suppress(CorruptQueueError, NoResumerError):  # another finding says so
        if found := lost_turns(queue.entries(), queue.home):
            yield Finding(found[0], todo=found[1])
