"""How the queue is doing ("Queue Health Monitoring" of the core document), what failed over a
window of time, and what became of it: for `health`, the monitor and reports. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from math import inf
from statistics import median
from typing import Literal, TypedDict

from interventions.entry import ESCALATION, SEVERITIES, Entry, closed_at, is_open, is_snoozed
from interventions.settings import Limits
from interventions.storage.queue_file import QueueState
from interventions.storage.store import ClosedFigures, FailureCount, figures_of
from interventions.times import from_text, to_text

WARNING_FROM = 10
CRITICAL_FROM = 30
MOST_CAUSES = 12
# Hours.
_TOOK = {"within 10 min": 1 / 6, "1 hour": 1, "8 hours": 8, "1 day": 24, "1 week": 168}
_TOOK |= {"longer": inf}


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
    archived: ClosedFigures,
    logged: Mapping[str, int],
    limits: Limits,
    now: datetime,
) -> Health:
    """`archived` is of entries that are not in `state`; `logged` are dropped failures in the
    emergency logs, by reason."""
    unresolved = [entry for entry in state.entries if is_open(entry)]
    failures = [entry for entry in unresolved if entry["type"] != ESCALATION]
    oldest = min((from_text(entry["created_at"]) for entry in unresolved), default=now)
    ended = outcomes(archived, state.entries)
    # The larger of both: the queue counts what it could write, the emergency log knows the rest.
    dropped = Counter(state.dropped) | Counter(logged)
    severities = Counter(entry["severity"] for entry in unresolved)
    return {
        "total": len(state.entries),
        "unresolved": len(unresolved),
        "by_priority": {name: severities[name] for name in SEVERITIES},
        # Not negative after a clock was set back.
        "oldest_unresolved_age_hours": round(max((now - oldest) / timedelta(hours=1), 0.0), 3),
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


def _largest(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names).most_common(5))


class Window(StrEnum):
    """Of two to three dozen steps, so that a bar each fits a terminal."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"

    @property
    def step(self) -> timedelta:
        return timedelta(minutes={"hour": 2, "day": 60, "week": 360, "month": 1440}[self])

    @property
    def steps(self) -> int:
        return {"hour": 30, "day": 24, "week": 28, "month": 30}[self]

    def since(self, now: datetime) -> datetime:
        """The first moment of its first step; the last step is the one that `now` is in."""
        size = self.step.total_seconds()
        end = (now.timestamp() // size + 1) * size
        return datetime.fromtimestamp(end, UTC) - self.step * self.steps


class Outcomes(TypedDict):
    """Of closed entries. Times to resolve are in hours, None where nothing was resolved; `took`
    counts them by the name of the shortest time that they took no longer than."""

    verified: int
    unverified: int
    dismissed: int
    regressions: int
    median_hours: float | None
    slowest_tenth_hours: float | None
    took: dict[str, int]


class Cause(TypedDict):
    """Failures with one fingerprint; `sample` words the latest."""

    fingerprint: str
    count: int
    phase: str
    severity: str
    sample: str


class Trends(TypedDict):
    """`by_severity` has a number for each step from `since` on. Dropped failures are among them."""

    window: str
    since: str
    step_minutes: float
    failures: int
    by_severity: dict[str, list[int]]
    by_phase: dict[str, int]
    causes: list[Cause]
    admissions: dict[str, int]
    outcomes: Outcomes


def trends(
    failures: Iterable[FailureCount],
    archived: ClosedFigures,
    entries: Iterable[Entry],
    window: Window,
    now: datetime,
) -> Trends:
    """`failures` are counted in steps from `window.since(now)` on; `archived` is of entries that
    are not in `entries`, and were closed since then. Causes are without their samples."""
    since = window.since(now)
    by_severity = {name: [0] * window.steps for name in SEVERITIES}
    phases, admissions = Counter[str](), Counter[str]()
    causes: dict[str, Cause] = {}
    for step, rank, phase, fingerprint, admission, count in failures:
        severity = SEVERITIES[min(rank, len(SEVERITIES) - 1)]
        by_severity[severity][min(step, window.steps - 1)] += count
        phases[phase] += count
        admissions[admission] += count
        new = Cause(fingerprint=fingerprint, count=0, phase=phase, severity=severity, sample="")
        cause = causes.setdefault(fingerprint, new)
        cause["count"] += count
        cause["phase"] = phase
        cause["severity"] = min(cause["severity"], severity, key=SEVERITIES.index)
    begun = to_text(since)
    return {
        "window": str(window),
        "since": begun,
        "step_minutes": window.step.total_seconds() / 60,
        "failures": phases.total(),
        "by_severity": by_severity,
        "by_phase": dict(phases.most_common()),
        "causes": sorted(causes.values(), key=lambda cause: -cause["count"])[:MOST_CAUSES],
        "admissions": dict(admissions.most_common()),
        "outcomes": outcomes(archived, [one for one in entries if closed_at(one) >= begun]),
    }


def outcomes(archived: ClosedFigures, entries: Collection[Entry]) -> Outcomes:
    here = figures_of(entries)
    # Never negative after a clock was set back.
    hours = sorted(max(took, 0.0) for took in archived.hours + here.hours)
    within = [bisect_right(hours, most) for most in _TOOK.values()]
    verified = archived.verified + here.verified
    return {
        "verified": verified,
        "unverified": len(hours) - verified,
        "dismissed": archived.dismissed + here.dismissed,
        "regressions": archived.regressions + here.regressions,
        "median_hours": round(median(hours), 3) if hours else None,
        "slowest_tenth_hours": round(hours[len(hours) * 9 // 10], 3) if hours else None,
        "took": dict(zip(_TOOK, (high - low for low, high in pairwise([0, *within])), strict=True)),
    }
