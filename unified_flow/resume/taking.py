"""Taking up a turn on disk: under its lock, or not at all and with the reason."""

from __future__ import annotations

from unified_flow.errors.turns import NotResumableError, TurnBusyError
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.events import TurnAbandoned, TurnResumed
from unified_flow.turns.ledger import Ledger, Observer
from unified_flow.turns.turn import Turn
from unified_flow.turns.turn_folders import TurnFolders


def take_up(folders: TurnFolders, turn_id: int, observer: Observer | None = None) -> Ledger:
    """The turn as it stands, which nobody else can run until the ledger is left.

    Raises NoSuchTurnError, TurnBusyError, NotResumableError if its journal cannot be opened, and
    RetrievalError if it is damaged. Nothing has happened then.
    """
    archive = TurnArchive(folders)
    try:
        ledger = Ledger(folders.path(turn_id), observer)
    except FileNotFoundError as exc:
        raise archive.no_such_turn(turn_id) from exc
    except BlockingIOError as exc:
        raise busy(archive.require(turn_id)) from exc
    except OSError as exc:
        raise _unwritable(folders, turn_id, exc) from exc
    if not ledger.turn.turn_id:
        with ledger:
            raise archive.no_such_turn(turn_id)
    return ledger


def let_go_on(ledger: Ledger, event: TurnResumed | TurnAbandoned) -> None:
    """The event with which the turn goes on. Raises NotResumableError if there is no room for it,
    and then nothing has happened."""
    try:
        ledger.begin(event)
    except OSError as exc:
        folders = TurnFolders(ledger.folder.parent)
        raise _unwritable(folders, ledger.turn.turn_id, exc) from exc


def busy(turn: Turn) -> TurnBusyError:
    since = f"{turn.runs_since:%Y-%m-%dT%H:%M:%SZ}" if turn.runs_since else "some time"
    doing = "resumed" if turn.resumed else "run"
    return TurnBusyError(
        f"turn {turn.turn_id} is being {doing} by {turn.runner or 'somebody'} since {since}",
        hint="wait until it is done; a process that died holds nothing",
    )


def _unwritable(folders: TurnFolders, turn_id: int, exc: OSError) -> NotResumableError:
    return NotResumableError(
        f"the journal of turn {turn_id} in {folders.path(turn_id)} cannot be written: "
        f"{exc.strerror or exc}",
        hint="make room there and make it writable; nothing has happened",
    )
