"""What is wrong with the queue's files, and the mending of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from interventions import jsonl, queue_format
from interventions.drain import pending
from interventions.errorlog import error_lines
from interventions.errors import CorruptQueueError, LockTimeoutError, NoResumerError, StorageError
from interventions.file_store import CORRUPT_PREFIX, TEMPORARY_PREFIX, sweep
from interventions.home import (
    PRIVATE_FILE_MODE,
    PRIVATE_FOLDER_MODE,
    archive_file,
    error_log_folder,
    lock_file,
    queue_file,
    state_folder,
    transitions_file,
)
from interventions.lock_holder import holders
from interventions.queue import InterventionQueue
from interventions.rebuild import rebuild
from interventions.resumers import find_resumer
from interventions.retention import make_room
from interventions.timestamps import to_text, utc_now
from interventions.transitions import Actor


@dataclass(frozen=True)
class Finding:
    """`fine` needs nothing; `mended` was wrong and is right now; `todo` is for a person."""

    what: str
    fine: bool = True
    mended: bool = False
    todo: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def examine(queue: InterventionQueue, *, mend: bool) -> list[Finding]:
    """In the order of what must be right for the next thing to be. Raises nothing of the queue."""
    findings = [Finding(f"home: {queue.home}"), *_folders(queue.home)]
    if all(finding.fine for finding in findings):
        try:
            findings += _lock(queue)
            findings += _queue(queue, mend=mend)
            findings += _left_overs(queue, mend=mend)
            findings += _modes(queue.home, mend=mend)
            findings += _logs(queue)
        except StorageError as error:
            findings.append(Finding(str(error), fine=False, todo=error.hint))
    findings.append(_resumer())
    return findings


def _folders(home: Path) -> Iterator[Finding]:
    for folder in (state_folder(home), error_log_folder(home)):
        existing = folder
        while not existing.exists() and existing.parent != existing:
            existing = existing.parent
        if not existing.is_dir():
            yield Finding(f"{existing} is no folder", fine=False, todo="move it out of the way")
        elif not os.access(existing, os.R_OK | os.W_OK | os.X_OK):
            yield Finding(
                f"{existing} cannot be written", fine=False, todo=f"chmod u+rwx {existing}"
            )


def _lock(queue: InterventionQueue) -> Iterator[Finding]:
    try:
        with queue.store.transaction(min(queue.lock_timeout_s, 2.0)):
            pass
    except LockTimeoutError as error:
        who = ", ".join(holders(lock_file(queue.home))) or "an unknown process"
        raise StorageError(f"{error}; held by {who}", hint="end that process, or wait") from error
    except CorruptQueueError:
        pass  # now set aside, and what `_queue` is about
    yield Finding("the lock is free")


def _queue(queue: InterventionQueue, *, mend: bool) -> Iterator[Finding]:
    aside = _not_rebuilt(queue)
    try:
        count = len(queue.entries())
    except CorruptQueueError as error:
        yield Finding(str(error), fine=False, todo=error.hint)
        return
    if not aside:
        yield Finding(f"the queue parses: {count} entries, {queue.open_count()} open")
        return
    names = ", ".join(path.name for path in aside)
    if not mend:
        yield Finding(f"damaged queue files: {names}", False, todo="interventions doctor")
        return
    restored = _rebuild(queue, aside)
    yield Finding(f"restored {restored} entries that were lost with {names}", False, mended=True)


def _not_rebuilt(queue: InterventionQueue) -> list[Path]:
    done = {name for line in queue.journal() for name in line.get("rebuilt_from") or ()}
    found = sorted(state_folder(queue.home).glob(f"{CORRUPT_PREFIX}*.json"))
    return [path for path in found if path.name not in done]


def _rebuild(queue: InterventionQueue, aside: list[Path]) -> int:
    salvaged = [entry for path in aside for entry in queue_format.salvage(path.read_bytes())]
    actor = Actor.current(via="doctor")
    with queue.store.transaction(queue.lock_timeout_s) as work:
        before = work.state.entries
        entries = rebuild(
            log=error_lines(queue.home),
            journal=list(queue.store.journal()),
            archived=queue.store.archived(),
            salvaged=salvaged,
            current=before,
        )
        kept, work.to_archive = make_room(entries, queue.limits.max_size)
        work.state = replace(work.state, entries=kept)
        work.to_journal_after.append(
            {
                "at": to_text(utc_now()),
                "action": "rebuild",
                "id": None,
                "rebuilt_from": [path.name for path in aside],
                "by": actor.name,
                "via": actor.via,
                "host": actor.host,
            }
        )
    return len(entries) - len(before)


def _left_overs(queue: InterventionQueue, *, mend: bool) -> Iterator[Finding]:
    folder = state_folder(queue.home)
    if not mend:
        left = list(folder.glob(f"{TEMPORARY_PREFIX}*.tmp"))
    else:
        with queue.store.transaction(queue.lock_timeout_s):
            left = sweep(folder)
    if left:
        yield Finding(f"{len(left)} left-over temporary files", False, mended=mend)


def _modes(home: Path, *, mend: bool) -> Iterator[Finding]:
    places = [
        (state_folder(home), PRIVATE_FOLDER_MODE),
        (error_log_folder(home), PRIVATE_FOLDER_MODE),
    ]
    files = [queue_file(home), archive_file(home), transitions_file(home)]
    files += sorted(error_log_folder(home).glob("*.jsonl"))
    places += [(path, PRIVATE_FILE_MODE) for path in files]
    for path, mode in places:
        if not path.exists() or not path.stat().st_mode & 0o077:
            continue
        what = f"{path} can be read by others"
        if mend:
            path.chmod(mode)
        yield Finding(what, False, mended=mend, todo="" if mend else f"chmod {mode:o} {path}")


def _logs(queue: InterventionQueue) -> Iterator[Finding]:
    home = queue.home
    logs = [archive_file(home), transitions_file(home), *error_log_folder(home).glob("*.jsonl")]
    for path in logs:
        torn = jsonl.torn_lines(path)
        if torn:
            yield Finding(f"{path}: {torn} torn lines, which are passed over")
    waiting, _ = pending(queue)
    if waiting:
        yield Finding(
            f"{len(waiting)} failures wait in the emergency log", todo="interventions drain"
        )


def _resumer() -> Finding:
    try:
        return Finding(f"turns are resumed by {type(find_resumer()).__module__}")
    except NoResumerError as error:
        return Finding(f"no retry: {error}")
