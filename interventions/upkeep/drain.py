"""Emergency entries back into the queue: the oldest critical first, each at most once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from interventions.entry import Entry, complete, severity_rank
from interventions.putting.errorlog import dropped_lines
from interventions.queue import InterventionQueue
from interventions.timestamps import from_text

# What the log adds to a failure, and the queue must not keep.
_LOG_FIELDS = ("logged_at", "admission", "intervention_id", "reason", "detail")


@dataclass
class Drained:
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


def drain(queue: InterventionQueue, *, by: str | None = None, via: str = "library") -> Drained:
    """Raises StorageError; what was put until then stays put."""
    failures, unusable = pending(queue)
    result = Drained(unusable=unusable)
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
