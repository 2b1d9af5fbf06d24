"""What is wrong with the queue's files, and how it is mended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from interventions.errors import CorruptQueueError, NoResumerError, StorageError
from interventions.home import (
    PRIVATE_FILE_MODE,
    PRIVATE_FOLDER_MODE,
    archive_file,
    error_log_folder,
    lock_file,
    queue_file,
    state_folder,
    sweep_temporary,
    temporary_files,
    transitions_file,
)
from interventions.queue import InterventionQueue
from interventions.recovery import recover
from interventions.retry.entry_points import (
    describe_lost_turns,
    find_resumer,
    find_turn_reader,
    with_lost_turns,
)
from interventions.settings import retention_settings
from interventions.storage import jsonl
from interventions.storage.disk import obstacle
from interventions.storage.file_store import UNUSABLE_PREFIX, FileStore
from interventions.storage.history import History
from interventions.storage.lock import FairLock
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
    """In the order of what must be right for the next thing to be. Raises nothing of the queue."""
    findings = [Finding(f"home: {queue.home}"), *_folders(queue.home)]
    if all(finding.fine for finding in findings):
        try:
            findings += _lock(queue, mend=mend)
            findings += _queue(queue, mend=mend)
            findings += _modes(queue.home, mend=mend)
            findings += _logs(queue)
            findings += _retention(queue, mend=mend)
            findings += _turns(queue)
        except StorageError as error:
            findings.append(Finding(str(error), fine=False, todo=error.hint))
        except OSError as error:
            findings.append(Finding(f"cannot go on: {error}", fine=False, todo=_MEND_MODES))
    findings.append(_resumer())
    return findings


def _folders(home: Path) -> Iterator[Finding]:
    for folder in (state_folder(home), error_log_folder(home)):
        existing = folder
        while not existing.exists() and existing.parent != existing:
            existing = existing.parent
        if not existing.is_dir():
            yield Finding(f"{existing} is no folder", fine=False, todo="move it out of the way")
        elif not os.access(existing, os.R_OK | os.X_OK):
            yield Finding(f"{existing} cannot be read", fine=False, todo=f"chmod u+rwx {existing}")
        elif (found := obstacle(existing)) is not None:
            yield Finding(found.what, fine=False, todo=found.todo)


def _lock(queue: InterventionQueue, *, mend: bool) -> Iterator[Finding]:
    path = lock_file(queue.home)
    lock = FairLock(path).hold(min(queue.lock_timeout_s, 2.0)) if path.exists() else nullcontext()
    with lock:
        # Without a writer no temporary file is needed any more.
        target = Path(os.path.realpath(queue_file(queue.home)))  # also of a link to itself
        left = temporary_files(target)
        if mend and left:
            sweep_temporary(target)
    yield Finding("the lock is free")
    if left:
        yield Finding(f"{len(left)} left-over temporary files", False, mended=mend)


def _queue(queue: InterventionQueue, *, mend: bool) -> Iterator[Finding]:
    todo, wrong = "interventions doctor --rebuild", []
    try:
        state = queue.store.read()
        folder = f"{state_folder(queue.home)}/{UNUSABLE_PREFIX}*"
        wrong = [f"an entry cannot be read ({folder}): {why}" for _, why in state.unusable]
        wrong += [
            f"damaged queue file: {path.name}" for path in FileStore(queue.home).damaged_files()
        ]
        fine = f"the queue parses: {len(state.entries)} entries, {queue.open_count()} open"
    except CorruptQueueError as error:
        wrong = [str(error)]
    if not wrong:
        yield Finding(fine)
        return
    for what in wrong:
        yield Finding(what, False, mended=mend, todo="" if mend else todo)
    if mend:
        found = recover(queue, lost=True, via="doctor")
        names = f" with {', '.join(found.damaged)}" if found.damaged else ""
        what = f"restored {len(found.restored)} entries that were lost{names}"
        yield Finding(what, False, mended=True)
        if found.given_up:
            what = f"no file knows what these were: {', '.join(found.given_up)}"
            yield Finding(what, False, mended=True)


def _modes(home: Path, *, mend: bool) -> Iterator[Finding]:
    places = [
        (state_folder(home), PRIVATE_FOLDER_MODE),
        (error_log_folder(home), PRIVATE_FOLDER_MODE),
    ]
    files = [queue_file(home), archive_file(home), transitions_file(home)]
    files += sorted(error_log_folder(home).glob("*.jsonl"))
    places += [(path, PRIVATE_FILE_MODE) for path in files]
    for path, mode in places:
        # A group that was given access keeps it.
        if not path.exists() or not path.stat().st_mode & 0o007:
            continue
        mended = False
        if mend:
            with suppress(OSError):  # of another user
                path.chmod(mode)
                mended = True
        what, todo = f"{path} can be read by others", f"chmod {mode:o} {path}"
        yield Finding(what, False, mended=mended, todo="" if mended else todo)


def _logs(queue: InterventionQueue) -> Iterator[Finding]:
    home = queue.home
    logs = [archive_file(home), transitions_file(home), *error_log_folder(home).glob("*.jsonl")]
    for path in logs:
        try:
            torn = jsonl.torn_lines(path)
        except OSError as error:
            what = f"cannot read {path}: {error.strerror or error}"
            yield Finding(what, fine=False, todo=_MEND_MODES)
            return
        if torn:
            yield Finding(f"{path}: {torn} torn lines, which are passed over")
    waiting, _ = History(home).waiting()
    if waiting:
        yield Finding(f"{waiting} failures wait in the emergency log", todo="interventions drain")


def _retention(queue: InterventionQueue, *, mend: bool) -> Iterator[Finding]:
    """What `[retention]` does not keep; changes of people let go of it too, once a day."""
    keep, store = retention_settings(queue.home), FileStore(queue.home)
    before = store.closed_before(keep.archive_days, keep.archive_entries)
    line = Actor.current(via="doctor").line("prune")
    if mend and before and (gone := store.prune(before, line, queue.lock_timeout_s)):
        yield Finding(f"the archive let go of {gone} entries that were closed before {before}")


def _turns(queue: InterventionQueue) -> Iterator[Finding]:
    """Nothing of the queue's is wrong then, so it is no failure of the queue."""
    try:
        reader = find_turn_reader()
        lost = with_lost_turns(queue.entries(), queue.home, reader)
    except (CorruptQueueError, NoResumerError):
        return  # another finding says so
    if lost:
        what, todo = describe_lost_turns(lost)
        yield Finding(what, todo=todo)


def _resumer() -> Finding:
    try:
        return Finding(f"turns are resumed by {type(find_resumer()).__module__}")
    except NoResumerError as error:
        return Finding(f"no retry: {error}")
