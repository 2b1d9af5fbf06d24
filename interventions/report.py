"""What failed over a window of time, what it blocks now, and how it was mended: in figures."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, TypedDict

from interventions.entry import (
    Entry,
    closed_at,
    fingerprints,
    is_open,
    turns_needed,
    turns_of,
    was_resolved,
)
from interventions.health import Cause, Health, Trends, Window
from interventions.secrets.redaction import WHOLE, redact
from interventions.times import to_text, utc_now
from interventions.view.description import known_fix
from interventions.view.groups import turns_of_others

if TYPE_CHECKING:
    from interventions.queue import InterventionQueue

FIXES_LOOKED_AT = 5  # of a cause, the latest archived first


class CauseReport(Cause):
    """`blocks` are the turns that wait for its fix, `fix` how it was resolved last."""

    blocks: int
    fix: str | None


class Report(TypedDict):
    """`project` is the name of the home's folder. `blocked` counts turns."""

    project: str
    made_at: str
    health: Health
    trends: Trends
    causes: list[CauseReport]
    blocked: int


def report(queue: InterventionQueue, window: Window, now: datetime | None = None) -> Report:
    """Redacted once more. Raises StorageError."""
    now = now or utc_now()
    found, entries = queue.trends(window, now), queue.entries()
    causes: list[CauseReport] = []
    for cause in found["causes"]:
        name = cause["fingerprint"]
        past = islice(queue.store.archived_resolved([name]), FIXES_LOOKED_AT)
        blocks = len(_blocked_by(name, entries))
        causes.append({**cause, "blocks": blocks, "fix": _fix(name, [*past, *entries])})
    whole: Report = {
        "project": queue.home.resolve().name,
        "made_at": to_text(now.replace(microsecond=0)),
        "health": queue.health(now=now),
        "trends": found,
        "causes": causes,
        "blocked": len(turns_needed(entries)),
    }
    redacted: Report = redact(whole, WHOLE)
    return redacted


def _blocked_by(fingerprint: str, entries: Iterable[Entry]) -> set[int]:
    """The turns that failed so, and whose entries are open."""
    turns: set[int] = set()
    for entry in filter(is_open, entries):
        if entry["fingerprint"] == fingerprint:
            turns |= set(turns_of(entry)) - set(turns_of_others(entry))
        for row in entry["merged"]:
            if row.get("fingerprint") == fingerprint:
                turns.update(row.get("turns") or ())
    return turns


def _fix(fingerprint: str, entries: Iterable[Entry]) -> str | None:
    past = [e for e in entries if was_resolved(e) and fingerprint in fingerprints(e)]
    return known_fix(max(past, key=closed_at)) if past else None
