"""`with intervene(...)`: any program's failures into the queue, and on to whoever called."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from interventions.errors import SettingsError
from interventions.putting.admission import Admission, AdmissionKind
from interventions.putting.errorlog import log_emergency
from interventions.putting.prepare import FOREIGN, Prepared, prepare_anything
from interventions.queue import InterventionQueue
from interventions.settings import queue_at

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
    from interventions.request import InterventionType, Severity

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
    from interventions.request import InterventionRequest

    what = {**fields, "error_type": error.__class__.__name__, "error_message": error}
    try:
        place = queue if queue is not None else _queue(home)
        request: InterventionRequest | Prepared
        try:
            request = InterventionRequest.from_exception(error, home=place.home, **fields)
        except FOREIGN as trouble:
            request = Prepared(prepare_anything(SimpleNamespace(**what), trouble))
        return place.put(request).intervention_id
    except FOREIGN as trouble:  # not even a folder can be found
        failure = prepare_anything(SimpleNamespace(**what), trouble)
        reason = Admission(AdmissionKind.DROPPED, None, "internal", str(trouble))
        log_emergency(Path(home) if home else Path(), failure, reason)
        return None


def _queue(home: Path | str | None) -> InterventionQueue:
    """With the settings of the home, or without them rather than not at all."""
    try:
        return queue_at(home)
    except SettingsError as error:
        logger.warning("the queue's own limits are not used: %s", error)
        return InterventionQueue(home)
