"""Where a home keeps its turns, sessions, memories and grants: the one place that chooses.

Beside `wiring.py`, which takes them from here, because a list of turns needs no model and no index.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from interventions.home import find_home, state_folder
from interventions.settings import SharedSettings, settings_of
from unified_flow.errors import DatabaseAwayError, needs_extra
from unified_flow.turns.archive import TurnArchive
from unified_flow.turns.file_store import FileTurnStore
from unified_flow.turns.store import TurnStore

if TYPE_CHECKING:  # and late: a list of turns needs neither
    from unified_flow.shared.database import Database
    from unified_flow.tools.grants import GrantStore
    from unified_flow.turns.memory import MemoryStore
    from unified_flow.turns.sessions import Sessions
    from unified_flow.turns.texts import TextStore


def shared_database(home: Path, *, files: bool = False) -> Database | None:
    """The database that `home` shares with other machines, if [shared] names one; else, and where
    its `files` are wanted in any case, nothing of it is imported. Raises ConfigError, also where
    the extra is not there."""
    if files or not settings_of(home, SharedSettings).database_url_env:
        return None
    with needs_extra("[shared]", "shared"):
        from unified_flow.shared.database import database_at
    return database_at(home)


def missing_worker(home: Path) -> str | None:
    """A line for a person whose turn would wait, however long, for a worker to begin."""
    if (database := shared_database(home)) is None:
        return None
    from unified_flow.shared.presence import workers_of

    with suppress(DatabaseAwayError):  # the turn meets it again, and says so
        if not workers_of(database):
            return "no worker takes turns, so this waits for one: unified-flow worker"
    return None


def turn_store(
    home: Path, known: Callable[[], int] = lambda: 0, *, files: bool = False
) -> TurnStore:
    """The turns of a home; where machines share a database, workers run them."""
    if (database := shared_database(home, files=files)) is not None:
        from unified_flow.shared.turn_store import PostgresTurnStore

        return PostgresTurnStore(database, max_queued=settings_of(home, SharedSettings).max_queued)
    return FileTurnStore(state_folder(home) / "turns", known)


def turn_archive(home: Path | str | None) -> TurnArchive:
    """The archive of the home that is found from `home` (interventions.home.find_home)."""
    place = find_home(home)
    store = turn_store(place)
    name = "turn_index" if shared_database(place) is None else "shared_turn_index"
    return TurnArchive(store, state_folder(place) / f"{name}.sqlite3")


def session_store(home: Path, *, files: bool = False) -> Sessions:
    if (database := shared_database(home, files=files)) is not None:
        from unified_flow.shared.sessions import SharedSessions

        return SharedSessions(database)
    from unified_flow.turns.sessions import SessionStore

    return SessionStore.of(home)


def memory_store(home: Path, *, files: bool = False) -> MemoryStore:
    from unified_flow.turns.memory import MemoryStore

    return MemoryStore(_texts(home, "memory", state_folder(home) / "memory", files=files))


def grant_store(home: Path, *, files: bool = False) -> GrantStore:
    from unified_flow.tools.grants import GrantStore

    return GrantStore(_texts(home, "grants", state_folder(home), files=files))


def _texts(home: Path, kind: str, folder: Path, *, files: bool) -> TextStore:
    if (database := shared_database(home, files=files)) is not None:
        from unified_flow.shared.shared_texts import SharedTexts

        return SharedTexts(database, kind)
    from unified_flow.turns.texts import TextFolder

    return TextFolder(folder)
