"""An intervention as it is stored: a plain dict, so that reading the queue loads no pydantic.

Entries are never changed in place; a change makes a new dict. Every function here is pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from interventions.timestamps import from_text

Entry = dict[str, Any]

SEVERITIES = ("critical", "high", "medium")
TYPES = ("error", "captcha", "permission", "schema_failure", "limit_exceeded", "escalation")

_TIMES = ("created_at", "resolved_at", "dismissed_at", "snoozed_until", "first_seen", "last_seen")


def complete(entry: Entry) -> Entry:
    """A hand-written or older entry with what it lacks filled in; what is unknown is kept.

    Raises ValueError when it cannot be an intervention. The core document's own example, which has
    the session and the turn inside `context`, is one.
    """
    if not isinstance(entry, dict):
        raise ValueError("an entry is not an object")
    if not isinstance(entry.get("id"), str) or not entry["id"]:
        raise ValueError("an entry has no id")
    for name in _TIMES:
        if entry.get(name) is not None:
            try:
                from_text(entry[name])
            except (ValueError, TypeError) as error:
                raise ValueError(f"{entry['id']}: {name}: {error}") from error
    if entry.get("created_at") is None:
        raise ValueError(f"{entry['id']} has no created_at")
    for name in ("merged", "resolutions"):
        rows = entry.get(name) or []
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ValueError(f"{entry['id']}: {name} is not a list of objects")
    for name in ("version", "occurrences", "turn_id"):
        if not isinstance(entry.get(name) or 0, int):
            raise ValueError(f"{entry['id']}: {name} is not a number")
    context = entry.get("context")
    context = context if isinstance(context, dict) else {}
    return {
        **entry,
        "context": context,
        "type": str(entry.get("type") or "error"),
        "severity": str(entry.get("severity") or "high"),
        "phase": str(entry.get("phase") or "unknown"),
        "tool": entry.get("tool"),
        "error_type": str(entry.get("error_type") or "unknown"),
        "error_message": str(entry.get("error_message") or ""),
        "session_id": str(entry.get("session_id") or context.get("session_id") or "unknown"),
        "turn_id": entry.get("turn_id") or _number(context.get("turn_id")),
        "fingerprint": str(entry.get("fingerprint") or ""),
        "occurrences": entry.get("occurrences") or 1,
        "first_seen": entry.get("first_seen") or entry["created_at"],
        "last_seen": entry.get("last_seen") or entry["created_at"],
        "resolved_at": entry.get("resolved_at"),
        "resolution": entry.get("resolution"),
        "dismissed_at": entry.get("dismissed_at"),
        "merged": entry.get("merged") or [],
        "resolutions": entry.get("resolutions") or [],
        "version": entry.get("version") or 1,
    }


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def is_open(entry: Entry) -> bool:
    """Not resolved and not dismissed; a snoozed entry is open."""
    return not entry.get("resolved_at") and not entry.get("dismissed_at")


def open_ones(entries: Iterable[Entry]) -> list[Entry]:
    """`is_open` of each, without a call for each: every put asks."""
    return [e for e in entries if not (e["resolved_at"] or e["dismissed_at"])]


def is_snoozed(entry: Entry, now: datetime) -> bool:
    until, wake_at = entry.get("snoozed_until"), entry.get("snoozed_until_occurrences")
    if not (until or wake_at) or not is_open(entry):
        return False
    return bool((until and now < from_text(until)) or (wake_at and entry["occurrences"] < wake_at))


def state_of(entry: Entry, now: datetime) -> str:
    if entry.get("resolved_at"):
        return "resolved"
    if entry.get("dismissed_at"):
        return "dismissed"
    return "snoozed" if is_snoozed(entry, now) else "open"


def closed_at(entry: Entry) -> str:
    """ISO text, empty while the entry is open."""
    return entry.get("resolved_at") or entry.get("dismissed_at") or ""


def fingerprints(entry: Entry) -> set[str]:
    """Its own and those of what was merged into it."""
    own = {entry.get("fingerprint") or ""}
    return (own | {row.get("fingerprint") or "" for row in entry.get("merged") or ()}) - {""}


def priority(entry: Entry) -> int:
    """1 to 4, the first match of system.md's list; never stored."""
    if entry.get("type") in ("captcha", "permission", "escalation"):
        return 2
    down = entry.get("error_category") in ("llm_error", "retrieval_error")
    if entry.get("severity") == "critical" or down:
        return 1
    if entry.get("type") == "limit_exceeded" or entry.get("phase") in ("validation", "save"):
        return 4
    return 3


def severity_rank(severity: object) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def worst_first(entries: Iterable[Entry]) -> list[Entry]:
    """Severity, then priority, then the newest."""
    newest = sorted(entries, key=lambda entry: from_text(entry["created_at"]), reverse=True)
    return sorted(newest, key=lambda entry: (severity_rank(entry["severity"]), priority(entry)))


def short_id(intervention_id: str) -> str:
    """The random part, which commands accept in place of the whole."""
    return intervention_id.rpartition("_")[2] or intervention_id
