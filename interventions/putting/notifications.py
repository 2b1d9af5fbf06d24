"""Telling people at once: a new critical failure, a regression, the 10th and 100th occurrence.

Off unless the settings name an Apprise URL or a command. The turn waits only for a small process
to start; that one delivers on its own, with a time limit, and its failure is a line in the log.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

from interventions.entry import Entry, short_id
from interventions.errors import QueueError
from interventions.putting.admission import Admission, AdmissionKind
from interventions.settings import notification_settings

logger = logging.getLogger("interventions")

OCCURRENCES = (10, 100)
START_TIMEOUT_S = 5.0


def event_of(failure: Entry, admission: Admission, entry: Entry | None) -> str:
    """`new_critical`, `regression`, `occurrence_10`, `occurrence_100`, or empty: nothing to tell.

    Per fingerprint: a further entry of a failure that is open already is no news.
    """
    if entry is None or admission.reason == "snoozed":
        return ""
    if admission.kind is AdmissionKind.ACCEPTED and entry.get("regression_of"):
        return "regression"
    if admission.kind is AdmissionKind.ACCEPTED and entry["severity"] == "critical":
        return "new_critical"
    for number in OCCURRENCES:
        if entry["occurrences"] - failure["occurrences"] < number <= entry["occurrences"]:
            return f"occurrence_{number}"
    return ""


def message(event: str, entry: Entry) -> dict[str, Any]:
    """What the command gets on stdin: all of it redacted, short enough for any channel."""
    return {
        "event": event,
        "id": entry["id"],
        "short_id": short_id(entry["id"]),
        "fingerprint": entry["fingerprint"],
        "severity": entry["severity"],
        "type": entry["type"],
        "phase": entry["phase"],
        "tool": entry.get("tool"),
        "error_type": entry["error_type"],
        "error_message": entry["error_message"][:500],
        "occurrences": entry["occurrences"],
        "session_id": entry["session_id"],
        "turn_id": entry["turn_id"],
        "created_at": entry["created_at"],
        "regression_of": entry.get("regression_of"),
        "regression_note": entry.get("regression_note"),
    }


def notify(
    home: Path, failure: Entry, admission: Admission, entry: Entry | None, *, known: bool = False
) -> None:
    """Never raises. `known`: the same failure was open before, and only its count is news."""
    event = event_of(failure, admission, entry)
    if entry is None or not event or (known and not event.startswith("occurrence")):
        return
    try:
        settings = notification_settings(home)
        if not settings.url and not settings.command:
            return
        task = {
            "url": settings.url,
            "command": settings.command,
            "timeout_s": settings.timeout_s,
            "log": str(home / "logs" / "notifications.log"),
            "message": message(event, entry),
        }
        subprocess.run(
            [sys.executable, "-m", "interventions.putting.deliver"],
            input=json.dumps(task).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=START_TIMEOUT_S,
            check=True,
        )
    except (QueueError, OSError, subprocess.SubprocessError) as error:
        logger.warning("the notification could not be started: %s", error)
