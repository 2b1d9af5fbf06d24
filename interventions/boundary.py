"""`with intervene(...)`: any program's failures into the queue, and on to whoever called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from interventions.queue import InterventionQueue


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
    from interventions.request import InterventionRequest, InterventionType, Severity

    wanted_type, wanted_severity = InterventionType(type), Severity(severity)
    try:
        yield
    except Exception as error:
        place = queue if queue is not None else InterventionQueue(home)
        request = InterventionRequest.from_exception(
            error,
            type=wanted_type,
            severity=wanted_severity,
            phase=phase,
            session_id=session_id,
            turn_id=turn_id,
            tool=tool,
            error_category=error_category,
            request_id=request_id,
            context=context,
            home=place.home,
        )
        admission = place.put(request)
        if admission:
            error.add_note(f"intervention {admission.intervention_id} ({admission.kind})")
        raise
