"""Why a turn cannot be shown or resumed. The commands' exit code is the class's."""

from __future__ import annotations

from interventions.errors import ConflictError, NotFoundError, QueueError
from unified_flow.errors import RetrievalError, UnifiedFlowError


class ProcessDied(UnifiedFlowError):  # noqa: N818 - the `error_type` of its interventions
    """The process that ran a turn is gone, and only a person lets the turn go on."""


PROCESS_DIED = ProcessDied.__name__


class NoSuchTurnError(NotFoundError):
    pass


class NotResumableError(QueueError):
    """Nothing is left to do, or not from there, or not without `--rerun-tools`."""


class TurnBusyError(ConflictError):
    """Somebody runs the turn now; the message says who and since when."""


class TurnStoppedError(ConflictError):
    """Somebody has given up (`abandoned`) or stopped (`interrupted`) the turn while its answer was
    waited for. Nothing has failed."""

    def __init__(self, turn_id: int, status: str) -> None:
        super().__init__(f"turn {turn_id} was {status} by somebody else", hint="ask again")
        self.status = status


class JournalVersionError(RetrievalError):
    """The journal is intact, and this version of the program cannot read it: nobody changes it."""
