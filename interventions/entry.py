"""An intervention as it is stored: a plain dict, so that reading the queue loads no pydantic.

Entries are never changed in place; a change makes a new dict. Every function here is pure.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NotRequired, TypedDict, cast

from interventions.plaintext import one_line
from interventions.times import from_text


class Resolution(TypedDict, total=False):
    """How an entry was closed; `verified` when a resumed turn got past the failed phase."""

    kind: str
    at: str
    by: str
    note: str
    verified: bool
    turn_status: str
    reopened_at: str


class Sample(TypedDict, total=False):
    """One failure, as it was; `id` finds its line in the error log."""

    id: str
    created_at: str
    type: str
    severity: str
    phase: str
    tool: str | None
    error_type: str
    error_message: str
    error_category: str | None
    session_id: str
    turn_id: int
    request_id: str | None
    traceback: str | None
    context: dict[str, Any]


class MergedFailure(TypedDict, total=False):
    """A failure with a fingerprint of its own that is held by another's entry; `turns` are those of
    the entry's that failed with it."""

    fingerprint: str
    type: str
    phase: str
    tool: str | None
    error_type: str
    severity: str
    count: int
    first_seen: str
    last_seen: str
    regression_of: str
    turns: list[int]
    sample: Sample


class Entry(TypedDict):
    """An intervention after `complete`. Times are ISO 8601 in UTC; fields of a newer version are
    kept beside these."""

    id: str
    created_at: str
    type: str
    severity: str
    phase: str
    tool: str | None
    error_type: str
    error_message: str
    session_id: str
    turn_id: int
    context: dict[str, Any]
    fingerprint: str
    occurrences: int
    first_seen: str
    last_seen: str
    resolved_at: str | None
    resolution: str | None
    dismissed_at: str | None
    merged: list[MergedFailure]
    resolutions: list[Resolution]
    version: int
    fp_version: NotRequired[int]
    error_category: NotRequired[str | None]
    request_id: NotRequired[str | None]
    traceback: NotRequired[str | None]
    exception_type: NotRequired[str | None]
    culprit: NotRequired[str | None]
    location: NotRequired[str | None]
    status_code: NotRequired[int | None]
    environment: NotRequired[dict[str, Any]]
    latest_sample: NotRequired[Sample | None]
    turns: NotRequired[list[int]]
    retry_of: NotRequired[str | None]
    regression_of: NotRequired[str | None]
    regression_note: NotRequired[str | None]
    snoozed_until: NotRequired[str | None]
    snoozed_until_occurrences: NotRequired[int | None]
    owner: NotRequired[str | None]
    superseded: NotRequired[str | None]


class EntryFields(TypedDict, total=False):
    """What a person's change writes into an entry."""

    resolved_at: str | None
    dismissed_at: str | None
    resolution: str | None
    resolutions: list[Resolution]
    snoozed_until: str | None
    snoozed_until_occurrences: int | None
    owner: str | None
    superseded: str | None


class Transition(TypedDict, total=False):
    """A line of the journal: who changed an entry, when and from where, with the fields before and
    after. `drain` and `rebuild` are lines without them."""

    transition_id: str
    at: str
    action: str
    id: str | None
    by: str
    via: str
    host: str
    version_from: int
    version_to: int
    before: EntryFields
    after: EntryFields
    undoes: str
    failure_id: str
    rebuilt_from: list[str]


ESCALATION = "escalation"
SEVERITIES = ("critical", "high", "medium")
TYPES = ("error", "captcha", "permission", "schema_failure", "limit_exceeded", ESCALATION)

TIMES = ("created_at", "resolved_at", "dismissed_at", "snoozed_until", "first_seen", "last_seen")
_NUMBERS = ("version", "occurrences", "turn_id", "snoozed_until_occurrences")
_TEXTS = (
    "tool",
    "error_category",
    "request_id",
    "traceback",
    "exception_type",
    "culprit",
    "location",
    "resolution",
    "retry_of",
    "regression_of",
    "regression_note",
    "owner",
    "superseded",
)
_ROW_TEXTS = (
    *("fingerprint", "type", "phase", "tool", "error_type", "severity"),
    *("first_seen", "last_seen", "regression_of"),
)
_OBJECTS = ("context", "environment", "latest_sample")
_MOST = 2**63


