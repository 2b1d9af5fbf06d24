"""What the files know and the queue does not hold, put back: failures that found no room, and
entries that were lost with a file.

The error logs have every failure and what became of it, the journal every transition, the archive
what left the queue, and a damaged file often still has most of its entries whole. `drain` puts back
what was dropped, as a new failure; `doctor --rebuild` what was acknowledged, as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Any

from interventions.admission.decision import count_onto
from interventions.admission.put import admit_again
from interventions.entry import Entry, Transition, closed_at, complete
from interventions.queue import InterventionQueue
from interventions.storage.error_log import ADDED
from interventions.storage.file_store import FileStore
from interventions.storage.queue_file import reading, salvage, shortened
from interventions.storage.store import Transaction, make_room
from interventions.transitions import Actor

_AT_ONCE = 100


@dataclass
class Recovery:
    """`put` maps the id of each failure to the entry that holds it now; `left` are waiting.
    `restored` are entries that are back; of those that are `given_up` too little is known."""

    put: dict[str, str] = field(default_factory=dict)
    left: int = 0
    unusable: int = 0
    restored: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


def recover(
    queue: InterventionQueue, *, lost: bool, by: str | None = None, via: str = "library"
) -> Recovery:
    """Put back what was dropped, the oldest critical first and each at most once; or with `lost`
    every entry that was acknowledged and is in no file. What is there stays as it is.

    Raises StorageError; what was put until then stays put."""
    actor, result = Actor.current(by=by, via=via), Recovery()
    if lost:
        with queue.store.transaction(queue.lock_timeout_s, restoring=True) as work:
            _restore(work, queue, actor, result)
        return result
    waiting, lines = queue.store.waiting()
    while batch := list(islice(lines, _AT_ONCE)):
        failures = [failure for line in batch if (failure := _failure_of(line)) is not None]
        result.unusable += len(batch) - len(failures)
        before = len(result.put)
        with queue.store.transaction(queue.lock_timeout_s) as work:
            for failure in failures:
                outcome = admit_again(work, failure, queue.limits, queue.store, actor)
                if outcome.admission:
                    result.put[failure["id"]] = outcome.admission.intervention_id or ""
        if failures and len(result.put) == before:
            break  # there is no room
    result.left = waiting - len(result.put) - result.unusable
    return result


def _restore(work: Transaction, queue: InterventionQueue, actor: Actor, result: Recovery) -> None:
    """The lock is held; the lines of what is missing are all that is read."""
    files = FileStore(queue.home)
    present = {entry["id"] for entry in work.state.entries}
    damaged = files.damaged_files()
    found: dict[str, Entry] = {}
    for path in damaged:
        with reading(path):
            found |= {entry["id"]: entry for entry in salvage(path.read_bytes())}
    for name in files.missing(present, closed=True):
        archived = files.archived_one(name)
        journal = list(files.journal(name))[::-1]
        entry = rebuilt(name, archived, files.failures_of(name), journal)
        known = [one for one in (found.get(name), entry) if one is not None]
        if known:
            found[name] = max(known, key=itemgetter("version", "occurrences"))
        else:
            result.given_up.append(name)
    for name in list(found):
        archived = files.archived_one(name)
        if name in present or (archived and archived["version"] >= found[name]["version"]):
            del found[name]
    lost = sorted(found.values(), key=lambda entry: entry["created_at"])
    kept, work.to_archive = make_room((*lost, *work.state.entries), queue.limits.max_size)
    work.changed = {entry["id"]: entry for entry in kept if entry["id"] in found}
    # Dropped failures are counted in the emergency log.
    admitted = dict(files.admitted() | Counter(work.state.admitted))
    work.state = work.state._replace(entries=tuple(map(shortened, kept)), admitted=admitted)
    result.restored = [entry["id"] for entry in lost]
    result.damaged = [path.name for path in damaged]
    line = actor.line("rebuild")
    work.to_journal.append({**line, "rebuilt_from": result.damaged, "given_up": result.given_up})


def rebuilt(
    name: str,
    archived: Entry | None,
    logged: Iterable[dict[str, Any]],
    journal: Iterable[Transition],
) -> Entry | None:
    """An entry as it was: from the archive, else from its own line of the log, with what the log
    says it holds since and what the journal says was done. Pure; None if neither has it. In the
    log its own line comes first; it has none if its writer was killed before it wrote one, and is
    the first failure that it holds then."""
    entry, since = archived, closed_at(archived) if archived else ""
    for line in logged:
        if (failure := _failure_of(line)) is None:
            continue
        if entry is None:
            entry = {**failure, "id": name}
        elif failure["id"] != name and str(line.get("logged_at")) > since:
            entry = count_onto(entry, failure)
    for change in journal:
        if entry is not None and "after" in change and change["version_to"] > entry["version"]:
            with suppress(ValueError):  # a hand has been at the line
                changed = {**entry, **change["after"], "version": change["version_to"]}
                entry = complete(changed)
    return entry


def _failure_of(line: dict[str, Any]) -> Entry | None:
    """A line of a log as the failure that was put, if it is one."""
    try:
        failure = complete({name: value for name, value in line.items() if name not in ADDED})
    except ValueError:
        return None
    return failure if failure["fingerprint"] else None
