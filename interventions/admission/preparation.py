"""From a request to what is stored: redacted, bounded, complete, plain JSON; with a fingerprint,
which says whether it is the same failure as another."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interventions.admission.capture import environment, text_of
from interventions.entry import Entry, complete, new_id
from interventions.errors import ArgumentError
from interventions.secrets.redaction import redact, redact_text
from interventions.times import to_text, utc_now

if TYPE_CHECKING:
    from interventions.admission.request import InterventionRequest

MAX_MESSAGE = 4_000
_MAX_TRACEBACK = 16_000
_MAX_NAME = 200
# Every other text is a name, whatever fields there will be.
_MAX_TEXT = {
    **dict.fromkeys(("error_message", "resolution", "regression_note"), MAX_MESSAGE),
    "traceback": _MAX_TRACEBACK,
}
FP_VERSION = 1
_TABLE = Path(__file__).with_name("normal_forms.toml").read_text(encoding="utf-8")
_NORMAL_FORMS = [(name, re.compile(form)) for name, form in tomllib.loads(_TABLE).items()]


def prepare(request: InterventionRequest, home: Path | None = None) -> Entry:
    """Raises ArgumentError for what could not be read again; a request that was validated, and not
    changed since, may still have such fields beside its own."""
    entry: dict[str, Any] = redact(request.model_extra) if request.model_extra else {}
    for name, value in request.__dict__.items():
        entry[name] = _written(name, value)
    if not entry.get("environment"):
        entry["environment"] = redact(environment(home or Path.cwd()))
    return _with_fingerprint(complete(entry))


def normalise(message: str) -> str:
    """The message without what differs from one occurrence to the next."""
    text = message[:4000]
    for name, form in _NORMAL_FORMS:
        text = form.sub(f"<{name}>", text)
    return " ".join(text.split())


def fingerprint(failure: Mapping[str, Any]) -> str:
    """A digest of an entry's redacted fields, without a line number: an edit above the line must
    not make it another failure."""
    kind = failure["exception_type"] or failure["error_type"]
    raised = (kind, normalise(failure["error_message"]), failure["culprit"] or "")
    parts = (str(FP_VERSION), failure["phase"], failure["tool"] or "", *raised)
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


def _with_fingerprint(failure: Entry) -> Entry:
    if failure["fingerprint"]:
        return failure
    return {**failure, "fp_version": FP_VERSION, "fingerprint": fingerprint(failure)}


def _written(name: str, value: Any) -> Any:
    if isinstance(value, Enum):
        return str(value)
    if value is None or isinstance(value, int) or value in ("", [], {}):
        return value
    if isinstance(value, str):
        return redact_text(value, _MAX_TEXT.get(name, _MAX_NAME))
    if not isinstance(value, datetime):
        return redact(value)
    try:
        return to_text(value)
    except (ValueError, OverflowError) as error:
        raise ArgumentError(f"{name}: {error}", argument=name) from error


def bare_failure(error: BaseException, trouble: BaseException) -> Entry:
    """What is known when all else failed: never nothing. `trouble` is why there is no more."""
    now = utc_now()
    why = f"the rest could not be recorded: {type(trouble).__name__}: {text_of(trouble)}"
    message = redact_text(text_of(error), MAX_MESSAGE)
    raised = {"error_type": type(error).__name__, "error_message": message}
    known = {"id": new_id(now), "created_at": to_text(now), **raised}
    refused = {"refused": redact_text(why, MAX_MESSAGE)}
    return _with_fingerprint(complete({**known, "context": refused}))
