"""The three functions that the core document names."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interventions.queue import InterventionQueue
from interventions.upkeep.health import Health

if TYPE_CHECKING:
    from interventions.request import InterventionRequest

logger = logging.getLogger("interventions")


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
    place = queue if queue is not None else _queue(home)
    if intervention is None:
        intervention = _request(fields, place.home)
    elif fields:
        raise TypeError("either a request or its fields, not both")
    return bool(place.put(intervention))


def resolve_intervention(
    intervention_id: str, resolution: str, *, home: Path | str | None = None
) -> None:
    """Mark an intervention as resolved. Raises NotFoundError or ConflictError."""
    entry = _queue(home).resolve(intervention_id, resolution)
    logger.info("Intervention %s resolved: %s", entry["id"], entry["resolution"])


def check_queue_health(home: Path | str | None = None) -> Health:
    return _queue(home).health()


def _queue(home: Path | str | None) -> InterventionQueue:
    from interventions.settings import queue_at

    return queue_at(home)


def _request(fields: dict[str, Any], home: Path) -> InterventionRequest:
    from interventions.putting.capture import capture
    from interventions.request import InterventionRequest

    given = {"session_id": "unknown", "turn_id": 0, "error_message": "", **fields}
    given.setdefault(
        "error_type", "LimitExceeded" if given.get("type") == "limit_exceeded" else "Error"
    )
    error = sys.exception()
    if error is not None and given["error_type"] == type(error).__name__:
        captured = capture(error)
        given.setdefault("exception_type", captured.exception_type)
        given.setdefault("traceback", captured.traceback)
        given.setdefault("culprit", captured.culprit)
        given.setdefault("location", captured.location)
    return InterventionRequest(**given)
