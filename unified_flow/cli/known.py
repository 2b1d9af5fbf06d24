"""What helped when the same failure was resolved before."""

from __future__ import annotations

from pathlib import Path

from interventions.errors import QueueError
from interventions.settings import queue_at

SHOWN = 2


def known_fixes(home: Path | None, intervention_id: str | None) -> list[str]:
    """The latest notes, each once, with whether a resumed turn proved it; none if they cannot be
    read."""
    if intervention_id is None:
        return []
    try:
        past = queue_at(home).similar(intervention_id)
    except QueueError:
        return []
    rows = [
        row
        for entry in past
        for row in reversed(entry["resolutions"])
        if row.get("kind") == "resolved"
    ]
    known = (
        f"{row.get('note', '')} ({'verified' if row.get('verified') else 'not verified'},"
        f" {row.get('by', 'somebody')}, {str(row.get('at', ''))[:10]})"
        for row in rows
    )
    return list(dict.fromkeys(known))[:SHOWN]
