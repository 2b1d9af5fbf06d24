"""What keeps the queue of a home: its JSON file, or with the setting `[shared]` a database.

The queue knows no databases; a program that does registers a Store under the entry point group
`interventions.stores`, which is called with the home.
"""

from __future__ import annotations

from pathlib import Path

from interventions.errors import SettingsError
from interventions.settings import SharedSettings, settings_of
from interventions.storage.file_store import FileStore
from interventions.storage.store import Store

STORES_GROUP = "interventions.stores"


def store_at(home: Path) -> Store:
    """Raises SettingsError."""
    if not settings_of(home, SharedSettings).database_url_env:
        return FileStore(home)
    from importlib.metadata import entry_points

    for point in entry_points(group=STORES_GROUP):
        try:
            store: Store = point.load()(home)
        except ImportError as error:
            hint = "pip install 'unified-flow[shared]'"
            raise SettingsError(f"[shared] cannot be used: {error}", hint=hint) from error
        return store
    raise SettingsError(f"[shared] is set, and nothing is registered as {STORES_GROUP!r}")