def complete(entry: Mapping[str, Any]) -> Entry:
    """A hand-written or older entry with what it lacks filled in; what is unknown is kept.

    Every field then has its type: a value that should be a text becomes JSON, and a value that
    should be an object is put into one. Raises ValueError when it cannot be an intervention.
    The core document's own example, which has the session and the turn inside `context`, is one.
    """
    if not isinstance(entry, Mapping):
        raise ValueError("an entry is not an object")
    if not isinstance(entry.get("id"), str) or not entry["id"]:
        raise ValueError("an entry has no id")
    for name in TIMES:
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
    for name in _NUMBERS:
        if not _is_number(entry.get(name) or 0):
            raise ValueError(f"{entry['id']}: {name} is not a number")
    turns = entry.get("turns") or []
    if not isinstance(turns, list) or not all(map(_is_number, turns)):
        raise ValueError(f"{entry['id']}: turns is not a list of numbers")
    converted: dict[str, Any] = {
        name: _text(entry[name]) for name in _TEXTS if entry.get(name) is not None
    }
    converted |= {name: _object(entry[name]) for name in _OBJECTS if entry.get(name) is not None}
    context = converted.get("context", {})
    whole = {
        **entry,
        "tool": None,
        **converted,
        "context": context,
        "type": _text(entry.get("type") or "error"),
        "severity": _text(entry.get("severity") or "high"),
        "phase": _text(entry.get("phase") or "unknown"),
        "error_type": _text(entry.get("error_type") or "unknown"),
        "error_message": _text(entry.get("error_message") or ""),
        "session_id": _text(entry.get("session_id") or context.get("session_id") or "unknown"),
        "turn_id": entry.get("turn_id") or _number(context.get("turn_id")),
        "fingerprint": _text(entry.get("fingerprint") or ""),
        "occurrences": entry.get("occurrences") or 1,
        "first_seen": entry.get("first_seen") or entry["created_at"],
        "last_seen": entry.get("last_seen") or entry["created_at"],
        "resolved_at": entry.get("resolved_at"),
        "resolution": converted.get("resolution"),
        "dismissed_at": entry.get("dismissed_at"),
        "merged": [_merged(row) for row in entry.get("merged") or ()],
        "resolutions": entry.get("resolutions") or [],
        "version": entry.get("version") or 1,
    }
    return cast(Entry, whole)


def _number(value: Any) -> int:
    return value if _is_number(value) else 0


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and abs(value) < _MOST


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"value": value}


def _merged(row: dict[str, Any]) -> dict[str, Any]:
    converted: dict[str, Any] = {
        name: _text(row[name]) for name in _ROW_TEXTS if row.get(name) is not None
    }
    if not _is_number(row.get("count", 1)):
        converted["count"] = 1
    if not isinstance(row.get("sample") or {}, dict):
        converted["sample"] = _object(row["sample"])
    turns = row.get("turns") or []
    if not isinstance(turns, list) or not all(map(_is_number, turns)):
        converted["turns"] = []
    return row | converted if converted else row


def turns_of(entry: Entry) -> list[int]:
    """Its own turn, and those that are counted on it; empty for a failure outside any turn."""
    own: list[int] = [entry["turn_id"]] if entry["turn_id"] else []
    return own + list(entry.get("turns") or ())


def is_about(entry: Entry, turn_id: int) -> bool:
    """Whether the turn is the entry's own, or is counted on it."""
    return turn_id in turns_of(entry)


def turns_needed(entries: Iterable[Entry]) -> set[int]:
    """The turns that open entries are about."""
    return {turn for entry in entries if is_open(entry) for turn in turns_of(entry)}


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


def short_ids(ids: Iterable[str], most: int = 5) -> str:
    """The short ids, with how many more there are."""
    shown = list(map(short_id, ids))
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def closed_at(entry: Entry) -> str:
    """ISO text, empty while the entry is open."""
    return entry.get("resolved_at") or entry.get("dismissed_at") or ""


def was_resolved(entry: Entry) -> bool:
    """Now or at some time: it may have been reopened, and even dismissed, since."""
    rows = entry.get("resolutions") or ()
    return bool(entry.get("resolved_at")) or any(row.get("kind") == "resolved" for row in rows)


def fingerprints(entry: Entry) -> set[str]:
    """Its own and those of what was merged into it."""
    own = {entry.get("fingerprint") or ""}
    return (own | {row.get("fingerprint") or "" for row in entry.get("merged") or ()}) - {""}


def priority(entry: Entry | Mapping[str, Any]) -> int:
    """1 to 4, the first match of system.md's list; never stored."""
    if entry.get("type") in ("captcha", "permission", ESCALATION):
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
    """Severity, then priority, then what happened last."""
    latest = sorted(entries, key=lambda entry: from_text(entry["last_seen"]), reverse=True)
    return sorted(latest, key=lambda entry: (severity_rank(entry["severity"]), priority(entry)))


def latest_failure(entry: Entry) -> Entry | Sample:
    """The latest failure of the entry's own turn: after a retry it may be another one than the
    failure that the entry began with."""
    found = [_as_sample(entry["type"], entry.get("latest_sample"))]
    found += [_as_sample(row.get("type", ""), row.get("sample")) for row in entry["merged"]]
    again = [one for one in found if one.get("turn_id") == entry["turn_id"] != 0]
    if not again:
        return entry
    return max(again, key=lambda sample: str(sample.get("created_at")))


def _as_sample(kind: str, sample: Sample | None) -> Sample:
    return {**sample, "type": kind} if isinstance(sample, dict) else {}


def short_id(intervention_id: str) -> str:
    """The random part, which commands accept in place of the whole; safe to show."""
    return one_line(intervention_id.rpartition("_")[2] or intervention_id)


def new_id(created_at: datetime) -> str:
    """`int_YYYYMMDD_HHMMSS_xxxxxx`: the moment in UTC and a random part to type."""
    return f"int_{created_at.astimezone(UTC):%Y%m%d_%H%M%S}_{os.urandom(3).hex()}"
