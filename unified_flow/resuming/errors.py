"""Why a turn is not resumed. Nothing has happened then; the commands' exit code is the class's."""

from __future__ import annotations

from interventions.errors import ConflictError, QueueError


class NotResumableError(QueueError):
    """Nothing is left to do, or not from there, or not without `--rerun-tools`."""


class TurnBusyError(ConflictError):
    """Somebody runs the turn now; the message says who and since when."""
