"""What any program calls: `with intervene(...)` puts its failures into the queue, and lets them go
on to the caller; beside it the three functions that the core document names."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from interventions.admission.capture import FOREIGN
from interventions.admission.preparation import prepare_unreadable
from interventions.errors import SettingsError
from interventions.health import Health
from interventions.queue import InterventionQueue, queue_at
from interventions.storage.error_log import log_emergency
from interventions.storage.store import Admission, AdmissionKind

if TYPE_CHECKING:
    from interventions.admission.request import InterventionRequest


logger = logging.getLogger("interventions")


@contextmanager
def intervene(
    *,
    phase: str,
    session_id: str = "unknown",
    turn_id: int = 0,
    type: str = "error",
    severity: str = "high",
    tool: str | None = None,
    error_category: str | None = None,
    request_id: str | None = None,
    context: dict[Any, Any] | None = None,
    queue: InterventionQueue | None = None,
    home: Path | str | None = None,
) -> Iterator[None]:
    """An exception is put in the queue and goes on unchanged, with a note that names the entry.

    Also a decorator. KeyboardInterrupt, SystemExit and cancellation are no failures. `turn_id` 0
    means that there is no turn.
    """
    from interventions.admission.request import InterventionType, Severity

    fields: dict[str, Any] = {
        "type": InterventionType(type),
        "severity": Severity(severity),
        "phase": phase,
        "session_id": session_id,
        "turn_id": turn_id,
        "tool": tool,
        "error_category": error_category,
        "request_id": request_id,
        "context": context,
    }
    try:
        yield
    except Exception as error:
        intervention_id = _put(error, fields, queue, home)
        if intervention_id is not None:
            error.add_note(f"intervention {intervention_id}")
        raise


def _put(
    error: Exception,
    fields: dict[str, Any],
    queue: InterventionQueue | None,
    home: Path | str | None,
) -> str | None:
    from interventions.admission.request import InterventionRequest

    what = {**fields, "error_type": error.__class__.__name__, "error_message": error}
    try:
        place = queue if queue is not None else _queue_at(home)
        try:
            request = InterventionRequest.from_exception(error, home=place.home, **fields)
        except FOREIGN as trouble:
            failure = prepare_unreadable(SimpleNamespace(**what), trouble)
            return place.put_prepared(failure).intervention_id
        return place.put(request).intervention_id
    except FOREIGN as trouble:  # not even a folder can be found
        failure = prepare_unreadable(SimpleNamespace(**what), trouble)
        reason = Admission(AdmissionKind.DROPPED, None, "internal", str(trouble))
        log_emergency(Path(home) if home else Path(), failure, reason)
        return None


def _queue_at(home: Path | str | None) -> InterventionQueue:
    """With the settings of the home, or without them rather than not at all."""
    try:
        return queue_at(home)
    except SettingsError as error:
        logger.warning("the queue's own limits are not used: %s", error)
        return InterventionQueue(home)


def create_intervention_request(
    intervention: InterventionRequest | None = None,
    *,
    home: Path | str | None = None,
    queue: InterventionQueue | None = None,
    **fields: Any,
) -> bool:
    """Put a request, or one made of the fields; False only when it was dropped.

    As in the document's examples `session_id` and `turn_id` may be left out, and inside an
    `except` block the traceback of the exception at hand is captured.
    """
    place = queue if queue is not None else queue_at(home)
    if intervention is None:
        intervention = _request(fields, place.home)
    elif fields:
        raise TypeError("either a request or its fields, not both")
    return bool(place.put(intervention))


def resolve_intervention(
    intervention_id: str, resolution: str, *, home: Path | str | None = None
) -> None:
    """Mark an intervention as resolved. Raises NotFoundError or ConflictError."""
    entry = queue_at(home).resolve(intervention_id, resolution)
    logger.info("Intervention %s resolved: %s", entry["id"], entry["resolution"])


def check_queue_health(home: Path | str | None = None) -> Health:
    return queue_at(home).health()


def _request(fields: dict[str, Any], home: Path) -> InterventionRequest:
    from interventions.admission.capture import capture
    from interventions.admission.request import InterventionRequest

    error_type = "LimitExceeded" if fields.get("type") == "limit_exceeded" else "Error"
    defaults = {
        "session_id": "unknown",
        "turn_id": 0,
        "error_message": "",
        "error_type": error_type,
    }
    whole = {**defaults, **fields}
    error = sys.exception()
    if error is not None and whole["error_type"] == type(error).__name__:
        captured = capture(error)
        for name in ("exception_type", "traceback", "culprit", "location"):
            whole.setdefault(name, getattr(captured, name))
    return InterventionRequest(**whole)
