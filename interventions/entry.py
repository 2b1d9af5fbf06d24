"""An intervention as it is stored: a plain dict, so that reading the queue loads no pydantic.

Entries are never changed in place; a change makes a new dict. Every function here is pure.
"""

# Annotations are types at once, not texts: a text costs each field a call of the compiler, together
# a hundredth of `interventions list`.

import json
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, TypedDict, cast

from interventions.errors import ArgumentError
from interventions.plaintext import first_of, one_line
from interventions.times import from_text

# ISO 8601 with a zone; the second word is the format of JSON Schema.
Moment = Annotated[str, "date-time"]


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
    """An intervention after `complete`, with every key: what is absent is None or empty. Fields of
    a newer version are kept beside these."""

    id: str
    type: str
    severity: str
    phase: str
    tool: str | None
    error_type: str
    error_message: str
    context: dict[str, Any]
    session_id: str
    turn_id: int
    created_at: Moment
    resolved_at: Moment | None
    resolution: str | None
    error_category: str | None
    request_id: str | None
    traceback: str | None
    exception_type: str | None
    culprit: str | None
    location: str | None
    environment: dict[str, Any]
    fingerprint: str
    fp_version: int | None
    occurrences: int
    first_seen: Moment
    last_seen: Moment
    latest_sample: Sample | None
    merged: list[MergedFailure]
    turns: list[int]
    retry_of: str | None
    regression_of: str | None
    regression_note: str | None
    resolutions: list[Resolution]
    dismissed_at: Moment | None
    snoozed_until: Moment | None
    snoozed_until_occurrences: int | None
    owner: str | None
    superseded: str | None
    version: int


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
    after. `drain`, `rebuild` and `prune` are lines without them."""

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
    given_up: list[str]
    closed_before: str


class InterventionType(StrEnum):
    ERROR = "error"
    CAPTCHA = "captcha"
    PERMISSION = "permission"
    SCHEMA_FAILURE = "schema_failure"
    LIMIT_EXCEEDED = "limit_exceeded"
    ESCALATION = "escalation"


class Severity(StrEnum):
    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"


ESCALATION = InterventionType.ESCALATION.value
SEVERITIES = tuple(each.value for each in Severity)
TYPES = tuple(each.value for each in InterventionType)

# Numbers below this, either way: what SQLite and most languages hold. A sum stays below it.
MOST = 2**63


def complete(entry: Mapping[str, Any]) -> Entry:
    """A hand-written or older entry with what it lacks filled in; what is unknown is kept.

    Every field then has its type: a value that should be a text becomes JSON, and a value that
    should be an object is put into one. Raises ArgumentError when it cannot be an intervention.
    The core document's own example, which has the session and the turn inside `context`, is one.
    What is written has passed here (`storage`), so that it is read again.
    """
    if not isinstance(entry, Mapping):
        raise ArgumentError("an entry is not an object", argument="entry")
    if not isinstance(entry.get("id"), str) or not entry["id"]:
        raise ArgumentError("an entry has no id", argument="id")
    whole: dict[str, Any] = {**_ABSENT, **entry}
    name = ""
    try:
        for name, kind, convert in _FIELDS:
            value = whole[name]
            if value is not None and type(value) is not kind:
                whole[name] = convert(value)
    except (ValueError, TypeError) as error:
        raise _refused(entry, name, str(error)) from error
    created_at = whole["created_at"]
    if created_at is None:
        raise _refused(entry, "created_at", "is missing")
    for name, default in _DEFAULTS.items():
        whole[name] = whole[name] or default
    for name in ("merged", "turns", "resolutions"):
        whole[name] = whole[name] or []
    context = whole["context"] = whole["context"] or {}
    whole["environment"] = whole["environment"] or {}
    whole["session_id"] = whole["session_id"] or _text(context.get("session_id") or "unknown")
    whole["turn_id"] = whole["turn_id"] or _number_or_0(context.get("turn_id"))
    whole["first_seen"] = whole["first_seen"] or created_at
    whole["last_seen"] = whole["last_seen"] or created_at
    return cast(Entry, whole)


_DEFAULTS: dict[str, Any] = {"type": "error", "severity": "high", "occurrences": 1, "version": 1}
_DEFAULTS |= {"phase": "unknown", "error_type": "unknown", "error_message": "", "fingerprint": ""}


def _refused(entry: Mapping[str, Any], name: str, why: str) -> ArgumentError:
    return ArgumentError(f"{one_line(entry['id'])}: {name} {why}", argument=name)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _moment(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("is not a time in ISO 8601")
    from_text(value)
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or abs(value) >= MOST:
        raise ValueError("is not a number below 2**63")
    return value


def _number_or_0(value: Any) -> int:
    return value if isinstance(value, int) and abs(value) < MOST else 0


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"value": value}


def _numbers(value: Any) -> list[int]:
    """An entry may have hundreds, and is looked at in every put."""
    if not isinstance(value, list) or not set(map(type, value)) <= {int}:
        raise ValueError("is not a list of numbers")
    if value and not -MOST < min(value) <= max(value) < MOST:
        raise ValueError("has a number that is not below 2**63")
    return value


def _rows(value: Any) -> list[dict[str, Any]]:
    if value and not (isinstance(value, list) and all(isinstance(row, dict) for row in value)):
        raise ValueError("is not a list of objects")
    return value or []


def _merged_rows(value: Any) -> list[dict[str, Any]]:
    return [_merged(row) for row in _rows(value)]


def _merged(row: dict[str, Any]) -> dict[str, Any]:
    """What cannot be converted is left out: it costs no entry."""
    converted = dict(row)
    for name, kind, convert in _ROW_FIELDS:
        value = row.get(name)
        if value is not None and type(value) is not kind:
            try:
                converted[name] = convert(value)
            except ValueError:
                del converted[name]
    return converted


_Converter = Callable[[Any], Any]
_CONVERTER_OF: dict[Any, _Converter] = {str: _text, Moment: _moment, int: _number}
_CONVERTER_OF |= {dict[str, Any]: _object, Sample: _object, list[int]: _numbers}
_CONVERTER_OF |= {list[Resolution]: _rows, list[MergedFailure]: _merged_rows}
_CONVERTER_OF |= {kind | None: convert for kind, convert in _CONVERTER_OF.items()}
_PLAIN: dict[_Converter, type] = {_text: str, _object: dict}


def _fields(of: type) -> list[tuple[str, type | None, _Converter]]:
    """(name, type that is taken as it is, what converts another) of each field."""
    kinds = ((name, _CONVERTER_OF[kind]) for name, kind in of.__annotations__.items())
    return [(name, _PLAIN.get(convert), convert) for name, convert in kinds]


_FIELDS, _ROW_FIELDS = _fields(Entry), _fields(MergedFailure)
_ABSENT = dict.fromkeys(Entry.__annotations__)


def turns_of(entry: Entry) -> list[int]:
    """Its own turn and those counted on it; empty for a failure outside any turn."""
    own: list[int] = [entry["turn_id"]] if entry["turn_id"] else []
    return own + list(entry.get("turns") or ())


def turn_context(entry: Entry) -> dict[str, Any]:
    """What `context.turn` has of its turn; empty where that is nothing."""
    turn = entry["context"].get("turn")
    return turn if isinstance(turn, dict) else {}


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
    """Without a call of `is_open` for each: every put asks."""
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
    return ", ".join(first_of(list(map(short_id, ids)), most))


def closed_at(entry: Entry) -> str:
    """ISO text, empty while the entry is open."""
    return entry.get("resolved_at") or entry.get("dismissed_at") or ""


def was_resolved(entry: Entry) -> bool:
    """Now or at some time: it may have been reopened, and even dismissed, since."""
    rows = entry.get("resolutions") or ()
    return bool(entry.get("resolved_at")) or any(row.get("kind") == "resolved" for row in rows)


def fingerprints(entry: Entry, *, resolved: bool = False) -> set[str]:
    """The entry's own and those merged into it; with `resolved` none if it never was."""
    if resolved and not was_resolved(entry):
        return set()
    own = {entry.get("fingerprint") or ""}
    return (own | {row.get("fingerprint") or "" for row in entry.get("merged") or ()}) - {""}


