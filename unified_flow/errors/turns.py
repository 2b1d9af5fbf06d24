"""Why a turn cannot be shown or resumed. The commands' exit code is the class's."""

from __future__ import annotations

from interventions.errors import ConflictError, NotFoundError, QueueError


class NoSuchTurnError(NotFoundError):
    pass


class NotResumableError(QueueError):
    """Nothing is left to do, or not from there, or not without `--rerun-tools`."""


class TurnBusyError(ConflictError):
    """Somebody runs the turn now; the message says who and since when."""
