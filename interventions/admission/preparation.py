"""From a request to what is stored: redacted, bounded, complete, plain JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from interventions.admission.capture import text_of
from interventions.admission.environment import environment
from interventions.admission.fingerprint import FP_VERSION, fingerprint
from interventions.entry import TIMES, Entry, complete, new_id
from interventions.secrets.redaction import redact, redact_text
from interventions.times import to_text, utc_now

if TYPE_CHECKING:
    from interventions.admission.request import InterventionRequest

MAX_MESSAGE = 4_000
MAX_TRACEBACK = 16_000
MAX_NAME = 200

# Texts with a rule of their own; every other one is a name, whatever fields there will be.
_NOT_A_NAME = frozenset(
    [
        *(*TIMES, "type", "severity", "fingerprint"),
        *("error_message", "traceback", "resolution", "regression_note"),
    ]
)
_ABSENT_WHEN_NONE = (
    "retry_of",
    "regression_note",
    "latest_sample",
    "snoozed_until_occurrences",
    "exception_type",
    "culprit",
    "location",
)


def prepare(request: InterventionRequest, home: Path | None = None) -> Entry:
    entry: dict[str, Any] = dict(request.__dict__)
    for name, value in (request.model_extra or {}).items():
        entry[redact_text(name, MAX_NAME)] = redact({name: value}).popitem()[1]
    entry["type"] = str(request.type)
    entry["severity"] = str(request.severity)
    for name in TIMES:
        if entry[name] is not None:
            entry[name] = to_text(entry[name])
    entry["error_message"] = redact_text(request.error_message, MAX_MESSAGE)
    entry["traceback"] = (
        redact_text(request.traceback, MAX_TRACEBACK) if request.traceback else None
    )
    for name in ("resolution", "regression_note"):
        if entry[name] is not None:
            entry[name] = redact_text(entry[name], MAX_MESSAGE)
    for name in type(request).model_fields:
        if name not in _NOT_A_NAME and isinstance(entry[name], str):
            entry[name] = redact_text(entry[name], MAX_NAME)
    for name in ("context", "latest_sample", "merged", "resolutions"):
        if entry[name]:
            entry[name] = redact(entry[name])
    entry["environment"] = redact(request.environment or environment(home or Path.cwd()))
    if not entry["fingerprint"]:
        entry["fp_version"] = FP_VERSION
        entry["fingerprint"] = fingerprint(
            phase=request.phase,
            tool=request.tool,
            exception_type=request.exception_type or request.error_type,
            message=entry["error_message"],
            culprit=request.culprit or "",
        )
    for name in _ABSENT_WHEN_NONE:
        if entry[name] is None:
            del entry[name]
    return cast(Entry, entry)


def prepare_unreadable(request: object, trouble: BaseException) -> Entry:
    """What is known of a request that could not be prepared: never nothing."""
    now = utc_now()
    known = {}
    for name in ("type", "severity", "phase", "error_type", "error_message", "session_id"):
        known[name] = redact_text(text_of(getattr(request, name, "unknown")), MAX_MESSAGE)
    turn_id = getattr(request, "turn_id", 0)
    note = f"the rest could not be prepared: {type(trouble).__name__}: {trouble}"
    bare = {
        **known,
        "id": str(getattr(request, "id", "") or new_id(now)),
        "created_at": to_text(now),
        "turn_id": turn_id if isinstance(turn_id, int) else 0,
        "context": {"preparation": redact_text(note, MAX_MESSAGE)},
        "fingerprint": fingerprint(
            phase=known["phase"],
            tool=None,
            exception_type=known["error_type"],
            message=known["error_message"],
            culprit="",
        ),
        "fp_version": FP_VERSION,
    }
    return complete(bare)