def similar(entry: Entry, others: Iterable[Entry]) -> list[Entry]:
    """Entries resolved before whose fingerprint is one of this entry's, the latest first.

    An entry that was resolved and reopened is its own past, and is among them.
    """
    wanted = fingerprints(entry)
    resolved = (e for e in others if any(r.get("kind") == "resolved" for r in e["resolutions"]))
    alike = (other for other in resolved if wanted & fingerprints(other))
    past = (other for other in alike if other["id"] != entry["id"] or is_open(entry))
    return sorted(past, key=lambda other: str(other["resolutions"][-1].get("at")), reverse=True)


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
    samples = [(entry["type"], entry["latest_sample"])]
    samples += [(row.get("type", ""), row.get("sample")) for row in entry["merged"]]
    again: list[Sample] = [
        {**sample, "type": kind}
        for kind, sample in samples
        if sample and sample.get("turn_id") == entry["turn_id"] != 0
    ]
    return max(again, key=lambda sample: str(sample.get("created_at")), default=entry)


def short_id(intervention_id: str) -> str:
    """The random part, which commands accept in place of the whole; safe to show."""
    return one_line(intervention_id.rpartition("_")[2] or intervention_id)


def new_id(created_at: datetime) -> str:
    """`int_YYYYMMDD_HHMMSS_xxxxxx`: the moment in UTC and a random part to type."""
    return f"int_{created_at.astimezone(UTC):%Y%m%d_%H%M%S}_{os.urandom(3).hex()}"
