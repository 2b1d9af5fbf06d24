"""What the logs know and the queue has lost: failures that found no room, and a damaged file.

The error log has every failure and what became of it, the journal every transition, the archive
what left the queue, and a damaged file often still has most of its entries whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from interventions.admission.decision import count_onto
from interventions.entry import Entry, Transition, complete, severity_rank
from interventions.queue import InterventionQueue
from interventions.storage.error_log import dropped_lines, emergency_lines, error_lines
from interventions.storage.queue_file import reading, salvage
from interventions.storage.store import make_room
from interventions.times import from_text, utc_now
from interventions.transitions import Actor, happened

# What the log adds to a failure, and the queue must not keep.
_LOG_FIELDS = ("logged_at", "admission", "intervention_id", "reason", "detail")


@dataclass
class DrainResult:
    """`put` maps the id of each failure to the entry that holds it now; `left` are waiting."""

    put: dict[str, str] = field(default_factory=dict)
    left: int = 0
    unusable: int = 0


def pending(queue: InterventionQueue) -> tuple[list[Entry], int]:
    """(failures that are only in the emergency log, lines of it that are no failure)."""
    done = {
        line.get("failure_id") for line in queue.store.journal() if line.get("action") == "drain"
    }
    waiting: dict[str, Entry] = {}
    unusable = 0
    for line in dropped_lines(queue.home):
        try:
            failure = failure_of(line)
        except ValueError:
            unusable += 1
            continue
        if failure["id"] not in done:
            waiting.setdefault(failure["id"], failure)
    return sorted(waiting.values(), key=_oldest_critical_first), unusable


def drain(queue: InterventionQueue, *, by: str | None = None, via: str = "library") -> DrainResult:
    """Emergency entries back into the queue: the oldest critical first, each at most once.

    Raises StorageError; what was put until then stays put."""
    failures, unusable = pending(queue)
    result = DrainResult(unusable=unusable)
    for failure in failures:
        admission = queue.put_back(failure, by=by, via=via)
        if admission:
            result.put[failure["id"]] = admission.intervention_id or ""
        else:
            result.left += 1
    return result


def failure_of(line: dict[str, Any]) -> Entry:
    """A line of a log as the failure that was put. Raises ValueError."""
    failure = complete({name: value for name, value in line.items() if name not in _LOG_FIELDS})
    if not failure["fingerprint"]:
        raise ValueError(f"{failure['id']} has no fingerprint")
    return failure


def _oldest_critical_first(failure: Entry) -> tuple[int, float]:
    return severity_rank(failure["severity"]), from_text(failure["created_at"]).timestamp()


def restore(queue: InterventionQueue, damaged: list[Path]) -> int:
    """Put what was lost with the damaged files back as it was: how many entries. What came into the
    queue since stays as it is. Raises StorageError."""
    salvaged: list[Entry] = []
    for path in damaged:
        with reading(path):
            salvaged += salvage(path.read_bytes())
    actor = Actor.current(via="doctor")
    with queue.store.transaction(queue.lock_timeout_s) as work:
        before = work.state.entries
        journal = list(queue.store.journal())
        log = [*error_lines(queue.home), *emergency_lines(queue.home)]
        entries = rebuild(
            log=log,
            journal=journal,
            archived=queue.store.archived(),
            salvaged=salvaged,
            current=before,
        )
        kept, work.to_archive = make_room(entries, queue.limits.max_size)
        # Dropped failures are counted in the emergency log.
        admitted = Counter(
            str(line.get("admission")) for line in log if line.get("intervention_id")
        )
        work.state = replace(
            work.state, entries=kept, admitted=dict(admitted | Counter(work.state.admitted))
        )
        line = actor.line("rebuild", None, utc_now())
        work.to_journal_after.append({**line, "rebuilt_from": [path.name for path in damaged]})
    return len(entries) - len(before)


def rebuild(
    *,
    log: Iterable[dict[str, Any]],
    journal: list[Transition],
    archived: Iterable[Entry],
    salvaged: Iterable[Entry],
    current: Iterable[Entry],
) -> tuple[Entry, ...]:
    """What should be in the queue: all that was lost, oldest first, and `current` as is. Pure."""
    found = _from_log(log, journal)
    for line in happened(journal):
        changed = found.get(line["id"] or "")
        if changed is not None and "after" in line and line["version_to"] > changed["version"]:
            found[changed["id"]] = {**changed, **line["after"], "version": line["version_to"]}
    for entry in salvaged:
        known = found.get(entry["id"])
        if known is None or entry["version"] >= known["version"]:
            found[entry["id"]] = entry
    for entry in archived:
        known = found.get(entry["id"])
        if known is not None and entry["version"] >= known["version"]:
            del found[entry["id"]]
    present = {entry["id"]: entry for entry in current}
    lost = [entry for name, entry in found.items() if name not in present]
    return (*sorted(lost, key=lambda entry: str(entry["created_at"])), *present.values())


def _from_log(log: Iterable[dict[str, Any]], journal: list[Transition]) -> dict[str, Entry]:
    drained = {line["failure_id"]: line["id"] for line in journal if line.get("action") == "drain"}
    found: dict[str, Entry] = {}
    more: list[tuple[str, Entry]] = []
    seen: set[str] = set()
    for line in log:
        try:
            failure = failure_of(line)
        except ValueError:
            continue
        if failure["id"] in seen:
            continue  # the emergency log has those, too, that were dropped
        seen.add(failure["id"])
        holder = line.get("intervention_id") or drained.get(failure["id"])
        if holder == failure["id"]:
            found.setdefault(holder, failure)
        elif holder:
            more.append((holder, failure))
    for holder, failure in more:
        if holder in found:
            found[holder] = count_onto(found[holder], failure)
    return found
