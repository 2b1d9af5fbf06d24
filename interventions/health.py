"""How the queue is doing ("Queue Health Monitoring" of the core document), and a little more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Literal, TypedDict

from interventions.entry import ESCALATION, SEVERITIES, is_open, is_snoozed
from interventions.storage.queue_file import QueueState
from interventions.storage.store import EntryFigures, Limits, figures_of
from interventions.times import from_text
from interventions.trends import outcomes

WARNING_FROM = 10
CRITICAL_FROM = 30


class Health(TypedDict):
    """The document's five keys first; ages and times in hours."""

    total: int
    unresolved: int
    by_priority: dict[str, int]
    oldest_unresolved_age_hours: float
    queue_health: Literal["healthy", "warning", "critical"]
    snoozed: int
    accepted: int
    merged: int
    counted: int
    dropped: dict[str, int]
    regressions: int
    median_hours_to_resolve: float | None
    sessions: dict[str, int]
    error_types: dict[str, int]
    limits: dict[str, int]


def health(
    state: QueueState,
    archived: Iterable[EntryFigures],
    logged: Mapping[str, int],
    limits: Limits,
    now: datetime,
) -> Health:
    """`archived` is of entries that are not in `state`; `logged` are dropped failures in the
    emergency logs, by reason."""
    unresolved = [entry for entry in state.entries if is_open(entry)]
    failures = [entry for entry in unresolved if entry["type"] != ESCALATION]
    oldest = min((from_text(entry["created_at"]) for entry in unresolved), default=now)
    ended = outcomes([*archived, *map(figures_of, state.entries)])
    # The larger of both: the queue counts what it could write, the emergency log knows the rest.
    dropped = Counter(state.dropped) | Counter(logged)
    severities = Counter(entry["severity"] for entry in unresolved)
    return {
        "total": len(state.entries),
        "unresolved": len(unresolved),
        "by_priority": {name: severities[name] for name in SEVERITIES},
        "oldest_unresolved_age_hours": _hours((now - oldest).total_seconds() / 3600),
        "queue_health": grade(len(unresolved)),
        "snoozed": sum(1 for entry in unresolved if is_snoozed(entry, now)),
        "accepted": state.admitted.get("accepted", 0),
        "merged": state.admitted.get("merged", 0),
        "counted": state.admitted.get("counted", 0),
        "dropped": dict(sorted(dropped.items())),
        "regressions": ended["regressions"],
        "median_hours_to_resolve": ended["median_hours"],
        "sessions": _largest(entry["session_id"] for entry in failures),
        "error_types": _largest(entry["error_type"] for entry in failures),
        "limits": asdict(limits),
    }


def grade(unresolved: int) -> Literal["healthy", "warning", "critical"]:
    if unresolved < WARNING_FROM:
        return "healthy"
    return "warning" if unresolved < CRITICAL_FROM else "critical"


def _hours(hours: float) -> float:
    """Never negative after a clock was set back."""
    return round(max(hours, 0.0), 3)


def _largest(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names).most_common(5))
