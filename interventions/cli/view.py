"""An entry as `--json` gives it: as stored, with what is derived beside it. Keys are stable."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from interventions.entry import Entry, priority, short_id, state_of


def entry_view(entry: Entry, now: datetime) -> dict[str, Any]:
    return {
        "id": entry["id"],
        "short_id": short_id(entry["id"]),
        "state": state_of(entry, now),
        "priority": f"P{priority(entry)}",
        **entry,
    }
